"""Settings that executed cells made for the kernel are made in every rank, in their order."""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from distrain_nb.observed.process import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program.notebooks import Kernel, Server


@pytest.mark.slow  # imports PyTorch or pandas in a process of its own
@pytest.mark.parametrize(
    ("cells", "out", "value"),
    [
        (
            ["import torch\ntorch.set_default_dtype(torch.float64)"],
            "str(torch.ones(1).dtype)",
            "torch.float64",
        ),
        (["import torch, os\nSEED = 3", "torch.manual_seed(SEED)"], "torch.initial_seed()", 3),
        (
            ["import random\nfor n in (1, 2):\n    pass", "random.seed(n)", "random.seed(5)"],
            "random.random()",
            0.6229016948897019,
        ),
        (
            ["import numpy as np\nimport pandas as pd", "np.random.seed(1)"],
            "round(float(pd.Series([0]).map(lambda _: np.random.rand())[0]), 3)",
            0.417,
        ),
        (
            [
                "import torch, random\nimport numpy as np",
                "def set_seed(seed):\n    '''All of them.'''\n    random.seed(seed)\n"
                "    np.random.seed(seed)\n    torch.manual_seed(seed)\n"
                "    if torch.cuda.is_available():\n        torch.cuda.manual_seed_all(seed)\n"
                "    torch.backends.cudnn.deterministic = True",
                "set_seed(42)",
            ],
            "[torch.initial_seed(), random.random(), torch.backends.cudnn.deterministic]",
            [42, 0.6394267984578837, True],
        ),
        (
            ["import logging", "logging.getLogger('mine').setLevel(logging.ERROR)"],
            "logging.getLogger('mine').level",
            40,
        ),
        (["import warnings", "warnings.simplefilter('error')"], "warnings.filters[0][0]", "error"),
        (
            ["import pandas as pd", "pd.set_option('display.width', 77)"],
            "pd.options.display.width",
            77,
        ),
    ],
)
def test_every_rank_makes_the_notebooks_settings(
    kernel: Kernel,
    server: Server,
    cells: list[str],
    out: str,
    value: Any,
) -> None:
    for cell in cells:
        kernel.run(cell)
    program = kernel.capture(f"import json\nprint('RESULT', json.dumps({out}))")
    assert server.results(program) == value
    (finding,) = [f for f in program.findings if f.code == "capture.settings"]
    said = (f"({kernel.cells[-1].label}, line ", "` is ")  # a statement, or a state
    assert any(text in finding.message for text in said)


