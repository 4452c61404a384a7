"""JSON files of a run's folder as dataclasses, whichever version of the package wrote them.

A field that the class doesn't have is ignored, and one that the file doesn't have gets its default,
so that versions may differ between a kernel, a server, a fork server and a carrier.
"""

from __future__ import annotations

import json
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Optional,
    Tuple,
    Type,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

Part = TypeVar("Part")
Reader = Callable[[Any, str], Any]
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
    values = {}
    for name, read_value, is_needed in _readers(kind):  # type: ignore[arg-type]
        if name in raw:
            values[name] = read_value(raw[name], name)
        elif is_needed:
            raise ValueError(f"{kind.__name__} has no {name!r}")
    return kind(**values)


# How fields are read is worked out once a type: the files of a run are read many times a second.


@lru_cache(maxsize=None)
def _readers(kind: Any) -> Tuple[Tuple[str, Reader, bool], ...]:
    """Return the fields of a dataclass: the name, what reads it, whether it has no default."""
    hints = get_type_hints(kind)
    return tuple(
        (
            field.name,
            _reader(hints[field.name]),
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(kind)
    )


@lru_cache(maxsize=None)
def _reader(kind: Any) -> Reader:
    """Return what reads a value of a type from JSON, called with the field's name."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return lambda raw, name: raw  # noqa: ARG005
    if kind in _PLAIN:
        return partial(_plain, kind, _PLAIN[kind])
    if origin in _UNIONS:
        (only,) = (value for value in inner if value is not type(None))
        read_value = _reader(only)
        return lambda raw, name: None if raw is None else read_value(raw, name)
    if is_dataclass(kind):
        return lambda raw, name: _decode(kind, raw)  # type: ignore[arg-type]  # noqa: ARG005
    if origin in (tuple, list):
        return partial(_sequence, origin, _reader(inner[0]))
    if origin is dict:
        return partial(_mapping, _reader(inner[1]))
    return partial(_member, kind)


def _plain(kind: Any, accepted: Any, raw: Any, name: str) -> Any:
    if isinstance(raw, accepted) and (kind is bool) == isinstance(raw, bool):
        return kind(raw)
    raise ValueError(f"{name} is {raw!r:.60}")


def _sequence(kind: Any, read_value: Reader, raw: Any, name: str) -> Any:
    if isinstance(raw, list):
        return kind(read_value(value, name) for value in raw)
    raise ValueError(f"{name} is {raw!r:.60}")


def _mapping(read_value: Reader, raw: Any, name: str) -> Any:
    if isinstance(raw, dict):
        return {key: read_value(value, f"{name}.{key}") for key, value in raw.items()}
    raise ValueError(f"{name} is {raw!r:.60}")


def _member(kind: Any, raw: Any, name: str) -> Any:
    """Return a member of an enumeration."""
    if isinstance(raw, str):
        return kind(raw)
    raise ValueError(f"{name} is {raw!r:.60}")
