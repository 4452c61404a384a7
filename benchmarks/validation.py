"""A verdict on a layout, its repairs, and loading the tables, against pydantic and torchx.

`python benchmarks/validation.py [ROUNDS]`. The same four-pool job is judged by everybody, in turns,
in one process; every figure is a median in milliseconds. What is compared is not equal in depth:
pydantic checks types, names and ranges of the same request, and torchx (0.7, if installed) turns
the names of instance types into resources and checks that every role has one. Neither knows which
accelerators fit which machine. The last line is one JSON object:

- `verdict_ms`: `check` on a full and valid layout of four pools;
- `repairs_ms`: `check` on the same layout with six faults, every repair tried and ranked;
- `catalog_ms`: reading every table from its file;
- `start_ms`: a new Python that imports the rules and gives a first verdict, less one that does not;
- `pydantic_ms`, `torchx_ms`: the rivals on the same job; null if not installed.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from distrain_nb.layout import Layout
from distrain_nb.layout.catalog import TABLES, Catalog, current
from distrain_nb.layout.rules import check
from distrain_nb.places.vertex.forms.specs import custom_job_spec

if TYPE_CHECKING:
    from collections.abc import Callable

JOB = Layout.of(
    "vertex",
    primary="n1-highmem-96+8*V100,disk=pd-ssd:200",
    workers="4*n1-highmem-96+8*V100,disk=pd-ssd:200",
    reducers="auto",
    evaluators="n1-standard-8",
    region="us-central1",
    framework="pytorch-2.4",
    image="us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest",
    timeout="2d",
)
FAULTY = JOB.edited(
    {
        "workers.accelerator_count": 3,
        "primary.machine": "n1-highmem-95",
        "reducers.replicas": 2,
        "workers.disk_gb": 50,
        "region": "europe-west1",
        "evaluators.replicas": 0,
    }
)
_CALLS = 50
_START = (
    "from distrain_nb.layout import Layout; from distrain_nb.layout.rules import check; "
    "check(Layout.of('vertex', primary='n1-standard-4+1*T4'))"
)


def load_catalog() -> None:
    """Reads every table."""
    catalog = Catalog()
    for name in TABLES:
        catalog.table(name)


def pydantic_check() -> Callable[[], object]:
    """The request of the job, checked by models that know names, types and ranges."""
    from pydantic import BaseModel, Field

    machines = Literal[tuple(current().machines)]  # type: ignore[valid-type]
    accelerators = Literal[tuple(current().accelerators)]  # type: ignore[valid-type]
    disks = Literal["pd-standard", "pd-ssd", "hyperdisk-balanced"]

    class MachineSpec(BaseModel):
        machineType: machines  # noqa: N815
        acceleratorType: accelerators | None = None  # noqa: N815
        acceleratorCount: int = Field(0, ge=0, le=16)  # noqa: N815

    class DiskSpec(BaseModel):
        bootDiskType: disks = "pd-ssd"  # noqa: N815
        bootDiskSizeGb: int = Field(100, ge=100, le=64000)  # noqa: N815

    class ContainerSpec(BaseModel):
        imageUri: str = Field(min_length=1)  # noqa: N815

    class WorkerPoolSpec(BaseModel):
        machineSpec: MachineSpec  # noqa: N815
        replicaCount: int = Field(ge=1)  # noqa: N815
        diskSpec: DiskSpec = DiskSpec()  # noqa: N815
        containerSpec: ContainerSpec  # noqa: N815

    class CustomJobSpec(BaseModel):
        workerPoolSpecs: list[WorkerPoolSpec] = Field(max_length=4)  # noqa: N815
        scheduling: dict[str, str] = {}

    space = {name: value for name, value in locals().items() if isinstance(value, type)}
    for model in (MachineSpec, DiskSpec, WorkerPoolSpec, CustomJobSpec):
        model.model_rebuild(
            _types_namespace={**space, "machines": machines, "accelerators": accelerators,
                              "disks": disks}
        )  # fmt: skip
    spec = custom_job_spec(JOB)
    return lambda: CustomJobSpec.model_validate(spec)


def torchx_check() -> Callable[[], object]:
    """Four roles on instances by name, as torchx makes and checks them before a dry run."""
    from torchx.schedulers.api import Scheduler
    from torchx.schedulers.local_scheduler import create_scheduler
    from torchx.specs import AppDef, Role, resource

    scheduler = create_scheduler("bench")
    pools = {"primary": 1, "workers": 4, "reducers": 16, "evaluators": 1}

    def roles() -> object:
        made = [
            Role(name, image="", num_replicas=count, resource=resource(h="aws_p4d.24xlarge"))
            for name, count in pools.items()
        ]
        # the check that schedulers share; the local one skips it
        return Scheduler._validate(scheduler, AppDef("job", roles=made), "local_cwd")

    return roles


def milliseconds(call: Callable[[], Any], calls: int = _CALLS) -> float:
    """Mean milliseconds of one call among several."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls * 1000


def start_ms() -> float:
    """Milliseconds that importing and a first verdict add to a new Python's start."""

    def run(code: str) -> float:
        root = Path(__file__).resolve().parents[1]
        return milliseconds(
            lambda: subprocess.run([sys.executable, "-c", code], check=True, cwd=root), 1
        )

    return run(_START) - run("pass")


def measure(rounds: int) -> dict[str, float | None]:
    """The median of every figure over several rounds, each measured in turn."""
    checks: dict[str, Callable[[], float]] = {
        "verdict_ms": lambda: milliseconds(lambda: check(JOB)),
        "repairs_ms": lambda: milliseconds(lambda: check(FAULTY), 10),
        "catalog_ms": lambda: milliseconds(load_catalog, 3),
        "start_ms": start_ms,
    }
    rivals = {"pydantic_ms": ("pydantic", pydantic_check), "torchx_ms": ("torchx", torchx_check)}
    for name, (package, make) in rivals.items():
        if find_spec(package):
            call = make()
            checks[name] = lambda call=call: milliseconds(call)  # type: ignore[misc]
    samples: dict[str, list[float]] = {name: [] for name in checks}
    for _ in range(rounds):
        for name, sample in checks.items():
            samples[name].append(sample())
    medians = {name: round(statistics.median(found), 3) for name, found in samples.items()}
    return {**medians, **{name: None for name in rivals if name not in medians}}


def main() -> None:
    """Checks that the job is sound and the faults are found, then measures and prints."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    found = check(FAULTY)
    print(f"the job: {len(check(JOB))} findings; with faults: {len(found)} findings, "
          f"{sum(len(finding.fixes) for finding in found)} repairs")  # fmt: skip
    result = measure(rounds)
    for name, value in result.items():
        print(f"{name:12} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
