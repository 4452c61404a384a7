"""The processes that pack, one for each core: each gets one shard after the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    Mapping,
    Sequence,
    Tuple,
)

from distrain_nb.worker.machine.environment import variables
from distrain_nb.worker.packing.errors import PackingFailed
from distrain_nb.worker.packing.samples import (
    PackedSample,
)
from distrain_nb.worker.packing.storage import ShardFolder
from distrain_nb.worker.packing.tar import size_of

# Hears what is done now, and how many bytes of how many; of 0 where nobody knows.
Report = Callable[[str, int, int], None]
_SEEN_EVERY_S = 0.1
_PACKER = "distrain_nb.worker.packing.packer"


def packed(
    target: ShardFolder, shards: Mapping[str, Sequence[PackedSample]], report: Report
) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """Pack shards, and give the name and the record of each as soon as it is there and verified.

    Raises PackingFailed, after which the other processes have ended too.
    """
    total = sum(size_of(sample) for samples in shards.values() for sample in samples)
    todo: SimpleQueue[str] = SimpleQueue()
    for name in shards:
        todo.put(name)
    heard: SimpleQueue[Tuple[int, Dict[str, Any]]] = SimpleQueue()
    begun: Dict[int, int] = {}
    done, unfinished = 0, len(shards)
    with ExitStack() as stack:
        for number in range(min(len(os.sched_getaffinity(0)), len(shards))):
            packer = stack.enter_context(_packer(target))
            work = (number, packer, todo, shards, heard)
            Thread(target=_give, args=work, daemon=True).start()
        while unfinished:
            report(f"packing {target}", min(done + sum(begun.values()), total), total)
            with suppress(Empty):
                number, message = heard.get(timeout=_SEEN_EVERY_S)
                if "error" in message:
                    raise PackingFailed(message["error"])
                begun[number] = message.get("bytes", 0)
                if record := message.get("record"):
                    done, unfinished = done + record["size"], unfinished - 1
                    yield record["name"], record


@contextmanager
def _packer(target: ShardFolder) -> Iterator[subprocess.Popen[str]]:
    """Yield a packer process and the file of its standard error; end it with the block."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", _PACKER, target.place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**variables(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def _give(
    number: int,
    process: subprocess.Popen[str],
    todo: SimpleQueue[str],
    shards: Mapping[str, Sequence[PackedSample]],
    heard: SimpleQueue[Tuple[int, Dict[str, Any]]],
) -> None:
    """Hand shards to a packer process, one after the other, from a thread of its own."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(Empty):
        while True:
            name = todo.get_nowait()
            try:
                process.stdin.write(json.dumps({"name": name, "samples": shards[name]}) + "\n")
                process.stdin.flush()
                for line in process.stdout:
                    message = json.loads(line)
                    heard.put((number, message))
                    if "bytes" not in message:
                        break
                else:
                    heard.put((number, {"error": f"the process that packed {name} was killed"}))
                    return
            except (OSError, ValueError):
                heard.put((number, {"error": f"the process that packed {name} has died"}))
                return
