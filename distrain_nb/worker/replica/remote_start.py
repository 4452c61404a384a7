"""Starts `mpirun`'s daemon on the other hosts of a job, whose containers have no SSH.

`mpirun` runs this module as it would run `ssh`: `… HOST COMMAND`. On each other host the worker
waits for that command, runs it and gives back its exit status. Whoever asks has to prove that it
belongs to the run: before the command comes its HMAC together with a challenge; the key is made of
the run's name and the program, which all hosts have and nobody else.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from queue import Queue
from typing import Any, Dict, List, Optional, Tuple

from distrain_nb.worker.files import failure, marks
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.machine import ports
from distrain_nb.worker.rank import rank
from distrain_nb.worker.rank.program import main_file
from distrain_nb.worker.replica.replica import Replica

# Hosts of a large job come up minutes apart.
HOSTS_ARE_UP_WITHIN_S = 1800.0
ANSWER_WITHIN_S = 30.0
HEARD_WITHIN_S = 5.0
HEARD_AT_ONCE = 64
LOOK_EVERY_S = 0.05
RETRY_EVERY_S = 0.2
LONGEST_MESSAGE = 1 << 20


def ask(host: str, command: str) -> int:
    """Run a command on a host of the job, for `mpirun`. Return its exit status."""
    replica = Replica.read(os.environ)
    address = replica.addresses[replica.hosts.index(host)]
    with _connect(address) as connection, connection.makefile("rwb") as stream:
        connection.settimeout(ANSWER_WITHIN_S)
        challenge = stream.readline().strip()
        message = json.dumps(command).encode()
        stream.write(_proof(challenge, message) + b" " + message + b"\n")
        stream.flush()
        connection.settimeout(None)
        answer = stream.readline()
    if not answer:
        print(f"{host} did not start a process for mpirun", file=sys.stderr)
        return 1
    outcome = json.loads(answer)
    if outcome["failure"]:
        _note(failure.Failure(**outcome["failure"]))
    return int(outcome["status"])


def wait(folder: Path) -> int:
    """Wait for the command, run it, and give the exit status that this host's ranks deserve."""
    launch = Launch.read(folder)
    with ports.listen(launch.awaits) as listener:
        connection, command = _requested(listener)
    with connection:
        status = subprocess.call(["sh", "-c", command], stdin=subprocess.DEVNULL)
        answer = {"status": status, "failure": _word(folder, launch)}
        connection.sendall(json.dumps(answer).encode() + b"\n")
    return status or _verdict(folder, launch)


def _word(folder: Path, launch: Launch) -> Optional[Dict[str, Any]]:
    """Return the first failure of a rank of this host, for the primary to report."""
    failures = [failure.read(folder, index) for index in range(len(launch.processes))]
    reported = [word for word in failures if word is not None]
    if not reported:
        return None
    cause = failure.first(reported)
    label = f"{launch.processes[cause.process].label} on {socket.gethostname()}"
    return asdict(replace(cause, process=failure.LAUNCHER, label=label))


def _note(word: failure.Failure) -> None:
    """Leave it to the primary's supervisor, unless another host's came first."""
    folder = Path(os.environ[rank.RUN_FOLDER_VARIABLE])
    earlier = failure.read(folder, failure.LAUNCHER)
    if earlier is None or word.began < earlier.began:
        word.write(folder)


def _verdict(folder: Path, launch: Launch) -> int:
    """Return the job's end by its ranks: `mpirun` ends its daemons alike whether it has succeeded
    or not."""
    ranks = range(len(launch.processes))
    unfinished = [index for index in ranks if not marks.has_succeeded(folder, index)]
    if unfinished and not any(failure.read(folder, index) for index in unfinished):
        why = "was stopped: a rank on another host has failed, or the job was ended there"
        failure.Failure(unfinished[0], time.time(), why).write(folder)
    return 1 if unfinished else 0


def _requested(listener: socket.socket) -> Tuple[socket.socket, str]:
    """Return the first proven command, and the connection that it came by; all others are
    closed."""
    end = time.monotonic() + HOSTS_ARE_UP_WITHIN_S
    listener.settimeout(LOOK_EVERY_S)
    proven: Queue[Tuple[socket.socket, str]] = Queue()
    heard: List[socket.socket] = []
    while proven.empty():
        if time.monotonic() > end:
            sys.exit("mpirun on the primary has not asked this host to start in half an hour")
        try:
            connection, _ = listener.accept()
        except socket.timeout:
            continue
        except OSError:  # it has gone again, or no descriptor is free
            time.sleep(LOOK_EVERY_S)
            continue
        heard = [candidate for candidate in heard if candidate.fileno() >= 0]
        if len(heard) >= HEARD_AT_ONCE:
            _close(heard.pop(0))
        heard.append(connection)
        threading.Thread(target=_hear, args=(connection, proven), daemon=True).start()
    connection, command = proven.get()
    for candidate in heard:
        if candidate is not connection:
            _close(candidate)
    return connection, command


def _hear(connection: socket.socket, proven: Queue[Tuple[socket.socket, str]]) -> None:
    """Read a request; refuse whoever can't prove in time that it is of this run."""
    try:
        proven.put((connection, _proven(connection)))
    except (OSError, ValueError):
        connection.close()


def _proven(connection: socket.socket) -> str:
    """Return the command that is asked for there, of which nothing is read before it is proven.

    Raises ValueError if the asker is not of this run.
    """
    end = time.monotonic() + HEARD_WITHIN_S
    challenge = secrets.token_hex(32).encode()
    connection.settimeout(HEARD_WITHIN_S)
    connection.sendall(challenge + b"\n")
    proof, _, message = _line(connection, end).partition(b" ")
    if not hmac.compare_digest(proof, _proof(challenge, message)):
        raise ValueError("it does not know the run")
    connection.settimeout(None)
    return str(json.loads(message))


def _line(connection: socket.socket, end: float) -> bytes:
    """Read one line, without its end. Raises OSError when it has not come in time."""
    line = bytearray()
    while not line.endswith(b"\n"):
        connection.settimeout(max(0.001, end - time.monotonic()))
        part = connection.recv(LONGEST_MESSAGE)
        if not part or len(line) + len(part) > LONGEST_MESSAGE or time.monotonic() > end:
            raise OSError("nothing whole has come")
        line += part
    return bytes(line[:-1])


def _close(connection: socket.socket) -> None:
    """End it for the thread too that reads from it."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _proof(challenge: bytes, message: bytes) -> bytes:
    program = main_file(Path(os.environ["DISTRAIN_PROGRAM"])).read_bytes()
    run = os.environ.get("DISTRAIN_RUN", "").encode("utf-8", "surrogateescape")
    key = hashlib.sha256(run + b"\n" + program).digest()
    return hmac.new(key, challenge + b"\n" + message, hashlib.sha256).hexdigest().encode()


def _connect(address: str) -> socket.socket:
    """Return a connection to that host as soon as it listens, within half an hour."""
    host, _, port = address.rpartition(":")
    end = time.monotonic() + HOSTS_ARE_UP_WITHIN_S
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=ANSWER_WITHIN_S)
        except OSError as error:
            if time.monotonic() > end:
                sys.exit(f"{address} has not come up in half an hour: {error}")
            time.sleep(RETRY_EVERY_S)


def main(arguments: List[str]) -> int:
    """Run `--wait FOLDER` on a host that is asked, `HOST COMMAND…` on the one that asks."""
    if arguments[0] == "--wait":
        return wait(Path(arguments[1]))
    return ask(arguments[0], " ".join(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
