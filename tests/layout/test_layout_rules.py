"""The rules: every cell of the tables, every repair, and the documents' own sentences."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from layout_strategies import examples, layouts

from distrain_nb.errors import DistrainError
from distrain_nb.findings import Severity, errors
from distrain_nb.layout import Layout, Pool, Role, place
from distrain_nb.layout.catalog import Catalog, current
from distrain_nb.layout.catalog.index import short_name
from distrain_nb.layout.pool import Alternative
from distrain_nb.layout.resolved import ResolvedLayout, resolve
from distrain_nb.layout.rules import all_rules, check, engine
from distrain_nb.layout.rules.change import change
from distrain_nb.layout.rules.engine import Problem, all_problems, rules_for

CATALOG = current()
ABOUT_ACCELERATORS = {
    "accelerator-unknown", "accelerator-retired", "accelerator-without-count",
    "count-without-accelerator", "accelerator-not-on-machine", "accelerator-count",
    "accelerator-required", "tpu-accelerator", "tpu-cores",
}  # fmt: skip


def refused(place: str, machine: str, accelerator: str | None, count: int) -> bool:
    """Whether a primary of such machines gets an error about its accelerators."""
    layout = Layout(place, primary=Pool(1, machine, accelerator, count))
    return any(
        rule.code in ABOUT_ACCELERATORS
        for rule, _ in all_problems(resolve(layout, catalog=CATALOG))
    )


@pytest.mark.parametrize("place", ["vertex", "ai-platform"])
def test_every_machine_accelerator_and_count_is_decided_as_the_tables_say(place: str) -> None:
    offered = [
        row for row in CATALOG.machines.values()
        if (row.vertex_training if place == "vertex" else row.aiplatform_training)
        and not row.builtin_accelerator.startswith("TPU") and row.series != "cloud-tpu"
    ]  # fmt: skip
    table = CATALOG.vertex_counts if place == "vertex" else CATALOG.ai_platform_counts
    gpus = [name for name in CATALOG.accelerators if not name.startswith("TPU")]
    allowed = 0
    for machine, gpu, count in itertools.product(offered, gpus, range(17)):
        row = table.get((machine.machine_type, gpu))
        fits = row is not None and count in row.counts
        allowed += fits
        assert refused(place, machine.machine_type, gpu, count) != fits, (machine, gpu, count)
    assert allowed == sum(len(row.counts) for row in table.values())
    for machine, count in itertools.product(offered, range(17)):
        fits = count == 0 and not machine.accelerator_required
        assert refused(place, machine.machine_type, None, count) != fits, (machine, count)


@pytest.mark.parametrize(
    ("place", "options", "said"),
    [
        ("vertex", {"primary": "n1-standard-8+1*K80"}, "Vertex AI no longer offers K80."),
        ("vertex", {"region": "nowhere"}, "'nowhere' is not a region of Vertex AI;"),
        ("sagemaker", {"servers": "1"}, "SageMaker has no pool of servers:"),
        ("ai-platform", {"primary": "x9"}, "x9 is not a machine type known for AI Platform;"),
        ("local", {"scheduling": "SPOT"}, "--scheduling SPOT has no meaning on this machine."),
        ("vertex", {"distribution": "smddp"}, "--distribution smddp has no meaning on Vertex AI."),
    ],
)
def test_places_are_called_as_people_call_them(
    place: str, options: dict[str, str], said: str
) -> None:
    messages = [finding.message for finding in check(Layout.of(place, **options))]
    assert any(message.startswith(said) for message in messages), messages


@pytest.mark.parametrize(
    ("place", "wanted", "offered"),
    [
        ("vertex", "h100", [f"a3-highgpu-{n}g with {n} x H100" for n in (1, 2, 4, 8)]),
        ("vertex", "8xH100", ["a3-highgpu-8g with 8 x H100"]),
        ("vertex", "2 x t4", [f"n1-standard-{n} with 2 x T4" for n in (4, 8, 16, 32)]),
        ("sagemaker", "h100", ["ml.p5.4xlarge", "ml.p5.48xlarge"]),
    ],
)
def test_what_a_machine_has_is_no_type_but_leads_to_those_that_have_it(
    place: str, wanted: str, offered: list[str]
) -> None:
    role = "workers" if place == "sagemaker" else "primary"
    layout = Layout.of(place, **{role: Pool(1, wanted)})
    (found,) = check(layout)
    assert found.message == f"{wanted} is not a machine type: choose one that has it."
    assert [fix.label for fix in found.fixes] == [f"Use {each} for the {role}" for each in offered]
    assert all(check(fix.apply(layout)) == () for fix in found.fixes)


BARE = {
    "vertex": Pool(1, "n1-standard-4"),
    "ai-platform": Pool(1, "n1-standard-4"),
    "sagemaker": None,
}


def gpus_of(job: Layout) -> tuple[str, int]:
    """The name and number of the GPUs that each worker has."""
    workers = resolve(job).pool(Role.WORKERS)
    assert workers
    return short_name(workers.accelerator or ""), workers.accelerators


@pytest.mark.parametrize("place", ["vertex", "ai-platform", "sagemaker"])
def test_a_legacy_machine_becomes_one_with_as_many_gpus(place: str) -> None:
    for row in CATALOG.legacy_machines.values():
        if row.kind != "machine" or row.name == "cloud_tpu":
            continue
        layout = Layout(place, primary=BARE[place], workers=Pool(2, row.name))
        found = next(f for f in check(layout) if f.where == "workers.machine")
        has = f"{row.accelerator_count} x {row.accelerator.removeprefix('NVIDIA_TESLA_')}"
        for fix in found.fixes:
            repaired = fix.apply(layout)
            name, gpus = gpus_of(repaired)
            assert (repaired.workers.replicas, gpus) == (2, row.accelerator_count), fix.label
            assert errors(check(repaired)) == ()
            if row.accelerator:
                assert str(gpus) + " x " in fix.label
                kept = name == short_name(row.accelerator)
                assert kept or f"in place of {has}" in fix.label
                assert place == "ai-platform" or has in found.message
        assert found.fixes
    k80s = Layout(place, primary=BARE[place], workers=Pool(1, "complex_model_m_gpu"))
    first = next(f for f in check(k80s) if f.where == "workers.machine").fixes[0].apply(k80s)
    with_t4, with_k80 = "n1-standard-16+4*T4", "n1-standard-16+4*K80"
    here = {"vertex": with_t4, "ai-platform": with_k80, "sagemaker": "ml.g4dn.12xlarge"}
    assert str(first.workers) == here[place]


@pytest.mark.parametrize(
    ("place", "machines", "instead", "says"),
    [
        ("sagemaker", "4*n1-standard-16+4*T4", "4*ml.g4dn.12xlarge", "with 4 x T4"),
        ("sagemaker", "n1-standard-8+2*T4", "ml.g7.12xlarge",
         "with 2 x RTX PRO 4500 in place of 2 x T4"),
        ("sagemaker", "a2-highgpu-8g+8*A100", "ml.p4d.24xlarge", "with 8 x A100"),
        ("sagemaker", "a2-ultragpu-8g+8*A100_80GB", "ml.p4de.24xlarge", "with 8 x A100"),
        ("sagemaker", "2*g2-standard-48", "2*ml.g6.12xlarge", "with 4 x L4"),
        ("sagemaker", "a4x-highgpu-4g+4*GB200", "ml.p6-b200.48xlarge",
         "with 8 x B200 in place of 4 x GB200"),
        ("sagemaker", "?+4*T4", "ml.g4dn.12xlarge", "with 4 x T4"),
        ("sagemaker", "x9+4*T4", "ml.g4dn.12xlarge", "with 4 x T4"),
        ("sagemaker", "n1-standard-16", "ml.m5.4xlarge", "for the workers"),
        ("vertex", "ml.p4d.24xlarge", "a2-highgpu-8g+8*A100", "with 8 x A100"),
        ("vertex", "ml.p3dn.24xlarge", "a2-highgpu-8g+8*A100",
         "with 8 x A100 in place of 8 x V100"),
        ("vertex", "3*ml.p3.8xlarge", "3*n1-highmem-32+4*V100", "with 4 x V100"),
        ("vertex", "ml.g5.12xlarge", "g2-standard-48+4*L4", "with 4 x L4 in place of 4 x A10G"),
        ("ai-platform", "ml.p3.8xlarge", "n1-highmem-32+4*V100", "with 4 x V100"),
    ],
)  # fmt: skip
def test_a_machine_of_another_cloud_becomes_one_with_as_many_gpus(
    place: str, machines: str, instead: str, says: str
) -> None:
    layout = Layout(place, primary=BARE[place], workers=Pool.parse(machines))
    (found,) = errors(check(layout))
    repaired = found.fixes[0].apply(layout)
    assert (found.where, str(repaired.workers)) == ("workers.machine", instead)
    assert found.fixes[0].label == f"Use {repaired.workers.machine} {says}"
    assert errors(check(repaired)) == ()


@pytest.mark.parametrize(
    ("place", "machine", "lost"),
    [
        ("sagemaker", "a2-megagpu-16g+16*A100", "16 x A100"),
        ("sagemaker", "cloud_tpu", "TPUs"),
        ("vertex", "ml.trn1.32xlarge", "16 x Trainium"),
        ("ai-platform", "ml.p4d.24xlarge", "8 x A100"),
    ],
)
def test_a_machine_whose_accelerators_nothing_succeeds_is_not_replaced_silently(
    place: str, machine: str, lost: str
) -> None:
    layout = Layout(place, primary=BARE[place], workers=Pool.parse(machine))
    (found,) = errors(check(layout))
    assert [fix.label.partition(", ")[2] for fix in found.fixes] == [f"without {lost}"]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("vertex", {"primary": "n1-standard-8+1*T4"}),
        ("sagemaker", {"workers": "ml.p2.xlarge"}),
    ],
)
def test_a_tier_elsewhere_becomes_a_machine_with_its_gpu(
    place: str, expected: dict[str, str]
) -> None:
    layout = Layout(place, tier="BASIC_GPU")
    assert "tier-elsewhere" in {finding.code for finding in check(layout)}
    for finding in check(layout):
        assert finding.fixes[0].apply(layout) == Layout.of(place, **expected)


def test_legacy_machines_take_no_accelerators_of_their_own() -> None:
    for row in CATALOG.legacy_machines.values():
        if row.kind != "machine" or row.name == "cloud_tpu":
            continue
        bare = Layout("ai-platform", primary=Pool(1, row.name))
        assert errors(check(bare)) == ()
        added = Layout("ai-platform", primary=Pool(1, row.name, "NVIDIA_TESLA_K80", 1))
        assert [f.code for f in errors(check(added))] == ["legacy-accelerator"]


def test_basic_gpu_is_a_whole_job() -> None:
    assert check(Layout("ai-platform", tier="BASIC_GPU")) == ()
    both = Layout("ai-platform", tier="BASIC_GPU", primary=Pool(1, "n1-standard-4"))
    assert [f.code for f in check(both)] == ["tier-with-pools"]


def test_every_tpu_slice_of_the_table_is_allowed_and_no_other() -> None:
    rows = [row for row in CATALOG.topologies.values() if row.topology]
    named = {row.topology for row in rows}
    slices = {(row.machine_type, row.topology) for row in rows}
    for machine, topology in itertools.product({row.machine_type for row in rows}, named):
        layout = Layout("vertex", primary=Pool(1, machine, topology=topology))
        assert (errors(check(layout)) == ()) == ((machine, topology) in slices)


@pytest.mark.parametrize("cores", range(130))
@pytest.mark.parametrize("tpu", ["TPU_V2", "TPU_V3"])
def test_cores_of_cloud_tpu(tpu: str, cores: int) -> None:
    fits = cores == 8 or (cores >= 32 and (tpu == "TPU_V3" or cores % 32 == 0))
    assert refused("vertex", "cloud-tpu", tpu, cores) != fits


@pytest.mark.slow  # applies every repair
@examples
@given(layouts())
def test_no_layout_raises_and_every_repair_repairs(layout: Layout) -> None:
    for finding in check(layout, ("train", "a b")):
        assert finding.code in all_rules() and finding.message
        for fix in finding.fixes:
            after = check(fix.apply(layout), ("train", "a b"))
            assert (finding.code, finding.where) not in {(f.code, f.where) for f in after}


@examples
@given(layouts())
def test_findings_and_the_ranking_of_their_repairs_are_stable(layout: Layout) -> None:
    def told(layout: Layout) -> list[tuple[str, list[str]]]:
        return [(str(f), [fix.label for fix in f.fixes]) for f in check(layout)]

    assert told(layout) == told(layout) == told(Layout.from_line(str(layout)))


@examples
@given(layouts())
def test_errors_come_first_and_places_are_fields(layout: Layout) -> None:
    found = check(layout)
    order = [list(Severity).index(finding.severity) for finding in found]
    assert order == sorted(order)
    for finding in found:
        name, _, field = finding.where.partition(".")
        value = getattr(layout, name)
        assert not field or value is None or hasattr(value, field)


DOCUMENTS_JOB = Layout.of(
    "vertex",
    primary="n1-highmem-96+8*V100",
    workers="4*n1-highmem-96+8*V100",
    reducers="auto",
    region="us-central1",
    framework="pytorch-2.4",
)

OTHERS = (Alternative("ml.p4de.24xlarge"),)

CASES = {
    "machine-missing": {"workers.machine": None},
    "machine-unknown": {"workers.machine": "n1-highmem-95"},
    "replicas-positive": {"workers.replicas": 0},
    "ranks-positive": {"ranks_per_replica": 0},
    "accelerator-unknown": {"workers.accelerator": "NVIDIA_V1000"},
    "accelerator-retired": {"workers.accelerator": "NVIDIA_TESLA_K80"},
    "accelerator-ending": {
        "workers.machine": "n1-highcpu-64",
        "workers.accelerator": "NVIDIA_TESLA_P100",
        "workers.accelerator_count": 4,
    },
    "accelerator-without-count": {"workers.accelerator_count": 0},
    "count-without-accelerator": {"workers.accelerator": None},
    "accelerator-not-on-machine": {"workers.machine": "n2-standard-8"},
    "accelerator-count": {"workers.accelerator_count": 3},
    "accelerator-required": {
        "workers.machine": "g2-standard-12",
        "workers.accelerator": None,
        "workers.accelerator_count": 0,
    },
    "primary-missing": {"primary": None},
    "primary-one-replica": {"primary.replicas": 2},
    "servers-and-reducers": {"servers": Pool(1, "n1-standard-4")},
    "evaluators-many": {
        "framework": "tensorflow-2.17",
        "evaluators": Pool(2, "n1-standard-4"),
    },
    "servers-missing": {"launcher": "parameter-server"},
    "tpu-one-pool": {
        "primary": Pool(1, "ct5lp-hightpu-1t", topology="1x1"),
        "workers": Pool(1, "ct5lp-hightpu-1t", topology="1x1"),
    },
    "tpu-one-replica": {"workers": Pool(2, "ct5lp-hightpu-1t", topology="1x1")},
    "tpu-topology": {"workers": Pool(1, "ct5lp-hightpu-4t", topology="2x4x2")},
    "topology-without-tpu": {"workers.topology": "2x2"},
    "tpu-accelerator": {"workers": Pool(1, "ct5lp-hightpu-1t", "TPU_V2", 8, topology="1x1")},
    "tpu-cores": {"workers": Pool(1, "cloud-tpu", "TPU_V2", 33)},
    "reducers-need-gpu-workers": {
        "workers.accelerator": None,
        "workers.accelerator_count": 0,
    },
    "reducers-with-accelerator": {
        "reducers.accelerator": "NVIDIA_TESLA_T4",
        "reducers.accelerator_count": 1,
    },
    "reducers-bandwidth": {"reducers.replicas": 15},
    "reducers-many": {"reducers.replicas": 100},
    "reducers-image": {"reducers.image": "gcr.io/project/train"},
    "reducers-image-far": {
        "reducers.image": "asia-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    },
    "reducers-container": {
        "image": "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-1.py310:latest",
        "framework": "pytorch-1.3",
    },
    "reducers-framework": {"framework": "jax-0.4"},
    "reducers-custom-container": {"image": "gcr.io/project/train"},
    "reducers-flex-start": {"scheduling": "FLEX_START"},
    "region-form": {"region": "us-east-1"},
    "accelerator-not-in-region": {"region": "europe-west1"},
    "no-common-region": {
        "workers": Pool(1, "a4x-highgpu-4g", "NVIDIA_GB200", 4),
        "evaluators": Pool(1, "cloud-tpu", "TPU_V3", 32),
    },
    "disk-type": {"workers.disk_type": "floppy"},
    "disk-size": {"workers.disk_gb": 99},
    "strategy-unknown": {"scheduling": "SOMETIMES"},
    "strategy-deprecated": {"scheduling": "ON_DEMAND"},
    "flex-start-accelerator": {"scheduling": "FLEX_START"},
    "flex-start-same-machines": {"scheduling": "FLEX_START"},
    "flex-start-timeout": {"scheduling": "FLEX_START", "timeout": 8 * 86400},
    "spot-tpu-pod": {
        "scheduling": "SPOT",
        "workers": Pool(1, "ct5lp-hightpu-4t", topology="4x4"),
    },
    "reservation-needed": {"workers": Pool(1, "a4x-highgpu-4g", "NVIDIA_GB200", 4)},
    "timeout-positive": {"timeout": 0},
    "signal-before": {"timeout": 60, "signal_before": 60},
    "max-wait-ignored": {"max_wait": 60},
    "tier-elsewhere": {"tier": "BASIC"},
    "field-ignored": {"distribution": "mpi"},
    "mpi-options-without-mpi": {"mpi_options": "-verbose"},
}

SAGEMAKER_JOB = Layout.of(
    "sagemaker", workers="2*ml.p4d.24xlarge", framework="pytorch-2.2.0", launcher="torchrun"
)

SAGEMAKER_CASES = {
    "role-not-here": {"servers": Pool(1, "ml.m5.xlarge")},
    "instances-missing": {"workers": None},
    "instances-differ": {"primary": Pool(1, "ml.m5.xlarge")},
    "instance-accelerator": {"workers.accelerator": "NVIDIA_TESLA_A100"},
    "machine-unknown": {"workers.machine": "ml.p4d.25xlarge"},
    "processes-per-host": {"ranks_per_replica": 9},
    "distribution-unknown": {"distribution": "gossip"},
    "distribution-framework": {"launcher": "tensorflow"},
    "distribution-version": {"framework": "pytorch-2.2.9"},
    "distribution-instance": {"workers.machine": "ml.m5.xlarge"},
    "distribution-launcher": {"distribution": "smdistributed.modelparallel", "launcher": "auto"},
    "trainium-distribution": {"workers.machine": "ml.trn1.32xlarge", "launcher": "mpi"},
    "parameter-server-gpus": {"launcher": "parameter-server", "framework": "tensorflow-2.9.2"},
    "framework-version": {"framework": "pytorch-9.9"},
    "volume-size": {"workers.disk_gb": 0},
    "volume-fixed": {"workers.disk_gb": 100},
    "volume-type": {"workers.disk_type": "pd-ssd"},
    "run-time": {"timeout": 29 * 86400},
    "wait-shorter-than-run": {"scheduling": "SPOT", "max_wait": 60},
    "pending-time": {"max_wait": 60},
    "alternatives-spot": {"scheduling": "SPOT", "workers.alternatives": OTHERS},
    "alternatives-many": {"workers.alternatives": OTHERS * 5},
    "alternatives-twice": {"workers.alternatives": OTHERS * 2},
    "alternatives-differ": {"primary": Pool(1, "ml.p5.48xlarge"), "workers.alternatives": OTHERS},
    "alternatives-devices": {"workers.alternatives": (Alternative("ml.trn1.32xlarge"),)},
    "pending-without-accelerator": {"max_wait": 3600, "workers.machine": "ml.m5.xlarge"},
    "checkpoint-place": {"checkpoint": "gs://bucket"},
    "scheduling-ignored": {"scheduling": "FLEX_START"},
    "region-form": {"region": "us-central1"},
}

AI_PLATFORM_JOB = Layout.of(
    "ai-platform", primary="n1-highcpu-16+4*K80", workers="9*n1-highcpu-16+4*K80",
    servers="3*n1-highmem-8", region="us-central1",
)  # fmt: skip

AI_PLATFORM_CASES = {
    "tier-unknown": {"tier": "LARGE"},
    "tier-with-pools": {"tier": "BASIC_GPU"},
    "custom-without-primary": {"tier": "CUSTOM", "primary": None},
    "machine-categories": {"servers.machine": "large_model"},
    "legacy-accelerator": {"servers": Pool(1, "large_model", "NVIDIA_TESLA_K80", 1)},
    "accelerators-in-one-zone": {
        "primary": Pool(1, "n1-standard-4", "NVIDIA_TESLA_T4", 1),
        "servers": Pool(1, "n1-standard-4", "NVIDIA_TESLA_P100", 1),
    },
    "accelerator-not-in-region": {"region": "europe-north1"},
    "role-not-here": {"reducers": Pool(1, "n1-highcpu-16")},
}

ALL_CASES = [
    *((DOCUMENTS_JOB, code, changes) for code, changes in CASES.items()),
    *((SAGEMAKER_JOB, code, changes) for code, changes in SAGEMAKER_CASES.items()),
    *((AI_PLATFORM_JOB, code, changes) for code, changes in AI_PLATFORM_CASES.items()),
    (Layout.of(workers=2), "machine-ignored", {"workers.machine": "n1-standard-4"}),
]


@pytest.mark.parametrize(
    ("job", "code", "changes"), ALL_CASES, ids=[f"{j.on}:{c}" for j, c, _ in ALL_CASES]
)
def test_each_rule_sees_what_it_is_for(job: Layout, code: str, changes: dict[str, object]) -> None:
    assert code not in {finding.code for finding in check(job)}
    assert code in {finding.code for finding in check(job.edited(changes))}


def test_alternatives_are_checked_like_machines() -> None:
    layout = SAGEMAKER_JOB.edited(
        {"workers": Pool.parse("2*ml.p4d.24xlarge|ml.p4de.24xlarg|ml.g5.48xlarg"),
         "launcher": "mpi", "ranks_per_replica": 8}
    )  # fmt: skip
    (unknown,) = check(layout)
    assert (unknown.code, unknown.where) == ("machine-unknown", "workers.alternatives")
    assert "ml.p4de.24xlarg is not" in unknown.message and "ml.g5.48xlarg is not" in unknown.message
    after = unknown.fixes[0].apply(layout)
    assert str(after.workers) == "2*ml.p4d.24xlarge|ml.p4de.24xlarge|ml.g5.48xlarge"
    assert check(after) == ()
    (few,) = check(after.edited({"workers.alternatives": (Alternative("ml.g5.12xlarge", 4),)}))
    assert (few.code, few.where) == ("processes-per-host", "ranks_per_replica")
    assert few.message.startswith("ml.g5.12xlarge: 8 processes per host do not fit")
    assert [fix.label for fix in few.fixes] == [
        "Run 4 processes per host", "Leave ml.g5.12xlarge out",
    ]  # fmt: skip


def test_a_time_to_wait_is_for_any_of_the_choices() -> None:
    mixed = {"workers": Pool.parse("ml.m5.large|ml.g5.xlarge"), "image": "mine:1", "max_wait": 3600}
    assert not check(Layout("sagemaker").edited(mixed))
    alone = check(Layout("sagemaker").edited({**mixed, "workers": Pool(1, "ml.m5.large")}))
    assert [finding.code for finding in alone] == ["pending-without-accelerator"]


def test_alternatives_elsewhere_are_not_checked_but_named() -> None:
    for there, machine in (("vertex", "n1-standard-4"), ("local", None)):
        pool = Pool(1, machine, alternatives=OTHERS)
        (finding,) = check(Layout(there, primary=pool))
        assert finding.code == "machine-ignored"
        assert finding.fixes[0].apply(Layout(there, primary=pool)).primary == Pool(1, machine)


def test_every_rule_has_a_case() -> None:
    tested = {code for _, code, _ in ALL_CASES}
    tested |= {"channels", "accelerator-on-allowlist", "ranks-not-here"}
    tested |= {"machine-newer", "accelerator-newer"}  # test_newer_than_tables.py
    assert set(all_rules()) == tested


def test_an_older_installation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its metadata has no entry points of places, and every layout would have fitted."""
    monkeypatch.setattr(place, "_PLACES", {})
    monkeypatch.setattr("distrain_nb.installed.points_of", lambda group: {})
    with pytest.raises(DistrainError, match="metadata lacks the place vertex"):
        check(Layout.of("vertex", primary="3*n1-standard-4"))