OF_PYTHON = {
    "by a call for its effect": (
        "import csv\ncsv.field_size_limit(10**8)",
        "__import__('csv').field_size_limit()",
        10**8,
    ),
    "by a method that a module has": (
        "import calendar\ncalendar.setfirstweekday(6)",
        "__import__('calendar').firstweekday()",
        6,
    ),
    "registered": (
        "import xml.etree.ElementTree as ET\nET.register_namespace('own', 'http://x')",
        "__import__('xml.etree.ElementTree').etree.ElementTree._namespace_map['http://x']",
        "own",
    ),
    "by a call of a call": (
        "import sched\nsched.register_own = lambda name: (\n"
        "    lambda value: setattr(sched, name, value))\n"
        "sched.register_own('noted')(5)",
        "__import__('sched').noted",
        5,
    ),
    "in a container of a module": (
        "import gc\ndef note(*_): pass\ngc.callbacks.append(note)",
        "[f.__name__ for f in __import__('gc').callbacks].count('note')",
        1,
    ),
    "on an object that a module gives": (
        "from decimal import DefaultContext\nDefaultContext.prec = 6",
        "__import__('decimal').DefaultContext.prec",
        6,
    ),
    "in a dict that a module gives": (
        "from mimetypes import encodings_map\nencodings_map['.own'] = 'own'",
        "__import__('mimetypes').encodings_map['.own']",
        "own",
    ),
    "computed of what has changed since": (
        "import string\nparts = ['a', 'b']\nstring.own = ''.join(parts)\nparts.append('c')",
        "__import__('string').own",
        "ab",
    ),
    "by a function for a logger": (
        "import logging\nown_log = logging.getLogger('of_a_function')\ndef add(log, deep=1):\n"
        "    if deep: return add(log, 0)\n    log.addHandler(logging.NullHandler())\nadd(own_log)",
        "len(own_log.handlers)",
        1,
    ),
    "in the environment of processes alone": (
        "import os\nos.putenv('OF_PROCESSES', 'x')",
        "os.popen('echo $OF_PROCESSES').read().strip()",
        "x",
    ),
    "in a try": (
        "try:\n    import fractions\n    fractions.own = 1\nexcept ImportError: pass",
        "__import__('fractions').own",
        1,
    ),
    "in a with": (
        "import fractions\nfrom contextlib import suppress\n"
        "with suppress(AttributeError):\n    fractions.other = 2",
        "__import__('fractions').other",
        2,
    ),
    "two at once": (
        "import fractions\nfractions.one = fractions.two = 3",
        "[__import__('fractions').one, __import__('fractions').two]",
        [3, 3],
    ),
    "added to": (
        "import fractions\nfractions.sum = 1\nfractions.sum += 3",
        "__import__('fractions').sum",
        4,
    ),
    "deleted": (
        "import string\nstring.mine = 1\ndel string.mine",
        "hasattr(__import__('string'), 'mine')",
        False,
    ),
    "in a loop": (
        "import logging\nfor name in ('a', 'b'):\n    logging.getLogger(name).setLevel(40)",
        "logging.getLogger('b').level",
        40,
    ),
    "by setattr": (
        "import fractions\nsetattr(fractions.Fraction, 'note', 'new')",
        "fractions.Fraction.note",
        "new",
    ),
    "on a class": ("from fractions import Fraction\nFraction.note = 1", "Fraction.note", 1),
    "of what a call gives": (
        "import decimal\ndecimal.getcontext().prec = 5",
        "decimal.getcontext().prec",
        5,
    ),
    "a dialect of csv": (
        "import csv\ncsv.register_dialect('mine', delimiter=';')",
        "list(__import__('csv').reader(['a;b'], 'mine'))",
        [["a", "b"]],
    ),
    "a handler of codecs": (
        "import codecs\ndef mark(e): return '?', e.end\ncodecs.register_error('mine', mark)",
        "b'a\\xff'.decode('ascii', 'mine')",
        "a?",
    ),
    "by a mock": (
        "import os.path\nfrom unittest import mock\n"
        "mock.patch('os.path.getmtime', lambda _: 42).start()",
        "__import__('os').path.getmtime('nowhere')",
        42,
    ),
    "with a result": (
        "import sys\n_ = sys.setrecursionlimit(5000)",
        "sys.getrecursionlimit()",
        5000,
    ),
    "by a name for the context": (
        "import decimal, sys\nsys.setswitchinterval(0.25)\n"
        "context = decimal.getcontext()\ncontext.prec = 4",
        "str(__import__('decimal').Decimal(1) / 3)",
        "0.3333",
    ),
    "by a function that does more": (
        "import sys\ndef main():\n    sys.setswitchinterval(0.125)\n    return 1\nmain()",
        "__import__('sys').getswitchinterval()",
        0.125,
    ),
    "by a function whose import the cell has too": (
        "import os\ndef setup():\n    os.environ['MY_FLAG'] = 'x'\nsetup()",
        "os.environ['MY_FLAG']",
        "x",
    ),
}


@pytest.mark.parametrize("how", OF_PYTHON)
def test_settings_are_made_however_they_are_written(
    kernel: Kernel, server: Server, how: str
) -> None:
    cell, out, value = OF_PYTHON[how]
    kernel.run(cell)
    program = kernel.capture(f"import json, os\nprint('RESULT', json.dumps({out}))")
    mock.patch.stopall()
    assert server.results(program) == value


