"""Launchers: how the ranks of a job come to life, and which one a program wants."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.layout import Layout, Role
from distrain_nb.worker.files.launch import FORK_SAFE, IMPORTED_BY, OPTIMIZER

if TYPE_CHECKING:
    from distrain_nb.program import Program

# The first of these that a program imports decides; Horovod rides on the others' frameworks.
_WANTED_BY = (
    ("horovod", "mpi"),
    ("mpi4py", "mpi"),
    ("torch", "torchrun"),
    ("lightning", "torchrun"),
    ("accelerate", "torchrun"),
    ("transformers", "torchrun"),
    ("tensorflow", "tensorflow"),
    ("tf_keras", "tensorflow"),
    ("jax", "python"),
    ("flax", "python"),
    ("keras", "tensorflow"),
)
# Rules are TensorFlow's own, which hold for it beside another framework too.
_FRAMEWORKS = (("tensorflow", "tensorflow"), ("torchrun", "pytorch"))

_STRATEGY = "MultiWorkerMirroredStrategy"

# These start a process for each GPU of a replica.
PER_GPU = ("torchrun", "mpi")


def choose(program: Program) -> tuple[str, str]:
    """Return the launcher for a program, and why."""
    launcher, reason = launcher_for(program.imports)
    if launcher == "torchrun" and _one_process_findings(program):
        return "python", "the program uses all GPUs of a machine from one process"
    return launcher, reason


def launcher_for(imports: Collection[str]) -> tuple[str, str]:
    """Return the launcher for a program that imports these modules, and why."""
    for module, launcher in _WANTED_BY:
        if module in imports:
            one = ", which uses all devices of a machine from one process" * (launcher == "python")
            return launcher, f"the program imports {module}{one}"
    return "python", "the program imports no distributed framework"


def framework_of(program: Program) -> str | None:
    """Return the framework whose rules hold for the program, by what it imports."""
    launchers = {launcher for module, launcher in _WANTED_BY if module in program.imports}
    frameworks = (framework for launcher, framework in _FRAMEWORKS if launcher in launchers)
    return next(frameworks, "mxnet" if "mxnet" in program.imports else None)


def ranks_per_replica(program: Program, layout: Layout, gpus: int) -> int:
    """Return the ranks of a replica: as chosen, else one for each of its `gpus` if the program
    wants that."""
    if layout.ranks_per_replica:
        return layout.ranks_per_replica
    return 1 if _one_process_findings(program) else max(1, gpus)


def preload(program: Program, launcher: str) -> Iterator[str]:
    """Yield the modules that one import gives to all ranks: none of them initializes CUDA, which a
    fork doesn't survive."""
    for name in FORK_SAFE:
        if name in program.imports or (name, launcher) == ("torch", "torchrun"):
            yield name
    yield from dict.fromkeys(
        module for name in program.imports for module in IMPORTED_BY.get(name, ())
    )
    needs = "optim" in program.main or "transformers" in program.imports
    if launcher == "torchrun" and needs:
        yield OPTIMIZER


def process_findings(
    program: Program, layout: Layout, launcher: str, ranks: int, gpus: int
) -> Iterator[Finding]:
    """Refuse more ranks a replica than a launcher knows, and warn of a program that uses all GPUs
    of a machine from one process.

    `ranks` and `gpus` are those of a replica.
    """
    warnings = _one_process_findings(program)
    training = layout.replicas(Role.PRIMARY) + layout.replicas(Role.WORKERS)
    processes = ranks * training
    if launcher == "tensorflow" and ranks > 1:
        yield _one_rank_finding(ranks, max(1, processes))
    if launcher == "tensorflow" and processes > 1:
        yield from _before_strategy(program)
    if gpus > 1:
        yield from warnings
    if warnings and processes > 1:
        message = (
            f"{processes} processes each train the whole model by themselves and save it to the "
            "same places: use DistributedDataParallel, or one replica with one process"
        )
        where = "workers" if ranks == 1 else "ranks_per_replica"
        yield Finding("launcher.one-process", Severity.WARNING, where, message)


def _one_rank_finding(ranks: int, processes: int) -> Finding:
    """Refuse ranks that would each take themselves for the whole of their replica: TF_CONFIG has a
    task for each replica, so they would train without each other."""
    message = (
        f"launcher tensorflow starts one process per replica, but -n asks for {ranks}: leave out "
        f"-n, and ask for {processes} replicas by --primary and --workers"
    )
    return Finding("launcher.one-rank", Severity.ERROR, "ranks_per_replica", message)


def _before_strategy(program: Program) -> Iterator[Finding]:
    """Name values that ranks make before the cell makes its strategy, which then finds TensorFlow's
    runtime started: "Collective ops must be configured at program startup" (TensorFlow 2.21)."""
    early = [value for value in program.values if value.starts_tensorflow]
    if not early or _STRATEGY not in program.main:
        return
    surely = any(_makes_strategy(statement) for statement in ast.parse(program.main).body)
    names = " and ".join(f"`{value.name}`" for value in early)
    are, them = ("is a value", "it") if len(early) == 1 else ("are values", "them")
    message = (
        f"{names} {are} of TensorFlow from another cell. Ranks make {them} before the first line "
        f"of the cell, and {_STRATEGY} can only be made before any. Make {them} in the cell, below "
        "the strategy"
    )
    severity = Severity.ERROR if surely else Severity.WARNING
    where = early[0].where[0] if early[0].where else ""
    yield Finding("launcher.before-strategy", severity, where, message)


def _makes_strategy(statement: ast.stmt) -> bool:
    """Return whether a statement makes the strategy whenever it runs."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.With)):
        return False
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == _STRATEGY
        for node in ast.walk(statement)
    )


def _one_process_findings(program: Program) -> tuple[Finding, ...]:
    from distrain_nb.program.advice import one_process

    return one_process(program.main, program.segments, program.tuned)
