"""The tools for agents: what they answer, and a run's whole life through the `mcp` package's
client."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.config import Config
from distrain_nb.errors import DistrainError, OptionError, RunNotFound
from distrain_nb.mcp import tools
from distrain_nb.mcp.answers import LONGEST_ANSWER
from distrain_nb.run import Store
from distrain_nb.worker.files.status import State
from distrain_nb.worker.metrics import event_format, writer
from tests.conftest import eventually
from tests.server.stored import stored_run

READING = {
    "list_runs", "show_run", "read_log", "read_metrics", "compare_runs", "show_stacks",
    "list_layouts", "list_sessions",
}  # fmt: skip
CHANGING = {
    "plan_run", "start_run", "cancel_run", "delete_run", "start_session", "run_in_session",
    "stop_session",
}  # fmt: skip
SCRIPT = """\
import sys
import time

from distrain_nb import log_metrics

log_metrics(step=3, loss=0.25)
print("begun with", *sys.argv[1:], flush=True)
time.sleep(600)
"""

# No reader sees these signs, or they turn or break a line.
UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2028\u2029\U000e0000-\U000e007f\r]")


@pytest.fixture
def lines(home: Path) -> None:
    """A run whose rank 0 has printed 1,000 lines; each hundredth has a word."""
    texts = (f"line {n}{' needle' if n % 100 == 0 else ''}\n" for n in range(1_000))
    stored_run(Store(), "".join(texts))


def test_the_end_of_a_log(lines: None) -> None:
    answer = tools.read_log(count=3, first=-3).splitlines()
    assert answer[0] == "3 of 1,000 lines; before: first=994; after: first=1000"
    assert answer[1:] == [f"{n} [rank 0] line {n}" for n in (997, 998, 999)]
    assert tools.read_log(first=1_000) == "nothing here of 1,000 lines"
    assert tools.read_log(rank=1) == "nothing here of 0 lines"
    assert "3 [rank 0] line 3" in tools.read_log(first=3, count=1)


def test_without_first_the_last_lines_are_read(lines: None) -> None:
    for count in (1, 5, 50):
        answer = tools.read_log(count=count).splitlines()
        assert [int(line.split()[0]) for line in answer[1:]] == [*range(1_000 - count, 1_000)]
    matches = tools.read_log(text="needle", count=1).splitlines()
    assert matches[1:] == ["900 [rank 0] line 900 needle"]


def test_lines_that_match(lines: None) -> None:
    last = tools.read_log(text="NEEDLE", count=2).splitlines()
    assert last[0] == "2 of 10 matches; before: first=798; after: first=901"
    assert [line.split()[0] for line in last[1:]] == ["800", "900"]
    from_there = tools.read_log(text="needle", first=850, count=5).splitlines()
    assert [line.split()[0] for line in from_there[1:]] == ["900"]
    expression = tools.read_log(text=r"line 7\d\d needle", regex=True).splitlines()
    assert expression[1:] == ["700 [rank 0] line 700 needle"]
    assert tools.read_log(text="absent") == "nothing here of 0 matches"
    with pytest.raises(OptionError, match="regular expression"):
        tools.read_log(text="(", regex=True)


def test_an_answer_has_an_end(home: Path) -> None:
    run = stored_run(Store(), "\x1b[31m" + "x" * 5_000 + "\x1b[0m\n" + ("y" * 390 + "\n") * 100)
    answer = tools.read_log(first=0, count=500)
    assert len(answer) <= LONGEST_ANSWER
    assert "… (4,600 characters more)" in answer
    assert "\x1b" not in answer
    assert answer.startswith("38 of 101 lines; before: first=0; after: first=38\n")
    assert "x" * 5_000 in tools.read_log(first=0, count=1)
    assert len(tools.show_run(run.id)) <= LONGEST_ANSWER
    stored_run(Store(), "z" * 50_000 + "\n")
    answer = tools.read_log(first=0, count=1)
    assert len(answer) <= LONGEST_ANSWER and "characters left out: %distrain logs" in answer


def test_the_list(home: Path) -> None:
    assert tools.list_runs() == "0 of 0 runs"
    runs = [stored_run(Store(), state=State.FAILED) for _ in range(3)]
    answer = tools.list_runs(count=2).splitlines()
    assert answer[0] == "2 of 3 runs; for older ones first=2"
    assert answer[1].startswith(f"run {runs[-1].id} (stored): failed")
    assert len(tools.list_runs(first=2).splitlines()) == 2
    assert tools.list_runs("another") == "0 of 0 runs"
    assert tools.list_runs("STORED").startswith("3 of 3 runs")
    assert tools.show_run(runs[0].id) == tools.show_run(str(runs[0].id))
    with pytest.raises(RunNotFound, match="no run '7'"):
        tools.show_run("7")


def test_names_forge_no_lines_and_hide_no_signs(home: Path) -> None:
    """What a program named stays in its line, and a reader sees every sign of it."""
    token = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6"
    run = stored_run(Store(), f"\u202ertl \u200bzero\U000e0041\n{token}\n")
    events = writer._EventFile(run.folder / "tensorboard")
    names = ("m\nrun 9 (forged): failed", "a\u2028b", "c\rd", f"m {token}")
    events.write(event_format.event(1.0, 0, dict.fromkeys(names, 1.0)))
    answer = tools.read_metrics()
    assert len(answer.splitlines()) == len(names) and "m\\nrun 9" in answer
    tagged = tools.read_metrics(tag=names[0])
    for text in (answer, tools.list_runs(), tools.show_run(), tools.read_log(), tagged):
        assert not UNSEEN.search(text)
        assert token not in text and not re.search("(?m)^run 9", text)
    assert "\\u202ertl \\u200bzero\\ue0041" in tools.read_log()


def test_no_file_outside_a_strangers_folder_is_shown(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Config(agents_start=True).save()
    secret = tmp_path / "secret.yaml"
    secret.write_text("TOP-SECRET: 1\n", encoding="utf-8")
    layouts = tmp_path / "clone" / "layouts"
    layouts.mkdir(parents=True)
    monkeypatch.chdir(layouts.parent)
    (layouts / "link.yaml").symlink_to(secret)
    (layouts / "device.yaml").symlink_to("/dev/zero")
    (layouts / "folder.yaml").mkdir()
    os.mkfifo(layouts / "fifo.yaml")
    os.mkfifo("fifo.py")
    (layouts / "one.yaml").write_text("on: local\n", encoding="utf-8")
    assert tools.list_layouts() == "one:\non: local"
    for name in ("link", "device", "folder", "fifo"):
        with pytest.raises(OptionError, match=f"no layout '{name}'.* Saved: one"):
            tools.plan_run("train.py", name)
    with pytest.raises(OptionError, match="expected a file, not a folder or a device"):
        tools.plan_run("fifo.py", "one")
    layouts.rename("elsewhere")
    layouts.symlink_to(tmp_path)
    assert tools.list_layouts().startswith("no layouts")


def test_what_starts_is_what_was_planned(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Config(agents_start=True).save()
    monkeypatch.chdir(tmp_path)
    Path("layouts").mkdir()
    Path("layouts/one.yaml").write_text("on: local\n", encoding="utf-8")
    Path("train.py").write_text("import other\nprint(other.V)\n", encoding="utf-8")
    for change in (lambda: Path("other.py").write_text("V = 2\n"), Path("other.py").unlink):
        Path("other.py").write_text("V = 1\n", encoding="utf-8")
        number = int(tools.plan_run("train.py", "one").split()[1])
        change()
        with pytest.raises(OptionError, match=r"no longer what was shown: other\.py changed"):
            tools.start_run(number)
    assert not Store().all()


def test_nothing_changes_that_is_not_allowed(home: Path) -> None:
    run = stored_run(Store())
    for call in (
        lambda: tools.cancel_run("last"),
        lambda: tools.delete_run("last"),
        lambda: tools.plan_run("train.py", "two"),
        lambda: tools.start_run(1),
        lambda: tools.start_session("two"),
        lambda: tools.run_in_session("lab", "pass"),
        lambda: tools.stop_session("lab"),
    ):
        with pytest.raises(OptionError, match=r"are off; .* `%distrain config agents_\w+=on`"):
            call()
    Config(agents_delete=True).save()
    assert tools.delete_run("last") == f"{run.title} is deleted"
    assert not Store().all()


def test_only_what_is_below_the_folder_is_planned(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Config(agents_start=True).save()
    folder = tmp_path / "scripts"
    (folder / "layouts").mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert tools.list_layouts() == "no layouts: `%distrain form` saves one"
    (folder / "layouts" / "two.yaml").write_text("on: local\nworkers: 2\n")
    assert tools.list_layouts() == "two:\non: local\nworkers: 2"
    (tmp_path / "train.py").write_text("")
    for script in ("../train.py", str(tmp_path / "train.py")):
        with pytest.raises(OptionError, match="expected a file below"):
            tools.plan_run(script, "two")
    with pytest.raises(OptionError, match="no layout 'tow'; did you mean two"):
        tools.plan_run("train.py", "tow")
    with pytest.raises(OptionError, match="no plan 7"):
        tools.start_run(7)


def test_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError('mcp')\n")
    command = [sys.executable, "-m", "distrain_nb.mcp"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    way_out = "needs the package mcp, 2 or later: pip install 'distrain-nb[mcp]'"
    assert ended.stderr == f"python -m distrain_nb.mcp {way_out}\n"
    ended = subprocess.run([*command, "gone"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert ended.stderr.endswith("No such file or directory: 'gone'\n")


@pytest.mark.stands_for("agents")
@pytest.mark.slow
def test_a_client_starts_reads_and_cancels_a_run(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    (folder / "layouts").mkdir(parents=True)
    (folder / "layouts" / "two.yaml").write_text("on: local\nworkers: 1\n")
    (folder / "train.py").write_text(SCRIPT)
    asyncio.run(_lives(folder))


@pytest.mark.slow
def test_cells_of_an_agent_find_what_earlier_ones_have_made(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Config(agents_start=True, agents_cancel=True).save()
    monkeypatch.chdir(tmp_path)
    Path("layouts").mkdir()
    Path("layouts/two.yaml").write_text("on: local\nranks_per_replica: 2\n")
    assert tools.list_sessions() == "no sessions: start_session starts one"
    assert tools.start_session("two", "lab").startswith("session lab; 2 ranks on local; ready")
    made = tools.run_in_session("lab", "import os\nrank = int(os.environ['RANK'])")
    assert "succeeded" in made
    assert "[rank 1] 10" in tools.run_in_session("lab", "print(10 * rank)", ranks="1")
    assert "ZeroDivisionError" in tools.run_in_session("lab", "1 / 0")
    assert tools.run_in_session("lab", "import time; time.sleep(60)", wait_seconds=0).startswith(
        "still at work: "
    )
    assert eventually(lambda: "at work: run" in tools.list_sessions())
    assert tools.stop_session("lab") == "session lab has ended"
    assert "lab; 2 ranks on local; ended" in tools.list_sessions()


async def _lives(folder: Path) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "distrain_nb.mcp", str(folder)],
        env=dict(os.environ),
    )
    async with Client(stdio_client(command)) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING
        refused = await client.call_tool("cancel_run", {"run": "last"})
        assert refused.is_error
        assert "agents_start=on" in str(client.instructions)

    Config(agents_start=True, agents_cancel=True, agents_delete=True).save()
    async with Client(stdio_client(command)) as client:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert offered.keys() == READING | CHANGING
        reads = {name for name, tool in offered.items() if tool.annotations.read_only_hint}
        assert reads == READING

        async def call(tool: str, /, **arguments: Any) -> str:
            answer = await client.call_tool(tool, arguments)
            text = answer.content[0].text
            if answer.is_error:
                raise DistrainError(text)
            return str(text)

        plan = await call(
            "plan_run", script="train.py", layout="two", arguments=["--epochs", "3"], name="night"
        )
        assert plan.startswith("plan 1\n")
        assert "train.py" in plan
        assert await call("list_runs") == "0 of 0 runs"
        assert "run 1 (night)" in await call("start_run", plan=1)
        with pytest.raises(DistrainError, match="no plan 1"):
            await call("start_run", plan=1)
        with pytest.raises(DistrainError, match="has no rank 7"):
            while "begun" not in await call("read_log", text="begun with --epochs 3", rank=1):
                await asyncio.sleep(0.1)
            await call("read_log", rank=7)
        assert "loss: 0.25 at step 3" in await call("read_metrics", run="night")
        assert "3 0.25" in await call("read_metrics", run="night", tag="loss")
        assert "run 1 (night): running" in await call("show_run")
        assert "train.py, line 8" in await call("show_stacks")
        assert await call("cancel_run", run="night") == "run 1 (night) is being stopped"
        while "cancelled" not in await call("list_runs"):
            await asyncio.sleep(0.1)
        assert "has ended already: cancelled" in await call("cancel_run", run="1")
        assert await call("delete_run", run="1") == "run 1 (night) is deleted"
