"""What pages and tables ask of runs, and what they are answered."""
