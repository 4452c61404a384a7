"""The documentation as a site: links and anchors lead somewhere, public names are described."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import distrain_nb

ROOT = Path(__file__).parents[1]
PARTS = ("docs", "scripts", "benchmarks", "notebooks", "README.md", "CHANGELOG.md", "LICENSE",
         "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", "mkdocs.yml")  # fmt: skip
BROKEN = {
    "docs/python.md": ("[x](data.md#nowhere)", "does not contain an anchor '#nowhere'"),
    "docs/data.md": ("[x](../scripts/gone.sh)", "'../scripts/gone.sh'"),
    "README.md": ("[x](docs/gone.md)", "gone.md"),
}

pytestmark = pytest.mark.slow


def built(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_site_is_built_and_has_every_public_name(tmp_path: Path) -> None:
    done = built(ROOT, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "site" / "reference.html").read_text(encoding="utf-8")
    described = re.findall(r'<h2 id="distrain_nb\.[\w.]*?(\w+)" class="doc', text)
    assert described == [name for name in distrain_nb.__all__ if not name.startswith("__")]


def test_a_broken_link_fails_it(tmp_path: Path) -> None:
    for name in PARTS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    for name, (link, _) in BROKEN.items():
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write(f"\n{link}\n")
    done = built(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    for _, why in BROKEN.values():
        assert re.search(why, done.stderr), done.stderr
