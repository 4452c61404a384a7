"""Doctor tells of a kernel that overlooks requests, and of no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.backends.checks import Health
from distrain_nb.health.notebooks import jupyter


@pytest.mark.parametrize(
    ("number", "told"), [("6.31.0", 0), ("7.0.1", 1), ("7.3.0", 1), ("7.4.0", 0)]
)
def test_only_the_releases_that_do(
    number: str, told: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / f"ipykernel-{number}.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text(f"Metadata-Version: 2.1\nName: ipykernel\nVersion: {number}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    found = [check for check in jupyter() if check.subject == "ipykernel"]
    assert len(found) == told
    for check in found:
        assert check.state is Health.MISSING
        assert check.result.startswith(number)
        assert "Reconnect to Kernel" in check.remedy
