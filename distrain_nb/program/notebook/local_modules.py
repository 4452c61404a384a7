"""The user's own code: the notebook, and modules beside it, which must travel as files."""

from __future__ import annotations

import ast
import sys
import sysconfig
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.abc import FileLoader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import decode_source
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from distrain_nb.program.notebook.cells import Cell
from distrain_nb.program.notebook.history import ExecutionHistory, history
from distrain_nb.program.python.imports import ImportedModule, imports_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType

Kind = Literal["stdlib", "installed", "local", "unknown"]
_SKIPPED = {"__pycache__", ".git", ".hg", ".svn", ".ipynb_checkpoints", ".mypy_cache", ".venv"}
_OWN = "distrain_nb"
_INSTALLED = {
    Path(sysconfig.get_path(name)).absolute()
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
}


@dataclass(frozen=True)
class ModuleLocation:
    """Where a top-level module comes from; for local ones the files to carry, by path."""

    kind: Kind
    files: tuple[tuple[str, Path], ...] = ()


def locate(root: str, folder: Path, *, as_script: bool = False) -> ModuleLocation:
    """Return where the module of this top-level name lives, seen from a notebook in `folder`; a
    script there has what stands beside it, whatever is loaded here by that name."""
    if root in sys.stdlib_module_names or root in sys.builtin_module_names:
        return ModuleLocation("stdlib")
    if root == _OWN:
        return ModuleLocation("installed")
    # A folder without `__init__.py`, such as the one that wandb writes, yields to a package.
    beside = PathFinder.find_spec(root, [str(folder)]) if as_script else None
    spec = beside if beside and beside.has_location else _spec(root, folder)
    if spec is None:
        return ModuleLocation("unknown")
    origin = Path(spec.origin) if spec.has_location and spec.origin else None
    folders = [Path(p) for p in spec.submodule_search_locations or ()]
    home = origin or next(iter(folders), None)
    if home is None or is_installed(home.absolute()):
        return ModuleLocation("installed")
    if origin and origin.name != "__init__.py":
        return ModuleLocation("local", ((origin.name, origin),))
    files = [pair for top in folders for pair in _tree(top, sources_only=origin is None)]
    return ModuleLocation("local", tuple(files))


def _spec(root: str, folder: Path) -> ModuleSpec | None:
    loaded = None if gone_file(root) else getattr(sys.modules.get(root), "__spec__", None)
    if isinstance(loaded, ModuleSpec) and (loaded.origin or loaded.submodule_search_locations):
        return loaded
    try:
        found = PathFinder.find_spec(root, [str(folder), *sys.path])
    except (ImportError, ValueError):
        return None
    for finder in () if found else sys.meta_path:  # editable installs bring finders of their own
        find = getattr(finder, "find_spec", None)
        other = find(root, None) if find else None
        if isinstance(other, ModuleSpec):
            return other
    return found


def gone_file(module: str) -> Path | None:
    """Return the file from which the module of that name was loaded, if it is there no more."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    if not spec or not spec.has_location or not isinstance(spec.loader, FileLoader):
        return None
    file = Path(str(spec.origin)).absolute()
    return None if file.exists() else file


def is_installed(path: Path) -> bool:
    """Return whether a file belongs to Python or to an installed package."""
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    return not _INSTALLED.isdisjoint(path.parents)


def _tree(top: Path, *, sources_only: bool = False) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder, by their path from the folder that it stands in."""
    for path in sorted(top.rglob("*.py" if sources_only else "*")):
        inside = path.relative_to(top.parent)
        if path.is_file() and not _SKIPPED & set(inside.parts) and path.suffix != ".pyc":
            yield inside.as_posix(), path


@dataclass(frozen=True)
class LocalCode:
    """The local files that imports lead to, with the text in place of a file that has been edited
    since the notebook imported it, and everything that these import in turn."""

    files: dict[str, bytes | Path]
    imports: tuple[ImportedModule, ...]
    unknown: tuple[str, ...]


