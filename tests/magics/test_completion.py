"""Tab in a real kernel: what can stand at the cursor, and what it is for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from distrain_nb.magics.completion import without_breaks
from tests.kernels import Kernel, kernel

pytestmark = pytest.mark.slow

LAYOUT = """
from distrain_nb.layout import Layout
layout = Layout.of("vertex", primary="n1-standard-8", workers="3*n1-standard-8")
layout.save("five")
rate, epochs, helper = 0.1, [1], print
"""


@pytest.fixture(scope="module")
def completer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("completer")
    with kernel(folder, {**os.environ, "DISTRAIN_HOME": str(folder / "home")}) as started:
        (folder / "code").mkdir()
        (folder / "code" / "train.py").touch()
        started.run(f"import os; os.chdir({str(folder)!r})\n{LAYOUT}")
        started.run("%%distrain --name quick\n1")
        assert "no attribute" in started.run("%%distrain --name broken\nprint.nothing").traceback
        yield started


@pytest.mark.parametrize(
    ("text", "word", "about"),
    [
        ("%%distrain --wo", "--workers", "pool of workers"),
        ("%%distrain --launcher to", "torchrun", ""),
        ("%%distrain --on ver", "vertex", "Vertex AI"),
        ("%%distrain --on=sage", "sagemaker", "SageMaker"),
        ("%%distrain --layout f", "five", "--on vertex --primary n1-standard-8"),
        ("%%distrain --on vertex --primary 2*n1-standard-1", "n1-standard-16", "16 vCPU, 60 GB"),
        ("%%distrain --primary n1-standard-8+2*T", "2*T4", "accelerators for n1-standard-8"),
        ("%%distrain --on sagemaker --workers ml.p4d", "ml.p4d.24xlarge", "8 × A100"),
        ("%%distrain --on sagemaker --workers 2*ml.p5.48xlarge|ml.p4d", "ml.p4d.24xlarge", "A100"),
        ("%%distrain --on vertex --region us-cen", "us-central1", ""),
        ("%%distrain --on sagemaker --region eu-c", "eu-central-1", "Europe (Frankfurt)"),
        ("%%distrain --region us-e", "us-east1", "Vertex AI"),
        ("%%distrain --region us-e", "us-east-1", "US East (N. Virginia), SageMaker"),
        ("%%distrain --help im", "images", ""),
        ("%%distrain image --loo", "--look-inside", "read the base"),
        ("%distrain ca", "cancel", "stop a run"),
        ("%distrain --he", "--help", ""),
        ("%distrain run --lau", "--launcher", ""),
        ("%distrain run -n 2 co", "code/", "folder"),
        ("%distrain run -n 2 code/tr", "code/train.py", "script"),
        ("%distrain run --on ver", "vertex", "Vertex AI"),
        ("%distrain logs qu", "quick", "run 1, succeeded"),
        ("%distrain compare quick bro", "broken", "run 2, failed"),
        ("%distrain logs --r", "--rank", "only the lines of this rank"),
        ("%distrain config ca", "carry_limit=", "MiB of values that a cell may take along"),
        ("%distrain form f", "five", "--on vertex"),
        ("%distrain advise --workers 2*ml.p3.2", "ml.p3.2xlarge", "1 × V100"),
    ],
)
def test_what_stands_at_the_cursor_is_completed(
    completer: Kernel, text: str, word: str, about: str
) -> None:
    offered = completer.offered(text)
    assert word in offered
    assert " " not in offered[word], "JupyterLab would break it into lines that overlap"
    assert without_breaks(about) in offered[word]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%%distrain -n 2 --result ", ["history", "model"]),
        ("%%distrain -n 2 --result model,hi", ["history"]),
        ("%%distrain --param ", ["rate=", "data_path="]),
        ("%%distrain --data da", ["data_path="]),
        ("%%distrain --on vertex \\\n    --result mo", ["model"]),
        ("%%distrain --on vertex\n--result mo", ["model"]),
    ],
)
def test_names_are_those_of_the_cell(completer: Kernel, line: str, offered: list[str]) -> None:
    cell = "\nmodel = rate * 2\nhistory = helper(data_path)\n"
    assert list(completer.offered(f"{line}{cell}", len(line))) == offered


def test_common_options_come_first_and_only_those_of_the_place(completer: Kernel) -> None:
    everywhere = list(completer.offered("%%distrain "))
    assert everywhere[:3] == ["-n", "--workers", "--result"]
    assert {"--nfs", "--channel"} <= set(everywhere)
    there = completer.offered("%%distrain --on sagemaker ")
    assert "--channel" in there and "--nfs" not in there


def test_a_machine_replaces_only_itself(completer: Kernel) -> None:
    text = "%%distrain --on vertex --primary 2*n1-standard-9"
    assert completer.completed(text) == ["%%distrain --on vertex --primary 2*n1-standard-96"]
