"""Settings of the process that executed cells made: seeds, default types, filters, options.

They are in no value that travels, yet they change numbers and what is printed. A script would make
them in every rank, and so does the program; what concerns this machine alone is only reported.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
import reprlib
import sys
from dataclasses import dataclass
from itertools import chain
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.process import SEEDS
from distrain_nb.observed.watch import is_inherited
from distrain_nb.program.notebook.local_modules import OwnModule, OwnModules
from distrain_nb.program.notebook.reach import member, name_of, resolve
from distrain_nb.program.notebook.world import is_settings
from distrain_nb.worker.fingerprint import text_of
from distrain_nb.worker.rank.expected import shown
from distrain_nb.worker.rank.process_state import TABLE, setters

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.world import World

AGAIN, VALUE, VARIABLE = "again", "by value", "in the environment"  # how ranks get a setting
# Calls that ranks repeat, as they are written with the module's full name or as the function names
# itself.
_CALLS = re.compile(
    r"torch\.(\w+\.)*(manual_seed(_all)?|seed)"
    r"|random\.(Random\.)?(seed|setstate)|numpy\.random\.(\w+\.)*(seed|set_state)"
    r"|logging\.(basicConfig|captureWarnings|addLevelName|setLoggerClass|config\.\w+"
    r"|getLogger\.\w+(Handler|Filter))"
    r"|(numbers|(_?collections[._])?abc)\.(\w+\.)*register"
    r"|_?(csv|codecs)\.(un)?register\w*|unittest\.mock\.patch(\.\w+)?\.start"
    r"|sklearn\.(\w+\.)*set_config|faulthandler\.enable|gc\.freeze"
    r"|matplotlib\.(pyplot\.)?(use|switch_backend)"
    r"|tensorflow\.(\w+\.)*(set_(random_)?seed|enable_op_determinism"
    r"|run_functions_eagerly|enable_numpy_behavior|enable_debug_mode|set_verbosity)"
    r"|keras\.(\w+\.)*(set_random_seed|disable_\w+|enable_\w+)"
    r"|jax\.(\w+\.)*config\.update|jax\._src\.config\.\w+\.update"
    r"|transformers\.(\w+\.)*(set_seed|enable_full_determinism|set_verbosity\w*|enable_\w+"
    r"|disable_\w+)|datasets\.(\w+\.)*(set_verbosity\w*|enable_\w+|disable_\w+)"
    r"|accelerate\.(\w+\.)*set_seed|(lightning|pytorch_lightning)(\.\w+)*\.seed_everything"
    r"|tqdm\.(\w+\.)*pandas|(horovod|hvd)(\.\w+)*\.init"
)
# What else PyTorch's own functions of such names set is for the process, too.
_SETS = re.compile(
    r"torch\.(\w+\.)*(set|enable|disable)_(?!device$|start_method$)\w+|torch\._C\._\w+"
)
# Calls that concern the machine, or that other code may make better.
_MACHINES = re.compile(
    r"(os|posix)\.chdir|atexit\.register|sys\.path\.\w+|os\.environ\.\w+|os\.putenv"
    r"|torch\.cuda\.set_device|torch\.distributed(\.\w+)*\.init_process_group"
    r"|jax\.distributed\.initialize|deepspeed(\.\w+)*\.init_distributed"
    r"|(torch\.)?multiprocessing\.(\w+\.)*set_start_method"
)
_SEEMS_TO_SET = re.compile(r"\w+(\.\w+)*\.(set|enable|disable|register|seed)_\w+")
# Calls of packages that are made for what they change there. A fork says whether ranks may.
_EFFECTS = re.compile(
    r"(?!(os|posix|sys|signal|subprocess|builtins|IPython|mlflow|wandb)\.)(?!.*\.set_trace$)"
    r"\w+(\.\w+)*\."
    r"_?((set|enable|disable|register|add|define|use|reset|configure|parse_config)(?![a-z])\w*"
    r"|setfirstweekday|seterr|\w+_limit)"
)
_SETTERS = re.compile("|".join(map(setters, TABLE)))
_ENVIRONMENT = re.compile(r"os\.environ(\.(update|setdefault|__setitem__))?|(os|posix)\.putenv")
_REGISTERS = re.compile(r"(\w+\.)+register(_\w+)?")  # as a decorator of a package
_BY_SETATTR = ".*"
_READS = re.compile(
    r"(builtins|os\.(environ|getenv)|torch\.distributed|jax)\b"
)  # what they call sets nothing
_ASSIGNS = (ast.Assign, ast.AugAssign, ast.Delete)
_NEUTRAL = (ast.Import, ast.ImportFrom, ast.Pass, ast.Return, ast.Global, ast.If)


def way_of(name: str) -> str:
    """Return how ranks get what a function or attribute sets, by its full name: "" for others."""
    if _CALLS.fullmatch(name):
        return AGAIN
    if _SETTERS.fullmatch(name):
        return VALUE
    if _SETS.fullmatch(name):
        return AGAIN
    return VARIABLE if _ENVIRONMENT.fullmatch(name) else ""


def is_of_machine(name: str) -> bool:
    """Return whether a function sets what concerns the machine, which is only told."""
    return any(pattern.fullmatch(name) for pattern in (_MACHINES, _SEEMS_TO_SET))


@dataclass(frozen=True)
class Setting:
    """A statement that sets something for the process: `names` are what it calls or assigns to.

    `runs` says that the program makes it again; else it is only reported. `is_effect` says that it
    calls a package for what that changes there.
    """

    executed: Executed
    names: tuple[str, ...]
    runs: bool
    is_effect: bool = False

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
    code = _Code(OwnModules(OwnModule(world.namespace, world.history)), world.namespace)
    texts: dict[int, list[str]] = {}  # by the positions of cells
    for executed in world.history.executed:
        texts.setdefault(executed.at[0], []).append(executed.statement.text)
    last = {tuple(text): position for position, text in texts.items()}.values()
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
        or (generators and any(map(SEEDS.fullmatch, s.names)) and world.asks_for_rank(s.executed))
    ]


def settings_findings(
    settings: Iterable[Setting], by_value: Mapping[str, Any], remaining: Mapping[str, Any]
) -> Iterator[Finding]:
    """Say what runs again in every rank, which state it has by value, and what stays behind."""
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


def _setting(executed: Executed, code: _Code, world: World) -> Setting | None:
    node = executed.statement.node
    inside = list(_inside(node))
    names = [code.name(item) for item in inside]
    if not inside or not all(names):
        return None
    asks = world.asks_for_rank(executed)
    of_each = (_sets(item, n, code, asks=asks) for item, n in zip(inside, names, strict=True))
    sets = [*chain.from_iterable(of_each)]
    ways, names = {way for _, way in sets}, [name for name, _ in sets]
    if ways == {VALUE} and world.saw(executed.statement) and not asks:
        return None
    plain = all(_is_plain(name, code.names) for name in executed.statement.names().needs)
    if ways <= {AGAIN, VALUE}:
        return Setting(executed, tuple(names), plain or ways == {VALUE})
    if "" not in ways and asks:
        return Setting(executed, tuple(names), runs=True)
    if plain and not asks and code.calls_for_effect(node):
        return Setting(executed, (names[0],), runs=False, is_effect=True)
    return Setting(executed, (names[0],), runs=False) if is_of_machine(names[0]) else None


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


def _sets(node: ast.stmt, name: str, code: _Code, *, asks: bool) -> list[tuple[str, str]]:
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
    if isinstance(node, _ASSIGNS) or name.endswith(_BY_SETATTR):
        return [(name, way or ("" if name.startswith(("os.", "sys.")) else AGAIN))]
    inside = [] if way else _made_by_function(node, code, asks=asks)
    return [(n, VALUE if way_of(n) == VALUE else AGAIN) for n in inside] or [(name, way)]


@dataclass(frozen=True)
class _Code:
    """What names stand for in a piece of the user's code."""

    modules: OwnModules
    names: Mapping[str, Any]

    def name(self, node: ast.stmt) -> str:
        """Return the full name of what a statement calls, or of a module's attribute that it
        sets."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            by_name = isinstance(node.value.func, ast.Name) and node.value.func.id == "setattr"
            if by_name and node.value.args and self._is_theirs(node.value.args[0]):
                return self._written(node.value.args[0]) + _BY_SETATTR
            func = node.value.func
            if isinstance(func, ast.Attribute) and resolve(func.value, self.names) is os.environ:
                return f"os.environ.{func.attr}"
            return self._written(func)
        for decorator in getattr(node, "decorator_list", ()):
            registers = getattr(decorator, "func", decorator)
            name = self._written(registers) if self._is_theirs(registers) else ""
            if _REGISTERS.fullmatch(name) and name.partition(".")[0] not in sys.stdlib_module_names:
                return name
        if not isinstance(node, _ASSIGNS):
            return ""
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        target = targets[0]
        if len(targets) > 1 or isinstance(node, (ast.AugAssign, ast.Delete)):
            of_packages = all(isinstance(t, ast.Attribute) and self._is_theirs(t) for t in targets)
            return self._written(target) if of_packages else ""
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Call):
            called = self._written(node.value.func)  # `_ = torch.manual_seed(0)`
            is_effect = _EFFECTS.fullmatch(called) and self.calls_for_effect(node)
            is_told = target.id.startswith("_") and (is_of_machine(called) or is_effect)
            return called if is_told or way_of(called) in (AGAIN, VALUE) else ""
        if isinstance(target, ast.Subscript):
            target = target.value
        if resolve(target, self.names) is os.environ:
            return "os.environ"
        if isinstance(target, ast.Name) or not self._is_theirs(target):
            return ""
        return self._written(target)

    def calls_for_effect(self, node: ast.stmt) -> bool:
        """Return whether a statement calls a package's function, or a method that its module or
        class has, for what that changes in the package."""
        if not isinstance(node, (ast.Expr, ast.Assign)) or not isinstance(node.value, ast.Call):
            return False
        func = node.value.func
        name = self._written(func)
        is_effect = _EFFECTS.fullmatch(name) and not _MACHINES.fullmatch(name)
        return bool(is_effect) and self._is_theirs(func)

    def only_reads(self, node: ast.stmt, but: Collection[str]) -> bool:
        """Return whether a statement gives names of a function, `but` some, what it computes or
        asks: `seed += int(os.environ["RANK"])`."""
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            return False
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
        return all(isinstance(t, ast.Name) and t.id not in but for t in targets) and all(
            _READS.match(self._written(func) or ast.unparse(func)) for func in calls
        )

    def _is_theirs(self, node: ast.expr) -> bool:
        """Return whether something is a part of a package, or what its function gives. What is set
        on the user's own modules travels with their state."""
        while isinstance(node, (ast.Attribute, ast.Call)):
            node = node.func if isinstance(node, ast.Call) else node.value
        root = resolve(node, self.names)
        module = root.__name__ if isinstance(root, ModuleType) else getattr(root, "__module__", "")
        is_code = isinstance(root, (ModuleType, type, FunctionType, BuiltinFunctionType))
        is_builtin = root is vars(builtins).get(getattr(node, "id", ""))
        return is_code and not is_builtin and self.modules.of(module) is None

    def _written(self, node: ast.expr) -> str:
        rest: list[str] = []
        while isinstance(node, ast.Attribute):
            rest.insert(0, node.attr)
            node = node.value
        if isinstance(node, ast.Call) and rest:
            return ".".join([*filter(None, [self._written(node.func)]), *rest])
        found = resolve(node, self.names)
        if isinstance(found, ModuleType):
            return ".".join([found.__name__, *rest])
        if isinstance(found, (type, FunctionType, BuiltinFunctionType, MethodType)):
            return ".".join([name_of(found), *rest])
        return ""


