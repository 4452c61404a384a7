"""Texts that were written to do harm, or by chance: what reads them has to answer, and soon."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from distrain_nb.errors import OptionError

SOON_S = 0.1  # of this thread's time
LONGEST_SENTENCE = 2_000
_TRIES = 10  # a first one also imports, and neighbours slow this thread down


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
