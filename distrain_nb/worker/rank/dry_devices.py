"""GPUs of a layout that this machine lacks, for a rank that runs alone (`--as-rank`).

The program sees as many GPUs as a replica of the layout has. Its tensors on such a GPU are on the
CPU, or on a GPU of this machine. A number that no GPU of the replica has is refused, as CUDA does.
PyTorch's own code sees the machine as it is: otherwise it would call CUDA's library.
"""

from __future__ import annotations

import functools
import re
import sys
from types import SimpleNamespace
from typing import Any, Callable, Dict

from distrain_nb.worker.rank.on_import import on_import

_NAMED = re.compile(r"cuda(?::(\d+))?")
# Functions of `torch.cuda` that do nothing on a CPU, and counters that stay at 0 there.
_NOTHING = ("synchronize", "empty_cache", "reset_peak_memory_stats", "ipc_collect")
_NONE_USED = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")


def install(figures: Dict[str, Any]) -> None:
    """Give the program the GPUs of its layout, unless this machine has them."""
    torch: Any = sys.modules["torch"]
    there = int(torch.cuda.device_count())
    if there >= figures["devices"]:
        return
    devices = _Devices(figures, "cuda:0" if there else "cpu")
    devices.replace(torch.cuda)
    _placing(devices).__enter__()
    on_import(
        {
            "torch.nn.parallel.distributed": _change_ddp,
            "torch.distributed.device_mesh": devices.change_meshes,
        }
    )


class _Devices:
    """The GPUs of a replica. `instead` is the device that has their tensors."""

    def __init__(self, figures: Dict[str, Any], instead: str) -> None:
        self._count, self._name = int(figures["devices"]), str(figures["device"])
        self._bytes = int(figures["device_bytes"] or 0)
        self._current = 0
        self.instead = instead

    def here(self, value: Any) -> Any:
        """Return the device to use for a GPU. Anything that names no GPU is returned unchanged."""
        torch: Any = sys.modules["torch"]
        if isinstance(value, torch.device):
            named = _NAMED.fullmatch(str(value))
        else:
            named = _NAMED.fullmatch(value) if isinstance(value, str) else None
        if named is None:
            return value
        self.check(int(named[1] or 0))
        return torch.device(self.instead)

    def check(self, number: int) -> None:
        """Raise RuntimeError for a GPU that a replica doesn't have."""
        if not 0 <= number < self._count:
            gpus = f"{self._count} GPU{'' if self._count == 1 else 's'}"
            raise RuntimeError(
                f"CUDA error: invalid device ordinal: there is no cuda:{number}, a replica of the"
                f" layout has {gpus}"
            )

    def replace(self, module: Any) -> None:
        """Replace functions of `torch.cuda`, so that programs see these GPUs."""
        answers: Dict[str, Callable[..., Any]] = {
            "is_available": lambda: True,
            "device_count": lambda: self._count,
            "current_device": lambda: self._current,
            "set_device": self._set_device,
            "get_device_name": lambda *_: self._name,
            "get_device_properties": lambda *_: SimpleNamespace(
                name=self._name, total_memory=self._bytes
            ),
            "is_bf16_supported": lambda *_, **__: True,
            **dict.fromkeys(_NOTHING, lambda *_, **__: None),
            **dict.fromkeys(_NONE_USED, lambda *_, **__: 0),
        }
        for name, answer in answers.items():
            setattr(module, name, _of_program(getattr(module, name), answer))

    def _set_device(self, device: Any) -> None:
        named = _NAMED.fullmatch(str(device))
        number = device if isinstance(device, int) else int((named and named[1]) or 0)
        self.check(number)
        self._current = number

    def change_meshes(self, module: Any) -> None:
        mesh = module.DeviceMesh
        init = mesh.__init__

        @functools.wraps(init)
        def on_this_machine(of: Any, device_type: str, *arguments: Any, **named: Any) -> None:
            here = self.instead.partition(":")[0] if device_type == "cuda" else device_type
            init(of, here, *arguments, **named)

        mesh.__init__ = on_this_machine


def _of_program(function: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives `answer` to programs and libraries, and the real one to
    PyTorch."""

    @functools.wraps(function)
    def answered(*arguments: Any, **named: Any) -> Any:
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        is_own = caller.partition(".")[0] == "torch"
        return function(*arguments, **named) if is_own else answer(*arguments, **named)

    return answered


def _change_ddp(module: Any) -> None:
    """Replace the arguments of DDP: it takes `device_ids` only for modules on GPUs."""
    ddp = module.DistributedDataParallel
    init = ddp.__init__

    @functools.wraps(init)
    def initialized(of: Any, wrapped: Any, *arguments: Any, **named: Any) -> None:
        arguments = (*(None for _ in arguments[:2]), *arguments[2:])
        for name in ("device_ids", "output_device"):
            if name in named:
                named[name] = None
        init(of, wrapped, *arguments, **named)

    ddp.__init__ = initialized


def _placing(devices: _Devices) -> Any:
    """Return the mode in which PyTorch places tensors on devices of this machine."""
    from torch.overrides import TorchFunctionMode

    torch: Any = sys.modules["torch"]

    class Placing(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, types: Any, arguments: Any = (), named: Any = None
        ) -> Any:
            if function is torch.device:  # which only names one
                return function(*arguments, **(named or {}))
            if function is torch.Tensor.pin_memory:
                return arguments[0]
            if function is torch.Tensor.cuda:
                device = arguments[1] if len(arguments) > 1 else (named or {}).get("device")
                device = f"cuda:{device}" if isinstance(device, int) else device or "cuda"
                return arguments[0].to(devices.here(device))
            if function is torch.Tensor.to and type(arguments[1:2]) is tuple:
                numbered = [f"cuda:{a}" if type(a) is int else a for a in arguments[1:2]]
                arguments = (arguments[0], *numbered, *arguments[2:])
            placed = tuple(map(devices.here, arguments))
            return function(*placed, **{n: devices.here(v) for n, v in (named or {}).items()})

    return Placing()
