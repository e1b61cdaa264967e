"""Real nodes as processes on this host, for the demo, the benchmarks and the tests."""