def test_what_a_backend_s_place_does_not_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_PLACES", dict(place.places()))
    place.declare(
        place.described("lab", "the lab's machine", ["workers", "workers.machine", "region"])
    )
    assert check(Layout.of("lab", workers="3*big", region="here")) == ()
    asked = Layout.of(
        "lab", primary="1", workers="3*big,disk=ssd:9", launcher="mpi", ranks_per_replica=2,
        image="python:3.11", timeout="2h",
    )  # fmt: skip
    found = {finding.where: finding for finding in check(asked)}
    assert {where: finding.severity.value for where, finding in found.items()} == {
        "primary": "error",
        "launcher": "error",
        "ranks_per_replica": "error",
        "image": "warning",
        "timeout": "warning",
        "workers.machine": "warning",
    }
    assert found["primary"].message == "The lab's machine has no pool of primary."
    assert found["timeout"].message == "--timeout 2h has no meaning on the lab's machine."
    for finding in found.values():
        repaired = finding.fixes[0].apply(asked)
        assert finding.where not in {other.where for other in check(repaired)}


@pytest.mark.parametrize(
    ("limit", "labels"), [(1, ["Don't ask it"]), (2, ["Ask it halfway", "Don't ask it"])]
)
def test_a_limit_of_a_second_has_no_half(limit: int, labels: list[str]) -> None:
    layout = Layout.of("vertex", primary="n1-standard-4", timeout=limit, signal_before=limit)
    (finding,) = (f for f in check(layout) if f.code == "signal-before")
    assert sorted(fix.label for fix in finding.fixes) == labels


