"""Sizes as people read them."""


def readable_size(size: int) -> str:
    """Return a size in bytes for people: `12 B`, `3.4 KiB`, `64 MiB`."""
    if size < 1024:
        return f"{size} B"
    amount, unit = size / 1024, "KiB"
    for larger in ("MiB", "GiB"):
        if amount >= 1024:
            amount, unit = amount / 1024, larger
    return f"{amount:.4g} {unit}"
