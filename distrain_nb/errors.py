"""The exceptions that the package raises, in one tree.

DistrainError
├── OptionError      an option, its name or its value
├── CaptureError     the cell can't become a program
├── CheckFailed      findings of severity error
├── PackingError     samples can't be packed into shards
├── ImageError       an image can't be named, built or sent
├── StoreError       the folder or the list of runs can't be used
├── RunNotFound      no run of that name
├── StudyNotFound    no study of that name
├── RunNotReady      the run has not ended
├── RunUnreadable    what its folder has can't be read
├── ResultUntrusted  to read a result would run code that it names
├── RunFailed        a rank failed
└── RunCancelled     somebody cancelled it
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from reprlib import Repr
from typing import TYPE_CHECKING

from distrain_nb.escapes import coloured

if TYPE_CHECKING:
    from distrain_nb.findings import Finding, Fix


_BEGINS = 3  # letters from which on a name may be meant by its beginning
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
_SHORT.maxlevel = 2


def shown(value: object) -> str:
    """Return a value as messages name it: as Python writes it, cut where it is long or deep."""
    return _SHORT.repr(value)


def closest(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that begins with one that is not, or is most like it; empty if none
    is."""
    from difflib import get_close_matches

    names = sorted(candidates, key=len)
    longer = [
        candidate
        for candidate in names
        if len(name.strip("-")) >= _BEGINS and candidate.startswith(name)
    ]
    return next(iter([*longer, *get_close_matches(name, names, 1, cutoff)]), "")


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str = "") -> str:
    """Return `; did you mean --workers?`, or `otherwise` where no known name is like that one."""
    close = closest(name, candidates)
    return f"; did you mean {close}?" if close else otherwise


class DistrainError(Exception):
    """Whatever the package raises on purpose.

    `where` is what of the cell it is about, as the user wrote it; `fixes` are repairs of the cell's
    whole text, and `rendered` is what whoever has shown it wants IPython to print.
    """

    rendered = ""

    def __init__(self, message: str, *, where: str = "", fixes: tuple[Fix[str], ...] = ()) -> None:
        self._message, self._where, self._fixes = message, where, fixes
        super().__init__(message)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that is wrong, one by one."""
        from distrain_nb.findings import Finding, Severity  # 2 ms that `%load_ext` needn't take

        return (Finding("", Severity.ERROR, self._where, self._message, self._fixes),)

    def _render_traceback_(self) -> list[str]:
        """Return the message alone for IPython: our own frames say nothing to a user."""
        return [coloured(self.rendered or f"\x1b[31m{self}\x1b[39m")]


class OptionError(DistrainError):
    """An unknown option, or a value that is not allowed: names both and what is allowed."""


class CheckFailed(DistrainError):
    """A job that can't run as it stands. `findings` has everything that was found."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("\n".join(f.described for f in findings))
        self._findings = findings

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The errors that the check reported."""
        return self._findings


class CaptureError(CheckFailed):
    """The cell, or something it needs from the notebook, can't travel."""


class PackingError(DistrainError):
    """Samples can't be packed into shards: what is read, or where they go."""


class ImageError(DistrainError):
    """An image can't be named, built or sent: says which part, and what to do."""


class StoreError(DistrainError):
    """The folder of runs, or the list in it, can't be used: says why, and the way out."""


class RunNotFound(DistrainError):
    """No run has that name or id."""


class StudyNotFound(DistrainError):
    """No study has that name or number."""


class RunNotReady(DistrainError):
    """The run has not ended, so what was asked for is not there yet."""


class RunUnreadable(DistrainError):
    """The run's folder, or what is in it, can't be read: it can only be deleted."""


class ResultUntrusted(DistrainError):
    """A result is more than plain data: to read it runs code that it names."""


class RunFailed(DistrainError):
    """A rank failed. The message is its traceback, with the notebook's cells and lines."""


class RunCancelled(DistrainError):
    """The run was cancelled."""


def warn(message: str) -> None:
    """Issue a UserWarning at the line outside this package, and outside IPython, that led here.

    A warning shows that line: one of ours says nothing to the user.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_between(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level + 1)


def _is_between(module: str) -> bool:
    return module.partition(".")[0] in ("distrain_nb", "IPython")