def test_channels() -> None:
    assert check(SAGEMAKER_JOB, [f"c{n}" for n in range(20)]) == ()
    assert [f.where for f in check(SAGEMAKER_JOB, [f"c{n}" for n in range(21)])] == ["data"]
    assert [f.where for f in check(SAGEMAKER_JOB, ["train", "a b", "x" * 65])] == [
        "data.a b", "data." + "x" * 65,
    ]  # fmt: skip


def test_an_allowlist_is_a_warning() -> None:
    row = {"service": "vertex", "accelerator": "NVIDIA_TESLA_V100", "region": "us-central1"}
    catalog = Catalog({"regions": [{**row, "training": "allowlist"}]})
    found = [
        (rule.code, p.where) for rule, p in all_problems(resolve(DOCUMENTS_JOB, catalog=catalog))
    ]
    assert found == [
        ("accelerator-on-allowlist", "primary.accelerator"),
        ("accelerator-on-allowlist", "workers.accelerator"),
    ]


def test_version_2_of_model_parallelism_has_its_own_limits() -> None:
    job = SAGEMAKER_JOB.edited({"distribution": "smdistributed.modelparallel"})
    assert check(job.edited({"workers.machine": "ml.p5.48xlarge"})) == ()
    old = check(job.edited({"framework": "pytorch-1.13.1"}))
    assert [finding.code for finding in old] == ["distribution-framework"]
    first = job.edited({"launcher": "mpi", "workers.machine": "ml.p5.48xlarge"})
    assert {f.code for f in check(first)} == {"distribution-version", "distribution-instance"}


