"""Settings of a process that are in no value: the kernel reads them, and every rank sets them.

`TABLE` has for each, by its module and name, how it is read and set, and what it is in a new
process. Only modules that are imported already are asked. What a rank can't have is only read.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
from types import FunctionType
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterator,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
)

from distrain_nb.worker.rank import package_state
from distrain_nb.worker.rank.on_import import on_import

FIRST = object()  # as it was when it was read first
_DIFFERENT = object()


class ProcessState(NamedTuple):
    """One setting. `set_by` is a pattern of the functions and attributes that set it, below the
    module's package or with the name of another one. Of a dict only the items count that differ;
    an item that is not in the usual one is usually `new`."""

    read: Callable[[Any], Any]
    write: Optional[Callable[[Any, Any], object]]
    usual: Any
    set_by: str = ""
    new: Any = _DIFFERENT

    def differs(self, value: Any, first: Any) -> Any:
        """Return what differs from the usual value, or from the first one; None for nothing."""
        usual = first if self.usual is FIRST else self.usual
        if isinstance(usual, dict):
            return {k: v for k, v in value.items() if v != usual.get(k, self.new)} or None
        return None if value == usual or value is None else value


def _called(get: str, put: str, usual: Any, set_by: str = "") -> ProcessState:
    """Return a setting that one function of a module gives and another one sets."""
    return ProcessState(
        lambda module: getattr(module, get)(),
        lambda module, value: getattr(module, put)(value),
        usual,
        set_by or put,
    )


def _attribute(path: str, usual: Any) -> ProcessState:
    """Return a setting that is an attribute of a module."""
    return ProcessState(
        lambda module: getattr(module, path),
        lambda module, value: setattr(module, path, value),
        usual,
        path,
    )


def _hook(name: str) -> ProcessState:
    """Return a function of a module that the user may put another one in the place of."""
    return _attribute(name, FIRST)._replace(
        read=lambda module: _of_user(getattr(module, name, None))
    )


def _of_user(function: Any) -> Any:
    """Return a function that the user has written, None for others."""
    if type(function) is not FunctionType or is_of_package(function):
        return None
    file = _file(function)
    of_python = function.__module__ != "__main__" and (not file or file.startswith(_PYTHON))
    return None if of_python else function


_PYTHON = os.path.dirname(os.__file__)


def is_of_package(definition: Any) -> bool:
    """Return whether a function or class is of an installed package."""
    return definition.__module__ != "__main__" and "-packages" in _file(definition)


def _file(definition: Any) -> str:
    return str(getattr(sys.modules.get(definition.__module__ or ""), "__file__", None) or "")


def _umask(_: Any) -> Optional[int]:
    """Return the umask without setting it; None where only setting it would tell."""
    try:
        with open("/proc/self/status", "rb") as status:
            return int(re.search(rb"Umask:\s*(\d+)", status.read())[1], 8)  # type: ignore[index]
    except (OSError, TypeError):
        return None


def _categories(locale: Any) -> Tuple[str, ...]:
    return tuple(locale.setlocale(getattr(locale, name)) for name in _LOCALES)


def _set_categories(locale: Any, values: Tuple[str, ...]) -> None:
    for name, value in zip(_LOCALES, values):
        locale.setlocale(getattr(locale, name), value)


_LOCALES = ("LC_CTYPE", "LC_COLLATE", "LC_TIME", "LC_MONETARY", "LC_NUMERIC", "LC_MESSAGES")


def _set_filters(module: Any, filters: Any) -> None:
    """Set filters; those for warnings of packages that have been imported stay behind these."""
    of_packages = [f for f in module.filters if is_of_package(f[2]) and f not in filters]
    module.resetwarnings()  # it also says that filters have changed, which has no public call
    module.filters[:] = [*filters, *of_packages]


def _loggers(module: Any) -> Dict[str, Tuple[int, bool, bool]]:
    loggers = {"": module.root, **module.root.manager.loggerDict}
    return {
        name: (item.level, item.propagate, item.disabled)
        for name, item in loggers.copy().items()
        if isinstance(item, logging.Logger)
    }


def _set_loggers(module: Any, loggers: Mapping[str, Tuple[int, bool, bool]]) -> None:
    """Set levels; of packages that set their own when they are imported, once more after that."""

    def again(_: Any) -> None:
        for name, (level, propagate, disabled) in loggers.items():
            logger = module.getLogger(name)
            if logger.level != level:  # setting it walks over all loggers
                logger.setLevel(level)
            logger.propagate, logger.disabled = propagate, disabled

    again(module)
    roots = {name.partition(".")[0] for name in loggers} - sys.modules.keys() - {""}
    on_import(dict.fromkeys(roots, again))


def _set_gc(module: Any, is_on: bool) -> None:
    (module.enable if is_on else module.disable)()


_TRAPS = ("DivisionByZero", "InvalidOperation", "Overflow")


def _types(module: Any) -> Dict[str, str]:
    if not module.inited:
        return {}
    usual = _usual_types(module)
    return {k: v for k, v in module.types_map.items() if usual.get(k) != v}


@functools.lru_cache(maxsize=None)
def _usual_types(module: Any) -> Dict[str, str]:
    files = tuple(filter(os.path.isfile, module.knownfiles))
    return dict(module.MimeTypes(files).types_map[True])


def _add_types(module: Any, types: Mapping[str, str]) -> None:
    for ending, kind in types.items():
        module.add_type(kind, ending)


def _reducers(module: Any) -> Any:
    table = module.dispatch_table.copy().items()
    return [(c, f) for c, f in table if "__main__" in (c.__module__, f.__module__)]


def _set_reducers(module: Any, pairs: Any) -> None:
    for kind, reducer in pairs:
        module.pickle(kind, reducer)


_NUMPY_PRINTS = {
    "edgeitems": 3,
    "threshold": 1000,
    "floatmode": "maxprec",
    "precision": 8,
    "suppress": False,
    "linewidth": 75,
    "nanstr": "nan",
    "infstr": "inf",
    "sign": "-",
    "formatter": None,
    "legacy": False,
    "override_repr": None,
}
_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def _keywords(get: str, put: str, usual: Mapping[str, Any]) -> ProcessState:
    return ProcessState(
        lambda module: getattr(module, get)(),
        lambda module, values: getattr(module, put)(**values),
        usual,
        put,
    )


def _handlers(module: Any) -> Dict[str, Any]:
    handlers = {s.name: module.getsignal(s) for s in module.Signals}
    return {n: f for n, f in handlers.items() if type(f) is FunctionType and _of_user(f)}


def _timers(module: Any) -> Dict[str, float]:
    """Return the interval of each timer that runs, in seconds; 0 if it signals once."""
    running = {n: module.getitimer(getattr(module, n)) for n in ("ITIMER_REAL", "ITIMER_PROF")}
    return {name: times[1] for name, times in running.items() if any(times)}


_GLOBAL_HOOKS = ProcessState(
    package_state.global_hooks,
    package_state.set_global_hooks,
    {},
    r"register_(module|optimizer)_\w+",
)
TABLE: Dict[str, ProcessState] = {
    # A study's trial adds its own arguments to those that the notebook has set.
    "sys:argv": ProcessState(
        lambda module: [*module.argv], package_state.set_arguments, FIRST, "argv.*"
    ),
    "sys:getrecursionlimit()": _called("getrecursionlimit", "setrecursionlimit", 1000),
    "sys:getswitchinterval()": _called("getswitchinterval", "setswitchinterval", 0.005),
    "sys:get_int_max_str_digits()": _called(
        "get_int_max_str_digits", "set_int_max_str_digits", FIRST
    ),
    "sys:excepthook": _hook("excepthook"),
    "sys:unraisablehook": _hook("unraisablehook"),
    "sys:gettrace()": ProcessState(lambda module: _of_user(module.gettrace()), None, None),
    "sys:getprofile()": ProcessState(lambda module: _of_user(module.getprofile()), None, None),
    "threading:excepthook": _hook("excepthook"),
    "threading:stack_size()": _called("stack_size", "stack_size", 0),
    "os:umask()": ProcessState(_umask, lambda module, value: module.umask(value), FIRST, "umask"),
    "os:nice()": ProcessState(lambda module: module.getpriority(0, 0), None, FIRST, "nice"),
    "signal:getsignal()": ProcessState(_handlers, None, FIRST, "signal"),
    "signal:getitimer()": ProcessState(_timers, None, FIRST, "setitimer|alarm"),
    "locale:setlocale()": ProcessState(_categories, _set_categories, FIRST, "setlocale"),
    "socket:getdefaulttimeout()": _called("getdefaulttimeout", "setdefaulttimeout", None),
    "warnings:filters": ProcessState(
        lambda module: [*module.filters],
        _set_filters,
        FIRST,
        "filterwarnings|simplefilter|resetwarnings",
    ),
    "warnings:showwarning": _hook("showwarning"),
    "warnings:formatwarning": _hook("formatwarning"),
    "logging:getLogger()": ProcessState(
        _loggers, _set_loggers, FIRST, "basicConfig|setLevel", new=(0, True, False)
    ),
    "logging:disable()": ProcessState(
        lambda module: module.root.manager.disable,
        lambda module, value: module.disable(value),
        0,
        "disable",
    ),
    "gc:isenabled()": ProcessState(
        lambda module: module.isenabled(), _set_gc, True, "disable|enable"
    ),
    "gc:get_threshold()": ProcessState(
        lambda module: module.get_threshold(),
        lambda module, value: module.set_threshold(*value),
        FIRST,
        "set_threshold",
    ),
    "decimal:getcontext()": ProcessState(
        package_state.decimal_context,
        package_state.set_decimal_context,
        (28, "ROUND_HALF_EVEN", -999999, 999999, 1, 0, _TRAPS),
        "setcontext|getcontext.*",
    ),
    "copyreg:dispatch_table": ProcessState(_reducers, _set_reducers, [], "pickle"),
    "mimetypes:types_map": ProcessState(_types, _add_types, {}, "add_type|init"),
    "numpy:geterr()": _keywords("geterr", "seterr", _ERRORS),
    "numpy:get_printoptions()": _keywords("get_printoptions", "set_printoptions", _NUMPY_PRINTS),
    "numpy:geterrcall()": _called("geterrcall", "seterrcall", None),
    "numpy:getbufsize()": _called("getbufsize", "setbufsize", 8192),
    "pandas:options": ProcessState(
        package_state.pandas_options,
        package_state.set_pandas_options,
        {},
        r"(re)?set_option|options(\.\w+)+",
    ),
    "matplotlib:rcParams": ProcessState(
        package_state.rc_parameters,
        lambda module, values: module.rcParams.update(values),
        {},
        "use|rc|rcdefaults|rcParams(\\.update)?",
    ),
    "matplotlib.colors:colors": ProcessState(
        package_state.color_letters, package_state.set_color_letters, {}, r"seaborn\.(\w+\.)*set\w*"
    ),
    "torch:get_default_dtype()": ProcessState(
        lambda module: str(module.get_default_dtype()),
        lambda module, value: module.set_default_dtype(getattr(module, value.partition(".")[2])),
        "torch.float32",
        "set_default_dtype",
    ),
    "torch:get_deterministic_debug_mode()": _called(
        "get_deterministic_debug_mode",
        "set_deterministic_debug_mode",
        0,
        "set_deterministic_debug_mode|use_deterministic_algorithms",
    ),
    "torch:get_float32_matmul_precision()": _called(
        "get_float32_matmul_precision", "set_float32_matmul_precision", "highest"
    ),
    "torch:is_grad_enabled()": _called("is_grad_enabled", "set_grad_enabled", True),
    "torch:is_warn_always_enabled()": _called("is_warn_always_enabled", "set_warn_always", False),
    "torch:get_num_threads()": _called("get_num_threads", "set_num_threads", FIRST),
    "torch:is_anomaly_enabled()": ProcessState(
        lambda module: (module.is_anomaly_enabled(), module.is_anomaly_check_nan_enabled()),
        lambda module, value: module.autograd.set_detect_anomaly(*value),
        (False, True),
        "set_detect_anomaly",
    ),
    "torch._tensor_str:PRINT_OPTS": ProcessState(
        package_state.torch_prints, package_state.set_torch_prints, {}, "set_printoptions"
    ),
    "torch:autocast()": ProcessState(package_state.autocast, package_state.set_autocast, {}),
    "torch:function_modes": ProcessState(
        package_state.function_modes, package_state.enter_modes, [], "set_default_device"
    ),
    "torch:dispatch_modes": ProcessState(
        package_state.dispatch_modes, package_state.enter_modes, []
    ),
    "torch:saved_tensors_hooks": ProcessState(
        package_state.saving_hooks, package_state.set_saving_hooks, None
    ),
    "torch:inference_mode()": ProcessState(
        lambda module: module.is_inference_mode_enabled(), package_state.set_inference, False
    ),
    "torch.backends.cuda:enable_sdp()": ProcessState(package_state.sdp, package_state.set_sdp, {}),
    "torch.nn.modules.module:hooks": _GLOBAL_HOOKS,
    "torch.optim.optimizer:hooks": _GLOBAL_HOOKS,
    "torch.backends.mkldnn:enabled": _attribute("enabled", FIRST),
    "torch.backends.cudnn:benchmark": _attribute("benchmark", False),
    "torch.backends.cudnn:deterministic": _attribute("deterministic", False),
    "torch.backends.cudnn:enabled": _attribute("enabled", True),
    "matplotlib.pyplot:get_fignums()": ProcessState(
        lambda module: module.get_fignums(), None, [], "figure|subplots"
    ),
    "keras.config:floatx()": _called("floatx", "set_floatx", "float32"),
    "keras.config:dtype_policy()": _called(
        "dtype_policy", "set_dtype_policy", "float32", "set_(dtype|global)_policy"
    )._replace(read=lambda module: module.dtype_policy().name),
    "tf_keras.backend:floatx()": _called("floatx", "set_floatx", "float32"),
}


def read(but: Collection[str] = ()) -> Iterator[Tuple[str, Any]]:
    """Yield the settings of this process by their names, of modules that are imported `but` some;
    those that can't be read are left out."""
    for name, state in TABLE.items():
        module = sys.modules.get(name.partition(":")[0])
        if module is not None and name not in but:
            try:
                value = state.read(module)
            except Exception:  # another version of the package
                continue
            yield name, value


def is_set_by(name: str, function: str) -> bool:
    """Return whether a function or attribute, by its full name, sets one of these settings."""
    return re.fullmatch(setters(name), function) is not None


def setters(name: str) -> str:
    """Return a pattern of the full names of what sets one of these settings."""
    module, _, part = name.partition(":")
    if TABLE[name].set_by == part and "." in module:  # one of several such attributes in a package
        return re.escape(f"{module}.{part}")
    root = module.partition(".")[0].replace("os", "os|posix")
    return rf"(_?({root})\.(\w+\.)*)?_?({TABLE[name].set_by or '(?!)'})"


def can_be_set(name: str) -> bool:
    """Return whether a rank can have a setting, or other state, of the notebook."""
    return name not in TABLE or TABLE[name].write is not None


def write(name: str, module: Any, value: Any) -> None:
    """Set one of this process. Raises what its module raises."""
    TABLE[name].write(module, value)  # type: ignore[misc]
