"""The numbers and texts in an object: what is the same where it is made again."""

from __future__ import annotations

import re
from argparse import Namespace
from collections import deque
from itertools import islice
from types import SimpleNamespace
from typing import Any, Deque, Dict, Iterable, Tuple

from distrain_nb.worker.fingerprint import BY_USE, OF_THE_WORLD, dict_of, key_of, text_of

_MOST_PARTS, _MOST_ITEMS, _MOST_TEXT = 100, 50, 4096
_COLLECTIONS = (list, tuple, set, frozenset, deque)
_MEANT_TO_DIFFER = rf"\.({'|'.join(sorted(OF_THE_WORLD | BY_USE))})\b"


def is_plain_object(obj: Any) -> bool:
    """Return whether an object is a collection, or one with attributes that its user sets."""
    return (
        isinstance(obj, (*_COLLECTIONS, dict, Namespace, SimpleNamespace))
        or type(obj).__module__ == "__main__"
    )


def plain_parts(name: str, obj: Any) -> Dict[str, str]:
    """Return the texts of an object's parts by their paths; of many only the first. It takes some
    hundred microseconds at most."""
    texts: Dict[str, str] = {}
    waiting: Deque[Tuple[str, Any]] = deque([(name, obj)])
    visited = set()
    while waiting and len(texts) < _MOST_PARTS:
        path, part = waiting.popleft()
        if hasattr(type(part), "__len__") and is_plain_object(part):
            texts[f"len({path})"] = text_of(len(part)) or ""
        elif not isinstance(part, (str, bytes)) or len(part) < _MOST_TEXT:
            text = text_of(part)
            if text is not None:
                texts[path] = text
        if id(part) not in visited and is_plain_object(part):
            visited.add(id(part))
            waiting.extend(islice(_inside(path, part), max(0, _MOST_PARTS - len(waiting))))
    differs = re.compile(_MEANT_TO_DIFFER).search
    return {path: text for path, text in texts.items() if not differs(path)}


def _inside(path: str, obj: Any) -> Iterable[Tuple[str, Any]]:
    if isinstance(obj, (set, frozenset)):
        if len(obj) <= _MOST_ITEMS:
            yield f"the items of {path}", {key_of(part) for part in obj}
    elif isinstance(obj, _COLLECTIONS):
        yield from ((f"{path}[{n}]", part) for n, part in enumerate(islice(obj, _MOST_ITEMS)))
    elif isinstance(obj, dict):
        items = ((key_of(key), part) for key, part in islice(obj.items(), _MOST_ITEMS))
        yield from ((f"{path}[{key}]", part) for key, part in items if key)
    attributes = islice(dict_of(obj).items(), _MOST_ITEMS)
    yield from ((f"{path}.{name}", part) for name, part in attributes)
