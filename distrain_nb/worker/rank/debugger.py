"""The debugger at a rank's prompt: IPython's where IPython is installed, else pdb.

`pdb.Pdb` is changed itself, on which IPython's, `ipdb`'s and PyTorch's build: it asks whoever sits
at the notebook, shows no frames of ours, and knows `ranks`. One that has a stream of its own is
left alone. IPython's debugger wants a shell; a whole one would have libraries take the rank for a
notebook from then on, so it gets the little that it uses of one.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, Callable, Iterator, List, Optional, Tuple

from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.failure import Failure
from distrain_nb.worker.functions import labels
from distrain_nb.worker.rank import inquiry, prompt

DEBUG_VARIABLE = "DISTRAIN_DEBUG"
HELD_S = 1800.0  # how long a failed rank waits for somebody to look at it
# Ignored by default, and by Python: so one that comes late does no harm.
STOP_SIGNAL = signal.SIGURG
_IN_C_AFTER_S = 1.0
_TURN_S = 0.1
_OURS = "distrain_nb.worker.*"

# What quitting does where the main thread is in C code; a rank that stays leaves that otherwise.
end_in_c: Callable[[], None] = functools.partial(os._exit, 1)
_stops: List[None] = []  # one that nobody has taken yet; `pop` is one step


def begin() -> None:
    """Let the main thread be stopped from now on."""
    signal.signal(STOP_SIGNAL, _stop)


def nobody(asks: str) -> str:
    """Return why a debugger can't be used, and what to do instead."""
    return (
        f"{asks} can't ask anyone in a run: print what you want to know, "
        "or run the cell in the notebook without %%distrain"
    )


# -- changes to debuggers -------------------------------------------------------------------------


def change_pdb(module: Any) -> None:
    """Change pdb as this module says."""
    debugger = module.Pdb
    debugger.__init__ = _printing_at_its_prompt(debugger.__init__)
    debugger.set_trace = _with_somebody(debugger.set_trace)
    debugger.interaction = _asking(debugger.interaction)
    debugger.get_stack = _without_ours(debugger.get_stack)
    debugger.canonic = _with_cells(debugger.canonic)
    debugger.do_ranks = _ranks
    module.set_trace = set_trace


def change_ipython(module: Any) -> None:
    """Give IPython's debugger what it uses of a shell, where there is no shell."""
    ask = module.get_ipython
    module.get_ipython = lambda: ask() or _shell(module)


def change_terminal(module: Any) -> None:
    """Have the debugger of terminals, which `ipdb` takes, ask as IPython's other one does."""
    import pdb

    module.TerminalPdb.cmdloop = pdb.Pdb.cmdloop
    module.TerminalPdb.pt_init = lambda *_, **__: None


def _is_ours(debugger: Any) -> bool:
    """Return whether it reads what would be a terminal, and so has to ask the notebook."""
    return debugger.stdin in (sys.stdin, sys.__stdin__)


def _printing_at_its_prompt(method: Any) -> Any:
    """Return an `__init__` whose debugger prints there also before it asks, as `--Return--`."""

    @functools.wraps(method)
    def initialize(self: Any, *arguments: Any, **options: Any) -> None:
        method(self, *arguments, **options)
        if _is_ours(self) and self.stdout is sys.stdout and prompt.is_answered():
            self.stdout = prompt.stream()

    return initialize


def _with_somebody(method: Any) -> Any:
    @functools.wraps(method)
    def set_trace(self: Any, frame: Any = None, *arguments: Any, **options: Any) -> Any:
        if _is_ours(self):
            require("pdb.set_trace()")
        return method(self, frame or sys._getframe().f_back, *arguments, **options)

    return set_trace


def _asking(method: Any) -> Any:
    @functools.wraps(method)
    def interaction(self: Any, *arguments: Any, **options: Any) -> Any:
        if not _is_ours(self):
            return method(self, *arguments, **options)
        require("pdb")
        with _at_the_notebook(self):
            return method(self, *arguments, **options)

    return interaction