def _made_by_function(node: ast.stmt, code: _Code, *, asks: bool) -> list[str]:
    """What a call of the user's function sets, if that is all it does: `set_seed(0)`. It may print
    besides, unless it only seeds alike in all ranks, which have the generators' states by value."""
    assert isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    target = resolve(node.value.func, code.names)
    module = code.modules.of(target.__module__) if type(target) is FunctionType else None
    latest = module.history.of(target.__name__)[:1] if module else []
    function = latest[0].statement.node if latest else None
    if module is None or not isinstance(function, ast.FunctionDef):
        return []
    inner = _Code(code.modules, {**module.namespace, **_imported(function)})
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


def _imported(function: ast.FunctionDef) -> dict[str, Any]:
    """What a function that has run imports, by its names for it; its parameters are unknown."""
    names: dict[str, Any] = dict.fromkeys(a.arg for a in function.args.args)
    for node in ast.walk(function):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module = alias.name if alias.asname else alias.name.partition(".")[0]
                names[alias.asname or module] = sys.modules.get(module)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found = member(sys.modules.get(node.module or ""), alias.name)
                names[alias.asname or alias.name] = found
    return names


def _is_plain(name: str, namespace: Mapping[str, Any]) -> bool:
    if name not in namespace:
        return hasattr(builtins, name)
    value = namespace[name]
    return isinstance(value, ModuleType) or callable(value) or is_settings(value)
