"""Named layouts in files beside the notebook."""

from __future__ import annotations

import re
from pathlib import Path

from distrain_nb.errors import OptionError, did_you_mean

FOLDER = "layouts"

_NAME = re.compile(r"[\w][\w.-]*")


def write(text: str, name: str, folder: Path | str) -> Path:
    """Writes `FOLDER/NAME.yaml` and gives its path. Raises OptionError for an unusable name."""
    path = _path(name, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read(name: str, folder: Path | str) -> tuple[Path, str]:
    """The file of a saved layout, or one that `name` itself names by its ending, and its text.

    Raises OptionError naming the file, and the saved layouts if there is no such file.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else _path(name, folder)
    try:
        return path, path.read_text(encoding="utf-8")
    except OSError:
        known = saved(folder)
        raise OptionError(
            f"there is no layout {name!r} at {path}{did_you_mean(name, known, '.')} Saved layouts: "
            f"{', '.join(known) or 'none yet'}"
        ) from None


def saved(folder: Path | str = FOLDER) -> tuple[str, ...]:
    """The names of the saved layouts, sorted."""
    return tuple(sorted(path.stem for path in Path(folder).glob("*.yaml")))


def _path(name: str, folder: Path | str) -> Path:
    if not _NAME.fullmatch(name):
        raise OptionError(
            f"invalid name {name!r} for a layout: expected letters, digits, dots, dashes and "
            "underscores"
        )
    return Path(folder, f"{name}.yaml")
