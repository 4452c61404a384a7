"""A time at which a process exits, whatever holds the lock of its interpreter."""

from __future__ import annotations

import ctypes
import time

_SIGEV_THREAD = 2


class Deadline:
    """A time at which this process exits with a status, even if a thread holds the interpreter's
    lock for ever.

    Does nothing where the system has no such timers.
    """

    def __init__(self, status: int) -> None:
        # `_exit` gets the status in a thread that the C library starts.
        self._timer = ctypes.c_void_p()
        try:
            libc = ctypes.CDLL(None)
            self._rt = libc if hasattr(libc, "timer_create") else ctypes.CDLL("librt.so.1")
            act = ctypes.cast(libc._exit, ctypes.c_void_p)
            event = _SigEvent(status, 0, _SIGEV_THREAD, act)
            clock, timer = time.CLOCK_MONOTONIC, ctypes.byref(self._timer)
            self._exists = self._rt.timer_create(clock, ctypes.byref(event), timer) == 0
        except (AttributeError, OSError):
            self._exists = False

    def set(self, seconds: float) -> None:
        """Let it be so many seconds from now."""
        if self._exists:
            whole_seconds = int(seconds)
            times = (ctypes.c_long * 4)(0, 0, whole_seconds, int((seconds - whole_seconds) * 1e9))
            self._rt.timer_settime(self._timer, 0, times, None)


class _SigEvent(ctypes.Structure):
    """`struct sigevent` of Linux, for a function that a thread calls with the value."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("rest", ctypes.c_char * 40),
    )
