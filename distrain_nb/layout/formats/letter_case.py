"""The letter case of names: `machine_spec` in Python is `machineSpec` in JSON."""

from __future__ import annotations

import re


def camel_keys(value: object) -> object:
    """Return a value with keys as JSON has them, where they are written as in Python."""
    if isinstance(value, dict):
        return {camel(str(key)): camel_keys(member) for key, member in value.items()}
    return [camel_keys(member) for member in value] if isinstance(value, (list, tuple)) else value


def camel(name: str) -> str:
    """Convert `machine_spec` to `machineSpec`."""
    return re.sub(r"_([a-z])", lambda part: part[1].upper(), name)


def snake(name: str) -> str:
    """Convert `machineSpec` to `machine_spec`."""
    return re.sub(r"[A-Z]", lambda part: f"_{part[0].lower()}", name)
