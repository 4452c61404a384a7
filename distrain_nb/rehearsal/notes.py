"""What a rehearsal says of itself, so that nobody takes it for the cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distrain_nb.rehearsal.engine import Engine


def engine_note(engine: Engine) -> str:
    """Say how a job's replicas run."""
    return f"This is a rehearsal on one machine. {engine.note}"


def without(machine: str, hardware: str) -> str:
    """Say that a machine is rehearsed without its accelerators."""
    return f"{machine} runs without its {hardware}: a rehearsal has no accelerators."


def secret_value(name: str) -> str:
    """Return the value of a secret in a rehearsal: every secret exists, and its value says that it
    is made up."""
    return f"rehearsal of {name}"
