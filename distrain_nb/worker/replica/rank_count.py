"""How many ranks a training replica has, by the type of its machine."""

from __future__ import annotations

VARIABLE = "DISTRAIN_RANKS"


def per_replica(text: str, machine: str) -> int:
    """Return the number in `8`, or that of the machine's type in `ml.p5.48xlarge=8,ml.g5.xlarge=1`.

    A type that isn't named has the least of the numbers: each of its ranks has a device.
    """
    if "=" not in text:
        return int(text)
    numbers = {name: int(number) for name, _, number in (p.partition("=") for p in text.split(","))}
    return numbers.get(machine, min(numbers.values()))
