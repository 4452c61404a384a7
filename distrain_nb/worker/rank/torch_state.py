"""Settings of PyTorch that no single function reads and sets."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

_PRINTS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_ATTENTION = ("flash", "mem_efficient", "math", "cudnn")
_entered: List[Any] = []  # what stays in force while it is alive


def printing(module: Any) -> Dict[str, Any]:
    return {k: v for k, v in vars(module.PRINT_OPTS).items() if v != _PRINTS.get(k)}


def set_printing(module: Any, values: Mapping[str, Any]) -> None:
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


def sdp(module: Any) -> Dict[str, bool]:
    """Return the kernels of attention that are off."""
    return {n: False for n in _ATTENTION if not getattr(module, f"{n}_sdp_enabled")()}


def set_sdp(module: Any, values: Mapping[str, bool]) -> None:
    for name, value in values.items():
        getattr(module, f"enable_{name}_sdp")(value)
