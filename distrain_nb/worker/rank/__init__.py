"""One rank: the program, its values, what it prints, and its last word."""
