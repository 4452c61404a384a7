"""Named layouts in files beside the notebook."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from distrain_nb.config import path_named, text_named
from distrain_nb.errors import OptionError, did_you_mean, shown
from distrain_nb.worker.files.disk import replace_file

FOLDER = "layouts"

_NAME = re.compile(r"[\w][\w.-]*")


def write(text: str, name: str, folder: Path | str) -> Path:
    """Write `FOLDER/NAME.yaml` and gives its path. Raises OptionError for an unusable name, and
    where it can't be written; what was there before stays then."""
    path = _path(name, folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(Path(os.path.realpath(path)), text.encode())
    except OSError as error:
        raise OptionError(f"can't write the layout {path}: {error.strerror}") from None
    return path


def read(name: str, folder: Path | str) -> tuple[Path, str]:
    """Return the file of a saved layout, or one that `name` itself names by its ending, and its
    text.

    Raises OptionError naming the file, and the saved layouts if there is no such file.
    """
    named = name if name.endswith((".yaml", ".yml")) else str(_path(name, folder))
    try:
        path = path_named(named)
        if path.exists():
            return path, text_named(named)
    except OptionError as error:
        raise OptionError(f"can't read the layout {error}") from None
    names = saved(folder)
    raise OptionError(
        f"there is no layout {name!r} at {path}{did_you_mean(name, names, '.')} Saved layouts: "
        f"{', '.join(names) or 'none yet'}"
    )


def saved(folder: Path | str = FOLDER) -> tuple[str, ...]:
    """Return the names of the saved layouts, sorted."""
    return tuple(sorted(path.stem for path in Path(folder).glob("*.yaml")))


def _path(name: str, folder: Path | str) -> Path:
    if not _NAME.fullmatch(name):
        raise OptionError(
            f"invalid name {shown(name)} for a layout: expected letters, digits, dots, dashes and "
            "underscores"
        )
    return Path(folder, f"{name}.yaml")


def plain_yaml(texts: Mapping[str, str | list[str]]) -> str:
    """Return texts, or lists of them, by name as YAML with as few quotes as `yaml_texts` needs to
    read them back."""
    return _dumped(dict(texts), plain=True)


def data_yaml(value: object) -> str:
    """Return the value as YAML for other programs: numbers are numbers, and `"1.10"` is quoted."""
    return _dumped(value, plain=False)


def _dumped(value: object, *, plain: bool) -> str:
    import yaml

    dumper = _dumper(plain)
    return yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1000)


@lru_cache(maxsize=2)
def _dumper(plain: bool) -> Any:
    import yaml

    class Dumper(yaml.SafeDumper):
        if plain:
            yaml_implicit_resolvers = {}

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ARG002
            return super().increase_indent(flow, False)

    return Dumper
