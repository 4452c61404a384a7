"""Functions of packages that return the rank of a process, or the size of its world."""

from __future__ import annotations

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


def package_of(module: str) -> str:
    """Return where users find what a module defines: `torch.distributed`, `jax`."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[1] == "distributed" else parts[0]
