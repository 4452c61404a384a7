"""Datasets that Hugging Face's `datasets` has saved: tables whose rows are samples, by `pyarrow`.

`save_to_disk` writes a folder with `dataset_info.json` (the features), `state.json` (the files of
the table, in their order) and these files: streams of Arrow's IPC format.
"""

from __future__ import annotations

import importlib
import json
import os
from functools import lru_cache
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from distrain_nb.worker.packing.errors import PackingFailed, PackingRefused

INFO, STATE, SPLITS = "dataset_info.json", "state.json", "dataset_dict.json"
SCHEME = "arrow://"
CLASS = "cls"
# What reading raises where what a file says is of another shape than it should be.
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)

_FILES = ("Image", "Audio")
_BEGINNINGS = {
    b"\xff\xd8": "jpg",
    b"\x89PNG": "png",
    b"GIF8": "gif",
    b"RIFF": "wav",
    b"fLaC": "flac",
    b"OggS": "ogg",
    b"ID3": "mp3",
}


class TableCell(NamedTuple):
    """A cell of a table: the extension that it gets, where it is, its size in bytes."""

    extension: str
    place: str
    size: int


class TableColumn(NamedTuple):
    """A column: its kind among the features, `Image` or `Value`, and the extension it gives."""

    name: str
    kind: str
    extension: str


def is_saved(folder: str) -> bool:
    """Return whether a folder is a dataset that was saved. Raises PackingRefused for several of
    them."""
    splits, state, info = (os.path.join(folder, name) for name in (SPLITS, STATE, INFO))
    if os.path.exists(splits):
        names = ", ".join(_loaded(folder, SPLITS)["splits"])
        raise PackingRefused(f"{folder} has several splits: name one of their folders ({names})")
    if os.path.exists(info) and not os.path.exists(state):
        raise PackingRefused(
            f"{folder} is a cache of Hugging Face's datasets: save it first, by save_to_disk"
        )
    return os.path.exists(info)


def rows_of(folder: str) -> Iterator[List[TableCell]]:
    """Yield the rows of a saved dataset, in their order. Raises ImportError without pyarrow."""
    columns = columns_of(folder)
    for path in _paths(folder):
        for row in range(table_at(path).num_rows):
            cells = (_cell(path, row, column) for column in columns)
            yield [cell for cell in cells if cell is not None]


def columns_of(folder: str) -> List[TableColumn]:
    """Return the columns of a dataset with their extensions.

    Images and sounds get their own extensions, the first class is `cls`. Behind the name of the
    column is `txt` for strings, `bin` for bytes, `json` for all else.
    """
    table_columns: List[TableColumn] = []
    features = _loaded(folder, INFO)["features"]
    several = sum(_kind(feature) in _FILES for feature in features.values()) > 1
    classes = 0
    for name, feature in features.items():
        kind, plain = _kind(feature), _plain(name)
        if kind in _FILES:
            table_columns.append(TableColumn(name, kind, f"{plain}." if several else ""))
        elif kind == "ClassLabel":
            table_columns.append(TableColumn(name, kind, f"{plain}.{CLASS}" if classes else CLASS))
            classes += 1
        else:
            ends = {"string": "txt", "large_string": "txt", "binary": "bin"}
            end = ends.get(feature.get("dtype", "") if kind == "Value" else "", "json")
            table_columns.append(TableColumn(name, kind, f"{plain}.{end}"))
        if table_columns[-1].extension in [column.extension for column in table_columns[:-1]]:
            raise PackingFailed(f"{folder}: columns of one sample would both be {plain}")
    return table_columns


def classes_of(folder: str) -> List[str]:
    """Return the names of the first column of classes, by number."""
    features = _loaded(folder, INFO)["features"].values()
    named = (list(feature["names"]) for feature in features if _kind(feature) == "ClassLabel")
    return next(named, [])


def version_of(folder: str) -> List[Any]:
    """Return values that differ whenever the dataset does."""
    return [_loaded(folder, STATE).get("_fingerprint"), *map(os.path.getsize, _paths(folder))]


def is_cell(place: str) -> bool:
    """Return whether it is the place of a cell."""
    return place.startswith(SCHEME)


def content_of(place: str) -> bytes:
    """Return the bytes of the cell at a place."""
    path, row, name, kind = json.loads(place[len(SCHEME) :])
    content = _content(table_at(path).column(name)[row].as_py(), kind)
    assert content is not None
    return content


@lru_cache(maxsize=64)
def table_at(path: str) -> Any:
    """Return a table, mapped into memory."""
    try:
        arrow = importlib.import_module("pyarrow")
    except ImportError as missing:
        raise ImportError(
            f"to read a saved dataset, %pip install pyarrow (the extra 'datasets' has it): "
            f"{missing}"
        ) from None
    with arrow.ipc.open_stream(arrow.memory_map(path)) as reader:
        return reader.read_all()


def _cell(path: str, row: int, column: TableColumn) -> Optional[TableCell]:
    value = table_at(path).column(column.name)[row].as_py()
    content = _content(value, column.kind)
    if content is None:
        return None
    extension = column.extension
    if column.kind in _FILES:
        extension += _ending(value.get("path") or "", content)
    place = SCHEME + json.dumps([path, row, column.name, column.kind])
    return TableCell(extension, place, len(content))


def _content(value: Any, kind: str) -> Optional[bytes]:
    """Return a value as bytes of a member; None for none."""
    if value is None:
        return None
    if kind in _FILES:
        if value.get("bytes") is not None:
            return bytes(value["bytes"])
        with open(value["path"], "rb") as file:
            return file.read()
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value, default=str)).encode()


def _ending(path: str, content: bytes) -> str:
    extension = os.path.splitext(path)[1][1:].lower()
    if extension.isalnum():
        return extension
    ends = (end for start, end in _BEGINNINGS.items() if content.startswith(start))
    return next(ends, "bin")


def _kind(feature: Any) -> str:
    """Return a feature's type; lists of features have none of their own in older versions."""
    return str(feature.get("_type", "")) if isinstance(feature, dict) else ""


def _plain(name: str) -> str:
    """Return a column's name as part of an extension."""
    return "".join(character if character.isalnum() else "_" for character in name).lower()


def _paths(folder: str) -> List[str]:
    files: List[Dict[str, str]] = _loaded(folder, STATE)["_data_files"]
    return [os.path.join(folder, file["filename"]) for file in files]


@lru_cache(maxsize=8)
def _loaded(folder: str, name: str) -> Any:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)
