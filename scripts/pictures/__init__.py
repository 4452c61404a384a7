"""Pictures of everything that the package shows: `python -m scripts.pictures [NAME…]`."""
