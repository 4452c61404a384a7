"""The queries of a page, as values. Whatever is wrong with one raises OptionError."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.run.log.index import Filter

if TYPE_CHECKING:
    from distrain_nb.worker.files.status import Process

Query = Mapping[str, str]
STREAMS = ("o", "e")
FLAGS = {"": False, "0": False, "1": True}


def log_filter(query: Query, processes: Collection[Process]) -> Filter:
    """Read `process=0,2`, `role=workers`, `stream=e`: lines have to pass all of them."""
    chosen = _numbers(query["process"]) if query.get("process") else None
    if query.get("role"):
        of_roles = _of_roles(query["role"], processes)
        chosen = of_roles if chosen is None else chosen & of_roles
    stream = query.get("stream", "")
    if stream and stream not in STREAMS:
        raise OptionError(f"invalid stream {stream!r}: expected one of {', '.join(STREAMS)}")
    return Filter(chosen, stream)


def number(
    query: Query, name: str, default: int, low: int | None = None, high: int = (1 << 63) - 1
) -> int:
    """Return a whole number of the query, between `low` and `high`."""
    text = query.get(name) or str(default)
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"invalid {name} {text!r}: expected a whole number") from None
    if value > high or (low is not None and value < low):
        span = f"{low} to {high}" if low is not None else f"at most {high}"
        raise OptionError(f"invalid {name} {value}: expected a whole number, {span}")
    return value


def share(query: Query, name: str) -> float:
    """Return a number of the query from 0 to less than 1; 0 where it is not there."""
    text = query.get(name) or "0"
    try:
        value = float(text)
    except ValueError:
        raise OptionError(f"invalid {name} {text!r}: expected a number") from None
    if not 0 <= value < 1:
        raise OptionError(f"invalid {name} {text}: expected a number from 0 to less than 1")
    return value


def flag(query: Query, name: str) -> bool:
    text = query.get(name, "")
    if text not in FLAGS:
        raise OptionError(f"invalid {name} {text!r}: expected 1 or 0")
    return FLAGS[text]


def _numbers(text: str) -> frozenset[int]:
    parts = text.split(",")
    error = next((part for part in parts if not (part.isascii() and part.isdigit())), None)
    if error is not None:
        raise OptionError(f"invalid process {error!r}: expected numbers of processes, as in 0,2")
    return frozenset(map(int, parts))


def _of_roles(text: str, processes: Collection[Process]) -> frozenset[int]:
    roles = text.split(",")
    all_roles = dict.fromkeys(process.role for process in processes)
    error = next((role for role in roles if role not in all_roles), None)
    if error is not None:
        raise OptionError(f"invalid role {error!r}: there are {', '.join(all_roles) or 'none yet'}")
    return frozenset(process.index for process in processes if process.role in roles)
