"""What modules beside the notebook have that their files do not surely give: it travels too."""

from __future__ import annotations

import ast
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.program.gathering.faithful import differing, is_literal, makes_the_same
from distrain_nb.program.gathering.remake import asks_machine, is_tool
from distrain_nb.program.values.pickling import Definitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.program.notebook.own_modules import OwnModule
    from distrain_nb.program.notebook.world import World

_SEPARATOR = ":"  # between a module and what it has: `package.module:CFG.lr`


def modules_in(files: Iterable[str]) -> set[str]:
    """Return the names of the modules that travel as files."""
    names = {f[:-3].replace("/", ".") for f in files if f.endswith(".py")}
    return {name.removesuffix(".__init__") for name in names}


def module_state(files: Iterable[str], world: World) -> Iterator[tuple[str, Any]]:
    """Yield names such as `module:CFG.lr`, with what they stand for."""
    for name in sorted(modules_in(files)):
        module = sys.modules.get(name)
        own = world.module(name)
        if module is not None and own is not None:
            for path, value in _of_module(module, own, world):
                yield f"{name}{_SEPARATOR}{path}", value


def _of_module(module: ModuleType, own: OwnModule, world: World) -> Iterator[tuple[str, Any]]:
    definitions = Definitions(vars(module))
    for name, value in list(vars(module).items()):
        bound = own.history.of(name)
        if name.startswith("__") or isinstance(value, ModuleType) or is_tool(value):
            continue
        if bound and bound[0].statement.is_import:
            continue
        if bound and asks_machine(bound[0].statement.node):
            continue
        node = bound[0].statement.node if len(bound) == 1 else None
        if isinstance(value, (type, FunctionType)) and definitions.owns(value):
            if bound and makes_the_same([bound[0]], value, definitions):
                continue
            if isinstance(node, ast.ClassDef) and isinstance(value, type):
                for attribute in differing(node, value, definitions):
                    if attribute in vars(value):
                        yield f"{name}.{attribute}", vars(value)[attribute]
                continue
            if bound and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue  # its decorator has made it; what it keeps is compared
        if _is_written(node, value) or world.asked_in(own, name):
            continue
        yield name, value


def _is_written(node: ast.stmt | None, value: Any) -> bool:
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return False
    return is_literal(node.value, value)
