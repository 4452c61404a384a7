"""The rows of the fact tables: one tuple type a table, its columns named as in the data file.

Memory of Google machines is GB, of AWS instances GiB; bandwidth is Gbit/s; `source` holds keys of
`data/sources.csv`. An empty cell (unknown, or not applicable) is None.
"""

from __future__ import annotations

from typing import NamedTuple

Int = int | None
Float = float | None
Ints = tuple[int, ...]
Texts = tuple[str, ...]


class Machine(NamedTuple):
    """A Compute Engine machine type, as Vertex AI and AI Platform Training use it."""

    machine_type: str
    series: str
    family: str
    vcpu: Int
    memory_gb: Float
    egress_gbps: Float
    tier1_egress_gbps: Float
    builtin_accelerator: str
    builtin_accelerator_count: Int
    vertex_training: bool
    accelerator_required: bool
    aiplatform_training: bool
    source: str
    note: str


class Accelerator(NamedTuple):
    """A GPU or TPU. `accelerator` is the name in the API; memory is per device."""

    accelerator: str
    compute_engine_name: str
    kind: str
    memory_gb: Float
    memory_type: str
    memory_bandwidth_gbyte_s: Float
    machine_series: str
    valid_counts: Ints
    n1_limits_by_count: str
    rule_vcpu_per_gpu: Float
    rule_memory_gb_per_gpu: Float
    gpudirect: str
    reservation_or_spot: str
    flex_start: bool
    status: str
    note: str


class GpuCounts(NamedTuple):
    """The allowed counts of an accelerator on a machine type. What has no row is not allowed."""

    machine_type: str
    accelerator: str
    counts: Ints
    column: str
    note: str


class LegacyMachine(NamedTuple):
    """A legacy machine type (`kind` machine) or a scale tier of AI Platform Training."""

    name: str
    kind: str
    accelerator: str
    accelerator_count: Int
    approx_machine_type: str
    approx_vcpu: Int
    approx_memory_gb: Float
    approx_confidence: str
    source: str
    note: str


class BandwidthRule(NamedTuple):
    """Bandwidth of a node: `min(cap, max(floor, gbps_per_vcpu * vcpu))`, or `cap` alone."""

    rule: str
    machine_glob: str
    accelerator: str
    accelerator_count: str
    cap_gbps: Float
    gbps_per_vcpu: Float
    floor_gbps: Float
    host_nic_gbps: Float
    gpu_nic_gbps: Float
    confidence: str
    source: str
    note: str


class Offer(NamedTuple):
    """An accelerator in a region; `training` is yes, no or allowlist."""

    service: str
    accelerator: str
    region: str
    training: str
    inference: str
    source: str
    note: str


class Topology(NamedTuple):
    """A TPU slice: its machine type and either a topology or a number of cores."""

    tpu: str
    machine_type: str
    topology: str
    chips: Int
    vms: Int
    accelerator_count: str
    scope: str
    source: str
    note: str


class PrebuiltContainer(NamedTuple):
    """A prebuilt Vertex AI training container; its URI is the one of the `us` multi-region."""

    framework: str
    framework_version: str
    python_version: str
    accelerator: str
    cuda: str
    image_uri: str
    multi_regions: Texts
    end_of_support: str
    end_of_availability: str
    reduction_server_worker: bool
    note: str


class Instance(NamedTuple):
    """A SageMaker training instance type; `network_burst` says that the figure is "up to"."""

    instance_type: str
    vcpu: Int
    memory_gb: Float
    gpu_name: str
    gpu_count: Int
    gpu_memory_gb: Float
    gpu_memory_total_gb: Float
    neuron_name: str
    neuron_count: Int
    neuron_cores: Int
    neuron_memory_gb: Float
    network_gbps: Float
    network_burst: bool
    network_baseline_gbps: Float
    efa: bool
    source: str
    note: str


class Distribution(NamedTuple):
    """A value of SageMaker's `distribution` argument and what it needs."""

    distribution: str
    launcher: str
    frameworks: Texts
    framework_min: Texts
    versions: Texts
    instance_types: Texts
    excludes: Texts
    options: Texts
    source: str
    note: str


class Device(NamedTuple):
    """What programs have to know of an accelerator, by its short name: NVIDIA's compute capability,
    how many processes one serves where each has devices of its own, and its machines' platform if
    it is not `amd64`."""

    name: str
    capability: Float
    processes: Int
    host: str
    source: str
    note: str


class FrameworkBuild(NamedTuple):
    """A package that has a framework for a kind of accelerator, where its plain one does not.

    `accelerators` limits it to these, `capability` is the least of a GPU. `needs` are modules of
    which a program has to import one. `arm` says that there are wheels for Arm hosts too.
    """

    framework: str
    device: str
    accelerators: Texts
    min_version: str
    max_version: str
    package: str
    extra: str
    needs: Texts
    capability: Float
    arm: bool
    source: str
    note: str


class Limit(NamedTuple):
    """A single figure or list of names, such as the smallest boot disk."""

    service: str
    name: str
    value: Texts
    source: str
    note: str


class SourceDocument(NamedTuple):
    """The document behind a source key, and its date."""

    key: str
    document: str
    date: str