@contextmanager
def _at_the_notebook(debugger: Any) -> Iterator[None]:
    before = debugger.use_rawinput, debugger.completekey
    with prompt.conversation() as dialogue:
        debugger.stdout, debugger.use_rawinput, debugger.completekey = dialogue, 1, None
        debugger.nosigint = True  # an interrupt is the notebook's, which stops the run
        debugger.skip = {*(debugger.skip or ()), _OURS}
        inquiry.debuggers.append(debugger)
        try:
            yield
        finally:
            inquiry.debuggers.remove(debugger)
            debugger.use_rawinput, debugger.completekey = before
            if debugger.quitting:
                _note_quit()


def _note_quit() -> None:
    here = prompt.place()
    if here is not None:
        prompts.note_quit(here.folder)


def _without_ours(method: Any) -> Any:
    @functools.wraps(method)
    def get_stack(self: Any, *arguments: Any) -> Tuple[List[Tuple[FrameType, int]], int]:
        stack, index = method(self, *arguments)
        files = [frame.f_code.co_filename for frame, _ in stack]
        first = next((number for number, file in enumerate(files) if file in labels), 0)
        first = first if first <= index else 0
        return stack[first:], index - first

    return get_stack


def _with_cells(method: Any) -> Any:
    @functools.wraps(method)
    def canonic(self: Any, file: str) -> str:
        """Leave a cell's name alone, which is no path."""
        return file if file in labels else str(method(self, file))

    return canonic


def _ranks(self: Any, argument: str) -> None:
    """ranks [p|pp] expression

    Print the value of the expression in each rank. Other ranks take it where their program is, or
    from the frame that was chosen at their prompt.
    """
    style, _, text = argument.strip().partition(" ")
    if style not in ("p", "pp"):
        style, text = "p", argument.strip()
    here = prompt.place()
    if not text.strip() or here is None:
        self.error("expected an expression, as in: ranks p loss")
        return
    try:
        names = self.curframe.f_globals, self.curframe_locals
        value = inquiry.evaluate(text, style, names)
    except BaseException as error:
        value = f"*** {type(error).__name__}: {error}"
    self.message(f"here: {value}")
    for label, value in inquiry.ask_ranks(here.folder, here.process, text, style):
        self.message(f"{label}: {value}")


def _shell(module: Any) -> Any:
    """Return what IPython's debugger uses of a shell: no colours, no editor, no magics."""
    themes = getattr(getattr(module, "PyColorize", None), "theme_table", {})

    def no_magic(name: str) -> Any:
        raise ValueError(f"%{name} needs a whole IPython, which a rank is not")

    return SimpleNamespace(
        colors="nocolor" if "nocolor" in themes else "NoColor",
        hooks=SimpleNamespace(synchronize_with_editor=lambda *_: None),
        get_exception_only=lambda *_: traceback.format_exc(limit=0),
        find_line_magic=no_magic,
        debugger_history=None,
        debugger_history_file=None,
    )


# -- ways in --------------------------------------------------------------------------------------


def require(asks: str) -> None:
    """Raise RuntimeError where nobody can answer."""
    if not prompt.is_open() and not prompt.is_answered():
        raise RuntimeError(nobody(asks))


def debugger() -> Any:
    """Make one. It doesn't read `.pdbrc`, which is another user's on another machine."""
    if find_spec("IPython") is not None:
        try:
            from IPython.core.debugger import Pdb

            return Pdb(readrc=False)
        except Exception as error:  # a version that needs more of a shell
            print(f"distrain: IPython's debugger can't be used: {error}", file=sys.stderr)
    import pdb

    return pdb.Pdb(readrc=False)


def set_trace(*_: Any, header: Optional[str] = None, **__: Any) -> None:
    """Stand for `pdb.set_trace()`."""
    require("pdb.set_trace()")
    stop_in(sys._getframe().f_back, header)


def stop_in(frame: Optional[FrameType], header: Optional[str]) -> None:
    """Have the program ask at the next line of that frame, after a `header`."""
    import pdb  # noqa: F401  # so that it is changed before IPython's builds on it

    at = debugger()
    if header is not None:
        prompt.stream().write(f"{header}\n")
    at.set_trace(frame)


