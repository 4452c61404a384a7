"""A layout as a script for Slurm's `sbatch`, and such a script read as a layout."""

from __future__ import annotations

import re

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool
from distrain_nb.places.slurm import sbatch
from distrain_nb.places.slurm.script_command import started_script

IS_SCRIPT = re.compile(r"^#SBATCH\s", re.MULTILINE)

_TIME = re.compile(r"(?:(?P<d>\d+)-)?(?P<rest>\d+(?::\d+){0,2})")
_COUNT = re.compile(r".*:(\d+)")
_RANKS = re.compile(r"--nproc[-_]per[-_]node[= ](\d+)")
_NOTICE = re.compile(r"(?:SIG)?(?:TERM|USR1)(?:@(\d+))?")
_NODES = re.compile(r"(\d+)([km]?)(-.*)?", re.IGNORECASE)
_SIZE = re.compile(r"(\d+)([KMGT]?)", re.IGNORECASE)
_UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}
NOTICE_S = 60  # where `--signal` doesn't say
# What a layout says by itself, or has no meaning for a job of ours.
_OURS = frozenset(["job-name", "output", "error", "open-mode", "no-requeue", "parsable"])
# Where a script gives only a number of GPUs in all: what a node of most clusters has at most.
_GPUS_OF_A_NODE = 8


def options(layout: Layout) -> dict[str, str]:
    """Return the options of sbatch that a layout stands for, by name. Its nodes are alike: those
    of the first pool that names a machine."""
    machines = [pool.machine for _, pool in layout.pools() if pool.machine]
    asked = {"nodes": str(layout.size or 1), "ntasks-per-node": "1"}
    if machines:
        asked["gres"] = str(machines[0])
    if layout.timeout:
        asked["time"] = clock(layout.timeout)
    return asked


def text(layout: Layout) -> str:
    """Return a script for sbatch whose nodes start the ranks of `main.py`."""
    asked = options(layout)
    if layout.signal_before:
        asked["signal"] = f"TERM@{layout.signal_before}"
    ranks = max(1, layout.ranks_per_replica or gpus(asked.get("gres", "")))
    head = sbatch.heads({**asked, "cpus-per-task": str(ranks)})
    first = 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    start = [f"torchrun --nnodes={asked['nodes']} --nproc-per-node={ranks}"]
    start += ["--rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29500", "--rdzv-id=$SLURM_JOB_ID"]
    run = f"srun --kill-on-bad-exit=1 --cpus-per-task={ranks} {' '.join(start)} main.py"
    return "\n".join(["#!/bin/bash", *head, first, run, ""])


def from_script(script: str) -> Imported:
    """Return the layout of a script for sbatch. Of a job whose parts differ, it is that of the
    first part with GPUs, or of the first. Raises OptionError."""
    parts = [_Asked(part) for part in sbatch.in_script(script)]
    chosen = next((part for part in parts if part.asks_for_gpus), parts[0])
    others = (
        " ".join([sbatch.HET_JOB[0], *(sbatch.written(*pair) for pair in part.options.items())])
        for part in parts
        if part is not chosen
    )
    return chosen.imported(script, [other for other in others if other])


