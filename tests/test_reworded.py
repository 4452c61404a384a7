"""What happens to a run hangs on facts, not on sentences: all of these may be reworded."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import distrain_nb

pytestmark = pytest.mark.slow

PACKAGE = Path(distrain_nb.__file__).parent
# Three words and more, and nothing that a pattern, a statement of SQL or code would have.
SENTENCE = re.compile(r"[A-Za-z ,.;:'()`-]*?[a-z]+[,:;]? [a-z]+[,:;]? [a-z]+[A-Za-z ,.;:'()`-]*")

# Rank 1 is killed once, a trial is killed once, a rank hangs, ranks work alone, and one saves ahead
# of its time limit: what becomes of them, and who is told.
SCENARIO = '''
import distrain_nb, os, sys, time, warnings
from distrain_nb.run.pages.listing import Listing

KILLED = """
import os, signal, time
if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    os.kill(os.getpid(), signal.SIGKILL)
"""
TRIAL = """
import os, pathlib, signal
from distrain_nb import log_metrics
mark = pathlib.Path(MARK)
if not mark.exists():
    mark.touch()
    os.kill(os.getpid(), signal.SIGKILL)
log_metrics(loss=x)
""".replace("MARK", repr(sys.argv[1]))
ALONE = "import torch\\nprint(torch.ones(2).sum())"
HANGS = "import os, time\\nprint('begun')\\nwhile os.environ['RANK'] == '1': time.sleep(1)"
SAVES = """
import os, time, distrain_nb
@distrain_nb.on_stop
def save(): pass
while os.environ["TORCHELASTIC_RESTART_COUNT"] == "0": time.sleep(0.1)
"""
submit = distrain_nb.submit
run = submit(KILLED, ranks_per_replica=2, retries=1)
run.wait(60)
print("retried:", run.status.state)
study = distrain_nb.tune(TRIAL, tune="x=1", goal="min:loss", trials=1)
study.wait(60)
print("again:", study.trials["state"].tolist())
run = submit(ALONE, ranks_per_replica=2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    run.wait(60)
print("warned:", run.status.warns, any("REWORDED" in str(w.message) for w in caught))
run = submit(HANGS, ranks_per_replica=2, hang_after="2")
end = time.monotonic() + 60
while not run.status.hang and time.monotonic() < end: time.sleep(0.2)
print("hangs:", bool(run.status.hang), bool(Listing().row(run).alarm))
run.cancel()
run = submit(SAVES, ranks_per_replica=2, retries=1, timeout="6", signal_before="3")
run.wait(60)
print("saved:", run.status.state)
'''


EXPECTED = {
    "retried": "succeeded",
    "again": "['succeeded']",
    "warned": "True True",
    "hangs": "True True",
    "saved": "succeeded",
}


def reworded(text: str) -> str:
    """Return a module whose sentences have other words; texts for machines stay."""
    tree = ast.parse(text)
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documents and SENTENCE.fullmatch(node.value):
            node.value = f"REWORDED {node.value}"
    return ast.unparse(tree)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with a copy of the package whose sentences have other words."""
    folder = tmp_path / "reworded"
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (folder / PACKAGE.name).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(reworded(text), encoding="utf-8")
    return folder


def test_a_run_goes_its_way_whatever_the_words_are(copy: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.py"
    scenario.write_text(SCENARIO)
    home = str(tmp_path / "home")
    environment = {**os.environ, "PYTHONPATH": str(copy), "DISTRAIN_HOME": home}
    done = subprocess.run(
        [sys.executable, str(scenario), str(tmp_path / "mark")],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.partition(":")[0] in EXPECTED]
    assert dict(line.split(": ") for line in lines) == EXPECTED, done.stdout