def post_mortem(error: BaseException, report: str) -> None:
    """Ask about an error where the program has failed, if the run has --debug and somebody may
    answer. Return when they have left it."""
    answered = prompt.is_answered()
    if not os.environ.get(DEBUG_VARIABLE) or answered is False or error.__traceback__ is None:
        return
    import bdb

    if isinstance(error, bdb.BdbQuit) or not isinstance(error, Exception):
        return
    with prompt.conversation() as dialogue:
        if not answered and not _somebody_comes():
            return
        dialogue.write(report)
        at = debugger()
        at.reset()
        at.interaction(None, error.__traceback__)


def _somebody_comes() -> bool:
    """Keep this rank, with its frames, until somebody looks at it; return whether they do."""
    print(
        f"distrain: this rank waits {HELD_S / 60:.0f} min for %distrain debug, as --debug says",
        file=sys.stderr,
        flush=True,
    )
    end = time.monotonic() + HELD_S
    while not prompt.is_answered():
        if time.monotonic() > end:
            return False
        time.sleep(_TURN_S)
    return True


# -- stopping where it is -------------------------------------------------------------------------


def stop_main() -> None:
    """Have the main thread ask at the line where it is. Called by another thread.

    C code may keep it, as a collective does that waits. Then its frames are looked at from a third
    thread: names can be read, but the program can't step.
    """
    _stops.append(None)
    main = threading.main_thread()
    signal.pthread_kill(main.ident or 0, STOP_SIGNAL)
    end = time.monotonic() + _IN_C_AFTER_S
    while _stops and time.monotonic() < end:
        time.sleep(_TURN_S)
    if _take():
        threading.Thread(target=_look_from_outside, name="distrain debug", daemon=True).start()


def _take() -> bool:
    try:
        _stops.pop()
    except IndexError:
        return False
    return True


def _stop(_: int, interrupted: Optional[FrameType]) -> None:
    """Ask in the main thread, which the signal has interrupted; then trace it, if it steps."""
    here = prompt.place()
    frame = inquiry.frame_of_program(interrupted)
    if here is None or frame is None or not _take():
        return
    import bdb

    at = debugger()
    at.reset()
    outer: Optional[FrameType] = frame
    while outer is not None:  # as `Bdb.set_trace` does, which would wait for the next line
        outer.f_trace = at.trace_dispatch
        at.botframe = outer
        outer = outer.f_back
    at.set_step()
    with prompt.conversation() as dialogue:
        dialogue.when_left = "c"  # whoever only looks must not end the run by going
        at.interaction(frame, None)
    if at.quitting:
        raise bdb.BdbQuit
    if at.stoplineno != -1 or at.breaks:
        sys.settrace(at.trace_dispatch)


def _look_from_outside() -> None:
    frame, here = inquiry.main_frame(), prompt.place()
    if frame is None or here is None:
        return
    at = debugger()
    at.reset()
    with prompt.conversation() as dialogue:
        dialogue.when_left = "c"
        dialogue.write("The rank is in C code: its names can be read, but it can't step.\n")
        at.interaction(frame, None)
    if at.quitting:  # the main thread may never come back from where it is
        where = f"{frame.f_code.co_filename}, line {frame.f_lineno}"
        Failure(here.process, time.time(), f"quit at its prompt, in {where}", "").write(here.folder)
        end_in_c()


class Requests:
    """Looks for requests to one process of a run, and sees to each once."""

    def __init__(self, folder: Path, process: int) -> None:
        self._folder = folder
        self._process = process
        last = prompts.request(folder)  # of an earlier attempt
        self._seen = last.name if last else ""

    def look(self) -> None:
        """See to a new request; called every half a second by a thread beside the program."""
        request = prompts.request(self._folder)
        if request is None or request.name == self._seen:
            return
        self._seen = request.name
        if self._process not in request.targets:
            return
        if request.kind == prompts.STOP:
            stop_main()
        elif request.kind == prompts.EVALUATE:
            inquiry.answer(self._folder, self._process, request)
