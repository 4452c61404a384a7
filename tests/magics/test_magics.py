"""The magics in a real kernel: options, verbs, errors, completion."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb import api, script
from distrain_nb.backends.options import declared
from distrain_nb.backends.plugins import all_backends
from distrain_nb.errors import OptionError, RunCancelled
from distrain_nb.magics.command_line import cell_options
from distrain_nb.magics.help import help_page, topics
from distrain_nb.options import read
from tests.kernels import Kernel, kernel

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel for all that is refused before anything starts."""
    folder = tmp_path_factory.mktemp("patient")
    with kernel(folder, {**os.environ, "DISTRAIN_HOME": str(folder / "home")}) as started:
        yield started


def test_the_extension_is_there_without_load_ext(nb: Kernel) -> None:
    nb.restart()
    assert not nb.run("%%distrain\nprint('hello')").error
    assert api.attach().logs() == "[rank 0] hello"


def test_a_result_comes_into_the_namespace(nb: Kernel) -> None:
    nb.run("scale = 3")
    nb.run("%%distrain -n 2 --name mine --result total,table\n"
           "total = 14 * scale\ntable = {'a': [1, 2]}")  # fmt: skip
    assert nb.run("%distrain result mine --into").text.startswith("from run 1 (mine): total, table")
    assert nb.run("print(total, table)").text == "42 {'a': [1, 2]}\n"
    assert (
        nb.run("import distrain_nb; print(distrain_nb.attach('mine').results['total'])").text
        == "42\n"
    )


def test_a_result_that_cannot_be_saved_says_why(home: Path) -> None:
    code = "import threading\ngood, lock = 1, threading.Lock()"
    run = api.submit(code, wait=True, result="good,lock")
    assert run.results["good"] == 1
    assert "--result lock could not be saved" in run.logs()
    with pytest.raises(ValueError, match="lock was not saved"):
        run.results["lock"]
    with pytest.raises(KeyError, match="returned good"):
        run.results["other"]


def test_a_cell_gets_arguments_as_a_script_does(nb: Kernel) -> None:
    cell = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--epochs', type=int)\n"
    nb.run(f"%%distrain -n 2 -- --epochs 3\n{cell}print(p.parse_args().epochs)")
    assert sorted(api.attach().logs().splitlines()) == ["[rank 0] 3", "[rank 1] 3"]
    nb.run("%%distrain --args '--title \"a b\"' -- last\nimport sys; print(sys.argv[1:])")
    assert api.attach().logs() == "[rank 0] ['--title', 'a b', 'last']"
    assert (
        "Arguments:\n  --title 'a b'"
        in nb.run("%%distrain --dry-run -- --title 'a b'\nimport sys; print(sys.argv)").text
    )


SCRIPT = """
import argparse, os
import torch.distributed as dist
from nets import scale

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
options = parser.parse_args()
dist.init_process_group("gloo")
total = scale * options.lr * dist.get_world_size()
print("rank", dist.get_rank(), total, open("conf.yaml").read().strip())
"""


def test_a_script_runs_with_its_arguments(nb: Kernel, notebook_folder: Path) -> None:
    code = notebook_folder / "code"
    code.mkdir()
    (code / "train.py").write_text(SCRIPT)
    (code / "nets.py").write_text("scale = 10")
    (notebook_folder / "conf.yaml").write_text("of the working folder")
    nb.run("scale = 1000  # names of the notebook are no matter of a script's")
    line = "%distrain run -n 2 --result total code/train.py --lr 0.5"
    assert not nb.run(line).error
    run = api.attach()
    assert run.results["total"] == 10
    assert sorted(run.logs().splitlines()) == [
        f"[rank {rank}] rank {rank} 10.0 of the working folder" for rank in (0, 1)
    ]
    assert "--lr 0.5" in nb.run("%distrain run --dry-run -m code.train -- --lr 0.5").text
    for wrong, said in (
        ("run -n 2 code/trian.py", "did you mean train.py"),
        ("run -n 2", "no script: write its file"),
        ("run --nproc-per-node 2 code/train.py --lr 1", "here it is -n N"),
        ("run --lr 3 code/train.py", "no option --lr"),
        ("run --param lr=3 code/train.py", "a script reads arguments"),
    ):
        assert said in nb.run(f"%distrain {wrong}").traceback, wrong
    (code / "train.py").write_text("import nets\nx = (\n")
    shown = nb.run("%distrain run code/train.py")
    assert "code/train.py, line 2" in shown.traceback


