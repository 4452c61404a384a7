"""A script, or a module, that runs as `python FILE` or `python -m MODULE` runs it, as a program."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
import tokenize
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from distrain_nb.errors import OptionError, did_you_mean
from distrain_nb.findings import Finding, Severity
from distrain_nb.program.frameworks import with_backend
from distrain_nb.program.notebook.local_modules import follow, included, is_installed
from distrain_nb.program.program import SYNTAX_ERROR, Program
from distrain_nb.program.python.imports import imports_of
from distrain_nb.program.requirements import files_of, requirements_of, unknown_modules
from distrain_nb.worker.files.disk import readable_size
from distrain_nb.worker.rank.program import OF_PROGRAM, EntryPoint, Segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


LARGEST = 3
REQUIREMENTS, PROJECT = "requirements.txt", "pyproject.toml"
_SKIPPED = (".ipynb", ".pyc")


@dataclass(frozen=True)
class Script:
    """A file that runs, from `folder` on, with its arguments.

    `package` is that of a module which `-m` names, "" where that stands in none; a file that was
    named has None. `root` is the folder whose files travel.
    """

    path: Path
    arguments: tuple[str, ...]
    folder: Path
    package: str | None
    root: Path

    @property
    def label(self) -> str:
        """The file's path as tracebacks name it."""
        return self.place(self.path)

    def place(self, path: Path) -> str:
        """Return where a file stands in the program: as it does below the working folder, else
        below the script's own."""
        return path.relative_to(self.base).as_posix()

    @property
    def base(self) -> Path:
        """The folder that places are relative to."""
        return self.folder if self.folder in (self.root, *self.root.parents) else self.root


def read_script(path: str, arguments: Sequence[str], folder: Path) -> Script:
    """Return the script that `python PATH ARGUMENT…` runs in a folder. Raises OptionError."""
    file = (folder / Path(path).expanduser()).resolve()
    if not file.is_file():
        meant = did_you_mean(file.name, [path.name for path in file.parent.glob("*.py")], ".")
        raise OptionError(f"no file {path}{meant} Paths are relative to {folder}", where=path)
    if file.suffix == ".ipynb":
        raise OptionError(f"{path} is a notebook: run its cells with %%distrain", where=path)
    return Script(file, tuple(arguments), folder.resolve(), None, file.parent)


def read_module(name: str, arguments: Sequence[str], folder: Path) -> Script:
    """Return the script that `python -m NAME ARGUMENT…` runs in a folder that has the module.
    Raises OptionError."""
    folder = folder.resolve()
    parts = name.split(".")
    for file, package in (
        (folder.joinpath(*parts[:-1], f"{parts[-1]}.py"), ".".join(parts[:-1])),
        (folder.joinpath(*parts, "__main__.py"), name),
    ):
        if file.is_file():
            root = folder if package == "" else folder / parts[0]
            return Script(file, tuple(arguments), folder, package, root)
    spec = PathFinder.find_spec(parts[0])
    if spec and spec.origin and is_installed(Path(spec.origin)):
        raise OptionError(
            f"-m {name} is an installed package's: run a script or module of your own", where=name
        )
    raise OptionError(
        f"no module {name}: neither {'/'.join(parts)}.py nor {'/'.join(parts)}/__main__.py is in"
        f" {folder}",
        where=name,
    )


def capture_script(
    given: Script,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    require: Sequence[str] = (),
    limit: int,
    for_image: bool = False,
) -> Program:
    """Make a program of a script. What git tracks in its folder travels, or else what it imports.

    `exclude` are patterns of paths that stay here; `limit` is how many bytes of files may travel;
    the rest is as for a cell. What is wrong is among the program's findings. Raises OptionError for
    a file that is no text.
    """
    try:
        with tokenize.open(given.path) as file:
            text = file.read()
    except (SyntaxError, UnicodeDecodeError) as error:
        raise OptionError(f"{given.label} can't be read as Python: {error}") from None
    tree, broken = _parsed(text, given)
    whole = [path for _, path in included(given.root)] if given.package else []
    own = {given.place(path): path for path in tracked(given.root) or whole}
    imports = imports_of(tree)
    start = given.root if given.package is None else given.folder
    local = follow(imports, start, as_script=True)
    used = with_backend(local.imports, text)
    files_beside = ((name, path) for name, path in local.files.items() if isinstance(path, Path))
    moved = {_moved(name, path, given, given.root): path for name, path in files_beside}
    kept = {
        name: path
        for name, path in {**moved, **own}.items()
        if name != given.label
        and not any(fnmatch(name, p) or name.startswith(f"{p.rstrip('/')}/") for p in exclude)
    }
    files, missing = files_of(
        kept,
        include,
        given.folder,
        OF_PROGRAM,
        lambda name, path: _moved(name, path, given, given.folder),
    )
    required, unread = required_by((given.root, given.folder))
    unknown = unknown_modules(local.unknown, imports, given.label, for_image=for_image)
    return Program(
        label=given.label,
        main=text,
        segments=(Segment(1, text.count("\n") + 1, given.label, 1, is_cell=True),),
        values=(),
        sources=(),
        files=files,
        requirements=requirements_of(used, start, as_script=True),
        required=tuple(dict.fromkeys((*require, *required))),
        imports=frozenset(item.root for item in used if item.root),
        findings=(*broken, *missing, *unread, *_too_large(files, limit), *unknown),
        arguments=given.arguments,
        entry=EntryPoint(given.label, given.package, is_script=True),
    )


