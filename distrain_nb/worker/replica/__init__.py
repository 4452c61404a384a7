"""A replica of a cluster: its place among others, and what its container is told."""
