"""Reads rows of the fact tables, from their files and from a user's values, into their types."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    Row = TypeVar("Row", bound=NamedTuple)

DATA = Path(__file__).parent / "data"


def _number(text: str) -> float | None:
    if not text:
        return None
    value = float(text)
    return int(value) if value.is_integer() else value


_CONVERT: dict[str, Callable[[str], Any]] = {
    "str": str,
    "bool": lambda text: text == "yes",
    "Int": lambda text: int(text) if text else None,
    "Float": _number,
    "Ints": lambda text: tuple(int(item) for item in text.split(";")) if text else (),
    "Texts": lambda text: tuple(text.split(";")) if text else (),
}


def read(name: str, kind: type[Row]) -> Iterator[Row]:
    """Yield the rows of `data/NAME.csv`, whose header must be the fields of `kind`."""
    convert = _converters(kind)
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        if next(lines) != list(kind._fields):
            raise ValueError(f"{name}.csv: the header is not the fields of {kind.__name__}")
        for line in lines:
            yield kind._make(turn(cell) for turn, cell in zip(convert, line, strict=True))


def row_from(kind: type[Any], values: Mapping[str, object], base: Any = None) -> Any:
    """Return a row from values by column name, over an existing row or over empty cells.

    Raises ValueError naming a column that the table lacks, or a value that doesn't fit its column.
    """
    unknown = sorted(set(values) - set(kind._fields))
    if unknown:
        raise ValueError(f"no column {unknown[0]!r}; the columns are {', '.join(kind._fields)}")
    cells = {} if base is None else base._asdict()
    for column, turn in zip(kind._fields, _converters(kind), strict=True):
        if column in values or base is None:
            cells[column] = _turned(column, turn, values.get(column))
    return kind(**cells)


def _converters(kind: type[Any]) -> tuple[Callable[[str], Any], ...]:
    # NamedTuple wraps the postponed annotations of the row types
    notes: dict[str, Any] = kind.__annotations__
    return tuple(_CONVERT[getattr(note, "__forward_arg__", note)] for note in notes.values())


def _turned(column: str, turn: Callable[[str], Any], value: object) -> Any:
    try:
        return turn(_cell(value))
    except ValueError:
        raise ValueError(f"invalid {value!r} in the column {column!r}") from None


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ";".join(_cell(part) for part in value)
    return "" if value is None else str(value)
