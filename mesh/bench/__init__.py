"""Benchmarks of real nodes, side by side with their peers."""
