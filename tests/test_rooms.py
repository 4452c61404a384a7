"""A room imports only from rooms below it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "distrain_nb"

# From the top down.
ROOMS = (
    "magics", "ui", "health", "api", "options", "server", "run", "rehearsal", "backends", "image",
    "cluster", "program", "secrets", "layout", "config", "errors", "findings", "worker",
)  # fmt: skip

# What the package itself offers is a name for things in the rooms; anybody may say it.
FRONT = "distrain_nb"


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else FRONT


def imports(path: Path) -> set[str]:
    """The package's modules that a file names in its imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == FRONT:
            found |= {f"{FRONT}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"relative import in {path}"
    return {name for name in found if name.split(".")[0] == FRONT}


def modules() -> list[tuple[str, Path]]:
    paths = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]
    return [(path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path) for path in paths]


def test_every_module_has_a_room() -> None:
    assert {name for name, _ in modules()} <= set(ROOMS)


def test_rooms_import_downwards_only() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {imported}"
        for name, path in modules()
        for imported in imports(path)
        if room(imported) in ROOMS and ROOMS.index(room(imported)) < ROOMS.index(name)
    ]
    assert not wrong


def test_the_worker_starts_with_only_the_standard_library() -> None:
    for path in [*(PACKAGE / "worker").rglob("*.py"), PACKAGE / "__init__.py"]:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            tops = {name.split(".")[0] for name in names}
            assert tops <= {*sys.stdlib_module_names, FRONT}, f"{path.name} imports {tops}"
