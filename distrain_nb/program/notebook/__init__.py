"""What the notebook has executed, and what of it belongs to one process."""
