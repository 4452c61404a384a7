"""`%distrain session`: starts and ends sessions, and lists them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distrain_nb.api.sessions import IDLE, Session, sessions, start_session
from distrain_nb.backends.options import declared
from distrain_nb.layout.durations import duration
from distrain_nb.layout.option import Option
from distrain_nb.layout.options import OPTIONS, SPOT
from distrain_nb.magics.cell import show_long_work
from distrain_nb.magics.command_line import (
    HelpAsked,
    Parser,
    add_option,
    backends_of,
    by_backends,
)
from distrain_nb.magics.help import show
from distrain_nb.magics.help_page import page_of
from distrain_nb.options import JobOptions
from distrain_nb.run.session import find_session
from distrain_nb.run.summary import plural

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.ui.sessions import SessionsTable

ABOUT = {
    "start": "start ranks that stay until the session is stopped, or idle for too long",
    "stop": "end a session, its ranks and the cell that is at work in them",
    "restart": "put new ranks in the place of those of a session, without their names",
    "attach": "make a session this notebook's",
    "list": "list the sessions",
}


def session_parser(backends: Sequence[AnyBackend] = ()) -> Parser:
    """Return the parser of `%distrain session`, with the options of the backends."""
    parser = Parser(
        prog="%distrain session",
        description="Manage sessions: ranks that stay between cells. Without a verb, list them.",
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for name, about in ABOUT.items():
        verb = verbs.add_parser(name, help=about, description=about, allow_abbrev=False)
        if name == "start":
            _add_start(verb, backends)
        elif name != "list":
            verb.add_argument(
                "session", nargs="?", default="", metavar="NAME", help="default: the only one"
            )
        if name == "restart":
            verb.add_argument("--rank", type=int, metavar="N", help="only this rank")
    return parser


def _add_start(verb: argparse.ArgumentParser, backends: Sequence[AnyBackend]) -> None:
    verb.add_argument("--name", default="", metavar="NAME", help="name of the session")
    verb.add_argument(
        "--idle", default=IDLE, metavar="DURATION", help=f"end without a cell (default: {IDLE})"
    )
    group = verb.add_argument_group("its ranks")
    offered: list[Option] = [*OPTIONS, SPOT]
    for option in offered:
        add_option(group, option)
    group.add_argument("--layout", metavar="NAME|FILE", help="saved layout to start from")
    common = declared(JobOptions)
    for title, options in by_backends(backends).items():
        group = verb.add_argument_group(f"on {title}")
        further = [option for option in options if option.field not in common]
        for option in further:
            add_option(group, option)
        offered += further
    verb.set_defaults(**{option.field: argparse.SUPPRESS for option in offered})


def _backends_of(words: Sequence[str]) -> list[AnyBackend]:
    """Return the backends whose options are on the line; `--idle` is of any session."""
    return backends_of([word for word in words if not word.startswith("--idle")])


def run_session(words: Sequence[str]) -> Session | SessionsTable | None:
    """Run `%distrain session` and return its value. Raises OptionError, DistrainError."""
    try:
        options = session_parser(_backends_of(words)).read([*words])
    except HelpAsked as request:
        show(page_of(request.parser))
        return None
    return _VERBS[options.verb or "list"](vars(options))


def _start(options: Mapping[str, Any]) -> Session:
    layout = {name: value for name, value in options.items() if value is not argparse.SUPPRESS}
    name, idle = layout.pop("name"), layout.pop("idle")
    layout.pop("verb")
    with show_long_work():
        started = start_session(name, idle, layout)  # type: ignore[arg-type]
    limit = duration(int(started.idle[1]))
    ranks, are = plural(len(started.ranks), "rank"), "is" if len(started.ranks) == 1 else "are"
    holds = started.file.holds
    print(
        f"session {started.name}: {ranks} {are} ready. %%distrain --in "
        f"{started.name} runs a cell in them. It ends after {limit} without a cell (--idle), or "
        f"with %distrain session stop {started.name}"
        + (f". Until then it holds {holds}" if holds else "")
    )
    return started


def _stop(options: Mapping[str, Any]) -> None:
    session = find_session(options["session"])
    session.stop()
    print(f"session {session.name} has ended")


def _restart(options: Mapping[str, Any]) -> None:
    session = find_session(options["session"])
    rank = options["rank"]
    session.restart("all" if rank is None else rank)
    which = "all ranks are" if rank is None else f"rank {rank} is"
    print(f"session {session.name}: {which} new, without names")


def _attach(options: Mapping[str, Any]) -> Session:
    session = find_session(options["session"])
    session.attach()
    print(f"session {session.name} is this notebook's")
    return Session(session.folder)


def _list(_: Mapping[str, Any]) -> SessionsTable:
    from distrain_nb.ui.sessions import sessions_table

    return sessions_table(sessions())


_VERBS: dict[str, Callable[[Mapping[str, Any]], Session | SessionsTable | None]] = {
    "start": _start,
    "stop": _stop,
    "restart": _restart,
    "attach": _attach,
    "list": _list,
}