# What is set, each time with the names that are deleted then, and how it is looked at.
DELETED = {
    "a call": (
        "from csv import register_dialect\nregister_dialect('own', delimiter=';')",
        ("register_dialect",),
        "__import__('csv').get_dialect('own').delimiter",
        ";",
    ),
    "an attribute of a module": (
        "import fractions as f\nf.deleted = 3",
        ("f",),
        "__import__('fractions').deleted",
        3,
    ),
    "a class that is registered": (
        "import numbers\nfrom json import dumps, loads\nclass N: pass\n"
        "numbers.Number.register(N)\nloads = 5",
        ("numbers", "dumps"),
        "[isinstance(N(), __import__('numbers').Number), loads]",
        [True, 5],
    ),
    "two of one import": (
        "from csv import QUOTE_ALL, register_dialect\n"
        "register_dialect('two', quoting=QUOTE_ALL)\nregister_dialect('three', delimiter='|')",
        ("QUOTE_ALL", "register_dialect"),
        "[__import__('csv').get_dialect(n).quoting for n in ('two', 'three')]",
        [1, 0],
    ),
}


@pytest.mark.parametrize("by", ["del", "reset"])
@pytest.mark.parametrize("what", DELETED)
def test_what_was_set_by_names_that_are_deleted_since_is_set(
    kernel: Kernel, server: Server, what: str, by: str
) -> None:
    """It was asked for these names, or it was lost."""
    cell, names, out, value = DELETED[what]
    kernel.run(cell)
    if by == "del":
        kernel.run(f"del {', '.join(names)}")
    else:  # as `%reset` does it, where no statement names them
        kernel.run(f"for name in {names}: del globals()[name]")
    program = kernel.capture(f"import csv, json\nprint('RESULT', json.dumps({out}))")
    assert server.results(program) == value
    assert "capture.undefined-name" in {f.code for f in kernel.capture(names[0]).findings}


