"""Which test files a change can reach: by imports, by modules that texts name, by names of places.

    python -m tests.reach [COMMIT]    prints them for all that has changed since

A test reaches what it imports, in functions too, and what that imports in turn; a module that a
text names counts as imported, since that is how processes are started and entry points declared.
Places are loaded by their names: a test that names one reaches it. What nobody can tell reaches
everything. Coverage would see none of the kernels, supervisors and ranks that most tests start.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[1]
FRONT = "distrain_nb"
PLACES = f"{FRONT}.places"
FOLDERS = (FRONT, "tests", "scripts")

# What decides which tests run, in what order, and in which environment.
MACHINERY = re.compile(
    r"Makefile|pyproject\.toml|hatch_build\.py|\.ci/.*|\.gitattributes|scripts/\w+\.sh"
    r"|jupyter-config/.*"
    r"|tests/(conftest|suite|schedule|reach|rest|fuzzing|__init__)\.py"
    rf"|{FRONT}/__init__\.py"
)
# What no test runs. Those that read such files are quick, and `make test` runs all of them.
SILENT = re.compile(
    r".*\.(md|png|gif|svg)|LICENSE|mkdocs\.yml|docs/.*|benchmarks/.*|notebooks/.*"
    r"|tests/(durations|whole_run)\.json|scripts/measures\.json|\.gitignore|\.pre-commit-config\.yaml"
)
# The page's code runs in a browser, which tests below these folders open.
PAGE = re.compile(rf"page/.*|{FRONT}/ui/static/plotly/.*")
PAGE_FOLDERS = ("browser", "embedding", "ui")

# How a test has the magics, which lead to all that a notebook can do.
_MAGIC = re.compile(r"%load_ext|%%?distrain\b|load_ipython_extension|run_(line|cell)_magic")
_NAMED = re.compile(rf"\b{FRONT}\b(?:\.\w+)*")


@dataclass(frozen=True)
class Reached:
    """The test files that a change reaches, or None for all of them, with the reason."""

    files: frozenset[str] | None
    reason: str


class Code:
    """The modules of a checkout, and what each one uses."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.files = {
            self._module(path): path
            for folder in FOLDERS
            for path in sorted((root / folder).rglob("*.py"))
            if folder == FRONT or not MACHINERY.fullmatch(str(path.relative_to(root)))
        }
        self._uses: dict[str, frozenset[str]] = {}

    @cached_property
    def places(self) -> dict[str, re.Pattern[str]]:
        """The package of each place, with the ways to name it in a test."""
        folders = {name.split(".")[2] for name in self.files if name.startswith(f"{PLACES}.")}
        return {
            f"{PLACES}.{folder}": re.compile(rf"(?i)\b{folder.replace('_', '[-_]')}(?![a-z])")
            for folder in folders
            if f"{PLACES}.{folder}" in self.files
        }

    @cached_property
    def offered(self) -> dict[re.Pattern[str], str]:
        """The modules of what the package itself offers, by the ways to name that in a test."""
        tree = ast.parse(self.files[FRONT].read_text("utf-8"))
        homes = (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES"
        )
        return {re.compile(rf"\b{name}\b"): home for name, home in next(homes).items()}

    def tests(self) -> list[str]:
        """Return the modules of test files."""
        return [name for name in self.files if name.split(".")[-1].startswith("test_")]

    def reach(self, test: str) -> set[str]:
        """Return all modules that a test file may run."""
        seen, todo = set[str](), [test]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += self.uses(name) - seen
        return seen

    def uses(self, name: str) -> frozenset[str]:
        """Return the modules that one module may run by itself."""
        if name not in self._uses:
            self._uses[name] = frozenset(self._used_by(name) & self.files.keys())
        return self._uses[name]

    def _used_by(self, name: str) -> set[str]:
        if name in self.places:  # one that is named is loaded by any of its entry points
            return {other for other in self.files if other.startswith(f"{name}.")}
        text = self.files[name].read_text("utf-8")
        used = set(self._imported(name, ast.parse(text)))
        parents = name.split(".")[:-1]
        used |= {".".join(parents[:depth]) for depth in range(2, len(parents) + 1)}
        used.add(
            f"{name}.__main__"
        )  # of a package that is also a program: it is started by its name
        if name.startswith("tests."):
            used |= {f"{parent}.conftest" for parent in used if parent.startswith("tests.")}
            used |= {place for place, named in self.places.items() if named.search(text)}
            if FRONT in used and not _MAGIC.search(text):
                used.remove(FRONT)
                used |= {home for word, home in self.offered.items() if word.search(text)}
        elif name == f"{FRONT}.installed":
            used.add(f"{PLACES}.local")  # the place of a job that names none
        # Rooms take the version from the package itself, and name groups of entry points after it.
        # What it offers, which is all, they take from each other: `test_rooms.py` holds that.
        return used if name.startswith("tests.") or name == FRONT else used - {FRONT}

    def _imported(self, name: str, tree: ast.Module) -> Iterator[str]:
        """Yield what a module imports, but for annotations, and what its texts name."""
        package = self.files[name].name == "__init__.py"
        todo: list[ast.AST] = [tree]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = name.split(".")[: (1 if package else 0) - node.level or None]
                module = ".".join([*above[: 99 if node.level else 0], *filter(None, [node.module])])
                members = [f"{module}.{alias.name}" for alias in node.names]
                # A name that the package itself offers may be anything that it offers.
                yield from (member if member in self.files else module for member in members)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._in_text(node.value, name)
            annotating = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            todo += node.orelse if annotating else ast.iter_child_nodes(node)

    def _in_text(self, text: str, name: str) -> Iterator[str]:
        for found in _NAMED.findall(text):
            if found != FRONT or name.startswith("tests."):  # in a test: `%load_ext distrain_nb`
                while found not in self.files and "." in found:  # a name of the module
                    found = found.rpartition(".")[0]
                yield found

    def reached_by(self, changed: Iterable[str]) -> Reached:
        """Tell which test files are reached by a change of these files of the checkout."""
        tests = {name: self.reach(name) for name in self.tests()}
        reached = set[str]()
        for path in changed:
            if MACHINERY.fullmatch(path):
                return Reached(None, f"{path} decides how all tests run")
            if PAGE.fullmatch(path):
                reached |= {name for name in tests if name.split(".")[1] in PAGE_FOLDERS}
            elif not SILENT.fullmatch(path):
                modules = self._holding(path)
                if not modules:
                    return Reached(None, f"nobody can tell which tests {path} concerns")
                reached |= {name for name, reach in tests.items() if modules & reach}
        files = {str(self.files[name].relative_to(self.root)) for name in reached}
        return Reached(frozenset(files), f"{len(files)} of {len(tests)} test files")

    def _holding(self, path: str) -> set[str]:
        """Return the modules to which a file belongs: its own, or those of the folder it lies in.

        A module that is gone was imported by modules that changed with it, in its own package.
        """
        if (self.root / path).suffix == ".py" and (self.root / path).exists():
            return {self._module(self.root / path)} & self.files.keys()
        folder = (self.root / path).parent
        while folder != self.root:
            modules = {name for name, file in self.files.items() if folder in file.parents}
            if modules:
                return modules
            folder = folder.parent
        return set()

    def _module(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def changed_since(commit: str, root: Path = ROOT) -> list[str] | None:
    """List the files that differ from a commit, also uncommitted ones; None if it isn't known."""
    git = ["git", "-C", str(root)]
    diff = subprocess.run(
        [*git, "diff", "--name-only", "--no-renames", commit, "--"], capture_output=True, text=True
    )
    if diff.returncode:
        return None
    new = [*git, "ls-files", "--others", "--exclude-standard"]
    untracked = subprocess.run(new, capture_output=True, text=True, check=True)
    return sorted({*diff.stdout.splitlines(), *untracked.stdout.splitlines()})


if __name__ == "__main__":
    changed = changed_since(sys.argv[1] if sys.argv[1:] else "HEAD")
    if changed is None:
        sys.exit(f"no commit {sys.argv[1]}")
    outcome = Code().reached_by(changed)
    print(
        "\n".join([f"{len(changed)} files changed: {outcome.reason}", *sorted(outcome.files or ())])
    )
