"""A module with a function to submit."""


def train() -> None:
    """What a user would train."""
    print("trained", helper())


def helper() -> int:
    """What it needs."""
    return 3
