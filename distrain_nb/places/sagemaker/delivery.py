"""How a program gets to AWS's framework containers: the archive of script mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from distrain_nb.backends.remote.delivery import files_of_worker, pack
from distrain_nb.backends.remote.needed_packages import packages_to_install
from distrain_nb.layout import Layout
from distrain_nb.places.sagemaker.forms.hyperparameters import hyperparameters as of_distribution
from distrain_nb.places.sagemaker.forms.request import distributions, hosts
from distrain_nb.places.sagemaker.names import REGION, RUN
from distrain_nb.program.frameworks import PACKAGES

if TYPE_CHECKING:
    from distrain_nb.backends.remote.delivery import ProgramFolder
    from distrain_nb.backends.remote.needed_packages import PackageNeeds
    from distrain_nb.places.sagemaker.settings import Settings
    from distrain_nb.types import Json

ENTRY = "distrain_program.py"

# Without which the containers would start another program than ours.
STARTS = frozenset({"sagemaker_program", "sagemaker_submit_directory"})

# The model as TensorFlow's container names it: in S3, or where MPI's ranks have it on disk.
_MODEL_DIR = "/opt/ml/model"

_ENTRY_SCRIPT = """\
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
os.environ["DISTRAIN_PROGRAM"] = os.path.join(here, "program")
sys.path.insert(0, here)

from distrain_nb.worker.replica.script import main

sys.exit(main())
"""


def hyperparameters(
    layout: Layout, ranks: int | None, settings: Settings, framework: str | None
) -> dict[str, Json]:
    """Return the containers' own but for where the archive is, with values that are yet to be
    encoded.

    `layout` names its launcher; `ranks` are those of a host, None where the container decides.
    """
    pool = hosts(layout)
    named = distributions(replace(layout, ranks_per_replica=ranks))
    values: dict[str, Json] = {
        "sagemaker_program": ENTRY,
        "sagemaker_container_log_level": 20,
        "sagemaker_job_name": RUN,
        "sagemaker_region": settings.region or REGION,
        **of_distribution(named, pool.machine, others=bool(pool.alternatives)),
    }
    if framework == "tensorflow":
        on_disk = {"mpi", "smdistributed"} & {name.partition(".")[0] for name in named}
        values["model_dir"] = _MODEL_DIR if on_disk else f"{settings.folder}/{RUN}/model"
    return values


def write_archive(program: ProgramFolder, framework: str | None, file: IO[bytes]) -> None:
    """Write the archive: the entry script, the program, the worker and what pip is to install, if
    there is anything."""
    texts = {ENTRY: _ENTRY_SCRIPT}
    lines = "".join(f"{line}\n" for line in needed(program, framework))
    if lines:
        texts["requirements.txt"] = lines
    pack(texts, (*program.files(), *files_of_worker()), file)


def needed(program: PackageNeeds, framework: str | None) -> Iterator[str]:
    """Return the packages that a framework container installs; its own framework stays."""
    there = PACKAGES.get(framework or "")
    return packages_to_install(program, [there] if there else ())
