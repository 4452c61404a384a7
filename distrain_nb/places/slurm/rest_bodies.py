"""Bodies of requests to slurmrestd and of its answers, by the version of its API."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from distrain_nb.errors import OptionError, shown
from distrain_nb.places.slurm.forms import clock, megabytes, seconds
from distrain_nb.places.slurm.squeue import QueuedJob

if TYPE_CHECKING:
    from distrain_nb.types import JsonObject

    Reply: TypeAlias = Mapping[str, Any]

# Versions of the API, v0.0.N, whose requests were tried or checked against their descriptions.
OLD, NEWEST = 38, 46
VERSIONS = (OLD, 42, 43, 44, 45, NEWEST)
_VERSION = re.compile(r"/slurm/v0\.0\.(\d+)/")
# Names of a state that `squeue` shows before others.
_FIRST = (
    "COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD",
    "SPECIAL_EXIT", "STOPPED", "REVOKED", "SIGNALING",
)  # fmt: skip
_KINDS = frozenset(["cloud", "dynamic_norm", "external"])  # of nodes, among their states
# The field of a job for an option of sbatch.
_TEXTS = {
    "job-name": "name", "partition": "partition", "account": "account", "qos": "qos",
    "reservation": "reservation", "constraint": "constraints", "output": "standard_output",
    "chdir": "current_working_directory", "comment": "comment", "dependency": "dependency",
    "licenses": "licenses", "wckey": "wckey", "prefer": "prefer", "mcs-label": "mcs_label",
}  # fmt: skip
_NUMBERS = {
    "ntasks-per-node": "tasks_per_node", "cpus-per-task": "cpus_per_task", "nice": "nice",
}  # fmt: skip
_SWITCHES = ("hold", "contiguous")
# What the layout and the other options don't ask for.
_MORE = (
    "comment", "contiguous", "dependency", "hold", "licenses", "mcs-label", "nice", "prefer",
    "wckey",
)  # fmt: skip


def newest(paths: Iterable[str]) -> int:
    """Return the newest version of the API that both a server and this module know.

    Raises ValueError.
    """
    served = {int(match[1]) for path in paths if (match := _VERSION.match(path))}
    if not served.intersection(VERSIONS):
        there, expected = (
            ", ".join(f"v0.0.{number}" for number in sorted(numbers))
            for numbers in (served, VERSIONS)
        )
        raise ValueError(f"it has versions of the API: {there or 'none'}; expected {expected}")
    return max(served.intersection(VERSIONS))


def more_options(texts: Iterable[str]) -> dict[str, str]:
    """Return options in the form of `--sbatch`, `--nice=10`, by name."""
    options = {}
    for text in texts:
        name, _, value = text.removeprefix("--").partition("=")
        options[name if text.startswith("--") else text] = value
    return options


def body(
    version: int, options: Mapping[str, str], script: str, variables: Mapping[str, str]
) -> JsonObject:
    """Return the request that submits a script with options of sbatch, by name. Raises
    OptionError."""
    job: dict[str, Any] = dict(job_fields(version, options))
    if version == OLD:
        return {"script": script, "job": {**job, "environment": dict(variables)}}
    listed = [f"{name}={value}" for name, value in variables.items()]
    return {"job": {**job, "script": script, "environment": listed}}


def job_fields(version: int, options: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a job for options of sbatch. Raises OptionError."""
    yield "requeue", False
    for name, value in options.items():
        if name in _TEXTS:
            yield _TEXTS[name], value
        elif name in _NUMBERS:
            yield _NUMBERS[name], _count(name, value)
        elif name in _SWITCHES:
            yield name, True
        elif name in _BY_VERSION:
            yield from _BY_VERSION[name](value, version == OLD).items()
        else:
            allowed = ", ".join(f"--{other}" for other in _MORE)
            dashes = "" if name.startswith("-") else "--"
            raise OptionError(f"slurmrestd takes no {dashes}{name}: --sbatch has {allowed}")


def _count(name: str, text: str) -> int:
    if not text.removeprefix("-").isdigit():
        raise OptionError(f"invalid --{name} {shown(text)}: expected a number")
    return int(text)


def _nodes(value: str, old: bool) -> dict[str, Any]:
    nodes = _count("nodes", value)
    if old:
        return {"tasks": nodes, "nodes": [nodes, nodes]}
    return {"tasks": nodes, "minimum_nodes": nodes, "maximum_nodes": nodes}


