"""The known facts of a job whose distribution is to be chosen.

Releases of frameworks, which the tables and layouts write as `pytorch-2.4`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from packaging.version import InvalidVersion, Version

from distrain_nb.errors import OptionError
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.resolved import resolve


@lru_cache(maxsize=1024)
def release(text: str | None) -> Version | None:
    """Return the version as one that compares; None if there is none, or nothing that is a
    version."""
    try:
        return Version(text or "")
    except InvalidVersion:
        return None


def releases(texts: Iterable[str], framework: str | None) -> tuple[str, ...]:
    """Return the release numbers of a framework: `("2.4",)` of `pytorch-2.4` and `mxnet-1.9`, for
    `pytorch`."""
    pairs = (text.rpartition("-") for text in texts)
    return tuple(number for name, _, number in pairs if name == framework)


def is_of(number: str, prefix: str | None) -> bool:
    """Return whether a version is of a release: 2.4.1 is of 2.4, and everything of None."""
    first, second = release(number), release(prefix)
    if first is None or second is None:
        return prefix is None
    return first.release[: len(second.release)] == second.release


def older(text: str | None, least: str | None) -> bool:
    """Return whether a version is older than another one; False where either is not known."""
    first, second = release(text), release(least)
    return first is not None and second is not None and first < second


TYPICAL_STEP_S = 0.25
# What the backward pass, about half of a step, can hide.
HIDDEN_SHARE = 0.5

_UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
QUESTIONS = {
    "model_bytes": "--model-size: how large are the weights, such as 100MB?",
    "gpus_per_instance": "--gpus-per-instance: how many GPUs does each machine have, 0 for none?",
    "instances": "--instances: how many machines?",
    "network_gbps": "--network: how many Gbit/s does each machine send?",
    "framework": "--framework: which one, such as tensorflow-1.13 or pytorch?",
}
_FRAMEWORKS = ("tensorflow", "pytorch", "huggingface", "mxnet")


@dataclass(frozen=True)
class Case:
    """The known facts of a job; None is not known.

    `model_bytes`: of the weights, and so of a gradient. `gpus_per_instance`: 0 on CPUs.
    `network_gbps`: Gbit/s that an instance sends. `framework`: its name, with `framework_version`.
    `step_s`: seconds that a step takes without the exchange. `layout`: the machines that the
    options are for, where they are known.
    Raises OptionError for a figure out of range, or a framework that
    SageMaker has no containers for.
    """

    model_bytes: float | None = None
    gpus_per_instance: int | None = None
    instances: int | None = None
    network_gbps: float | None = None
    framework: str | None = None
    framework_version: str | None = None
    step_s: float = TYPICAL_STEP_S
    layout: Layout | None = None

    def __post_init__(self) -> None:
        for name, least in (("gpus_per_instance", 0), ("instances", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise OptionError(f"invalid {_option(name)} {value}: expected {least} or more")
        for name in ("model_bytes", "network_gbps", "step_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise OptionError(f"invalid {_option(name)} {value:g}: expected more than 0")
        if self.framework not in (None, *_FRAMEWORKS):
            allowed = ", ".join(_FRAMEWORKS)
            raise OptionError(f"invalid --framework {self.framework!r}: expected one of {allowed}")

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the fields that are not known."""
        return tuple(name for name in QUESTIONS if getattr(self, name) is None)

    @property
    def exchange_s(self) -> float | None:
        """The least seconds to share a gradient over the network: 2 (n - 1) / n · bytes / speed.

        It holds for a ring, and for parameter servers of which every instance has one: there each
        link sends its worker's gradient out and the weights that it serves, all but 1 in n parts.
        """
        if self.model_bytes is None or self.network_gbps is None or self.instances is None:
            return None
        sent = 2 * (self.instances - 1) / self.instances * self.model_bytes
        return sent * 8 / (self.network_gbps * 1e9)

    @property
    def takes_long(self) -> bool | None:
        """Whether the exchange is longer than a step can hide."""
        return None if self.exchange_s is None else self.exchange_s > HIDDEN_SHARE * self.step_s


def case_of(
    layout: Layout, model_bytes: float | None = None, step_s: float = TYPICAL_STEP_S
) -> Case:
    """Return the case of a layout: its primary and workers, the fewest GPUs and the slowest
    network."""
    pools = resolve(layout).training
    speeds = [resolved.bandwidth_gbps for resolved in pools]
    bandwidths = [gbps for gbps in speeds if gbps]
    counts = [resolved.accelerators for resolved in pools if resolved.is_in_tables]
    return Case(
        model_bytes,
        min(counts) if counts and len(counts) == len(pools) else None,
        sum(resolved.pool.replicas for resolved in pools) or None,
        min(bandwidths) if bandwidths and len(bandwidths) == len(speeds) else None,
        layout.framework_name,
        layout.framework_version,
        step_s,
        layout if pools else None,
    )


def size_in_bytes(text: str, option: str = "--model-size") -> float:
    """Return bytes of `100MB`, `1.3 GiB` or a bare number. Raises OptionError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].upper() not in _UNITS:
        raise OptionError(
            f"invalid {option} {text!r}: expected a size such as 100MB, 1.3GB or 512MiB"
        )
    return float(match[1]) * _UNITS[match[2].upper()]


def _option(field: str) -> str:
    named = {"model_bytes": "model-size", "network_gbps": "network", "step_s": "step"}
    return f"--{named.get(field, field.replace('_', '-'))}"
