"""Kubernetes: a layout as a `JobSet`, and as a Kubeflow `TrainJob`, for `kubectl apply`.

Machines and accelerators are chosen by labels of nodes: the well-known ones, Google's and Amazon's.
Each replica finds the others in `CLUSTER_SPEC`, by the names that a JobSet gives its pods.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.files import data_yaml
from distrain_nb.layout.formats.form import Export, MappingForm
from distrain_nb.layout.formats.images import image_of, shared_image
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.mappings import MappingReader, present, whole_number
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool, Role

if TYPE_CHECKING:
    from distrain_nb.types import Json

JOBSET, TRAINJOB = "JobSet", "TrainJob"
NAME = "train"  # of a job that nobody has named; names of Kubernetes have no capitals
RUNTIME = "torch-distributed"  # of those that Kubeflow installs
_JOBSET_API, _TRAINJOB_API = "jobset.x-k8s.io/v1alpha2", "trainer.kubeflow.org/v1alpha1"
_CONTAINER, _NODE = "trainer", "node"
_MANAGER = "distrain-nb.io/layout"
_PORT = 2222
_TRAINING = (Role.PRIMARY, Role.WORKERS)

# Labels of nodes.
_MACHINE = "node.kubernetes.io/instance-type"
_REGION = "topology.kubernetes.io/region"
_GPU, _TPU = "cloud.google.com/gke-accelerator", "cloud.google.com/gke-tpu-accelerator"
_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
_SPOT = {"vertex": ("cloud.google.com/gke-spot", "true"),
         "sagemaker": ("eks.amazonaws.com/capacityType", "SPOT")}  # fmt: skip
# Resources of containers.
_GPUS, _TPUS, _NEURONS = "nvidia.com/gpu", "google.com/tpu", "aws.amazon.com/neuron"
_SAGEMAKER = "ml."

_INDEX = "DISTRAIN_INDEX"
_COMPLETION = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_VARIABLES = {
    "DISTRAIN_RANKS": "ranks_per_replica",
    "DISTRAIN_LAUNCHER": "launcher",
    "DISTRAIN_MPI_OPTIONS": "mpi_options",
}


def jobset(layout: Layout, name: str = NAME) -> dict[str, Json]:
    """Return the layout as a `JobSet`: a replicated job for each pool, an indexed pod a replica."""
    pools = list(layout.pools())
    hosts = {role: _hosts(name, str(role), pool.replicas) for role, pool in pools}
    training = [str(role) for role, _ in pools if role in _TRAINING]
    return {
        "apiVersion": _JOBSET_API,
        "kind": JOBSET,
        "metadata": {"name": name},
        "spec": {
            "network": {"enableDNSHostnames": True},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": training},
            "failurePolicy": {"maxRestarts": 0},
            "replicatedJobs": [_replicated_job(layout, role, pool, hosts) for role, pool in pools],
        },
    }


def _replicated_job(
    layout: Layout, role: Role, pool: Pool, hosts: Mapping[Role, list[str]]
) -> dict[str, Json]:
    by_position = {f"workerpool{other.position}": names for other, names in hosts.items()}
    container = {
        "name": _CONTAINER,
        "image": image_of(layout, role, pool),
        "env": _environment(layout, by_position, f"workerpool{role.position}"),
        **present(resources=present(limits=_limits(layout, pool))),
    }
    pod = {
        "restartPolicy": "Never",
        **present(nodeSelector=_selector(layout, pool)),
        "containers": [container],
    }
    job: dict[str, Json] = {
        "completionMode": "Indexed",
        "completions": pool.replicas,
        "parallelism": pool.replicas,
        "backoffLimit": 0,
        **present(activeDeadlineSeconds=layout.timeout),
        "template": {"spec": pod},
    }
    return {"name": str(role), "replicas": 1, "template": {"spec": job}}


def trainjob(layout: Layout, name: str = NAME) -> dict[str, Json]:
    """Return the pools that train as a `TrainJob`, whose nodes are all of one kind: the first
    pool's."""
    pools = [(role, pool) for role, pool in layout.pools() if role in _TRAINING]
    role, pool = pools[0] if pools else (Role.WORKERS, Pool())
    nodes = sum(other.replicas for _, other in pools) or 1
    hosts = {"workerpool0": _hosts(name, _NODE, nodes)}
    selector = _selector(layout, pool)
    job: dict[str, Json] = {
        "name": _NODE,
        "template": {"spec": {"template": {"spec": {"nodeSelector": selector}}}},
    }
    patch: dict[str, Json] = {
        "manager": _MANAGER,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }
    trainer = {
        "image": image_of(layout, role, pool),
        "numNodes": nodes,
        **present(numProcPerNode=layout.ranks_per_replica),
        **present(resourcesPerNode=present(limits=_limits(layout, pool))),
        "env": _environment(layout, hosts, "workerpool0"),
    }
    return {
        "apiVersion": _TRAINJOB_API,
        "kind": TRAINJOB,
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": RUNTIME},
            **present(activeDeadlineSeconds=layout.timeout),
            "trainer": trainer,
            **({"runtimePatches": [patch]} if selector else {}),
        },
    }


