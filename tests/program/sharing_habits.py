"""Habits by which two things of a notebook are one, or go on from where they were."""

from __future__ import annotations

# Statements in the terms of `random_notebooks`.
SHARES = (
    "{v} = random.random",
    "{v} = SimpleNamespace(draw=random.random, x={n})",
    "{v} = {{'m': state_module.MISSING, 'n': {n}}}",
    "{v} = {{'m': __import__('dataclasses').MISSING}}",
    "{v} = state_module.CONF\n{v}['lr'] = {n}",
    "{v} = state_module.CONF",
    "{v} = state_module.CONF['in']",
    "{v} = [state_module.CONF, {w}]",
    "state_module.CONF['in']['x'] = {n}",
    "{f} = state_module.is_missing",
    "{f} = state_module.conf",
    "MISSING = object()\ndef {f}(x=MISSING): return x is MISSING, {n}\n{v} = {{'m': MISSING}}",
    "{v} = {c}()\n{w} = {v}.get",
    "{v} = {c}()\nold = {v}.get\n{v}.get = lambda: ('new', old(), {n})",
    "{w} = []\n{v} = {w}.append\n{v}({n})",
    "{v} = random.Random({n})\n{w} = {{'r': {v}}}\n{v}.random()",
    "{v} = itertools.cycle([1, {n}])\nnext({v})\n{w} = [{v}]",
    "{v} = iter([1, 2, {n}, 4])\n{w} = zip({v}, {v})\nnext({w})",
    "{v} = map(str, [1, {n}, 3])\nnext({v})",
    "class {c}:\n    ids = itertools.count({n})\n    def __init__(self): self.i = next(self.ids)\n"
    "    def get(self): return self.i\n{v} = {c}()",
    "class {c}:\n    one = None\n    def __new__(cls):\n"
    "        cls.one = cls.one or super().__new__(cls)\n        return cls.one\n"
    "    def get(self): return self is type(self).one\n{v} = {c}()",
    "class {c}:\n    held = {{}}\n    def __init__(self): self.__dict__ = self.held\n"
    "    def get(self): return self.held\n{v} = {c}()\n{v}.x = {n}",
    "class {c}:\n    def __set_name__(self, owner, name): self.name = name\n"
    "    def __get__(self, obj, cls=None):\n"
    "        return self if obj is None else vars(obj)['_p']\n"
    "    def __set__(self, obj, x): vars(obj)['_p'] = x\n    def get(self): return self.name\n"
    "class Owner: p = {c}()\n{v} = Owner()\n{v}.p = {l}",
    "class {c}:\n    @functools.cache\n    def held(self): return [{n}]\n"
    "    def get(self): return self.held()\n{v} = {c}()\n{w} = {v}.held()",
    "class {c}:\n    def get(self, x=1, y={n}): return x, y\n"
    "{c}.get = functools.partialmethod({c}.get, {n})\n{v} = {c}()",
    "{c} = type('{c}', (), {{'a': {l}, 'get': lambda self: ({n}, self.a)}})\n{v} = {c}()",
    "import numpy as np\n{v} = np.arange(100.0)[{n}:]\n{w} = {v}[:3]\n{w}[0] = {n}",
    "import numpy as np\n{v} = np.random.RandomState({n})\n{v}.rand()\n{v} = {v}.rand(2)",
    "match {n}:\n    case 0 | 1: {v} = 'few'\n"
    "    case int(x) if x > 4: {v} = [x]\n    case _: {v} = {l}",
    "if (y := {n}) > 4: {v} = [y, {a}]",
    "{v} = __import__('dataclasses').make_dataclass('D', [('x', int, {n})])()",
    "try: raise ValueError({n})\nexcept ValueError as error: {v} = error",
    "{v} = __import__('re').compile('x{n}', 2)",
    "{v} = __import__('types').MappingProxyType({{'k': {n}}})",
)
SHARES_OF_THE_WORLD = (
    "{v} = SimpleNamespace(conf=state_module.CONF, r={ask})",
    "state_module.CONF['lr'] = {ask}",
    "{v} = state_module.CONF\n{v}['lr'] = {ask}",
    "{v} = {{'m': state_module.MISSING, 'r': {ask}}}",
    "{v} = random.Random({ask})\n{w} = [{v}]\n{v}.random()",
    "class {c}:\n    ids = itertools.count({ask})\n"
    "    def __init__(self): self.i = next(self.ids)\n"
    "    def get(self): return self.i\n{v} = {c}()",
    "class {c}:\n    one = None\n    def __new__(cls):\n"
    "        cls.one = cls.one or super().__new__(cls)\n        cls.one.r = {ask}\n"
    "        return cls.one\n    def get(self): return self.r\n{v} = {c}()",
    "match {ask}:\n    case 0: {v} = 'main'\n    case x: {v} = [x, {n}]",
    "if (y := {ask}): {v} = [y, {n}]",
    "{v} = iter(range({ask}, 9, 2))\nnext({v})",
    "{v} = {c}()\nold = {v}.get\nr = {ask}\n{v}.get = lambda: (r, old(), {n})",
    "def main_only(f):\n    if {ask} == 0: return f\n"
    "    return functools.wraps(f)(lambda *a: None)\n"
    "@main_only\ndef {f}(): return {n}",
)
# By a function of `random_notebooks`, which gives the name of an error.
SHOWN = tuple(
    f"call(lambda: {text}, repr)"
    for text in (
        *("state_module.CONF", "state_module.conf()", "state_module.is_missing()"),
        *("v['m'] is state_module.MISSING", "v is state_module.CONF", "u is v"),
        *("state_module.conf() and v.conf is state_module.CONF", "w['m'] is u['m']"),
    )
)
