"""Settings of the process that executed cells made: seeds, default types, filters, options.

They are in no value that travels, yet they change numbers and what is printed. A script would make
them in every rank, and so does the program; what concerns this machine alone is only reported.
"""

from __future__ import annotations

import ast
import builtins
import reprlib
import sys
from collections import ChainMap
from dataclasses import dataclass
from itertools import chain
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.launcher_variables import is_inherited
from distrain_nb.observed.process import SEEDS
from distrain_nb.program.notebook.ancestry import is_settings
from distrain_nb.program.notebook.deleted import deleted_imports
from distrain_nb.program.notebook.local_modules import OwnModule, OwnModules
from distrain_nb.program.notebook.package_calls import (
    AGAIN,
    ASSIGNS,
    BY_SETATTR,
    VALUE,
    VARIABLE,
    PackageCalls,
    given_by_packages,
    imported_in,
    is_of_machine,
    way_of,
)
from distrain_nb.program.notebook.reach import resolve
from distrain_nb.worker.fingerprint import text_of
from distrain_nb.worker.rank.expected import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.world import World

_NEUTRAL = (ast.Import, ast.ImportFrom, ast.Pass, ast.Return, ast.Global, ast.If)


@dataclass(frozen=True)
class Setting:
    """A statement that sets something for the process: `names` are what it calls or assigns to.

    `runs` says that the program makes it again; else it is only reported. `is_effect` says that it
    calls a package for what that changes there. `attribute` is what it computed for a package's
    module, `PIL.ImageFile:MAXBLOCK`, which ranks have by its value.
    """

    executed: Executed
    names: tuple[str, ...]
    runs: bool
    is_effect: bool = False
    attribute: str = ""

    @property
    def value(self) -> Any:
        """What the attribute is at present."""
        module, _, name = self.attribute.partition(":")
        return getattr(sys.modules[module], name)

    def concerns(self, roots: Collection[str]) -> bool:
        """Return whether a program that imports these packages has anything of it."""
        own = {name.partition(".")[0] for name in self.names} - sys.stdlib_module_names
        installed = any(r not in sys.stdlib_module_names for r in roots)
        return not own or bool(own & {*roots, *(("numpy",) if installed else ())})


def settings_of(world: World) -> list[Setting]:
    """Return the settings that a notebook made, in order; of a cell that ran again only the last
    run. Ranks have the notebook's environment and process state, so of these only what a statement
    sets that asks for the world, of the state also what nobody saw. A statement that failed would
    fail there too."""
    notebook = OwnModule(world.namespace, world.history)
    names = ChainMap({**world.namespace}, deleted_imports(world.history, world.namespace))
    names_given = given_by_packages(notebook, world.packages)
    code = PackageCalls(OwnModules(notebook), names, names_given, world.packages)
    texts: dict[int, list[str]] = {}  # by the positions of cells
    for executed in world.history.executed:
        texts.setdefault(executed.at[0], []).append(executed.statement.text)
    last = {*{tuple(text): position for position, text in texts.items()}.values()}
    ran = (item for item in world.history.executed if not item.failed)
    executed_last = (item for item in ran if item.at[0] in last)
    return [setting for item in executed_last if (setting := _setting(item, code, world))]


def concerning(settings: Iterable[Setting], roots: Collection[str], world: World) -> list[Setting]:
    """Return the settings that concern a program which imports these packages. A function that
    seeds by the rank may be of a package that the program doesn't import."""
    generators = {"random", "numpy", "torch"} & {*roots}
    return [
        s
        for s in settings
        if s.concerns(roots)
        or (generators and any(map(SEEDS.fullmatch, s.names)) and world.knows_world(s.executed))
    ]


def settings_findings(
    settings: Iterable[Setting], by_value: Mapping[str, Any], remaining: Mapping[str, Any]
) -> Iterator[Finding]:
    """Say what runs again in every rank, which state it has by value, and what stays behind."""
    settings = [s for s in settings if not s.attribute]
    for runs, code, states, message in (
        (True, "settings", by_value, "every rank first makes these settings of the notebook: "),
        (False, "left-behind", remaining, "these settings hold in the notebook only: "),
    ):
        statements = [s.executed.statement for s in settings if s.runs is runs]
        lines = [f"`{it.text.splitlines()[0]}` ({it.where})" for it in statements]
        lines += [
            f"`{name.replace(':', '.')}` is {shown(text_of(value) or reprlib.repr(value))}"
            for name, value in states.items()
        ]
        if lines:
            way = "" if runs else ". Repeat in the cell what the run needs"
            message += "; ".join(lines) + way
            yield Finding(f"capture.{code}", Severity.INFO, "", message)