def _moved(name: str, path: Path, given: Script, inside: Path) -> str:
    """Return a file's place in the program: its own where it is in a folder, others at the top."""
    whole = path.parent.resolve() / path.name
    return given.place(whole) if {inside, given.base} <= set(whole.parents) else name


def _parsed(text: str, given: Script) -> tuple[ast.Module, list[Finding]]:
    """Return the script's tree; empty, with a finding, where Python refuses it."""
    try:
        tree = ast.parse(text, given.label)
        compile(tree, given.label, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as refused:
        where = f"{given.label}, line {getattr(refused, 'lineno', None) or 1}"
        broken = _error(SYNTAX_ERROR, where, str(getattr(refused, "msg", refused)))
        return ast.Module([], []), [broken]
    relative = [i for i in imports_of(tree) if i.relative] if given.package is None else []
    message = (
        "a relative import fails in a script, which belongs to no package; run it as a module,"
        f" `-m {given.label.removesuffix('.py').replace('/', '.')}`"
    )
    places = [f"{given.label}, line {item.line}" for item in relative]
    # Some scripts try one, and have another way.
    severity = Severity.WARNING
    return tree, [Finding("capture.relative-import", severity, place, message) for place in places]


def _too_large(files: Mapping[str, bytes | Path], limit: int) -> list[Finding]:
    sizes = {n: f.stat().st_size for n, f in files.items() if isinstance(f, Path)}
    total = sum(sizes.values())
    if total <= limit:
        return []
    largest = sorted(sizes, key=lambda name: -sizes[name])[:LARGEST]
    named = ", ".join(f"{name} ({readable_size(sizes[name])})" for name in largest)
    message = (
        f"the files that travel have {readable_size(total)}, more than the {readable_size(limit)}"
        f" that a program may have; the largest are {named}: leave some here with --exclude"
        " PATTERN, or raise the limit with `%distrain config carry_limit=MIB`"
    )
    return [_error("capture.too-large", "files", message)]


def _error(code: str, where: str, message: str) -> Finding:
    return Finding(code, Severity.ERROR, where, message)


# -- what the project says ------------------------------------------------------------------------


def tracked(folder: Path) -> list[Path]:
    """Return the files below a folder that git tracks and that are there; none without git."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "-z"], capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    files = [folder / os.fsdecode(name) for name in listed.split(b"\0") if name]
    return [file for file in files if file.is_file() and file.suffix not in _SKIPPED]


def required_by(folders: Iterable[Path]) -> tuple[tuple[str, ...], list[Finding]]:
    """Return the requirements of the first folder that has a requirements.txt or a pyproject.toml,
    and what of them can't be read."""
    for folder in dict.fromkeys(folders):
        if (folder / REQUIREMENTS).is_file():
            return _read(list(_lines(folder / REQUIREMENTS)))
        if (folder / PROJECT).is_file():
            return _read([(PROJECT, text) for text in _dependencies(folder / PROJECT)])
    return (), []


def _read(lines: list[tuple[str, str]]) -> tuple[tuple[str, ...], list[Finding]]:
    required, unread = [], []
    for where, text in lines:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            message = f"`{text}` stays here: only names and versions of packages travel"
            unread.append(Finding("capture.requirement", Severity.WARNING, where, message))
            continue
        if wanted.marker is None or wanted.marker.evaluate():
            wanted.marker = None
            required.append(str(wanted))
    return tuple(dict.fromkeys(required)), unread


def _lines(file: Path, seen: frozenset[Path] = frozenset()) -> Iterator[tuple[str, str]]:
    """Yield where each line stands that requires something, and the line; of files too that it
    names."""
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        text = line.partition(" #")[0].partition(" --hash")[0].rstrip("\\").strip()
        flag, _, rest = text.replace("=", " ", 1).partition(" ")
        other = file.parent / rest.strip()
        if flag in ("-r", "--requirement") and other.is_file() and other not in seen:
            yield from _lines(other, seen | {file})
        elif text and not text.startswith(("#", "--hash")):
            yield f"{file.name}, line {number}", text


def _dependencies(file: Path) -> list[str]:
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        read = toml.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return []
    return [str(item) for item in read.get("project", {}).get("dependencies", ())]
