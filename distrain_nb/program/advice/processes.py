"""Which processes a program has: one for all GPUs of a machine, several that exchange gradients,
and those that it starts itself, which ranks of a world would each start again."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.findings import Fix, Severity
from distrain_nb.program.advice.reading import keyword, last
from distrain_nb.program.advice.training import Note, info, is_cared_for
from distrain_nb.program.advice.values import Values
from distrain_nb.repairs import with_option, write_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.program.advice.reading import Code

# What shares a model or its gradients among processes, each with a GPU of its own.
_PER_PROCESS = (
    *("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard"),
    *("init_process_group", "init_device_mesh", "init_distributed"),
)
# What makes a process one of several, and names of options that say by what they exchange.
_JOINS = ("init_process_group", "init_distributed", "InitProcessGroupKwargs")
_BACKENDS = ("ddp_backend", "process_group_backend")
_GPU = re.compile(r"cuda:\d+")
_FASTER = (
    "DistributedDataParallel, with a process for each GPU, is faster: it does not copy the model "
    "to every GPU at each step, and its GPUs don't wait for one Python interpreter"
)


def one_process(code: Code) -> Iterator[Note]:
    """Yield an info where one process uses several GPUs; nothing where each has a process of its
    own."""
    if code.called(*_PER_PROCESS) or code.uses("horovod") or is_cared_for(code):
        return
    copied = [c for c in code.called("DataParallel", "data_parallel") if code.runs(c)]
    spread = [c for c in code.calls if _spreads(keyword(c, "device_map")) and code.runs(c)]
    gpus = sorted({text for text in code.texts if _GPU.fullmatch(text)})
    why, line = "", 0
    if copied:
        why, line = f"DataParallel uses all GPUs of a machine. {_FASTER}", copied[0].lineno
    elif spread:
        why, line = "device_map spreads one model over all GPUs of a machine", spread[0].lineno
    elif len(gpus) > 1:
        constants = (node for node in code.nodes if isinstance(node, ast.Constant))
        line = next(node.lineno for node in constants if node.value == gpus[1])
        why = f"{' and '.join(gpus)} are used side by side"
    if why:
        yield info("one-process", line, f"one process a replica is enough: {why}")


def _spreads(value: ast.expr | None) -> bool:
    """Return whether a `device_map` puts parts of a model on several GPUs."""
    if isinstance(value, ast.Constant):
        return value.value in ("auto", "balanced", "balanced_low_0", "sequential")
    return isinstance(value, ast.Dict) and len({*map(ast.dump, value.values)}) > 1


def without_nccl(code: Code) -> str:
    """Return the way to exchange gradients that a program names, where it is certainly not NCCL."""
    values = Values(code)
    given = [value for call in code.calls if code.runs(call) for value in _backends(code, call)]
    named = {_text(code, node) for value in given for node in (*values.nodes(value),) or (None,)}
    if named and not any(text is None or "nccl" in text.lower() for text in named):
        return " or ".join(sorted(filter(None, named)))
    return "RING" if code.says("RING") and not code.says("NCCL") else ""


def _backends(code: Code, call: ast.Call) -> Iterator[ast.expr | None]:
    """What a call names as the backend of the processes, None where it leaves that to PyTorch."""
    if last(code.name(call.func)) in _JOINS:
        yield keyword(call, "backend", "dist_backend") or next(iter(call.args), None)
    elif named := keyword(call, *_BACKENDS):
        yield named


def _text(code: Code, node: ast.expr | None) -> str | None:
    """Return a backend's name; None for what the code doesn't tell."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Attribute):
        return node.attr.lower() if code.name(node).endswith(f"Backend.{node.attr}") else None
    return None


# -- processes of its own -------------------------------------------------------------------------


class _Starter(NamedTuple):
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


_STARTERS: Mapping[str, _Starter] = {  # by patterns of full names
    r"accelerate\.(.+\.)?notebook_launcher": _Starter("num_processes", 2, None, "function"),
    r"accelerate\.(.+\.)?debug_launcher": _Starter("num_processes", 2, 2, "function"),
    r"torch_xla\.distributed\.xla_multiprocessing\.spawn": _Starter("nprocs", 2, None, counts=True),
    r"torch\.multiprocessing\.(spawn\.)?(spawn|start_processes)": _Starter(
        "nprocs", 2, 1, counts=True, always=False
    ),
    r"ignite\.distributed\.Parallel": _Starter("nproc_per_node", 1, 1, ""),
    r"ignite\.distributed\.spawn": _Starter("nproc_per_node", 4, 1, ""),
    r"horovod(\.\w+)?\.run": _Starter("np", -1, 1, "func"),
    r"(torch\.)?multiprocessing\.Process": _Starter("", -1, 2, "target", always=False),
}
# What forms a world, or waits for others in one.
_FORMS = ("init_process_group", "init_device_mesh", "init_distributed", "Accelerator")
_BY_PLACE = re.compile(r"environ|getenv|RANK|WORLD_SIZE|torchelastic|is_initialized|PROCID")
_NODES = re.compile(
    r"(NODE|GROUP)_RANK|RANK|WORLD_SIZE|CLUSTER_SPEC|TF_CONFIG|SM_(CURRENT_)?HOSTS?"
)


