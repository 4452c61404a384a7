"""Values that start TensorFlow's runtime when a rank makes them."""

from __future__ import annotations

import sys
from typing import Any

_MOST_PARTS = 1_000


def starts_tensorflow(value: object) -> bool:
    """Return whether a value is, or holds, a tensor, variable, dataset or model of TensorFlow.

    Looks into containers, at their first parts; calls nothing of the value's own.
    """
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return False
    kinds = tuple(_kinds(tensorflow))
    rest, parts = [value], 0
    while rest and parts < _MOST_PARTS:
        part, parts = rest.pop(), parts + 1
        if isinstance(part, kinds):
            return True
        if type(part) is dict:
            rest += list(part.values())[:_MOST_PARTS]
        elif type(part) in (list, tuple, set):
            rest += list(part)[:_MOST_PARTS]  # type: ignore[call-overload]
    return False


def _kinds(tensorflow: Any) -> list[type]:
    kinds = [
        tensorflow.Tensor,
        tensorflow.Variable,
        tensorflow.SparseTensor,
        tensorflow.RaggedTensor,
        tensorflow.Module,
        tensorflow.data.Dataset,
    ]
    keras = sys.modules.get("keras")
    kinds += [keras.layers.Layer] if keras else []
    return [kind for kind in kinds if isinstance(kind, type)]
