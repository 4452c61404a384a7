"""The GPUs of this machine: which a process sees, and their use by NVIDIA's management library."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

LIBRARY = "libnvidia-ml.so.1"
VISIBLE = "CUDA_VISIBLE_DEVICES"
_LONGEST_NAME = 96
_MOST_PROCESSES = 256


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Gpu(NamedTuple):
    """A GPU by its product name, with its memory in bytes."""

    name: str
    memory: int


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

    def offered(self, environment: Mapping[str, str]) -> List[Gpu]:
        """Return those that a process of that environment sees."""
        devices = map(self._handle, self._visible(environment))
        return [Gpu(self._name(d), self._memory(d).total) for d in devices if d is not None]

    def held_by(self, pid: int, environment: Mapping[str, str]) -> List[int]:
        """Return how many bytes that process has of each GPU that such a process sees.

        In a container without the machine's process numbers it is found on none.
        """
        devices = map(self._handle, self._visible(environment))
        return [self._held(pid, device) for device in devices if device is not None]

    def _held(self, pid: int, device: ctypes.c_void_p) -> int:
        ask = getattr(self._library, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        count, processes = ctypes.c_uint(_MOST_PROCESSES), (_Process * _MOST_PROCESSES)()
        if ask is None or ask(device, ctypes.byref(count), processes):
            return 0
        memory = [p.memory for p in processes[: count.value] if p.pid == pid]
        return sum(m for m in memory if m < 1 << 63)  # all bits are set where it isn't memory

    def _name(self, device: ctypes.c_void_p) -> str:
        name = ctypes.create_string_buffer(_LONGEST_NAME)
        failed = self._library.nvmlDeviceGetName(device, name, _LONGEST_NAME)
        return "GPU" if failed else name.value.decode("utf-8", "replace")

    def _memory(self, device: ctypes.c_void_p) -> _Memory:
        memory = _Memory()
        self._library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
        return memory

    def _visible(self, environment: Mapping[str, str]) -> List[str]:
        return visible(environment, self.count)

    def _device(self, environment: Mapping[str, str]) -> Optional[ctypes.c_void_p]:
        names = self._visible(environment)
        if not names:
            return None
        return self._handle(names[int(environment.get("LOCAL_RANK", "0")) % len(names)])

    def _handle(self, name: str) -> Optional[ctypes.c_void_p]:
        device = ctypes.c_void_p()
        if name.isdigit():
            failed = self._library.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(device))
        else:
            failed = self._library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(device))
        return None if failed else device


def visible(environment: Mapping[str, str], count: int) -> List[str]:
    """Return the GPUs, of `count`, that a process of that environment sees, by number or UUID.

    As CUDA reads the variable: up to the first that there is not, and none where one stands twice.
    """
    listed = environment.get(VISIBLE)
    if listed is None:
        return [str(number) for number in range(count)]
    names = []
    for name in map(str.strip, listed.split(",")):
        if not name or name.startswith("-") or (name.isdigit() and int(name) >= count):
            break
        names.append(name)
    return names if len(set(names)) == len(names) else []


def shares(names: Sequence[str], parts: int) -> Tuple[str, ...]:
    """Return the GPUs of each of so many processes or machines, as the variable has them; some
    share one where there are fewer. Nothing where there is nothing to share."""
    if not names or parts < 2:
        return ()
    share = max(1, len(names) // parts)
    firsts = (number * share % len(names) for number in range(parts))
    return tuple(",".join(names[first : first + share]) for first in firsts)
