"""The process group of a rank that runs alone (`--as-rank`): PyTorch's `fake`, with answers.

All other ranks are assumed to have the same values as this one. So a sum is the value times the
size of the group, and a gathering has copies of the value. Rank 0 has run before, and left its
broadcasts in files. Tensors that are too large for files keep the values of this rank. A tensor
that only another rank has is received as zeros. An object that only another rank has ends the rank.

All collectives go through PyTorch's dispatcher: those of DDP's reducer, of FSDP, and of DTensor.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.rank.on_import import on_import

C10D = "torch.distributed.distributed_c10d"
_NAMESPACES = ("c10d", "_c10d_functional")
_KEPT_BYTES = 1 << 20  # of a broadcast
_BROADCAST = "broadcast-{}-{}"
# Operations by the beginning of their names; what is first here contains what is behind it.
_KINDS = (
    ("allreduce", "all_reduce"), ("all_reduce", "all_reduce"),
    ("_allgather", "all_gather"), ("allgather", "all_gather"), ("all_gather", "all_gather"),
    ("_reduce_scatter", "reduce_scatter"), ("reduce_scatter", "reduce_scatter"),
    ("alltoall", "all_to_all"), ("all_to_all", "all_to_all"),
    ("broadcast", "broadcast"), ("reduce", "reduce"), ("gather", "gather"),
    ("scatter", "scatter"), ("send", "send"), ("recv", "recv"),
)  # fmt: skip
_SUM = 0  # of `ReduceOp.RedOpType`
_OF_OTHERS = ("scatter_object_list", "recv_object_list")


class OnlyElsewhere(RuntimeError):
    """The program needs an object that only another rank has, so this rank can't continue alone."""


class CollectiveCall(NamedTuple):
    """A collective: its kind, the ranks of its group, and its bytes."""

    kind: str
    ranks: Tuple[int, ...]
    bytes: int


class AnsweringGroup:
    """Answers for every group of this process. Rank 0 leaves its broadcasts in *folder*."""

    def __init__(self, folder: Path, rank: int, world: int) -> None:
        self._folder, self._rank, self._world = folder, rank, world
        self._counts: Dict[str, int] = {}
        self._now: List[CollectiveCall] = []
        self.step: List[CollectiveCall] = []  # the collectives of the last whole step
        self.meshes: List[Any] = []

    def watch(self) -> None:
        """Replace every group that the program makes."""
        on_import({C10D: self._change, "torch.distributed.device_mesh": self._note_meshes})

    def step_ends(self) -> None:
        """Keep the collectives of this step, and start a new list."""
        self.step, self._now = self._now, []

    # -- making groups ----------------------------------------------------------------------------

    def _change(self, module: Any) -> None:
        helper, init = module._new_process_group_helper, module.init_process_group

        @functools.wraps(helper)
        def new_group(*arguments: Any, **named: Any) -> Any:
            from torch.testing._internal.distributed import fake_pg  # noqa: F401

            size, rank, ranks, _, *rest = arguments
            named = {**named, **dict(zip(("store", "group_name", "backend_options"), rest))}
            changed = {"backend_options": None, "device_id": None, "pg_options": None}
            named.update({name: None for name in changed if name in named})
            return helper(size, rank, ranks, "fake", **named)

        @functools.wraps(init)
        def init_process_group(*arguments: Any, **named: Any) -> Any:
            for name in ("device_id", "pg_options"):
                named.pop(name, None)
            return init(*arguments, **named)

        def rendezvous(_: str, rank: int = -1, world_size: int = -1, **__: Any) -> Any:
            from torch.testing._internal.distributed.fake_pg import FakeStore

            numbers = [
                number if number >= 0 else int(os.environ[name])
                for name, number in (("RANK", rank), ("WORLD_SIZE", world_size))
            ]
            yield (FakeStore(), *numbers)

        def monitored_barrier(*_: Any, **__: Any) -> None:
            """Nobody else is there to be waited for."""

        self._put(module, new_group, "_new_process_group_helper")
        self._put(module, init_process_group, "init_process_group")
        # PyTorch's own modules have imported `init_process_group` before, and it calls this one.
        module.rendezvous = rendezvous
        self._put(module, monitored_barrier, "monitored_barrier")
        self._put(module, self._sent_by_another(module), "broadcast_object_list")
        for name in _OF_OTHERS:
            self._put(module, self._refused(module, name), name)

    def _put(self, module: Any, function: Callable[..., Any], name: str) -> None:
        package = sys.modules.get("torch.distributed")
        setattr(module, name, function)
        if hasattr(package, name):  # it was imported before
            setattr(package, name, function)

    def _sent_by_another(self, module: Any) -> Callable[..., Any]:
        broadcast = module.broadcast_object_list

        @functools.wraps(broadcast)
        def broadcast_object_list(objects: Any, src: Any = None, *rest: Any, **named: Any) -> Any:
            group = rest[0] if rest else named.get("group")
            root = src if src is not None else named.get("group_src", 0)
            if src is None and group is not None:
                root = module.get_process_group_ranks(group)[root]
            if root not in (0, self._rank):
                raise OnlyElsewhere(_only(f"the objects that rank {root} broadcasts"))
            return broadcast(objects, src, *rest, **named)

        return broadcast_object_list

    def _refused(self, module: Any, name: str) -> Callable[..., Any]:
        function = getattr(module, name)

        @functools.wraps(function)
        def refused(*_: Any, **__: Any) -> Any:
            raise OnlyElsewhere(_only(f"what {name} would bring"))

        return refused

    def _note_meshes(self, module: Any) -> None:
        mesh = module.DeviceMesh
        init = mesh.__init__

        @functools.wraps(init)
        def noted(of: Any, *arguments: Any, **named: Any) -> None:
            init(of, *arguments, **named)
            self.meshes.append(of)

        mesh.__init__ = noted

    # -- answering --------------------------------------------------------------------------------

    def answer(self, operation: Any, arguments: Tuple[Any, ...], result: Any) -> Any:
        """Record a collective, and return its result for a world of ranks like this one."""
        if operation.namespace not in _NAMESPACES:
            return result
        name = operation._schema.name.partition("::")[2]
        kind = next((kind for start, kind in _KINDS if name.startswith(start)), "")
        group = _group_of(arguments)
        if not kind or group is None:
            return result
        ranks = _ranks_of(group)
        self._now.append(CollectiveCall(kind, ranks, max(map(_bytes, arguments))))
        is_functional = operation.namespace == "_c10d_functional"
        answered = list(_tensors(result if is_functional else arguments[0]))
        if kind in ("all_reduce", "reduce_scatter", "reduce") and _is_sum(arguments):
            for tensor in answered:
                tensor.mul_(len(ranks))
        elif kind == "recv":
            for tensor in answered:
                tensor.zero_()
        elif kind == "broadcast" and ranks[_root(arguments)] == 0:
            self._broadcast(group, answered)
        return result if is_functional else _with_future(result, answered)

    def _broadcast(self, group: Any, tensors: List[Any]) -> None:
        """Write what rank 0 sends, or read what it has sent."""
        torch: Any = sys.modules["torch"]
        number = self._counts[group.group_name] = self._counts.get(group.group_name, 0) + 1
        path = self._folder / _BROADCAST.format(group.group_name, number)
        size = sum(map(_bytes, tensors))
        if size > _KEPT_BYTES:
            return
        if self._rank == 0:
            sent = b"".join(bytes(t.detach().cpu().contiguous().view(-1).view(torch.uint8).tolist())
                            for t in tensors)  # fmt: skip
            replace_file(path, sent)
        elif path.exists():
            data = path.read_bytes()
            for tensor in tensors if len(data) == size else ():
                part, data = data[: _bytes(tensor)], data[_bytes(tensor) :]
                if part:
                    values = torch.frombuffer(bytearray(part), dtype=tensor.dtype)
                    tensor.copy_(values.view(tensor.shape))


