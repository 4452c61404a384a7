"""The actor of a replica on its node of a Ray cluster: it starts our worker and reads its files.

It travels with each job: standard library, Ray and our worker only, Python 3.8.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Set, Tuple

PIECE = 4 << 20
PARCEL = 8 << 20
REPLACED = ("launch.json", "status.json")  # all other files are only added to
FETCHED = ("tensorboard", "results")  # of what the program leaves
ASKED = ("asked-*", "reply-*", "quit")  # what `worker/files/prompts.py` has for others
PR_SET_PDEATHSIG = 1

Piece = Tuple[str, int, bytes]


def order_package(job: str, number: int) -> str:
    """Return the name of the package that an order of a session comes in."""
    return f"_ray_pkg_{hashlib.sha256(f'{job} {number}'.encode()).hexdigest()[:32]}.zip"


class ReplicaActor:
    """A replica: `shared` is the job's folder that all machines have, empty where there is none;
    `variables` is the text of `variables.json` otherwise."""

    def __init__(self, index: int, shared: str, variables: str) -> None:
        self._index, self._shared = index, bool(shared)
        attempt = json.loads(variables or "{}").get("DISTRAIN_ATTEMPT", "1")
        self._name = f"{index}.{attempt}" if int(attempt) > 1 else str(index)
        self._folder = Path(shared or tempfile.mkdtemp(prefix="distrain-"))
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._sent: Dict[str, Tuple[Tuple[int, int], int]] = {}
        self._answered: Set[Path] = set()  # orders of a session
        if not shared:
            here = Path.cwd()  # where Ray has unpacked the code on this node
            (self._folder / "code").symlink_to(here / "code")
            shutil.copy(str(here / "start.py"), str(self._folder))
            # `mkdtemp` lets nobody else in.
            (self._folder / "variables.json").write_text(variables, encoding="utf-8")
        worker = str(self._folder / "code" / "worker")
        if worker not in sys.path:
            sys.path.insert(0, worker)

    def address(self) -> str:
        """Return where the other replicas reach this one, with a port that is held for it."""
        import ray

        from distrain_nb.worker.machine.ports import HeldPort

        self._port = HeldPort("")
        return f"{ray.util.get_node_ip_address()}:{self._port.number}"

    def start(self, hosts: str) -> None:
        """Start the worker; `hosts` are the addresses of all replicas."""
        environment = dict(os.environ)
        environment.pop("OMP_NUM_THREADS", None)  # Ray counts the CPUs of all ranks together
        words = self._folder / "replicas" / self._name / "said"
        words.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(self._folder / "start.py"), str(self._index), hosts]
        with words.open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=str(self._folder), env=environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, preexec_fn=_before_exec,
            )  # fmt: skip

    def pull(self) -> Tuple[List[Piece], Optional[int]]:
        """Return what has been written since, and the worker's exit status once it has ended."""
        code = self._process.poll() if self._process else None
        if self._shared:
            return [], code
        pieces: List[Piece] = []
        room = PARCEL
        orders = [path for path in self._orders() if path not in self._answered]
        answers = {path: (path / "answer.json").read_bytes()
                   for path in orders if (path / "answer.json").exists()}  # fmt: skip
        for name in (*self._files(), *self._ordered(orders)):
            for piece in self._grown(name):
                pieces.append(piece)
                room -= len(piece[2])
                if room <= 0:
                    return pieces, code
        for path, data in answers.items():  # all that is before an answer has been read after it
            pieces.append((str(path.relative_to(self._folder) / "answer.json"), -1, data))
            self._answered.add(path)
        return pieces, code

    def deliver(self, order: bytes) -> None:
        """Have an order of a session where the worker looks for it."""
        from distrain_nb.worker.files import orders

        orders.unpack(self._folder, order)

    def _orders(self) -> Iterator[Path]:
        yield from self._folder.glob(f"ordered/*/replicas/{self._index}")

    def _ordered(self, orders: List[Path]) -> Iterator[str]:
        """Yield the files of orders that are at work, or have ended since the last time."""
        for place in orders:
            names = [place / name for name in ("launch.json", "log.tsv", "status.json")]
            names += [path for name in ASKED for path in place.glob(f"prompts/{name}")]
            for folder in (place / "values", *(place.parents[1] / "output" / n for n in FETCHED)):
                names += sorted(folder.rglob("*"))
            for path in names:
                if path.is_file() and not path.is_symlink():
                    yield str(path.relative_to(self._folder))

    def notify(self) -> None:
        """Tell the worker that the time limit is near."""
        if self._process:
            self._process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        """Have the ranks end."""
        if self._process:
            self._process.terminate()

    def close(self) -> str:
        """Remove the replica's folder; return where it is, if the program left more there than is
        brought."""
        if self._process and self._process.poll() is None:
            self._process.kill()
        if self._shared:
            return ""
        (self._folder / "variables.json").unlink()
        for output in (self._folder / "output", *self._folder.glob("ordered/*/output")):
            more = [path for path in output.glob("*/**/*") if path.is_file()]
            if any(path.relative_to(output).parts[0] not in FETCHED for path in more):
                import ray

                return f"left on node {ray.util.get_node_ip_address()}: {output}"
        shutil.rmtree(str(self._folder), ignore_errors=True)
        return ""

    def _files(self) -> Iterator[str]:
        folder = Path("replicas") / self._name
        names = [str(folder / name) for name in ("launch.json", "log.tsv", "status.json", "said")]
        tables = sorted((self._folder / folder).glob("names-*.json"))  # of ranks that stay
        asked = [p for name in ASKED for p in (self._folder / folder / "prompts").glob(name)]
        names += [str(path.relative_to(self._folder)) for path in (*tables, *asked)]
        for name in FETCHED:
            below = (self._folder / "output" / name).rglob("*")
            names += [str(path.relative_to(self._folder)) for path in sorted(below)]
        for name in names:
            path = self._folder / name
            if path.is_file() and not path.is_symlink():
                yield name

    def _grown(self, name: str) -> Iterator[Piece]:
        """Yield what a file has grown by; one that is replaced as a whole, as a whole."""
        path = self._folder / name
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            now = status.st_ino, status.st_mtime_ns
            inode, at = self._sent.get(name, (now, 0))
            if path.name in REPLACED or path.name.startswith("names-"):
                if name not in self._sent or inode != now:
                    self._sent[name] = now, 0
                    yield name, -1, file.read()
                return
            if inode[0] != now[0] or status.st_size < at:  # written anew
                at = 0
            if name not in self._sent and not status.st_size:
                self._sent[name] = now, 0
                yield name, 0, b""
            file.seek(at)
            while at < status.st_size:
                data = file.read(min(PIECE, status.st_size - at))
                if not data:
                    return
                self._sent[name] = now, at + len(data)
                yield name, at, data
                at += len(data)


def _before_exec() -> None:
    """Have the worker end with the actor, and keep a notice for it until it is up."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
