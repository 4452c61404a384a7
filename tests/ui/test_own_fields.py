"""Fields of a backend's own: in the form, in the line that it writes, and after Tab."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from IPython.core.completer import CompletionContext

from distrain_nb.backends.base import Backend
from distrain_nb.backends.options import option
from distrain_nb.layout import Layout
from distrain_nb.layout.choices import Choice
from distrain_nb.magics.completion import match
from distrain_nb.repairs import join_lines
from distrain_nb.ui.form import Form
from tests import guests


def partitions(layout: Layout) -> Iterable[Choice]:
    """Those with as many nodes as the layout has workers."""
    if layout.image:
        raise ConnectionError("the controller is away")
    workers = layout.workers.replicas if layout.workers else 1
    for name, nodes in (("main", 4), ("short", 2)):
        yield Choice(name, f"{name} · {nodes} nodes", nodes >= workers)


@dataclass(frozen=True)
class QueueOptions:
    partition: str = option(
        "NAME", "partition of the cluster", "", label="Partition", choices=partitions
    )
    account: str = option("NAME", "who pays", "", label="Account", setting="account")
    nice: str = option("N", "how far it gives way", "0")


class QueueBackend(Backend[QueueOptions, Any]):
    name, title, options = "queue", "the queue", QueueOptions
    reads = ("workers", "ranks_per_replica")

    def plan(self, job: Any) -> Any:
        raise NotImplementedError

    submit = status = cancel = plan  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def known(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with guests.installed(QueueBackend, tmp_path / "site", monkeypatch):
        yield


@pytest.fixture
def built(tmp_path: Path) -> Form:
    made = Form(folder=tmp_path)
    made.set("on", "queue")
    return made


def fields(built: Form) -> dict[str, tuple[str, str]]:
    shown = built.widget.view["settings"]
    return {field["path"]: (field["kind"], field["text"]) for field in shown}


def test_they_are_shown_at_their_place_alone(built: Form) -> None:
    assert fields(built) == {
        "ranks_per_replica": ("number", ""),
        "own.partition": ("combo", ""),
        "own.account": ("text", ""),
    }
    built.set("on", "local")
    assert not any(path.startswith("own.") for path in fields(built))


def test_machines_are_summed_up_only_where_a_pool_names_them(built: Form) -> None:
    """The queue's machines have no vCPUs in any table: a sum of 0 would say that it has none."""
    built.layout = Layout.of("queue", workers="3")
    assert "vCPU" not in [what for _, what in built.widget.view["totals"]]
    built.set("on", "vertex")
    assert "vCPU" in [what for _, what in built.widget.view["totals"]]


@pytest.mark.parametrize(
    ("line", "sums"),
    [
        ("--on slurm", [["1", "replica"]]),
        ("--on slurm --workers 4*gpu:8", [["4", "replicas"], ["32", "GPUs"]]),
        ("--on slurm --workers 4", [["4", "replicas"]]),
        ("--on ray --workers 2*node+8*A100", [["2", "replicas"], ["16", "GPUs"]]),
    ],
)
def test_at_places_without_tables_only_what_is_known_is_summed_up(
    line: str, sums: list[list[str]]
) -> None:
    assert Form(line).widget.view["totals"] == sums


@pytest.mark.parametrize(
    ("before", "place", "after"),
    [
        ("--on slurm --workers 4*gpu:8", "ray", "4*node+8*GPU"),
        ("--on ray --workers 4*node+8*A100", "slurm", "4*gpu:8"),
        ("--on slurm --workers 4", "ray", "4"),
        ("--on vertex --primary n1-highmem-96+8*V100", "slurm", "gpu:8"),
    ],
)
def test_gpus_stay_when_the_place_changes(before: str, place: str, after: str) -> None:
    built = Form(before)
    built.set("on", place)
    assert [str(pool) for _, pool in built.layout.pools()] == [after]


def test_what_stands_in_them_is_in_the_line_and_comes_back_from_it(built: Form) -> None:
    built.set("own.partition", "short ")
    built.set("own.account", "the lab")
    assert built.line == "%%distrain --on queue --partition short --account 'the lab'"
    assert [export[0] for export in built.widget.view["exports"]] == ["options", "yaml"]
    assert "--partition short" in built.widget.view["exports"][0][2]
    again = Form(built.line)
    assert (again.line, again.layout) == (built.line, built.layout)
    assert fields(again)["own.account"] == ("text", "the lab")
    built.undo()
    assert built.line == "%%distrain --on queue --partition short"
    built.set("on", "local")
    assert built.line == "%%distrain --on local"


