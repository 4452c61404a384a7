"""Settings of packages that no single function reads and sets."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, List, Mapping, Tuple

_PRINTS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_ATTENTION = ("flash", "mem_efficient", "math", "cudnn")
_DIFFERENT = object()
_entered: List[Any] = []  # what stays in force while it is alive


def torch_prints(module: Any) -> Dict[str, Any]:
    return {k: v for k, v in vars(module.PRINT_OPTS).items() if v != _PRINTS.get(k)}


def set_torch_prints(module: Any, values: Mapping[str, Any]) -> None:
    vars(module.PRINT_OPTS).update(values)


def autocast(module: Any) -> Dict[str, str]:
    """Return the type that operations are cast to, for each kind of device where that is on."""
    on = (kind for kind in ("cpu", "cuda") if module.is_autocast_enabled(kind))
    return {kind: str(module.get_autocast_dtype(kind)).partition(".")[2] for kind in on}


def set_autocast(module: Any, types: Mapping[str, str]) -> None:
    for kind, dtype in types.items():
        module.set_autocast_dtype(kind, getattr(module, dtype))
        module.set_autocast_enabled(kind, True)


def set_inference(module: Any, value: bool) -> None:
    _entered.append(module.inference_mode(value))
    _entered[-1].__enter__()


def dispatch_modes(module: Any) -> List[Any]:
    return list(module.utils._python_dispatch._get_current_dispatch_mode_stack())


def function_modes(module: Any) -> List[Any]:
    """Return what changes PyTorch's functions while it is entered: of a device its name."""
    modes = module.overrides._get_current_function_mode_stack()
    return [str(m.device) if type(m).__name__ == "DeviceContext" else m for m in modes]


def enter_modes(module: Any, modes: List[Any]) -> None:
    for mode in modes:
        if isinstance(mode, str):
            module.set_default_device(mode)
        else:
            mode.__enter__()


def saving_hooks(module: Any) -> Any:
    """Return what PyTorch calls for each tensor that it keeps for gradients."""
    return module._C._autograd._top_saved_tensors_default_hooks(False)


def set_saving_hooks(module: Any, hooks: Any) -> None:
    if hooks:
        module._C._autograd._push_saved_tensors_default_hooks(*hooks)


def sdp(module: Any) -> Dict[str, bool]:
    """Return the kernels of attention that are off."""
    return {n: False for n in _ATTENTION if not getattr(module, f"{n}_sdp_enabled")()}


def set_sdp(module: Any, values: Mapping[str, bool]) -> None:
    for name, value in values.items():
        getattr(module, f"enable_{name}_sdp")(value)


def pandas_options(_: Any) -> Dict[str, Any]:
    options = sys.modules["pandas._config.config"]
    changed: Dict[str, Any] = {}
    for key, option in options._registered_options.copy().items():
        value = options._global_config
        for part in key.split("."):
            value = value[part]
        if value is not option.defval and value != option.defval:
            changed[key] = value
    return changed


def set_pandas_options(module: Any, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        module.set_option(key, value)


def rc_parameters(module: Any) -> Dict[str, Any]:
    usual, left_out = module.rcParamsDefault, sys.modules["matplotlib.rcsetup"]
    of_machine = {"backend", "backend_fallback", "interactive", "toolbar", "timezone", "datapath"}
    of_machine.update(getattr(left_out, "STYLE_BLACKLIST", ()))
    both = ((k, v, dict.get(usual, k, _DIFFERENT)) for k, v in dict.items(module.rcParams))
    return {k: v for k, v, default in both if v != default and k not in of_machine}


def color_letters(module: Any) -> Dict[str, Any]:
    colors = module.get_named_colors_mapping()
    return {c: colors[c] for c, rgb in module.BASE_COLORS.items() if colors[c] != rgb}


def set_color_letters(module: Any, values: Mapping[str, Any]) -> None:
    for letter, color in values.items():
        module.get_named_colors_mapping()[letter] = color


def global_hooks(module: Any) -> Dict[str, Any]:
    """Return what PyTorch calls for every module or optimizer."""
    named = {name: value for name, value in vars(module).items() if name.startswith("_global_")}
    return {n: dict(v) if isinstance(v, dict) else v for n, v in named.items() if v}


def set_global_hooks(module: Any, hooks: Mapping[str, Any]) -> None:
    """Have PyTorch call these too."""
    for name, value in hooks.items():
        if isinstance(value, dict):
            vars(module)[name].update(value)
        else:
            setattr(module, name, value)


# Arguments that whoever started the job has added to the program's own, as a JSON list of texts:
# those of a trial, `--lr=0.01`. Processes that the program spawns get them too.
ARGUMENTS_VARIABLE = "DISTRAIN_ARGUMENTS"


def added_arguments() -> List[str]:
    """Return the arguments that whoever started the job has added."""
    return [str(word) for word in json.loads(os.environ.get(ARGUMENTS_VARIABLE) or "[]")]


def set_arguments(module: Any, words: List[str]) -> None:
    """Give `sys` the notebook's arguments, and those of this job, such as a trial's."""
    module.argv = [*words, *added_arguments()]


def decimal_context(module: Any) -> Tuple[Any, ...]:
    context = module.getcontext()
    traps = tuple(sorted(kind.__name__ for kind, is_on in context.traps.items() if is_on))
    return (*(getattr(context, name) for name in _OF_DECIMAL), traps)


def set_decimal_context(module: Any, value: Tuple[Any, ...]) -> None:
    traps = [getattr(module, name) for name in value[-1]]
    module.setcontext(module.Context(*value[:-1], [], traps))


_OF_DECIMAL = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