def test_a_script_from_python(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "say.py").write_text("import sys\nsaid = sys.argv[1:]")
    code = script("say.py", "--lr", 0.1, "--flag")
    assert api.submit(code, wait=True, result="said").results["said"] == ["--lr", "0.1", "--flag"]
    with pytest.raises(OptionError, match="--exclude is for scripts"):
        api.submit("1", exclude="data/*")
    with pytest.raises(OptionError, match="gs://, s3:// or file://"):
        api.check("open(train)", data="train=hdfs://bucket/train")


@pytest.mark.parametrize("args", ["--lr 0.1", ["--lr", "0.1"], ("--lr", 0.1)])
def test_arguments_from_python(home: Path, args: object) -> None:
    run = api.submit("import sys; print(sys.argv[1:])", wait=True, args=args)
    assert run.logs() == "[rank 0] ['--lr', '0.1']"


def test_spawned_children_have_the_arguments_too(home: Path) -> None:
    code = (
        "import multiprocessing, sys\ndef tell(): print(sys.argv[1:])\n"
        "if __name__ == '__main__':\n"
        "    p = multiprocessing.get_context('spawn').Process(target=tell); p.start(); p.join()"
    )
    assert api.submit(code, wait=True, args="--lr 0.1").logs() == "[rank 0] ['--lr', '0.1']"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("-np 2", "here it is -n N"),
        ("--nproc 2", "here it is -n N"),
        ("--nproc_per_node=2", "here it is -n N"),
        ("--nnodes 2", "here it is --workers N"),
        ("--minimize loss", "no option --minimize; here it is --goal min:METRIC"),
        ("--n-trials 3", "here it is --trials N"),
        ("--minimum 3", "no option --minimum\n"),
        ("--resutl x", "did you mean --result?"),
        ("--ranks 2", "did you mean -n or --ranks-per-replica?"),
        ("train.py", "unexpected 'train.py'"),
        ("--args 'a", "No closing quotation"),
    ],
)
def test_options_of_other_launchers_are_named(words: str, meant: str) -> None:
    with pytest.raises(OptionError, match=re.escape(meant)):
        cell_options(words.split(" "))


def test_param_and_data_give_names_other_values(nb: Kernel, notebook_folder: Path) -> None:
    (notebook_folder / "digits").mkdir()
    nb.run("lr = 0.1")
    nb.run("%%distrain --param lr=0.5 --data digits=digits\nprint(lr, digits)")
    assert api.attach().logs() == f"[rank 0] 0.5 {notebook_folder / 'digits'}"
    assert "there is no" in nb.run("%%distrain --data x=nowhere\nprint(x)").error


def test_dry_run_shows_and_starts_nothing(nb: Kernel) -> None:
    nb.run("def helper(): return 7")
    shown = nb.run("%%distrain -n 2 --dry-run\nimport torch\nprint(helper())").text
    assert "def helper(): return 7" in shown
    assert "launcher torchrun: the program imports torch" in shown
    assert "WORLD_SIZE=2" in shown
    assert api.runs() == []


def test_help_reads_well_and_runs_nothing(nb: Kernel) -> None:
    def shown(line: str) -> dict[str, str]:
        (page,) = nb.run(line).displays
        assert "<table>" in page["text/html"]
        return page

    short = shown("%%distrain --help\nprint(1)")
    for other in ("%%distrain --help", "%%distrain -h\n\n", "%distrain --help"):
        assert shown(other) == short
    assert "usage: %distrain logs" in shown("%distrain logs --help")["text/plain"]
    assert "usage: %%distrain image" in shown("%%distrain image --help")["text/plain"]
    assert api.runs() == []


