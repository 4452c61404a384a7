"""The table of settings that a process has beside its values, such as options of packages.

The kernel reads them, and every rank sets them. The table's names are a module and a part of it.
Settings of modules that are not imported are neither read nor set. Some can only be read: a rank
can't have them.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Collection, Dict, Iterator, Tuple

from distrain_nb.worker.rank import (
    arguments,
    decimal_state,
    matplotlib_state,
    pandas_state,
    torch_state,
)
from distrain_nb.worker.rank.process_setting import (
    FIRST,
    ProcessState,
    attribute,
    called,
    hook,
    keywords,
    of_user,
)
from distrain_nb.worker.rank.python_state import (
    add_mime_types,
    categories,
    logger_states,
    mime_types,
    pickle_reducers,
    set_categories,
    set_filters,
    set_gc,
    set_loggers,
    set_pickle_reducers,
    signal_handlers,
    timers,
    umask,
)

_TRAPS = ("DivisionByZero", "InvalidOperation", "Overflow")  # of decimal numbers
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

_GLOBAL_HOOKS = ProcessState(
    torch_state.global_hooks,
    torch_state.set_global_hooks,
    {},
    r"register_(module|optimizer)_\w+",
)
TABLE: Dict[str, ProcessState] = {
    # A study's trial adds its own arguments to those that the notebook has set.
    "sys:argv": ProcessState(
        lambda module: [*module.argv], arguments.set_arguments, FIRST, "argv.*"
    ),
    "sys:getrecursionlimit()": called("getrecursionlimit", "setrecursionlimit", 1000),
    "sys:getswitchinterval()": called("getswitchinterval", "setswitchinterval", 0.005),
    "sys:get_int_max_str_digits()": called(
        "get_int_max_str_digits", "set_int_max_str_digits", FIRST
    ),
    "sys:excepthook": hook("excepthook"),
    "sys:unraisablehook": hook("unraisablehook"),
    "sys:gettrace()": ProcessState(lambda module: of_user(module.gettrace()), None, None),
    "sys:getprofile()": ProcessState(lambda module: of_user(module.getprofile()), None, None),
    "threading:excepthook": hook("excepthook"),
    "threading:stack_size()": called("stack_size", "stack_size", 0),
    "os:umask()": ProcessState(umask, lambda module, value: module.umask(value), FIRST, "umask"),
    "os:nice()": ProcessState(lambda module: module.getpriority(0, 0), None, FIRST, "nice"),
    "signal:getsignal()": ProcessState(signal_handlers, None, FIRST, "signal"),
    "signal:getitimer()": ProcessState(timers, None, FIRST, "setitimer|alarm"),
    "locale:setlocale()": ProcessState(categories, set_categories, FIRST, "setlocale"),
    "socket:getdefaulttimeout()": called("getdefaulttimeout", "setdefaulttimeout", None),
    "warnings:filters": ProcessState(
        lambda module: [*module.filters],
        set_filters,
        FIRST,
        "filterwarnings|simplefilter|resetwarnings",
    ),
    "warnings:showwarning": hook("showwarning"),
    "warnings:formatwarning": hook("formatwarning"),
    "logging:getLogger()": ProcessState(
        logger_states, set_loggers, FIRST, "basicConfig|setLevel", new=(0, True, False)
    ),
    "logging:disable()": ProcessState(
        lambda module: module.root.manager.disable,
        lambda module, value: module.disable(value),
        0,
        "disable",
    ),
    "gc:isenabled()": ProcessState(
        lambda module: module.isenabled(), set_gc, True, "disable|enable"
    ),
    "gc:get_threshold()": ProcessState(
        lambda module: module.get_threshold(),
        lambda module, value: module.set_threshold(*value),
        FIRST,
        "set_threshold",
    ),
    "decimal:getcontext()": ProcessState(
        decimal_state.decimal_context,
        decimal_state.set_decimal_context,
        (28, "ROUND_HALF_EVEN", -999999, 999999, 1, 0, _TRAPS),
        "setcontext|getcontext.*",
    ),
    "copyreg:dispatch_table": ProcessState(pickle_reducers, set_pickle_reducers, [], "pickle"),
    "mimetypes:types_map": ProcessState(mime_types, add_mime_types, {}, "add_type|init"),
    "numpy:geterr()": keywords("geterr", "seterr", _ERRORS),
    "numpy:get_printoptions()": keywords("get_printoptions", "set_printoptions", _NUMPY_PRINTS),
    "numpy:geterrcall()": called("geterrcall", "seterrcall", None),
    "numpy:getbufsize()": called("getbufsize", "setbufsize", 8192),
    "pandas:options": ProcessState(
        pandas_state.pandas_options,
        pandas_state.set_pandas_options,
        {},
        r"(re)?set_option|options(\.\w+)+",
    ),
    "matplotlib:rcParams": ProcessState(
        matplotlib_state.rc_parameters,
        lambda module, values: module.rcParams.update(values),
        {},
        "use|rc|rcdefaults|rcParams(\\.update)?",
    ),
    "matplotlib.colors:colors": ProcessState(
        matplotlib_state.color_letters,
        matplotlib_state.set_color_letters,
        {},
        r"seaborn\.(\w+\.)*set\w*",
    ),
    "torch:get_default_dtype()": ProcessState(
        lambda module: str(module.get_default_dtype()),
        lambda module, value: module.set_default_dtype(getattr(module, value.partition(".")[2])),
        "torch.float32",
        "set_default_dtype",
    ),
    "torch:get_deterministic_debug_mode()": called(
        "get_deterministic_debug_mode",
        "set_deterministic_debug_mode",
        0,
        "set_deterministic_debug_mode|use_deterministic_algorithms",
    ),
    "torch:get_float32_matmul_precision()": called(
        "get_float32_matmul_precision", "set_float32_matmul_precision", "highest"
    ),
    "torch:is_grad_enabled()": called("is_grad_enabled", "set_grad_enabled", True),
    "torch:is_warn_always_enabled()": called("is_warn_always_enabled", "set_warn_always", False),
    "torch:get_num_threads()": called("get_num_threads", "set_num_threads", FIRST),
    "torch:is_anomaly_enabled()": ProcessState(
        lambda module: (module.is_anomaly_enabled(), module.is_anomaly_check_nan_enabled()),
        lambda module, value: module.autograd.set_detect_anomaly(*value),
        (False, True),
        "set_detect_anomaly",
    ),
    "torch._tensor_str:PRINT_OPTS": ProcessState(
        torch_state.torch_prints, torch_state.set_torch_prints, {}, "set_printoptions"
    ),
    "torch:autocast()": ProcessState(torch_state.autocast, torch_state.set_autocast, {}),
    "torch:function_modes": ProcessState(
        torch_state.function_modes, torch_state.enter_modes, [], "set_default_device"
    ),
    "torch:dispatch_modes": ProcessState(torch_state.dispatch_modes, torch_state.enter_modes, []),
    "torch:saved_tensors_hooks": ProcessState(
        torch_state.saving_hooks, torch_state.set_saving_hooks, None
    ),
    "torch:inference_mode()": ProcessState(
        lambda module: module.is_inference_mode_enabled(), torch_state.set_inference, False
    ),
    "torch.backends.cuda:enable_sdp()": ProcessState(torch_state.sdp, torch_state.set_sdp, {}),
    "torch.nn.modules.module:hooks": _GLOBAL_HOOKS,
    "torch.optim.optimizer:hooks": _GLOBAL_HOOKS,
    "torch.backends.mkldnn:enabled": attribute("enabled", FIRST),
    "torch.backends.cudnn:benchmark": attribute("benchmark", False),
    "torch.backends.cudnn:deterministic": attribute("deterministic", False),
    "torch.backends.cudnn:enabled": attribute("enabled", True),
    "matplotlib.pyplot:get_fignums()": ProcessState(
        lambda module: module.get_fignums(), None, [], "figure|subplots"
    ),
    "keras.config:floatx()": called("floatx", "set_floatx", "float32"),
    "keras.config:dtype_policy()": called(
        "dtype_policy", "set_dtype_policy", "float32", "set_(dtype|global)_policy"
    )._replace(read=lambda module: module.dtype_policy().name),
    "tf_keras.backend:floatx()": called("floatx", "set_floatx", "float32"),
}


def read(but: Collection[str] = ()) -> Iterator[Tuple[str, Any]]:
    """Yield names and values of this process's settings, *but* some.

    A setting is left out if its module is not imported, or if it can't be read.
    """
    for name, state in TABLE.items():
        module = sys.modules.get(name.partition(":")[0])
        if module is not None and name not in but:
            try:
                value = state.read(module)
            except Exception:  # another version of the package
                continue
            yield name, value


def is_set_by(name: str, function: str) -> bool:
    """Return whether a function or attribute of this full name sets a setting."""
    return re.fullmatch(setters(name), function) is not None


def setters(name: str) -> str:
    """Return a pattern for the full names of functions and attributes that set a setting."""
    module, _, part = name.partition(":")
    if (
        TABLE[name].set_by == part and "." in module
    ):  # other modules of the package have such an attribute too
        return re.escape(f"{module}.{part}")
    root = module.partition(".")[0].replace("os", "os|posix")
    return rf"(_?({root})\.(\w+\.)*)?_?({TABLE[name].set_by or '(?!)'})"


def can_be_set(name: str) -> bool:
    """Return whether a rank can have the notebook's value of a setting or other state."""
    return name not in TABLE or TABLE[name].write is not None


def write(name: str, module: Any, value: Any) -> None:
    """Set a setting of this process. Raises what its module raises."""
    TABLE[name].write(module, value)  # type: ignore[misc]
