"""The demo: three real nodes, real work, and one node killed in the middle."""
