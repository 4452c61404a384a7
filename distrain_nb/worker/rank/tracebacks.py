"""Exceptions of the program as a user reads them: no frames of ours, the notebook's own names."""

from __future__ import annotations

import os
import pickle
import re
import traceback
from typing import Any, List, Set

from distrain_nb.worker.functions import FOLDER_VARIABLE, labels

_OWN_FRAMES = os.path.dirname(os.path.dirname(__file__)) + os.sep
_CELL = re.compile(r'^(?P<margin>[ |+-]*)File "(?P<cell>Cell [^"]*)"', re.M)
_CAUSE_FOLLOWS = "Last error:"  # in PyTorch's errors of NCCL, which begin with a file of PyTorch's
_OF_CUT_FILES = ("PytorchStreamReader failed", "unexpected EOF", "Ran out of input")
_NATIVE_FRAMES = re.compile(r"(?:^[ |]*frame #\d+: .*\n?){2,}", re.M)


def format_exception(error: BaseException) -> str:
    """Return the traceback with places such as "Cell In[7], line 12, in f" and "models/net.py",
    line 3.

    As Python has it where the program has left things so that those can't be told.
    """
    try:
        torn = torn_checkpoint(error)
        advice = f"{torn}: save beside it, and rename with os.replace\n" if torn else ""
        lacking = missing_variable(error)
        advice += f"{lacking}\n" if lacking else ""
        return _tidied(error) + advice
    except Exception:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def torn_checkpoint(error: BaseException) -> str:
    """Return which file `torch.load` found cut short; empty where that isn't the cause."""
    is_cut = isinstance(error, (EOFError, pickle.UnpicklingError)) or any(
        words in str(error) for words in _OF_CUT_FILES
    )
    trace = error.__traceback__ if is_cut else None
    while trace is not None:
        frame = trace.tb_frame
        names = frame.f_globals.get("__name__"), frame.f_code.co_name
        file = frame.f_locals.get("f")
        if names == ("torch.serialization", "load") and isinstance(file, (str, os.PathLike)):
            return f"{os.fspath(file)} is not whole, as a save that was cut short leaves it"
        trace = trace.tb_next
    return ""


def missing_variable(error: BaseException) -> str:
    """Say which variable of the environment a program asked for in vain, with those that are there
    and end alike: platforms name the same folder by variables of their own, each with its prefix.
    Empty where that isn't the cause."""
    trace = error.__traceback__ if isinstance(error, KeyError) else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_locals.get("self") is not os.environ:
        return ""
    name = str(error.args[0]) if error.args else ""
    ending = name.partition("_")[2]
    alike = sorted(other for other in os.environ if ending and other.partition("_")[2] == ending)
    instead = f", but it has {' and '.join(alike)}" if alike else ""
    return f"the environment of the ranks has no {name}{instead}"


def _tidied(error: BaseException) -> str:
    report = traceback.TracebackException.from_exception(error)
    _tidy(report, set())
    return "".join(_CELL.sub(r"\g<margin>\g<cell>", chunk) for chunk in report.format())


def headline(error: BaseException) -> str:
    """Return the exception's type and the first line of its message; of NCCL's, the cause."""
    chunks = list(traceback.TracebackException.from_exception(error).format_exception_only())
    if isinstance(error, SyntaxError):  # whose place and text come first
        chunks = [chunk for chunk in chunks if not chunk.startswith(" ")]
    lines = chunks[0].splitlines() if chunks else []
    texts = [line.strip() for line in lines if line.strip()]
    torn = torn_checkpoint(error)
    if torn:
        return f"{type(error).__name__}: {torn}"
    lacking = missing_variable(error)
    if lacking:
        return f"{type(error).__name__}: {lacking}"
    if _CAUSE_FOLLOWS in texts[:-1]:
        return f"{texts[0].partition(': ')[0]}: {texts[texts.index(_CAUSE_FOLLOWS) + 1]}"
    if len(texts) > 1 and texts[0].endswith(":"):  # the message begins with an empty line
        return " ".join(texts[:2])
    return texts[0] if texts else repr(error)


def without_native_frames(text: str) -> str:
    """Return a traceback whose message has a C++ stack, with a line in that stack's place."""
    return _NATIVE_FRAMES.sub(_count, text)


def _count(match: re.Match[str]) -> str:
    return f"  ({len(match[0].strip().splitlines())} frames of C++; the log has them)\n"


def _tidy(report: Any, visited: Set[int]) -> None:
    if report is None or id(report) in visited:
        return
    visited.add(id(report))
    report.stack = traceback.StackSummary.from_list(_theirs(report.stack))
    if getattr(report, "filename", None):  # of a SyntaxError
        report.filename = _shown(report.filename)
    for inner in (report.__cause__, report.__context__, *(getattr(report, "exceptions", ()) or ())):
        _tidy(inner, visited)


def _theirs(stack: List[Any]) -> List[Any]:
    """Return the frames from the program's first one on, without ours, each file as the user names
    it."""
    first = min([n for n, frame in enumerate(stack) if frame.filename in labels], default=0)
    frames = [f for f in stack[first:] if not f.filename.startswith(_OWN_FRAMES)]
    for frame in frames:
        frame.line  # noqa: B018  # read now, from the file that it has been loaded from
        frame.filename = _shown(frame.filename)
    return frames


def _shown(filename: str) -> str:
    """Return a module that travels with the program is named as it is in the notebook's folder."""
    folder = os.environ.get(FOLDER_VARIABLE, "") + os.sep
    return filename[len(folder) :] if filename.startswith(folder) else filename
