"""What counts as asking about the world: launchers' variables, and functions of packages."""

from __future__ import annotations

import re

_LAUNCHER = (  # `re` compiles it when a variable is asked for
    r"(\w*_)?(RANK|RANKS|WORLD_SIZE|LOCAL_SIZE|NNODES|NODEID|NTASKS|PROCID|LOCALID)(_\w+)?"
    r"|MASTER_(ADDR|PORT)|TF_CONFIG|CLUSTER_SPEC|NPROC\w*|NUM_PROCESSES|PROCESS_ID|NUM_NODES"
    r"|COORDINATOR_ADDRESS|CUDA_VISIBLE_DEVICES"
    r"|(TORCHELASTIC|OMPI|PMI|PMIX|SLURM|MV2|HOROVOD|SM|AIP|ACCELERATE|FSDP|DISTRAIN)_\w+"
)
# What answers for the world, by the module that defines it; of a class its methods.
ASKED = {
    "torch.distributed.distributed_c10d": (
        *("is_initialized", "get_rank", "get_world_size", "get_node_local_rank", "get_backend"),
        *("get_group_rank", "get_process_group_ranks", "is_torchelastic_launched"),
    ),
    "jax._src.xla_bridge": (
        *("process_index", "process_count", "process_indices", "host_id", "host_count"),
        *("device_count", "devices"),
    ),
    "horovod.common.basics": tuple(
        f"HorovodBasics.{name}"
        for name in (
            *("is_initialized", "rank", "size", "local_rank", "local_size"),
            *("cross_rank", "cross_size"),
        )
    ),
    "ignite.distributed.utils": (
        *("get_rank", "get_world_size", "get_local_rank", "get_nnodes", "get_node_rank"),
        *("get_nproc_per_node",),
    ),
    "xgboost.collective": ("get_rank", "get_world_size", "is_distributed"),
    "torch_xla.runtime": ("global_ordinal", "local_ordinal", "world_size", "process_index"),
}


def is_launchers(variable: str) -> bool:
    """Return whether an environment variable is one that launchers set for each process."""
    return re.fullmatch(_LAUNCHER, variable) is not None


def asked_variable(key: object) -> str:
    """Return how a launcher's variable is asked for; empty for any other."""
    name = key.decode(errors="replace") if isinstance(key, bytes) else key
    return f"os.environ[{name!r}]" if isinstance(name, str) and is_launchers(name) else ""


def package_of(module: str) -> str:
    """Return where users find what a module defines: `torch.distributed`, `jax`."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[1] == "distributed" else parts[0]
