"""What a busy machine takes isn't counted as work of the notebook's."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

from distrain_nb.observed.clock import undisturbed
from distrain_nb.program.values.forked import in_fork


def test_waiting_for_a_processor_is_not_counted() -> None:
    took: dict[str, float] = {}

    def work() -> None:
        os.sched_setaffinity(0, {core})  # of this thread alone
        begin, clock = time.monotonic(), undisturbed()
        while time.thread_time() < 0.3:
            pass
        took.update(wall=time.monotonic() - begin, clock=undisturbed() - clock)

    core = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(4)]
    try:
        time.sleep(0.5)  # until they spin
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert took["wall"] > 2 * took["clock"]


def test_a_fork_that_only_sleeps_is_not_waited_for() -> None:
    begin = time.monotonic()
    assert in_fork(lambda: time.sleep(60), 0.2) is None
    assert time.monotonic() - begin < 30
