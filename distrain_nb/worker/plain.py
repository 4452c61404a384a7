"""The numbers and texts in an object: what is the same where it is made again.

No method of the object's own class is called: the notebook's `__len__` or `items` may ask for the
rank, take long or print, and nobody wrote that call. `isinstance` would ask `__class__`.
"""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections import deque
from itertools import islice
from types import SimpleNamespace
from typing import Any, Deque, Dict, Iterable, Tuple

from distrain_nb.worker.fingerprint import BY_USE, OF_THE_WORLD, dict_of, digest, key_of, text_of

_MOST_PARTS, _MOST_ITEMS, _MOST_TEXT, _MOST_NUMBERS = 100, 50, 4096, 64
_OF_MODELS = {"_parameters", "_buffers"}  # which travel
_SETS = (set, frozenset)
_SEQUENCES = (list, tuple, deque)
_COLLECTIONS = (*_SETS, *_SEQUENCES, dict)
_MEANT_TO_DIFFER = rf"\.({'|'.join(sorted(OF_THE_WORLD | BY_USE))})\b"


def is_plain_object(obj: Any) -> bool:
    """Return whether an object is a collection, or one with attributes that its user sets."""
    cls = type(obj)
    return issubclass(cls, (*_COLLECTIONS, Namespace, SimpleNamespace)) or (
        cls.__module__ == "__main__"
    )


def plain_parts(name: str, obj: Any) -> Dict[str, str]:
    """Return the texts of an object's parts by their paths, empty for what has none; of many only
    the first. It takes some hundred microseconds at most."""
    texts: Dict[str, str] = {}
    waiting: Deque[Tuple[str, Any]] = deque([(name, obj)])
    visited = set()
    while waiting and len(texts) < _MOST_PARTS:
        path, part = waiting.popleft()
        base = _collection(part)
        if base is not None:
            texts[f"len({path})"] = text_of(base.__len__(part)) or ""
        elif type(part) not in (str, bytes) or len(part) < _MOST_TEXT:
            text = text_of(part) or _text_of_array(part)
            if text or not is_plain_object(part):
                texts[path] = text
        if id(part) not in visited and is_plain_object(part):
            visited.add(id(part))
            waiting.extend(islice(_inside(path, part), max(0, _MOST_PARTS - len(waiting))))
    differs = re.compile(_MEANT_TO_DIFFER).search
    return {path: text for path, text in texts.items() if not differs(path)}


def _text_of_array(obj: Any) -> str:
    """Return what tells of an array or tensor, by some of its numbers; empty for others. Weights
    travel."""
    cls, torch = type(obj), sys.modules.get("torch")
    if cls.__module__ == "numpy" and cls.__name__ == "ndarray" and not obj.dtype.hasobject:
        flat, count = obj.reshape(-1), obj.size
    elif cls is getattr(torch, "Tensor", None) and obj.layout is torch.strided and obj.is_cpu:  # type: ignore[union-attr]
        flat, count = obj.detach().reshape(-1), obj.numel()
    else:
        return ""
    numbers = flat[:: max(1, count // _MOST_NUMBERS)].tolist()
    return f"{cls.__name__} of {obj.dtype}, {tuple(obj.shape)}: {digest(repr(numbers))}"


def _collection(obj: Any) -> Any:
    """Return the class of Python's own that an object is a collection by; None for another."""
    return next((base for base in _COLLECTIONS if issubclass(type(obj), base)), None)


def _inside(path: str, obj: Any) -> Iterable[Tuple[str, Any]]:
    base = _collection(obj)
    if base in _SETS:
        if base.__len__(obj) <= _MOST_ITEMS:
            yield f"the items of {path}", {key_of(part) for part in base.__iter__(obj)}
    elif base in _SEQUENCES:
        parts = enumerate(islice(base.__iter__(obj), _MOST_ITEMS))
        yield from ((f"{path}[{n}]", part) for n, part in parts)
    elif base is dict:
        items = ((key_of(key), part) for key, part in islice(dict.items(obj), _MOST_ITEMS))
        yield from ((f"{path}[{key}]", part) for key, part in items if key)
    attributes = islice(dict_of(obj).items(), _MOST_ITEMS)
    yield from ((f"{path}.{name}", part) for name, part in attributes if name not in _OF_MODELS)
