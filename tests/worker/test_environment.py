"""The variables of a process while its threads change them."""

from __future__ import annotations

import os
import sys
import threading

from distrain_nb.worker.machine.environment import variables


def test_a_thread_may_delete_what_is_being_copied() -> None:
    """`dict(os.environ)` ends with a KeyError at one of some thousand copies, more often with such
    short turns."""
    ended = threading.Event()

    def sets_and_deletes() -> None:
        while not ended.is_set():
            os.environ["DISTRAIN_TEST_MOVING"] = "1"
            del os.environ["DISTRAIN_TEST_MOVING"]

    thread = threading.Thread(target=sets_and_deletes)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        copies = [variables() for _ in range(3_000)]
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval)
    names = {name for name in os.environ if name != "DISTRAIN_TEST_MOVING"}
    assert all(names <= copy.keys() for copy in copies)
