"""Compares the fact tables with installed packages that know the same, and adds what is new.

    python scripts/refresh_catalog.py            # says what differs, also by its exit status
    python scripts/refresh_catalog.py --write    # also adds and updates SageMaker instance types

botocore knows the names of SageMaker's instance types and the limits of its requests, moto the
sizes of the EC2 types behind them, and google-cloud-aiplatform the names of accelerators. Nothing
is downloaded: install newer packages first.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from distrain_nb.layout.catalog.reading import DATA
from distrain_nb.layout.catalog.tables import Catalog

Difference = Callable[[], list[str]]

_MIB = 1024
_INSTANCES = DATA / "aws_training_instances.csv"


@lru_cache(maxsize=1)
def _sagemaker() -> dict[str, Any]:
    from botocore.loaders import Loader

    shapes: dict[str, Any] = Loader().load_service_model("sagemaker", "service-2")["shapes"]
    return shapes


@lru_cache(maxsize=1)
def _ec2_types() -> dict[str, Any]:
    import moto

    path = Path(moto.__file__).parent / "ec2" / "resources" / "instance_types.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        types: dict[str, Any] = json.load(file)
    return types


def instance_types() -> list[str]:
    """SageMaker instance types that only the table, or only botocore, has."""
    known, table = set(_sagemaker()["TrainingInstanceType"]["enum"]), set(Catalog().instances)
    return [
        *(f"{name}: in botocore, not in the table" for name in sorted(known - table)),
        *(f"{name}: in the table, not in botocore" for name in sorted(table - known)),
    ]


def instance_sizes() -> list[str]:
    """vCPUs, memory and GPUs of instances that moto gives otherwise than the table."""
    found = []
    for row in Catalog().instances.values():
        size = _ec2_types().get(row.instance_type.removeprefix("ml."))
        if size is None or not row.source.startswith("moto 5"):
            continue
        table = {"vcpu": row.vcpu, "memory_gb": row.memory_gb, "gpu_count": row.gpu_count}
        given = {key: _sizes(size)[key] for key in table}
        if table != given:
            found.append(f"{row.instance_type}: the table has {table}, moto has {given}")
    return found


def _sizes(size: dict[str, Any]) -> dict[str, Any]:
    gpus = size.get("GpuInfo", {}).get("Gpus", [])
    memory = round(size["MemoryInfo"]["SizeInMiB"] / _MIB, 2)
    return {
        "vcpu": size["VCpuInfo"]["DefaultVCpus"],
        "memory_gb": int(memory) if memory == int(memory) else memory,
        "gpu_name": gpus[0]["Name"] if gpus else "",
        "gpu_count": sum(gpu["Count"] for gpu in gpus),
    }


def sagemaker_limits() -> list[str]:
    """Limits of SageMaker requests that botocore gives otherwise than the table."""
    shapes = _sagemaker()
    given = {
        "volume_gb_min": str(shapes["VolumeSizeInGB"]["min"]),
        "channels_max": str(shapes["InputDataConfig"]["max"]),
        "channel_name_length_max": str(shapes["ChannelName"]["max"]),
        "channel_name_pattern": shapes["ChannelName"]["pattern"].replace("\\.", "."),
    }
    limits = Catalog().limits
    return [
        f"{name}: the table has {limits['sagemaker', name].value[0]}, botocore has {value}"
        for name, value in given.items()
        if limits["sagemaker", name].value[0] != value
    ]


def accelerator_types() -> list[str]:
    """Accelerators of the API that the table lacks, and GPUs of the table that the API lacks."""
    from google.cloud.aiplatform_v1.types import AcceleratorType

    known = {name for name in AcceleratorType.__members__ if name != "ACCELERATOR_TYPE_UNSPECIFIED"}
    rows = Catalog().accelerators.values()
    table = {row.accelerator for row in rows}
    gpus = {row.accelerator for row in rows if row.kind == "gpu"}
    slices = {"TPU_V4_POD", "TPU_V5_LITEPOD"}
    return [
        *(f"{name}: in the API, not in the table" for name in sorted(known - table - slices)),
        *(f"{name}: in the table, not in the API" for name in sorted(gpus - known)),
    ]


_PACKAGES = {
    instance_types: "botocore",
    instance_sizes: "moto",
    sagemaker_limits: "botocore",
    accelerator_types: "google.cloud.aiplatform_v1",
}
DIFFERENCES: tuple[Difference, ...] = tuple(_PACKAGES)


def available(difference: Difference) -> bool:
    """Whether the package is installed that a table is compared with."""
    try:
        return find_spec(_PACKAGES[difference]) is not None
    except ModuleNotFoundError:
        return False


def write_instances() -> None:
    """Adds instance types that botocore has, and sets the sizes that moto gives."""
    with _INSTANCES.open(encoding="utf-8", newline="") as file:
        rows = {row["instance_type"]: row for row in csv.DictReader(file)}
    columns = list(next(iter(rows.values())))
    for name in _sagemaker()["TrainingInstanceType"]["enum"]:
        row = rows.setdefault(name, {**dict.fromkeys(columns, ""), "instance_type": name})
        size = _ec2_types().get(name.removeprefix("ml."))
        if size and (row["source"].startswith("moto 5") or not row["source"]):
            row.update({key: str(value) for key, value in _sizes(size).items()})
            row["source"] = row["source"] or "moto 5.2.5"
    with _INSTANCES.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows))


def main() -> int:
    """Prints every difference; the exit status is 1 if there is any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="add and update instance types")
    if parser.parse_args().write:
        write_instances()
    differing = False
    for difference in DIFFERENCES:
        if not available(difference):
            print(f"{difference.__name__}: skipped, {_PACKAGES[difference]} is not installed")
            continue
        found = difference()
        differing |= bool(found)
        print(f"{difference.__name__}: {'in step' if not found else ''}")
        print("".join(f"  {line}\n" for line in found), end="")
    return int(differing)


if __name__ == "__main__":
    sys.exit(main())
