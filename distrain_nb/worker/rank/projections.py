"""Tensors as a few numbers each, which are equal where the tensors are: no copy, no random draw.

A tensor becomes the projection of at most `MOST_SAMPLES` of its elements on a fixed direction, and
their norm, which says how large a difference between two projections is. Nothing of it can be
seen by the program: no gradient, no mode of PyTorch, no draw from its generators.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Dict, List, Sequence, Tuple

from distrain_nb.worker.facts.record import packed

MOST_SAMPLES = 256
MOST_ROW_SAMPLES = 128
_GOLDEN = 0.6180339887498949

_MOST_LAYOUTS = 8

_directions: Dict[Tuple[int, str], Any] = {}
_layouts: Dict[Tuple[Tuple[int, ...], str], Tuple[Any, Any]] = {}


def projections(tensors: Sequence[Any]) -> str:
    """Return projection and norm of each tensor, as float32 in base64; NaN for those without."""
    torch: Any = sys.modules["torch"]
    with torch.no_grad(), _unobserved():
        samples = [_sample(torch, tensor) for tensor in tensors]
        present = [sample for sample in samples if sample is not None]
        rows = iter(_rows(torch, present)) if present else iter(())
        empty = (math.nan, math.nan)
        pairs = [next(rows) if sample is not None else empty for sample in samples]
        return packed([number for pair in pairs for number in pair])


def row_projections(tensors: Sequence[Any], count: int) -> List[float]:
    """Return a number for each of the `count` rows that all these tensors have in common."""
    torch: Any = sys.modules["torch"]
    with torch.no_grad(), _unobserved():
        total = torch.zeros(count, dtype=torch.float64, device="cpu")
        for tensor in tensors:
            rows = tensor.detach().reshape(count, -1)
            stride = max(1, rows.shape[1] // MOST_ROW_SAMPLES)
            rows = rows[:, ::stride][:, :MOST_ROW_SAMPLES].to(torch.float64)
            total += rows @ _direction(torch, rows.shape[1], rows.device)
        return [float(number) for number in total.to(torch.float32).tolist()]


def _unobserved() -> Any:
    """Return a context in which no mode of the program sees what is computed."""
    from torch.utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()


def _sample(torch: Any, tensor: Any) -> Any:
    """Return some elements of a tensor as a vector; None where it has none to read."""
    if tensor is None or tensor.layout is not torch.strided or tensor.is_meta:
        return None
    flat = tensor.detach()
    if flat.is_complex():
        flat = torch.view_as_real(flat)
    count = flat.numel()
    if not count:
        return None
    stride = max(1, count // MOST_SAMPLES)
    sample = flat.reshape(-1)[: stride * MOST_SAMPLES : stride]
    return sample if flat.dtype in (torch.float32, torch.float64) else sample.to(torch.float32)


def _rows(torch: Any, samples: Sequence[Any]) -> List[List[float]]:
    """Return projection and norm of each vector, in two sums for all of a device."""
    device = samples[0].device
    together = torch.cat([sample.to(device) for sample in samples]).to(torch.float64)
    direction, owners = _layout(torch, tuple(map(len, samples)), device)
    sums = torch.zeros(2, len(samples), dtype=torch.float64, device=device)
    sums[0].index_add_(0, owners, together * direction)
    sums[1].index_add_(0, owners, together.square_())
    sums[1].sqrt_()
    return [list(pair) for pair in sums.T.cpu().tolist()]


def _layout(torch: Any, lengths: Tuple[int, ...], device: Any) -> Tuple[Any, Any]:
    """Return the directions of vectors of these lengths, one after the other, and of each element
    the number of its vector."""
    key = (lengths, str(device))
    if key not in _layouts:
        direction = torch.cat([_direction(torch, length, device) for length in lengths])
        owners = torch.arange(len(lengths), device=device)
        counts = torch.tensor(lengths, device=device)
        if len(_layouts) == _MOST_LAYOUTS:
            _layouts.clear()
        _layouts[key] = (direction, owners.repeat_interleave(counts))
    return _layouts[key]


def _direction(torch: Any, length: int, device: Any) -> Any:
    """Return a fixed vector with elements between -1 and 1, of either sign."""
    key = (length, str(device))
    if key not in _directions:
        numbers = [2.0 * ((n * _GOLDEN + 0.25) % 1.0) - 1.0 for n in range(1, length + 1)]
        _directions[key] = torch.tensor(numbers, dtype=torch.float64, device=device)
    return _directions[key]
