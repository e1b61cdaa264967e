"""Messages to bytes and back. Every byte that comes from a socket passes through here first."""
