"""Modules beside the notebook that have been edited since a rank of a session imported them: a cell
brings their files, and they are loaded again, as by IPython's `%autoreload`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, Iterator, Tuple

from distrain_nb.worker.rank.redefinitions import Redefinitions


def reload_edited(folder: Path) -> None:
    """Load the modules again of which a folder brings another text than they were loaded from.
    Raises what their code raises."""
    edited = dict(_edited(folder))
    # A module is listed before what it imports, which has to be new first.
    for name in [name for name in reversed(list(sys.modules)) if name in edited]:
        module, file = sys.modules[name], edited[name]
        changes = Redefinitions(vars(module))
        package = [str(file.parent)] if file.name == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(
            name, str(file), submodule_search_locations=package
        )
        if spec is None or spec.loader is None:
            continue
        module.__spec__, module.__file__, module.__loader__ = spec, str(file), spec.loader
        if package is not None:
            module.__path__ = package
        spec.loader.exec_module(module)
        changes.apply()


def _edited(folder: Path) -> Iterator[Tuple[str, Path]]:
    for top, _, files in os.walk(str(folder)):
        for file in (Path(top, name) for name in files if name.endswith(".py")):
            parts = file.relative_to(folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            before: Any = getattr(sys.modules.get(name), "__file__", None)
            if before and Path(before) != file and _differ(Path(before), file):
                yield name, file


def _differ(before: Path, now: Path) -> bool:
    try:
        return before.read_bytes() != now.read_bytes()
    except OSError:  # it has been deleted with its run
        return True
