"""The real world: trio, sockets, clocks, files and processes round one pure node."""
