"""Options of sbatch, held against what sbatch itself says that it has read: `-vv --test-only`,
which asks no controller."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.places.slurm import sbatch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.brief,
    pytest.mark.skipif(not shutil.which("sbatch"), reason="needs Slurm's commands"),
]

CONF = """
ClusterName=none
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=1
MessageTimeout=1
AuthType=auth/none
CredType=cred/none
NodeName=a CPUs=1
PartitionName=p Nodes=a
"""
# Values as sbatch prints them again.
VALUES = {
    "account": "llm", "chdir": "/work", "comment": "a # b", "constraint": "a100&nvlink",
    "cpus-per-gpu": "10", "cpus-per-task": "4", "dependency": "afterok:7", "error": "/e.txt",
    "exclude": "node7", "gpus": "a100:16", "gpus-per-node": "8", "gpus-per-task": "1",
    "job-name": "try 2", "licenses": "matlab", "mail-user": "me", "mem": "64G",
    "network": "ib", "nodelist": "node[1-2]", "nodes": "2-4", "ntasks": "16",
    "ntasks-per-node": "4", "output": "/%x-%j.out", "partition": "gpu long", "qos": "high",
    "reservation": "r1", "time": "1-12:00:00", "tmp": "5G", "wckey": "w",
}  # fmt: skip
SWITCHES = {"contiguous": "set", "hold": "set", "overcommit": "set", "reboot": "set",
            "requeue": "requeue", "exclusive": "exclusive", "spread-job": "set"}  # fmt: skip
SHORTS = {name: short for short, name in sbatch._SHORT.items()}
BY_HAND = [
    "#SBATCH --exclusive --nodes=4\n#SBATCH --requeue --gpus-per-node=4",
    "#SBATCH -HO -N2 -n16 -t 02:00:00 -A proj -p gpu",
    "#SBATCH --nodes=2   # two nodes\n##SBATCH --time=1:00:00\n#SBATCH --account=a#b",
    "#SBATCH --comment='it is' --partition=\"a b\" --qos=a\\b",
    "#SBATCH --nodes\n#SBATCH 3",
    "#SBATCH --no-kill --ntasks-per-n=2 --tasks-per-node=3",
    "#SBATCH --nodes=2\n\n# words\n#SBATCH --qos=q\n  # more\n#SBATCH -A x\necho\n#SBATCH -N9",
    "#SBATCH --partition=\"a'b\" --account='a\"b' --comment=a\\\\b",
    " #SBATCH --nodes=7\n#SBATCH --hold",
    "#SBATCH -J t\n#SBATCH -o /o\n#SBATCH -e /e",
    "#SBATCH --exclusive=user --nodes=1",
    '#SBATCH --qos=a "" --nodes=7\n#SBATCH --account=b',
    "#SBATCH\t--nodes=2\t--qos=q",
]
REFUSED = [
    "--nodes=2 two nodes",
    "--qos=a\\ b",
    "--",
    "-",
    "--nodez=1",
    "--gpus-per=1",
    "--hold=1",
    "-Z",
    "--nodes",
    "-HZ",
    '--partition="a',
]


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("conf") / "slurm.conf"
    path.write_text(CONF)
    return path


def read_by_sbatch(conf: Path, head: str) -> dict[str, str]:
    """The options by name; empty where it refuses them."""
    script = conf.with_name("script.sh")
    script.write_text(f"#!/bin/bash\n{head}\nsrun true\n")
    command = ["sbatch", "-vv", "--test-only", str(script)]
    done = subprocess.run(
        command, env={"SLURM_CONF": str(conf), "PATH": "/usr/bin:/bin"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    lines = done.stderr.partition("defined options\n")[2].partition("end of defined")[0]
    pairs = (
        line.removeprefix("sbatch: ").split(":", 1) for line in lines.splitlines() if ":" in line
    )
    options = {pair[0].strip(): pair[1][1:] for pair in pairs if len(pair) == 2 and pair[1]}
    for name in ("verbose", "test-only"):
        options.pop(name, None)
    return {name: value for name, value in options.items() if "---" not in name}


def read_by_us(head: str) -> dict[str, str]:
    """The same, with the words for switches as sbatch prints them."""
    (options,) = sbatch.in_script(f"#!/bin/bash\n{head}\nsrun true\n")
    return {
        name: value or ({**SWITCHES, "no-kill": "set"}[name])
        for name, value in options.items()
    }  # fmt: skip


def by_chance(chance: random.Random) -> str:
    """Options in any spelling: short, long, abbreviated, with `=` or a space, on few lines."""
    lines = ["#SBATCH"]
    for name in chance.sample([*VALUES, *SWITCHES], chance.randint(1, 8)):
        value = VALUES.get(name, "")
        quoted = value
        if set(value) & set(" #"):
            quoted = chance.choice([f'"{value}"', f"'{value}'"])
        begins = [name[:end] for end in range(3, len(name)) if _is_alone(name[:end])]
        long = "--" + chance.choice([name, *begins[-2:]])
        spellings = [f"{long}={quoted}", f"{long} {quoted}"] if value else [long]
        if name in SHORTS:
            short = f"-{SHORTS[name]}"
            spellings += [f"{short}{quoted}", f"{short} {quoted}"] if value else [short]
        lines[-1] += f" {chance.choice(spellings)}"
        if chance.random() < 0.3:
            lines[-1] += chance.choice(["", "  # why", "\n# a comment", "\n"])
            lines.append("#SBATCH")
    return "\n".join(lines)


def _is_alone(begin: str) -> bool:
    return sum(name.startswith(begin) for name in sbatch.NAMES) == 1


@pytest.mark.parametrize("head", BY_HAND)
def test_what_sbatch_reads_is_read(conf: Path, head: str) -> None:
    assert read_by_us(head) == read_by_sbatch(conf, head)


def test_options_by_chance(conf: Path) -> None:
    chance = random.Random(7)
    for _ in range(300):
        head = by_chance(chance)
        assert read_by_us(head) == read_by_sbatch(conf, head), head


@pytest.mark.parametrize("head", REFUSED)
def test_what_sbatch_refuses_is_refused(conf: Path, head: str) -> None:
    assert read_by_sbatch(conf, f"#SBATCH {head}") == {}
    with pytest.raises(OptionError):
        sbatch.in_script(f"#SBATCH {head}\n")


def test_every_option_of_the_table_is_one(conf: Path) -> None:
    """But for those that came after Slurm 22.05 or went before it."""
    newer = {"consolidate-segments", "container-id", "extra", "oom-kill-step", "resv-ports",
             "segment", "stepmgr", "tres-bind", "tres-per-task"}  # fmt: skip
    script = conf.with_name("script.sh")
    unknown = set()
    for name in sorted(sbatch.NAMES):
        script.write_text(f"#!/bin/bash\n#SBATCH --{name}=1\n")
        done = subprocess.run(
            ["sbatch", "-vv", "--test-only", str(script)], env={"SLURM_CONF": str(conf)},
            capture_output=True, text=True, check=False, executable=shutil.which("sbatch"),
        )  # fmt: skip
        takes_none = "doesn't allow an argument" in done.stderr
        if "unrecognized option" in done.stderr:
            unknown.add(name)
        else:
            assert takes_none == (name in sbatch._SWITCHES), name
    assert unknown <= newer
    for name in sbatch._VALUES - newer:
        script.write_text(f"#!/bin/bash\n#SBATCH --{name}\n")
        done = subprocess.run(
            ["sbatch", "--test-only", str(script)], env={"SLURM_CONF": str(conf)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "requires an argument" in done.stderr, name


def test_what_is_written_is_read_back(conf: Path) -> None:
    odd = {"comment": "a # \"b\" 'c' \\ d $(x) `y`", "partition": "p,q", "job-name": "%j é"}
    head = "\n".join(sbatch.heads(odd))
    assert read_by_us(head) == odd == read_by_sbatch(conf, head)
    for value in ("a\nb", "a\rb", "a\x1bb"):
        with pytest.raises(OptionError, match="one line without control characters"):
            list(sbatch.heads({"comment": value}))
