"""What a program does when its run is stopped: `on_stop` saves at once, `stopping` at a step on
which all ranks agree.

A stop reaches a rank as SIGTERM. Python calls a handler between two bytecodes of the main thread,
so not while that waits in C code for other ranks. Therefore a rank that has saved goes on with its
program, and the others come out of what they wait for; their supervisor ends all when all have
saved. For the same reason `stopping` names a step that none has passed.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Tuple, TypeVar

from distrain_nb.worker.files.coded_line import AGREED, NOT_SAVED, SAVED, SAVING, CodedLine
from distrain_nb.worker.files.folder import FAILURE_FILE, PROGRAM_FOLDER, SAVED_FILE
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.marks import Stop
from distrain_nb.worker.rank import ending, tracebacks
from distrain_nb.worker.rank.agreement import Agreement, agreement, are_all_here, torch_store

STOPPED = 128 + signal.SIGTERM  # the exit status of a rank that has saved
LOOK_EVERY_S = 0.02
_OF_SAVING = (SAVING, SAVED, NOT_SAVED, AGREED)
_OF_OPTIMIZERS, _OF_SCHEDULERS = "torch.optim.", "torch.optim.lr_scheduler"

Save = TypeVar("Save", bound=Callable[[], object])


class _Here(NamedTuple):
    """The rank that this process is: `pid` tells it from what it forks."""

    folder: Path
    process: int
    pid: int


class _State:
    def __init__(self) -> None:
        self.mark = Stop()
        self.saves: List[Callable[[], object]] = []
        self.asked = self.listens = self.began = False
        self.agreement: Optional[Agreement] = None
        self.theirs: Any = signal.SIG_DFL  # the program's own handler
        self.set_handler, self.get_handler = signal.signal, signal.getsignal


_here: Optional[_Here] = None
_state = _State()


def begin(folder: Path, process: int) -> None:
    """Note which rank this process is from now on."""
    global _here
    _here = _Here(folder, process, os.getpid())


def on_stop(save: Save) -> Save:
    """Have `save()` called when the run is stopped, before its processes end.

    It is called once on each rank that has asked for it, in the main thread, between two bytecodes:
    as soon as Python has control, without waiting for the step to end, but not inside a step of a
    PyTorch optimizer. Ranks don't wait for each other, so `save` must not communicate: each saves
    what it has, or rank 0 alone does, and the program goes on until all ranks have saved. Call it
    on every rank. Where saving needs all ranks at the same step, use `stopping` instead.

    A program has 30 seconds for it, or those of `--signal-before`; a place may give less. Outside a
    run nothing happens. Gives `save` back, so that it can be a decorator.

    Raises TypeError for what can't be called, RuntimeError in a thread that isn't the main one.
    """
    if not callable(save):
        raise TypeError(f"on_stop takes a function without arguments, not {save!r:.60}")
    if _is_here():
        _listen("on_stop")
        if save not in _state.saves:
            _state.saves.append(save)
        _note(saves=True)
    return save


def stopping() -> bool:
    """Return whether the run is being stopped, with the same answer on all ranks: call it once a
    step, on each of them.

    When it is true, the program has time to save together and should then end by itself:
    `if stopping(): save(); break`. The first rank that hears of the stop names the step after the
    furthest that any rank has reached, and all go on to that one. Ranks of one machine agree by a
    file; those of several by the store of `torch.distributed`, whose default group must exist.
    Outside a run it is false.

    Raises RuntimeError in a thread that isn't the main one, and where ranks can't agree.
    """
    if not _is_here():
        return False
    if not _state.mark.ends_itself:
        _listen("stopping")
        assert _here is not None
        _state.agreement = agreement(_here.folder, _here.process)
        _note(ends_itself=True)
    if _state.agreement is None or _state.mark.agreed:
        return _state.asked
    agreed = _state.agreement.next_step(_state.asked)
    if agreed:
        step = _state.agreement.step
        _note(agreed=step)
        text = f"stopped after step {step}, as stopping() has told all ranks"
        _say(CodedLine(AGREED, text, {"step": str(step)}))
    return agreed


def _is_here() -> bool:
    return _here is not None and _here.pid == os.getpid()


def _note(**changes: Any) -> None:
    """Leave word for the supervisor, as far as the disk has room."""
    assert _here is not None
    _state.mark = replace(_state.mark, **changes)
    try:
        _state.mark.write(_here.folder, _here.process)
    except OSError as error:
        _say(f"distrain: can't note how far it has come: {error}")


def _say(line: object) -> None:
    """Write a line past `sys.stderr`, which the handler may have interrupted."""
    os.write(2, f"{line}\n".encode("utf-8", "replace"))


class Saving(NamedTuple):
    """What has become of saving in a run that was stopped, in words; `is_complete` where all ranks
    that were asked have saved."""

    words: str = ""
    is_complete: bool = False


def saving_in(lines: Iterable[Tuple[str, CodedLine]]) -> Saving:
    """Return what has become of saving by what processes state in their log, each with its
    process's name; empty where none has been asked."""
    last = {label: stated for label, stated in lines if stated.code in _OF_SAVING}
    unfinished = [label for label, stated in last.items() if stated.code == SAVING]
    failed = [label for label, stated in last.items() if stated.code == NOT_SAVED]
    if failed:
        return Saving(f"stopped: {', '.join(sorted(failed))} could not save")
    if unfinished:
        return Saving(f"stopped: {', '.join(sorted(unfinished))} did not finish saving")
    saved = [stated.facts.get("seconds", "") for stated in last.values() if stated.code == SAVED]
    if saved:
        # What is no number a program has printed, not we.
        seconds = [float(text) for text in saved if re.fullmatch(r"\d{1,9}(\.\d+)?", text)]
        return Saving(f"stopped after saving, in {max(seconds, default=0.0):.1f} s", True)
    agreed = next((stated.text for stated in last.values()), "")
    return Saving(agreed, is_complete=bool(agreed))


