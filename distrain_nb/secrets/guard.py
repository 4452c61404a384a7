"""The guard before anything leaves this machine: no file, value or variable that is a secret.

It stands where a program has been written down for its journey, whichever way it then goes: in an
image, an archive, a package, or as files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.errors import CheckFailed
from distrain_nb.findings import Finding, Severity
from distrain_nb.secrets.forms import secrets_by_context
from distrain_nb.secrets.names import is_secret_by_name, is_secret_name, kind_of_file
from distrain_nb.secrets.prefixes import prefixed
from distrain_nb.worker.rank.program import SOURCE_MAP, read_entry_point, read_source_map
from distrain_nb.worker.rank.values import ARRAYS, INDEX, OBJECTS, VALUES_FOLDER, Entry, index_of

if TYPE_CHECKING:
    from distrain_nb.secrets.prefixes import SecretMatch

# A variable with this prefix names a secret of a cloud's store, and is none itself.
STORED = "secret://"
# Stands where a value isn't shown.
HIDDEN = "***"
_READ_AT_MOST = 16 << 20
_BEGINNING = 8 << 10
_SECRET = "a secret"
# A pickle has it before a short text, where it may look like a letter of it.
_LENGTH_OF_TEXT = re.compile(rb"\x8c[\x10-\xff]", re.DOTALL)
_WIDE_TEXT = re.compile(rb"(?:[!-~]\0\0\0){16,}")


@dataclass(frozen=True)
class _Secret:
    """A secret that was found: `name` is what lets it pass, `where` the place in words."""

    name: str
    where: str
    kind: str


def refuse_secrets(
    folder: Path, environment: Mapping[str, str] | None = None, allowed: Collection[str] = ()
) -> None:
    """Raise CheckFailed, with a finding for each, if something that looks like a secret is there.

    `folder` is what `Program.write` wrote, `environment` the variables of its job.
    `allowed` are names of what is let through: paths below `folder`, values that the program
    captured, or variables.
    """
    secrets = [*_in_files(folder), *_in_environment(environment or {})]
    findings = tuple(_finding(secret) for secret in secrets if secret.name not in allowed)
    if findings:
        raise CheckFailed(findings)


def refuse_secret_files(
    data: str, files: Mapping[str, Path], allowed: Collection[str] = ()
) -> None:
    """Raise CheckFailed, with a finding for each, for files of the data of that name that look
    like secrets: by their names, and where they are text by what is in them.

    `files` are by their paths below the data's folder; in `allowed` they have the data's name
    before it, `NAME/PATH`.
    """
    findings = tuple(
        Finding(
            "secret",
            Severity.ERROR,
            f"--data {data}, {secret.where}",
            f"looks like {secret.kind}, and anyone who may read the bucket can read it. Take it "
            f"out of the data, or allow it with --allow-secret {data}/{secret.name}.",
        )
        for name, path in files.items()
        for secret in _in_file(name, path, texts_only=True)
        if f"{data}/{secret.name}" not in allowed
    )
    if findings:
        raise CheckFailed(findings)


def refuse_secret_texts(texts: Mapping[str, Iterable[str]], allowed: Collection[str] = ()) -> None:
    """Raise CheckFailed, with a finding for each option, for texts of a request that look like
    secrets. `texts` are by the option that they are of; in `allowed` it has no dashes."""
    findings = tuple(
        _finding(_Secret(option, f"--{option.replace('_', '-')}", match.kind))
        for option, values in texts.items()
        if option not in allowed
        and (match := _match("\n".join(values).encode(errors="replace"), ""))
    )
    if findings:
        raise CheckFailed(findings)


def secret_in_file(name: str, path: Path) -> str | None:
    """Say what looks like a secret in a file that is to be called that, and where; None if nothing
    does. Names of stored values count as names of variables do."""
    stored = path.name if (path.parent / INDEX).is_file() else ""
    if stored == OBJECTS:
        secret = next(_in_values(path), None)
    else:
        secret = next(_in_arrays(name, path) if stored == ARRAYS else _in_file(name, path), None)
    return f"{secret.where}: looks like {secret.kind}" if secret else None


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable looks like a secret, by its name or its value."""
    if not value or value.startswith(STORED):
        return False
    by_content = _match(value.encode(errors="replace"), ".py")
    return is_secret_by_name(name, value) or by_content is not None


