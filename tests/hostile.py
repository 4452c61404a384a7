"""Texts that were written to do harm, or by chance: what reads them has to answer, and soon."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from distrain_nb.errors import OptionError

# Of this thread's time. The costliest text takes 0.06 s, and a quadratic search in it minutes.
SOON_S = 1.0
LONGEST_SENTENCE = 2_000
_TRIES = 3  # a first one also imports


def refused(read: Callable[[str], object], text: str) -> str:
    """The sentence with which it is refused."""
    for _ in range(_TRIES):
        begin = time.thread_time()
        with pytest.raises(OptionError) as found:
            read(text)
        if time.thread_time() - begin < SOON_S:
            break
    else:
        pytest.fail(f"it was read for more than {SOON_S} s")
    assert len(str(found.value)) < LONGEST_SENTENCE
    return str(found.value)
