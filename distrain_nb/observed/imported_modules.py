"""The user's modules as the notebook imported or reloaded them.

Their files may have been edited since, of which the notebook has nothing. Their functions may have
got other defaults and attributes, of which no file tells.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType


class _Imported(NamedTuple):
    """A module's spec, which a reload replaces, with its file's time, size and text at the first
    look after that, and what its functions had; `surely` if the import was seen."""

    spec: object
    surely: bool
    version: tuple[int, int] | None
    text: bytes
    functions: dict[str, Any]


class ImportedModules:
    """What modules were, by their names. `own_modules` gives the user's."""

    def __init__(self, own_modules: Callable[[], Iterable[tuple[str, ModuleType]]]) -> None:
        self._own_modules = own_modules
        # Of what is there already, the text that its file has now is the best there is.
        self._known = {name: _imported(module, surely=False) for name, module in own_modules()}
        self._loaded = len(sys.modules)

    def look(self) -> None:
        """Keep the texts of modules that have been imported or reloaded since the last look."""
        loaded, imports = len(sys.modules), self._known
        if loaded != self._loaded:
            self._loaded = loaded
            modules = dict(self._own_modules())
        else:  # a cell has hundreds of statements, and few import something
            modules = {name: sys.modules[name] for name in imports.keys() & sys.modules.keys()}
        for name, module in modules.items():
            spec = getattr(module, "__spec__", None)
            if name not in imports or imports[name].spec is not spec:
                imports[name] = _imported(module, surely=True)

    def is_known(self, name: str) -> bool:
        """Return whether the text is surely known of which a module was made."""
        return name in self._known and self._known[name].surely

    def set_since(self, name: str) -> Iterator[tuple[str, Any]]:
        """Yield what functions of a module were given since its import, by their paths: defaults
        and attributes."""
        if self.is_known(name) and name in sys.modules:
            before = self._known[name].functions
            for path, value in _of_functions(sys.modules[name]):
                if before.get(path, before) is not value:
                    yield path, value

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
    text, functions = (file.read_bytes() if version else b""), dict(_of_functions(module))
    return _Imported(spec, surely, version, text, functions)


def _of_functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the defaults and attributes of a module's functions and of its classes' methods."""
    for name, value in [*vars(module).items()]:
        if getattr(value, "__module__", None) != module.__name__:
            continue
        inside = [*vars(value).items()] if isinstance(value, type) else []
        for path, part in ((name, value), *((f"{name}.{n}", part) for n, part in inside)):
            if type(part) is FunctionType:
                yield f"{path}.__defaults__", part.__defaults__
                yield f"{path}.__kwdefaults__", part.__kwdefaults__
                attributes = [*part.__dict__.items()]
                yield from ((f"{path}.{n}", v) for n, v in attributes if n[:2] != "__")


def _version(file: Path) -> tuple[int, int] | None:
    """Return a file's time and size; None where it is gone."""
    try:
        about = file.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size
