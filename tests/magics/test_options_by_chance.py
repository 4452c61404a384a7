"""Lines of the magics as chance writes them: options, or a sentence."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

import pytest

from distrain_nb.api.keywords import Options
from distrain_nb.api.preparation import prepare
from distrain_nb.errors import DistrainError
from distrain_nb.magics import _words
from distrain_nb.magics.command_line import HelpAsked, cell_options, image_options
from distrain_nb.magics.verbs import line_options
from distrain_nb.options import read
from tests.fuzzing import mutated, rounds

SEEDS = [
    "-n 2 --on vertex --workers 4*n1-standard-8+2*T4 --region us-central1 --name night",
    "--on sagemaker --workers 2*ml.p4d.24xlarge --launcher mpi --spot --timeout 2h --max-wait 3h",
    "--param lr=0.1 --data train=gs://b/x --env A=1 --result model --dry-run --no-wait",
    "--args '--epochs 3 --name \"a b\"' --reducers auto --image gcr.io/p/i:1 --rehearse",
    "logs 3 --rank 0", "attach 12", "compare 1,2", "config project=x", "advise --gpus 8", "",
]  # fmt: skip
PIECES = [
    *("'", '"', "\\", "=", "--", "-", "*", "+", "9" * 30, "nan", "é", "\ud800", "\0", "\n", " "),
    *("%", "%s", "{", "}", "{0}", "--on", "--layout /etc/passwd", "--layout ../x", "-h0", "@file"),
]


def test_lines_by_chance() -> None:
    for chance in rounds(41, 400):
        line = mutated(chance, SEEDS, PIECES)
        for parse in (cell_options, image_options, line_options):
            with contextlib.suppress(DistrainError, HelpAsked):
                options = parse(_words(line))
                if parse is cell_options and options:
                    assert str(read(options).layout)


@pytest.mark.parametrize("words", ["night", "--on slurm --workers '4*gpu:8'", "--spot"])
def test_a_form_opens_with_a_name_or_the_options_of_a_cell(words: str) -> None:
    options = line_options(["form", *shlex.split(words)])
    assert (options.verb, shlex.split(options.layout)) == ("form", shlex.split(words))


VALUES = [
    *("", " ", "0", "-1", "1.5", "9" * 30, "nan", "-inf", "none", "é", "\ud800", "\0", "\n", "a b"),
    *("=", "=b", "a=", ",,", "a,b", ":", "*", "2*", "*2", "4*gpu:8", "2*n1-standard-8+2*T4", "1|2"),
    *("2*ml.p4d.24xlarge", "../x", "/etc/passwd", "~nobody/x", "$(touch x)", "%s", "{0}", "'", '"'),
    *("\\", "--x", "5m", "99999999999h", "10USD", "x" * 5000, "gs://b/x", "http://[", "file:///x"),
    *("1..10:log", "min:loss", "0x10", "\uff11\uff12", "[1]", "@file", "%%", ";", "last"),
]
UNTRIED = frozenset(["on", "wait", "dry_run", "session", "debug"])


def test_values_of_options_by_chance(home: Path) -> None:
    """Each is read, or refused in words: the dry run shows no error of Python's."""
    names = sorted(Options.__annotations__.keys() - UNTRIED)
    for chance in rounds(43, 600):
        place, name = chance.choice(["local", "vertex", "sagemaker", "ray"]), chance.choice(names)
        with contextlib.suppress(DistrainError):
            prepared = prepare("print(1)", on=place, **{name: chance.choice(VALUES)})
            assert str(prepared.plan) and str(prepared.job.layout)
