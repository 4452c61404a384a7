"""Settings of the process reach the ranks however they were set, and what functions have cached."""

from __future__ import annotations

import atexit
import functools
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.observed.process import Settings
from distrain_nb.worker.rank.caches import CachedResults, cached_results
from distrain_nb.worker.rank.process_state import TABLE, read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    from tests.program.notebooks import Kernel, Server

# What the rank imports; what a function sets that does more, so that no statement says it; what
# the notebook and each rank must show.
OF_PYTHON = {
    "sys.excepthook": (
        "import sys",
        "sys.excepthook = lambda *a: None",
        "sys.excepthook.__name__",
    ),
    "threading.excepthook": (
        "import threading",
        "threading.excepthook = lambda of_this_test: None",
        "str(getattr(getattr(threading.excepthook, '__code__', 0), 'co_varnames', 0))",
    ),
    "umask": (
        "import os, re",
        "os.umask(0o027)",
        "re.search(r'Umask:.*', open('/proc/self/status').read())[0]",
    ),
    "recursion limit": ("import sys", "sys.setrecursionlimit(3210)", "sys.getrecursionlimit()"),
    "digits": (
        "import sys",
        "getattr(sys, 'set_int_max_str_digits', str)(5000)",
        "getattr(sys, 'get_int_max_str_digits', str)()",
    ),
    "locale": (
        "import locale",
        "locale.setlocale(locale.LC_NUMERIC, 'C.UTF-8')",
        "locale.setlocale(locale.LC_NUMERIC)",
    ),
    "socket": ("import socket", "socket.setdefaulttimeout(3)", "socket.getdefaulttimeout()"),
    "warnings": (
        "import warnings",
        "warnings.simplefilter('error', Own)",
        "[w[0] + w[2].__name__ for w in warnings.filters][0]",
    ),
    "showwarning": (
        "import warnings",
        "warnings.showwarning = lambda *a, **k: None",
        "warnings.showwarning.__name__",
    ),
    "levels": (
        "import logging",
        "logging.getLogger('mine.x').setLevel(7)\n    logging.getLogger().setLevel(13)"
        "\n    logging.getLogger('q').propagate = False",
        "[logging.getLogger('mine.x').level, logging.root.level, logging.getLogger('q').propagate]",
    ),
    "logging.disable": ("import logging", "logging.disable(20)", "logging.root.manager.disable"),
    "gc": (
        "import gc",
        "gc.set_threshold(900, 5, 4)\n    gc.disable()",
        "[gc.isenabled(), *gc.get_threshold()[:2]]",
    ),
    "decimal": (
        "import decimal",
        "decimal.getcontext().traps[decimal.Inexact] = True",
        "decimal.getcontext().traps[decimal.Inexact]",
    ),
    "copyreg": (
        "import copyreg",
        "copyreg.pickle(Own, lambda own: (Own, ('again',)))",
        "str(copyreg.dispatch_table.get(Own, str)(1)[1:])",
    ),
    "mimetypes": (
        "import mimetypes",
        "mimetypes.add_type('text/mine', '.mine')",
        "mimetypes.guess_type('a.mine')[0]",
    ),
}
OF_PACKAGES = {
    "numpy": (
        "import numpy as np",
        "np.seterr(divide='raise')\n    np.set_printoptions(precision=3)",
        "[np.geterr()['divide'], str(np.array([1.23456]))]",
    ),
    "pandas": (
        "import pandas as pd",
        "pd.set_option('display.max_rows', 5)\n"
        "    pd.options.display.float_format = lambda x: f'<{x}>'",
        "[pd.get_option('display.max_rows'), str(pd.Series([2.5]))]",
    ),
    "matplotlib": (
        "import matplotlib.pyplot as plt",
        "plt.style.use('ggplot')\n    plt.rcParams['figure.figsize'] = (3, 4)",
        "[*plt.rcParams['figure.figsize'], str(plt.rcParams['axes.prop_cycle'])]",
    ),
    "torch": (
        "import torch",
        "torch.set_default_dtype(torch.float64)\n    torch.set_grad_enabled(False)\n"
        "    torch.set_printoptions(precision=2)\n    torch.use_deterministic_algorithms(True)\n"
        "    torch.backends.cudnn.benchmark = True\n    torch.set_num_threads(3)\n"
        "    torch.set_float32_matmul_precision('high')",
        "[torch.is_grad_enabled(), repr(torch.ones(1)), torch.get_num_threads(),"
        " torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark,"
        " torch.get_float32_matmul_precision(), str(torch.get_default_dtype())]",
    ),
    "torch's modes": (
        "import torch",
        "torch.device('meta').__enter__()\n"
        "    torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x).__enter__()",
        "[str(torch.ones(1).device),"
        " torch._C._autograd._top_saved_tensors_default_hooks(False) is not None]",
    ),
}


