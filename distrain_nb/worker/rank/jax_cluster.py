"""The world of a rank, for `jax.distributed.initialize()` without arguments.

JAX reads only the coordinator's address from variables. For the rest it asks the first of its
`ClusterEnv` classes that recognizes its surroundings. It registers each class that is defined: so
it has been from JAX 0.4 to 0.10. The class here reads the variables of ranks. It comes first, since
the class for `mpirun` doesn't know which GPUs belong to which rank. Machines with TPUs tell JAX
themselves.
"""

from __future__ import annotations

import os
from typing import Any, List, Optional

from distrain_nb.worker.machine.gpus import Gpus, shares
from distrain_nb.worker.rank.on_import import on_import

_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
DEVICES = "JAX_LOCAL_DEVICE_IDS"


def change_jax() -> None:
    """Tell JAX the world of this rank when the program imports it."""
    on_import({"jax._src.clusters": _add})


def _add(module: Any) -> None:
    types: List[Any] = module.ClusterEnv._cluster_types

    class DistrainCluster(module.ClusterEnv):  # type: ignore[misc]
        """The ranks of this run."""

        name = "distrain"

        @classmethod
        def is_env_present(cls) -> bool:
            return all(os.environ.get(name) for name in _VARIABLES) and not _has_tpu()

        @classmethod
        def get_coordinator_address(cls, *_: Any, **__: Any) -> str:
            port = os.environ.get("JAX_COORDINATOR_PORT") or os.environ["MASTER_PORT"]
            return os.environ["MASTER_ADDR"] + ":" + port

        @classmethod
        def get_process_count(cls) -> int:
            return int(os.environ["WORLD_SIZE"])

        @classmethod
        def get_process_id(cls) -> int:
            return int(os.environ["RANK"])

        @classmethod
        def get_local_process_id(cls) -> Optional[int]:
            """Return the index of this process's GPU.

            None is for the only process of a machine, which has all devices.
            """
            several = int(os.environ["LOCAL_WORLD_SIZE"]) > 1
            return int(os.environ["LOCAL_RANK"]) if several else None

    types.remove(DistrainCluster)  # where it put itself when it was defined
    types.insert(0, DistrainCluster)
    _share_gpus()


def _has_tpu() -> bool:
    try:
        from jax._src.cloud_tpu_init import running_in_cloud_tpu_vm
    except ImportError:
        return False
    return bool(running_in_cloud_tpu_vm)


def _share_gpus() -> None:
    """Give each rank of a machine its share of the GPUs.

    JAX would give it the GPU of its number, but there may be more GPUs than ranks, or fewer.
    """
    ranks, rank = (int(os.environ.get(name, "1")) for name in ("LOCAL_WORLD_SIZE", "LOCAL_RANK"))
    gpus = Gpus.open() if ranks > 1 and DEVICES not in os.environ else None
    visible = gpus.visible(os.environ) if gpus else 0
    if visible not in (0, ranks):
        numbers = [str(number) for number in range(visible)]
        os.environ[DEVICES] = shares(numbers, ranks)[rank]
