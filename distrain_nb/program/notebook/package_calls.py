"""What the user's code calls or sets in packages, by full names, and how ranks get that.

`AGAIN`: by the same statement. `VALUE`: by the kernel's value. `VARIABLE`: in their environment.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.objects import CHANGING
from distrain_nb.program.notebook.ancestry import is_settings
from distrain_nb.program.notebook.local_modules import OwnModule, OwnModules
from distrain_nb.program.notebook.package_objects import PackageObjects
from distrain_nb.program.notebook.process_objects import name_of
from distrain_nb.program.notebook.reach import asks_machine, member, resolve
from distrain_nb.program.python.nodes import words_in
from distrain_nb.worker.rank.process_state import TABLE, setters

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


AGAIN, VALUE, VARIABLE = "again", "by value", "in the environment"  # how ranks get a setting
# Calls that ranks repeat, as they are written with the module's full name or as the function names
# itself.
_CALLS = re.compile(
    r"torch\.(\w+\.)*(manual_seed(_all)?|seed)"
    r"|random\.(Random\.)?(seed|setstate)|numpy\.random\.(\w+\.)*(seed|set_state)"
    r"|logging\.(basicConfig|captureWarnings|addLevelName|setLoggerClass|config\.\w+"
    r"|getLogger\.\w+(Handler|Filter))"
    r"|(numbers|(_?collections[._])?abc)\.(\w+\.)*register"
    r"|(os|posix)\.(put|unset)env"  # which `os.environ` doesn't have
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
    r"|tqdm\.(\w+\.)*pandas|torch\.library\.Library(\.\w+)?|(horovod|hvd)(\.\w+)*\.init"
)
# What else PyTorch's own functions of such names set is for the process, too.
_SETS = re.compile(
    r"torch\.(\w+\.)*(set|enable|disable)_(?!device$|start_method$)\w+|torch\._C\._\w+"
)
# Calls that concern the machine, or that other code may make better.
_MACHINES = re.compile(
    r"(os|posix)\.chdir|atexit\.register|sys\.path\.\w+|os\.environ\.\w+"
    r"|torch\.cuda\.set_device|torch\.distributed(\.\w+)*\.init_process_group"
    r"|jax\.distributed\.initialize|deepspeed(\.\w+)*\.init_distributed"
    r"|(torch\.)?multiprocessing\.(\w+\.)*set_start_method"
)
_SEEMS_TO_SET = re.compile(r"\w+(\.\w+)*\.(set|enable|disable|register|seed)_\w+")
# Calls of packages that are made for what they change there. A fork says whether ranks may.
_EFFECTS = re.compile(
    r"(?!.*\.set_trace$)\w+(\.\w+)*\."
    r"_?((set|enable|disable|register|add|define|use|reset|configure|parse_config)(?![a-z])\w*"
    r"|setfirstweekday|seterr|\w+_limit)"
)
_OF_PROCESSES = {
    *("os", "posix", "sys", "signal", "subprocess", "builtins", "IPython", "mlflow", "wandb"),
}
# What changes a container, as its methods are called.
_FILLS = {
    *("append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault"),
    *("remove", "discard", "pop", "popitem", "popleft", "clear", "move_to_end"),
}
_SETTERS = re.compile("|".join(map(setters, TABLE)))
_ENVIRONMENT = re.compile(r"os\.environ(\.(update|setdefault|__setitem__))?")
_REGISTERS = re.compile(r"(\w+\.)+register(_\w+)?")  # as a decorator of a package
BY_SETATTR = ".*"
_READS = re.compile(
    r"(builtins|os\.(environ|getenv)|torch\.distributed|jax)\b"
)  # what they call sets nothing
_NOTHING = object()
ASSIGNS = (ast.Assign, ast.AugAssign, ast.Delete)


@lru_cache(maxsize=4096)
def way_of(name: str) -> str:
    """Return how ranks get what a function or attribute sets, by its full name: "" for others."""
    if _CALLS.fullmatch(name):
        return AGAIN
    if _SETTERS.fullmatch(name):
        return VALUE
    if _SETS.fullmatch(name):
        return AGAIN
    return VARIABLE if _ENVIRONMENT.fullmatch(name) else ""


@lru_cache(maxsize=4096)
def is_of_machine(name: str) -> bool:
    """Return whether a function sets what concerns the machine, which is only told."""
    return any(pattern.fullmatch(name) for pattern in (_MACHINES, _SEEMS_TO_SET))


@dataclass(frozen=True)
class PackageCalls:
    """What names stand for in a piece of the user's code."""

    modules: OwnModules
    names: Mapping[str, Any]
    imported: Mapping[str, str]  # objects that packages gave, by their full names
    packages: PackageObjects

    def name(self, node: ast.stmt) -> str:
        """Return the full name of what a statement calls, or of a module's attribute that it
        sets."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            by_name = isinstance(node.value.func, ast.Name) and node.value.func.id == "setattr"
            if by_name and node.value.args and self._is_theirs(node.value.args[0]):
                return self._written(node.value.args[0]) + BY_SETATTR
            func = _called(node.value)
            if isinstance(func, ast.Attribute) and resolve(func.value, self.names) is os.environ:
                return f"os.environ.{func.attr}"
            return self._written(func) or self._method(func)
        for decorator in getattr(node, "decorator_list", ()):
            registers = getattr(decorator, "func", decorator)
            name = self._written(registers) if self._is_theirs(registers) else ""
            if _REGISTERS.fullmatch(name) and name.partition(".")[0] not in sys.stdlib_module_names:
                return name
        if not isinstance(node, ASSIGNS):
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
        is_place = not isinstance(target, ast.Name) or isinstance(targets[0], ast.Subscript)
        return self._written(target) if is_place and self._is_theirs(target) else ""

    def computed(self, node: ast.stmt) -> str:
        """Return the path of a package's attribute that a statement computes: plain data, which
        what it was computed of may no longer give."""
        if not isinstance(node, ast.Assign) or isinstance(node.value, (ast.Constant, ast.Name)):
            return ""
        target = node.targets[0]
        owner = resolve(getattr(target, "value", target), self.names)
        if not (isinstance(target, ast.Attribute) and isinstance(owner, ModuleType)):
            return ""
        is_plain = len(node.targets) == 1 and is_settings(getattr(owner, target.attr, _NOTHING))
        if not is_plain or not self._is_theirs(target) or way_of(self._written(target)) == VALUE:
            return ""
        return "" if asks_machine(words_in(node)) else f"{owner.__name__}:{target.attr}"

    def calls_for_effect(self, node: ast.stmt) -> bool:
        """Return whether a statement calls a package's function, or a method that its module or
        class has, for what that changes in the package."""
        if not isinstance(node, (ast.Expr, ast.Assign)) or not isinstance(node.value, ast.Call):
            return False
        func = _called(node.value)
        name = self._written(func)
        if _MACHINES.fullmatch(name) or name.partition(".")[0] in _OF_PROCESSES:
            return False
        return (bool(_EFFECTS.fullmatch(name)) or self._fills(func)) and self._is_theirs(func)

    def _fills(self, func: ast.expr) -> bool:
        """Return whether a call changes a container: `gc.callbacks.append(note)`."""
        if not isinstance(func, ast.Attribute) or func.attr not in _FILLS:
            return False
        return isinstance(resolve(func.value, self.names), CHANGING)

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
        if path := self.imported.get(getattr(node, "id", "")):
            return self.modules.of(path.rpartition(".")[0]) is None
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
        path = self.imported.get(getattr(node, "id", ""))
        return ".".join([path, *rest]) if path else ""

    def _method(self, func: ast.expr) -> str:
        """Return the full name of an object's method if its calls are to be repeated."""
        if not isinstance(func, ast.Attribute):
            return ""
        owner = resolve(func.value, self.names)
        name = f"{name_of(type(owner))}.{func.attr}"
        return name if way_of(name) == AGAIN else ""


def _called(call: ast.Call) -> ast.expr:
    """Return what a call is made of, `register` of `register("name")(cls)`."""
    func = call.func
    while isinstance(func, ast.Call):
        func = func.func
    return func


def given_by_packages(module: OwnModule, packages: PackageObjects) -> dict[str, str]:
    """Return the full names of objects that a module has from others: by `from … import …`, or as
    `rc = plt.rcParams` takes them."""
    paths = {}
    for name in module.history.bindings:
        if place := packages.place(module.namespace.get(name)):
            paths[name] = ".".join(place)
            continue
        statement = module.history.of(name)[0].statement
        alias, package = statement.alias(name), getattr(statement.node, "module", None)
        code = (ModuleType, type, FunctionType, BuiltinFunctionType)
        if alias and package and not isinstance(module.namespace.get(name), code):
            paths[name] = f"{package}.{alias.name}"
    return paths


def imported_in(function: ast.FunctionDef) -> dict[str, Any]:
    """Return the modules that a function imports, by its names for them.

    Its parameters are among them, as unknown.
    """
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
