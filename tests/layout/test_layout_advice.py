"""Which distribution suits a case: the article's table, its versions, and what is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb.api import program
from distrain_nb.backends.base import Job
from distrain_nb.backends.plugins import find
from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout import Layout
from distrain_nb.layout.advice import (
    DDP,
    DDP_ONE_INSTANCE,
    HOROVOD,
    NO_DISTRIBUTION,
    ONE_INSTANCE,
    PARAMETER_SERVERS,
    UNDECIDED,
    advise,
)
from distrain_nb.layout.case import Case, case_of, size_in_bytes
from distrain_nb.layout.rules import check

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
    assert "Tell me more" not in str(advise(GPUS))


def test_it_shows_as_text_and_in_a_notebook() -> None:
    shown = str(advise(GPUS))
    assert shown.startswith("Use Horovod\nwrite: %%distrain --launcher mpi -n 4\n")
    assert "<code>%%distrain --launcher mpi -n 4</code>" in advise(GPUS)._repr_html_()


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
