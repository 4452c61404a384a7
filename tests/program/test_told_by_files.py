"""Files by which a statement that knows the rank tells a later one: it is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel

FROM = (
    "from pathlib import Path\nimport json, os, subprocess\nrank = int(os.environ.get('RANK', 0))"
)
WRITES = {
    "open": "with open('told', 'w') as f: json.dump(rank, f)",
    "pathlib": "Path('told').write_text(str(rank))",
    "a function": "def save(r): Path('told').write_text(str(r))\nsave(rank)",
    "another name first": "Path('new').write_text(str(rank))\nos.replace('new', 'told')",
    "a command": "_ = os.system('echo ${RANK:-0} > told')",
    "a process": "_ = subprocess.run('echo ${RANK:-0} > told', shell=True)",
}


@pytest.fixture(autouse=True)
def folder(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kernel.folder)
    kernel.run(FROM)


def told(kernel: Kernel, shown: str) -> list[str]:
    found = kernel.capture(f"print({shown})").findings
    return [f.message for f in found if f.code == "capture.unseen"]


@pytest.mark.parametrize("way", WRITES)
def test_what_is_read_again_is_told(kernel: Kernel, way: str) -> None:
    kernel.run(WRITES[way])
    kernel.run("text = Path('told').read_text()\nlines = text.split()")
    (message,) = told(kernel, "lines")
    assert message.startswith("`lines` was read from told (Cell In[3], line 1), which Cell In[2]")


@pytest.mark.parametrize(
    "cells",
    [
        ("Path('told').write_text('1')", "text = Path('told').read_text()"),
        ("Path('told').write_text(str(rank))", "Path('told').write_text('1')",
         "text = Path('told').read_text()"),
        ("text = '1'", "Path('told').write_text(str(rank))", "Path('told').read_text()"),
        ("Path('told').write_text(str(rank))", "text = str(Path('other').exists())"),
        ("Path('told').write_text('1')\nos.utime('told', (1, 1))",  # it was there long before
         "n = rank + len(Path('told').read_text())", "text = Path('told').read_text()"),
    ],
)  # fmt: skip
def test_other_files_are_not(kernel: Kernel, cells: tuple[str, ...]) -> None:
    for cell in cells:
        kernel.run(cell)
    assert told(kernel, "text") == []
