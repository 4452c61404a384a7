"""Written forms of layouts and studies for AI Platform Training."""
