"""The peers that Mesh is measured beside: one adapter each, and where each is found."""
