"""Script mode: the hyperparameters by which AWS's framework containers start a program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.places.sagemaker.forms.hyperparameters import hyperparameters as of_distribution
from distrain_nb.places.sagemaker.forms.request import distributions, hosts
from distrain_nb.places.sagemaker.names import REGION, RUN

if TYPE_CHECKING:
    from distrain_nb.layout import Layout
    from distrain_nb.places.sagemaker.settings import Settings
    from distrain_nb.types import Json

ENTRY = "distrain_program.py"

# Without which the containers would start another program than ours.
STARTS = frozenset({"sagemaker_program", "sagemaker_submit_directory"})

# The model as TensorFlow's container names it: in S3, or where MPI's ranks have it on disk.
_MODEL_DIR = "/opt/ml/model"


def hyperparameters(
    layout: Layout, ranks: int | None, settings: Settings, framework: str | None
) -> dict[str, Json]:
    """Return the containers' own but for where the archive is, with values that are yet to be
    encoded.

    `layout` names its launcher; `ranks` are those of a host, None where the container decides.
    """
    pool = hosts(layout)
    named = distributions(replace(layout, ranks_per_replica=ranks))
    found: dict[str, Json] = {
        "sagemaker_program": ENTRY,
        "sagemaker_container_log_level": 20,
        "sagemaker_job_name": RUN,
        "sagemaker_region": settings.region or REGION,
        **of_distribution(named, pool.machine, others=bool(pool.alternatives)),
    }
    if framework == "tensorflow":
        on_disk = {"mpi", "smdistributed"} & {name.partition(".")[0] for name in named}
        found["model_dir"] = _MODEL_DIR if on_disk else f"{settings.folder}/{RUN}/model"
    return found
