"""Which distribution suits a case: the article's table, its versions, and what is asked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb.api import program
from distrain_nb.backends.job import Job
from distrain_nb.backends.plugins import find
from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout import Layout
from distrain_nb.layout.advice import advise
from distrain_nb.layout.byte_sizes import size_in_bytes
from distrain_nb.layout.case import Case, case_of
from distrain_nb.layout.distributions import (
    DDP,
    DDP_BY_MPI,
    DDP_ONE_INSTANCE,
    HOROVOD,
    NO_DISTRIBUTION,
    ONE_INSTANCE,
    PARAMETER_SERVERS,
    UNDECIDED,
)
from distrain_nb.layout.distributions import LAUNCHERS as DISTRIBUTED
from distrain_nb.layout.rules import check
from distrain_nb.places.ai_platform.successor import on_vertex

PAGE = Path(__file__).parents[2] / "docs" / "advice.md"
SMALL, LARGE = 25e6, 1.34e9
GPUS = Case(SMALL, 4, 2, 10, "tensorflow", "1.13")


@pytest.mark.parametrize(
    ("case", "choice", "options"),
    [
        (GPUS, HOROVOD, "--launcher mpi -n 4"),
        (replace(GPUS, model_bytes=LARGE), ONE_INSTANCE, "--launcher mpi -n 8"),
        (replace(GPUS, model_bytes=LARGE, gpus_per_instance=1), PARAMETER_SERVERS,
         "--on sagemaker --launcher parameter-server"),
        (replace(GPUS, model_bytes=LARGE, instances=8), HOROVOD, "--launcher mpi -n 4"),
        (replace(GPUS, gpus_per_instance=0), PARAMETER_SERVERS,
         "--on sagemaker --launcher parameter-server"),
        (replace(GPUS, model_bytes=LARGE, gpus_per_instance=0), PARAMETER_SERVERS,
         "--on sagemaker --launcher parameter-server"),
        (replace(GPUS, instances=1), ONE_INSTANCE, "--launcher mpi -n 4"),
        (replace(GPUS, instances=1, gpus_per_instance=1), NO_DISTRIBUTION, ""),
        (replace(GPUS, framework="pytorch", framework_version=None), DDP,
         "--launcher torchrun -n 4"),
        (replace(GPUS, framework="pytorch", framework_version=None, model_bytes=LARGE),
         DDP_ONE_INSTANCE, "--launcher torchrun -n 8"),
        (replace(GPUS, framework_version="1.11"), PARAMETER_SERVERS,
         "--on sagemaker --launcher parameter-server"),
        (replace(GPUS, framework_version="1.10", gpus_per_instance=0), NO_DISTRIBUTION, ""),
        (replace(GPUS, network_gbps=None), UNDECIDED, ""),
        (Case(), UNDECIDED, ""),
    ],
)  # fmt: skip
def test_the_choice_is_the_article_s(case: Case, choice: str, options: str) -> None:
    advice = advise(case)
    assert (advice.choice, advice.options) == (choice, options)


@pytest.mark.parametrize("framework", ["pytorch", "huggingface"])
@pytest.mark.parametrize("gpus", [0, 1, 4])
@pytest.mark.parametrize("instances", [1, 2, 8, 64])
@pytest.mark.parametrize("model_bytes", [SMALL, LARGE])
def test_who_uses_pytorch_hears_nothing_of_parameter_servers(
    framework: str, gpus: int, instances: int, model_bytes: float
) -> None:
    advice = advise(Case(model_bytes, gpus, instances, 10, framework))
    assert "parameter server" not in str(advice) + advice._repr_html_()
    assert advice.choice in (DDP, DDP_ONE_INSTANCE, NO_DISTRIBUTION)


def test_the_options_are_those_of_a_layout() -> None:
    for case in (GPUS, replace(GPUS, gpus_per_instance=0), replace(GPUS, framework="pytorch")):
        assert advise(case).options in str(Layout.from_line(advise(case).options))


@pytest.mark.parametrize(
    ("pools", "options"),
    [
        ({"on": "sagemaker", "workers": "2*ml.p3.8xlarge"},
         "--on sagemaker --workers ml.p3.16xlarge --launcher mpi -n 8"),
        ({"on": "vertex", "primary": "n1-standard-16+2*T4", "workers": "n1-standard-16+2*T4"},
         "--on vertex --primary n1-standard-16+4*T4 --launcher mpi -n 4"),
        ({"on": "vertex", "primary": "n1-standard-16+2*T4", "workers": "3*n1-standard-16+2*T4"},
         ""),  # none has eight of them
    ],
)  # fmt: skip
def test_one_machine_for_all_is_named_where_there_is_one(
    pools: dict[str, str], options: str
) -> None:
    case = replace(case_of(Layout.of(**pools), LARGE), network_gbps=1, framework="tensorflow")
    assert (advise(case).choice, advise(case).options) == (ONE_INSTANCE, options)


def test_figures_alone_name_no_machine_and_say_so() -> None:
    assert any("run on this machine: add --on" in reason for reason in advise(GPUS).reasons)


def test_the_exchange_is_that_of_a_ring() -> None:
    case = replace(GPUS, model_bytes=LARGE, instances=4, network_gbps=25)
    assert case.exchange_s == pytest.approx(2 * 3 / 4 * 1.34e9 * 8 / 25e9)
    assert case.takes_long
    assert replace(case, step_s=2).takes_long is False
    assert "643 ms" in advise(case).reasons[0]


@pytest.mark.parametrize(
    ("case", "marked"),
    [
        (GPUS, {"[Horovod]"}),
        (replace(GPUS, model_bytes=LARGE),
         {"[parameter servers, or Horovod on one multi-GPU instance]"}),
        (replace(GPUS, gpus_per_instance=0), {"[parameter servers]"}),
        (replace(GPUS, network_gbps=None), set()),
        (Case(), set()),
    ],
)  # fmt: skip
def test_the_table_marks_the_cell_of_the_case(case: Case, marked: set[str]) -> None:
    cells = [cell for row in advise(case).table.rows for cell in row]
    assert {cell for cell in cells if cell.startswith("[")} == marked


def test_reasons_say_what_the_article_says() -> None:
    assert any("scale up before out" in reason for reason in advise(GPUS).reasons)
    towers = advise(replace(GPUS, framework_version="1.11")).reasons
    assert any("Horovod needs tensorflow 1.12 or newer, not 1.11" in each for each in towers)
    assert any("a tower for each of its 4 GPUs" in each for each in towers)
    unknown = advise(replace(GPUS, framework_version=None)).reasons
    assert "it needs tensorflow 1.12 or newer" in unknown
    assert any(
        "32 GPUs" in r for r in advise(replace(GPUS, model_bytes=LARGE, instances=8)).reasons
    )


def test_what_is_not_known_is_asked() -> None:
    questions = advise(replace(GPUS, network_gbps=None, framework=None)).questions
    assert [question.split(":")[0] for question in questions] == ["--network", "--framework"]
    assert "More information" not in str(advise(GPUS))


def test_it_shows_as_text_and_in_a_notebook() -> None:
    shown = str(advise(GPUS))
    assert shown.startswith("Use Horovod\nwrite: %%distrain --launcher mpi -n 4\n")
    assert "<code>%%distrain --launcher mpi -n 4</code>" in advise(GPUS)._repr_html_()


def test_every_choice_comes_with_a_ring_a_tree_and_reducers() -> None:
    """Of the user's own gradient, network and step, as text and in a notebook."""
    pools = {"primary": "n1-standard-16+1*T4", "workers": "7*n1-standard-16+1*T4"}
    layout = Layout.of("vertex", framework="tensorflow-2.12", **pools)
    servers = advise(case_of(layout, LARGE, 0.1))
    assert servers.choice == PARAMETER_SERVERS
    assert str(servers).endswith("""
A gradient of 1.34 GB between 8 machines of 32 Gbit/s each:
all-reduce  sent per worker  latency                   about
──────────  ───────────────  ────────────────────────  ────────
ring        2.35 GB          14 hops, grows with n     587.0 ms
tree        2.68 GB          6 hops, grows with log n  670.3 ms
reducers    1.34 GB          2 hops, does not grow     335.1 ms""")
    assert servers.exchange
    assert servers.exchange._repr_html_() in servers._repr_html_()
    assert "<p>A gradient of 1.34 GB between 8 machines" in servers._repr_html_()
    (said,) = [reason for reason in servers.reasons if "8 reducers shorten a step" in reason]
    assert said.startswith("where gradients are added up instead, ")
    horovod = advise(replace(case_of(layout, LARGE, 0.1), network_gbps=10, step_s=60))
    assert (horovod.choice, horovod.exchange and horovod.exchange.gbps) == (HOROVOD, 10)
    assert any("reducers don't pay: the backward pass" in reason for reason in horovod.reasons)
    assert advise(replace(GPUS, instances=1)).exchange is None