def test_a_call_that_reaches_beyond_the_process_is_told_and_stays_behind(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A fork tries it, which may write no file."""
    package = ModuleType("tracker")
    text = "def set_experiment(path):\n    with open(path, 'a') as file: file.write('x')"
    exec(compile(text, "/lib/site-packages/tracker.py", "exec"), vars(package))
    monkeypatch.setitem(sys.modules, "tracker", package)
    kernel.run(f"import tracker\ntracker.set_experiment({str(tmp_path / 'log')!r})")
    program = kernel.capture("import tracker")
    assert "set_experiment" not in program.main
    assert "capture.left-behind" in {finding.code for finding in program.findings}
    assert (tmp_path / "log").read_text() == "x"


def test_a_call_that_failed_is_not_made_in_ranks(kernel: Kernel) -> None:
    with suppress(TypeError):
        kernel.run("import csv\ncsv.field_size_limit('x')")
    assert "field_size_limit" not in kernel.capture("print(1)").main


def test_a_call_that_opens_a_debugger_is_not_made_in_ranks(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = ModuleType("debugs")
    text = "def set_trace(): pass\ndef set_style(): pass"
    exec(compile(text, "/lib/site-packages/debugs.py", "exec"), vars(package))
    monkeypatch.setitem(sys.modules, "debugs", package)
    kernel.run("import debugs\ndebugs.set_style()\ndebugs.set_trace()")
    main = kernel.capture("import debugs").main
    assert "set_style" in main and "set_trace" not in main


def test_the_settings_at_the_first_cell_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stores no cell runs nothing but first ones."""
    monkeypatch.setattr(sys, "argv", ["startup.py"])
    settings = Settings({})
    sys.argv = ["kernel"]
    settings.find()
    assert dict(settings.changed((), ())) == {}
    sys.argv = ["train.py", "--lr", "1"]
    settings.find()
    assert dict(settings.changed((), ()))["sys:argv"] == ["train.py", "--lr", "1"]


def test_settings_of_what_the_program_does_not_import_stay_behind(kernel: Kernel) -> None:
    kernel.run("import pandas as pd, random\npd.set_option('display.width', 80)\nrandom.seed(0)")
    main = kernel.capture("print(1)").main
    assert "pandas" not in main
    assert "random.seed(0)" in main


def test_what_concerns_the_machine_is_told_and_stays_behind(kernel: Kernel) -> None:
    kernel.run("import os, sys\nos.chdir('.')\nsys.path.append('/nowhere')\nprint('text')")
    program = kernel.capture("print(1)")
    (finding,) = program.findings
    assert finding.code == "capture.left-behind"
    assert "`os.chdir('.')` (Cell In[1], line 2)" in finding.message
    assert "`sys.path.append('/nowhere')` (Cell In[1], line 3)" in finding.message
    assert "chdir" not in program.main
    kernel.run("sys.path.remove('/nowhere')")


def test_what_a_statement_with_a_result_leaves_behind_is_told(kernel: Kernel) -> None:
    kernel.run("import atexit\ndef bye(): pass\n_ = atexit.register(bye)")
    (finding,) = kernel.capture("print(1)").findings
    assert "`_ = atexit.register(bye)` (Cell In[1], line 3)" in finding.message
    kernel.run("atexit.unregister(bye)")


def test_a_function_that_does_more_than_settings_does_not_run_again(kernel: Kernel) -> None:
    kernel.run("import random\nsteps = []\ndef main():\n    random.seed(0)\n    steps.append(1)")
    kernel.run("main()")
    assert "main()" not in kernel.capture("print(1)").main


def test_a_cell_that_ran_again_sets_once_and_others_in_their_order(kernel: Kernel) -> None:
    for cell in ("import random\nrandom.seed(1)", "random.seed(2)", "random.seed(1)"):
        kernel.run(cell)
    kernel.run("random.seed(2)")
    lines = kernel.capture("print(1)").main.split("\n")
    assert [line for line in lines if line.startswith("random.seed")] == [
        "random.seed(1)",
        "random.seed(1)",
        "random.seed(2)",
    ]


@pytest.mark.parametrize(
    ("cells", "out"),
    [
        (["import random\nrandom.seed(5)", "drawn = random.random()"], "random.random()"),
        (
            ["import random\ndef seed_all(n): random.seed(n)\nseed_all(5)", "random.random()"],
            "random.randint(0, 10**9)",
        ),
        (["import random\nrandom.setstate(random.Random(5).getstate())"], "random.random()"),
        (
            ["import numpy as np\nnp.random.seed(5)", "np.random.rand(3)"],
            "float(__import__('numpy').random.rand())",
        ),
    ],
)
def test_a_seeded_generator_goes_on_from_where_it_is(
    kernel: Kernel, server: Server, cells: list[str], out: str
) -> None:
    """Each rank began with the seed, though the notebook had drawn since."""
    for cell in cells:
        kernel.run(cell)
    program = kernel.capture(f"import json, random\nprint('RESULT', json.dumps({out}))")
    assert server.results(program) == eval(out, kernel.namespace)


def test_a_generator_that_each_rank_seeds_otherwise_begins_with_its_seed(
    kernel: Kernel, server: Server
) -> None:
    kernel.run("import os, random\nrandom.seed(7)")
    kernel.run("random.seed(int(os.environ.get('RANK', 0)))")
    program = kernel.capture("import json\nprint('RESULT', json.dumps(random.random()))")
    as_rank = replace(program, variables={"RANK": "1"})
    assert server.results(as_rank) == random.Random(1).random()


@pytest.mark.parametrize("seed", ["random.seed(rank)", "def seed(n): random.seed(n)\nseed(rank)"])
def test_what_was_drawn_since_from_a_generator_seeded_by_the_rank_is_told(
    kernel: Kernel, seed: str
) -> None:
    """Ranks began with the seed, and nothing said that the notebook had gone on."""

    def told() -> list[str]:
        findings = kernel.capture("random.random()").findings
        return [f.message for f in findings if "drawn from" in f.message]

    kernel.run("import os, random\nrank = int(os.environ.get('RANK', 0))")
    kernel.run(seed)
    assert not told()
    kernel.run("random.random()")
    (message,) = told()
    assert "in every rank it begins with its seed" in message
    kernel.run("random.seed(3)\nrandom.random()")
    assert not told()


@pytest.mark.parametrize(
    "body",
    [
        "n += int(os.environ.get('RANK', 0))\n    random.seed(n)",
        "rank: int = int(os.getenv('RANK') or 0)\n    seed = n + rank\n    random.seed(seed)",
    ],
)
def test_a_function_that_computes_the_seed_of_each_rank(
    kernel: Kernel, server: Server, body: str
) -> None:
    """Ranks had no seed at all."""
    kernel.run(f"import os, random\ndef seed_all(n):\n    {body}\nseed_all(10)")
    program = kernel.capture("import json\nprint('RESULT', json.dumps(random.random()))")
    as_rank = replace(program, variables={"RANK": "1"})
    assert server.results(as_rank) == random.Random(11).random()


def test_a_class_that_a_package_has_registered_is_registered(
    kernel: Kernel, server: Server
) -> None:
    """No name leads to it: `df.size2` was an AttributeError in every rank."""
    kernel.run(
        "import pandas as pd\n@pd.api.extensions.register_dataframe_accessor('size2')\n"
        "class Size:\n    def __init__(self, df): self.n = 2 * len(df)\n"
        "df = pd.DataFrame({'a': [1, 2]})"
    )
    assert server.results(kernel.capture("print('RESULT', df.size2.n)")) == 4


def test_operations_that_the_notebook_has_registered_are_registered(
    kernel: Kernel, server: Server
) -> None:
    """The library can't be pickled; its statement is made again where others fill it."""
    kernel.run(
        "import torch\nlib = torch.library.Library('own_ns', 'DEF')\n"
        "lib.define('inc(Tensor x) -> Tensor')\n"
        "lib.impl('inc', lambda x: x + 1, 'CompositeExplicitAutograd')"
    )
    cell = "print('RESULT', torch.ops.own_ns.inc(torch.ones(1)).item())"
    assert server.results(kernel.capture(cell)) == 2.0


RANK = "import os\nrank = int(os.environ.get('RANK', 0))"


@pytest.mark.parametrize(
    "text",
    [
        "os.environ['MY_SHARD'] = str(rank)",
        "os.environ.update(MY_SHARD=str(rank))",
        "from os import environ\nenviron.setdefault('MY_SHARD', str(rank))",
        "if rank: os.environ['MY_SHARD'] = '1'\nelse: os.environ['MY_SHARD'] = '0'",
        "for name in ('MY_SHARD',): os.environ[name] = f'{rank}'",
    ],
)
def test_a_variable_that_is_set_by_the_rank_is_set_in_every_rank(
    kernel: Kernel, server: Server, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Ranks had the kernel's environment, so each was shard 0."""
    monkeypatch.setenv("MY_SHARD", "")
    monkeypatch.delenv("MY_SHARD")
    for cell in (RANK, text, "def f(): return int(os.environ['MY_SHARD'])", "shards = [f()]"):
        kernel.run(cell)
    program = kernel.capture("print('RESULT', [int(os.environ['MY_SHARD']), *shards])")
    assert server.results(replace(program, variables={"RANK": "1"})) == [1, 1]


START = (
    "seen = []\ndef start(r):\n    os.environ['{}'] = {}  # text\n    seen.append(r)\nstart(rank)"
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (START.format("MY_SHARD", "str(r)"), True),
        ("os.environ['MY_SHARD'] = 'a'\nos.environ['MY_SHARD'] += str(rank)", True),
        ("k = rank\nos.environ['MY_SHARD'] = str(k)\nk = 5", True),
        (START.format("MY_SHARD", repr("a")), False),
        ("os.environ['MY_SHARD'] = str(len('a'))", False),
        (START.format("MASTER_PORT", "str(r)"), False),
    ],
)
def test_a_variable_that_is_set_by_the_rank_beside_else_is_told(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, text: str, told: bool
) -> None:
    for name in ("MY_SHARD", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    kernel.run(RANK)
    kernel.run(text)
    warnings = [f for f in kernel.capture("print(1)").findings if f.severity == "warning"]
    assert [f.code for f in warnings] == ["capture.left-behind"] * told
    assert not told or warnings[0].message.startswith("MY_SHARD in the environment: ")


@pytest.mark.parametrize("since", ["lr = 7", "(lambda q: q.set_defaults(lr=7))(p)"])
def test_a_parser_with_other_defaults_than_its_text_gives_is_refused(
    kernel: Kernel, server: Server, since: str
) -> None:
    """Arguments were parsed with the later default in every rank."""
    kernel.run("import argparse\nlr = 1\np = argparse.ArgumentParser()")
    kernel.run("p.add_argument('--lr', default=lr)")
    program = kernel.capture("print('RESULT', p.parse_args([]).lr)")
    assert server.results(program) == 1
    kernel.run(since)
    output = server.output(kernel.capture("print(p.parse_args([]).lr)"))
    assert "NotAsInNotebook" in output and "['lr']` is " in output
