"""What Python code says: its names, scopes, reads and imports."""
