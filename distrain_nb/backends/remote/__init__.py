"""Jobs that run elsewhere: a process carries the code there and brings back what it says."""
