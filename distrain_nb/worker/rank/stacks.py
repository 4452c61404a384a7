"""Tells where this rank is: the Python stacks of its threads, and the collectives that it is in.

A thread of its own answers what the run's folder asks. It holds the interpreter's lock meanwhile
and interrupts nothing. Where it gets no lock, because C code has it, a signal has the main thread
write its own stack. The watchdog of `faulthandler` would need no signal, but it reads frames that
may run: a rank that lacked CPU time for its 10 s crashed (CPython 3.10 to 3.13). The flight
recorder's JSON is a private call of PyTorch, tried with 2.13; without it the stacks have to do.
"""

from __future__ import annotations

import _thread
import dis
import faulthandler
import json
import os
import re
import signal
import sys
import threading
import time
from functools import lru_cache
from pathlib import Path
from time import sleep
from types import CodeType, FrameType, TracebackType
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from distrain_nb.worker import functions
from distrain_nb.worker.files.folder import HELD_FILE, LOOK_FILE, WHERE_FILE
from distrain_nb.worker.machine.waits import STACK_SIGNAL
from distrain_nb.worker.rank.debugger import Requests
from distrain_nb.worker.rank.program import variables

HANG_AFTER_VARIABLE, STOP_VARIABLE = "DISTRAIN_HANG_AFTER", "DISTRAIN_STOP_WHEN_HUNG"
HANG_AFTER_S = 30.0

ASKED_EVERY_S = 0.5
NOTED_EVERY_S = 4.0
BETWEEN_SAMPLES_S = 0.05
DEEPEST = 100

# File as the user names it, line, function, position in its code, whether it is the user's own,
# and whether C code may run there, as by a call.
Frame = Tuple[str, int, str, int, bool, bool]
_IN_C = re.compile("CALL|BINARY|INPLACE|COMPARE|FOR_ITER|CONTAINS|IMPORT|ATTR|SUBSCR|EXTEND|FORMAT")

_MOST_PENDING = 20
FOR, WHILE = "for", "while"
_C10D = "torch._C._distributed_c10d"
_teller: Optional[_Teller] = None


def hang_after(program_folder: Path) -> float:
    """Return after how many seconds of silence the ranks of a run are examined; 0 for never."""
    text = setting(program_folder, HANG_AFTER_VARIABLE)
    return float(text) if text else HANG_AFTER_S


def setting(program_folder: Path, variable: str) -> str:
    """Return a variable that the program or its environment sets; empty for none."""
    of_program = variables(program_folder)
    return of_program[variable] if variable in of_program else os.environ.get(variable, "")


def begin(folder: Path, process: int, program_folder: Path) -> None:
    """Start to answer as that process of the run, until the process ends.

    Nothing starts if nobody will ask. A rank that stays between cells answers for its present run.
    """
    global _teller
    longest = hang_after(program_folder)
    if longest > 0:
        try:
            if _teller is None:
                _teller = _Teller(folder, process)
            else:
                _teller.move(folder, process)
        except OSError as error:  # a full disk; no descriptor is free
            print(f"distrain: can't report where this rank is: {error}", file=sys.stderr)


def leave_word(traceback: Optional[TracebackType]) -> None:
    """Record the line at which the program ends itself, such as by `sys.exit()`."""
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
    """Return the innermost line of the program among frames in PyTorch's format."""
    folder = _program_folder()
    for frame in frames:
        shown = _shown(str(frame.get("filename", "")), folder)
        if shown:
            return f"{shown}, line {frame.get('line', 0)}"
    return ""


def _program_folder() -> str:
    return os.environ.get(functions.FOLDER_VARIABLE, "\0") + os.sep


def _shown(file: str, folder: str) -> str:
    """Return a file of the program by the user's name for it; empty for a file of a library."""
    if file.startswith(folder):
        return file[len(folder) :]
    return file if file in functions.labels else ""