def starters(code: Code, text: str, ranks_per_replica: int) -> Iterator[Note]:
    """What starts a world in each rank of one: an error where several ranks of a machine are sure
    to get there. `text` is the program's."""
    if ranks_per_replica < 2 and any(map(_NODES.fullmatch, code.texts)):
        return  # it starts the processes of each machine, as one of several
    for call in code.calls:
        name = code.name(call.func).replace(".get_context()", "")
        starter = next((_STARTERS[p] for p in _STARTERS if re.fullmatch(p, name)), None)
        if starter is None or not code.runs(call) or _is_one(code, call, starter):
            continue
        tests = list(_conditions(code, call, frozenset()))
        if any(map(_BY_PLACE.search, tests)) or not (
            starter.always or _forms(code, _function(call, starter), frozenset())
        ):
            continue
        many = ranks_per_replica > 1
        severity = Severity.ERROR if many and not tests else Severity.WARNING
        name, instead = ast.unparse(call.func), _instead(code, call, starter)
        way_out = f"call the function, `{instead}`" if instead else "call what it starts"
        yield Note(
            "launcher.own-processes",
            severity,
            call.lineno,
            f"`{name}` starts processes itself, in every rank again, and their worlds get into each"
            f" other's way: {way_out}, in each rank, or keep `{name}` and take `-n 1`",
            tuple(_fixes(call, instead, text)) if many else (),
        )


def _is_one(code: Code, call: ast.Call, starter: _Starter) -> bool:
    """Return whether it is to start one process, which is to call the function."""
    number = keyword(call, starter.number)
    if number is None and 0 <= starter.at < len(call.args):
        number = call.args[starter.at]
    if number is None:
        return starter.default == 1
    ones = (1, None) if starter.default == 1 else (1,)
    known = Values(code).nodes(number)
    return all(isinstance(node, ast.Constant) and node.value in ones for node in known)


def _function(call: ast.Call, starter: _Starter) -> ast.expr | None:
    """What the processes call."""
    by_place = starter.number and starter.function and call.args
    return keyword(call, starter.function) or (call.args[0] if by_place else None)


def _forms(code: Code, called: ast.expr | None, seen: frozenset[str]) -> bool:
    """Return whether a function forms a world, itself or by others that the code defines."""
    name = last(code.name(called)) if called is not None else ""
    function = code.functions.get(name)
    if function is None or name in seen:
        return False
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return any(
        last(code.name(inner)) in _FORMS or _forms(code, inner, seen | {name}) for inner in calls
    )


def _conditions(code: Code, node: ast.AST, seen: frozenset[str]) -> Iterator[str]:
    """Yield the tests on which it depends whether a node runs, of its function's calls too."""
    yield from (t for t in map(ast.unparse, code.conditions(node)) if "__name__" not in t)
    function = code.function_of(node)
    if function is not None and function.name not in seen:
        calls = code.called(function.name)
        of_calls = [list(_conditions(code, call, seen | {function.name})) for call in calls]
        if all(of_calls):
            yield from (test for tests in of_calls for test in tests)


def _fixes(call: ast.Call, instead: str, text: str) -> Iterator[Fix[str]]:
    there = ast.get_source_segment(text, call)
    if instead and there:
        yield write_code(there, instead)
    yield Fix("Take `-n 1`", lambda cell: with_option(cell, ["-n", "--ranks-per-replica"], "-n 1"))


def _instead(code: Code, call: ast.Call, starter: _Starter) -> str:
    """Return the call of the function that the processes run; empty where the code doesn't tell."""
    function = _function(call, starter)
    given = next(iter(call.args[1:2]), keyword(call, "args"))
    known = given is None or isinstance(given, (ast.Tuple, ast.List))
    if not (starter.number and function is not None and known):
        return ""
    arguments = list(map(ast.unparse, getattr(given, "elts", ())))
    if starter.counts:
        environ = "os" if code.aliases.get("os") == "os" else '__import__("os")'
        arguments.insert(0, f'int({environ}.environ["RANK"])')
    return f"{ast.unparse(function)}({', '.join(arguments)})"
