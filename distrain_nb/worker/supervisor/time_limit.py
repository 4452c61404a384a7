"""The time limits of an attempt, whose clocks stand still while a rank asks at a prompt."""

from __future__ import annotations

import time
from pathlib import Path
from typing import List, Tuple

from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.launch import Launch

NEVER = float("inf")


class TimeLimit:
    """When an attempt has to end, and when its program is asked to save ahead of that.

    What a run may cost is not prolonged: a machine costs the same while somebody thinks.
    """

    def __init__(self, folder: Path, launch: Launch, spent: float) -> None:
        self._folder = folder
        self._labels = [process.label for process in launch.processes]
        self._timeout = launch.timeout or NEVER
        self._looked_at = now = time.monotonic()
        self._end, self._end_for_cost = now + self._timeout, NEVER
        if launch.cost_limit:
            self._end_for_cost = now + max(0.0, launch.cost_limit - spent)
        self._cost_words = launch.cost_words
        self._notice = launch.signal_before or 0.0
        self._is_noticed = self._is_due = False
        self._waiting: List[prompts.Asker] = []

    def paused(self) -> float:
        """Return for how many seconds the clocks have stood still since this was last called."""
        now, before = time.monotonic(), self._looked_at
        self._looked_at, self._waiting = now, prompts.open_prompts(self._folder)
        waits = self._waiting or prompts.stands_still(self._folder)
        if not waits or prompts.is_quit(self._folder):
            return 0.0
        self._end += now - before
        return now - before

    @property
    def note(self) -> str:
        """Who waits at a prompt, for people; empty for nobody."""
        labels = dict.fromkeys(self._labels[asker.process] for asker in self._waiting)
        if not labels:
            return ""
        return f"{', '.join(labels)} {'waits' if len(labels) == 1 else 'wait'} at a prompt"

    def notice(self) -> None:
        """Have the program asked to save now."""
        self._is_noticed, self._is_due = False, True

    def takes_notice(self) -> bool:
        """Return whether the program is to be asked to save, once."""
        end = min(self._end, self._end_for_cost)
        if self._is_noticed or not (self._is_due or time.monotonic() >= end - self._notice):
            return False
        self._is_noticed, self._is_due = True, False
        return True

    def passed(self) -> Tuple[bool, str]:
        """Return whether the time is over, and why."""
        now = time.monotonic()
        if self._end_for_cost < self._end:
            return now >= self._end_for_cost, self._cost_words
        return now >= self._end, f"it ran longer than --timeout {self._timeout:g}"
