"""Utilization of the GPUs, from NVIDIA's management library where the machine has it."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Mapping, Optional

LIBRARY = "libnvidia-ml.so.1"


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class Gpus:
    """The GPUs of this machine; `count` of them."""

    def __init__(self, library: Any, count: int) -> None:
        self._library = library
        self.count = count

    @classmethod
    def open(cls, name: str = LIBRARY) -> Optional[Gpus]:
        """Open NVIDIA's library; None where there is no such library, no driver or no GPU."""
        try:
            library = ctypes.CDLL(name)
        except OSError:
            return None
        count = ctypes.c_uint()
        if library.nvmlInit_v2() or library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return None
        return cls(library, count.value) if count.value else None

    def of(self, environment: Mapping[str, str]) -> Dict[str, float]:
        """Use of the GPU that a rank of that environment takes: by its LOCAL_RANK, as torchrun's
        ranks do, among those that CUDA_VISIBLE_DEVICES names.

        Ranks that share a GPU are told the same numbers, which are the GPU's.
        """
        device = self._device(environment)
        if device is None:
            return {}
        usage, busy, memory = {}, _Utilization(), _Memory()
        if not self._library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(busy)):
            usage["gpu %"] = float(busy.gpu)
        if not self._library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)):
            usage["gpu memory MB"] = memory.used / 1e6
        return usage

    def visible(self, environment: Mapping[str, str]) -> int:
        """Return how many of them a process of that environment sees."""
        return len(self._visible(environment))

    def _visible(self, environment: Mapping[str, str]) -> List[str]:
        names = environment.get("CUDA_VISIBLE_DEVICES")
        return list(map(str, range(self.count))) if names is None else _listed(names)

    def _device(self, environment: Mapping[str, str]) -> Optional[ctypes.c_void_p]:
        visible = self._visible(environment)
        if not visible:
            return None
        name = visible[int(environment.get("LOCAL_RANK", "0")) % len(visible)]
        device = ctypes.c_void_p()
        if name.isdigit():
            failed = self._library.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(device))
        else:
            failed = self._library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(device))
        return None if failed else device


def _listed(names: str) -> List[str]:
    """Return the GPUs that a list names, up to the first that is none, as CUDA does: `-1` or
    nothing."""
    visible = []
    for name in names.split(","):
        if not name.strip() or name.strip().startswith("-"):
            break
        visible.append(name.strip())
    return visible
