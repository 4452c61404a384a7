"""Requests to the servers of this machine: a fork server is to take a run, or to import modules
that one may need; a session is to take a run, or to answer a question.

A request is one datagram, with a pipe for the answer. A datagram is whole or not there, so no
client can keep others waiting by saying nothing, and none is harmed by another that goes away. The
pipe's writing end travels with it; when it closes without an answer, the server has ended before it
took the run.
"""

from __future__ import annotations

import array
import json
import os
import select
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

from distrain_nb.worker.files.status import Owner

TAKEN = "taken"
LONGEST_PATH = 1 << 16
_INT = array.array("i").itemsize
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Awaited:
    """What a client asks that waits for the answer at a descriptor."""

    answer: int

    @property
    def is_awaited(self) -> bool:
        """Whether anybody still reads the answer."""
        polled = select.poll()
        polled.register(self.answer, 0)  # a pipe that nobody reads is an error, always told
        return not polled.poll(0)

    def reply(self, text: str) -> None:
        """Say that a run is `TAKEN`, why it can't be, or what was asked; whoever asked may be
        gone."""
        try:
            os.set_blocking(self.answer, False)
            os.write(self.answer, text.encode("utf-8", "replace"))
        except OSError:
            pass
        self.close()

    def close(self) -> None:
        os.close(self.answer)


@dataclass(frozen=True)
class Request(Awaited):
    """A run's folder."""

    folder: Path
    answer: int


@dataclass(frozen=True)
class SessionQuery(Awaited):
    """A question to a session: JSON values by name."""

    words: Dict[str, Any]
    answer: int


@dataclass(frozen=True)
class Warming:
    """Modules to import before a run needs them, for a kernel that may start one."""

    kernel: Owner
    modules: Tuple[str, ...]

    def words(self) -> List[str]:
        return [str(self.kernel.pid), self.kernel.started, *self.modules]

    @classmethod
    def of(cls, words: List[str]) -> Warming:
        """Raise ValueError."""
        pid, started, *modules = words
        return cls(Owner(int(pid), started), tuple(modules))


Asked = Union[Request, SessionQuery, Warming]


def send(address: Path, request: Asked) -> bool:
    """Ask the server at that address; say whether there is one."""
    if isinstance(request, (Request, SessionQuery)):
        data = _text_of(request)
        answer = array.array("i", [request.answer]).tobytes()
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, answer)]
    else:
        data, control = json.dumps(request.words()).encode(), []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection, _short(address) as name:
        try:
            connection.connect(name)
            connection.sendmsg([data], control)
        except (FileNotFoundError, ConnectionError):
            return False
    return True


def _text_of(request: Union[Request, SessionQuery]) -> bytes:
    if isinstance(request, Request):
        return os.fsencode(str(request.folder))
    return json.dumps(request.words).encode()


def receive(listener: socket.socket) -> Optional[Asked]:
    """Return the next request; None for anything else. Raises socket.timeout."""
    data, control, _, _ = listener.recvmsg(LONGEST_PATH, socket.CMSG_SPACE(_INT), _CLOSE_ON_EXEC)
    passed = array.array("i")
    for level, kind, content in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            passed.frombytes(content[: len(content) - len(content) % _INT])
    path = Path(os.fsdecode(data)) if b"\0" not in data else Path()
    if len(passed) == 1 and path.is_absolute():
        return Request(path, passed[0])
    if len(passed) == 1 and data.startswith(b"{"):
        return SessionQuery(dict(json.loads(data.decode())), passed[0])
    for descriptor in passed:
        os.close(descriptor)
    return None if passed else _warming(data)


def ask(
    address: Path,
    make: Callable[[int], Union[Request, SessionQuery]],
    pass_on: Optional[Callable[[Union[Request, SessionQuery]], bool]] = None,
) -> str:
    """Return the answer of the server at that address; empty if there is none, or it ends first.
    `make` is called with the descriptor at which the answer is waited for; `pass_on` does instead
    what brings the request to a server."""
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as answers:
        try:
            request = make(writing)
            pass_on(request) if pass_on else send(address, request)
        finally:
            os.close(writing)
        return answers.read()


def _warming(data: bytes) -> Optional[Warming]:
    try:
        words = json.loads(data.decode())
        return Warming.of(words) if all(isinstance(word, str) for word in words) else None
    except (ValueError, TypeError):
        return None


def listen(address: Path) -> socket.socket:
    """Return a listener that takes the place of one that was there before."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    draft = address.with_suffix(f".{os.getpid()}")
    if draft.exists():
        draft.unlink()
    with _short(draft) as name:
        listener.bind(name)
    os.replace(str(draft), str(address))
    return listener


@contextmanager
def _short(address: Path) -> Iterator[str]:
    """Yield a name of a socket that fits into 107 bytes, however long its folder's is."""
    if not os.path.isdir("/proc/self/fd"):
        yield str(address)
        return
    try:
        folder = os.open(str(address.parent), os.O_RDONLY)
    except FileNotFoundError:
        yield str(address)
        return
    try:
        yield f"/proc/self/fd/{folder}/{address.name}"
    finally:
        os.close(folder)
