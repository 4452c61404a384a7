"""What makes a step of several ranks other than that of one, turned off while steps are proven.

Dropout passes its input through, and batch norm computes by its running statistics. The program
begins with a known seed. A step that draws random numbers all the same can't be proven.
"""

from __future__ import annotations

import functools
import random
import sys
from typing import Any, Callable, Dict, Sequence, Set

from distrain_nb.worker.rank.on_import import on_import

SEED = 20_231
DROPOUT, BATCH_NORM = "dropout turned off", "batch norm by its running statistics"
_DROPOUTS = ("", "1d", "2d", "3d")
_RECURRENT = ("RNN", "LSTM", "GRU")
_ROUNDINGS = {"torch.bfloat16": 2.0**-8, "torch.float16": 2.0**-10}
_ROUNDING_OF_TF32, _LEAST_ROUNDING = 2.0**-10, 2.0**-20

turned_off: Set[str] = set()  # what the program has used of it
_autocast: Set[str] = set()  # types in which it has computed
unprovable: Set[str] = set()  # why its steps can't be proven


def install(seed: int) -> None:
    """Seed the generators, and turn off what differs between ranks."""

    def seed_numpy(module: Any) -> None:
        module.seed(seed % (1 << 32))

    random.seed(seed)
    on_import(
        {
            "torch": lambda module: module.manual_seed(seed),
            "numpy.random": seed_numpy,
            "torch.nn.functional": _change_functions,
            "torch.amp.autocast_mode": _change_autocast,
            "torch.nn.modules.rnn": _change_recurrent,
            "torch.nn.modules.batchnorm": _change_batch_norm,
        }
    )


def drawn() -> int:
    """Return a number that changes when the program draws a random number."""
    states: Dict[str, Any] = {"random": random.getstate()}
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy.random")
    if torch is not None:
        states["torch"] = bytes(torch.random.get_rng_state().numpy())
    if numpy is not None:
        state = numpy.get_state()
        states["numpy"] = (state[1].tobytes(), *state[2:])
    return hash(tuple(states.values()))


def rounding(tensors: Sequence[Any]) -> float:
    """Return how far a gradient of these may be off, of its size, by what it is computed in."""
    torch: Any = sys.modules["torch"]
    types = {*_autocast, *(str(tensor.dtype) for tensor in tensors)}
    units = [_ROUNDINGS.get(name, _LEAST_ROUNDING) for name in types]
    backends = torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32
    if backends and any(tensor.is_cuda for tensor in tensors):
        units.append(_ROUNDING_OF_TF32)
    return max(units)


def _change_autocast(module: Any) -> None:
    enter = module.autocast.__enter__

    @functools.wraps(enter)
    def entered(self: Any) -> Any:
        if self._enabled:
            _autocast.add(str(self.fast_dtype))
        return enter(self)

    module.autocast.__enter__ = entered


def _change_functions(module: Any) -> None:
    names = [f"dropout{suffix}" for suffix in _DROPOUTS]
    for name in (*names, "alpha_dropout", "feature_alpha_dropout"):
        setattr(module, name, _without_dropout(getattr(module, name)))
    attend = module.scaled_dot_product_attention

    @functools.wraps(attend)
    def scaled_dot_product_attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        **named: Any,
    ) -> Any:
        if dropout_p:
            turned_off.add(DROPOUT)
        return attend(query, key, value, attn_mask, 0.0, **named)

    module.scaled_dot_product_attention = scaled_dot_product_attention


def _without_dropout(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def without(
        input: Any,  # noqa: A002  # as PyTorch names it
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
    ) -> Any:
        if training and p:
            turned_off.add(DROPOUT)
        return function(input, p, False, inplace)

    return without


def _change_recurrent(module: Any) -> None:
    for name in _RECURRENT:
        kind = getattr(module, name)
        kind.forward = _with_no_rate(kind.forward)


def _with_no_rate(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def without(self: Any, *arguments: Any, **named: Any) -> Any:
        rate = self.dropout
        if rate and self.training:
            turned_off.add(DROPOUT)
        self.dropout = 0.0
        try:
            return forward(self, *arguments, **named)
        finally:
            self.dropout = rate

    return without


def _change_batch_norm(module: Any) -> None:
    """SyncBatchNorm has a forward of its own: it computes over the batches of all ranks."""
    forward = module._BatchNorm.forward

    @functools.wraps(forward)
    def by_running(self: Any, batch: Any) -> Any:
        if not self.training:
            return forward(self, batch)
        if self.running_mean is None:
            unprovable.add("it has batch norm without running statistics")
            return forward(self, batch)
        turned_off.add(BATCH_NORM)
        self.training = False
        try:
            return forward(self, batch)
        finally:
            self.training = True

    module._BatchNorm.forward = by_running
