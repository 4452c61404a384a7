"""Rules of layouts and studies for Vertex AI, and what AI Platform shares of them."""