def check_equal(kernel: Kernel, server: Server, imports: str, sets: str, shows: str) -> None:
    kernel.run(imports)
    before = eval(shows, kernel.namespace)
    kernel.run(f"def setup():\n    {sets}\nsetup()")
    assert eval(shows, kernel.namespace) != before
    program = kernel.capture(f"{imports}\nimport json\nprint('RESULT', json.dumps({shows}))")
    assert server.results(program) == eval(shows, kernel.namespace)
    (finding,) = program.findings
    assert finding.code == "capture.settings"
    assert "restored(" in program.main


@pytest.mark.parametrize("setting", OF_PYTHON)
def test_a_setting_of_python_that_a_function_makes_is_in_every_rank(
    kernel: Kernel, server: Server, setting: str
) -> None:
    """Each rank had Python's own."""
    kernel.run("class Own(UserWarning): pass")
    check_equal(kernel, server, *OF_PYTHON[setting])


@pytest.mark.brief
@pytest.mark.slow  # imports PyTorch or pandas in a process of its own
@pytest.mark.parametrize("package", OF_PACKAGES)
def test_a_setting_of_a_package_that_a_function_makes_is_in_every_rank(
    kernel: Kernel, server: Server, package: str
) -> None:
    check_equal(kernel, server, *OF_PACKAGES[package])


def test_a_setting_that_each_rank_makes_by_its_rank_is_not_the_notebooks(
    kernel: Kernel, server: Server
) -> None:
    kernel.run("import logging, os, sys, warnings\nrank = int(os.environ.get('RANK', 0))")
    kernel.run(
        "logging.getLogger('mine').setLevel(logging.ERROR if rank else logging.INFO)\n"
        "if rank: warnings.filterwarnings('ignore', 'said by one')\n"
        "def setup(r): sys.setrecursionlimit(2000 + r)\nsetup(rank)"
    )
    program = kernel.capture(
        "says = [w[0] for w in warnings.filters if w[1] and w[1].pattern == 'said by one']\n"
        "import json\nlevel = logging.getLogger('mine').level\n"
        "print('RESULT', json.dumps([level, says, sys.getrecursionlimit()]))"
    )
    as_rank = replace(program, variables={"RANK": "1"})
    assert server.results(as_rank) == [40, ["ignore"], 2001]


def test_a_setting_by_the_rank_that_no_statement_repeats_is_told(kernel: Kernel) -> None:
    kernel.run("import os, sys\nseen = []\nrank = int(os.environ.get('RANK', 0))")
    kernel.run(
        "def setup(r):\n    seen.append(r)\n    sys.setrecursionlimit(2000 + r)\nsetup(rank)"
    )
    (warning,) = [f for f in kernel.capture("print(1)").findings if f.severity == "warning"]
    assert warning.message.startswith("`sys.getrecursionlimit()`: every rank has the notebook's")
    assert "Cell In[2], line 4" in warning.message


LEFT = {
    "sys.getprofile()": "import sys\nsys.setprofile(lambda *a: None)",
    "signal.getitimer()": "import signal\n_ = signal.setitimer(signal.ITIMER_PROF, 1000, 5)",
    "signal.getsignal()": "import signal\n_ = signal.signal(signal.SIGUSR2, lambda *a: None)",
    "atexit.register(print)": "import atexit\natexit.register(print)",
    "warnings.showwarning": (
        "import threading, warnings\nlock = threading.Lock()\n"
        "def made(held=lock):\n    def show(*a, **k): held.acquire()\n    return show\n"
        "warnings.showwarning = made()"
    ),
}


