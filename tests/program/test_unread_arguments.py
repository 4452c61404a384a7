"""Arguments that nothing reads are told of."""

from __future__ import annotations

from pathlib import Path

import pytest

import distrain_nb
from distrain_nb import api
from distrain_nb.findings import Severity

READ = {
    "sys.argv": "import sys\nprint(sys.argv)",
    "a parser": "import argparse\nargparse.ArgumentParser().parse_known_args()",
    "a package": "import click\n@click.command()\ndef main(): pass\nmain()",
    "a module beside it": "import beside\nbeside.main()",
}


def unread(code: object) -> list[str]:
    findings = api.check(code, args="--lr 0.1 --token=abc")  # type: ignore[arg-type]
    wanted = [f for f in findings if f.code == "capture.unread-arguments"]
    assert all(f.severity is Severity.INFO for f in wanted)
    return [f.message for f in wanted]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("import sys\ndef main(): print(sys.argv)\n")
    (tmp_path / "train.py").write_text("print(1)\n")
    return tmp_path


def test_arguments_that_nothing_reads_are_named_without_their_values() -> None:
    (message,) = unread("print(1)")
    assert message == "the program never reads `--lr --token`, which `sys.argv[1:]` contains"
    assert unread(distrain_nb.script("train.py"))
    assert not [f for f in api.check("print(1)") if f.code == "capture.unread-arguments"]


@pytest.mark.parametrize("how", READ)
def test_arguments_that_are_read_are_not(how: str) -> None:
    assert unread(READ[how]) == []
