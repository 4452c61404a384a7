"""Compares the fact tables with what knows the same, and adds what is new.

    python scripts/refresh_catalog.py            # says what differs, also by its exit status
    python scripts/refresh_catalog.py --online   # asks for newer documents and releases first
    python scripts/refresh_catalog.py --write    # also adds and updates SageMaker instance types

botocore knows the names of SageMaker's instance types and the limits of its requests, moto the
sizes of the EC2 types behind them, google-cloud-aiplatform the names of accelerators, and Vertex
AI's discovery document these and the strategies of scheduling. google-api-python-client has a copy
of that document; `--online` fetches the newest, and says which packages have newer releases.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from distrain_nb.layout.catalog.row_reader import DATA
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.options import OPTIONS

Difference = Callable[[], list[str]]

DISCOVERY = "https://aiplatform.googleapis.com/$discovery/rest?version=v1"
PYPI = "https://pypi.org/pypi/{}/json"

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
    return _accelerators(known, "the API")


def _accelerators(known: set[str], where: str) -> list[str]:
    rows = Catalog().accelerators.values()
    table = {row.accelerator for row in rows}
    gpus = {row.accelerator for row in rows if row.kind == "gpu"}
    slices = {"TPU_V4_POD", "TPU_V5_LITEPOD"}
    return [
        *(f"{name}: in {where}, not in the table" for name in sorted(known - table - slices)),
        *(f"{name}: in the table, not in {where}" for name in sorted(gpus - known)),
    ]


@lru_cache(maxsize=1)
def _discovery(online: bool = False) -> dict[str, Any]:
    """Vertex AI's document: as installed, or as its service has it. Raises httpx.HTTPError."""
    if online:
        import httpx

        answer = httpx.get(DISCOVERY, timeout=20, follow_redirects=True).raise_for_status()
        fetched: dict[str, Any] = answer.json()
        return fetched
    from googleapiclient.discovery_cache import DISCOVERY_DOC_DIR

    text = Path(DISCOVERY_DOC_DIR, "aiplatform.v1.json").read_text(encoding="utf-8")
    installed: dict[str, Any] = json.loads(text)
    return installed


def vertex_document(online: bool = False) -> list[str]:
    """Accelerators that Vertex AI's document has and the table lacks, the reverse for GPUs, and
    strategies of scheduling that differ."""
    schemas = _discovery(online)["schemas"]
    machine = schemas["GoogleCloudAiplatformV1MachineSpec"]["properties"]
    accelerators = {n for n in machine["acceleratorType"]["enum"] if not n.endswith("UNSPECIFIED")}
    strategy = schemas["GoogleCloudAiplatformV1Scheduling"]["properties"]["strategy"]
    gone = strategy.get("enumDeprecated", [False] * len(strategy["enum"]))
    current = {
        name
        for name, deprecated in zip(strategy["enum"], gone, strict=True)
        if not deprecated and not name.endswith("UNSPECIFIED")
    }
    (ours,) = (option.form for option in OPTIONS if option.field == "scheduling")
    differing = current ^ set(ours.split("|"))
    return [
        *_accelerators(accelerators, "the document"),
        *(f"{name}: a scheduling strategy of only one side" for name in sorted(differing)),
    ]


def _compared_with(difference: Difference) -> str:
    """What a table is compared with, and its release or revision."""
    if difference is vertex_document:
        return f"revision {_discovery()['revision']} of Vertex AI's document, as installed"
    name = _DISTRIBUTIONS[_PACKAGES[difference]]
    return f"{name} {version(name)}"


def news() -> list[str]:
    """What there is newer than what is installed, a line for each source."""
    import httpx

    lines = []
    try:
        revision, ours = _discovery(True)["revision"], _discovery()["revision"]
        lines.append(f"Vertex AI's document: revision {revision}, installed {ours}")
        lines += [f"  {line}" for line in vertex_document(True)]
    except (httpx.HTTPError, ValueError) as error:
        lines.append(f"Vertex AI's document: {DISCOVERY} does not answer ({_reason(error)})")
    for name in dict.fromkeys(_DISTRIBUTIONS.values()):
        try:
            answer = httpx.get(PYPI.format(name), timeout=20, follow_redirects=True)
            newest = answer.raise_for_status().json()["info"]["version"]
            lines.append(f"{name}: {newest} on PyPI, {_installed(name)} here")
        except (httpx.HTTPError, ValueError, KeyError) as error:
            lines.append(f"{name}: PyPI does not answer ({_reason(error)})")
    return lines


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


_PACKAGES = {
    instance_types: "botocore",
    instance_sizes: "moto",
    sagemaker_limits: "botocore",
    accelerator_types: "google.cloud.aiplatform_v1",
    vertex_document: "googleapiclient",
}
_DISTRIBUTIONS = {
    "botocore": "botocore",
    "moto": "moto",
    "google.cloud.aiplatform_v1": "google-cloud-aiplatform",
    "googleapiclient": "google-api-python-client",
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
    parser.add_argument("--online", action="store_true", help="ask for newer documents first")
    options = parser.parse_args()
    if options.online:
        print("\n".join(news()))
    if options.write:
        write_instances()
    differing = False
    for difference in DIFFERENCES:
        if not available(difference):
            print(f"{difference.__name__}: skipped, {_PACKAGES[difference]} is not installed")
            continue
        found = difference()
        differing |= bool(found)
        print(f"{difference.__name__} ({_compared_with(difference)}): {'' if found else 'in step'}")
        print("".join(f"  {line}\n" for line in found), end="")
    return int(differing)


if __name__ == "__main__":
    sys.exit(main())
