"""Batches of several ranks as one: their tensors, joined in the structure of another batch."""

from __future__ import annotations

import copy
import sys
from typing import Any, Iterator, List, Mapping, Sequence

_PLAIN = (str, bytes, int, float, bool, type(None))


class Unprovable(Exception):
    """Why a program's steps can't be compared with those of one rank."""


def leaves(batch: Any) -> List[Any]:
    """Return the tensors and plain values of a batch, in order. Raises Unprovable."""
    torch: Any = sys.modules["torch"]
    if isinstance(batch, torch.Tensor):
        return [batch.detach().clone()]
    if isinstance(batch, _PLAIN) or _is_plain(batch):
        return [batch]
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        return [leaf for part in batch for leaf in leaves(part)]
    raise Unprovable(f"its batches have objects of type {type(batch).__name__}")


def joined(ranks: Sequence[List[Any]], *, turned: bool) -> List[Any]:
    """Return the leaves of all ranks' batches as those of one; `turned` has the samples in the
    opposite order. Raises Unprovable."""
    if len(set(map(len, ranks))) > 1:
        raise Unprovable("the batches of its ranks have different parts")
    return [_joined(parts, turned) for parts in zip(*ranks)]


def rebuilt(batch: Any, parts: Iterator[Any]) -> Any:
    """Return a batch like this one with other leaves."""
    torch: Any = sys.modules["torch"]
    if isinstance(batch, torch.Tensor):
        return next(parts).to(batch.device)
    if isinstance(batch, _PLAIN) or _is_plain(batch):
        return next(parts)
    if isinstance(batch, Mapping):
        filled: Any = copy.copy(batch)
        for key in list(batch):
            filled[key] = rebuilt(batch[key], parts)
        return filled
    filled = [rebuilt(part, parts) for part in batch]
    return type(batch)(*filled) if hasattr(batch, "_fields") else type(batch)(filled)


def _is_plain(batch: Any) -> bool:
    return type(batch) in (list, tuple) and all(isinstance(part, _PLAIN) for part in batch)


def _joined(parts: Sequence[Any], turned: bool) -> Any:
    torch: Any = sys.modules["torch"]
    first = parts[0]
    if isinstance(first, torch.Tensor) and first.dim():
        shapes = ["×".join(map(str, part.shape)) for part in parts]
        if len(set(shapes)) > 1:
            shown = " and ".join(dict.fromkeys(shapes))
            raise Unprovable(f"the batches of its ranks have different shapes ({shown})")
        together = torch.cat(list(parts))
        return together.flip(0) if turned else together
    if isinstance(first, (list, tuple)):
        if len(set(map(len, parts))) > 1:
            raise Unprovable("the batches of its ranks have different lengths")
        values = [value for part in parts for value in part]
        return type(first)(values[::-1] if turned else values)
    if any(part != first for part in parts):
        raise Unprovable("its batches have numbers that differ between ranks")
    return first
