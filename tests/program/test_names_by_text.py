"""Names that a cell reads by text: what is written out is captured, the rest is told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.findings import Severity
from tests.program.notebooks import Kernel, Server

pytestmark = pytest.mark.brief

WRITTEN_OUT = {
    "globals": 'globals()["lr"]',
    "vars": 'vars()["lr"]',
    "locals": 'locals()["lr"]',
    "get": 'globals().get("lr", 5)',
    "in": '"lr" in globals() and lr',
    "eval": 'eval("lr * one")',
    "exec": '[exec("found = lr"), found][1]',
    "in a function": "(lambda: eval('lr'))()",
    "of the notebook": "by_name()",
    "of the notebook, as code": "by_code()",
}
MADE = {
    "globals": "globals()[which]",
    "in a function": "by_any(which)",
    "eval": "eval(which)",
    "all": "dict(globals())[which]",
    "exec": "exec('x = ' + which)",
}
OWN = {
    "a function's own": "def f(a): return locals()\nf(1)",
    "names that are given": "eval(which, {'lr': 1})",
    "a method": "class A:\n    def eval(self, x): pass\nA().eval(which)",
    "a function of that name": "def eval(x): return x\neval(which)",
    "what is set": "globals()[which] = 1\nglobals().update(a=1)",
    "an object's": "class A: pass\nvars(A)[which]",
}


@pytest.fixture
def notebook(kernel: Kernel) -> Kernel:
    kernel.run("lr = 0.5\none = 1")
    kernel.run("def by_name(): return globals()['lr']\ndef by_code(): return eval('lr')")
    kernel.run("def by_any(name): return globals()[name]\nwhich = 'lr'")
    return kernel


@pytest.mark.parametrize("how", WRITTEN_OUT)
def test_a_name_that_is_written_out_as_text_is_captured(
    notebook: Kernel, server: Server, how: str
) -> None:
    program = notebook.capture(f"import json\nprint('RESULT', json.dumps({WRITTEN_OUT[how]}))")
    assert [str(finding) for finding in program.findings] == []
    assert server.results(program) == 0.5


@pytest.mark.parametrize("how", MADE)
def test_names_that_are_made_at_run_time_are_told_of(notebook: Kernel, how: str) -> None:
    (finding,) = notebook.capture(f"which\n{MADE[how]}").findings
    assert (finding.code, finding.severity) == ("capture.names-by-text", Severity.WARNING)
    assert "`which`" in finding.message and "lacks" in finding.message
    assert "`lr`" in finding.message.partition("lacks")[2]
    assert not notebook.capture(f"which, lr, one, by_name, by_code, by_any\n{MADE[how]}").findings


@pytest.mark.parametrize("how", OWN)
def test_what_reads_none_of_the_notebook_s_names_is_not_told_of(notebook: Kernel, how: str) -> None:
    assert [str(finding) for finding in notebook.capture(OWN[how]).findings] == []


@pytest.mark.parametrize("name", ["_", "__", "_4", "_i", "Out[4]"])
def test_what_ipython_has_shown_is_named(kernel: Kernel, name: str) -> None:
    (finding,) = kernel.capture(f"print({name})").findings
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith(f"`{name.partition('[')[0]}` belongs to the notebook")


def test_a_file_that_a_cell_has_run_is_named(kernel: Kernel) -> None:
    (kernel.folder / "other.py").write_text("def helper(): return 1\n")
    (kernel.folder / "other.ipynb").write_text('{"source": ["class Net: pass"]}')
    _ran(kernel, "lr = 1\n%run other.py", "def helper(): return 1")
    _ran(kernel, "%run other.ipynb", "class Net:\n    def go(self): return 1")
    helper, net = kernel.capture("helper()\nNet()").findings
    assert "`%run other.py` (Cell In[1], line 2)" in helper.message
    assert helper.fixes[0].apply("%%distrain\nhelper()") == (
        "%%distrain\nfrom other import helper\nhelper()"
    )
    assert "`%run other.ipynb` (Cell In[2], line 1)" in net.message and not net.fixes


def _ran(kernel: Kernel, cell: str, does: str) -> None:
    kernel.run("pass")
    kernel.cells[-1] = type(kernel.cells[-1])(kernel.cells[-1].label, cell)
    exec(compile(does, str(Path("elsewhere.py")), "exec"), kernel.namespace)


def test_subclasses_that_no_name_leads_to_are_there(kernel: Kernel, server: Server) -> None:
    """Plugins are found so, and a run had none."""
    kernel.run("import json\nclass Base:\n    class Inner: pass\nclass A(Base): pass")
    kernel.run("class B(A): pass\nclass Other: pass")
    kernel.run(
        "def every(c): return [c.__name__] + [n for s in c.__subclasses__() for n in every(s)]"
    )
    program = kernel.capture("print('RESULT', json.dumps(every(Base)))")
    assert server.results(program) == ["Base", "A", "B"]
    assert "Other" not in program.main
    assert "class A" not in kernel.capture("print(Base)").main
