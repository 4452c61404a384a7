"""The environment variables that launchers set for each process, such as `RANK`."""

from __future__ import annotations

import re

_LAUNCHER = (  # `re` compiles it when a variable is asked for
    r"(\w*_)?(RANK|RANKS|WORLD_SIZE|LOCAL_SIZE|NNODES|NODEID|NTASKS|PROCID|LOCALID)(_\w+)?"
    r"|MASTER_(ADDR|PORT)|TF_CONFIG|CLUSTER_SPEC|NPROC\w*|NUM_PROCESSES|PROCESS_ID|NUM_NODES"
    r"|COORDINATOR_ADDRESS|CUDA_VISIBLE_DEVICES"
    r"|(TORCHELASTIC|OMPI|PMI|PMIX|SLURM|MV2|HOROVOD|SM|AIP|ACCELERATE|FSDP)_\w+"
    r"|DISTRAIN_(?!HOME$)\w+"
)


def is_launchers(variable: str) -> bool:
    """Return whether an environment variable is one that launchers set for each process."""
    return re.fullmatch(_LAUNCHER, variable) is not None


def is_inherited(variable: object) -> bool:
    """Return whether a rank has a variable of the environment from the notebook."""
    return variable == "CUDA_VISIBLE_DEVICES" or not is_launchers(str(variable))


def asked_variable(key: object) -> str:
    """Return how a launcher's variable is asked for; empty for any other."""
    name = key.decode(errors="replace") if isinstance(key, bytes) else key
    return f"os.environ[{name!r}]" if isinstance(name, str) and is_launchers(name) else ""
