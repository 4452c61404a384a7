"""A process that packs: shards come as lines of JSON, what has become of each goes back as one."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Dict, Mapping

from distrain_nb.worker.packing.errors import PackingFailed
from distrain_nb.worker.packing.samples import PackedMember, PackedSample
from distrain_nb.worker.packing.storage import ShardFolder
from distrain_nb.worker.packing.tar import checksum_of, write_shard

SAID_EVERY_S = 0.1


def pack_shard(target: ShardFolder, name: str, task: Mapping[str, Any]) -> Dict[str, Any]:
    """Write a shard, read it again, and give what the index has of it. Raises PackingFailed."""
    samples = [
        PackedSample(key, tuple(PackedMember(*member) for member in members))
        for key, members in task["samples"]
    ]
    counter = _Counter()
    with target.writing(name) as file:
        record = write_shard(file, samples, counter.add)
    if checksum_of(target.at(name)) != record["sha256"]:
        raise PackingFailed(f"{target.at(name)} differs from what was written: check the disk")
    return {"name": name, **record}


class _Counter:
    """Says from time to time how many bytes were written."""

    def __init__(self) -> None:
        self._bytes, self._reported_at = 0, time.monotonic()

    def add(self, size: int) -> None:
        self._bytes += size
        if time.monotonic() > self._reported_at + SAID_EVERY_S:
            _say({"bytes": self._bytes})
            self._reported_at = time.monotonic()


def _say(message: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Pack shards until nobody sends more."""
    target = ShardFolder(sys.argv[1])
    for line in sys.stdin:
        task = json.loads(line)
        try:
            _say({"record": pack_shard(target, task["name"], task)})
        except (PackingFailed, OSError) as error:
            _say({"error": str(error)})
        except Exception as error:  # whatever a bucket's library raises
            _say({"error": f"{task['name']}: {type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