def test_rules_that_a_backend_brings_late_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout("lab", primary=Pool(1))
    assert check(layout) == ()
    monkeypatch.setattr("distrain_nb.layout.rules.engine.RULES", dict(all_rules()))

    @engine.rule("one-replica", "The lab has one machine.", "", on=("lab",))
    def one_replica(job: ResolvedLayout) -> Iterator[Problem]:
        if job.layout.size > 1:
            yield Problem("workers.replicas", "the lab has one machine")

    assert [finding.code for finding in check(layout)] == []
    wrong = layout.edited({"workers.replicas": 2})
    assert [finding.code for finding in check(wrong)] == ["one-replica"]
    rules_for.cache_clear()


def test_sources_of_rules_are_in_the_table_of_sources() -> None:
    for rule in all_rules().values():
        for key in filter(None, rule.source.split(";")):
            assert key in CATALOG.sources, rule.code


def test_the_smallest_change_comes_first() -> None:
    bad = DOCUMENTS_JOB.edited({"workers.accelerator_count": 3, "workers.machine": "n1-highmem-32"})
    (finding,) = [f for f in check(bad) if f.code == "accelerator-count"]
    assert finding.where == "workers.accelerator_count"
    assert [fix.label for fix in finding.fixes][:2] == ["Use 4 x V100", "Use 8 x V100"]
    assert "n1-highmem-32 takes 4 or 8" in finding.message


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({"workers.replicas": -3}, "Remove the workers"),
        ({"workers.accelerator_count": 3}, "Remove the accelerator from the workers"),
        ({"workers.accelerator": None}, "Ask for no accelerators"),
    ],
)
def test_what_was_asked_for_is_given_up_last(changes: dict[str, object], last: str) -> None:
    bad = DOCUMENTS_JOB.edited(changes)
    offered = [[fix.label for fix in f.fixes] for f in check(bad) if len(f.fixes) > 1]
    assert offered
    for labels in offered:
        assert labels[-1] == last


