"""Tells where this rank is: the Python stacks of its threads, and the collectives that it is in.

A thread of its own answers what the run's folder asks. It holds the interpreter's lock meanwhile
and interrupts nothing. Where it gets no lock, because C code has it, a signal has the main thread
write its own stack. The watchdog of `faulthandler` would need no signal, but it reads frames that
may run: a rank that lacked CPU time for its 10 s crashed (CPython 3.10 to 3.13). The flight
recorder's JSON is a private call of PyTorch, tried with 2.13; without it the stacks have to do.
"""

from __future__ import annotations

import _thread
import faulthandler
import json
import os
import re
import signal
import sys
import threading
import time
from opcode import opname
from pathlib import Path
from time import sleep
from types import FrameType, TracebackType
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from distrain_nb.worker import functions
from distrain_nb.worker.files.folder import HELD_FILE, LOOK_FILE, WHERE_FILE
from distrain_nb.worker.machine.waits import STACK_SIGNAL
from distrain_nb.worker.rank.program import FOLDER_VARIABLE, variables

HANG_AFTER_VARIABLE, STOP_VARIABLE = "DISTRAIN_HANG_AFTER", "DISTRAIN_STOP_WHEN_HUNG"
HANG_AFTER_S = 30.0

ASKED_EVERY_S = 0.5
NOTED_EVERY_S = 4.0
BETWEEN_SAMPLES_S = 0.1
DEEPEST = 100

# File as the user names it, line, function, position in its code, whether it is the user's own,
# and whether C code may run there, as by a call.
Frame = Tuple[str, int, str, int, bool, bool]
_IN_C = re.compile("CALL|BINARY|INPLACE|COMPARE|FOR_ITER|CONTAINS|IMPORT|ATTR|SUBSCR|EXTEND|FORMAT")

_MOST_PENDING = 20
_C10D = "torch._C._distributed_c10d"
_teller: Optional[_Teller] = None


def hang_after(program_folder: Path) -> float:
    """Return how many seconds of silence a run has before its ranks are looked at; 0 for ever."""
    text = setting(program_folder, HANG_AFTER_VARIABLE)
    return float(text) if text else HANG_AFTER_S


def setting(program_folder: Path, variable: str) -> str:
    """Return a variable that the program or its surroundings set; empty for none."""
    return {**os.environ, **variables(program_folder)}.get(variable, "")


def begin(folder: Path, process: int, program_folder: Path) -> None:
    """Answer from now on, as that process of the run, until it ends; unless nobody will ask."""
    global _teller
    longest = hang_after(program_folder)
    if longest > 0:
        try:
            _teller = _Teller(folder, process)
        except OSError as error:  # a full disk; no descriptor is free
            print(f"distrain: can't tell where this rank is: {error}", file=sys.stderr)


def leave_word(traceback: Optional[TracebackType]) -> None:
    """Note at which line the program ends itself, as by `sys.exit()`."""
    if _teller is not None:
        _teller.note_end(traceback)


def place() -> str:
    """Return the innermost line of the program on this thread's stack: `Cell In[7], line 3`."""
    frame: Optional[FrameType] = sys._getframe(1)
    folder = _program_folder()
    while frame is not None:
        shown = _shown(frame.f_code.co_filename, folder)
        if shown:
            return f"{shown}, line {frame.f_lineno}"
        frame = frame.f_back
    return ""


def place_in(frames: Iterable[Mapping[str, Any]]) -> str:
    """Return the innermost line of the program among frames of PyTorch's own kind."""
    folder = _program_folder()
    for frame in frames:
        shown = _shown(str(frame.get("filename", "")), folder)
        if shown:
            return f"{shown}, line {frame.get('line', 0)}"
    return ""


def _program_folder() -> str:
    return os.environ.get(FOLDER_VARIABLE, "\0") + os.sep


def _shown(file: str, folder: str) -> str:
    """Return a file of the program as its user names it; empty for a file of a library."""
    if file.startswith(folder):
        return file[len(folder) :]
    return file if file in functions.labels else ""


