"""Questions of pages and tables about runs, and their answers."""
