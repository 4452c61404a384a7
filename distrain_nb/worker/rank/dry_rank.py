"""A rank that runs alone for its first steps (`--as-rank`): the other ranks of its world don't run.

Several such ranks take turns, in order: each has the machine for itself. If one fails, those after
it don't begin. So the first that fails is the lowest. Rank 0 is always the first, since other ranks
receive what it has sent. The outcome of a rank is a fact, and lines in its log.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

from distrain_nb.worker.facts import dry
from distrain_nb.worker.facts.record import DRY, RECORD
from distrain_nb.worker.files.folder import DRY_FOLDER, FACTS_FOLDER
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE
from distrain_nb.worker.rank import dry_devices
from distrain_nb.worker.rank.dry_group import AnsweringGroup, coordinates, totals
from distrain_nb.worker.rank.dry_memory import TensorMemory, local, parameters_of
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.steps_followed import Key, StepsFollowed

_LOOK_EVERY_S = 0.05
_SHOWN_SAMPLES = 8

_turn: Optional[int] = None  # the descriptor that says that this rank hasn't ended
_dry: Optional[DryRank] = None


def settings() -> Dict[str, Any]:
    """Return what a rank that runs alone is figures; empty for one that doesn't."""
    text = os.environ.get(dry.VARIABLE, "")
    return dict(json.loads(text)) if text else {}


