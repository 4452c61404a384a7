"""A checkpoint whose save was cut short is named as the cause of a run that can't read it."""

from __future__ import annotations

from pathlib import Path

import pytest

import distrain_nb as d
from distrain_nb.errors import RunFailed

READS = "import torch\nprint(torch.load({path!r}))"


@pytest.mark.brief
@pytest.mark.parametrize("size", [0, 100, 700])
def test_a_torn_checkpoint_is_named(home: Path, tmp_path: Path, size: int) -> None:
    import torch

    path = tmp_path / "model.pt"
    torch.save({"weights": torch.ones(100)}, path)
    path.write_bytes(path.read_bytes()[:size])
    run = d.submit(READS.format(path=str(path)))
    with pytest.raises(RunFailed, match=r"model\.pt is not whole, as a save that was cut short"):
        run.wait()
    assert "rename with os.replace" in str(run.status.error)


@pytest.mark.brief
def test_other_errors_are_as_they_were(home: Path, tmp_path: Path) -> None:
    run = d.submit(f"import torch\ntorch.load({str(tmp_path / 'nothing.pt')!r})")
    with pytest.raises(RunFailed, match="FileNotFoundError"):
        run.wait()
    assert "not whole" not in str(run.status.error)
