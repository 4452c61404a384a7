"""How far real runs are: what each kind of program says, and the end that follows from it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from distrain_nb import api
from distrain_nb.run.progress import RunProgress
from distrain_nb.run.summary import summary_of
from distrain_nb.worker.metrics.progress import read
from tests.conftest import eventually

if TYPE_CHECKING:
    from distrain_nb.run import Run

GO_ON = (
    "import os, time\ndef pause():\n    while not os.path.exists('go'):\n        time.sleep(0.05)\n"
)
LOG = """
from distrain_nb import log_metrics
for step in range(40):
    time.sleep(0.2 if step == 29 else 0.02)  # one report in a tenth of a second is written
    if step == 30:
        pause()
    log_metrics(step=step, of=40, loss=1 / (1 + step))
"""
TQDM = """
from tqdm.auto import tqdm
for step in tqdm(range(40), "training"):
    time.sleep(0.02)
    if step == 30:
        time.sleep(0.3)
        print(end="", flush=True)
        pause()
"""
RICH = """
from rich.progress import track
for step in track(range(40), "training"):
    time.sleep(0.02)
    if step == 30:
        time.sleep(0.3)
        pause()
"""
TEXT = """
for epoch in range(4):
    print(f"Epoch {epoch + 1}/4")
    for step in range(10):
        time.sleep(0.02)
        if epoch == 3 and step == 0:
            pause()
        print(f"step {step + 1}/10 loss 0.3")
"""
KUBEFLOW = """
import json, urllib.request
def send(percent, **more):
    token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read()
    headers = {"Authorization": "Bearer " + token}
    metrics = [{"name": name, "value": str(value)} for name, value in more.items()]
    status = {"progressPercentage": percent, "estimatedRemainingSeconds": 600, "metrics": metrics}
    data = json.dumps({"trainerStatus": status}).encode()
    url = os.environ["KUBEFLOW_TRAINER_SERVER_URL"]
    urllib.request.urlopen(urllib.request.Request(url, data, headers)).read()
for step in range(40):
    time.sleep(0.02)
    send(step * 100 // 40, current_step=step, total_steps=40, loss=1 / (1 + step))
    if step == 30:
        pause()
"""
KINDS = {"log_metrics": LOG, "tqdm": TQDM, "rich": RICH, "text": TEXT, "Kubeflow": KUBEFLOW}


def start(text: str, folder: Path, **options: object) -> Run:
    folder.mkdir(exist_ok=True)
    code = f"import os\nos.chdir({str(folder)!r})\n{GO_ON}{text}"
    return api.submit(code, wait=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.brief
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_says_how_far_it_is(kind: str, home: Path, tmp_path: Path) -> None:
    run = start(KINDS[kind], tmp_path / "here")
    assert eventually(lambda: 27 <= getattr(summary_of(run).progress, "done", 0) <= 31, 120)
    shown = summary_of(run).progress
    assert isinstance(shown, RunProgress)
    assert (shown.source, shown.total, shown.unit) == (kind, 40, "steps")
    kept = read(run.folder)
    assert kept is not None and len(kept.times) >= 2
    assert " of 40 steps" in summary_of(run).line(kept.times[-1])
    (tmp_path / "here" / "go").touch()
    run.wait()
    assert summary_of(run).progress is None
    if kind == "Kubeflow":
        assert "loss" in run.metrics().columns


@pytest.mark.brief
def test_the_receiver_takes_nothing_without_the_token(home: Path, tmp_path: Path) -> None:
    run = start(
        "print(os.environ['KUBEFLOW_TRAINER_SERVER_URL'], flush=True)\npause()", tmp_path / "here"
    )
    assert eventually(lambda: "http://127.0.0.1:" in run.logs(), 120)
    url = run.logs().split()[-1]
    data = json.dumps({"trainerStatus": {"progressPercentage": 50}}).encode()
    token = (run.folder / "progress-token").read_text()
    assert (run.folder / "progress-token").stat().st_mode & 0o077 == 0
    for headers, body, code in (
        ({"Authorization": "Bearer guess"}, data, 401),
        ({}, data, 401),
        ({"Authorization": f"Bearer {token}"}, b"{}", 422),
        ({"Authorization": f"Bearer {token}"}, b"x" * 100_000, 413),
        ({"Authorization": f"Bearer {token}"}, data.replace(b"50", b"500"), 422),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(url, body, headers))
        assert refused.value.code == code
    assert summary_of(run).progress is None
    good = urllib.request.Request(url, data, {"Authorization": f"Bearer {token}"})
    assert urllib.request.urlopen(good).status == 200
    assert eventually(lambda: summary_of(run).progress is not None, 60)
    progress = summary_of(run).progress
    assert isinstance(progress, RunProgress) and progress.text == "50 %"
    assert token not in run.logs()
    (tmp_path / "here" / "go").touch()
    run.wait()


@pytest.mark.brief
@pytest.mark.parametrize(
    "variables",
    [{"KUBEFLOW_TRAINER_SERVER_URL": "https://kubeflow"}, {"http_proxy": "http://proxy:3128"}],
)
def test_there_is_no_receiver_where_one_is_or_a_proxy_would_see_it(
    variables: dict[str, str],
    tmp_path: Path,
) -> None:
    from distrain_nb.worker.supervisor.receiver import Receiver

    assert Receiver(tmp_path, variables).open() == {}
    allowed = {"http_proxy": "http://proxy:3128", "NO_PROXY": "localhost,127.0.0.1"}
    receiver = Receiver(tmp_path, allowed)
    assert receiver.open()
    receiver.close()