def wait_for_turn(folder: Path, process: int) -> None:
    """Wait until the ranks before this one have come through. Where one has failed, wait for the
    signal that ends this one."""
    global _turn
    if not settings():
        return
    turns = folder / DRY_FOLDER
    turns.mkdir(exist_ok=True)
    # A lock of the process goes with it, whatever ends it, and no child has it too. The file has
    # its name once it is locked: whoever finds it and gets the lock knows that its rank has ended.
    beside = turns / f"taking-{process}"
    _turn = os.open(str(beside), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.lockf(_turn, fcntl.LOCK_EX)
    os.replace(str(beside), str(_turn_file(folder, process)))
    while process and not _has_ended(folder, process - 1):
        time.sleep(_LOOK_EVERY_S)
    while process and not _passed(folder, process - 1).exists():
        time.sleep(_LOOK_EVERY_S)


def _turn_file(folder: Path, process: int) -> Path:
    return folder / DRY_FOLDER / f"turn-{process}"


def _passed(folder: Path, process: int) -> Path:
    return folder / DRY_FOLDER / f"passed-{process}"


def _has_ended(folder: Path, process: int) -> bool:
    try:
        descriptor = os.open(str(_turn_file(folder, process)), os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def clear(folder: Path) -> None:
    """Remove what ranks have left for each other in a run that has ended."""
    shutil.rmtree(str(folder / DRY_FOLDER), ignore_errors=True)


def begin(folder: Path, process: int) -> None:
    """Have this rank run alone, if its run is for that."""
    global _dry
    figures = settings()
    if figures:
        _dry = DryRank(folder, process, figures)
        _dry.install()


def end(*, failed: bool) -> None:
    """Say what this rank has come to."""
    if _dry is not None:
        _dry.finish(failed=failed)


class DryRank(StepsFollowed):
    """This rank, as it runs alone: what it makes, reads, holds and exchanges."""

    def __init__(self, folder: Path, process: int, figures: Dict[str, Any]) -> None:
        super().__init__(int(figures["steps"]))
        self._folder, self._process, self._figures = folder, process, figures
        self._rank, self._world = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
        self._group = AnsweringGroup(folder / DRY_FOLDER, self._rank, self._world)
        self._memory = TensorMemory(lambda: self.optimizers)
        self._data: Dict[str, Any] = {}

    def install(self) -> None:
        """Follow the program from its first line on."""
        import torch  # noqa: F401  # which it would import itself

        super().install()
        self._group.watch()
        self._memory.watch()
        on_import({"torch.utils.data.dataloader": self._note_data})
        operations(self.operation).__enter__()
        if self._figures["devices"]:
            dry_devices.install(self._figures)

    def operation(self, operation: Any, arguments: Any, result: Any) -> Any:
        """Note an operation of PyTorch, and return what it gives."""
        self._memory.note(result)
        return self._group.answer(operation, arguments, result)

    def batch(self, key: Key, fetch: Any) -> Any:  # noqa: ARG002
        return fetch()

    def before_step(self, number: int, optimizer: Any) -> None:
        """There is nothing to note before a step."""

    def after_step(self, number: int, optimizer: Any) -> None:  # noqa: ARG002
        self.rows.append({"optimizer": number})
        self._memory.step_ends()
        self._group.step_ends()
        if len(self.rows) == self.count:
            self.is_over = True
            self.end()

    def end(self) -> None:
        raise SystemExit(0)

    def _note_data(self, module: Any) -> None:
        """Note what the first loader that is read draws, and whose share that is."""
        iterator, begin_epoch = module._BaseDataLoaderIter, module.DataLoader.__iter__
        next_index = iterator._next_index

        @functools.wraps(begin_epoch)
        def begun(loader: Any) -> Any:
            if not self._data:
                self._data = {"indices": [], **_description(loader)}
            return begin_epoch(loader)

        @functools.wraps(next_index)
        def index(loading: Any) -> Any:
            indices = next_index(loading)
            shown: List[int] = self._data.get("indices", [])
            if isinstance(indices, (list, tuple)) and len(shown) < _SHOWN_SAMPLES:
                shown += [i for i in indices if type(i) is int][: _SHOWN_SAMPLES - len(shown)]
            return indices

        module.DataLoader.__iter__, iterator._next_index = begun, index

    def finish(self, *, failed: bool) -> None:
        """Write the fact, and say it; the last rank that is tried says what all have come to."""
        self.is_over = True
        if not failed:
            _passed(self._folder, self._process).touch()
        try:
            fields = self._fields(failed)
        except (
            Exception
        ) as error:  # a mesh or a sampler of another version; whether it failed holds
            print(f"distrain: can't say what this rank has come to: {error!r}", flush=True)
            return
        RECORD.begin(Path(os.environ[FOLDER_VARIABLE], FACTS_FOLDER), self._rank, self._world)
        RECORD.note(DRY, **fields)
        RECORD.end(failed=failed)
        for line in dry.lines(fields):
            print(f"distrain: {line}", flush=True)
        tried = self._figures["tried"]
        if not failed and self._process == len(tried) - 1:
            print(f"distrain: {dry.verdict(tried, self._world, len(self.rows))}", flush=True)

    def _fields(self, failed: bool) -> Dict[str, Any]:
        weights = list(parameters_of(self.optimizers))
        return {
            "of": self._rank,
            "world": self._world,
            "failed": failed,
            "steps": len(self.rows),
            "memory": self._memory.peak(),
            "peak_step": self._memory.peak_step,
            "device": self._figures["device"],
            "device_bytes": self._figures["device_bytes"],
            "replica": int(os.environ["GROUP_RANK"]),
            "local": int(os.environ["LOCAL_RANK"]),
            "mesh": coordinates(self._group.meshes),
            "shards": _shards(weights),
            "data": self._data,
            "exchanges": list(self._exchanges()),
        }

    def _exchanges(self) -> Iterator[Dict[str, Any]]:
        per_replica, gbps = self._figures["per_replica"], self._figures["gbps"]
        for (kind, ranks), size in totals(self._group.step).items():
            yield {
                "kind": kind,
                "ranks": len(ranks),
                "machines": len({rank // per_replica for rank in ranks}),
                "bytes": size,
                "seconds": dry.seconds(kind, ranks, size, per_replica, gbps),
            }


def operations(note: Callable[[Any, Any, Any], Any]) -> Any:
    """Return the mode in which PyTorch tells of each operation below its autograd: `note` gets the
    operation, its arguments and its result, and returns what is to be the result."""
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._python_dispatch import TorchDispatchMode

    torch: Any = sys.modules["torch"]
    plain = (torch.Tensor, torch.nn.Parameter)

    class Operations(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, operation: Any, types: Any, arguments: Any = (), named: Any = None
        ) -> Any:
            if any(issubclass(kind, FakeTensor) for kind in types):  # which hold nothing
                return operation(*arguments, **(named or {}))
            if any(kind not in plain for kind in types):
                return NotImplemented  # such a tensor makes operations of its own, which come here
            result = operation(*arguments, **(named or {}))
            return note(operation, arguments, result)

    return Operations()


def _description(loader: Any) -> Dict[str, Any]:
    sampler = getattr(loader, "sampler", None)
    batches = getattr(loader, "batch_sampler", None)
    sampler = getattr(batches, "sampler", sampler)
    return {
        "size": _length(getattr(loader, "dataset", None)),
        "drawn": _length(sampler),
        "sampler": type(sampler).__name__,
    }


def _length(sized: Any) -> Optional[int]:
    try:
        return len(sized)
    except Exception:  # an iterable without a length, or one that refuses
        return None


def _shards(weights: List[Any]) -> Dict[str, Any]:
    """Return how many parameters are shared out over ranks, and the largest of them."""
    shared = [weight for weight in weights if local(weight) is not weight]
    largest = max(shared, key=lambda weight: int(weight.numel()), default=None)
    shapes = {} if largest is None else {
        "whole": list(map(int, largest.shape)),
        "here": list(map(int, local(largest).shape)),
    }  # fmt: skip
    return {"parameters": len(weights), "shared": len(shared), **shapes}