def _in_files(folder: Path) -> Iterator[_Secret]:
    main = read_entry_point(folder).file
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name == SOURCE_MAP:
            continue
        if name == main:
            yield from _in_main(folder, main)
        elif name == f"{VALUES_FOLDER}/{OBJECTS}":
            yield from _in_values(path)
        elif name == f"{VALUES_FOLDER}/{ARRAYS}":
            yield from _in_arrays(name, path)
        else:
            yield from _in_file(name, path)


def _in_file(name: str, path: Path, *, texts_only: bool = False) -> Iterator[_Secret]:
    if kind := kind_of_file(name):
        yield _Secret(name, name, kind)
    elif texts_only and not _is_text(path):
        return
    elif match := _match(data := _head(path), path.suffix.lower()):
        yield _Secret(name, f"{name}, line {_line(data, match.start)}", match.kind)


def _in_main(folder: Path, name_of_main: str) -> Iterator[_Secret]:
    """Yield the cell and definitions by the names and lines of their cells; between them stand
    short values of the notebook, as `NAME = VALUE`."""
    data = (folder / name_of_main).read_bytes()
    kinds = {_line(data, match.start): match.kind for match in _matches(data, ".py")}
    segments = read_source_map(folder) if (folder / SOURCE_MAP).exists() else []
    for number, text in enumerate(data.decode().split("\n"), 1):
        segment = next((s for s in segments if s.first <= number <= s.last), None)
        name, equals, value = text.partition(" = ")
        if segment is None and equals:
            if kind := kinds.get(number) or _kind_by_name(name, value):
                yield _Secret(name, name, kind)
        elif kind := kinds.get(number):
            where = f"{name_of_main}, line {number}"
            if segment is not None:
                where = f"{segment.label}, line {segment.line + number - segment.first}"
            yield _Secret(name_of_main, where, kind)


def _in_values(path: Path) -> Iterator[_Secret]:
    """Yield the values that the program carries, by their names in the notebook."""
    data = _LENGTH_OF_TEXT.sub(b"\n\n", _head(path))
    entries = index_of(path.parent).entries
    kinds = {entry.name: _SECRET for entry in entries if _is_secret_text(entry)}
    for match in chain(_matches(data, ".py"), prefixed(data, bounded=False)):
        before = [entry for entry in entries if entry.offset <= match.start]
        kinds[max(before, key=lambda entry: entry.offset).name] = match.kind
    yield from (_Secret(name, name, kind) for name, kind in kinds.items())


def _in_arrays(name: str, path: Path) -> Iterator[_Secret]:
    """Yield the bytes and texts of the arrays that stand beside the values."""
    match = min(prefixed(_texts_in(_head(path)), bounded=False), default=None)
    if match is not None:
        yield _Secret(name, f"{name}, an array of texts", match.kind)


def _texts_in(arrays: bytes) -> bytes:
    """Return the bytes of arrays, and behind them those of NumPy's texts, which have four for a
    sign."""
    wide = (match[0][::4] for match in _WIDE_TEXT.finditer(arrays))
    return b"\n".join((arrays, *wide))


def _in_environment(environment: Mapping[str, str]) -> Iterator[_Secret]:
    for name, value in environment.items():
        if is_secret(name, value):
            match = _match(value.encode(errors="replace"), ".py")
            yield _Secret(name, name, match.kind if match else _SECRET)


def _kind_by_name(name: str, value: str) -> str | None:
    """Return the kind of a value as Python writes it: only texts are secrets."""
    is_text = value[:1] in "'\"" and len(value) > 2
    return _SECRET if is_text and is_secret_by_name(name, value) else None


def _is_secret_text(entry: Entry) -> bool:
    return entry.type == "str" and is_secret_name(entry.name)


def _is_text(path: Path) -> bool:
    """Return whether a file's beginning has no byte 0, by which git tells texts too."""
    with path.open("rb") as file:
        return b"\0" not in file.read(_BEGINNING)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_READ_AT_MOST)


def _matches(data: bytes, suffix: str) -> Iterator[SecretMatch]:
    return chain(prefixed(data), secrets_by_context(data, suffix))


def _match(data: bytes, suffix: str) -> SecretMatch | None:
    """Return the first one in the text."""
    return min(_matches(data, suffix), default=None)


def _line(data: bytes, start: int) -> int:
    return data.count(b"\n", 0, start) + 1


def _finding(secret: _Secret) -> Finding:
    return Finding(
        "secret",
        Severity.ERROR,
        secret.where,
        f"looks like {secret.kind}, and anyone who may read the job's code or settings can read "
        f"it. Leave it out, or allow it with --allow-secret {secret.name}.",
    )
