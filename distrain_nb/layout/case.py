"""The known facts of a job whose distribution is to be chosen."""

from __future__ import annotations

from dataclasses import dataclass

from distrain_nb.errors import OptionError
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.resolved import resolve

TYPICAL_STEP_S = 0.25

# The share of a step that hides an exchange: the backward pass takes about half.
HIDDEN_SHARE = 0.5

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
    """The known facts of a job. None means not known.

    `model_bytes` is the size of the weights, and so of a gradient. `gpus_per_instance` is 0 on
    CPUs. `network_gbps` are the Gbit/s that an instance sends. `step_s` are the seconds of a step
    without the exchange. `layout` has the machines that the options are for. Raises OptionError for
    a number out of range, or a framework that SageMaker has no containers for.
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

        This is the time of a ring. It also holds if each instance has a worker and a parameter
        server. Then its link sends the gradient of the worker and the weights of the server. Of
        both, one part in n stays on the instance.
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
    """Return the case of a layout's primary and workers.

    If they differ, the fewest GPUs and the slowest network count.
    """
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


def _option(field: str) -> str:
    named = {"model_bytes": "model-size", "network_gbps": "network", "step_s": "step"}
    return f"--{named.get(field, field.replace('_', '-'))}"
