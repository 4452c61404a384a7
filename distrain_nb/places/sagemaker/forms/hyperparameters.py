"""The hyperparameters by which AWS's framework containers learn of a distribution."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.mappings import MappingReader, whole_number
from distrain_nb.layout.layout import Layout

if TYPE_CHECKING:
    from distrain_nb.types import Json

_DATA_PARALLEL = "sagemaker_distributed_dataparallel"
_ENABLED = {
    "parameter_server": {"sagemaker_parameter_server_enabled": True},
    "mpi": {"sagemaker_mpi_enabled": True},
    "multi_worker_mirrored_strategy": {"sagemaker_multi_worker_mirrored_strategy_enabled": True},
    "torch_distributed": {"sagemaker_torch_distributed_enabled": True},
    "smdistributed.dataparallel": {f"{_DATA_PARALLEL}_enabled": True},
    "pytorchddp": {f"{_DATA_PARALLEL}_enabled": True},
    "pytorchxla": {"sagemaker_pytorch_xla_multi_worker_enabled": True},
    "smdistributed.modelparallel": {f"{_DATA_PARALLEL}_enabled": False},
}
_MPI_OPTIONS = {
    "mpi": "sagemaker_mpi_custom_mpi_options",
    "pytorchddp": f"{_DATA_PARALLEL}_custom_mpi_options",
    "smdistributed.dataparallel": f"{_DATA_PARALLEL}_custom_mpi_options",
}
_MPI_RANKS = "sagemaker_mpi_num_of_processes_per_host"
_INSTANCE_TYPE = "sagemaker_instance_type"
_WITHOUT_INSTANCE_TYPE = {"parameter_server", "multi_worker_mirrored_strategy", "mpi"}


def hyperparameters(
    distributions: Mapping[str, Mapping[str, Json]], machine: str | None, *, others: bool = False
) -> dict[str, Json]:
    """Return the hyperparameters of distributions, by full name with their options, on an instance
    type; yet to be encoded. Where it may also be one of `others`, a host knows its own."""
    encoded: dict[str, Json] = {}
    for name, options in distributions.items():
        encoded |= _ENABLED.get(name, {})
        if "processes_per_host" in options:
            encoded[_MPI_RANKS] = options["processes_per_host"]
        if name in _MPI_OPTIONS:
            encoded[_MPI_OPTIONS[name]] = options.get("custom_mpi_options", "")
    if distributions.keys() - _WITHOUT_INSTANCE_TYPE and not others:
        encoded[_INSTANCE_TYPE] = machine or placeholders.INSTANCE_TYPE
    return encoded


def read(layout: Layout, reader: MappingReader) -> Layout:
    """Return the layout with what hyperparameters say of its distribution; takes these out of
    `reader`.

    Raises OptionError, naming its path, for a value that can't be read.
    """
    for name, enabled in _ENABLED.items():
        ((key, value),) = enabled.items()
        if key not in reader.values or _decoded(reader, key) is not value:
            continue
        del reader.values[key]
        row = current().distributions.get(name)
        if row and row.launcher:
            layout = replace(layout, launcher=row.launcher)
        else:
            layout = replace(layout, distribution=name)
        if _MPI_OPTIONS.get(name) in reader.values:
            options = str(_decoded(reader, _MPI_OPTIONS[name]))
            del reader.values[_MPI_OPTIONS[name]]
            layout = replace(layout, mpi_options=options or None)
        if name == "mpi" and _MPI_RANKS in reader.values:
            ranks = whole_number(_decoded(reader, _MPI_RANKS), reader.at(_MPI_RANKS))
            del reader.values[_MPI_RANKS]
            layout = replace(layout, ranks_per_replica=ranks)
    if layout.launcher != "auto" or layout.distribution:
        reader.values.pop(_INSTANCE_TYPE, None)  # which the request has as well
    return layout


def _decoded(reader: MappingReader, key: str) -> Json:
    try:
        value: Json = json.loads(str(reader.values[key]))
    except (ValueError, RecursionError):
        raise OptionError(f"{reader.at(key)} is not JSON, as AWS's containers read it") from None
    return value