@pytest.mark.parametrize("setting", LEFT)
def test_a_setting_that_stays_in_the_notebook_is_told(kernel: Kernel, setting: str) -> None:
    handler = signal.getsignal(signal.SIGUSR2)
    try:
        kernel.run(LEFT[setting])
        program = kernel.capture("print(1)")
    finally:
        sys.setprofile(None)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGUSR2, handler)
        atexit.unregister(print)
    (finding,) = program.findings
    assert finding.code == "capture.left-behind"
    assert setting in finding.message


def test_what_a_rank_can_not_set_ends_it(kernel: Kernel, server: Server) -> None:
    kernel.run("import mimetypes\nmimetypes.add_type('text/mine', '.mine')")
    kernel.run("import sys\ndef f():\n    sys.setswitchinterval(0.25)\n    return 1\n_ = f()")
    program = kernel.capture("import sys\nsys.exit(sys.getswitchinterval())")
    broken = program.main.replace(
        "restored(", "sys = __import__('sys')\ndel sys.setswitchinterval\nrestored(", 1
    )
    output = server.output(replace(program, main=broken))
    assert "NotAsInNotebook: `sys:getswitchinterval()` can't be set as in the notebook" in output


def test_what_imports_set_is_no_setting_of_the_notebook(kernel: Kernel, tmp_path: Path) -> None:
    """Filters and levels of packages would be told as the notebook's."""
    module = kernel.folder / "loud_module.py"
    module.write_text(
        "import logging, warnings\nwarnings.simplefilter('ignore')\n"
        "logging.getLogger('loud').setLevel(40)"
    )
    kernel.run(f"import sys\nsys.path.insert(0, {str(kernel.folder)!r})\nimport loud_module")
    kernel.run("sys.path.pop(0)")
    assert "restored(" not in kernel.capture("print(1)").main
    kernel.run("import warnings\nwarnings.simplefilter('error')")
    assert 'restored("warnings:filters")' in kernel.capture("print(1)").main


CACHES = {
    "a change": ("@functools.cache\ndef cfg(): return {'lr': 1}\ncfg()['lr'] = 5", "cfg()"),
    "arguments": (
        "@functools.lru_cache(maxsize=4, typed=True)\ndef cfg(a, b=2): return [a, b]\n"
        "cfg(1, b=3).append(5)\ncfg(1).append(7)\ncfg('x')",
        "[cfg(1, b=3), cfg(1), cfg('x')]",
    ),
    "identity": ("@functools.lru_cache\ndef cfg(): return [1]\nu = cfg()", "u is cfg()"),
    "of a class": (
        "class C:\n    @staticmethod\n    @functools.cache\n    def p(): return [1]\n"
        "C.p().append(2)",
        "C.p()",
    ),
}


@pytest.mark.parametrize("kind", CACHES)
def test_a_cached_result_is_the_notebooks(kernel: Kernel, server: Server, kind: str) -> None:
    """It was computed again, without what had changed it."""
    cell, shows = CACHES[kind]
    kernel.run(f"import functools\n{cell}")
    program = kernel.capture(f"import json\nprint('RESULT', json.dumps({shows}))")
    assert server.results(program) == eval(shows, kernel.namespace)


@pytest.mark.parametrize("reads", ["[rank]", "[int(os.environ.get('RANK', 0))]"])
def test_a_cached_result_that_knows_the_world_is_computed_again(
    kernel: Kernel, server: Server, reads: str
) -> None:
    kernel.run("import functools, os\nrank = int(os.environ.get('RANK', 0))")
    kernel.run(f"@functools.cache\ndef f(): return {reads}")
    kernel.run("f()")
    program = kernel.capture("print('RESULT', f())")
    assert server.results(replace(program, variables={"RANK": "1"})) == [1]


