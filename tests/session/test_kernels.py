"""Sessions in a notebook's kernel: the magics, and kernels that end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from distrain_nb.api.sessions import Session
from tests.conftest import eventually
from tests.kernels import Kernel, kernel
from tests.local.test_prompts import at_prompt, talk

pytestmark = pytest.mark.slow


def test_magics_run_cells_in_a_session(nb: Kernel) -> None:
    started = nb.run("%distrain session start -n 2 --name lab --idle 30m")
    assert "session lab: 2 ranks are ready" in started.text
    assert "It ends after 30m without a cell" in started.text
    nb.run("start = 40")
    nb.run("%%distrain --in lab\nimport os\nmine = start + int(os.environ['RANK'])")
    nb.run("%%distrain --in lab --rank 1\nonly = 'here'")
    table = nb.run("%distrain vars --in lab").displays[-1]["text/plain"]
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["start", "os", "mine", "only"]
    assert "Cell In[4], line 3" in table
    assert "differ" in table
    assert "only 1" in table
    assert nb.completed("%%distrain --in lab --send m") == ["%%distrain --in lab --send mine"]
    assert "%%distrain --in lab\nmine" in nb.completed("%%distrain --in lab\nmi")
    assert "ready" in nb.run("%distrain session").displays[-1]["text/plain"]
    assert "rank 1 is new" in nb.run("%distrain session restart lab --rank 1").text
    refused = nb.run("%%distrain --in lab\nprint(mine)")
    assert "rank 1 lacks `mine`" in refused.error
    assert "session lab has ended" in nb.run("%distrain session stop").text


def test_a_session_outlives_its_kernel_and_is_taken_over(nb: Kernel, home: Path) -> None:
    nb.run("%distrain session start -n 1 --name lab")
    nb.run("%%distrain --in lab\nkept = 41")
    folder = home / "sessions" / "lab"
    with kernel(home.parent, dict(os.environ)) as other:
        other.run("%load_ext distrain_nb")
        refused = other.run("%%distrain --in lab\nprint(kept)")
        assert "session lab belongs to another notebook" in refused.error
        nb.kill()
        assert eventually(lambda: _is_orphan(folder))
        other.run("%%distrain --in lab\nprint(kept + 1)")
        assert "[rank 0] 42" in other.run("%distrain logs").text
        other.run("kept = 1")
        refused = other.run("%%distrain --in lab\nprint(kept)")
        assert "`kept` was set in the notebook (Cell In[5], line 1)" in refused.error
        other.run("%distrain session stop lab")


def _is_orphan(folder: Path) -> bool:
    kernel_of = Session(folder).file.kernel
    return kernel_of is not None and not kernel_of.alive


def test_a_rank_of_a_session_asks_at_its_cell(nb: Kernel) -> None:
    nb.run("%distrain session start -n 2 --name lab")
    cell = "n = 41\nbreakpoint()\nm = n + 1"
    outcome = talk(nb, cell, at_prompt(1, "!n = 50", "c"), "--in lab --rank 1")
    assert not outcome.error
    nb.run("%%distrain --in lab --rank 1\nprint('m is', m)")
    assert "m is 51" in nb.run("%distrain logs").text
    outcome = talk(nb, "breakpoint()\nm = 0", at_prompt(1, "q"), "--in lab --rank 1")
    assert "rank 1 failed" in outcome.error
    outcome = talk(nb, "name = input('who? ')", [("[rank 0] who? ", "me")], "--in lab --rank 0")
    assert not outcome.error
    nb.run("%%distrain --in lab --rank 1\nprint('m is', m)")
    assert "m is 51" in nb.run("%distrain logs").text
    nb.run("%distrain session stop")
