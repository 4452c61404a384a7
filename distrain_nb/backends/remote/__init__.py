"""Jobs that run elsewhere: one process a run carries the code there and brings back what it says."""
