"""What starts processes of its own that form a world, in ranks that are one already."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.findings import Fix, Severity
from distrain_nb.program.advice.reading import keyword, used
from distrain_nb.program.advice.training import Note
from distrain_nb.program.advice.values import Values
from distrain_nb.program.python.ipython_syntax import run_line
from distrain_nb.repairs import with_option, write_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.program.advice.reading import Code

# What forms a world, or waits for others in one.
_FORMS = ("init_process_group", "init_device_mesh", "init_distributed", "Accelerator")
_ANYTHING = re.compile("")
_BY_PLACE = re.compile(r"environ|getenv|RANK|WORLD_SIZE|torchelastic|is_initialized|PROCID")
_NODES = re.compile(
    r"(NODE|GROUP)_RANK|RANK|WORLD_SIZE|CLUSTER_SPEC|TF_CONFIG|SM_(CURRENT_)?HOSTS?"
)
_COMMAND = re.compile(r"\btorchrun\b|torch\.distributed\.(run|launch)\b|accelerate launch")
_SPAWNING = re.compile(r"ddp\w*_(spawn|fork|notebook)\w*")  # strategies of Lightning


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
    r"(torch\.)?multiprocessing\.(context\.)?(\w*Process|process\.BaseProcess)": _Starter(
        "", -1, 2, "target", always=False
    ),
    r"(lightning|pytorch_lightning|lightning_fabric)(\.\w+)*\.(Trainer|Fabric)": _Starter(
        "devices", -1, None, ""
    ),
    r"subprocess\.\w+|os\.(system|popen)": _Starter("", -1, 2, ""),
}


def starters(code: Code, text: str, ranks_per_replica: int) -> Iterator[Note]:
    """Yield the calls that start a world in each rank of one: an error where several ranks of a
    machine are sure to get there. `text` is the program's."""
    if ranks_per_replica < 2 and any(map(_NODES.fullmatch, code.texts)):
        return  # it starts the processes of each machine, as one of several
    for call, starter in _started(code):
        if not code.runs(call) or _is_one(code, call, starter):
            continue
        if depends(code, call, _BY_PLACE) or not (starter.always or _forms(code, call, starter)):
            continue
        many = ranks_per_replica > 1
        severity = Severity.ERROR if many and not depends(code, call) else Severity.WARNING
        name, instead = ast.unparse(call.func), _instead(code, call, starter)
        way_out = f"call the function, `{instead}`" if instead else "call what it starts"
        line = next(filter(None, map(run_line, _commands(call))), "")
        if line:
            way_out = f"write `{line}` in a cell of its own, or call what the file has"
        way_out = 'write `strategy="ddp"`' if _strategy(call) else way_out
        yield Note(
            "launcher.own-processes",
            severity,
            call.lineno,
            f"`{name}` starts processes itself, in every rank again, and their worlds get into each"
            f" other's way: {way_out}, in each rank, or keep `{name}` and take `-n 1`",
            tuple(_fixes(call, instead, text)) if many else (),
        )


def _started(code: Code) -> Iterator[tuple[ast.Call, _Starter]]:
    for call in code.calls:
        for full_name in _called(code, call.func):
            name = full_name.replace(".get_context()", "")  # of multiprocessing
            starter = next((_STARTERS[p] for p in _STARTERS if re.fullmatch(p, name)), None)
            spawns = "ignite" in name or bool(_strategy(call))
            if name.startswith(("subprocess", "os")):
                spawns = any(map(_COMMAND.search, map(str, _constants(call))))
            if starter is not None and (starter.function or spawns):
                yield call, starter
                break


def _called(code: Code, function: ast.expr) -> Iterator[str]:
    """Yield the full names of what a call may call, by names and parameters."""
    yield from map(code.name, (function, *Values(code).nodes(function)))
    if isinstance(function, ast.Attribute):
        holders = Values(code).nodes(function.value)
        yield from (f"{code.name(holder)}.{function.attr}" for holder in holders)


def _commands(call: ast.Call) -> Iterator[str]:
    """Yield the command that a call runs, as far as its words are written out."""
    for argument in call.args[:1]:
        if isinstance(argument, (ast.List, ast.Tuple)):
            yield " ".join(map(str, _constants(argument)))
        else:
            yield from map(str, _constants(argument))


def _strategy(call: ast.Call) -> str:
    """Return the strategy of Lightning that starts processes; empty for none."""
    constants = _constants(keyword(call, "strategy") or ast.Constant(None))
    return next((str(name) for name in constants if _SPAWNING.match(str(name))), "")


def _constants(tree: ast.AST) -> list[object]:
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]


def _is_one(code: Code, call: ast.Call, starter: _Starter) -> bool:
    """Return whether it is to start one process, which is to call the function."""
    number = keyword(call, starter.number)
    if number is None and 0 <= starter.at < len(call.args):
        number = call.args[starter.at]
    if number is None:
        return starter.default == 1
    ones = (1, None) if starter.default == 1 else (1,)
    nodes = Values(code).nodes(number)
    return all(isinstance(node, ast.Constant) and node.value in ones for node in nodes)


def _function(call: ast.Call, starter: _Starter) -> ast.expr | None:
    """Return the function that the processes call."""
    first = call.args[0] if call.args and starter.function not in ("", "target") else None
    return keyword(call, starter.function) or first


def _forms(code: Code, call: ast.Call, starter: _Starter) -> bool:
    """Return whether the function that is started forms a world, itself or by others that the code
    defines."""
    function = _function(call, starter)
    start = [function, *Values(code).nodes(function)] if function else []
    definitions = (*code.functions.values(), *code.classes.values())
    return not used(definitions, start)[1].isdisjoint(_FORMS)


def depends(code: Code, node: ast.AST, on: re.Pattern[str] = _ANYTHING) -> bool:
    """Return whether it depends on a test whether a node runs, on every way to it."""

    def tested(inner: ast.AST) -> bool:
        tests = map(ast.unparse, code.conditions(inner))
        return any(on.search(test) and "__name__" not in test for test in tests)

    return code.on_every_way(node, tested)


def _fixes(call: ast.Call, instead: str, text: str) -> Iterator[Fix[str]]:
    in_main = call.lineno <= text.count("\n") + 1
    there = ast.get_source_segment(text, call) if in_main else None
    if instead and there:
        yield write_code(there, instead)
    if strategy := _strategy(call):
        yield write_code(strategy, "ddp")
    yield Fix("Take `-n 1`", lambda cell: with_option(cell, ["-n", "--ranks-per-replica"], "-n 1"))


def _instead(code: Code, call: ast.Call, starter: _Starter) -> str:
    """Return the call of the function that the processes run; empty where the code doesn't tell."""
    function = _function(call, starter)
    passed = next(iter(call.args[1:2]), keyword(call, "args"))
    is_listed = passed is None or isinstance(passed, (ast.Tuple, ast.List))
    if not (starter.number and isinstance(function, (ast.Name, ast.Attribute)) and is_listed):
        return ""
    arguments = list(map(ast.unparse, getattr(passed, "elts", ())))
    if starter.counts:
        environ = "os" if code.aliases.get("os") == "os" else '__import__("os")'
        arguments.insert(0, f'int({environ}.environ["RANK"])')
    return f"{ast.unparse(function)}({', '.join(arguments)})"