def follow(
    imports: Iterable[ImportedModule],
    folder: Path,
    texts: Mapping[Path, bytes] | None = None,
    *,
    as_script: bool = False,
) -> LocalCode:
    """Follow imports through local modules; `texts` are those of files that have been edited since
    the notebook imported them."""
    files: dict[str, bytes | Path] = {}
    seen: dict[str, Kind] = {}
    every: list[ImportedModule] = []
    waiting = [i for i in imports if not i.relative]
    while waiting:
        found = waiting.pop(0)
        every.append(found)
        if found.root in seen:
            continue
        place = locate(found.root, folder, as_script=as_script)
        seen[found.root] = place.kind
        for name, path in place.files:
            files[name] = (texts or {}).get(path.absolute(), path)
            if path.suffix == ".py":
                waiting += [i for i in _imports_of(files[name]) if not i.relative]
    unknown = tuple(root for root, kind in seen.items() if kind == "unknown")
    return LocalCode(files, tuple(every), unknown)


def reached(imports: Iterable[ImportedModule], files: Mapping[str, bytes | Path]) -> set[str]:
    """Return the modules among these files that the imports lead to; of a package, those that it
    needs."""
    paths = {name[:-3].replace("/", "."): p for name, p in files.items() if name.endswith(".py")}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    found: set[str] = set()
    waiting = [name for item in imports for name in item.dotted]
    while waiting:
        name = waiting.pop()
        new = [m for m in (name, *_packages(name)) if m in paths and m not in found]
        found.update(new)
        for module in new:
            for item in _imports_of(paths[module]):
                inside = [module, *_packages(module)] if item.relative else []
                names = item.dotted if item.module else item.names
                waiting += (
                    item.dotted if not inside else [f"{p}.{n}" for p in inside for n in names]
                )
    return found


def _packages(module: str) -> Iterator[str]:
    """Yield the packages that a module is in: `a.b` and `a` of `a.b.c`."""
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def _imports_of(file: bytes | Path) -> tuple[ImportedModule, ...]:
    if isinstance(file, bytes):
        return imports_of(ast.parse(file))
    return _imports_in(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=4096)
def _imports_in(path: Path, modified: int) -> tuple[ImportedModule, ...]:  # noqa: ARG001
    try:
        return imports_of(ast.parse(path.read_bytes()))
    except (SyntaxError, ValueError):
        return ()


def included(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a path given with `--include`, by the path that they get in the
    program."""
    if path.is_dir():
        yield from _tree(path.absolute())
    else:
        yield path.name, path


# -- the user's own code, in the notebook and beside it --------------------------------------------


@dataclass(frozen=True, eq=False)
class OwnModule:
    """Names, and the statements that made them."""

    namespace: Mapping[str, Any]
    history: ExecutionHistory


@dataclass
class OwnModules:
    """The user's own modules by their names; installed packages are none. `texts` are those of
    files that have been edited since the notebook imported them. `gone` are modules that were asked
    for and whose files are there no more."""

    notebook: OwnModule
    texts: Mapping[Path, bytes] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    _known: dict[str, OwnModule | None] = field(default_factory=dict)

    @property
    def gone_roots(self) -> set[str]:
        """The packages of modules whose reading of the world can't be seen, as their files are
        gone."""
        return {module.partition(".")[0] for module in self.gone}

    def of(self, name: str | None) -> OwnModule | None:
        """Return the module of that name, if it is the user's own."""
        if name == self.notebook.namespace.get("__name__", "__main__"):
            return self.notebook
        if not name:
            return None
        if name not in self._known:
            self._known[name] = _read(sys.modules.get(name), self.texts)
            gone = gone_file(name)
            if gone and not is_installed(gone):
                self.gone.add(name)
        return self._known[name]


def _read(module: ModuleType | None, texts: Mapping[Path, bytes]) -> OwnModule | None:
    file = getattr(module, "__file__", None)
    if module is None or not file or not str(file).endswith(".py"):
        return None
    root = module.__name__.partition(".")[0]
    if root in sys.stdlib_module_names or root == "distrain_nb":
        return None
    path = Path(file).absolute()
    if is_installed(path):
        return None
    try:
        source = decode_source(texts[path] if path in texts else path.read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    return OwnModule(vars(module), history([Cell(str(path), source)]))