def _gres(value: str, old: bool) -> dict[str, Any]:
    if old:
        return {"gres": value}
    return {"tres_per_node": ",".join(f"gres/{part}" for part in value.split(","))}


def _signal(value: str, old: bool) -> dict[str, Any]:
    if old:
        return {"signal": value}
    signal, _, ahead = value.partition("@")
    delay = _set(_count("signal", ahead), old)
    return {"kill_warning_signal": signal, "kill_warning_delay": delay}


def _time(value: str, old: bool) -> dict[str, Any]:
    return {"time_limit": _set(math.ceil((seconds(value) or 0) / 60), old)}


def _memory(value: str, old: bool) -> dict[str, Any]:
    return {"memory_per_node": _set(math.ceil(megabytes(value)), old)}


def _exclusive(_: str, old: bool) -> dict[str, Any]:
    return {"exclusive": "exclusive"} if old else {"shared": ["none"]}


_BY_VERSION: Mapping[str, Callable[[str, bool], dict[str, Any]]] = {
    "nodes": _nodes, "gres": _gres, "signal": _signal, "time": _time, "mem": _memory,
    "exclusive": _exclusive,
}  # fmt: skip


def _set(value: int, old: bool) -> object:
    """Return a number as the API writes it: it may be unset or infinite."""
    return value if old else {"set": True, "infinite": False, "number": value}


def number(value: Any) -> int | None:
    """Return a number of an answer; None for one that is unset or infinite, which is below 0 in old
    answers."""
    if isinstance(value, dict):
        value = value["number"] if value.get("set") and not value.get("infinite") else None
    return value if value is not None and value >= 0 else None


def complaint(errors: Iterable[Reply]) -> str:
    """Return the errors of an answer in Slurm's words, without repetitions."""
    words = [": ".join(dict.fromkeys(_words(error))) for error in errors]
    return "; ".join(dict.fromkeys(filter(None, words)))


def _words(error: Reply) -> Iterator[str]:
    text, name = error.get("description") or "", error.get("error") or ""
    yield from filter(None, (text, "" if name in text else name))


def code(error: Reply) -> int:
    return int(error.get("error_number") or error.get("error_code") or 0)


def state_of(value: str | list[str]) -> str:
    """Return the name among those of a state that `squeue` shows."""
    names = [value] if isinstance(value, str) else value
    return next((name for name in _FIRST if name in names), names[0] if names else "")


def queued(job: Reply) -> QueuedJob:
    start = number(job.get("start_time")) or 0
    state, reason = state_of(job["job_state"]), job.get("state_reason") or ""
    return QueuedJob(str(job["job_id"]), state, reason, float(start), job.get("name") or "")


def accounts_of(partition: Reply) -> str:
    accounts = partition.get("accounts") or {"allowed": partition.get("allowed_accounts")}
    return accounts.get("allowed") or "ALL"


def lines(partitions: list[Reply], nodes: list[Reply]) -> Iterator[str]:
    """Yield lines like those that `sinfo` prints in the form `commands.NODES`."""
    for partition in partitions:
        name, most = partition["name"], partition.get("maximums", {})
        flags = [flag.lower() for flag in partition.get("flags") or ()]
        # Answers before v0.0.45 have no flags.
        mark = "*" if "default" in flags or len(partitions) == 1 else ""
        up = (partition.get("partition") or partition).get("state")
        minutes = number(most.get("time", partition.get("max_time_limit")))
        limit = number(most.get("nodes", partition.get("maximum_nodes_per_job")))
        alike = Counter(_node(node) for node in nodes if name in _names(node["partitions"]))
        for (state, *rest), count in alike.items():
            sizes = f"1-{'infinite' if limit is None else limit}"
            time_limit = "infinite" if minutes is None else clock(60 * minutes)
            is_up = "up" if "UP" in _names(up) else "down"
            about = (name, name + mark, is_up, time_limit, sizes, count, state, *rest)
            yield "|".join(map(str, about))


def _node(node: Reply) -> tuple[str, ...]:
    names = [text.lower() for text in (*_names(node["state"]), *_names(node.get("state_flags")))]
    state = "+".join(text for text in names if text not in _KINDS)
    features = ",".join(_names(node.get("active_features")))
    return state, str(node["cpus"]), str(node["real_memory"]), node.get("gres") or "", features


def _names(value: str | list[str] | None) -> list[str]:
    return value.split(",") if isinstance(value, str) else value or []
