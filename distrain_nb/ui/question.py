"""Asks whoever sits at the notebook, by the kernel's own input channel; a question can be taken
back."""

from __future__ import annotations

import getpass
import signal
import threading
from collections.abc import Callable
from types import FrameType

from distrain_nb.ui.outputs import in_background

LOOK_EVERY_S = 0.1


def ask(
    text: str, *, secret: bool, is_withdrawn: Callable[[], bool], meanwhile: Callable[[], None]
) -> str | None:
    """Ask, and return the answer; None if the question has been withdrawn before it came.

    `meanwhile` is called again and again while it is open. Raises KeyboardInterrupt, and EOFError
    for the end of input.
    """
    read = getpass.getpass if secret else input
    question = _Question(is_withdrawn, meanwhile)
    with question:
        try:
            return read(text)
        except KeyboardInterrupt:
            if question.withdrawn.is_set():
                return None
            raise


class _Question:
    """Looks, while the main thread reads, whether there is still something to answer.

    Only a signal gets the main thread out of reading, so a withdrawal is an interrupt of ours.
    Python calls handlers in the main thread alone: one that comes after the answer finds `_over`.
    """

    def __init__(self, is_withdrawn: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
        self.withdrawn = threading.Event()
        self._over = threading.Event()
        self._is_withdrawn, self._meanwhile = is_withdrawn, meanwhile
        self._is_main = threading.current_thread() is threading.main_thread()
        self._thread = in_background(self._watch, "distrain-question")

    def __enter__(self) -> None:
        if self._is_main:
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._is_main:
            signal.signal(signal.SIGINT, self._before)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.withdrawn.is_set():
            if not self._over.is_set():
                raise KeyboardInterrupt
        elif callable(self._before):
            self._before(number, frame)
        else:
            raise KeyboardInterrupt

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self._meanwhile()
            if self._is_main and self._is_withdrawn():
                self.withdrawn.set()
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                return
