"""Written forms of layouts for AI Platform Training."""
