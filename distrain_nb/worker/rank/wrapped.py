"""Results that are of use outside of their process: the module in a wrapper, no part of a whole."""

from __future__ import annotations

import pickle
from typing import Any, Iterable, Tuple

from distrain_nb.worker.pickles import Writer, out_of_band

Class = Tuple[str, str]  # the package that has it, and its name

# Around a module that is their attribute `module`.
WRAPPERS: Tuple[Class, ...] = (
    ("torch.nn.parallel", "DistributedDataParallel"),
    ("torch.nn.parallel", "DataParallel"),
    ("lightning.fabric", "_FabricModule"),
    ("lightning_fabric", "_FabricModule"),
    ("deepspeed", "DeepSpeedEngine"),
)
SHARDED: Tuple[Class, ...] = (
    ("torch.distributed.fsdp", "FullyShardedDataParallel"),
    ("torch.distributed.fsdp", "FSDPModule"),
)
SHARDED_TENSORS: Tuple[Class, ...] = (
    ("torch.distributed.tensor", "DTensor"),
    ("torch.distributed._tensor", "DTensor"),
)


class ResultWriter(Writer):
    """Writes the module in a wrapper, which can't be read without its process group.

    Raises PicklingError for what is one rank's part of something, with the line to write.
    """

    def reducer_override(self, obj: Any) -> Any:
        if _is_one_of(type(obj), SHARDED):
            raise pickle.PicklingError(gather_first("model"))
        if _is_one_of(type(obj), SHARDED_TENSORS):
            raise pickle.PicklingError(
                "each rank holds a part of it: bring back its .full_tensor(), made on all ranks"
            )
        if unwrapped(obj) is not obj:
            return out_of_band, ("inside", unwrapped(obj))
        return super().reducer_override(obj)


def unwrapped(obj: Any) -> Any:
    """Return the module in a wrapper; anything else as it is."""
    return obj.module if _is_one_of(type(obj), WRAPPERS) else obj


def gather_first(name: str) -> str:
    """Say how to gather a result that is a sharded module of that name."""
    return (
        "each rank holds a part of its weights: write on all ranks weights = "
        f"get_model_state_dict({name}, options=StateDictOptions(full_state_dict=True, "
        "cpu_offload=True)), both from torch.distributed.checkpoint.state_dict, and bring back "
        "--result weights"
    )


def _is_one_of(cls: type, classes: Iterable[Class]) -> bool:
    return any(
        base.__qualname__ == name and (base.__module__ + ".").startswith(package + ".")
        for base in cls.__mro__
        for package, name in classes
    )