@examples
@given(layouts())
def test_repairs_that_lose_something_come_after_those_that_do_not(layout: Layout) -> None:
    before = resolve(layout)
    for finding in check(layout):
        lost = [change(before, resolve(fix.apply(layout))).lost for fix in finding.fixes]
        assert lost == sorted(lost)


def test_the_same_with_several_pools_is_one_finding() -> None:
    bad = DOCUMENTS_JOB.edited({"primary.accelerator_count": 3, "workers.accelerator_count": 3})
    (finding,) = errors(check(bad))
    assert finding.places == ("primary.accelerator_count", "workers.accelerator_count")
    assert str(finding).startswith(f"error: {', '.join(finding.places)}: 3 x V100")
    best, last = finding.fixes
    assert best.label == "Use 8 x V100"
    assert best.apply(bad) == DOCUMENTS_JOB
    assert last.label == "Remove the accelerator from the primary and the workers"
    assert {pool.accelerator for _, pool in last.apply(bad).pools()} == {None}


def test_findings_whose_repairs_differ_stay_apart() -> None:
    bad = Layout.of("vertex", primary="n1-standard-4+1*K80", workers="n1-highmem-96+8*K80")
    found = [f for f in check(bad) if f.code == "accelerator-retired"]
    assert [f.places for f in found] == [("primary.accelerator",), ("workers.accelerator",)]
    assert all(f.fixes for f in found)


def test_a_typo_is_put_right() -> None:
    (finding,) = [
        f for f in check(DOCUMENTS_JOB.edited({"workers.machine": "n1-highmem-9"})) if f.fixes
    ]
    assert finding.fixes[0].label == "Use n1-highmem-96 for the workers"
    assert finding.fixes[0].apply(DOCUMENTS_JOB) == DOCUMENTS_JOB


def test_workers_without_a_primary_give_one_up() -> None:
    bad = DOCUMENTS_JOB.edited({"primary": None, "workers.replicas": 5})
    (finding,) = [f for f in check(bad) if f.code == "primary-missing"]
    assert finding.fixes[0].apply(bad) == DOCUMENTS_JOB


def test_the_documents_job_has_nothing_wrong() -> None:
    assert check(DOCUMENTS_JOB) == ()
    assert check(SAGEMAKER_JOB) == ()
    assert check(Layout.of(workers=2, servers=1, evaluators=1)) == ()