def test_the_list_goes_by_the_layout(built: Form) -> None:
    built.layout = Layout.of("queue", workers="3")
    assert built.widget.options["own.partition"] == [
        ["main", "4 nodes", True], ["short", "2 nodes", False],
    ]  # fmt: skip
    built.set("image", "any")
    assert "own.partition" not in built.widget.options, "what can't be asked for is no failure"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%%distrain --on queue --partition ", {"main": "4 nodes", "short": "2 nodes"}),
        ("%%distrain --on queue --workers 3 --partition ", {"main": "4 nodes"}),
        ("%%distrain --on queue --workers=3 --partition=m", {"main": "4 nodes"}),
        ("%%distrain --on queue --image any --partition ", {}),
        ("%%distrain --partition ", {}),
    ],
)
def test_tab_offers_them(line: str, offered: dict[str, str]) -> None:
    context = CompletionContext(
        token="", full_text=line, cursor_position=len(line), cursor_line=0, limit=None
    )
    completions = match(context)["completions"]
    plain = {
        each.text: (each.type or "").replace("\N{NO-BREAK SPACE}", " ") for each in completions
    }
    assert plain == offered


def test_a_field_is_for_texts_and_switches() -> None:
    with pytest.raises(TypeError, match="a field of the form is for a text, not 1"):
        option("N", "a number", 1, label="Nodes")


JOB = {
    "workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1}],
    "scheduling": {"disableRetries": True, "timeout": "3600s"},
    "pscInterfaceConfig": {"networkAttachment": "attachments/a"},
    "reservedIpRanges": ["one", "two"],
}
TRAINING = {
    "ResourceConfig": {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2},
    "AlgorithmSpecification": {"TrainingImage": "mine:1"},
    "InfraCheckConfig": {"EnableInfraCheck": True},
}
PYTHON = """
Estimator(image_uri="mine:1", instance_type="ml.p4d.24xlarge", instance_count=2,
        enable_infra_check=True)
"""
RESUMED = """
job = aiplatform.CustomJob(display_name="a", worker_pool_specs=[
    {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1}])
job.run(disable_retries=True)
"""


def snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {re.sub("[A-Z]", lambda it: f"_{it[0].lower()}", key): snake(member)
                for key, member in value.items()}  # fmt: skip
    return [snake(member) for member in value] if isinstance(value, list) else value


COMMAND = f"""
cat > job.yaml <<EOF
{yaml.safe_dump(JOB)}EOF
gcloud ai custom-jobs create --config=job.yaml
"""
NETWORK = "--network-attachment attachments/a --ip-range one --ip-range two"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (json.dumps(JOB), f"--no-retries {NETWORK}"),
        (json.dumps({"displayName": "a", "jobSpec": JOB}), f"--no-retries {NETWORK}"),
        (json.dumps(snake(JOB)), f"--no-retries {NETWORK}"),
        (yaml.safe_dump(JOB), f"--no-retries {NETWORK}"),
        (COMMAND, f"--no-retries {NETWORK}"),
        (json.dumps(TRAINING), "--check-machines"),
        (PYTHON, "--check-machines"),
        (RESUMED, "--no-retries"),
    ],
)
def test_they_are_read_from_requests(built: Form, text: str, options: str) -> None:
    lost = built.paste(text)
    assert " ".join(join_lines(built.line).split()).endswith(options)
    assert not [finding.where for finding in lost if "isplay" not in finding.where]
    again = Form(built.line)
    assert (again.line, again.layout) == (built.line, built.layout)


def test_what_says_more_than_an_option_is_named(built: Form) -> None:
    more = {**JOB["pscInterfaceConfig"], "dnsPeeringConfigs": [{"domain": "a"}]}  # type: ignore[dict-item]
    lost = built.paste(json.dumps({**JOB, "pscInterfaceConfig": more}))
    assert [finding.where for finding in lost] == ["pscInterfaceConfig"]
    lost = built.paste(json.dumps({**TRAINING, "InfraCheckConfig": {"EnableInfraCheck": False}}))
    assert [finding.where for finding in lost] == ["InfraCheckConfig"]


@pytest.mark.parametrize(("text", "form"), [(JOB, "vertex-json"), (TRAINING, "sagemaker-json")])
def test_they_are_written_into_requests(built: Form, text: dict[str, Any], form: str) -> None:
    built.paste(json.dumps(text))
    exports = {name: (text, lost) for name, _, text, lost in built.widget.view["exports"]}
    written, lost = exports[form]
    for name in ("InfraCheckConfig", "pscInterfaceConfig", "reservedIpRanges", "scheduling"):
        assert json.loads(written).get(name) == text.get(name)
    assert not lost
    if form == "vertex-json":
        assert yaml.safe_load(exports["vertex-yaml"][0]) == json.loads(written)
        assert exports["vertex-gcloud"][1].endswith("No retries, Network attachment, IP ranges")
    else:
        assert "    enable_infra_check=True,\n)" in exports["sagemaker-python"][0]
        assert not exports["sagemaker-python"][1]


def test_a_switch_is_a_choice_of_yes(built: Form) -> None:
    built.set("on", "sagemaker")
    (field,) = [it for it in built.widget.view["settings"] if it["path"] == "own.check_machines"]
    assert (field["kind"], field["extra"], field["hint"]) == ("combo", True, "no")
    assert built.widget.options["own.check_machines"][0][0] == "yes"
    built.set("own.check_machines", "yes")
    assert built.line.endswith("--check-machines")
    built.set("own.check_machines", "no")
    assert "--check-machines" not in built.line
