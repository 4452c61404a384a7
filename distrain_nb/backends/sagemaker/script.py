"""Script mode: the hyperparameters by which AWS's framework containers start a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.backends.sagemaker.names import RUN
from distrain_nb.layout.exchange.sagemaker import distribution_argument, hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.backends.sagemaker.place import Place
    from distrain_nb.layout import Layout

ENTRY = "distrain_program.py"

_DATA_PARALLEL = "sagemaker_distributed_dataparallel"
_ENABLED = {
    "parameter_server": {"sagemaker_parameter_server_enabled": True},
    "mpi": {"sagemaker_mpi_enabled": True},
    "multi_worker_mirrored_strategy": {"sagemaker_multi_worker_mirrored_strategy_enabled": True},
    "torch_distributed": {"sagemaker_torch_distributed_enabled": True},
    "pytorchddp": {f"{_DATA_PARALLEL}_enabled": True},
    "pytorchxla": {"sagemaker_pytorch_xla_multi_worker_enabled": True},
    "dataparallel": {f"{_DATA_PARALLEL}_enabled": True},
    "modelparallel": {f"{_DATA_PARALLEL}_enabled": False},
}
_MPI_OPTIONS = {
    "mpi": "sagemaker_mpi_custom_mpi_options",
    "pytorchddp": f"{_DATA_PARALLEL}_custom_mpi_options",
    "dataparallel": f"{_DATA_PARALLEL}_custom_mpi_options",
}
_MPI_RANKS = "sagemaker_mpi_num_of_processes_per_host"
_INSTANCE_TYPE = "sagemaker_instance_type"

# The model as TensorFlow's container names it: in S3, or where MPI's ranks have it on disk.
_MODEL_DIR = "/opt/ml/model"


def hyperparameters(
    layout: Layout, ranks: int, place: Place, framework: str | None
) -> dict[str, Any]:
    """The containers' own but for where the archive is, with values that are yet to be encoded.

    `layout` names its launcher.
    """
    given = dict(_flat(distribution_argument(layout)))
    found = {
        "sagemaker_program": ENTRY,
        "sagemaker_container_log_level": 20,
        "sagemaker_job_name": RUN,
        "sagemaker_region": place.region,
    }
    for name, options in given.items():
        found |= _of_distribution(name, options, ranks)
    if given.keys() - {"parameter_server", "multi_worker_mirrored_strategy", "mpi"}:
        found[_INSTANCE_TYPE] = hosts(layout).machine or ""
    if framework == "tensorflow":
        on_disk = given.keys() & {"mpi", "dataparallel", "modelparallel"}
        found["model_dir"] = _MODEL_DIR if on_disk else f"{place.folder}/{RUN}/model"
    return found


def _of_distribution(name: str, options: Mapping[str, Any], ranks: int) -> dict[str, Any]:
    found: dict[str, Any] = dict(_ENABLED[name])
    if name == "mpi":
        found[_MPI_RANKS] = ranks
    if name in _MPI_OPTIONS:
        found[_MPI_OPTIONS[name]] = options.get("custom_mpi_options", "")
    return found


def _flat(argument: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The distributions by name; those of `smdistributed` are one level below."""
    for name, options in argument.items():
        if name == "smdistributed":
            yield from options.items()
        else:
            yield name, options
