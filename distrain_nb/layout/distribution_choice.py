"""The choice of a distribution for a case.

It follows AWS's article on Horovod and parameter servers (key AWS-BLOG-TF of the table of sources):
scale up before out, then decide by how long the gradients take to be shared.
"""

from __future__ import annotations

from distrain_nb.layout.case import HIDDEN_SHARE, Case
from distrain_nb.layout.distributions import (
    DDP,
    DDP_ONE_INSTANCE,
    HOROVOD,
    NO_DISTRIBUTION,
    ONE_INSTANCE,
    PARAMETER_SERVERS,
    UNDECIDED,
    has_pytorch,
)
from distrain_nb.layout.traffic import size

# From this number on, the all-to-all traffic of parameter servers is likely to fill a network.
MANY_GPUS = 32

LONG, SHORT = "gradients take long to share", "gradients are shared fast"
_AVOIDS = "one instance with more GPUs avoids the network"


def choose(case: Case) -> tuple[str, tuple[str, ...]]:
    """Return the distribution for a case, and the reasons."""
    return (_choose_for_pytorch if has_pytorch(case) else _choose)(case)


def _choose_for_pytorch(case: Case) -> tuple[str, tuple[str, ...]]:
    """Choose DDP in place of the distributions of the article, which is on TensorFlow."""
    choice, reasons = _choose(case)
    if choice in (NO_DISTRIBUTION, UNDECIDED):
        return choice, reasons
    ddp_suits = "DDP averages gradients as Horovod does, which works as well"
    if case.instances == 1:
        return DDP_ONE_INSTANCE, (*reasons, ddp_suits)
    if not case.gpus_per_instance or not case.takes_long:
        return DDP, (*(reasons if choice == HOROVOD else ()), ddp_suits)
    if choice == HOROVOD:
        return DDP, (_timing(case), "an instance with so many GPUs is rare", ddp_suits)
    return DDP_ONE_INSTANCE, (_timing(case), _AVOIDS, ddp_suits)


def _choose(case: Case) -> tuple[str, tuple[str, ...]]:
    """Return the choice of the article, whatever the framework has."""
    gpus, instances = case.gpus_per_instance, case.instances
    if instances == 1 and gpus is not None:
        return _on_one_instance(gpus)
    if instances is None or gpus is None:
        return UNDECIDED, ("it depends on the number of machines and of their GPUs",)
    if gpus == 0:
        return PARAMETER_SERVERS, ("on CPUs they are the faster way, however large the model",)
    if case.takes_long is None:
        return UNDECIDED, ("on GPUs it depends on how long gradients take to share",)
    if not case.takes_long:
        return HOROVOD, (_timing(case),)
    return _for_long_exchange(case, gpus, gpus * instances)


def _on_one_instance(gpus: int) -> tuple[str, tuple[str, ...]]:
    if gpus > 1:
        return ONE_INSTANCE, ("GPUs of one machine exchange faster than any network does",)
    return NO_DISTRIBUTION, ("there is one machine with one device at most: nothing to share",)


def _for_long_exchange(case: Case, gpus: int, total: int) -> tuple[str, tuple[str, ...]]:
    if total >= MANY_GPUS:
        why = f"parameter servers talk all to all, which {total} GPUs make too much for a network"
        return HOROVOD, (_timing(case), why)
    if gpus > 1:
        why = f"{_AVOIDS}; {PARAMETER_SERVERS} are the other way"
        return ONE_INSTANCE, (_timing(case), why)
    why = f"{PARAMETER_SERVERS} don't make workers wait; {ONE_INSTANCE} with more GPUs also suits"
    return PARAMETER_SERVERS, (_timing(case), why)


def _timing(case: Case) -> str:
    exchange, step = case.exchange_s or 0.0, case.step_s
    formula = "2 (n - 1) / n x bytes / network"
    return (
        f"to share {size(case.model_bytes or 0)} takes at least {exchange * 1000:,.0f} ms "
        f"({formula}); a step of {step * 1000:,.0f} ms hides {HIDDEN_SHARE * step * 1000:,.0f} ms, "
        f"so {LONG if case.takes_long else SHORT}"
    )
