"""The image that a build stands on, and what it holds."""
