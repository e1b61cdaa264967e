"""A whole mesh in one process: virtual time, a network with faults, and checkers that watch it."""
