"""Sessions: ranks that stay between cells, which find there what earlier ones have made."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from distrain_nb.api.keywords import with_options
from distrain_nb.api.preparation import prepare
from distrain_nb.api.source import Source
from distrain_nb.api.submission import submit
from distrain_nb.backends.options import declared
from distrain_nb.backends.sessions import HoldsSessions
from distrain_nb.config import private_home
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.layout.durations import duration, seconds
from distrain_nb.options import JobOptions, read
from distrain_nb.program import Cell, Notebook, working_folder
from distrain_nb.program.progress import report
from distrain_nb.run.session import LOOK_EVERY_S, SessionHandle, session_folders
from distrain_nb.run.summary import plural
from distrain_nb.worker.files.private_folder import private_folder
from distrain_nb.worker.files.session import REQUESTS, SESSIONS_FOLDER, SessionFile
from distrain_nb.worker.files.status import Owner, State

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from distrain_nb.api.keywords import Options
    from distrain_nb.api.preparation import Prepared
    from distrain_nb.api.source import Code
    from distrain_nb.run import Run

IDLE = "2h"
LISTED_S = 86400.0  # after a session's end
_NAME = re.compile(r"[A-Za-z][\w.-]{0,59}")
_UNKEPT = frozenset({"env"})  # its values have a file of their own until the job has them


class Session(SessionHandle):
    """Ranks that stay; any process may hold one. `with` ends it with the block."""

    @with_options
    def run(self, code: Code, **options: Unpack[Options]) -> Run:
        """Run a cell in its ranks and wait for it, as `%%distrain --in NAME` does; with
        `wait=False` return its run at once. Raises what `submit` and `Run.wait` raise."""
        chosen: Options = {"wait": True, **options, "session": self.name}
        return submit(code, **chosen)


def sessions() -> list[Session]:
    """Return the sessions that there are, those that have ended too; the newest first."""
    return [*map(Session, session_folders())]


def session(name: str = "", /, *, idle: str | float = IDLE, **options: Unpack[Options]) -> Session:
    """Return the session of that name; start it where there is none, with options of a layout such
    as `ranks_per_replica=4`.

        with distrain_nb.session("lab", ranks_per_replica=4) as lab:
            lab.run("model = Net()")
            lab.run(train)
            loss = lab["loss"]

    A `with` block ends it. `idle` is how long it stays without a cell, `2h` or seconds. Raises
    OptionError for options that change a living session, DistrainError where it can't start.
    """
    name = name or options.pop("name", None) or ""
    living = {s.name: s for s in sessions() if not s.status.state.final}
    if name in living and not options:
        living[name].check_usable()
        return living[name]
    if name in living:
        raise OptionError(
            f"session {name} is there already: end it with %distrain session stop {name}, or "
            "choose another --name"
        )
    return start_session(name, idle, options)


def start_session(name: str, idle: str | float, options: Options) -> Session:
    """Start a session, and wait until its ranks are ready: elsewhere also in the queue. Raises
    OptionError, DistrainError."""
    name = name or _free_name()
    if not _NAME.fullmatch(name):
        raise OptionError(
            f"invalid --name {name!r} of a session: expected a letter, then letters, digits, "
            "-, _ or ., at most 60"
        )
    limit = _idle_seconds(idle)
    backend = read(_chosen(options)).backend
    if not isinstance(backend, HoldsSessions):
        raise OptionError(
            f"{backend.title} has no sessions: its ranks end with their job; ranks stay on this "
            "machine, --on slurm and --on ray"
        )
    prepared = _prepared(options)
    _forget_old()
    folder = private_folder(private_home() / SESSIONS_FOLDER) / name
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    chosen = _chosen(options)
    line = json.dumps({key: value for key, value in chosen.items() if key not in _UNKEPT})
    kernel = Owner.of(os.getpid())
    file = SessionFile(name, backend.name, line, limit, time.time(), kernel, _held(prepared))
    file.write(folder)
    started = Session(folder)
    report("starting ranks")
    try:
        backend.start_session(prepared.plan, folder)
        _await_ready(started)
    except BaseException:
        with_ranks = (folder / REQUESTS).exists()
        if with_ranks:
            started.stop()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return started


def _held(prepared: Prepared) -> str:
    """Return which machines a session keeps from others, for how long at most and at what price;
    empty where it has none elsewhere."""
    if prepared.backend.here:
        return ""
    layout, cost = prepared.job.layout, prepared.cost
    machines = f"{plural(layout.size, 'replica')} on {prepared.backend.title}"
    at_most = f"for at most {duration(layout.timeout)} (--timeout)" if layout.timeout else ""
    price = f"at {cost.price.per_hour} per hour" if cost and cost.price else ""
    return " ".join(filter(None, (machines, at_most, price)))


def _chosen(options: Options) -> dict[str, object]:
    """Return the options that are given. Raises OptionError for those of a cell."""
    chosen = {key: value for key, value in options.items() if value is not None}
    for key in chosen.keys() & declared(JobOptions).keys() - {"layout"}:
        raise OptionError(
            f"--{key.replace('_', '-')} has no meaning for a session: give it with a cell"
        )
    return chosen


def _forget_old() -> None:
    """Delete the folders of sessions that ended a day ago or earlier."""
    for ended in sessions():
        if ended.status.state.final and time.time() - ended.folder.stat().st_mtime > LISTED_S:
            shutil.rmtree(ended.folder, ignore_errors=True)


def _await_ready(started: Session) -> None:
    while (status := started.status).state is not State.RUNNING:
        if status.state.final:
            raise DistrainError(f"session {started.name} could not start: {status.error}")
        report(": ".join(filter(None, (status.phase, status.note))) or "starting ranks")
        time.sleep(LOOK_EVERY_S)


def _prepared(options: Options) -> Prepared:
    """Return the plan of ranks that have the frameworks which the notebook uses."""
    text = "\n".join(f"import {name}" for name in _frameworks())
    source: Source = Source(Cell("session", text or "pass"), Notebook({}, (), working_folder()))
    prepared = prepare(source, **options)
    prepared.refuse()
    return prepared


def _frameworks() -> Iterator[str]:
    """Yield the frameworks that the notebook has imported, or else PyTorch if it is installed."""
    loaded = [name for name in ("torch", "tensorflow") if name in sys.modules]
    if loaded:
        yield from loaded
    elif importlib.util.find_spec("torch") is not None:
        yield "torch"


def _idle_seconds(idle: str | float) -> float:
    try:
        limit = float(seconds(idle)) if isinstance(idle, str) else float(idle)
    except ValueError:
        limit = 0.0
    if not limit > 0:
        raise OptionError(f"invalid --idle {idle!r}: expected a duration such as 2h or 30m")
    return limit


def _free_name() -> str:
    names = {session.name for session in sessions()}
    return next(f"session-{n}" for n in range(1, len(names) + 2) if f"session-{n}" not in names)