# -- the signal -----------------------------------------------------------------------------------


def _listen(verb: str) -> None:
    """Handle SIGTERM from now on, and show the program its own handler, whenever it sets one."""
    if _state.listens:
        return
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(f"{verb} has to be called in the main thread first")
    _state.theirs = signal.getsignal(signal.SIGTERM)
    _state.listens = True
    _state.set_handler(signal.SIGTERM, _stop)
    signal.signal, signal.getsignal = _set_theirs, _get_theirs  # type: ignore[assignment]


def _set_theirs(number: int, handler: Any) -> Any:
    if number != signal.SIGTERM or not _is_here():
        return _state.set_handler(number, handler)
    if threading.current_thread() is not threading.main_thread():
        return _state.set_handler(number, handler)  # which raises
    before, _state.theirs = _state.theirs, handler
    return before


def _get_theirs(number: int) -> Any:
    if number != signal.SIGTERM or not _is_here():
        return _state.get_handler(number)
    return _state.theirs


def _stop(number: int, frame: Any) -> None:
    """Save when asked for the first time; end when all ranks have saved."""
    if not _is_here():  # a process that the rank has forked
        if callable(_state.theirs):
            _state.theirs(number, frame)
        else:
            _state.set_handler(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        return
    assert _here is not None
    has_failed = next(_here.folder.glob(FAILURE_FILE.format("*")), None) is not None
    is_over = (_here.folder / SAVED_FILE).exists()
    if is_over or (has_failed and not callable(_state.theirs)):
        ending.leave(STOPPED, _here.folder / PROGRAM_FOLDER)
    _state.asked = not has_failed
    if _state.saves and _state.asked and not _state.began:
        _state.began = True
        _note(ends_itself=_state.mark.ends_itself or callable(_state.theirs))
        if not _wait_for_optimizer(frame):
            _save()
    if callable(_state.theirs):
        _state.theirs(number, frame)


def _wait_for_optimizer(frame: Any) -> bool:
    """Have `_save` called at the end of the optimizer's step that the signal has interrupted;
    return whether it has interrupted one."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if (
            frame.f_code.co_name == "step"
            and module.startswith(_OF_OPTIMIZERS)
            and not module.startswith(_OF_SCHEDULERS)
        ):
            break
        frame = frame.f_back
    optimizers: Any = sys.modules.get("torch.optim.optimizer")
    register = getattr(optimizers, "register_optimizer_step_post_hook", None)
    if frame is None or register is None:
        return False

    def save_once(*_: Any) -> None:
        hook.remove()
        _save()

    hook = register(save_once)
    return True


def _save() -> None:
    began = time.time()
    _say(CodedLine(SAVING, "the run is being stopped: saving"))
    _note(began=began)
    try:
        for save in _state.saves:
            save()
    except SystemExit:
        _note(saved=time.time())
        raise
    except BaseException as error:
        _note(error=tracebacks.headline(error))
        headline = CodedLine(NOT_SAVED, "could not save:")
        _say(f"{headline}\n{tracebacks.format_exception(error).rstrip()}")
    else:
        seconds = f"{time.time() - began:.1f}"
        _say(CodedLine(SAVED, f"saved in {seconds} s", {"seconds": seconds}))
        others = _others()
        _note(saved=time.time(), waits=others is not None)
        if others is not None:
            threading.Thread(target=_await_others, args=(others,), daemon=True).start()


def _others() -> Any:
    """Return the store by which ranks of several machines say that they have saved; None where
    there is none, or all are here."""
    assert _here is not None
    launch = Launch.read(_here.folder)
    return None if are_all_here(launch) else torch_store()


def _await_others(store: Any) -> None:
    try:
        saved = store.add("distrain/saved", 1)
        while saved < int(os.environ["WORLD_SIZE"]):
            time.sleep(LOOK_EVERY_S)
            saved = store.add("distrain/saved", 0)
    except Exception as error:  # who keeps the store has ended
        _say(f"distrain: ranks of other machines don't answer any more: {error}")
    _note(waits=False)
