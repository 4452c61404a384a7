"""The backend in docs/backends.md: installed as a wheel of its own, it is known everywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # it installs a wheel and runs two jobs

DOCUMENT = Path(__file__).parents[2] / "docs" / "backends.md"
MOST_LINES = 165
SECRET = "correct-horse-7"

USE = """
import contextlib, json, os, sys
import distrain_nb as d
from distrain_nb.backends.plugins import all_backends
from distrain_nb.errors import OptionError, RunCancelled, RunFailed
from distrain_nb.magics.help import help_page
from distrain_nb.magics.completion import match
from IPython.core.completer import CompletionContext
from distrain_nb.config import Config

def completed(line):
    context = CompletionContext(token="", full_text=line, cursor_position=len(line), cursor_line=0,
                                limit=None)
    return [each.text for each in match(context)["completions"]]

def refused(**options):
    try:
        d.check("1", **options)
    except OptionError as wrong:
        return str(wrong)

queue = sys.argv[1]
found = {
    "help": help_page("all").text, "short": help_page().text, "topic": help_page("lab").text,
    "names": completed("%%distrain --on "), "options": completed("%%distrain --on lab --q"),
    "elsewhere": refused(on="vertex", primary="n1-standard-4", queue="q"),
    "other": refused(on="lab", nfs="a:/b:c"),
    "nowhere": refused(on="nowhere"),
    "doctor": repr(d.doctor()),
    "dry": str(d.plan("print(1)", on="lab", queue=queue, ranks_per_replica=2)),
    "missing": [f.code for f in d.check("print(1)", on="lab")],
    "unread": sorted((f.code, f.severity.value, f.where) for f in d.check(
        "1", on="lab", queue=queue, servers=3, region="here", image="python")),
    "large": [[f.code, f.where, [fix.label for fix in f.fixes]] for f in d.check(
        "1", on="lab", queue=queue, workers=9)],
}
cell = '''
import json, os, socket, time
from distrain_nb import log_metrics
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    server = socket.create_server(place)
    met = [server.accept()[0].recv(9).decode() for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
    log_metrics({"loss": 0.5}, step=1)
    total = ",".join(sorted(met))
    print("secret of", len(os.environ["TOKEN"]))
else:
    while True:
        try:
            connection = socket.create_connection(place)
            break
        except OSError:
            time.sleep(0.1)
    connection.sendall(os.environ["RANK"].encode())
print("hello from", os.environ["RANK"])
'''
lab = {"on": "lab", "queue": os.path.relpath(queue)}
run = d.submit(cell, **lab, workers=3, ranks_per_replica=2, name="first", result="total",
               env="TOKEN=" + sys.argv[2], wait=True)
found["log"] = str(run.logs())
found["metrics"] = repr(run.metrics())
found["result"] = dict(run.results)["total"]
code = '''
import os, time
if os.environ["RANK"] == "1":
    raise ValueError("no luck")
time.sleep(600)
'''
broken = d.submit(code, **lab, workers=2, name="broken")
with contextlib.suppress(RunFailed):
    broken.wait()
found["error"] = broken.status.error
long = d.submit("import time\\nprint('begun', flush=True)\\nwhile True: time.sleep(0.1)",
                **lab, name="second")
import time
while "begun" not in str(long.logs()):
    time.sleep(0.2)
waiting = d.submit("1", **lab, name="third")  # which nobody picks up
while not waiting.status.note:
    time.sleep(0.2)
found["waiting"] = [str(waiting.state), waiting.status.phase, waiting.status.note]
for each in (waiting, long):
    each.cancel()
    with contextlib.suppress(RunCancelled):
        each.wait()
found["states"] = [str(each.state) for each in (run, broken, waiting, long)]
found["runs"] = d.runs().frame.to_string()
Config().changed("queue", queue, {"queue": ""}).save()
found["settled"] = [f.code for f in d.check("print(1)", on="lab")]
print("FOUND" + json.dumps(found))
"""


def blocks() -> dict[str, str]:
    """The files of the document, by the name in their first line."""
    found = re.findall(r"```\w+\n# (\S+)\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.S)
    return dict(found)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the document's wheel has been installed into."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name, text in blocks().items():
        (source / name).write_text(text, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(site), str(source)], check=True)
    return site


def test_it_is_short() -> None:
    assert len(blocks()["distrain_lab.py"].splitlines()) < MOST_LINES


def test_an_installed_backend_is_known_everywhere_and_runs_jobs(site: Path, tmp_path: Path) -> None:
    queue = tmp_path / "queue"
    queue.mkdir()
    environment = {
        **os.environ, "PYTHONPATH": str(site), "DISTRAIN_HOME": str(tmp_path / "home"),
    }  # fmt: skip
    machine = subprocess.Popen(
        [sys.executable, "-m", "distrain_lab", str(queue)], env=environment, cwd=tmp_path
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", USE, str(queue), SECRET],
            env=environment, cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
    finally:
        machine.kill()
        machine.wait()
    assert "FOUND" in done.stdout, done.stderr
    found = json.loads(done.stdout.partition("FOUND")[2])
    assert "--queue FOLDER" in found["help"] and "jobs on the lab's machine" in found["help"]
    assert (
        "local|ray|sagemaker|slurm|vertex|lab" in found["help"]
        and "--queue FOLDER" in found["topic"]
    )
    assert "%%distrain --on lab -n 1" in found["short"] and "on the lab's machine" in found["short"]
    assert "lab" in found["names"]
    assert found["options"] == ["--queue"]
    assert found["elsewhere"] == "--queue has no meaning on Vertex AI: it is for --on lab"
    assert found["other"] == "--nfs has no meaning on the lab's machine: it is for --on vertex"
    assert "local, ray, sagemaker, slurm, vertex, lab" in found["nowhere"]
    assert "the lab's machine\n" in found["doctor"] and "not set: queue" in found["doctor"]
    assert found["dry"].startswith("1 x 2 ranks, by way of ")
    assert (found["missing"], found["settled"]) == (["lab.no-queue"], [])
    assert found["unread"] == [
        ["field-ignored", "warning", "image"],
        ["field-ignored", "warning", "region"],
        ["role-not-here", "error", "servers"],
    ]
    assert found["large"] == [["lab-size", "workers.replicas", ["Use 8 workers"]]]
    lines = [line.rpartition("] ")[2] for line in found["log"].splitlines()]
    assert {f"hello from {rank}" for rank in range(6)} <= set(lines)
    assert f"secret of {len(SECRET)}" in lines
    assert "loss" in found["metrics"]
    assert found["result"] == "1,2,3,4,5"
    assert found["error"].startswith("rank 1 failed") and "ValueError: no luck" in found["error"]
    assert found["waiting"] == ["queued", "waiting for the machine", "0 before it"]
    assert found["states"] == ["succeeded", "failed", "cancelled", "cancelled"]
    assert "the lab's machine" in found["runs"]
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
