"""From a notebook's cell to a container: captured, built, pulled and run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.image import Recipe, build
from tests.program.notebooks import Kernel

from .services.processes import run

if TYPE_CHECKING:
    from .services.docker import Docker

CELL = """\
from helpers import scaled
print(f"result {scaled(numbers, factor)} {double(4)} {numpy.array([1, 2]).sum()}")
raise RuntimeError("on purpose")
"""


def notebook(folder: Path) -> Kernel:
    (folder / "helpers.py").write_text("def scaled(xs, f):\n    return [x * f for x in xs]\n")
    kernel = Kernel(folder)
    kernel.run("import numpy")
    kernel.run("numbers = [1, 2, 3]\nfactor = 2.5")
    kernel.run("def double(x):\n    return 2 * x")
    return kernel


def test_a_cell_runs_in_a_container_with_what_it_needs(
    docker: Docker, base: str, open_registry: str, tmp_path: Path
) -> None:
    program = notebook(tmp_path).capture(CELL)
    assert any(line.startswith("numpy==") for line in program.requirements)
    image = build(program, Recipe(base, f"{open_registry}/captured/job:1"))
    assert [layer.purpose for layer in image.layers] == ["base", "worker", "packages", "program"]
    code = (
        "import site; site.addsitedir('/opt/distrain/packages'); from pathlib import Path; "
        "from distrain_nb.worker.rank import program; program.run(Path('/opt/distrain/program'))"
    )
    said = docker(
        *("run", "--rm", "--network=none", "--entrypoint=python3", image.uri, "-c", code),
        allowed=(1,),
    )
    assert "result [2.5, 5.0, 7.5] 8 3" in said
    assert "RuntimeError: on purpose" in said
    assert "Cell In[4]" in said


def test_the_same_notebook_gives_the_same_image_elsewhere(
    base: str, open_registry: str, tmp_path: Path
) -> None:
    digests = set()
    for place in ("here", "somewhere-else"):
        (tmp_path / place).mkdir()
        program = notebook(tmp_path / place).capture("print(double(3))")
        digests.add(build(program, Recipe(base, f"{open_registry}/same/job:1")).reference.digest)
    assert len(digests) == 1
    run("skopeo", "inspect", "--tls-verify=false", f"docker://{open_registry}/same/job:1")
