"""Layouts as YAML, and named layouts in files beside the notebook."""

from __future__ import annotations

import re
from pathlib import Path

from distrain_nb.errors import OptionError
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.options import changed, texts
from distrain_nb.layout.yamls import plain_yaml, yaml_texts

FOLDER = "layouts"

_NAME = re.compile(r"[\w][\w.-]*")


def written(layout: Layout) -> str:
    """The options by name, as a YAML mapping."""
    return plain_yaml(texts(layout))


def read(text: str) -> Layout:
    """Reads what `written` gives; options may also be written with dashes.

    Raises OptionError naming the option, the value and the allowed form.
    """
    options = yaml_texts(text)
    if not isinstance(options, dict) or not all(isinstance(name, str) for name in options):
        raise OptionError("a layout is a mapping of options to values, such as `on: vertex`")
    return changed(Layout(), options)


def save(layout: Layout, name: str, folder: Path | str = FOLDER) -> Path:
    """Writes `FOLDER/NAME.yaml` and gives its path. Raises OptionError for an unusable name."""
    path = _path(name, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written(layout), encoding="utf-8")
    return path


def load(name: str, folder: Path | str = FOLDER) -> Layout:
    """The layout of that name, or of that file if `name` ends in `.yaml` or `.yml`.

    Raises OptionError naming the file, and the saved layouts if there is no such file.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else _path(name, folder)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        known = ", ".join(saved(folder)) or "none yet"
        raise OptionError(f"no layout {name!r} at {path}; saved layouts: {known}") from None
    try:
        return read(text)
    except OptionError as wrong:
        raise OptionError(f"{path}: {wrong}") from None


def saved(folder: Path | str = FOLDER) -> tuple[str, ...]:
    """The names of the saved layouts, sorted."""
    return tuple(sorted(path.stem for path in Path(folder).glob("*.yaml")))


def _path(name: str, folder: Path | str) -> Path:
    if not _NAME.fullmatch(name):
        raise OptionError(
            f"{name!r} can't name a layout; use letters, digits, dots, dashes and underscores"
        )
    return Path(folder, f"{name}.yaml")
