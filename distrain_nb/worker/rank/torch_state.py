"""Settings of PyTorch that no single function reads and writes."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

_PRINTS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_ATTENTION = ("flash", "mem_efficient", "math", "cudnn")
_entered: List[Any] = []  # a mode ends when its object is freed, so these are kept


def torch_prints(module: Any) -> Dict[str, Any]:
    """Return the options for printing tensors that differ from PyTorch's defaults."""
    return {k: v for k, v in vars(module.PRINT_OPTS).items() if v != _PRINTS.get(k)}


def set_torch_prints(module: Any, values: Mapping[str, Any]) -> None:
    vars(module.PRINT_OPTS).update(values)


def autocast(module: Any) -> Dict[str, str]:
    """Return the type to which autocast casts operations, for each kind of device where it is
    on."""
    on = (kind for kind in ("cpu", "cuda") if module.is_autocast_enabled(kind))
    return {kind: str(module.get_autocast_dtype(kind)).partition(".")[2] for kind in on}


def set_autocast(module: Any, types: Mapping[str, str]) -> None:
    for kind, dtype in types.items():
        module.set_autocast_dtype(kind, getattr(module, dtype))
        module.set_autocast_enabled(kind, True)


def set_inference(module: Any, value: bool) -> None:
    """Turn inference mode on or off for the rest of the process."""
    _entered.append(module.inference_mode(value))
    _entered[-1].__enter__()


def dispatch_modes(module: Any) -> List[Any]:
    """Return the active modes that see each operation, outermost first."""
    return list(module.utils._python_dispatch._get_current_dispatch_mode_stack())


def function_modes(module: Any) -> List[Any]:
    """Return the active modes that see each function. The mode of a default device is its name."""
    modes = module.overrides._get_current_function_mode_stack()
    return [str(m.device) if type(m).__name__ == "DeviceContext" else m for m in modes]


def enter_modes(module: Any, modes: List[Any]) -> None:
    """Enter modes. The name of a device makes it the default device."""
    for mode in modes:
        if isinstance(mode, str):
            module.set_default_device(mode)
        else:
            mode.__enter__()


def saving_hooks(module: Any) -> Any:
    """Return the hooks for tensors that PyTorch saves for the backward pass."""
    return module._C._autograd._top_saved_tensors_default_hooks(False)


def set_saving_hooks(module: Any, hooks: Any) -> None:
    if hooks:
        module._C._autograd._push_saved_tensors_default_hooks(*hooks)


def sdp(module: Any) -> Dict[str, bool]:
    """Return False for each kernel of attention that is switched off."""
    return {n: False for n in _ATTENTION if not getattr(module, f"{n}_sdp_enabled")()}


def set_sdp(module: Any, values: Mapping[str, bool]) -> None:
    for name, value in values.items():
        getattr(module, f"enable_{name}_sdp")(value)


def global_hooks(module: Any) -> Dict[str, Any]:
    """Return the hooks that PyTorch calls for every module or optimizer."""
    named = {name: value for name, value in vars(module).items() if name.startswith("_global_")}
    return {n: dict(v) if isinstance(v, dict) else v for n, v in named.items() if v}


def set_global_hooks(module: Any, hooks: Mapping[str, Any]) -> None:
    """Add hooks for every module or optimizer."""
    for name, value in hooks.items():
        if isinstance(value, dict):
            vars(module)[name].update(value)
        else:
            setattr(module, name, value)
