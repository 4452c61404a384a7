"""What the cluster's own limits say of a job, before it is submitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.job import Job
from distrain_nb.backends.options import read_options
from distrain_nb.config import Config
from distrain_nb.errors import did_you_mean
from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.layout import Layout
from distrain_nb.layout.durations import duration
from distrain_nb.layout.words import quoted
from distrain_nb.places.slurm import forms, sinfo
from distrain_nb.places.slurm.controller import is_unencrypted
from distrain_nb.places.slurm.options import SlurmOptions, chosen_sbatch_options
from distrain_nb.places.slurm.sinfo import Nodes, SlurmPartition
from distrain_nb.repairs import with_option

if TYPE_CHECKING:
    from distrain_nb.places.slurm.options import SlurmJob

_MOST_FIXES = 3


def partitions_of(job: SlurmJob) -> dict[str, SlurmPartition]:
    """Return the cluster's partitions, as far as they came with the job."""
    return sinfo.read(job.machine.get("sinfo", ""), job.machine.get("partitions", ""))


def partition_of(job: SlurmJob) -> SlurmPartition | None:
    """Return the partition that a job goes to; None where it isn't known."""
    partitions = partitions_of(job)
    if job.options.partition:
        return partitions.get(job.options.partition)
    return next((partition for partition in partitions.values() if partition.default), None)


def about(
    layout: Layout, texts: Mapping[str, str], machine: Callable[[SlurmJob], Mapping[str, str]]
) -> Iterator[Finding]:
    """Yield the findings about a layout and texts of options, whatever program runs on it."""
    from distrain_nb.program import NO_PROGRAM

    options = read_options(SlurmOptions, texts, Config.load().of_backends)
    job = Job(NO_PROGRAM, layout, Path.cwd(), options)
    job = replace(job, machine=machine(job))
    gpus = forms.gpus(forms.options(layout).get("gres", ""))
    yield from findings(job, sbatch_options(job, layout.ranks_per_replica or max(1, gpus)))


def sbatch_options(job: SlurmJob, ranks: int) -> dict[str, str]:
    """Return the options of sbatch for a job with that many ranks on a node."""
    options = forms.options(job.layout)
    if job.options.cpus or not job.options.exclusive:  # a node of one's own has all of its CPUs
        options["cpus-per-task"] = job.options.cpus or str(ranks)
    if job.layout.signal_before:
        options["signal"] = f"USR1@{job.layout.signal_before}"  # the worker's; ranks ignore it
    return {**options, **dict(chosen_sbatch_options(job.options)), "chdir": str(job.folder)}


