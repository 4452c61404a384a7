"""A room imports only from rooms below it, and nothing in the house stands in a circle."""

from __future__ import annotations

import ast
import gc
import json
import re
import sys
from contextlib import suppress
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

# What the package itself offers is a name for things in the rooms; anybody may say it.
FRONT = "distrain_nb"
ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / FRONT

# From the top down.
ROOMS = (
    "magics", "ui", "health", "mcp", "server", "saved", "study", "api", "options", "places",
    "tracking", "run", "rehearsal", "data", "backends", "image", "cluster", "program",
    "observed", "secrets", "tuning", "layout", "config", "scratch", "errors", "repairs",
    "findings", "types", "installed", "escapes", "certificates", "worker",
)  # fmt: skip

# The same role in twin clouds.
TWINS = {"ForeignService", "Settings"}

# A floor is a package inside a room; one this deep in names is the deepest that there is.
DEEPEST = 5

_NAMED = re.compile(rf"\b{FRONT}(?:\.\w+)+")


@pytest.fixture(scope="module", autouse=True)
def _uncollected() -> Iterator[None]:
    """All nodes are kept: to look for garbage among them takes longer than to parse."""
    gc.disable()
    yield
    gc.enable()


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in PACKAGE.rglob("*.py")}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else FRONT


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(module)))


def imported(node: ast.AST) -> list[str]:
    """The modules that an import is of: of `from x import y`, `x.y` where that is one, else `x`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    assert not node.level, f"a relative import: {ast.unparse(node)}"
    names = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name if name in MODULES else str(node.module) for name in names]


def ours(modules: list[str]) -> list[str]:
    return [name for name in modules if name.split(".")[0] == FRONT]


def imports(module: str) -> set[str]:
    """The package's modules that a module imports, for its annotations and in functions too."""
    return {name for node in nodes(module) for name in ours(imported(node))}


@cache
def needs(module: str) -> set[str]:
    """Those that it imports at some time when it runs."""
    found: set[str] = set()
    todo: list[ast.AST] = [tree(module)]
    while todo:
        node = todo.pop()
        found |= set(ours(imported(node)))
        annotating = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        todo += node.orelse if annotating else ast.iter_child_nodes(node)
    return found


