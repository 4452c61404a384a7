"""Readers of options' texts: each returns a value, or raises ValueError or OptionError."""

from __future__ import annotations

import re
from collections.abc import Callable

from distrain_nb.errors import OptionError

MOST_RETRIES = 1000

_NAME = re.compile(r"[a-z][a-z0-9-]*")


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader that accepts these texts alone."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(text)
        return text

    return read


def place_name(text: str) -> str:
    """Accept any name: this room doesn't know which backends are installed."""
    if not _NAME.fullmatch(text):
        raise ValueError(text)
    return text


def retries(text: str) -> int:
    """Return a number of retries. Raises OptionError for one out of range."""
    if not 0 <= int(text) <= MOST_RETRIES:
        raise OptionError(f"{text} is not between 0 and {MOST_RETRIES}")
    return int(text)


def causes(text: str) -> str:
    """Accept causes of a restart, separated by commas. Raises OptionError for others."""
    from distrain_nb.worker.supervisor.retries import read_causes

    try:
        return ",".join(sorted(read_causes(text)))
    except ValueError as error:
        raise OptionError(
            f"{str(error)!r} is no cause: use an exit status from 1 to 255, a signal such as "
            "SIGTERM, or signals, preemption, lost or time-limit"
        ) from None