class _Teller:
    """Answers from a thread that `threading` doesn't list and that doesn't delay the program's
    end."""

    def __init__(self, folder: Path, process: int) -> None:
        self._lock = _thread.allocate_lock()  # its files are those that it knows of
        self._asked = str(folder / LOOK_FILE)
        self._answers, held = _files(folder, process)
        self._files = {fd: _file_of(fd) for fd in (self._answers, held)}
        self._answered = ""
        self._requests = Requests(folder, process)
        self._ended: Optional[Frame] = None
        self._thread = 0
        if STACK_SIGNAL and signal.getsignal(STACK_SIGNAL) is signal.SIG_DFL:
            faulthandler.register(STACK_SIGNAL, held, all_threads=False)
        _thread.start_new_thread(self._run, ())

    def move(self, folder: Path, process: int) -> None:
        """Answer for another run. The descriptors stay, because `faulthandler` writes to one of
        them."""
        if not self._has_its_files():
            return
        with self._lock:
            self._asked, self._answered, self._ended = str(folder / LOOK_FILE), "", None
            self._requests = Requests(folder, process)
            for descriptor, new in zip([*self._files], _files(folder, process)):
                os.dup2(new, descriptor, inheritable=False)
                os.close(new)
                self._files[descriptor] = _file_of(descriptor)

    def note_end(self, traceback: Optional[TracebackType]) -> None:
        """Record the innermost line of the program in the traceback with which it ended."""
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
                self._requests.look()
            except Exception:  # a full disk or a half imported module: the next attempt may succeed
                pass
            sleep(ASKED_EVERY_S)
        if STACK_SIGNAL:
            faulthandler.unregister(STACK_SIGNAL)

    def _has_its_files(self) -> bool:
        """Return whether its descriptors are still those that it opened.

        Otherwise, don't touch them: the program has closed all descriptors that it doesn't know,
        and may have opened files of its own.
        """
        with self._lock:
            return all(_file_of(fd) == file for fd, file in self._files.items())

    def _request(self) -> Tuple[str, int]:
        try:
            # Nothing that imports, as a codec by its name does: the main thread may hold the lock
            # of an import hook, such as MLflow's, and wait for the lock of imports.
            with open(self._asked, "rb") as file:
                asked, samples = file.read().split()
        except (OSError, ValueError):  # nobody has asked, or the request is being written
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
            taken.append(_stacks(this_thread, bool(asked)))
        word = {"request": asked, "time": time.time(), "ended": self._ended}
        word["thread"] = self._thread
        return {**word, "samples": taken, **(_collectives() if asked else {})}

    def _write(self, word: Dict[str, Any]) -> None:
        data = json.dumps(word, default=str).encode() + b"\n"
        os.pwrite(self._answers, data, 0)
        os.ftruncate(self._answers, len(data))


def _files(folder: Path, process: int) -> List[int]:
    """Open the files to which a rank writes where it is, and which C code's stack goes to."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    return [
        os.open(str(folder / WHERE_FILE.format(process)), flags, 0o600),
        os.open(str(folder / HELD_FILE.format(process)), flags | os.O_APPEND, 0o600),
    ]


def _file_of(descriptor: int) -> Optional[Tuple[int, int]]:
    """Return what identifies a file; None if the descriptor is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _stacks(skipped: int, with_loops: bool) -> List[Dict[str, Any]]:
    """Return the stacks of all threads except one, the innermost frame first.

    For the main thread, also return the kind of its loop, FOR or WHILE.
    """
    names = {ident: thread.name for ident, thread in list(threading._active.items())}  # type: ignore[attr-defined]
    main = threading.main_thread().ident
    stacks = []
    for ident, frame in sys._current_frames().items():
        if ident != skipped:
            frames, loop = _frames(frame, with_loops and ident == main)
            name = names.get(ident, "")
            stacks.append({"name": name, "main": ident == main, "frames": frames, "loop": loop})
    return stacks


def _frames(frame: Optional[FrameType], with_loops: bool) -> Tuple[List[Frame], str]:
    """Return a stack up to the program's outermost frame, and its innermost loop."""
    frames: List[Frame] = []
    loops: List[str] = []
    while frame is not None and len(frames) < DEEPEST:
        frames.append(_frame(frame, frame.f_lineno))
        loops.append(_loop(frame.f_code, frame.f_lasti) if with_loops and not any(loops) else "")
        frame = frame.f_back
    numbers = [number for number, shown in enumerate(frames) if shown[4]]
    count = numbers[-1] + 1 if numbers else len(frames)
    return frames[:count], "".join(loops[:count])


def _loop(code: CodeType, position: int) -> str:
    """Return the kind of the innermost loop around a position of some code; empty for none."""
    around = [(start, kind) for start, end, kind in _loops(code) if start <= position <= end]
    return max(around)[1] if around else ""


@lru_cache(maxsize=256)
def _loops(code: CodeType) -> List[Tuple[int, int, str]]:
    """Return the first and the last position of each loop, where it jumps back, and its kind.

    What waits for a coroutine jumps back too, to `SEND`, and is none.
    """
    loops = []
    operations = {step.offset: step for step in dis.get_instructions(code)}
    for offset, step in operations.items():
        if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
            first = operations.get(step.argval)
            if first is not None and step.argval < offset and first.opname != "SEND":
                loops.append((step.argval, offset, FOR if "FOR" in first.opname else WHILE))
    return loops


def _frame(frame: FrameType, line: Optional[int]) -> Frame:
    code = frame.f_code
    shown = _shown(code.co_filename, _program_folder())
    is_program = bool(shown)
    operation = dis.opname[code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""
    return (
        shown or code.co_filename,
        line or 0,
        code.co_name,
        frame.f_lasti,
        is_program,
        bool(_IN_C.search(operation)),
    )


def _collectives() -> Dict[str, Any]:
    """Return PyTorch's flight recorder: which collectives each group has completed, and which
    not."""
    calls: Dict[str, Any] = {"pending": [], "groups": {}}
    for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json"):
        dump = getattr(sys.modules.get(_C10D), name, None)
        trace = json.loads(dump(True, True)) if dump is not None else {}
        pending = [entry for entry in trace.get("entries", ()) if not entry.get("retired")]
        calls["pending"] += pending[-_MOST_PENDING:]
        calls["groups"].update(trace.get("pg_status", {}))
    return calls