def test_the_page_shows_what_is_printed() -> None:
    layout = Layout.of("sagemaker", workers="2*ml.p3.8xlarge", framework="tensorflow-1.13")
    assert str(advise(case_of(layout, SMALL))) in PAGE.read_text(encoding="utf-8")


def test_a_layout_tells_machines_and_network() -> None:
    layout = Layout.of("sagemaker", workers="2*ml.p3.8xlarge", framework="tensorflow-1.13")
    case = case_of(layout, SMALL)
    assert case == Case(SMALL, 4, 2, 10, "tensorflow", "1.13", layout=layout)
    assert case_of(Layout.of("vertex")).missing == (
        "model_bytes",
        "gpus_per_instance",
        "instances",
        "network_gbps",
        "framework",
    )


@pytest.mark.parametrize(
    ("text", "count"), [("100MB", 1e8), ("1.3 GB", 1.3e9), ("512MiB", 2**29), ("7", 7)]
)
def test_sizes(text: str, count: float) -> None:
    assert size_in_bytes(text) == count


@pytest.mark.parametrize("text", ["", "many", "10 parsecs", "-5MB"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="expected a size such as 100MB"):
        size_in_bytes(text)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("gpus_per_instance", -1, "invalid --gpus-per-instance -1: expected 0 or more"),
        ("instances", 0, "invalid --instances 0: expected 1 or more"),
        ("network_gbps", 0.0, "invalid --network 0: expected more than 0"),
        ("model_bytes", float("nan"), "invalid --model-size nan"),
        ("framework", "caffe", "expected one of tensorflow, pytorch"),
    ],
)
def test_what_can_t_be_is_refused(field: str, value: object, told: str) -> None:
    with pytest.raises(OptionError, match=told):
        replace(GPUS, **{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("choice", [SMALL, 1e12])
@pytest.mark.parametrize(
    ("place", "pools"),
    [
        ("vertex", {"primary": "n1-standard-16", "workers": "n1-standard-16"}),
        ("vertex", {"primary": "n1-standard-16+1*T4", "workers": "n1-standard-16+1*T4"}),
        ("sagemaker", {"workers": "2*ml.m5.4xlarge"}),
        ("sagemaker", {"workers": "2*ml.p3.2xlarge"}),
        ("local", {"workers": 1}),
    ],
)
def test_what_is_advised_is_taken(place: str, pools: dict[str, object], choice: float) -> None:
    """The same rules and the same plan as for any layout have no error about it."""
    layout = Layout.of(place, framework="tensorflow-2.12", **pools)
    case = replace(case_of(layout, choice), gpus_per_instance=1 if "T4" in str(layout) else 0)
    case = replace(case, network_gbps=case.network_gbps or 10)
    options = advise(case).options
    assert options
    advised = Layout.from_line(options)
    assert (advised.on, advised.workers) == (layout.on, layout.workers)
    assert [str(finding) for finding in errors(check(advised))] == []
    backend = find(place)
    job = Job(program("import tensorflow"), advised, Path(), backend.options())
    told = [f.code for f in backend.plan(job).findings if "launcher" in f.code]
    assert not [code for code in told if code not in ("launcher.auto", "launcher.no-mpirun")]


FRAMEWORKS = (
    None, "tensorflow", "tensorflow-1.10", "tensorflow-1.11", "tensorflow-2.12", "pytorch",
    "pytorch-1.12", "pytorch-2.4", "huggingface", "huggingface-4.36", "mxnet", "mxnet-1.9",
)  # fmt: skip
PLACES = [
    *(("sagemaker", {"workers": f"2*{machine}"}) for machine in (
        "ml.m5.4xlarge", "ml.p3.2xlarge", "ml.p3.8xlarge", "ml.p4d.24xlarge", "ml.g5.xlarge",
        "ml.trn1.32xlarge", "ml.p9.48xlarge",
    )),
    ("sagemaker", {"workers": "2*ml.p3.8xlarge", "distribution": "smdistributed.dataparallel"}),
    ("sagemaker", {"workers": "2*ml.p3.8xlarge", "mpi_options": "-verbose"}),
    *((place, {"primary": machine, "workers": f"3*{machine}"})
      for place in ("vertex", "ai-platform") for machine in (
        "n1-standard-16", "n1-standard-16+1*T4", "n1-standard-16+4*T4", "complex_model_m_gpu",
    )),
    ("vertex", {"primary": "n1-standard-16", "workers": 3, "reducers": "4*n1-highcpu-16"}),
    ("vertex", {"primary": "a2-highgpu-8g+8*A100", "workers": "7*a2-highgpu-8g+8*A100",
                "reducers": "auto", "scheduling": "FLEX_START"}),
    ("ai-platform", {"primary": "standard", "workers": "3*standard", "servers": "standard"}),
    ("local", {"workers": 3}),
    ("local", {"workers": 3, "servers": 2, "evaluators": 1}),
    ("local", {"workers": 3, "reducers": 2}),
]  # fmt: skip


def advisable(place: str, options: dict[str, object]) -> Iterator[Case]:
    """Cases of a layout: any framework, gradients that are shared fast and ones that take long."""
    layout = Layout.of(place, **options)
    for framework in FRAMEWORKS:
        case = case_of(replace(layout, framework=framework))
        figures = {"gpus_per_instance": case.gpus_per_instance, "network_gbps": case.network_gbps}
        known = {name: value for name, value in figures.items() if value is not None}
        for gpus, size in itertools.product((0, 1), (SMALL, LARGE, 1e12)):
            assumed = {"gpus_per_instance": gpus, "network_gbps": 10, **known}
            yield replace(case, model_bytes=size, **assumed)


@pytest.mark.parametrize(("place", "options"), PLACES)
def test_the_rules_have_nothing_against_what_is_advised(
    place: str, options: dict[str, object]
) -> None:
    """Nothing new, that is: what was wrong with the layout itself is among the reasons."""
    for case in advisable(place, options):
        advice = advise(case)
        assert case.layout
        if not advice.options:
            assert advice.choice not in DISTRIBUTED or "no machine is known" in str(advice.reasons)
            continue
        advised, given = Layout.from_line(advice.options), case.layout
        if place == "ai-platform":
            given = on_vertex(given)
        known = {(finding.code, finding.where) for finding in errors(check(given))}
        for finding in errors(check(advised)):
            assert (finding.code, finding.where) in known, (advice, finding)
            assert finding.described in advice.reasons
        assert advised.on == given.on != "ai-platform"
        on_one = advice.choice in (ONE_INSTANCE, DDP_ONE_INSTANCE)
        assert on_one or (advised.primary, advised.workers) == (given.primary, given.workers)


@pytest.mark.parametrize("options", [options for place, options in PLACES if place == "local"])
def test_this_machine_runs_what_is_advised(options: dict[str, object]) -> None:
    backend = find("local")
    for case in advisable("local", options):
        advised = Layout.from_line(advise(case).options)
        job = Job(program("import torch"), advised, Path(), backend.options())
        wrong = {finding.code for finding in errors(backend.plan(job).findings)}
        assert wrong <= {"launcher.no-mpirun"}, advised


@pytest.mark.parametrize(
    ("machines", "framework", "choice", "options", "reason"),
    [
        ("2*ml.m5.4xlarge", "pytorch", DDP_BY_MPI, "--launcher mpi -n 1",
         "not torchrun with DDP: torch_distributed does not run on ml.m5.4xlarge; "),
        ("2*ml.p4d.24xlarge", "pytorch-2.4", DDP, "--launcher torchrun -n 8",
         "torch_distributed does not support pytorch-2.4; "),
        ("2*ml.trn1.32xlarge", "tensorflow-2.12", NO_DISTRIBUTION, "",
         "not Horovod: Trainium instances take torch_distributed only, not mpi"),
    ],
)  # fmt: skip
def test_what_the_rules_refuse_is_repaired_or_another_is_chosen(
    machines: str, framework: str, choice: str, options: str, reason: str
) -> None:
    layout = Layout.of("sagemaker", workers=machines, framework=framework)
    advice = advise(case_of(layout, SMALL))
    assert advice.choice == choice
    assert advice.options.endswith(options)
    assert [said for said in advice.reasons if said.startswith(reason)]
    assert ("pytorch-2.4.1" in advice.options) == (framework == "pytorch-2.4")


def test_what_a_choice_has_no_use_for_is_left_out_and_said() -> None:
    both = Layout.of("vertex", primary="n1-standard-16", workers="7*n1-standard-16",
                     reducers="4*n1-highcpu-16", framework="tensorflow-2.12")  # fmt: skip
    advice = advise(case_of(both, SMALL))
    assert "--reducers" not in advice.options
    assert any(reason.endswith("so remove the reducers") for reason in advice.reasons)
    here = Layout.of("local", workers=3, servers=2, evaluators=1, framework="tensorflow-2.12")
    case = replace(case_of(here, SMALL), gpus_per_instance=1, network_gbps=100)
    assert advise(case).options == (
        "--on local --workers 3 --framework tensorflow-2.12 --launcher mpi -n 1"
    )
    for role in ("servers", "evaluators"):
        assert f"leave the {role} out: Horovod doesn't use them" in advise(case).reasons
