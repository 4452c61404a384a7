"""Options of jobs on a Ray cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from distrain_nb.backends.options import option
from distrain_nb.backends.remote.options import RemoteOptions
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.choices import Choice
from distrain_nb.places.ray.demand import SPREAD_OUT, STRATEGIES

if TYPE_CHECKING:
    from distrain_nb.backends.job import Job

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def _strategies(_: Layout) -> Iterator[Choice]:
    says = {
        SPREAD_OUT: "a node for each replica",
        "SPREAD": "spread out where there is room",
        "PACK": "on few nodes where there is room",
        "STRICT_PACK": "all on one node",
    }
    for name in STRATEGIES:
        yield Choice(name, f"{name} · {says[name]}")


@dataclass(frozen=True)
class RayOptions(RemoteOptions):
    address: str = option(
        "URL", "the cluster's dashboard (default: RAY_API_SERVER_ADDRESS, http://127.0.0.1:8265)",
        "", setting="address", label="Dashboard",
    )  # fmt: skip
    credentials: str = option(
        "FILE", "JSON file with headers, cookies and verify for requests to the dashboard", "",
        setting="credentials",
    )  # fmt: skip
    folder: str = option(
        "FOLDER", "folder that all nodes and this machine share", "", setting="folder",
        label="Shared folder",
    )  # fmt: skip
    cpus: str = option("N", "CPUs of a replica (default: one for each rank)", "", label="CPUs")
    memory: str = option("SIZE", "memory of a replica, such as 64GiB", "", label="Memory")
    resource: tuple[str, ...] = option("NAME=N", "custom resource of a replica", ())
    placement: str = option(
        "|".join(STRATEGIES), "how to place replicas on nodes", SPREAD_OUT, label="Placement",
        choices=_strategies,
    )  # fmt: skip
    autoscaling: bool = option("", "accept a job for which the cluster must add nodes", False)
    python: str = option("PATH", "Python on the cluster's nodes", "python", setting="ray_python")


RayJob: TypeAlias = "Job[RayOptions]"


def amount(text: str, name: str) -> float:
    """Return a positive number of an option. Raises OptionError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise OptionError(f"invalid {name} {text!r}: expected a number above 0")
    return number


def size(text: str, name: str = "--memory") -> int:
    """Return bytes of `64GiB`, `64G` or a bare number. Raises OptionError."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise OptionError(f"invalid {name} {text!r}: expected a size such as 64GiB")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def resources(texts: Iterable[str]) -> dict[str, float]:
    """Return custom resources of NAME=N. Raises OptionError."""
    amounts = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not name or not equals:
            raise OptionError(f"invalid --resource {text!r}: expected NAME=N")
        amounts[name] = amount(number, f"--resource {name}")
    return amounts