def test_the_short_help_is_lines_that_can_be_written() -> None:
    text = help_page().text
    lines = [line.strip() for line in text.splitlines() if "%%distrain -" in line]
    examples = [re.split("  +", line)[0].removeprefix("%%distrain ") for line in lines]
    given = [cell_options(shlex.split(each)) for each in examples if "…" not in each]
    assert len({name for options in given for name in options}) >= 9
    assert len(text.splitlines()) < 22
    for options in given:
        if "layout" not in options:
            read(options)


def test_help_has_every_option_by_topic() -> None:
    everything = help_page("all")
    for backend in all_backends():
        for each in declared(backend.options).values():
            assert each.name in help_page(backend.name).text and each.name in everything.text
    images, machines = help_page("images").text, help_page("machines").text
    assert "--base IMAGE" in images and "--nfs" not in images
    assert "--primary" in machines and "--result" not in machines
    assert "usage: %distrain logs" in help_page("logs").text
    with pytest.raises(OptionError, match="no help on 'machine'; did you mean machines"):
        help_page("machine")


@pytest.mark.parametrize("topic", ["", *topics(), "logs"])
def test_a_page_of_help_has_in_tables_what_its_text_has(topic: str) -> None:
    page = help_page(topic)
    words = {*re.findall(r"--[a-z-]+|%+distrain", page.text)} - {"--help"}
    shown = {*re.findall(r"--[a-z-]+|%+distrain", page._repr_html_())} - {"--help"}
    assert words and words == shown


def test_loading_again_says_nothing(patient: Kernel) -> None:
    for _ in range(3):
        outcome = patient.run("%load_ext distrain_nb")
        assert (outcome.text, outcome.error) == ("", "")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%%distrain --wrokers 2\n1", "--wrokers"),
        ("%%distrain -n two\n1", "invalid --ranks-per-replica 'two': expected an integer"),
        ("%%distrain --name 12\n1", "invalid --name '12'"),
        ("%%distrain --require=-r\n1", "invalid --require '-r': expected a package"),
        ("%%distrain --on mars\n1", "There are local, ray, sagemaker, slurm, vertex"),
        ("%%distrain --launcher bash\n1", "torchrun"),
        ("%%distrain --workers 2*\n1", "[REPLICAS*]MACHINE"),
        ("%%distrain --workers\n1", "no value for --workers: expected --workers [REPLICAS*]"),
        ("%%distrain --param lr\n1", "NAME=VALUE"),
        ("%%distrain --rehearse\n1", "on this machine: it is for --on sagemaker and"),
        ('%%distrain --launcher mpi --mpi-options "it\'s"\n1', "No closing quotation"),
        ("%%distrain --name 'open\n1", "No closing quotation"),
        ("%%distrain --layout nowhere\n1", "nowhere"),
        ("%%distrain --result nothing\nx = 1", "nothing"),
        ("%distrain show nobody", "no run 'nobody'. There are none yet"),
        ("%distrain doctr", "no verb 'doctr'; did you mean doctor?"),
        ("%distrain logs --folow", "no option --folow; did you mean --follow?"),
        ("%distrain config idel=3", "did you mean idle? There are carry_limit, data_limit, grace"),
        ("%distrain image", "no verb 'image'"),
        ("%%distrain --on vertx\n1", "did you mean vertex?"),
        ("%%distrain --launcher torchrn\n1", "did you mean torchrun?"),
        ("%%distrain image --base a --target b --builder dokcer\n1", "did you mean docker?"),
        ("%distrain config idle=soon", "'soon'"),
        ("%distrain config mlflow=https://me:word@ml.example/x", "'https://me:***@ml.example/x'"),
        ("%distrain config idle 3", "write idle=VALUE"),
        ("%%distrain -n -1\n1", "-1 ranks per replica: it needs 1 or more."),
        ("%%distrain -n 1000000000\n1", "1,000,000,000 processes don't fit on this machine"),
        ("%%distrain --retries many\n1", "invalid --retries 'many': expected an integer"),
        ("%%distrain --on vertex\n1", "There is no primary replica"),
        ("%%distrain -n 2", "the cell has no code"),
        ("%%distrain -n 2 \\\n  --name one\n\n", "the cell has no code"),
        ("%distrain -n 2", "%%distrain -n 2 on top of a cell runs it"),
        ("%distrain clean --older-than x", "invalid --older-than 'x': expected a number"),
    ],
)
def test_bad_input_is_named_with_what_is_allowed(patient: Kernel, line: str, says: str) -> None:
    outcome = patient.run(line)
    assert says in outcome.traceback
    assert "magics" not in outcome.traceback, "our own frames say nothing to a user"
    assert patient.run("%distrain").displays[0]["text/plain"].startswith("no runs")


