"""Ways of building: layers appended, Docker, Cloud Build."""
