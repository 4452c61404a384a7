"""Timeouts of collectives, whose clock stands still while somebody sits at a rank's prompt.

PyTorch counts a collective's time from its start, and that clock can't be stopped. So where
somebody can be asked, groups are made with a timeout that never comes, and a thread here counts
instead, by PyTorch's flight recorder (a private call, tried with 2.13; without it groups are left
alone). When the time is over it shuts down the group's sockets: the collective then fails with an
error on every rank, as it does when it times out. `ProcessGroupGloo.abort` doesn't free the thread
that waits.
"""

from __future__ import annotations

import functools
import json
import sys
import threading
import time
from datetime import timedelta
from typing import Any, Dict, List, NamedTuple

from distrain_nb.worker.files import prompts
from distrain_nb.worker.machine import sockets
from distrain_nb.worker.rank import prompt
from distrain_nb.worker.rank.on_import import on_import

_C10D = "torch.distributed.distributed_c10d"
_DUMP = "_dump_fr_trace_json"
_NEVER = timedelta(days=20)  # `poll` counts milliseconds in 31 bits
_SHORTEST_TURN_S, _LONGEST_TURN_S = 0.1, 5.0
_groups: Dict[str, _Group] = {}  # by the name that PyTorch gives them
_reasons: List[str] = []


class _Group(NamedTuple):
    """A process group: its timeout in seconds, and the sockets that it has opened."""

    timeout: float
    sockets: Dict[int, str]


def change() -> None:
    """Have groups that are made from now on count so."""
    on_import({_C10D: _change})


def reason() -> str:
    """Return which collective has timed out here; empty for none."""
    return _reasons[0] if _reasons else ""


def _change(module: Any) -> None:
    make, set_timeout = module._new_process_group_helper, module._set_pg_timeout

    @functools.wraps(make)
    def _new_process_group_helper(*arguments: Any, **named: Any) -> Any:
        timeout = named.get("timeout")
        if timeout is None or not prompt.is_answered() or _recorder() is None:
            return make(*arguments, **named)
        before = sockets.own_sockets()
        result = make(*arguments, **{**named, "timeout": _NEVER})
        _count(result[0], timeout, sockets.opened_since(before))
        return result

    @functools.wraps(set_timeout)
    def _set_pg_timeout(timeout: Any, group: Any = None) -> None:
        name = getattr(group or module._get_default_group(), "group_name", "")
        if name in _groups:
            _groups[name] = _groups[name]._replace(timeout=timeout.total_seconds())
        else:
            set_timeout(timeout, group)

    module._new_process_group_helper = _new_process_group_helper
    module._set_pg_timeout = _set_pg_timeout


def _count(group: Any, timeout: timedelta, sockets: Dict[int, str]) -> None:
    name = getattr(group, "group_name", "")
    if not name:  # this rank is not in it
        return
    begins = not _groups
    _groups[name] = _Group(timeout.total_seconds(), sockets)
    if begins:
        threading.Thread(target=_watch, name="distrain timeouts", daemon=True).start()


def _recorder() -> Any:
    return getattr(sys.modules.get("torch._C._distributed_c10d"), _DUMP, None)


def _watch() -> None:
    waited: Dict[Any, float] = {}  # by collective, in seconds without prompts
    looked_at = time.monotonic()
    while True:
        shortest = min(group.timeout for group in list(_groups.values()))
        time.sleep(min(_LONGEST_TURN_S, max(_SHORTEST_TURN_S, shortest / 20)))
        now, before = time.monotonic(), looked_at
        looked_at = now
        here = prompt.place()
        if here is None or prompts.stands_still(here.folder):
            continue
        entries = json.loads(_recorder()(True, True)).get("entries", ())
        pending = {_key(entry): entry for entry in entries if not entry.get("retired")}
        waited = {key: waited.get(key, 0.0) + now - before for key in pending}
        for key, seconds in waited.items():
            name = str(pending[key]["process_group"][0])
            if name in _groups and seconds > _groups[name].timeout:
                _expire(name, str(pending[key].get("profiling_name", "a collective")))


def _key(entry: Dict[str, Any]) -> Any:
    return entry.get("pg_id"), entry.get("record_id"), entry.get("time_created_ns")


def _expire(name: str, collective: str) -> None:
    """Free who waits in a collective of the group, on all ranks."""
    group = _groups[name]
    _groups[name] = group._replace(timeout=float("inf"))
    _reasons.append(f"{collective} has waited {group.timeout:g} s, its group's timeout")
    sockets.shut_down(group.sockets)
    module: Any = sys.modules.get(_C10D)
    if "nccl" in str([backend for backend, *_ in module._world.pg_map.values()]):
        module._abort_process_group()
