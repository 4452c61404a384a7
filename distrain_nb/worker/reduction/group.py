"""A process group whose sums reducers make, and whose every other work gloo does.

`torch.distributed` and the C++ of `DistributedDataParallel` call it as they call any group. Facts
are those of PyTorch 2.13.
"""

from __future__ import annotations

import importlib
import itertools
import secrets
import sys
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

from distrain_nb.worker.reduction.exchange import Exchange
from distrain_nb.worker.reduction.protocol import DTYPES, Greeting
from distrain_nb.worker.reduction.sum_count import SumCount
from distrain_nb.worker.reduction.tensor_bytes import bytes_of
from distrain_nb.worker.reduction.work import AllOfWork, ReducedWork

_OPERATIONS = ("SUM", "AVG", "MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR")
# What PyTorch calls by way of a Python class does its own work in it under the interpreter's lock,
# for which gloo's threads may be waiting; a backend lets go of the lock. Groups and backends have
# different names for some, and those of groups change.
_BY_BACKEND = {
    "all_to_all_single": "alltoall_base",
    "allgather": "allgather",
    "allreduce_coalesced": "allreduce_coalesced",
    "alltoall_base": "alltoall_base",
    "barrier": "barrier",
    "broadcast": "broadcast",
    "recv": "recv",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_single": "_reduce_scatter_base",
    "_reduce_scatter_base": "_reduce_scatter_base",
    "send": "send",
}
# What backends have in C++ alone, and what does the same to one tensor.
_ONE_BY_ONE = {
    "all_gather_single_coalesced": "_allgather_base",
    "allgather_into_tensor_coalesced": "_allgather_base",
    "reduce_scatter_single_coalesced": "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced": "_reduce_scatter_base",
}
# Backends' names of what adds up without the reducers, as the report has them.
_REDUCTIONS = {
    "_reduce_scatter_base": "by reduce-scatter",
    "allreduce_coalesced": "of several tensors",
    "reduce": "by reduce",
    "reduce_scatter": "by reduce-scatter",
}

counted = SumCount()
# How many groups of a name and members there have been.
_numbers: Dict[Tuple[str, Tuple[int, ...]], Iterator[int]] = {}


class ReducedGroup:
    """Made as PyTorch makes its own; then `begin` says who is in it."""

    torch: Any
    c10d: Any
    work: Callable[..., Any]
    all_of: Callable[..., Any]
    group_name: str
    size: Callable[[], int]
    rank: Callable[[], int]
    _get_backend: Callable[..., Any]

    def __init__(self, store: Any, rank: int, size: int, *_: Any) -> None:
        # PyTorch lets no group with a store be subclassed.
        super().__init__(rank, size)  # type: ignore[call-arg]
        self._store = store
        self._exchange: Optional[Exchange] = None

    def begin(self, ranks: Sequence[int], reducers: Sequence[str]) -> None:
        """Connect to the reducers; `ranks` are those of the whole job. The group has its name."""
        members = tuple(ranks) or tuple(range(self.size()))
        number = next(_numbers.setdefault((self.group_name, members), itertools.count()))
        name = f"{self.group_name} {number} {self._token(number)}"
        greeting = Greeting(name, members, self.rank())
        self._exchange = Exchange(reducers, greeting)

    def _token(self, number: int) -> str:
        """Return a token that its members alone have.

        Reducers may still hold what an earlier run left to them.
        """
        name = f"reducers {number}"
        if self.rank() == 0:
            self._store.set(name, secrets.token_hex(8))
        return str(self._store.get(name).decode())

    def end(self) -> None:
        """Disconnect once the group has been destroyed."""
        if self._exchange:
            self._exchange.close()

    def get_group_store(self) -> Any:
        return self._store

    def allreduce(self, tensors: Any, options: Any = None, *_: Any) -> Any:
        """Reduce through the reducers if they support this operation and dtype; otherwise fall back
        to gloo."""
        if isinstance(tensors, self.torch.Tensor):
            tensors = [tensors]
        if not isinstance(options, self.c10d.AllreduceOptions):
            options = self._options(options)
        backend = self._get_backend(tensors[0].device if tensors else self.torch.device("cpu"))
        operation = self._operation(options.reduceOp)
        why_not = _why_not(tensors, operation)
        if not why_not and backend.name() != "gloo":
            why_not = f"by {backend.name()}"
        if why_not or self._exchange is None:
            counted.add(_bytes(tensors), why_not or "without reducers")
            return backend.allreduce(tensors, options)
        tensor = tensors[0].detach()
        flat = tensor if tensor.is_contiguous() else tensor.contiguous()
        future = self.torch.futures.Future()
        work = self.work(future, tensor, flat, self._exchange.leave_thread)
        timeout = backend.options._timeout.total_seconds()
        mean = operation == "AVG"
        self._exchange.reduce(bytes_of(flat), _dtype(flat), mean, timeout, work.done)
        counted.add(_bytes(tensors))
        return work

    def _options(self, operation: Any) -> Any:
        options = self.c10d.AllreduceOptions()
        if operation is not None:
            options.reduceOp = operation
        return options

    def _operation(self, operation: Any) -> str:
        for name in _OPERATIONS:
            if operation == getattr(self.c10d.ReduceOp, name):
                return name
        return "another operation"


