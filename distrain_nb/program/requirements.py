"""What a program needs beside its text: files, modules, and distributions as `name==version`."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from distrain_nb.config import path_named, shortened
from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding, Severity
from distrain_nb.program.notebook.local_modules import gone_file, included, locate
from distrain_nb.program.python.imports import ImportedModule
from distrain_nb.repairs import add_option, write_in_option
from distrain_nb.worker.rank.program import MAIN, OF_PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from distrain_nb.findings import Fix

_ENDS = (".py", "/__init__.py")


def requirements_of(
    imports: Iterable[ImportedModule], folder: Path, *, as_script: bool = False
) -> tuple[str, ...]:
    """Return the requirements for imports from installed distributions, sorted by name.

    A local part of a version (`2.13.0+cpu`) is left out: an index has only the public one.
    """
    dotted: dict[str, set[str]] = {}
    for found in imports:
        if found.root not in sys.stdlib_module_names:
            dotted.setdefault(found.root, set()).update(found.dotted)
    names: set[str] = set()
    for root, modules in dotted.items():
        if locate(root, folder, as_script=as_script).kind == "installed":
            names |= _distributions(root, frozenset(modules))
    return tuple(sorted(f"{n}=={_version(n)}" for n in names - {"distrain-nb"}))


def public_version(version: str) -> str:
    """`2.3.0` of `2.3.0+cpu`; text that is not a version stays as it is."""
    try:
        return Version(version).public
    except InvalidVersion:
        return version


@lru_cache(maxsize=4096)
def _version(name: str) -> str:
    return public_version(metadata.version(name))


@lru_cache(maxsize=4096)
def _distributions(root: str, modules: frozenset[str]) -> frozenset[str]:
    """Return names of the distributions that these modules of one top-level name come from."""
    try:
        return frozenset({metadata.distribution(root).name})
    except metadata.PackageNotFoundError:
        pass
    found = _distributions_with(f"\n{root}/", f"\n{root}.")
    if len(found) < 2:
        return found
    # a namespace such as `google`: those that have one of the modules, or the package itself
    paths = [f"\n{module.replace('.', '/')}" for module in modules]
    return found & _distributions_with(*(f"{p}{end}" for p in paths for end in _ENDS))


def _distributions_with(*parts: str) -> frozenset[str]:
    """Return the distributions whose list of files, as text, has one of these parts."""
    files = _files().items()
    return frozenset(name for name, text in files if any(part in text for part in parts))


@lru_cache(maxsize=1)
def _files() -> dict[str, str]:
    """Return the list of installed files of each distribution, as text, a file a line."""
    every = ((d.name, d.read_text("RECORD") or "") for d in metadata.distributions())
    return {name: f"\n{text}" for name, text in every}


def files_of(
    local: Mapping[str, bytes | Path],
    include: Sequence[str],
    folder: Path,
    taken: Sequence[str] = (MAIN, *OF_PROGRAM),
    place: Callable[[str, Path], str] = lambda name, path: name,  # noqa: ARG005
) -> tuple[dict[str, bytes | Path], list[Finding]]:
    """Return the program's files by their paths there: local modules, and what `include` names,
    relative to a folder; `taken` are names that the program has for itself, and `place` says where
    a file stands there that would be at the program's top."""
    files: dict[str, bytes | Path] = dict(local)
    findings = []
    for given in include:
        try:
            path = folder / path_named(given)
        except OptionError as error:
            findings.append(_missing(given, str(error)))
            continue
        if path.exists():
            files.update({place(name, item): item for name, item in included(path)})
        else:
            message = f"{given} does not exist: paths are relative to {folder}"
            findings.append(_missing(given, message, tuple(_other_paths(given, folder))))
    for own in taken:
        if own in files:
            there = own if isinstance(files[own], bytes) else files[own]
            message = (
                f"{there!s} would overwrite the program's own {own}: rename it,"
                " or move it into a folder"
            )
            findings.append(Finding("capture.name-taken", Severity.ERROR, own, message))
    return files, findings


def _missing(given: str, message: str, fixes: tuple[Fix[str], ...] = ()) -> Finding:
    where = f"--include {shortened(given)}"
    return Finding("capture.missing-file", Severity.ERROR, where, message, fixes)


def _other_paths(given: str, folder: Path) -> Iterator[Fix[str]]:
    """Yield paths that there are, and may be meant."""
    wanted = Path(given)
    beside = folder / wanted.expanduser().parent
    names = [path.name for path in beside.iterdir()] if beside.is_dir() else []
    for name in get_close_matches(wanted.name, names, 2):
        yield write_in_option(given, str(wanted.with_name(name)))


def unknown_modules(
    roots: Iterable[str], imports: Iterable[ImportedModule], label: str, *, for_image: bool
) -> list[Finding]:
    """Return findings about modules that are not installed (any more), at the lines that import
    them; none about those that a program does without."""
    every = list(imports)
    lines = {i.root: i.line for i in reversed(every)}
    needed = {i.root for i in every if not i.is_optional}
    findings = []
    for root in roots:
        if root in lines.keys() - needed and not (gone_file(root) or _is_made_here(root)):
            continue  # the program expects that it isn't there
        where = f"{label}, line {lines[root]}" if lines.get(root) else label
        message, fixes = _what_is_missing(root, for_image=for_image)
        severity = Severity.ERROR if _is_made_here(root) else Severity.WARNING
        findings.append(Finding("capture.unknown-module", severity, where, message, fixes))
    return findings


def _is_made_here(module: str) -> bool:
    """Return whether the notebook has made a module and put it into `sys.modules`."""
    names = vars(sys.modules.get(module, sys))
    return module != "__main__" and not (names.get("__file__") or names.get("__spec__"))


def _what_is_missing(module: str, *, for_image: bool) -> tuple[str, tuple[Fix[str], ...]]:
    file = gone_file(module)
    if file:
        way = "put it back, or restart and import it from where it is now"
        return f"`{module}` was loaded from {file}, which is gone: {way}", ()
    if _is_made_here(module):
        way = f"write its text to {module}.py beside the notebook, and import that"
        return (
            f"`{module}` was made in the notebook and has no file that a run can import: {way}",
            (),
        )
    if for_image:
        way = "unless the image has it, name its package with --require"
        return f"`{module}` is not installed here: {way}", (add_option(f"--require {module}"),)
    return f"`{module}` is not installed here: %pip install its package", ()
