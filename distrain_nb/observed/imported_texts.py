"""The texts of the user's modules as the notebook imported or reloaded them: files may have been
edited since, of which the notebook has nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType


class _Imported(NamedTuple):
    """A module's spec, which a reload replaces, with its file's time, size and text at the first
    look after that; `surely` if the import was seen."""

    spec: object
    surely: bool
    version: tuple[int, int] | None = None
    text: bytes = b""


class ImportedTexts:
    """The texts of modules, by their names. `own_modules` gives the user's."""

    def __init__(self, own_modules: Callable[[], Iterable[tuple[str, ModuleType]]]) -> None:
        self._own_modules = own_modules
        # Of what is there already, the text that its file has now is the best there is.
        self._known = {name: _imported(module, surely=False) for name, module in own_modules()}
        self._loaded = len(sys.modules)

    def look(self) -> None:
        """Keep the texts of modules that have been imported or reloaded since the last look."""
        loaded, known = len(sys.modules), self._known
        if loaded != self._loaded:
            self._loaded = loaded
            modules = dict(self._own_modules())
        else:  # a cell has hundreds of statements, and few import something
            modules = {name: sys.modules[name] for name in known.keys() & sys.modules.keys()}
        for name, module in modules.items():
            spec = getattr(module, "__spec__", None)
            if name not in known or known[name].spec is not spec:
                known[name] = _imported(module, surely=True)

    def is_known(self, name: str) -> bool:
        """Return whether the text is surely known of which a module was made."""
        return name in self._known and self._known[name].surely

    def edited(self) -> dict[Path, bytes]:
        """Return the texts of modules whose files have another one by now, by the files."""
        self.look()
        texts = {}
        for name, imported in self._known.items():
            module = sys.modules.get(name)
            if not imported.version or getattr(module, "__spec__", None) is not imported.spec:
                continue
            file = Path(str(getattr(module, "__file__", None))).absolute()
            if (
                _version(file) not in (None, imported.version)
                and file.read_bytes() != imported.text
            ):
                texts[file] = imported.text
        return texts


def _imported(module: ModuleType, *, surely: bool) -> _Imported:
    spec, file = getattr(module, "__spec__", None), Path(str(getattr(module, "__file__", None)))
    version = _version(file)
    return _Imported(spec, surely, version, file.read_bytes() if version else b"")


def _version(file: Path) -> tuple[int, int] | None:
    """Return a file's time and size; None where it is gone."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
