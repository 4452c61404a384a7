"""`%%distrain image` in a real kernel: from a cell to a container that runs it."""

from __future__ import annotations

from tests.kernels import Kernel

from .services.docker import Docker


def test_a_cell_becomes_an_image_that_runs(
    nb: Kernel, docker: Docker, base: str, open_registry: str
) -> None:
    nb.run("def greet(name): return f'hello {name}'\nwho = 'container'")
    target = f"{open_registry}/magic/job"
    outcome = nb.run(f"%%distrain image --base {base} --target {target}:1\nprint(greet(who))")
    assert not outcome.error, outcome.traceback
    shown = outcome.displays[-1]["text/plain"]
    assert f"{target}@sha256:" in shown
    assert "python3 -m distrain_nb.worker" in shown
    uri = next(word for word in shown.split() if word.startswith(f"{target}@sha256:"))
    assert "[rank 0] hello container" in docker("run", "--rm", "--network=none", uri)


def test_a_bar_moves_and_is_gone_at_the_end(nb: Kernel, base: str, open_registry: str) -> None:
    cell = f"%%distrain image --base {base} --target {open_registry}/magic/bar:1\nprint(1)"
    displays = nb.run(cell).displays
    assert any("<progress" in display.get("text/html", "") for display in displays)
    assert displays[-2] == {"text/plain": "", "text/html": ""}  # the bar's last update
    assert "magic/bar:1" in displays[-1]["text/plain"]


def test_what_is_wrong_is_said_before_anything_is_built(nb: Kernel, base: str) -> None:
    wrong = f"%%distrain image --base {base} --target 127.0.0.1:9/job --builder tar\n1"
    assert "append" in nb.run(wrong).traceback
    nb.run("import threading\nlocks = [threading.Lock()]")
    cell = f"%%distrain image --base {base} --target 127.0.0.1:9/job\nprint(locks)"
    assert "`locks`" in nb.run(cell).traceback
    assert "FROM" in nb.run(f"%%distrain image --base {base} --target a/b --dockerfile\n1").text