def _hosts(name: str, job: str, replicas: int) -> list[str]:
    """Return the names of a replicated job's pods, which begin with the JobSet's."""
    return [f"{name}-{job}-0-{index}.{name}:{_PORT}" for index in range(replicas)]


def _environment(layout: Layout, hosts: Mapping[str, list[str]], pool: str) -> list[Json]:
    """Return what a replica is told. Its number comes first, so that the rest can refer to it."""
    spec = json.dumps({
        "cluster": dict(sorted(hosts.items())),
        "environment": "cloud",
        "task": {"type": pool, "index": _INDEX},
        "job": {},
    }).replace(f'"{_INDEX}"', f"$({_INDEX})")  # fmt: skip
    index: dict[str, Json] = {
        "name": _INDEX,
        "valueFrom": {"fieldRef": {"fieldPath": _COMPLETION}},
    }
    launcher = None if layout.launcher == "auto" else layout.launcher
    values = (layout.ranks_per_replica, launcher, layout.mpi_options)
    return [
        index,
        {"name": "CLUSTER_SPEC", "value": spec},
        *({"name": n, "value": str(v)} for n, v in zip(_VARIABLES, values, strict=True) if v),
    ]


def _limits(layout: Layout, pool: Pool) -> dict[str, Json]:
    if layout.on == "sagemaker":
        row = current().instances.get(pool.machine or "")
        counts = {_GPUS: row.gpu_count, _NEURONS: row.neuron_count} if row else {}
        return {name: count for name, count in counts.items() if count}
    if not pool.accelerator_count:
        return {}
    return {_TPUS if _is_tpu(pool.accelerator) else _GPUS: pool.accelerator_count}


def _is_tpu(accelerator: str | None) -> bool:
    return (accelerator or "").startswith("TPU")


def _selector(layout: Layout, pool: Pool) -> dict[str, Json]:
    machine, kind, topology = pool.machine, pool.accelerator or "", pool.topology
    label = _TPU if _is_tpu(kind) else _GPU
    if layout.on == "sagemaker":  # whose machines are known with their accelerators
        machine, kind, topology = (machine or "").removeprefix(_SAGEMAKER), "", None
    spot = _SPOT.get(layout.on) if layout.spot else None
    return {
        **({_MACHINE: machine} if machine else {}),
        **({label: kind.lower().replace("_", "-")} if kind else {}),
        **({_TOPOLOGY: topology} if topology else {}),
        **({_REGION: layout.region} if layout.region else {}),
        **(dict([spot]) if spot else {}),
    }


def from_kubernetes(value: object) -> Imported:
    """Read a `JobSet` or a `TrainJob`. Raises OptionError, naming the path."""
    reader = MappingReader.of(value, "")
    kind = reader.text("kind")
    reader.values.pop("apiVersion", None)
    about = reader.below("metadata")
    about.values.pop("name", None)
    spec = reader.below("spec")
    read = _from_trainjob if kind == TRAINJOB else _from_jobset
    return read(_Parts(reader, [about, spec]), spec)


class _Parts:
    """The parts of a text that have been looked into, and the layout that they make."""

    def __init__(self, text: MappingReader, parts: list[MappingReader]) -> None:
        self._text, self._parts = text, parts
        self.fields: dict[str, object] = {}
        self.pools: dict[Role, Pool] = {}
        self.place = "vertex"

    def below(self, part: MappingReader, *keys: str) -> MappingReader:
        """Go down to a mapping."""
        for key in keys:
            part = part.below(key)
            self._parts.append(part)
        return part

    def items(self, part: MappingReader, key: str) -> Iterator[MappingReader]:
        """Yield the mappings of a list. Raises OptionError."""
        value = part.values.pop(key, None) or []
        if not isinstance(value, list):
            raise OptionError(f"invalid {part.at(key)} {shown(value)}: expected a list")
        for number, item in enumerate(value):
            self._parts.append(MappingReader.of(item, f"{part.at(key)}[{number}]"))
            yield self._parts[-1]

    def done(self, form: str) -> Imported:
        layout = Layout.of(self.place).edited(self.fields)
        layout = layout.edited({str(role): pool for role, pool in self.pools.items()})
        return Imported(form, shared_image(layout), self._text.done(*self._parts))


