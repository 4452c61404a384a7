"""Metadata of Hugging Face's ImageFolder and AudioFolder: `metadata.csv` or `metadata.jsonl`.

Each row describes the file that its `file_name` names, from the folder of the table on.
"""

from __future__ import annotations

import csv
import io
import json
import posixpath
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from distrain_nb.worker.packing.errors import PackingFailed, PackingRefused
from distrain_nb.worker.packing.sources import SourceFile
from distrain_nb.worker.packing.storage import chunks
from distrain_nb.worker.packing.tables import DAMAGED

TABLES = ("metadata.csv", "metadata.jsonl")
FILE_NAME = "file_name"
_PARQUET = "metadata.parquet"


def separate_metadata(files: Sequence[SourceFile]) -> Tuple[List[SourceFile], Dict[str, str]]:
    """Return the files without tables of metadata, and rows as JSON by the names of their files.

    A table without the column `file_name` is a file as any other. Raises PackingRefused for a table
    in Parquet, PackingFailed for rows that can't be read or are of no file.
    """
    samples: List[SourceFile] = []
    rows: Dict[str, str] = {}
    names = {file.name for file in files}
    for file in files:
        base = posixpath.basename(file.name)
        if base == _PARQUET:
            raise PackingRefused(f"{file.place}: write it as {' or '.join(TABLES)}")
        table = _rows_of(file) if base in TABLES else None
        if table is None:
            samples.append(file)
            continue
        for name, row in table:
            if name not in names or name in rows:
                problem = "there are two rows of" if name in rows else "there is no file"
                raise PackingFailed(f"{file.place}: {problem} {name}")
            rows[name] = json.dumps(row)
    return samples, rows


def _rows_of(file: SourceFile) -> Optional[List[Tuple[str, Dict[str, Any]]]]:
    """Return rows with the names of their files; None for a table that names none."""
    rows: List[Tuple[str, Dict[str, Any]]] = []
    try:
        text = b"".join(chunks(file.place)).decode("utf-8-sig")
        for row in _in_csv(text) if file.name.endswith(".csv") else _in_lines(text):
            if not rows and FILE_NAME not in row:
                return None
            name = posixpath.join(posixpath.dirname(file.name), row.pop(FILE_NAME))
            rows.append((posixpath.normpath(name), row))
    except (*DAMAGED, csv.Error) as error:
        raise PackingFailed(f"{file.place}, row {len(rows) + 1} can't be read: {error}") from None
    return rows or None


def _in_csv(text: str) -> Iterator[Dict[str, Any]]:
    for row in csv.DictReader(io.StringIO(text, newline="")):
        if None in row:
            raise ValueError("it has more cells than the first line")
        yield row


def _in_lines(text: str) -> Iterator[Dict[str, Any]]:
    return (json.loads(line) for line in text.splitlines() if line.strip())