def test_runs_can_be_listed_read_stopped_and_deleted(nb: Kernel) -> None:
    nb.run("%%distrain --name first\nprint('one')")
    nb.run(
        "%%distrain --name second --no-wait\nimport time; print('two', flush=True); time.sleep(600)"
    )
    listed = nb.run("%distrain").displays[0]["text/plain"]
    assert listed.index("second") < listed.index("first")
    assert nb.run("%distrain logs first").text == "[rank 0] one\n"
    assert not nb.run("%distrain cancel second").error
    with pytest.raises(RunCancelled):
        api.attach("second").wait(60)
    assert "has ended already: cancelled" in nb.run("%distrain cancel second").text
    nb.run("%distrain delete second")
    assert [run.name for run in api.runs()] == ["first"]


def test_runs_can_be_compared(nb: Kernel) -> None:
    train = "from distrain_nb import log_metrics\nlog_metrics(loss=rate)"
    nb.run("rate = 1.0")
    nb.run(f"%%distrain --name one\n{train}")
    nb.run(f"%%distrain --name two --param rate=2.0 --experiment rates\n{train}")
    nb.run(f"%%distrain --name three --experiment rates\n{train}")
    charts, table = nb.run("%distrain compare one two").displays
    named = re.findall('data-series="([^"]*)"', charts["text/html"])
    assert sorted(named) == ["one #1", "two #2"]
    assert "--param rate" in table["text/plain"] and "<table" in table["text/html"]
    shape = nb.run("side = %distrain compare one two\nprint(side.frame.shape)").text
    assert shape.startswith("(2, ")
    table = nb.run("%distrain compare rates one").displays[-1]["text/plain"]
    assert re.findall(r"\w+ #\d", table)[:3] == ["two #2", "three #3", "one #1"]
    assert "\n+rate = 2.0" in table  # the code of two beside that of one
    assert nb.run("listed = %distrain runs\nprint(list(listed.frame.index))").text == "[3, 2, 1]\n"
    assert "two runs or more" in nb.run("%distrain compare one").traceback
    assert "no run 'rate'" in nb.run("%distrain compare one rate").traceback


def test_settings_are_kept(nb: Kernel, home: Path) -> None:
    assert "carry_limit = 64" in nb.run("%distrain config").text
    nb.run("%distrain config carry_limit=0.01")
    nb.run("big = list(range(100_000))")
    outcome = nb.run("%%distrain\nprint(len(big))")
    assert "`big`" in outcome.traceback and "--data" in outcome.traceback
    assert (home / "config.yaml").exists()


def test_the_catalog_is_looked_up(nb: Kernel) -> None:
    shown = nb.run("%distrain catalog v100 us-central1").displays[0]
    assert "NVIDIA_TESLA_V100" in shown["text/plain"] and "<table>" in shown["text/html"]


def test_options_have_one_spelling_in_magic_and_python() -> None:
    words = ["-n", "2", "--no-wait", "--result", "a,b", "--result", "c", "--dry-run"]
    assert cell_options(words) == {
        "ranks_per_replica": "2",
        "wait": False,
        "result": ["a,b", "c"],
        "dry_run": True,
    }
    with pytest.raises(OptionError, match="did you mean ranks_per_replica"):
        api.check("1", ranks_per_replcia=2)


def test_a_function_can_be_submitted_from_python(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(Path(__file__).with_name("training.py"), tmp_path / "training_of_ours.py")
    monkeypatch.syspath_prepend(tmp_path)
    run = api.submit(importlib.import_module("training_of_ours").train, wait=True)
    assert "trained" in run.logs()
