"""A replica of a cluster: its place among others, and the variables of its container."""
