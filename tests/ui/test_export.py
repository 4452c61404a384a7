"""A run as one HTML file: what stands in it, what doesn't, and how large it gets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.run import Run, Store
from distrain_nb.ui.export import FIRST_LINES, LAST_LINES, export
from distrain_nb.worker.files.status import State
from distrain_nb.worker.metrics import event_format, writer
from tests.server.stored import stored_run

MARKUP = '</section><img src="https://evil.test/x" onerror="alert(1)"><script>alert(2)</script>'
SECRET = "hunter2-and-more-9f3a"
TOKEN = "bahGhFfGaAaeFbcEagHCAgHedBFaDEHbGa"
# What a browser would ask an address for, or run.
ASKS = re.compile(r"<(?:script|link|img|iframe|object|embed|base)\b|\bon\w+=|@import|url\(")


def hostile_run(home: Path, lines: int = 3) -> Run:
    """A failed run whose every text is markup, or has a secret."""
    log = "".join(f"line {n} {MARKUP}\n" for n in range(lines))
    run = stored_run(Store(home), f"{log}token=hf_{TOKEN}\nbad value {SECRET}\n", State.FAILED)
    run.note, run.tags = f"hf_{TOKEN} {MARKUP}", ("good", MARKUP[:60])
    events = writer._EventFile(run.folder / "tensorboard")
    for step in range(40):
        values = {"loss": 1 / (step + 1), MARKUP: step, f"m hf_{TOKEN}": 1.0}
        events.write(event_format.event(float(step), step, values))
    program = run.folder / "program"
    program.mkdir()
    (program / "main.py").write_text(f'password = "{SECRET}"\nlr = "{MARKUP}"\n', encoding="utf-8")
    return run


def test_all_of_a_run_is_in_the_file_as_text(home: Path, tmp_path: Path) -> None:
    run = hostile_run(home)
    file = export(run, tmp_path / "run.html")
    text = file.read_text(encoding="utf-8")
    without_text = re.sub(r">[^<]*<", "><", text)  # tags alone, with what is in their attributes
    assert not ASKS.search(re.sub(r'="[^"]*"', "", without_text))
    assert "<img" not in text
    assert "<script" not in text
    assert "&lt;script&gt;alert(2)" in text
    assert "default-src 'none'" in text
    assert SECRET not in text
    assert TOKEN not in text
    for words in ("line 2", ">loss<", "password = ", "good", "✕", "<svg"):
        assert words in text
    assert "data-jp-theme-light" not in text
    assert text.count("prefers-color-scheme: dark") >= 3


def test_a_long_log_is_cut_in_the_middle(home: Path, tmp_path: Path) -> None:
    run = stored_run(Store(home), "".join(f"line {n} {'x' * 400}\n" for n in range(30_000)))
    file = export(run, tmp_path / "run.html")
    text = file.read_text(encoding="utf-8")
    assert file.stat().st_size < 5_000_000
    assert "line 0 x" in text
    assert "line 29999 x" in text
    assert "line 15000 x" not in text
    shown = text.count('<div class="dn-line')
    assert shown <= FIRST_LINES + LAST_LINES
    assert f"… {30_000 - shown:,} lines left out; %distrain logs {run.id} prints all" in text


def test_its_name_is_the_runs_and_a_folder_is_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = stored_run(Store(home), "one\n")
    assert export(run) == Path(f"stored-{run.id}.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(OptionError, match=r"folder\.html can't be written"):
        export(run, tmp_path / "folder.html")


def test_the_file_of_a_run_with_a_long_name_can_be_written(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems take no more than 255 bytes."""
    monkeypatch.chdir(tmp_path)
    run = stored_run(Store(home), "one\n", name="ü" * 300)
    assert export(run) == Path(f"{'ü' * 80}-{run.id}.html")
