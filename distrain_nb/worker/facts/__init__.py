"""What ranks leave of their training, and what a comparison of it shows; standard library only."""
