"""A client for container registries."""
