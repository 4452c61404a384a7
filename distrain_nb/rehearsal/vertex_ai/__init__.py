"""Vertex AI, Cloud Logging and Cloud Storage as far as a custom job meets them, on this machine."""