def test_a_large_cached_result_is_computed_again_and_told(kernel: Kernel, server: Server) -> None:
    kernel.run("import functools\n@functools.cache\ndef f(): return ['x' * 2**21]\n_ = f()")
    program = kernel.capture("print('RESULT', len(f()))")
    assert server.results(program) == 1
    (finding,) = program.findings
    assert finding.message.startswith("what `f` has cached is too large to travel")


@pytest.mark.parametrize("maxsize", [None, 3])
@pytest.mark.parametrize("typed", [False, True])
def test_a_cache_is_filled_without_running_its_function(maxsize: Any, typed: bool) -> None:
    ran = []

    def cached(free: int) -> Any:
        @functools.lru_cache(maxsize=maxsize, typed=typed)
        def f(a: Any = 1, *rest: Any, k: int = 2, **others: Any) -> Any:
            ran.append(a)
            return [a, rest, k, others, free]

        return f

    first, second = cached(5), cached(5)
    calls = [((), {}), ((1,), {}), ((1, 2), {"z": 3}), (((1, 2),), {"k": "k"}), ((), {"a": 7})]
    for arguments, keywords in calls:
        first(*arguments, **keywords)
    results = cached_results(first)
    assert isinstance(results, CachedResults)
    results.fill(second)
    assert second.cache_info()[2:] == first.cache_info()[2:]
    count = len(ran)
    for arguments, keywords in calls[-3:]:
        assert second(*arguments, **keywords) is first(*arguments, **keywords)
    assert len(ran) == count
    assert second(99, k=0) == [99, (), 0, {}, 5]


CHANGED = {
    "a field": "import dataclasses\ndataclasses.fields(D)[0].repr = False",
    "a default of a field": "D.__dataclass_fields__['lr'].default = 5.0",
    "a default of __init__": "D.__init__.__defaults__ = (5.0,)",
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_data_class_that_was_changed_is_refused(
    kernel: Kernel, server: Server, what: str
) -> None:
    kernel.run("from dataclasses import dataclass\n@dataclass\nclass D:\n    lr: float = 1.0")
    kernel.run(CHANGED[what])
    assert "NotAsInNotebook" in server.output(kernel.capture("print(D())"))


def test_a_data_class_with_a_default_by_the_machine_runs(kernel: Kernel, server: Server) -> None:
    """Its field and the default of its `__init__` were compared, and ended the run."""
    kernel.run(
        "import os\nfrom dataclasses import dataclass\n@dataclass\nclass D:\n"
        "    place: str = os.environ.get('MY_PLACE', 'here')\n    lr: float = 1.0"
    )
    program = kernel.capture("import json\nprint('RESULT', json.dumps([D().place, D.place]))")
    assert server.results(replace(program, variables={"MY_PLACE": "there"})) == ["there"] * 2


def test_match_args_that_were_changed_are_the_notebooks(kernel: Kernel, server: Server) -> None:
    kernel.run("class C:\n    __match_args__ = ('x',)")
    kernel.run("C.__match_args__ = ('y', 'x')")
    program = kernel.capture("import json\nprint('RESULT', json.dumps(C.__match_args__))")
    assert server.results(program) == ["y", "x"]


def calls(function: Callable[[], object]) -> int:
    """Run a function; return how many functions that calls in turn."""
    count = 0

    def see(_frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.brief
@pytest.mark.slow  # imports PyTorch, pandas and Matplotlib
def test_reading_and_setting_takes_few_calls() -> None:
    """As many for each logger, however many there are: half a millisecond, and two."""
    import matplotlib.pyplot
    import pandas
    import torch

    assert matplotlib.pyplot and pandas and torch
    settings = Settings({})
    assert [*settings.changed({"torch", "pandas", "matplotlib"}, ())] == []
    values = dict(read())

    def set_all() -> None:
        for name, value in values.items():
            if TABLE[name].write and not name.endswith("hook"):
                write(name, sys.modules[name.partition(":")[0]], value)

    loggers = len(values["logging:getLogger()"])
    assert calls(lambda: dict(read())) < 2_000 + 10 * loggers
    assert calls(set_all) < 2_000 + 20 * loggers
    assert dict(read()) == values
