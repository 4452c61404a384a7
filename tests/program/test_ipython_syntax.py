from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from distrain_nb.program import Cell
from distrain_nb.program.python.ipython_syntax import plain

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("%matplotlib inline", "pass  # %matplotlib inline"),
        ("%load_ext autoreload", "pass  # %load_ext autoreload"),
        ("%autoreload 2", "pass  # %autoreload 2"),
        ("%config InlineBackend.figure_format = 'svg'", None),
        ("%env A=B c", "import os; os.environ['A'] = 'B c'"),
        ("%env A B", "import os; os.environ['A'] = 'B'"),
        ("%time f(x)", "f(x)"),
        ("%%time", "pass  # %%time"),
    ],
)
def test_translated_or_dropped(line: str, text: str | None) -> None:
    cell = plain(f"x = 1\n{line}\ny = 2")
    assert cell.text == f"x = 1\n{text or 'pass  # ' + line}\ny = 2"
    assert [(n.line, str(n.severity)) for n in cell.notes] == [(2, "info")]
    assert cell.tree is not None


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("!ls", "subprocess.run"),
        ("!torchrun --nproc_per_node=2 fit.py --lr 0.1", "`%distrain run -n 2 fit.py --lr 0.1`"),
        ("!accelerate launch fit.py", "`%distrain run fit.py`"),
        ("!mpirun -np 4 python fit.py", "`%distrain run -n 4 fit.py`"),
        ("!pip install x", "--require"),
        ("%pip install x", "--require"),
        ("files = !ls *.py", "subprocess.run"),
        ("t = %timeit -o f()", "perf_counter"),
        ("%timeit f()", "perf_counter"),
        ("%run train.py", "`%distrain run FILE` makes a job of it"),
        ("%cd ..", "os.chdir"),
        ("?f", "ask for help"),
        ("f?", "ask for help"),
        ("torch.nn??", "ask for help"),
        ("%env A=$HOME", "os.environ"),
        ("%distrain form", "a cell of its own"),
        ("%unheard of", "write it in Python"),
        ("!echo don't \\\n   stop", "subprocess.run"),
        ("/f x", "write it in Python"),
    ],
)
def test_refused_with_its_line(line: str, advice: str) -> None:
    cell = plain(f"x = 1\n{line}\ny = 'a'")
    (note,) = cell.refused
    assert note.line == 2
    assert advice in note.message
    assert cell.text.split("\n")[-1] == "y = 'a'"


@pytest.mark.parametrize(
    "source",
    [
        's = """\n!ls\n%time x\n"""',
        "s = '%d !x' % 3 if a != b else c",
        "x = (1\n% 2)",
        "x = [\n'''\n?\n''', # it's\n7]",
        "a = 1 \\\n% 2",
    ],
)
def test_never_inside_strings_and_brackets(source: str) -> None:
    broken = f"{source}\n!ls"  # so that the cell is not plain Python
    assert [n.line for n in plain(broken).notes] == [broken.count("\n") + 1]
    assert plain(source).text == source


def test_inside_a_block() -> None:
    cell = plain("if x:\n    %matplotlib inline\nelse:\n    %time f()")
    assert cell.text == "if x:\n    pass  # %matplotlib inline\nelse:\n    f()"


@pytest.mark.parametrize("body", ["for f in *; do echo $f; done", "if x\n    a\n  b", "'don"])
def test_other_languages_end_the_cell(body: str) -> None:
    cell = plain(f"%%bash\n{body}")
    assert [n.line for n in cell.refused] == [1]
    assert cell.tree is not None


def test_the_program_runs_what_was_translated(kernel: Kernel, server: Server) -> None:
    source = "%matplotlib inline\n%env KIND=ok\nimport os\n"
    program = kernel.capture(source + "%time print('RESULT', '\"' + os.environ['KIND'] + '\"')")
    assert [f.where for f in program.findings] == [f"Cell In[1], line {n}" for n in (2, 3, 5)]
    assert server.results(program) == "ok"


def test_a_definition_that_uses_it_is_refused_where_it_stands(kernel: Kernel) -> None:
    kernel.run("def f():\n    get_ipython().system('rm -r x')")
    kernel.cells[0] = Cell("Cell In[1]", "%load_ext x\n!ls\ndef f():\n    !rm -r x")
    (finding,) = kernel.capture("f()").findings
    assert (finding.code, finding.where) == ("capture.ipython-syntax", "Cell In[1], line 4")
    assert "`f` is captured from there" in finding.message


def test_cells_that_are_not_python_are_passed_over(kernel: Kernel, server: Server) -> None:
    kernel.run("def f(): return 1")
    for source in ("%%html\n<b>", "def f(:", "%%writefile x.py\ndef f(): return 2"):
        kernel.cells.append(Cell("Cell In[9]", source))
    assert server.results(kernel.capture("print('RESULT', f())")) == 1


def test_names_that_ipython_puts_in_place_of_pythons(kernel: Kernel, server: Server) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    kernel.namespace.update({n: shell.user_ns[n] for n in ("open", "exit", "quit")})
    kernel.run("def read(): return open(__file__).read() and exit")
    program = kernel.capture("read()\nopen, quit\ndisplay(1)\nprint('RESULT', 1)")
    assert not program.findings
    assert server.results(program) == 1