def findings(job: SlurmJob, options: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what sbatch would refuse, or accept and never start."""
    if job.machine.get("sbatch") == "":
        message = (
            "sbatch is not on this machine's PATH: start the notebook where Slurm's commands are, "
            "such as on a login node, or keep the address of a slurmrestd by "
            "`%distrain config slurm_url=http://HOST:6820`"
        )
        yield _error("no-sbatch", "", message)
    if job.machine.get("trouble"):
        yield _error("slurmrestd", "url", job.machine["trouble"])
    if is_unencrypted(job.options.url):
        message = (
            f"the token for {job.options.url} crosses the network in plain text: whoever reads it "
            "there can start jobs as you until it expires"
        )
        yield Finding("slurm.plain-http", Severity.WARNING, "url", message)
    machines = sinfo.machines(job.layout)
    if len(machines) > 1:
        message = f"all nodes of a job are alike on Slurm: choose one of {', '.join(machines)}"
        yield _error("one-machine", "workers.machine", message)
    partitions = partitions_of(job)
    chosen = job.options.partition
    partition = partition_of(job)
    if chosen and partitions and "," not in chosen and partition is None:
        message = f"the cluster has no partition {chosen!r}{did_you_mean(chosen, partitions, '.')}"
        others = _others(job, options, partitions.values())
        yield _error(
            "partition", "partition", f"{message} There are {', '.join(partitions)}", others
        )
    if partition:
        yield from _beyond(job, options, partition, partitions.values())


def _beyond(
    job: SlurmJob,
    options: Mapping[str, str],
    partition: SlurmPartition,
    partitions: Iterable[SlurmPartition],
) -> Iterator[Finding]:
    """Yield in what a job goes beyond its partition."""
    others = _others(job, options, partitions)
    name = f"partition {partition.name}"
    if not partition.up:
        yield _error("partition-down", "partition", f"{name} is down: jobs wait there", others)
    if job.layout.timeout and partition.longest and job.layout.timeout > partition.longest:
        message = f"{name} has a limit of {duration(partition.longest)} for a job's time"
        longest = _fix("--timeout", duration(partition.longest))
        yield _error("time", "timeout", message, [longest, *others])
    account = job.options.account
    if account and partition.accounts and account not in partition.accounts:
        message = f"{name} takes no jobs of account {account}, only of "
        message += ", ".join(partition.accounts)
        fixes = [_fix("--account", other) for other in partition.accounts]
        yield _error("account", "account", message, [*fixes[:_MOST_FIXES], *others])
    lacking = list(_lacking(job, options, partition))
    for code, where, message, fixes in lacking:
        yield _error(code, where, f"{name}: {message}", [*fixes, *others])
    enough = sum(nodes.number for nodes in _fitting(job, options, partition))
    needed, limit = int(options["nodes"]), min(enough, partition.limit)
    if not lacking and needed > limit:
        kind = "nodes for a job" if limit == partition.most else "such nodes"
        message = f"{needed} nodes are more than {name} has: {limit} {kind}"
        fewer = [_workers(job, limit)] if job.layout.workers and limit > 1 else []
        yield _error("nodes", "workers", message, [*fewer, *others])


def _lacking(
    job: SlurmJob, options: Mapping[str, str], partition: SlurmPartition
) -> Iterator[tuple[str, str, str, list[Fix[str]]]]:
    """Yield what no node of a partition has, each with the repairs that its nodes allow."""
    nodes = partition.nodes
    gres = options.get("gres", "")
    if gres and not any(group.has(gres) for group in nodes):
        there = sorted({held for group in nodes for held in group.gres}) or ["none"]
        message = f"no node has {gres}; nodes have {', '.join(there)}"
        less = [_machine(job, held) for held in _less(gres, nodes)]
        yield "gres", "workers.machine", message, [fix for fix in less if fix]
    cpus = options.get("cpus-per-task", "1")
    most = max((group.cpus for group in nodes), default=0)
    if cpus.isdigit() and most and int(cpus) > most:
        where = "cpus" if job.options.cpus else "ranks_per_replica"
        fix = _fix("--cpus", str(most)) if job.options.cpus else _fix("-n", str(most))
        yield "cpus", where, f"no node has {cpus} CPUs; the most is {most}", [fix]
    memory, held = forms.megabytes(job.options.memory), max((n.memory for n in nodes), default=0)
    if memory and held and memory > held:
        message = f"no node has {job.options.memory} of memory; the most is {held}M"
        yield "memory", "memory", message, [_fix("--memory", f"{held}M")]
    feature = job.options.constraint
    features = sorted({feature for group in nodes for feature in group.features})
    if feature.replace("_", "").replace("-", "").isalnum() and feature not in features:
        names = ", ".join(features) or "none"
        message = f"no node has the feature {feature}; there are {names}"
        fixes = [_fix("--constraint", other) for other in features[:_MOST_FIXES]]
        yield "constraint", "constraint", message, fixes


def _fitting(
    job: SlurmJob, options: Mapping[str, str], partition: SlurmPartition
) -> Iterator[Nodes]:
    """Yield the nodes that have all that is asked for."""
    gres, cpus = options.get("gres", ""), options.get("cpus-per-task", "1")
    memory, feature = forms.megabytes(job.options.memory), job.options.constraint
    for nodes in partition.nodes:
        if (
            (not gres or nodes.has(gres))
            and (not cpus.isdigit() or int(cpus) <= nodes.cpus)
            and memory <= nodes.memory
            and (not feature.isalnum() or feature in nodes.features)
        ):
            yield nodes


def _others(
    job: SlurmJob, options: Mapping[str, str], partitions: Iterable[SlurmPartition]
) -> list[Fix[str]]:
    """Return the partitions in which the job could run as it is."""
    fixes = []
    for partition in partitions:
        enough = sum(nodes.number for nodes in _fitting(job, options, partition))
        fits = int(options["nodes"]) <= min(enough, partition.limit)
        long = partition.longest is None or (job.layout.timeout or 0) <= partition.longest
        if partition.up and fits and long and partition.name != job.options.partition:
            fixes.append(_fix("--partition", partition.name))
    return fixes[:_MOST_FIXES]


def _less(gres: str, nodes: Iterable[Nodes]) -> Iterator[str]:
    """Yield what nodes have of the same name, such as fewer GPUs."""
    name = sinfo.parts(gres)[0]
    held = {sinfo.parts(text) for group in nodes for text in group.gres}
    for of, kind, count in sorted(held):
        if of == name:
            yield ":".join(filter(None, (of, kind, str(count))))


def _machine(job: SlurmJob, machine: str) -> Fix[str] | None:
    pool = job.layout.workers or job.layout.primary
    role = "--workers" if job.layout.workers else "--primary"
    if pool is None:
        return None
    count = f"{pool.replicas}*" if pool.replicas != 1 else ""
    return _fix(role, f"{count}{machine}")


def _workers(job: SlurmJob, limit: int) -> Fix[str]:
    pool = job.layout.workers
    machine = f"*{pool.machine}" if pool and pool.machine else ""
    others = job.layout.size - (pool.replicas if pool else 0)
    return _fix("--workers", f"{max(1, limit - others)}{machine}")


def _fix(name: str, value: str) -> Fix[str]:
    names = [name, "--ranks-per-replica"] if name == "-n" else [name]
    written = f"{name} {quoted(value)}"
    return Fix(f"Write `{written}`", _written(names, written))


def _written(names: list[str], written: str) -> Callable[[str], str]:
    return lambda text: with_option(text, names, written)


def _error(code: str, where: str, message: str, fixes: Iterable[Fix[str]] = ()) -> Finding:
    return Finding(f"slurm.{code}", Severity.ERROR, where, message, tuple(fixes))
