"""Written forms of layouts and studies for Vertex AI."""
