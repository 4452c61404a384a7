"""Kubernetes, as a form of layouts."""
