"""The process groups that reducers sum for: those of gloo of a rank that has reducers."""

from __future__ import annotations

import atexit
import importlib
import os
import sys
from typing import Any, Iterable, List, Sequence

from distrain_nb.worker.reduction.group import ReducedGroup, counted, group_class

VARIABLE = "DISTRAIN_REDUCERS"
_BACKENDS = ("gloo", "undefined")  # what a group without GPUs is made of

# What a program says to NCCL alone, as PyTorch's parameters are called.
_OF_NCCL = ("backend_options", "pg_options", "device_id")


def addresses() -> List[str]:
    """Return the addresses of this rank's reducers, `host:port`, in their order."""
    return [address for address in os.environ.get(VARIABLE, "").split(",") if address]


def install(c10d: Any = None) -> None:
    """Have groups that are made from now on use this rank's reducers, where it has some.

    `c10d` is the module `torch.distributed.distributed_c10d`.
    """
    reducers = addresses()
    if not reducers:
        return
    c10d = c10d or importlib.import_module("torch.distributed.distributed_c10d")
    # A private function of PyTorch, tried with 2.13.
    make = c10d._new_process_group_helper
    classes: List[Any] = []

    def reduced() -> Any:
        if not classes:
            classes.append(_class_or_none(c10d))
        return classes[0]

    def make_reduced(
        size: int, rank: int, ranks: Sequence[int], backend: Any, *rest: Any, **named: Any
    ) -> Any:
        if "nccl" in str(backend).lower() and not sys.modules["torch"].cuda.is_available():
            _say("there are no GPUs here, so gloo is used instead of nccl")
            backend = c10d.Backend("gloo")
            named = {name: named[name] for name in named if name not in _OF_NCCL}
        if size < 2 or not any(word in str(backend).lower() for word in _BACKENDS):
            return make(size, rank, ranks, backend, *rest, **named)
        plain = c10d.ProcessGroup
        c10d.ProcessGroup = reduced() or plain
        try:
            group = make(size, rank, ranks, backend, *rest, **named)
        finally:
            c10d.ProcessGroup = plain
        if isinstance(group[0], ReducedGroup):
            group[0].begin(ranks, reducers)
        return group

    c10d._new_process_group_helper = make_reduced
    atexit.register(_report, len(reducers))


def _class_or_none(c10d: Any) -> Any:
    """Return the class of groups, or None with a message where this version of PyTorch can't have
    it."""
    try:
        cls = group_class(c10d)
        cls(None, 0, 1)
        return cls
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        version = getattr(sys.modules["torch"], "__version__", "")
        _say(f"the reducers can't sum for PyTorch {version}, and gloo sums as usual ({why})")
        return None


def end(destroyed: Iterable[Any]) -> None:
    """Let the reducers forget groups that the program has destroyed."""
    for group in destroyed:
        if isinstance(group, ReducedGroup):
            group.end()


def _report(reducers: int) -> None:
    if os.environ.get("RANK", "0") == "0":
        _say(counted.words(reducers))


def _say(text: str) -> None:
    print(f"distrain: reduction: {text}", file=sys.stderr, flush=True)