def _from_jobset(parts: _Parts, spec: MappingReader) -> Imported:
    for name in ("network", "successPolicy", "failurePolicy"):
        spec.values.pop(name, None)
    for part in parts.items(spec, "replicatedJobs"):
        name = part.text("name") or ""
        try:
            role = Role(name)
        except ValueError:
            roles = ", ".join(map(str, Role))
            raise OptionError(
                f"invalid {part.at('name')} {shown(name)}: expected {roles}"
            ) from None
        times = part.number("replicas")
        job = parts.below(part, "template", "spec")
        for key in ("completionMode", "completions", "backoffLimit"):
            job.values.pop(key, None)
        replicas = job.number("parallelism")
        _timeout(parts, job)
        pod = parts.below(job, "template", "spec")
        pod.values.pop("restartPolicy", None)
        selector = parts.below(pod, "nodeSelector")
        for container in parts.items(pod, "containers"):
            container.values.pop("name", None)
            pool = _pool(parts, container, selector, "resources")
            parts.pools[role] = _times(pool, (1 if replicas is None else replicas) * (times or 1))
    return parts.done(JOBSET)


def _from_trainjob(parts: _Parts, spec: MappingReader) -> Imported:
    _timeout(parts, spec)
    reference = parts.below(spec, "runtimeRef")
    if reference.values.get("name") == RUNTIME:
        reference.values.pop("name")
    trainer = parts.below(spec, "trainer")
    nodes = trainer.number("numNodes")
    ranks = trainer.number("numProcPerNode")
    if ranks is not None:
        parts.fields["ranks_per_replica"] = ranks
    selector = MappingReader({}, "")
    for patch in parts.items(spec, "runtimePatches"):
        patch.values.pop("manager", None)
        below = parts.below(patch, "trainingRuntimeSpec", "template", "spec")
        for job in parts.items(below, "replicatedJobs"):
            job.values.pop("name", None)
            pod = parts.below(job, "template", "spec", "template", "spec")
            selector = parts.below(pod, "nodeSelector")
    pool = _pool(parts, trainer, selector, "resourcesPerNode")
    number = 1 if nodes is None else nodes
    if parts.place == "sagemaker" or number < 1:
        parts.pools = {Role.WORKERS: _times(pool, number)}
    else:
        parts.pools = {Role.PRIMARY: pool}
        if number > 1:
            parts.pools[Role.WORKERS] = _times(pool, number - 1)
    return parts.done(TRAINJOB)


def _timeout(parts: _Parts, part: MappingReader) -> None:
    seconds = part.number("activeDeadlineSeconds")
    if seconds is not None:
        parts.fields["timeout"] = seconds


def _times(pool: Pool, replicas: int) -> Pool:
    return Pool(
        replicas, pool.machine, pool.accelerator, pool.accelerator_count,
        topology=pool.topology, image=pool.image,
    )  # fmt: skip


def _pool(parts: _Parts, container: MappingReader, selector: MappingReader, key: str) -> Pool:
    _read_environment(parts, container)
    limits = parts.below(parts.below(container, key), "limits")
    machine, region = selector.text(_MACHINE), selector.text(_REGION)
    topology = selector.text(_TOPOLOGY)
    gpu, tpu = selector.text(_GPU), selector.text(_TPU)
    for place, (name, value) in _SPOT.items():
        if selector.values.get(name) == value:
            selector.values.pop(name)
            parts.place = place
            parts.fields["scheduling"] = "SPOT"
    if machine and (parts.place == "sagemaker" or _SAGEMAKER + machine in current().instances):
        parts.place, machine = "sagemaker", _SAGEMAKER + machine
    if region:
        parts.fields["region"] = region
    counts = [limits.number(name) or 0 for name in (_GPUS, _TPUS, _NEURONS)]
    accelerator = (tpu or gpu or "").upper().replace("-", "_") or None
    image = container.text("image")
    if parts.place == "sagemaker":
        return Pool(1, machine, image=image)  # its machines are known with their accelerators
    return Pool(1, machine, accelerator, counts[0] or counts[1], topology=topology, image=image)


def _read_environment(parts: _Parts, container: MappingReader) -> None:
    for variable in parts.items(container, "env"):
        name = str(variable.values.get("name"))
        if name in (_INDEX, "CLUSTER_SPEC"):
            variable.values.clear()
        elif name in _VARIABLES and "value" in variable.values:
            text, path = str(variable.values.pop("value")), variable.at("value")
            variable.values.clear()
            field = _VARIABLES[name]
            number = field == "ranks_per_replica"
            parts.fields[field] = whole_number(text, path) if number else text


EXPORTS = (
    Export(
        "trainjob",
        "TrainJob (Kubeflow on Kubernetes)",
        lambda layout: data_yaml(trainjob(layout)),
        lambda layout, name: data_yaml(trainjob(layout, name)),
        trainjob,
    ),
    Export(
        "jobset",
        "JobSet (Kubernetes)",
        lambda layout: data_yaml(jobset(layout)),
        lambda layout, name: data_yaml(jobset(layout, name)),
        jobset,
    ),
)
READER = MappingForm(
    "a TrainJob or JobSet of Kubernetes",
    lambda value: isinstance(value, dict) and value.get("kind") in (JOBSET, TRAINJOB),
    from_kubernetes,
)
