"""Follows the batches and steps of a program in PyTorch, up to a number of steps (`--prove N`).

The ranks of the world keep what they read (`proving.py`); the rank that is alone gets the batches
of all (`alone.py`). Both note each step in a row, which `facts/proof.py` compares, and leave what
they have for each other in files.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import weakref
from pathlib import Path
from threading import get_ident
from typing import Any, Callable, Dict, List, Tuple

from distrain_nb.worker.facts.proof import GRADIENTS, WEIGHTS
from distrain_nb.worker.rank.determined import rounding
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.projections import projections
from distrain_nb.worker.rank.stacks import place

ALONE, AGAIN = "alone", "again"  # the two times that one rank makes the steps
_WAITS_S = 60.0

Key = Tuple[int, int]  # the number of an iterator in the program, and of the batch in it


class StepsFollowed:
    """The steps of this thread's optimizers. One within another makes no step by itself."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.rows: List[Dict[str, Any]] = []
        self.is_over = False
        self._thread = get_ident()
        self._optimizers: List[Any] = []  # weak references, in the order of their making
        self._open: List[int] = []
        self._iterators = 0
        self._backward_at = ""

    def batch(self, key: Key, fetch: Callable[[], Any]) -> Any:
        """Return the batch that the program gets. Raises StopIteration."""
        raise NotImplementedError

    def before_step(self, number: int, optimizer: Any) -> None:
        """Note that an optimizer, by its number, begins its step."""
        raise NotImplementedError

    def after_step(self, number: int, optimizer: Any) -> None:
        """Note the step in a row."""
        tensors = parameters(optimizer)
        self.rows.append(
            {
                "optimizer": number,
                GRADIENTS: projections([tensor.grad for tensor in tensors]),
                WEIGHTS: projections(tensors),
                "rounding": rounding(tensors),
                "lines": {GRADIENTS: self._backward_at or place(), WEIGHTS: place()},
            }
        )
        if len(self.rows) == self.count:
            self.is_over = True
            self.end()

    def after_backward(self) -> None:
        """Note that a backward pass has ended."""

    def end(self) -> None:
        """End the program, at its last step."""
        raise NotImplementedError

    def install(self) -> None:
        """Follow what the program does from now on."""
        on_import(
            {
                "torch.optim.optimizer": self._change_optimizers,
                "torch.utils.data.dataloader": self._change_loaders,
                "torch.autograd": self._change_backward,
            }
        )

    @property
    def optimizers(self) -> List[Any]:
        """The optimizers that there are, by their numbers; None for one that has gone."""
        return [reference() for reference in self._optimizers]

    def _follows(self) -> bool:
        return not self.is_over and get_ident() == self._thread

    def _number(self, optimizer: Any) -> int:
        for number, other in enumerate(self.optimizers):
            if other is optimizer:
                return number
        self._optimizers.append(weakref.ref(optimizer))
        return len(self._optimizers) - 1

    def _change_optimizers(self, module: Any) -> None:
        init = module.Optimizer.__init__

        @functools.wraps(init)
        def initialized(optimizer: Any, *arguments: Any, **named: Any) -> None:
            init(optimizer, *arguments, **named)
            if self._follows():
                self._number(optimizer)

        def before(optimizer: Any, *_: Any) -> None:
            if self._follows():
                self._leave(optimizer)
                self._open.append(id(optimizer))
                if len(self._open) == 1:
                    self.before_step(self._number(optimizer), optimizer)

        def after(optimizer: Any, *_: Any) -> None:
            if self._follows():
                is_outer = self._open[:1] == [id(optimizer)]
                self._leave(optimizer)
                if is_outer:
                    self.after_step(self._number(optimizer), optimizer)

        module.Optimizer.__init__ = initialized
        module.register_optimizer_step_pre_hook(before)
        module.register_optimizer_step_post_hook(after)

    def _leave(self, optimizer: Any) -> None:
        if id(optimizer) in self._open:
            del self._open[self._open.index(id(optimizer)) :]

    def _change_loaders(self, module: Any) -> None:
        iterator = module._BaseDataLoaderIter
        following = iterator.__next__

        @functools.wraps(following)
        def next_batch(loading: Any) -> Any:
            if not self._follows():
                return following(loading)
            if not hasattr(loading, "_distrain_number"):
                loading._distrain_number, loading._distrain_next = self._iterators, 0
                self._iterators += 1
            key = (loading._distrain_number, loading._distrain_next)
            loading._distrain_next += 1
            return self.batch(key, lambda: following(loading))

        iterator.__next__ = next_batch

    def _change_backward(self, module: Any) -> None:
        run = module.backward

        @functools.wraps(run)
        def backward(*arguments: Any, **named: Any) -> Any:
            if self._follows():
                self._backward_at = place()
            result = run(*arguments, **named)
            if self._follows():
                self.after_backward()
            return result

        # As `step_hooks` marks it, which goes round it only once.
        backward._distrain = getattr(run, "_distrain", False)  # type: ignore[attr-defined]
        module.backward = backward


def parameters(optimizer: Any) -> List[Any]:
    """Return the parameters of an optimizer, in order."""
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def settings(optimizer: Any) -> List[Dict[str, Any]]:
    """Return the numbers of each group that a step depends on."""
    return [
        {name: value for name, value in group.items() if _is_number(value)}
        for group in optimizer.param_groups
    ]


def _is_number(value: Any) -> bool:
    parts = value if isinstance(value, tuple) else (value,)
    return all(type(part) in (int, float) for part in parts)


def save(record: Any, path: Path) -> None:
    """Write a record, which is there as a whole or not at all."""
    import pickle

    torch: Any = sys.modules.get("torch")
    beside = path.with_suffix(".part")
    if torch is None:
        beside.write_bytes(pickle.dumps(record))
    else:
        torch.save(record, str(beside))
    os.replace(str(beside), str(path))


def load(path: Path) -> Any:
    """Read a record, which another process may be about to write."""
    deadline = time.monotonic() + _WAITS_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    torch: Any = sys.modules.get("torch")
    if torch is None:
        import pickle

        return pickle.loads(path.read_bytes())
    return torch.load(str(path), weights_only=False)
