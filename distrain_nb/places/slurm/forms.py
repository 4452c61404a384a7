"""A layout as a script for Slurm's `sbatch`, and such a script read as a layout."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.formats.pieces import Imported
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool

IS_SCRIPT = re.compile(r"^#SBATCH\s", re.MULTILINE)

_TIME = re.compile(r"(?:(?P<d>\d+)-)?(?P<rest>\d+(?::\d+){0,2})")
_COUNT = re.compile(r".*:(\d+)")
_SHORT = {"-N": "nodes", "-n": "ntasks", "-t": "time", "-p": "partition", "-c": "cpus-per-task"}
_RANKS = re.compile(r"--nproc[-_]per[-_]node[= ](\d+)")
# What a layout says by itself, or has no meaning for a job of ours.
_NOTICE = re.compile(r"(?:SIG)?(?:TERM|USR1)(?:@(\d+))?")
_UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}
NOTICE_S = 60  # where `--signal` doesn't say
_OURS = frozenset(["job-name", "output", "error", "open-mode", "no-requeue"])


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
    head = [f"#SBATCH --{name}={value}" for name, value in asked.items()]
    head.append(f"#SBATCH --cpus-per-task={ranks}")
    first = 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    start = [f"torchrun --nnodes={asked['nodes']} --nproc-per-node={ranks}"]
    start += ["--rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29500", "--rdzv-id=$SLURM_JOB_ID"]
    run = f"srun --kill-on-bad-exit=1 --cpus-per-task={ranks} {' '.join(start)} main.py"
    return "\n".join(["#!/bin/bash", *head, first, run, ""])


def from_script(script: str) -> Imported:
    """Return the layout of a script for sbatch. Raises OptionError."""
    asked = dict(_read(script))
    tasks = _number(asked, "ntasks")
    per_node = _number(asked, "ntasks-per-node")
    nodes = _number(asked, "nodes") or (-(-tasks // per_node) if tasks and per_node else 1)
    per_node = per_node or (tasks // nodes if tasks else 0)
    started = _RANKS.search(script)
    ranks = int(started[1]) if started else per_node if per_node > 1 else None
    machine = _machine(asked)
    time = asked.pop("time", "")
    timeout = seconds(time)
    if time and timeout is None and time.lower() not in ("0", "infinite", "unlimited"):
        raise OptionError(f"invalid --time {shown(time)}: expected a time such as 1-12:00:00")
    same = ranks is not None and ranks == (gpus(machine or "") or 1)
    layout = Layout(
        "slurm",
        workers=Pool(nodes, machine),
        timeout=timeout or None,
        signal_before=_notice(asked),
        ranks_per_replica=None if same else ranks,
    )
    if asked.get("cpus-per-task") == str(ranks or gpus(machine or "") or 1):
        del asked["cpus-per-task"]  # one for each rank, as ours has it
    unread = (name for name in asked if name not in _OURS)
    return Imported("slurm-sbatch", layout, tuple(_written(name, asked[name]) for name in unread))


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


def _read(script: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a script, up to its first command, as sbatch reads them."""
    for line in script.splitlines():
        if line.startswith("#SBATCH"):
            try:
                words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError as error:
                raise OptionError(f"invalid line {shown(line)}: {error}") from None
            yield from _pairs(words)
        elif line.strip() and not line.startswith("#"):
            return


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            following = "" if equals else next(rest, "")
            yield name.removeprefix("--"), value or following
        elif name[:2] in _SHORT:
            yield _SHORT[name[:2]], word[2:] or next(rest, "")
        else:
            yield word, ""


def _notice(asked: dict[str, str]) -> int | None:
    """Take how many seconds ahead of its end the steps of a job get SIGTERM, or our notice."""
    match = _NOTICE.fullmatch(asked.get("signal", ""))
    if match is None:
        return None
    del asked["signal"]
    return int(match[1] or NOTICE_S)


def _number(asked: dict[str, str], name: str) -> int:
    """Take a number; the smaller of `2-4`."""
    value = asked.pop(name, "0").partition("-")[0]
    if not value.isdigit():
        raise OptionError(f"invalid --{name} {shown(value)}: expected a number")
    return int(value)


def _machine(asked: dict[str, str]) -> str | None:
    gres = asked.get("gres", "")
    if gres and "," not in gres:
        return asked.pop("gres")
    per_node = asked.pop("gpus-per-node", "")
    return f"gpu:{per_node}" if per_node else None


def _written(name: str, value: str) -> str:
    return f"--{name}={value}" if value else f"--{name}"


def heads(asked: Mapping[str, str]) -> Iterator[str]:
    """Yield options of sbatch as it reads them from a script: values in double quotes where they
    need some. Raises OptionError for a line break."""
    for name, value in asked.items():
        if "\n" in value:
            raise OptionError(f"invalid --{name} {shown(value)}: expected one line")
        if set(value) & set(" \"'\\#"):
            value = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        yield f"#SBATCH {_written(name, value)}"
