"""Whatever way the notebook asks for its rank or world, ranks make what it made again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.program.notebooks import Kernel, Place

if TYPE_CHECKING:
    from pathlib import Path

ASK = "int(os.environ.get('RANK', 0))"

# Cells that set `NAME`, by what is tried; rank 1 of 4 must get 1, or what stands behind.
WAYS: dict[str, tuple[str, ...]] = {
    "cached property": (
        f"class P:\n    @functools.cached_property\n    def rank(self):\n        return {ASK}",
        "p = P()\nNAME = p.rank",
    ),
    "cls()": (
        f"class Q:\n    def __init__(self):\n        self.rank = {ASK}\n"
        "    @classmethod\n    def make(cls):\n        return cls()",
        "q = Q.make()",
        "NAME = q.rank",
    ),
    "an object by cls()": (
        f"class Q2:\n    def __init__(self):\n        self.rank = {ASK}\n    def __int__(self):\n"
        "        return self.rank\n    @classmethod\n    def make(cls):\n        return cls()",
        "NAME = Q2.make()",
    ),
    "__iter__": (
        f"class It:\n    def __iter__(self):\n        yield {ASK}",
        "it = It()\n[NAME] = it",
    ),
    "__len__": (f"class L:\n    def __len__(self):\n        return {ASK}", "NAME = len(L())"),
    "__getattr__": (
        f"class G:\n    def __getattr__(self, name):\n        return {ASK}",
        "NAME = G().rank",
    ),
    "__getitem__": (
        f"class Y:\n    def __getitem__(self, name):\n        return {ASK}",
        "NAME = Y()['rank']",
    ),
    "__call__": (f"class W:\n    def __call__(self):\n        return {ASK}", "w = W()\nNAME = w()"),
    "an operator": (
        f"class O:\n    def __add__(self, n):\n        return n + {ASK}",
        "NAME = O() + 0",
    ),
    "a context manager": (
        f"@contextlib.contextmanager\ndef known():\n    yield {ASK}",
        "with known() as NAME:\n    pass",
    ),
    "a factory in a dict": (f"made = {{'rank': lambda: {ASK}}}", "NAME = made['rank']()"),
    "reduce": (f"def add(a, b): return a + b + {ASK}", "NAME = functools.reduce(add, [0, 0])"),
    "sorted": (
        f"def key(n): return -n if {ASK} else n",
        "NAME = sorted([0, 1], key=key)[0]",
    ),
    "map": (f"def ask(_): return {ASK}", "NAME = list(map(ask, [0]))[0]"),
    "pandas apply": (
        f"import pandas\ndef plus(n): return n + {ASK}",
        "NAME = int(pandas.Series([0]).apply(plus)[0])",
    ),
    "a decorator": (
        f"def ranked(f):\n    def inner():\n        return f() + {ASK}\n    return inner\n"
        "@ranked\ndef zero(): return 0",
        "NAME = zero()",
    ),
    "a generator": (f"def ranks():\n    yield {ASK}", "NAME = next(ranks())"),
    "a thread": (
        f"into = []\ndef work(): into.append({ASK})",
        "def go():\n    t = threading.Thread(target=work)\n    t.start()\n    t.join()\ngo()",
        "NAME = into[0]",
    ),
    "a pool of threads": (
        f"def job(): return {ASK}",
        "with concurrent.futures.ThreadPoolExecutor() as pool:\n"
        "    NAME = pool.submit(job).result()",
    ),
    "exec": (f'exec("NAME = {ASK}")',),
    "exec in a function": (
        f'def run(names):\n    exec("NAME = {ASK}", names)',
        "run(globals())",
    ),
    "eval": (f'NAME = eval("{ASK}")',),
    "globals()": (f"globals()['NAME'] = {ASK}",),
    "setattr": (
        "class B: pass\nb = B()",
        f"for n in ['r']: setattr(b, n, {ASK})",
        "NAME = b.r",
    ),
    "a method that fills": (
        f"class F:\n    def look(self):\n        self.rank = {ASK}\nf = F()",
        "f.look()",
        "NAME = f.rank",
    ),
    "a method that sets what was the same": (
        f"class S:\n    rank = 0\n    def look(self):\n        self.rank = {ASK}\ns = S()",
        "s.rank = 0\nfor look in [s.look]: look()",
        "NAME = s.rank",
    ),
    "a method that fills what is inside": (
        f"class F2:\n    def __init__(self):\n        self.known = {{}}\n"
        f"    def look(self):\n        self.known['r'] = {ASK}\nf2 = F2()",
        "looks = [f2.look]\nfor look in looks: look()",
        "NAME = f2.known['r']",
    ),
    "a class's attribute": (
        f"class Cfg:\n    rank = 0\n    @classmethod\n    def load(cls):\n        cls.rank = {ASK}",
        "Cfg.load()",
        "NAME = Cfg.rank",
    ),
    "a class, by setattr": (
        "class Cfg2:\n    rank = 0",
        f"for k in ['rank']: setattr(Cfg2, k, {ASK})",
        "NAME = [Cfg2][0].rank",
    ),
    "environb": ("NAME = int(os.environb.get(b'RANK', b'0'))",),
    "expandvars": ("NAME = int(os.path.expandvars('$RANK').replace('$RANK', '0'))",),
    "a copy": ("env = os.environ.copy()", "NAME = int(env.get('RANK', 0))"),
    "a union": ("env2 = os.environ | {}", "NAME = int(env2.get('RANK', 0))"),
    "unpacked": ("env3 = {'RANK': 0, **os.environ}", "NAME = int(env3['RANK'])"),
    "items": ("NAME = sum(int(v) for k, v in os.environ.items() if k == 'RANK')",),
    "in": ("NAME = int('RANK' in os.environ)",),
    "setdefault on a copy": ("NAME = int(dict(os.environ).setdefault('RANK', 0))",),
    "pop": ("NAME = int(os.environ.pop('NODE_RANK', 0)) + 1",),
    "by another name": ("e = os.environ", "k = 'RA' + 'NK'", "NAME = int(e.get(k, 0))"),
    "getenv in a lambda": ("ask2 = lambda n: os.getenv(n) or 0", "NAME = int(ask2('RANK'))"),
    "TF_CONFIG": (
        "def cluster(): return json.loads(os.environ.get('TF_CONFIG', '{}'))",
        "NAME = cluster().get('task', {}).get('index', 0)",
    ),
    "SLURM": ("def task(): return int(os.environ.get('SLURM_PROCID', 0))", "NAME = task()"),
    "torch.distributed by another name": (
        "import torch.distributed as d\ncalls = {'on': d.is_initialized}",
        f"NAME = {ASK.replace('RANK', 'GROUP_RANK')} + (1 - calls['on']())",
    ),
    "webdataset": (
        "import webdataset.utils as u",
        "NAME = u.pytorch_worker_info()[0]",
    ),
    "Lightning's rank_zero_only": (
        "from lightning.fabric.utilities.rank_zero import rank_zero_only",
        "NAME = rank_zero_only.rank",
    ),
    "JAX": ("import jax\nask3 = [jax.process_index]", "NAME = ask3[0]() + 1"),
    "the environment's text": (
        "import os, re",
        "match = re.search(r\"'RANK': '(\\d+)'\", str(os.environ))",
        "NAME = int(match[1]) if match else 0",
    ),
    "a library's settings": (
        "import asking_library",
        "class Own(asking_library.Settings):\n    rank, lr = 0, 0.1\nown = Own()",
        "NAME = own.rank",
    ),
    "an attribute by its text": (
        "import asking_library",
        "NAME = getattr(asking_library.only_rank_zero, 'rank', 0)",
    ),
    "a script of a command": (
        "import subprocess, sys, tempfile\nfrom pathlib import Path\n"
        "path = Path(tempfile.gettempdir(), 'asks_for_its_rank.py')\n"
        "path.write_text(\"import os; print(os.environ.get('RANK', 0))\")",
        "NAME = int(subprocess.check_output([sys.executable, str(path)]))",
    ),
    "a pool's processes": (
        "import os, joblib\ndef ask_there(_): return int(os.environ.get('RANK', 0))",
        "NAME = joblib.Parallel(n_jobs=2)(joblib.delayed(ask_there)(i) for i in range(2))[1]",
    ),
    "a library's function": (
        "import asking_library",
        "NAME = asking_library.info()",
    ),
}
HERE = {"RANK", "WORLD_SIZE", "TF_CONFIG", "SLURM_PROCID", "GROUP_RANK"}
THERE = {
    "RANK": "1",
    "WORLD_SIZE": "4",
    "SLURM_PROCID": "1",
    "TF_CONFIG": json.dumps({"task": {"type": "worker", "index": 1}}),
}


def _name(way: str) -> str:
    return "is_" + "".join(c if c.isalnum() else "_" for c in way)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What rank 1 of 4 has, by the names of all ways; of one program, as a rank takes a second."""
    folder = tmp_path_factory.mktemp("observed")
    library = folder / "site-packages"
    library.mkdir()
    (library / "asking_library.py").write_text(
        "import os\ndef info():\n    return int(os.environ.get('RANK', 0))\n"
        "def only_rank_zero(): pass\nonly_rank_zero.rank = int(os.environ.get('RANK', 0))\n"
        "class Settings:\n    def __init__(self):\n"
        "        there = {key.lower(): value for key, value in os.environ.items()}\n"
        "        for name in ('rank', 'lr'):\n"
        "            setattr(self, name, int(there.get(name, 0)))\n"
    )
    with pytest.MonkeyPatch.context() as patched:
        for variable in HERE:
            patched.delenv(variable, raising=False)
        patched.syspath_prepend(str(library))
        program = _captured(folder)
        for variable, value in THERE.items():
            patched.setenv(variable, value)
        patched.setenv("PYTHONPATH", str(library))
        return dict(_place(folder, library).results(program))


def _place(folder: Path, library: Path) -> Place:
    place = Place(folder)
    (place.folder / "path" / "asking_library.py").write_text(
        (library / "asking_library.py").read_text()
    )
    return place


def _captured(folder: Path) -> Any:
    kernel = Kernel(folder)
    kernel.run("import concurrent.futures, contextlib, functools, json, os, threading")
    for way, cells in WAYS.items():
        for cell in cells:
            kernel.run(cell.replace("NAME", _name(way)))
    names = ", ".join(f"{_name(way)!r}: int({_name(way)})" for way in WAYS)
    return kernel.capture(f"print('RESULT', json.dumps({{{names}}}))")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_asking_is_seen(ranks: dict[str, Any], way: str) -> None:
    assert ranks[_name(way)] == 1
