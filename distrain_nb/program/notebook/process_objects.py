"""Objects that belong to one process of a job, as they know its rank, its world or its device.

Names are those that the packages give: `Class.__module__` and `__qualname__` of PyTorch 2.13,
Accelerate 1.15, transformers 5.23, Lightning 2.6, TensorFlow 2.21, Horovod 0.28, mpi4py 4.1, JAX.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Any

from distrain_nb.worker.fingerprint import dict_of

# Objects of these classes, and of classes made from them, belong to one process of one world.
_TYPES = re.compile(
    r"(accelerate\.(accelerator|state|data_loader|optimizer|scheduler)"
    r"|(lightning\.fabric|lightning_fabric)\.(fabric|strategies|wrappers)"
    r"|(lightning\.pytorch|pytorch_lightning)\.(trainer\.trainer|strategies)"
    r"|transformers\.(training_args|trainer|integrations\.deepspeed)"
    r"|torch\.(distributed|nn\.parallel\.distributed|utils\.data\.distributed|cuda\.(streams|graphs))"
    r"|torch\._C\._distributed_(c10d|rpc)"
    r"|tensorflow\.python\.distribute|horovod|mpi4py\.MPI|torch_xla|deepspeed|smdistributed"
    r"|jaxlib(\.\w+)*\.(Device|Client)|jax\._src\.(mesh|sharding_impls|distributed)|megatron\.core\.parallel_state"
    r"|composer\.trainer|ray\.train)(\.|$)"
)
# Of these, objects that a process group must be there for.
_GROUPED = re.compile(
    r"torch\.(distributed\.(device_mesh|distributed_c10d|fsdp|tensor|_composable)"
    r"|nn\.parallel\.distributed)\.|torch\._C\._distributed_c10d\.\w*(ProcessGroup|Backend)"
)
_KEEP_NO_STATE = re.compile(
    r"(accelerate\.(accelerator|state|data_loader)|(lightning\.fabric|lightning_fabric)\."
    r"(fabric|strategies)|transformers\.training_args|torch\.utils\.data|torch\.distributed\."
    r"(device_mesh|distributed_c10d)|torch\._C\._distributed|tensorflow\.python\.distribute|mpi4py)"
)
_is_of_process = lru_cache(maxsize=4096)(_TYPES.match)
_STATEFUL = ("state_dict", "get_weights", "fit", "train", "backward", "assign")
_MOST_PARTS = 1000


def is_bound(obj: object) -> bool:
    """Return whether an object belongs to one process: to its rank, its world or its device."""
    cls = type(obj)
    return not issubclass(cls, Enum) and any(map(_is_of_process, map(name_of, cls.__mro__)))


def needs_group(obj: object) -> bool:
    """Return whether an object can only be made once there is a process group."""
    return any(_GROUPED.match(name_of(base)) for base in type(obj).__mro__)


def keeps_state(obj: object, depth: int = 2) -> bool:
    """Return whether training changes an object of this kind, so that a new one is not the same.

    Loaders, samplers, arguments and the like are as good when they are made again.
    """
    if any(_KEEP_NO_STATE.match(name_of(base)) for base in type(obj).__mro__):
        return False
    if any(callable(getattr(type(obj), name, None)) for name in _STATEFUL):
        return True
    if isinstance(obj, (list, tuple, dict)):
        parts = list(obj.values() if isinstance(obj, dict) else obj)[:_MOST_PARTS]
    else:
        parts = list(dict_of(obj).values())
    return depth > 0 and any(keeps_state(part, depth - 1) for part in parts)


def name_of(obj: Any) -> str:
    """Return the full name of a class or function; of a function without a module, its own."""
    try:
        module = getattr(obj, "__module__", None) or ""
        return f"{module}.{getattr(obj, '__qualname__', getattr(obj, '__name__', ''))}".lstrip(".")
    except Exception:  # its own `__getattr__` would not
        return ""
