"""A registry's JSON documents: read with errors that name what is damaged, and written in one
spelling."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from distrain_nb.errors import ImageError, shown

T = TypeVar("T")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CALLED = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}


def read_document(data: bytes, where: str) -> dict[str, Any]:
    """Return the object that `data` holds. Raises ImageError if none, or one that JSON can't
    say."""
    try:
        document = json.loads(data)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ImageError(f"{where} doesn't hold a JSON document, so it is not a container image.")
    return document


def part(of: Any, name: str, kind: type[T], where: str) -> T:
    """Return a field of a JSON document. Raises ImageError if it is missing or of another type."""
    value = _object(of, where).get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise damaged(where, f"{name} is {shown(value)} and not {_CALLED[kind]}")
    return value


def texts_at(of: Any, name: str, where: str) -> list[str]:
    """Return a list of texts, empty where it is null or missing. Raises ImageError for anything
    else."""
    members = optional(of, name, list, where)
    for member in members:
        if not isinstance(member, str) or "\0" in member:
            raise damaged(where, f"{name} has {shown(member)} in it, which is not text")
    return members


def optional(of: Any, name: str, kind: type[T], where: str) -> T:
    """Return a field as `part` does, or an empty value where it is null or missing."""
    return kind() if _object(of, where).get(name) is None else part(of, name, kind, where)


def digest(of: Any, where: str) -> str:
    """Return the `digest`, which names files here. Raises ImageError for anything but a SHA-256."""
    text = part(of, "digest", str, where)
    if not _DIGEST.fullmatch(text):
        raise damaged(where, f"digest is {shown(text)} and not sha256: with 64 digits")
    return text


def damaged(where: str, why: str) -> ImageError:
    """Make the error for a damaged image: what is wrong, and what to do."""
    return ImageError(f"cannot read {where}: its {why}. Build or push it again, or name another.")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise damaged(where, f"document has {shown(value)} where an object has to be")
    return value


def to_json(document: Mapping[str, Any]) -> bytes:
    """Write JSON in one spelling, so that equal documents have equal digests."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