def _setting(executed: Executed, code: PackageCalls, world: World) -> Setting | None:
    node = executed.statement.node
    inside = list(_inside(node))
    names = [code.name(item) for item in inside]
    if not inside or not all(names) or (inside == [node] and _sets_nothing(node, names[0], code)):
        return None
    asks = world.knows_world(executed)
    of_each = (_sets(item, n, code, asks=asks) for item, n in zip(inside, names, strict=True))
    sets = [*chain.from_iterable(of_each)]
    ways, names = {way for _, way in sets}, [name for name, _ in sets]
    if ways == {VALUE} and world.saw(executed.statement) and not asks:
        return None
    needs = executed.statement.names().needs
    plain = all(name in code.imported or _is_plain(name, code.names) for name in needs)
    attribute = "" if asks else code.computed(node)
    if attribute:
        return Setting(executed, tuple(names), runs=False, attribute=attribute)
    if ways <= {AGAIN, VALUE}:
        return Setting(executed, tuple(names), plain or ways == {VALUE})
    if "" not in ways and asks:
        return Setting(executed, tuple(names), runs=True)
    if plain and not asks and code.calls_for_effect(node):
        return Setting(executed, (names[0],), runs=False, is_effect=True)
    return Setting(executed, (names[0],), runs=False) if is_of_machine(names[0]) else None


def _sets_nothing(node: ast.stmt, name: str, code: PackageCalls) -> bool:
    """Return whether a statement calls what sets nothing, as most do: `print(x)`, `ax.plot(y)`.
    Whether it asks for the rank needn't be known then, which takes longer."""
    if not isinstance(node, ast.Expr) or name.endswith(BY_SETATTR) or way_of(name):
        return False
    assert isinstance(node.value, ast.Call)
    is_users = type(resolve(node.value.func, code.names)) is FunctionType
    return not (is_users or code.calls_for_effect(node) or is_of_machine(name))


def _inside(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements that a compound one has, but for imports: one of `if`, `for`, `try`, or
    `with suppress(...)`; else yield the statement itself."""
    if isinstance(node, (ast.If, ast.For)):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.Try):
        parts = [node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody]
    elif isinstance(node, ast.With) and all(map(_suppresses, node.items)):
        parts = [node.body]
    else:
        yield node
        return
    for statement in chain.from_iterable(parts):
        if not isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass)):
            yield statement


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    func = call.func if isinstance(call, ast.Call) else None
    return getattr(func, "attr", getattr(func, "id", "")) == "suppress"


def _sets(node: ast.stmt, name: str, code: PackageCalls, *, asks: bool) -> list[tuple[str, str]]:
    """Return what a statement sets, which `asks` for the rank or not, with how ranks get that; ""
    where it does anything else."""
    way = way_of(name)
    if hasattr(node, "decorator_list"):
        return [(name, AGAIN)]
    if way == VARIABLE:  # which ranks have from the notebook, if not from their launcher
        places = (n for n in ast.walk(node) if isinstance(n, ast.Subscript))
        sets = (n.slice for n in places if not isinstance(n.ctx, ast.Load))
        keys = [key.value for key in sets if isinstance(key, ast.Constant)]
        return [(name, way if not keys or any(map(is_inherited, keys)) else "")]
    if isinstance(node, ASSIGNS) or name.endswith(BY_SETATTR):
        return [(name, way or ("" if name.startswith(("os.", "sys.")) else AGAIN))]
    inside = [] if way else _made_by_function(node, code, asks=asks)
    return [(n, VALUE if way_of(n) == VALUE else AGAIN) for n in inside] or [(name, way)]


def _made_by_function(node: ast.stmt, code: PackageCalls, *, asks: bool) -> list[str]:
    """Return what a call of the user's function sets, if that is all it does: `set_seed(0)`.

    It may print too, unless it only seeds alike in all ranks: they have the generators' states by
    value.
    """
    assert isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    target = resolve(node.value.func, code.names)
    module = code.modules.of(target.__module__) if type(target) is FunctionType else None
    latest = module.history.of(target.__name__)[:1] if module else []
    function = latest[0].statement.node if latest else None
    if module is None or not isinstance(function, ast.FunctionDef):
        return []
    inside = {**module.namespace, **imported_in(function)}
    names_given = given_by_packages(module, code.packages)
    inner = PackageCalls(code.modules, inside, names_given, code.packages)
    body = [s for s in ast.walk(function) if isinstance(s, ast.stmt) and s is not function]
    globals_set = {name for s in body if isinstance(s, ast.Global) for name in s.names}
    texts = [s for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)]
    does = (s for s in body if not isinstance(s, _NEUTRAL) and s not in texts)
    sets = [s for s in does if not (inner.only_reads(s, but=globals_set) or _prints(s))]
    names = [(s, inner.name(s)) for s in sets]
    only_seeds = all(SEEDS.fullmatch(name) for _, name in names)
    if only_seeds and not asks and any(map(_prints, body)):
        return []
    if all(n and (isinstance(s, ast.Assign) or way_of(n) in (AGAIN, VALUE)) for s, n in names):
        return [name for _, name in names]
    return []


def _prints(node: ast.stmt) -> bool:
    func = (
        node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    )
    return isinstance(func, ast.Name) and func.id == "print"


def _is_plain(name: str, namespace: Mapping[str, Any]) -> bool:
    if name not in namespace:
        return hasattr(builtins, name)
    value = namespace[name]
    return isinstance(value, ModuleType) or callable(value) or is_settings(value)