def strings(module: str) -> Iterator[str]:
    """The texts of a module, without its documentation."""
    told = {
        id(node.body[0].value)
        for node in nodes(module)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def named(module: str) -> set[str]:
    """The package's modules that a module's texts name: programs to start, entry points."""
    return {name for text in strings(module) for name in _NAMED.findall(text)}


def circle(depth: int) -> list[str]:
    """Packages and modules of the rooms that need each other, by names of that many parts."""
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        whole = ".".join(module.split(".")[:depth])
        others = {".".join(name.split(".")[:depth]) for name in needs(module)}
        graph.setdefault(whole, set()).update(others - {whole, FRONT})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


def above(module: str, others: set[str]) -> list[str]:
    """Those of other modules that are in a room above a module's own."""
    height = ROOMS.index(room(module))
    return [name for name in others if room(name) in ROOMS and ROOMS.index(room(name)) < height]


def test_every_module_has_a_room() -> None:
    assert {room(module) for module in MODULES} <= {*ROOMS, FRONT}
    assert max(name.count(".") + 1 for name in MODULES) == DEEPEST


@pytest.mark.parametrize("look", [imports, named])
def test_rooms_know_only_rooms_below(look) -> None:  # type: ignore[no-untyped-def]
    wrong = [
        f"{module} has {name}"
        for module in MODULES
        if module != FRONT
        for name in above(module, look(module))
    ]
    assert not wrong


@pytest.mark.parametrize("depth", range(2, DEEPEST + 1))
def test_nothing_stands_in_a_circle(depth: int) -> None:
    """Neither rooms, nor their floors, nor modules; annotations may name what is above."""
    assert not circle(depth)


def test_the_worker_starts_with_only_the_standard_library() -> None:
    for module in [FRONT, *(name for name in MODULES if room(name) == "worker")]:
        tops = {name.split(".")[0] for node in tree(module).body for name in imported(node)}
        assert tops <= {*sys.stdlib_module_names, FRONT}, f"{module} imports {tops}"


def test_only_the_worker_makes_checksums_in_python() -> None:
    """3 MB a second: images of a run are checked by a library."""
    slow = f"{FRONT}.worker.metrics.crc32c"
    for module in MODULES:
        if room(module) != "worker":
            for node in nodes(module):
                if isinstance(node, ast.ImportFrom) and node.module == slow:
                    assert "crc32c" not in [alias.name for alias in node.names], module


def test_the_name_of_a_class_has_one_meaning() -> None:
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in nodes(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    assert {name for name, found in homes.items() if len(found) > 1} == TWINS


# Where code outside of `places/` may name a cloud.
NAMING_A_CLOUD = {
    "the fact tables": {"layout.catalog.index", "layout.catalog.lookup",
                        "layout.catalog.rows", "layout.catalog.tables", "layout.reduction_server"},
    "names of places, in the order of lists": {"layout.place", "magics.verbs"},
    "help and examples": {"config", "layout.gain", "layout.layout", "layout.options",
                          "tuning.options"},
    "by the machines of a pool": {"magics.advise"},
    "variables of hosts": {"backends.notebooks"},
    "files of a run, read across versions": {"backends.remote.rehearsed", "worker.files.folder",
                                             "worker.files.tracked"},
    "containers of a service, which run the worker alone": {
        "worker.__main__", "worker.replica.container", "worker.replica.replica",
        "worker.replica.sagemaker", "worker.replica.script", "worker.replica.secret_stores"},
}  # fmt: skip
_CLOUD = re.compile("vertex|sagemaker", re.IGNORECASE)
_SOURCE = re.compile(r"[A-Z0-9;-]+")  # a key of the table of sources


def words(module: str) -> Iterator[str]:
    """The names and texts of a module's code, without its documentation and sources of facts."""
    yield from (text for text in strings(module) if not _SOURCE.fullmatch(text))
    for node in nodes(module):
        for field in ("id", "attr", "arg", "name"):
            word = getattr(node, field, None)
            if isinstance(word, str):
                yield word


def test_only_places_name_a_cloud() -> None:
    """All else asks the place, so that another cloud changes nothing but its own folder."""
    outside = [name for name in MODULES if room(name) != "places"]
    naming = {name for name in outside if any(map(_CLOUD.search, words(name)))}
    known = {f"{FRONT}.{name}" for group in NAMING_A_CLOUD.values() for name in group}
    assert naming == known


def test_what_tests_benchmarks_and_scripts_name_is_there() -> None:
    """No test runs most benchmarks, and slow tests are not even read by `make test`: one import
    that fails there ends the whole rest of the suite."""
    assert [
        f"{file.relative_to(ROOT)}: {module}.{name}"
        for folder in ("benchmarks", "scripts", "tests")
        for file in (ROOT / folder).rglob("*.py")
        for tree in programs_in(file.read_text(encoding="utf-8"))
        for module, name in missing_in(tree)
    ] == []


def test_what_notebooks_and_documents_name_is_there() -> None:
    """Only slow tests run them."""
    assert [
        f"{file.relative_to(ROOT)}: {module}.{name}"
        for folder, ending in (("notebooks", "*.ipynb"), ("docs", "*.md"), (".", "README.md"))
        for file in (ROOT / folder).glob(ending)
        for code in codes_of(file)
        for module, name in missing_in(ast.parse(code))
    ] == []


def codes_of(file: Path) -> Iterator[str]:
    """Yield the Python of a notebook's cells, or of a document's blocks, without magics."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        blocks = ["".join(cell["source"]) for cell in cells]
    else:
        blocks = re.findall(r"(?ms)^```python\n(.*?)^```", text)
    for block in blocks:
        code = re.sub(r"(?m)^[%!].*$", "", block)
        with suppress(SyntaxError):  # an ellipsis of a document, a line of the shell
            ast.parse(code)
            yield code


def missing_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names of the package's modules that code uses and that aren't there."""
    for module, name in named_in(tree):
        if bound_in(module).isdisjoint((name, "__getattr__")):
            yield module, name


def programs_in(text: str) -> Iterator[ast.Module]:
    """Yield the code of a file, and the cells and programs that it has as texts."""
    whole = ast.parse(text)
    yield whole
    for node in ast.walk(whole):
        code = re.sub(r"(?m)^[%!].*$", "", text_of(node))
        imports = re.findall(rf"(?m)^ *(from {FRONT}[.\w]* import [\w, ]+)", code)
        if imports:
            used = re.findall(r"(?<![\w.\"'/-])([a-z]\w*\.[a-z_]\w*)", code)
            # A sentence, a template or a part of a cell may be no program.
            for part in (code, "\n".join([*imports, *used])):
                with suppress(SyntaxError):
                    yield ast.parse(part)
                    break


def text_of(node: ast.AST) -> str:
    """Return a text of a program; a template has a value in each of its places."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.FormattedValue):
        return "None"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def named_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield what is imported from modules of the package, and `module.name`, also as texts that
    `monkeypatch.setattr(module, "name", …)` takes."""
    modules: dict[str, str] = {}
    nodes = [*ast.walk(tree)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(FRONT):
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield str(node.module), alias.name
                if is_module(module):
                    modules[alias.asname or alias.name] = module
    for node in nodes:  # another thing of that name
        if isinstance(node, ast.arg):
            modules.pop(node.arg, None)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            modules.pop(node.id, None)
    for node in nodes if modules else ():
        match node:
            case ast.Call(
                func=ast.Attribute(attr="setattr" | "delattr"),
                args=[ast.Name(id=holder), ast.Constant(value=str(name)), *_],
            ) if holder in modules:
                yield modules[holder], name
            case ast.Attribute(value=ast.Name(id=holder), attr=name) if holder in modules:
                yield modules[holder], name


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


@cache
def bound_in(module: str) -> set[str]:
    """Read the names that a module binds, and its submodules: clouds' SDKs needn't be there."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    names = {child.stem for child in path.iterdir()} if path.is_dir() else set[str]()
    names |= {"__file__", "__name__", "__doc__", "__dict__", "__version__"}
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    waiting: list[ast.AST] = [ast.parse(file.read_text("utf-8"))] if file.exists() else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
            continue
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        only_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        waiting += node.orelse if only_types else ast.iter_child_nodes(node)
    return names