def _only(missing: str) -> str:
    return f"only other ranks have {missing}: a rank that runs alone can't go on from here"


def _with_future(result: Any, tensors: List[Any]) -> Any:
    """Return the result of a collective with a work that has these tensors.

    DDP waits for the tensors of the work, and the work of `fake` has none.
    """
    torch: Any = sys.modules["torch"]
    parts = result if isinstance(result, tuple) else (result,)
    if not _type_of(parts[-1]).endswith("Work"):
        return result
    future = torch.futures.Future()
    future.set_result(tensors)
    work = torch._C._distributed_c10d._create_work_from_future(future).boxed()
    return (*parts[:-1], work) if isinstance(result, tuple) else work


def _group_of(arguments: Tuple[Any, ...]) -> Any:
    """Return the group of a collective, from its object or its name."""
    c10d: Any = sys.modules[C10D]
    for argument in reversed(arguments):
        if isinstance(argument, str):
            for group, name in dict(c10d._world.pg_names).items():
                if name == argument:
                    return group
        elif _type_of(argument).endswith("ProcessGroup"):
            return c10d.ProcessGroup.unbox(argument)
    return None


def _type_of(argument: Any) -> str:
    """Return TorchScript's name of an object's class; empty for an object of another kind."""
    kind = getattr(argument, "_type", None)
    return str(kind().qualified_name()) if callable(kind) else ""


def _ranks_of(group: Any) -> Tuple[int, ...]:
    c10d: Any = sys.modules[C10D]
    return tuple(int(rank) for rank in c10d.get_process_group_ranks(group))


def _is_sum(arguments: Tuple[Any, ...]) -> bool:
    for argument in arguments:
        if _type_of(argument).endswith("ReduceOp"):
            return int(argument.op()) == _SUM
    return "sum" in (argument for argument in arguments if isinstance(argument, str))


def _root(arguments: Tuple[Any, ...]) -> int:
    return next((a for a in arguments if type(a) is int), 0)


def _tensors(value: Any) -> Iterator[Any]:
    if hasattr(value, "untyped_storage"):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def _bytes(value: Any) -> int:
    return sum(int(t.numel()) * int(t.element_size()) for t in _tensors(value))


def coordinates(meshes: List[Any]) -> Dict[str, Tuple[int, int]]:
    """Return this rank's coordinate and the size of each dimension of the largest mesh."""
    largest: Optional[Any] = max(meshes, key=lambda mesh: mesh.mesh.numel(), default=None)
    at = largest.get_coordinate() if largest is not None else None
    if largest is None or at is None:
        return {}
    names = largest.mesh_dim_names or tuple(map(str, range(largest.mesh.dim())))
    return dict(zip(names, zip(map(int, at), map(int, largest.mesh.shape))))


def totals(step: List[CollectiveCall]) -> Mapping[Tuple[str, Tuple[int, ...]], int]:
    """Return the bytes of a step, by kind and group."""
    sums: Dict[Tuple[str, Tuple[int, ...]], int] = {}
    for exchange in step:
        key = (exchange.kind, exchange.ranks)
        sums[key] = sums.get(key, 0) + exchange.bytes
    return sums
