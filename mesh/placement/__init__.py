"""Who should get what: rendezvous hashing over the members that may get work."""
