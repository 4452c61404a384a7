"""Proves steps of the world (`--prove N`): one rank makes them again, on the batches of all.

Each rank keeps its batches and what its steps came to, and ends after N of them. Then rank 0 joins
the batches and starts the program twice more as a world of one (`alone.py`). All ranks begin with
seeds that are known, so that one rank builds what rank 0 has built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from distrain_nb.worker.facts.deviations import Deviation
from distrain_nb.worker.facts.proof import (
    GRADIENTS,
    PROVE_VARIABLE,
    compared,
    parted,
    ranks_are_equal,
)
from distrain_nb.worker.facts.record import PROOF, RECORD
from distrain_nb.worker.files.folder import PROGRAM_FOLDER, PROOF_FOLDER
from distrain_nb.worker.machine import threads
from distrain_nb.worker.machine.environment import variables
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE
from distrain_nb.worker.rank import alone, determined
from distrain_nb.worker.rank.batches import Unprovable, joined, leaves
from distrain_nb.worker.rank.sharing import is_shard
from distrain_nb.worker.rank.stacks import place, setting
from distrain_nb.worker.rank.standby import Standby, can_fork
from distrain_nb.worker.rank.steps_followed import (
    AGAIN,
    ALONE,
    Key,
    StepsFollowed,
    load,
    parameters,
    save,
    settings,
)
from distrain_nb.worker.rank.weights import WATCH

_WAITS_FOR_ONE_S = 1800.0

_proving: Optional[Proving] = None


def begin(folder: Path) -> None:
    """Follow the steps of this rank, if its run is to prove some."""
    global _proving
    steps = setting(folder / PROGRAM_FOLDER, PROVE_VARIABLE)
    rank, world, here = (
        int(os.environ.get(name) or "1") for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    )
    if not steps:
        return
    if world < 2 or here < world:
        where = "one rank has no world to compare with" if world < 2 else "ranks share no machine"
        print(f"distrain: not proven: {where}", flush=True)
        return
    standby = _standby(folder) if rank == 0 and can_fork() else []
    determined.install(determined.SEED + rank)
    _proving = Proving(folder, rank, world, int(steps), standby)
    _proving.install()


def end(*, failed: bool) -> None:
    """Compare the steps, on rank 0, and say what has come of it."""
    if _proving is not None:
        if failed:
            _proving.leave()
        else:
            _proving.finish()


class Proving(StepsFollowed):
    """The steps of one rank of the world."""

    def __init__(
        self, folder: Path, rank: int, world: int, steps: int, standby: List[Standby]
    ) -> None:
        super().__init__(steps)
        self._standby = standby
        self._run_folder, self._folder = folder, folder / PROOF_FOLDER
        self._rank, self._world = rank, world
        self._environment, self._working_folder = variables(), os.getcwd()
        self._reason = ""
        self._batches: Dict[Key, List[Any]] = {}
        self._ends: Dict[int, int] = {}
        self._states: Dict[int, List[Any]] = {}
        self._settings: List[List[Dict[str, Any]]] = []
        self._read = 0  # batches
        self._read_before: Dict[int, int] = {}  # an optimizer's last step
        self._drawn: Optional[int] = None  # of the generators, when the program got its batch
        self._names: Dict[int, List[str]] = {}

    def batch(self, key: Key, fetch: Callable[[], Any]) -> Any:
        self._check_draws()
        try:
            batch = fetch()
        except StopIteration:
            self._ends[key[0]] = key[1]
            raise
        try:
            self._batches[key] = leaves(batch)
        except Unprovable as error:
            self._refuse(str(error))
        self._read += 1
        self._drawn = determined.drawn()
        return batch

    def before_step(self, number: int, optimizer: Any) -> None:
        if number not in self._states:
            tensors = parameters(optimizer)
            if any(map(is_shard, tensors)):
                self._refuse("its weights are sharded")
            names = WATCH.names()
            shown = [f"parameter {n} of the optimizer" for n in range(len(tensors))]
            self._names[number] = [names.get(id(t), s) for t, s in zip(tensors, shown)]
            self._states[number] = [tensor.detach().clone().cpu() for tensor in tensors]
        self._settings.append(settings(optimizer))
        if self._read == self._read_before.get(number, 0):
            self._refuse("its steps read no batch from a loader of PyTorch")

    def after_step(self, number: int, optimizer: Any) -> None:
        self._check_draws()
        self._drawn, self._read_before[number] = None, self._read
        super().after_step(number, optimizer)

    def end(self) -> None:
        raise SystemExit(0)

    def finish(self) -> None:
        """Leave what this rank has done; on rank 0, compare."""
        self.is_over = True
        if not self.rows:
            self._refuse("no optimizer of PyTorch has made a step")
        if "horovod" in sys.modules:
            self._refuse("Horovod's ranks need its launcher")
        self._write()
        if self._rank == 0:
            try:
                print(f"distrain: {self._verdict()}", flush=True)
            except Exception as error:  # a full disk, a rank that has gone
                print(f"distrain: not proven: {error!r}", flush=True)
            finally:
                self.leave()

    def leave(self) -> None:
        """Remove what ranks have left for the comparison."""
        for process in self._standby:
            process.release()
        shutil.rmtree(str(self._folder), ignore_errors=True)

    def _refuse(self, reason: str) -> None:
        self._reason = self._reason or reason

    def _check_draws(self) -> None:
        if self._drawn is not None and self._drawn != determined.drawn():
            self._refuse(f"its steps draw random numbers, before {place()}")

    def _write(self) -> None:
        record = {
            "batches": self._batches,
            "ends": self._ends,
            "rows": self.rows,
            "reason": self._reason or next(iter(determined.unprovable), ""),
            "off": sorted(determined.turned_off),
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        save(record, self._folder / f"rank-{self._rank}")

    def _verdict(self) -> str:
        """Return the sentence about the proof, whose finding becomes a fact."""
        records = [load(self._folder / f"rank-{rank}") for rank in range(self._world)]
        rows = {rank: record["rows"] for rank, record in enumerate(records)}
        try:
            for record in records:
                if record["reason"]:
                    raise Unprovable(record["reason"])
            one, again = self._alone(records)
        except Unprovable as error:
            return f"not proven: {error}{_instead(rows)}"
        comparison = compared(rows, one, again)
        off = sorted({name for record in records for name in record["off"]})
        without = f", compared with {' and '.join(off)}" if off else ""
        if comparison.parted is None:
            return (
                f"proven: {comparison.steps} steps of {self._world} ranks are those of one rank on"
                f" the batches of all{without} (largest difference: {comparison.largest:.0e})"
            )
        finding = self._note(comparison.parted, rows)
        return f"not as one rank{without}: {finding.sentence}"

    def _note(self, fields: Dict[str, Any], rows: Dict[int, List[Dict[str, Any]]]) -> Deviation:
        optimizer = rows[0][fields["step"] - 1]["optimizer"]
        tensor = self._names[optimizer][fields.pop("number")]
        prefix = "the gradient of " if fields.pop("kind") == GRADIENTS else ""
        ranks, line = fields.pop("ranks"), fields.pop("place")
        fact = {"of_ranks": ranks, "place": line, "fields": {"tensor": prefix + tensor, **fields}}
        RECORD.note(PROOF, **fact)
        return parted(fact)

    def _alone(self, records: Sequence[Dict[str, Any]]) -> Tuple[Any, Any]:
        """Have one rank make the steps twice; return its rows. Raises Unprovable."""
        steps = min(len(record["rows"]) for record in records)
        keys = [set(record["batches"]) for record in records]
        if any(other != keys[0] for other in keys):
            raise Unprovable("its ranks have read different numbers of batches")
        if len({tuple(row["optimizer"] for row in r["rows"][:steps]) for r in records}) > 1:
            raise Unprovable("its ranks have stepped different optimizers")
        common = {"states": self._states, "settings": self._settings, "steps": steps}
        common["ends"] = records[0]["ends"]
        started = []
        for name in (ALONE, AGAIN):
            batches = {
                key: joined([r["batches"][key] for r in records], turned=name == AGAIN)
                for key in keys[0]
            }
            save({**common, "batches": batches}, self._folder / name)
            started.append((name, self._start(name)))
        results = []
        for name, process in started:
            process.wait(_WAITS_FOR_ONE_S)
            results.append(_result(self._folder / f"{name}-rows", process.returncode))
        return results[0], results[1]

    def _threads(self) -> Dict[str, str]:
        """Return how many threads one rank computes with: all those of the world, twice in half."""
        number = self._environment.get(threads.VARIABLE, "")
        shared = int(number) * self._world // len((ALONE, AGAIN)) if number.isdigit() else 0
        return {threads.VARIABLE: str(shared)} if shared else {}

    def _start(self, name: str) -> Union[Standby, subprocess.Popen[bytes]]:
        package = str(Path(__file__).parents[3])
        path = [package, *filter(None, [self._environment.get("PYTHONPATH")])]
        environment = {
            **self._environment,
            **dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK"), "0"),
            **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"), "1"),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            "WANDB_MODE": "disabled",
            FOLDER_VARIABLE: str(self._folder / "events"),
            "PYTHONPATH": os.pathsep.join(path),
            **self._threads(),
        }
        log_file = self._folder / f"{name}.log"
        while self._standby:
            process = self._standby.pop()
            try:
                process.start(self._folder / name, environment, log_file)
                return process
            except OSError:  # the program has ended it, or closed what it doesn't know
                continue
        with open(str(log_file), "wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "distrain_nb.worker.rank.alone", str(self._run_folder),
                 str(self._folder / name)],
                env=environment, cwd=self._working_folder, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT,
            )  # fmt: skip


def _standby(folder: Path) -> List[Standby]:
    """Fork a process for each time that one rank makes the steps."""

    try:
        return [Standby(partial(alone.run, folder)) for _ in (ALONE, AGAIN)]
    except OSError:  # no more processes
        return []


def _instead(rows: Dict[int, List[Dict[str, Any]]]) -> str:
    """Return what was compared where one rank says nothing."""
    steps = min(map(len, rows.values()))
    if not steps:
        return ""
    says = "are equal" if ranks_are_equal(rows) else "differ"
    return (
        f". Its ranks were compared with each other instead: their weights {says} in {steps} steps"
    )


def _result(path: Path, status: int) -> Any:
    if not path.exists():
        raise Unprovable(f"a world of one rank has ended with status {status} before these steps")
    result = load(path)
    if "error" in result:
        raise Unprovable(f"a world of one rank fails: {result['error']}")
    return result["rows"]


def _free_port() -> int:
    with closing(socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