class _Asked:
    """The options of a job, each taken out when it is read."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = dict(options)
        self._lost: list[str] = []
        self._values: dict[str, object] = {}

    @property
    def asks_for_gpus(self) -> bool:
        gres = self.options.get("gres", "")
        by_task = self.options.get("tres-per-task", "")
        return "gpu" in f"{gres},{by_task}" or any(name.startswith("gpus") for name in self.options)

    def imported(self, script: str, others: list[str]) -> Imported:
        tasks, per_node = self._number("ntasks"), self._number("ntasks-per-node")
        nodes = self._nodes()
        kind, per_node_gpus, total = self._gpus(tasks, per_node, nodes)
        if not nodes:
            nodes = -(-tasks // per_node) if tasks and per_node else 0
            nodes = nodes or (-(-total // (per_node_gpus or _GPUS_OF_A_NODE)) if total else 1)
        per_node = per_node or (-(-tasks // nodes) if tasks else 0)
        if total and not per_node_gpus:
            per_node_gpus = -(-total // nodes)
            if total % nodes:
                self._lost.append(f"--gpus={total}")  # its nodes would differ
        machine = ":".join(filter(None, ("gpu", kind, str(per_node_gpus)))) if per_node_gpus else ""
        if not machine and "," not in self.options.get("gres", ","):
            machine = self.options.pop("gres")  # of another kind, such as a TPU
        started = _RANKS.search(script)
        ranks = int(started[1]) if started else per_node if per_node > 1 else None
        default = per_node_gpus or 1
        self._take_cpus(max(1, per_node), per_node_gpus, ranks or default)
        layout = Layout(
            "slurm",
            workers=Pool(nodes, machine or None),
            timeout=self._timeout(),
            signal_before=self._notice(),
            ranks_per_replica=None if ranks == default else ranks,
        )
        unread = [name for name in self.options if name not in _OURS]
        for name in unread:
            path, value = sbatch.written(name, self.options[name]), self.options[name]
            self._values.setdefault(path, value or True)
            self._lost.append(path)
        lost = (*self._lost, *others)
        return Imported("slurm-sbatch", layout, lost, started_script(script), self._values)

    def _nodes(self) -> int:
        """Take the number of nodes, the smallest of a range; 0 where none is said."""
        text = self.options.pop("nodes", "")
        match = _NODES.fullmatch(text)
        if text and not match:
            raise OptionError(f"invalid --nodes {shown(text)}: expected a number")
        if match is None:
            return 0
        if match[3]:
            self._lost.append(f"--nodes={text}")
        return int(match[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[match[2].lower()]

    def _gpus(self, tasks: int, per_node: int, nodes: int) -> tuple[str, int, int]:
        """Take all that asks for GPUs. Return their type, and how many a node has or all have
        together, 0 where that isn't said."""
        kind, of_node = self._gres()
        on_node = self._counted("gpus-per-node")
        sockets = self._number("sockets-per-node")
        of_socket = self._counted("gpus-per-socket")
        if of_socket and not sockets:
            raise OptionError(
                f"--gpus-per-socket={of_socket[1]}: how many GPUs a node has depends on its "
                "sockets: write --gpus-per-node, or --sockets-per-node besides"
            )
        of_task = self._counted("gpus-per-task") or self._tres_of_task()
        of_all = self._counted("gpus")
        tasks_of_gpu = self._number("ntasks-per-gpu")
        counts = [it for it in (on_node, of_socket, of_task, of_all) if it]
        kind = kind or next((it[0] for it in counts if it[0]), "")
        of_node = of_node or (on_node[1] if on_node else 0)
        of_node = of_node or (of_socket[1] * sockets if of_socket else 0)
        total = of_all[1] if of_all else 0
        if of_task and not of_node:
            if per_node:
                of_node = of_task[1] * per_node
            else:
                total = total or of_task[1] * max(1, tasks or nodes)
        if tasks_of_gpu and not (of_node or total):
            total = -(-tasks // tasks_of_gpu)
        return kind, of_node, total

    def _gres(self) -> tuple[str, int]:
        """Take the GPUs of `--gres`; what else it asks for stays."""
        text = self.options.pop("gres", "")
        rest, kind, count = [], "", 0
        for part in filter(None, text.split(",")):
            name, _, more = part.removeprefix("gres:").removeprefix("gres/").partition(":")
            if name != "gpu" or count:
                rest.append(part)
            else:
                kind, count = _kind_and_count(more or "1", "gres")
        if rest:
            self.options["gres"] = ",".join(rest)
        return kind, count

    def _tres_of_task(self) -> tuple[str, int] | None:
        text = self.options.get("tres-per-task", "")
        match = re.fullmatch(r"gres[/:]gpu[:=](.+)", text)
        if match is None:
            return None
        del self.options["tres-per-task"]
        return _kind_and_count(match[1].replace("=", ":"), "tres-per-task")

    def _counted(self, name: str) -> tuple[str, int] | None:
        """Take a count of GPUs, with or without their type."""
        text = self.options.pop(name, "")
        return _kind_and_count(text, name) if text else None

    def _take_cpus(self, tasks: int, gpus: int, ranks: int) -> None:
        """Have CPUs and memory as the cell's options count them, for a node."""
        of_task, of_gpu = self._number("cpus-per-task"), self._number("cpus-per-gpu")
        cpus = of_task * tasks or of_gpu * gpus
        if cpus and cpus != ranks:  # one for each rank, as ours has it
            name, number = ("cpus-per-task", of_task) if of_task else ("cpus-per-gpu", of_gpu)
            self._stays(sbatch.written(name, str(number)), str(cpus))
        for name, factor in (("mem-per-gpu", gpus), ("mem-per-cpu", cpus or tasks)):
            size = _SIZE.fullmatch(self.options.get(name, ""))
            if size and factor:
                path = sbatch.written(name, self.options.pop(name))
                self._stays(path, f"{int(size[1]) * factor}{size[2]}")

    def _stays(self, path: str, value: str) -> None:
        self._lost.append(path)
        self._values[path] = value

    def _timeout(self) -> int | None:
        time = self.options.pop("time", "")
        timeout = seconds(time)
        if time and timeout is None and time.lower() not in ("0", "infinite", "unlimited"):
            raise OptionError(f"invalid --time {shown(time)}: expected a time such as 1-12:00:00")
        return timeout or None

    def _notice(self) -> int | None:
        """Take how many seconds ahead of its end the steps of a job get SIGTERM, or our notice."""
        match = _NOTICE.fullmatch(self.options.get("signal", ""))
        if match is None:
            return None
        del self.options["signal"]
        return int(match[1] or NOTICE_S)

    def _number(self, name: str) -> int:
        value = self.options.pop(name, "0")
        if not value.isdecimal():
            raise OptionError(f"invalid --{name} {shown(value)}: expected a number")
        return int(value)


def _kind_and_count(text: str, option: str) -> tuple[str, int]:
    """Read `8`, `a100:8` or `a100`."""
    kind, colon, count = text.rpartition(":")
    if not colon and not text.isdecimal():
        kind, count = text, "1"
    if not count.isdecimal():
        raise OptionError(f"invalid --{option} {shown(text)}: expected a number, or TYPE:NUMBER")
    return kind, int(count)


def gpus(gres: str) -> int:
    """Return the GPUs in `gpu:8`, `gpu:a100:8` or `gpu`."""
    name, _, rest = gres.partition(":")
    match = _COUNT.fullmatch(f":{rest}")
    return 0 if name != "gpu" else int(match[1]) if match else 1


def seconds(text: str) -> int | None:
    """Return a time of Slurm's in seconds, `1-00:00:00` or `30:00`; None for no limit."""
    match = _TIME.fullmatch(text)
    if not match:
        return None
    numbers = [int(number) for number in match["rest"].split(":")]
    if match["d"] is not None:  # days-hours, days-hours:minutes, days-hours:minutes:seconds
        hours, minutes, rest = (*numbers, 0, 0)[:3]
        return int(match["d"]) * 86400 + hours * 3600 + minutes * 60 + rest
    if len(numbers) == 1:
        return numbers[0] * 60
    units = (1, 60, 3600)[: len(numbers)]
    return sum(number * unit for number, unit in zip(reversed(numbers), units, strict=True))


def clock(value: int) -> str:
    """Return seconds as sbatch takes them, `1-02:00:00`."""
    days, rest = divmod(value, 86400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def megabytes(text: str) -> float:
    """Return `64G` in MB, as `--mem` reads it; 0 for what is none."""
    number, unit = text.rstrip("KMGTkmgtBb"), text.upper().rstrip("B")[-1:]
    try:
        return float(number) * _UNITS.get(unit, 1)
    except ValueError:
        return 0.0
