"""Launchers: how the ranks of a job come to life, and which one a program wants."""

from __future__ import annotations

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
        f"launcher tensorflow starts one process a replica, not {ranks}: for {processes} that "
        "train together take as many replicas (--primary and --workers), without -n"
    )
    return Finding("launcher.one-rank", Severity.ERROR, "ranks_per_replica", message)


def _one_process_findings(program: Program) -> tuple[Finding, ...]:
    from distrain_nb.program.advice import one_process

    return one_process(program.main, program.segments, program.tuned)