class _Teller:
    """Answers from a thread that neither `threading` nor the program's end knows of."""

    def __init__(self, folder: Path, process: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        self._asked = str(folder / LOOK_FILE)
        self._answers = os.open(str(folder / WHERE_FILE.format(process)), flags, 0o600)
        held = os.open(str(folder / HELD_FILE.format(process)), flags | os.O_APPEND, 0o600)
        self._files = {fd: _file_of(fd) for fd in (self._answers, held)}
        self._answered = ""
        self._ended: Optional[Frame] = None
        self._thread = 0
        if STACK_SIGNAL and signal.getsignal(STACK_SIGNAL) is signal.SIG_DFL:
            faulthandler.register(STACK_SIGNAL, held, all_threads=False)
        _thread.start_new_thread(self._run, ())

    def note_end(self, traceback: Optional[TracebackType]) -> None:
        """Keep the innermost line of the program in that traceback, where it has ended."""
        frames = []
        while traceback is not None:
            frames.append(_frame(traceback.tb_frame, traceback.tb_lineno))
            traceback = traceback.tb_next
        program = [frame for frame in frames if frame[4]]
        self._ended = program[-1] if program else None
        if self._has_its_files():
            self._write(self._where("", 1))

    def _run(self) -> None:
        noted, self._thread = 0.0, threading.get_native_id()
        while self._has_its_files():
            try:
                asked, samples = self._request()
                if asked != self._answered:
                    self._answer(asked, samples)
                    noted = time.monotonic()  # whoever asked reads the answer a few seconds later
                elif time.monotonic() - noted >= NOTED_EVERY_S:
                    noted = time.monotonic()
                    self._write(self._where("", 1))
            except Exception:  # a disk that is full, a module half imported: perhaps the next time
                pass
            sleep(ASKED_EVERY_S)
        if STACK_SIGNAL:
            faulthandler.unregister(STACK_SIGNAL)

    def _has_its_files(self) -> bool:
        """Return whether its descriptors are those that it opened; else leave them alone, as the
        program has closed all that it doesn't know and may have opened files of its own."""
        return all(_file_of(fd) == file for fd, file in self._files.items())

    def _request(self) -> Tuple[str, int]:
        try:
            # Nothing that imports, as a codec by its name does: the main thread may hold the lock
            # of an import hook, such as MLflow's, and wait for the lock of imports.
            with open(self._asked, "rb") as file:
                asked, samples = file.read().split()
        except (OSError, ValueError):  # nobody has asked, or is just writing it
            return self._answered, 0
        return asked.decode(), int(samples)

    def _answer(self, asked: str, samples: int) -> None:
        self._write(self._where(asked, samples))
        self._answered = asked

    def _where(self, asked: str, samples: int) -> Dict[str, Any]:
        this_thread, taken = _thread.get_ident(), []
        for number in range(max(1, samples)):
            if number:
                sleep(BETWEEN_SAMPLES_S)
            taken.append(_stacks(this_thread))
        word = {"request": asked, "time": time.time(), "ended": self._ended}
        word["thread"] = self._thread
        return {**word, "samples": taken, **(_collectives() if asked else {})}

    def _write(self, word: Dict[str, Any]) -> None:
        data = json.dumps(word, default=str).encode() + b"\n"
        os.pwrite(self._answers, data, 0)
        os.ftruncate(self._answers, len(data))


def _file_of(descriptor: int) -> Optional[Tuple[int, int]]:
    """Return what tells a file from all others; None where the descriptor is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _stacks(skipped: int) -> List[Dict[str, Any]]:
    """Return the stacks of all threads but that one, the innermost frame first."""
    names = {ident: thread.name for ident, thread in list(threading._active.items())}  # type: ignore[attr-defined]
    main = threading.main_thread().ident
    return [
        {"name": names.get(ident, ""), "main": ident == main, "frames": _frames(frame)}
        for ident, frame in sys._current_frames().items()
        if ident != skipped
    ]


def _frames(frame: Optional[FrameType]) -> List[Frame]:
    frames: List[Frame] = []
    while frame is not None and len(frames) < DEEPEST:
        frames.append(_frame(frame, frame.f_lineno))
        frame = frame.f_back
    numbers = [number for number, shown in enumerate(frames) if shown[4]]
    return frames[: numbers[-1] + 1] if numbers else frames


def _frame(frame: FrameType, line: Optional[int]) -> Frame:
    code = frame.f_code
    shown = _shown(code.co_filename, _program_folder())
    is_program = bool(shown)
    operation = opname[code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""
    return (
        shown or code.co_filename,
        line or 0,
        code.co_name,
        frame.f_lasti,
        is_program,
        bool(_IN_C.search(operation)),
    )


def _collectives() -> Dict[str, Any]:
    """Return what PyTorch's flight recorder has: what each group has completed, and what isn't."""
    calls: Dict[str, Any] = {"pending": [], "groups": {}}
    for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json"):
        dump = getattr(sys.modules.get(_C10D), name, None)
        trace = json.loads(dump(True, True)) if dump is not None else {}
        pending = [entry for entry in trace.get("entries", ()) if not entry.get("retired")]
        calls["pending"] += pending[-_MOST_PENDING:]
        calls["groups"].update(trace.get("pg_status", {}))
    return calls
