"""Script mode: the hyperparameters by which AWS's framework containers start a program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.sagemaker.names import RUN
from distrain_nb.layout.formats.hyperparameters import hyperparameters as of_distribution
from distrain_nb.layout.formats.sagemaker import distribution_argument, hosts

if TYPE_CHECKING:
    from distrain_nb.backends.sagemaker.settings import Settings
    from distrain_nb.layout import Layout

ENTRY = "distrain_program.py"

# The model as TensorFlow's container names it: in S3, or where MPI's ranks have it on disk.
_MODEL_DIR = "/opt/ml/model"


def hyperparameters(
    layout: Layout, ranks: int, settings: Settings, framework: str | None
) -> dict[str, Any]:
    """The containers' own but for where the archive is, with values that are yet to be encoded.

    `layout` names its launcher.
    """
    argument = distribution_argument(replace(layout, ranks_per_replica=ranks))
    found = {
        "sagemaker_program": ENTRY,
        "sagemaker_container_log_level": 20,
        "sagemaker_job_name": RUN,
        "sagemaker_region": settings.region,
        **of_distribution(argument, hosts(layout).machine),
    }
    if framework == "tensorflow":
        on_disk = argument.keys() & {"mpi", "smdistributed"}
        found["model_dir"] = _MODEL_DIR if on_disk else f"{settings.folder}/{RUN}/model"
    return found
