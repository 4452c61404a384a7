"""What a cell needs of its notebook, in an order that works."""
