"""JSON files of a run's folder as dataclasses, whichever version of the package wrote them.

A field that the class doesn't have is ignored, and one that the file doesn't have gets its default,
so that versions may differ between a kernel, a server, a fork server and a carrier.
"""

from __future__ import annotations

import json
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import (
    Any,
    Dict,
    Optional,
    Type,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

Part = TypeVar("Part")
_UNIONS = (Union, getattr(types, "UnionType", Union))  # `Optional[str]`, and `str | None`
_PLAIN: Dict[Any, Any] = {str: str, int: int, bool: bool, float: (int, float)}


class Damaged(ValueError):
    """A file is not what its name says: says which one, and what is wrong with it."""


def read(kind: Type[Part], path: Path) -> Part:
    """Read a dataclass from a JSON file. Raises Damaged; OSError where it can't be read."""
    return decode(kind, load(path), path)


def load(path: Path) -> Dict[str, Any]:
    """Return the file's JSON object. Raises Damaged for anything else; OSError."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    if not isinstance(raw, dict):
        raise Damaged(f"{path} is damaged: expected a JSON object, got {raw!r:.60}")
    return raw


def load_texts(path: Path) -> Dict[str, str]:
    """Return the file's JSON object, whose values are strings. Raises Damaged; OSError."""
    raw = load(path)
    odd = next((name for name, value in raw.items() if not isinstance(value, str)), None)
    if odd is not None:
        raise Damaged(f"{path} is damaged: {odd} is {raw[odd]!r:.60}")
    return raw


def encode(
    part: Any,
    indent: Optional[int] = None,
    *,
    ensure_ascii: bool = True,
) -> bytes:
    """Return the dataclass as JSON. In ASCII it comes back as it was, names of files too that are
    no UTF-8; else it is for people, and what UTF-8 can't say becomes `?`."""
    text = json.dumps(_values(part), ensure_ascii=ensure_ascii, indent=indent, default=_values)
    return text.encode("utf-8", "replace")


def _values(part: Any) -> Dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in fields(part)}


def decode(kind: Type[Part], raw: Dict[str, Any], path: Path) -> Part:
    """Return the dataclass that the file's JSON object stands for, checked against its fields'
    types.

    Those may be strings, numbers, booleans, other dataclasses, enumerations of strings, and
    `Optional`, `Tuple[…, ...]`, `List` and `Dict[str, …]` of them. Raises Damaged.
    """
    try:
        return _decode(kind, raw)
    except (ValueError, OverflowError) as error:
        raise Damaged(f"{path} is damaged: {error}") from None


def _decode(kind: Type[Part], raw: Any) -> Part:
    if not isinstance(raw, dict):
        raise ValueError(f"expected a {kind.__name__}, got {raw!r:.60}")
    hints, values = _hints(kind), {}  # type: ignore[arg-type]
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in raw:
            values[field.name] = _value(hints[field.name], raw[field.name], field.name)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{kind.__name__} has no {field.name!r}")
    return kind(**values)


@lru_cache(maxsize=None)
def _hints(kind: Any) -> Dict[str, Any]:
    return get_type_hints(kind)


def _value(kind: Any, raw: Any, name: str) -> Any:
    if kind in (Any, object):
        return raw
    if kind in _PLAIN:
        if isinstance(raw, _PLAIN[kind]) and (kind is bool) == isinstance(raw, bool):
            return kind(raw)
        raise ValueError(f"{name} is {raw!r:.60}")
    origin, inner = get_origin(kind), get_args(kind)
    if origin in _UNIONS:
        (only,) = (value for value in inner if value is not type(None))
        return None if raw is None else _value(only, raw, name)
    if is_dataclass(kind):
        return _decode(kind, raw)  # type: ignore[arg-type]
    if origin in (tuple, list) and isinstance(raw, list):
        return origin(_value(inner[0], value, name) for value in raw)
    if origin is dict and isinstance(raw, dict):
        return {key: _value(inner[1], value, f"{name}.{key}") for key, value in raw.items()}
    if origin is None and isinstance(raw, str):
        return kind(raw)  # an enumeration
    raise ValueError(f"{name} is {raw!r:.60}")
