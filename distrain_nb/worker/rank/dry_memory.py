"""Counts the bytes of a rank's tensors while it runs alone (`--as-rank`), by kind at their peak.

A storage counts from the first operation that returns it until nobody holds it any more. FSDP
resizes storages meanwhile, which no operation tells. What NumPy or the loaders' own processes hold
isn't counted.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

PARAMETERS, GRADIENTS, OPTIMIZER = "parameters", "gradients", "optimizer"
ACTIVATIONS, OTHER = "activations", "other"
# A new peak is told apart by kind only once it has grown by such a share of itself, or of the
# parameters: to tell takes as long as there are parameters.
_OF_ITSELF, _OF_PARAMETERS = 0.01, 0.02


class TensorMemory:
    """The bytes of all tensors that this process holds. `optimizers` returns those that there are,
    in whose order the kinds are told apart."""

    def __init__(self, optimizers: Callable[[], Iterable[Any]]) -> None:
        self._optimizers = optimizers
        self._held: Dict[int, Tuple[int, Any]] = {}  # by storage: its bytes, a weak reference
        self._bytes = self._peak = 0
        self._weights: Dict[int, Any] = {}  # of modules: weak references
        self._steps = 0
        self.peak_step = 1
        self._kinds: Dict[str, int] = {}
        self._stays = 0  # at the end of a step, beside parameters, gradients and optimizers' state

    def watch(self) -> None:
        """Follow storages that are resized, and the parameters of modules."""
        torch: Any = sys.modules["torch"]
        storage, module = torch.UntypedStorage, torch.nn.Module
        resize, register = storage.resize_, module.register_parameter

        @functools.wraps(resize)
        def resized(of: Any, size: int) -> Any:
            result = resize(of, size)
            if of._cdata in self._held:
                self._count(of)
            return result

        @functools.wraps(register)
        def registered(of: Any, name: str, parameter: Any) -> None:
            register(of, name, parameter)
            if parameter is not None:
                self._weights[id(parameter)] = weakref.ref(parameter)

        storage.resize_, module.register_parameter = resized, registered

    def note(self, result: Any) -> None:
        """Count what an operation has returned."""
        for tensor in _tensors(result):
            if tensor.is_meta:
                continue
            try:
                storage = tensor.untyped_storage()
            except (NotImplementedError, RuntimeError):  # sparse, or of a kind without one
                continue
            if storage._cdata not in self._held:
                self._count(storage)

    def _count(self, storage: Any) -> None:
        key, size = storage._cdata, int(storage.nbytes())
        before, _ = self._held.get(key, (0, None))
        self._held[key] = (size, weakref.ref(storage, functools.partial(self._forget, key)))
        self._bytes += size - before
        if self._bytes > self._peak:
            self._grow()

    def _forget(self, key: int, reference: Any) -> None:
        size, held = self._held.get(key, (0, None))
        if held is reference:
            del self._held[key]
            self._bytes -= size

    def _grow(self) -> None:
        noted = sum(self._kinds.values())
        self._peak, self.peak_step = self._bytes, self._steps + 1
        least = min(noted * _OF_ITSELF, self._kinds.get(PARAMETERS, 0) * _OF_PARAMETERS)
        if self._bytes - noted >= least:
            self._kinds = self._by_kind()

    def step_ends(self) -> None:
        """Note what stays from one step to the next, such as data and buffers."""
        self._steps += 1
        self._stays = self._by_kind()[ACTIVATIONS]

    def _by_kind(self) -> Dict[str, int]:
        sizes: Dict[str, int] = {}
        counted: set[int] = set()
        weights = [reference() for reference in self._weights.values()]
        weights = [weight for weight in weights if weight is not None]
        for kind, tensors in _kinds_of(weights, self._optimizers()).items():
            sizes[kind] = 0
            for tensor in tensors:
                storage = tensor.untyped_storage()
                if storage._cdata not in counted and storage._cdata in self._held:
                    counted.add(storage._cdata)
                    sizes[kind] += self._held[storage._cdata][0]
        return {**sizes, ACTIVATIONS: self._bytes - sum(sizes.values())}

    def peak(self) -> Dict[str, int]:
        """Return the bytes at the peak, by kind."""
        kinds = {**self._kinds, OTHER: 0}
        kinds[ACTIVATIONS] = kinds.get(ACTIVATIONS, 0) + self._peak - sum(kinds.values())
        kinds[OTHER] = min(self._stays, kinds[ACTIVATIONS])
        kinds[ACTIVATIONS] -= kinds[OTHER]
        return kinds


def local(tensor: Any) -> Any:
    """Return this rank's part of a tensor that is shared out over ranks; others as they are."""
    return getattr(tensor, "_local_tensor", tensor)


def parameters_of(optimizers: Iterable[Any]) -> Iterator[Any]:
    """Yield the parameters of optimizers."""
    for optimizer in optimizers:
        for group in optimizer.param_groups if optimizer is not None else ():
            yield from group["params"]


def _kinds_of(weights: List[Any], optimizers: Iterable[Any]) -> Dict[str, List[Any]]:
    optimizers = [optimizer for optimizer in optimizers if optimizer is not None]
    weights = [*weights, *parameters_of(optimizers)]
    states = [state for o in optimizers for state in list(o.state.values())]
    values = [value for s in states if isinstance(s, dict) for value in s.values()]
    return {
        PARAMETERS: [local(weight) for weight in weights],
        GRADIENTS: [local(weight.grad) for weight in weights if weight.grad is not None],
        OPTIMIZER: [local(value) for value in values if hasattr(value, "untyped_storage")],
    }


def _tensors(result: Any) -> Iterator[Any]:
    if hasattr(result, "untyped_storage"):
        yield result
    elif isinstance(result, (list, tuple)):
        for part in result:
            yield from _tensors(part)
