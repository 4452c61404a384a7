"""What starts processes that form a world of their own, which ranks of a world would each do again:
the second finds the first one's address in use."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.program.advice.reading import keyword, last
from distrain_nb.program.advice.values import Values
from distrain_nb.repairs import with_option, write_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.program.advice.reading import Code, Function


@dataclass(frozen=True)
class _Starter:
    """How a function that starts processes is called.

    `number` is the name of its parameter that says how many, `at` the place of that, `default` how
    many there are without it, None for all that the machine has. It calls `function` with a
    process's number first where it `counts`. What `always` forms a world does so whatever it calls.
    """

    number: str
    at: int
    default: int | None
    function: str = "fn"
    counts: bool = False
    always: bool = True


_STARTERS: Mapping[str, _Starter] = {
    "accelerate.notebook_launcher": _Starter("num_processes", 2, None, "function"),
    "accelerate.debug_launcher": _Starter("num_processes", 2, 2, "function"),
    "torch_xla.distributed.xla_multiprocessing.spawn": _Starter("nprocs", 2, None, counts=True),
    "torch.multiprocessing.spawn": _Starter("nprocs", 2, 1, counts=True, always=False),
    "torch.multiprocessing.start_processes": _Starter("nprocs", 2, 1, counts=True, always=False),
    "ignite.distributed.Parallel": _Starter("nproc_per_node", 1, 1, ""),
    "ignite.distributed.spawn": _Starter("nproc_per_node", 4, 1, ""),
    "horovod.run": _Starter("np", -1, 1, "func"),
    "multiprocessing.Process": _Starter("", -1, 2, "target", always=False),
    "torch.multiprocessing.Process": _Starter("", -1, 2, "target", always=False),
}
_CUSTOMARY = {
    "mp": "torch.multiprocessing",
    "xmp": "torch_xla.distributed.xla_multiprocessing",
    "idist": "ignite.distributed",
}
# What forms a world, or waits for others in one.
_FORMS = ("init_process_group", "init_device_mesh", "init_distributed", "Accelerator")
_BY_PLACE = re.compile(r"environ|getenv|RANK|WORLD_SIZE|torchelastic|is_initialized|PROCID")
_NODES = re.compile(
    r"(NODE|GROUP)_RANK|RANK|WORLD_SIZE|CLUSTER_SPEC|TF_CONFIG|SM_(CURRENT_)?HOSTS?"
)


def starters(code: Code, text: str, ranks_per_replica: int) -> Iterator[tuple[int, Finding]]:
    """The lines that start a world in each rank of one, with a finding that has no place yet: an
    error where several ranks of a machine are sure to get there. `text` is the program's."""
    if ranks_per_replica < 2 and any(map(_NODES.fullmatch, code.texts)):
        return  # it starts the processes of each machine, as one of several
    for call in code.calls:
        name = _name(code, call)
        starter = _STARTERS.get(name)
        if starter is None or not code.runs(call):
            continue
        if not starter.always and not _forms(code, _started(code, call, starter), frozenset()):
            continue
        tests = list(_conditions(code, call, frozenset()))
        if _is_one(code, call, starter) or any(map(_BY_PLACE.search, tests)):
            continue
        sure = ranks_per_replica > 1 and not tests
        finding = _finding(code, call, starter, sure=sure)
        fixes = list(_fixes(code, call, starter, text)) if ranks_per_replica > 1 else []
        yield call.lineno, replace(finding, fixes=tuple(fixes))


def _name(code: Code, call: ast.Call) -> str:
    """The full name without what packages import it through."""
    name = code.name(call.func)
    first, _, rest = name.partition(".")
    name = f"{_CUSTOMARY.get(first, first)}.{rest}" if rest else name
    name = name.replace(".get_context()", "")
    if name.startswith("accelerate."):
        return f"accelerate.{last(name)}"
    if name.startswith("torch.multiprocessing.spawn."):
        return name.replace(".spawn.", ".")
    return re.sub(r"^horovod\.\w+\.run$", "horovod.run", name)


def _is_one(code: Code, call: ast.Call, starter: _Starter) -> bool:
    """Whether it is to start one process, which is to call the function."""
    given = keyword(call, starter.number)
    if given is None and 0 <= starter.at < len(call.args):
        given = call.args[starter.at]
    if given is None:
        return starter.default == 1
    known = Values(code).nodes(given) or [given]
    return all(_one(node, starter.default) for node in known)


def _one(node: ast.expr, default: int | None) -> bool:
    if isinstance(node, ast.Constant):
        return (default if node.value is None else node.value) == 1
    return False


def _started(code: Code, call: ast.Call, starter: _Starter) -> Function | None:
    """What the processes call, where the code defines it."""
    function = _function(call, starter)
    return code.functions.get(last(code.name(function))) if function is not None else None


def _function(call: ast.Call, starter: _Starter) -> ast.expr | None:
    given = keyword(call, starter.function)
    by_place = starter.number and starter.function and call.args
    return call.args[0] if given is None and by_place else given


def _forms(code: Code, function: Function | None, seen: frozenset[str]) -> bool:
    """Whether a function forms a world, itself or by others that the code defines."""
    if function is None or function.name in seen:
        return False
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    if any(last(code.name(call.func)) in _FORMS for call in calls):
        return True
    seen |= {function.name}
    return any(_forms(code, code.body_of(call), seen) for call in calls)


def _conditions(code: Code, node: ast.AST, seen: frozenset[str]) -> Iterator[str]:
    """The tests on which it depends whether a node runs, of its function's calls too."""
    yield from (t for t in map(ast.unparse, code.conditions(node)) if "__name__" not in t)
    function = code.function_of(node)
    if function is not None and function.name not in seen:
        calls = code.called(function.name)
        of_calls = [list(_conditions(code, call, seen | {function.name})) for call in calls]
        if all(of_calls):
            yield from (test for tests in of_calls for test in tests)


def _finding(code: Code, call: ast.Call, starter: _Starter, *, sure: bool) -> Finding:
    name = ast.unparse(call.func)
    instead = _instead(code, call, starter)
    way_out = f"call the function, `{instead}`" if instead else "call what it starts"
    return Finding(
        "launcher.own-processes",
        Severity.ERROR if sure else Severity.WARNING,
        "",
        f"`{name}` starts processes itself, in every rank again, and their worlds get into each"
        f" other's way: {way_out}, in each rank, or keep `{name}` and take `-n 1`",
    )


def _fixes(code: Code, call: ast.Call, starter: _Starter, text: str) -> Iterator[Fix[str]]:
    instead, there = _instead(code, call, starter), ast.get_source_segment(text, call)
    if instead and there:
        yield write_code(there, instead)
    yield Fix("Take `-n 1`", lambda cell: with_option(cell, ["-n", "--ranks-per-replica"], "-n 1"))


def _instead(code: Code, call: ast.Call, starter: _Starter) -> str:
    """The call of the function that the processes run; empty where the code doesn't tell."""
    function = _function(call, starter)
    if not starter.number:
        return ""
    by_place = call.args[1:2]
    given = next(iter(by_place), keyword(call, "args"))
    if function is None or not isinstance(given, (ast.Tuple, ast.List, type(None))):
        return ""
    arguments = [ast.unparse(each) for each in given.elts] if given is not None else []
    if starter.counts:
        has_os = code.aliases.get("os") == "os"
        environ = "os.environ" if has_os else '__import__("os").environ'
        arguments.insert(0, f'int({environ}["RANK"])')
    return f"{ast.unparse(function)}({', '.join(arguments)})"
