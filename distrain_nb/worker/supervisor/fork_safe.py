"""What a fork server may import before it forks."""

# Frameworks that start no thread when imported, so that a process may fork after it: checked by a
# test. Whatever else a program imports, its ranks import themselves.
FORK_SAFE = ("numpy", "scipy", "pandas", "sklearn", "torch", "tensorflow")