def group_class(c10d: Any) -> Any:
    """Return the class as a subclass of PyTorch's own, from
    `torch.distributed.distributed_c10d`."""
    work = type("ReducedWork", (ReducedWork, c10d.Work), {})
    torch = sys.modules["torch"]
    all_of = type("AllOfWork", (AllOfWork, c10d.Work), {})
    members = {"torch": torch, "c10d": c10d, "work": work, "all_of": all_of}
    backend = importlib.import_module("torch._C._distributed_c10d").Backend
    for ways, method in ((_BY_BACKEND, _by_backend), (_ONE_BY_ONE, _one_by_one)):
        for name, of_backend in ways.items():
            if hasattr(backend, of_backend) and hasattr(c10d.ProcessGroup, name):
                members[name] = method(torch, of_backend)
    return type("ReducedGroup", (ReducedGroup, c10d.ProcessGroup), members)


def _by_backend(torch: Any, name: str) -> Callable[..., Any]:
    def call(group: Any, *arguments: Any, **named: Any) -> Any:
        values = [*arguments, *named.values()]
        if name in _REDUCTIONS:
            # Of a reduce-scatter's two tensors the larger is what is added up.
            counted.add(max(map(_bytes, values), default=0), _REDUCTIONS[name])
        device = next(_devices(torch, values), torch.device("cpu"))
        return getattr(group._get_backend(device), name)(*arguments, **named)

    return call


def _one_by_one(_: Any, name: str) -> Callable[..., Any]:
    def call(group: Any, outputs: Any, inputs: Any, *options: Any, **named: Any) -> Any:
        if name in _REDUCTIONS:
            counted.add(_bytes(inputs), _REDUCTIONS[name])
        backend = group._get_backend(inputs[0].device)
        return group.all_of(
            [
                getattr(backend, name)(output, tensors, *options, **named)
                for output, tensors in zip(outputs, inputs)
            ]
        )

    return call


def _devices(torch: Any, values: Any) -> Iterator[Any]:
    """Yield the devices of tensors, in lists too; and the one that options name."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value.device
        elif isinstance(value, (list, tuple)):
            yield from _devices(torch, value)
        elif isinstance(getattr(value, "device", None), torch.device):
            yield value.device


def _bytes(value: Any) -> int:
    """Return the bytes of a tensor, or of those in lists."""
    if isinstance(value, (list, tuple)):
        return sum(map(_bytes, value))
    return value.numel() * value.element_size() if hasattr(value, "element_size") else 0


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _why_not(tensors: Sequence[Any], operation: str) -> str:
    """Return why the reducers can't do it; empty where they can."""
    if len(tensors) != 1:
        return "of several tensors"
    tensor = tensors[0]
    if tensor.device.type != "cpu":
        return f"on {tensor.device.type}"
    if str(tensor.layout) != "torch.strided":
        return "sparse"
    if _dtype(tensor) not in DTYPES:
        return f"of {_dtype(tensor)}"
    if operation not in ("SUM", "AVG"):
        return operation
    return "" if tensor.numel() else "empty"
