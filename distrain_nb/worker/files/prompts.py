"""The files by which a rank asks whoever sits at the notebook: in `prompts`, in a run's folder.

A process that asks has three of them, by its number in the log and its process id, as what a rank
forks may ask too: `asked-…` has what it says and asks, a JSON object a line; `answers-…` is a named
pipe, as a password must never lie in a file; `open-…` is there while it waits at a prompt. Where
the process is on another machine, these are of whoever passes the questions on, whose process id
`open-…` has. `held` is there while a process on another machine waits at a prompt.
`listener-PID.json` says of a kernel whether somebody there can answer. `request.json` is what one
process asks of the others; each answers in a `reply-…` of its own. `relayed` is there if the ranks
are on other machines, and somebody passes on what they ask.
"""

from __future__ import annotations

import errno
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import PROMPTS_FOLDER
from distrain_nb.worker.files.private_folder import private_folder
from distrain_nb.worker.files.status import Owner

STOP, EVALUATE = "stop", "evaluate"  # what a request asks of a rank
_REQUEST, _QUIT = "request.json", "quit"
_LISTENER, _REPLY = "listener-{}.json", "reply-{}-{}.json"
_ASKED, _ANSWERS, _OPEN, _HELD = "asked-", "answers-", "open-", "held"
_RELAYED, _REPLIES = "relayed", "replies-{}.json"
_LEFT_BY_ATTEMPTS = (
    *("asked-*", "answers-*", "open-*", "reply-*", "replies-*"),
    *(_HELD, _REQUEST, _QUIT),
)


class Asker(NamedTuple):
    """A process that asks: its number in the log, and its process id."""

    process: int
    pid: int

    @classmethod
    def of(cls, name: str) -> Optional[Asker]:
        """Read the end of a file's name; None for another's."""
        process, _, pid = name.partition("-")
        return cls(int(process), int(pid)) if process.isdigit() and pid.isdigit() else None

    def asked(self, folder: Path) -> Path:
        return folder / PROMPTS_FOLDER / f"{_ASKED}{self.process}-{self.pid}"

    def answers(self, folder: Path) -> Path:
        return folder / PROMPTS_FOLDER / f"{_ANSWERS}{self.process}-{self.pid}"

    def open(self, folder: Path) -> Path:
        return folder / PROMPTS_FOLDER / f"{_OPEN}{self.process}-{self.pid}"


def askers(folder: Path) -> List[Asker]:
    """Return the processes that have asked, in the order of their numbers."""
    return sorted(_named(folder, _ASKED))


def open_prompts(folder: Path) -> List[Asker]:
    """Return the processes that wait at a prompt now."""
    return sorted(asker for asker in _named(folder, _OPEN) if _is_open(folder, asker))


def _is_open(folder: Path, asker: Asker) -> bool:
    """Return whether the process still waits, or whoever passes its questions on is still there."""
    try:
        pid = asker.open(folder).read_text(encoding="ascii") or asker.pid
    except OSError:  # it has just been answered
        return False
    return os.path.exists(f"/proc/{pid}")


def hold(folder: Path, *, waits: bool) -> None:
    """Note whether a process on another machine waits at a prompt."""
    file = private_folder(folder / PROMPTS_FOLDER) / _HELD
    if waits:
        file.touch()
    elif file.exists():
        file.unlink()


def stands_still(folder: Path) -> bool:
    """Return whether a process of the run waits at a prompt, here or on another machine."""
    return (folder / PROMPTS_FOLDER / _HELD).exists() or bool(open_prompts(folder))


def _named(folder: Path, prefix: str) -> Iterator[Asker]:
    try:
        names = os.listdir(str(folder / PROMPTS_FOLDER))
    except OSError:  # nobody has asked, and nobody listens
        return
    for name in names:
        asker = Asker.of(name[len(prefix) :]) if name.startswith(prefix) else None
        if asker is not None:
            yield asker


# -- who can answer -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listener:
    """A kernel that follows the run, and whether somebody there can answer. Without `secrets`,
    answers lie in files on their way."""

    owner: Owner
    answers: bool = False
    secrets: bool = True


def _replace(path: Path, data: bytes) -> None:
    """Write in one step. Not synced: nobody reads these after a power cut, and each run has one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    draft.write_bytes(data)
    os.replace(str(draft), str(path))


def listen(folder: Path, *, answers: bool, secrets: bool = True) -> None:
    """Note that this process follows the run, before a rank may ask for it."""
    private_folder(folder / PROMPTS_FOLDER)
    listener = Listener(Owner.of(os.getpid()), answers, secrets)
    _replace(_listener_file(folder), fields.encode(listener))


def end_listening(folder: Path) -> None:
    """Take back what `listen` has noted."""
    try:
        _listener_file(folder).unlink()
    except OSError:  # the run has been deleted
        pass


def _listener_file(folder: Path) -> Path:
    return folder / PROMPTS_FOLDER / _LISTENER.format(os.getpid())


def is_answered(folder: Path, *, secret: bool = False) -> Optional[bool]:
    """Return whether somebody can answer, perhaps by a password; None where nobody follows the
    run."""
    answer: Optional[bool] = None
    for listener in _listeners(folder):
        answer = bool(answer) or (listener.answers and (listener.secrets or not secret))
    return answer


def _listeners(folder: Path) -> Iterator[Listener]:
    for file in (folder / PROMPTS_FOLDER).glob(_LISTENER.format("*")):
        try:
            listener = fields.read(Listener, file)
        except (OSError, fields.Damaged):  # it has just been taken back
            continue
        if listener.owner.alive:
            yield listener


# -- questions and answers ------------------------------------------------------------------------


def send_answer(folder: Path, asker: Asker, number: int, text: Optional[str]) -> None:
    """Answer question `number` of a process; None says that there will be no answer."""
    data = json.dumps({"number": number, "text": text}).encode() + b"\n"
    try:
        pipe = os.open(str(asker.answers(folder)), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENXIO):  # the process asks no more
            return
        raise
    try:
        os.set_blocking(pipe, True)
        os.write(pipe, data)
    except BrokenPipeError:
        pass
    finally:
        os.close(pipe)


def note_quit(folder: Path) -> None:
    """Note that somebody has left a debugger by `q`: the run ends, whoever else is asked."""
    (folder / PROMPTS_FOLDER / _QUIT).touch()


def is_quit(folder: Path) -> bool:
    return (folder / PROMPTS_FOLDER / _QUIT).exists()


def forget(folder: Path) -> None:
    """Remove what the processes of an attempt have left; keep who listens."""
    if not (folder / PROMPTS_FOLDER).exists():
        return
    for pattern in _LEFT_BY_ATTEMPTS:
        for file in (folder / PROMPTS_FOLDER).glob(pattern):
            try:
                file.unlink()
            except OSError:
                pass


def note_relayed(folder: Path) -> None:
    """Note that somebody passes on what the ranks ask, which are on other machines."""
    (private_folder(folder / PROMPTS_FOLDER) / _RELAYED).touch()


def is_relayed(folder: Path) -> bool:
    return (folder / PROMPTS_FOLDER / _RELAYED).exists()


# -- requests of one process to the others --------------------------------------------------------


@dataclass(frozen=True)
class PromptRequest:
    """Something asked of processes `targets`: to STOP at a prompt, or to EVALUATE `text`, whose
    value they give as `style` ("p" or "pp") shows it."""

    name: str
    kind: str
    targets: Tuple[int, ...]
    text: str = ""
    style: str = "p"


def make_request(
    folder: Path, kind: str, targets: Sequence[int], text: str = "", style: str = "p"
) -> PromptRequest:
    """Ask it of the ranks of a run. The next request takes its place."""
    name = f"{os.getpid()}-{time.monotonic_ns()}"
    request = PromptRequest(name, kind, tuple(targets), text, style)
    write_request(folder, request)
    return request


def write_request(folder: Path, request: PromptRequest) -> None:
    """Ask what somebody else has asked, on another machine."""
    private_folder(folder / PROMPTS_FOLDER)
    _replace(folder / PROMPTS_FOLDER / _REQUEST, fields.encode(request))


def request(folder: Path) -> Optional[PromptRequest]:
    """Return what was asked last; None where nothing was."""
    try:
        return fields.read(PromptRequest, folder / PROMPTS_FOLDER / _REQUEST)
    except (OSError, fields.Damaged):
        return None


def reply(folder: Path, request: PromptRequest, index: int, text: str) -> None:
    """Give the answer of process `index`."""
    file = folder / PROMPTS_FOLDER / _REPLY.format(request.name, index)
    _replace(file, json.dumps({"text": text}).encode())


def replies(folder: Path, name: str) -> Dict[int, str]:
    """Return the answers to the request of that name, by process."""
    pattern = _REPLY.format(name, "*")
    begin, end = pattern.split("*")
    return {
        int(file.name[len(begin) : -len(end)]): str(json.loads(file.read_bytes())["text"])
        for file in (folder / PROMPTS_FOLDER).glob(pattern)
    }


def give_replies(folder: Path, name: str, texts: Mapping[str, str]) -> None:
    """Give the answers of ranks on other machines, by their labels."""
    _replace(folder / PROMPTS_FOLDER / _REPLIES.format(name), json.dumps(dict(texts)).encode())


def take_given(folder: Path, name: str, seconds: float) -> Optional[Dict[str, str]]:
    """Wait for the answers of ranks on other machines, so long at most; return them by label."""
    file, end = folder / PROMPTS_FOLDER / _REPLIES.format(name), time.monotonic() + seconds
    while time.monotonic() < end:
        if file.exists():
            return dict(json.loads(file.read_bytes()))
        time.sleep(0.05)
    return None


def has_relay(folder: Path) -> bool:
    """Return whether somebody passes on what the ranks of this machine ask, on another one."""
    return any(not listener.secrets for listener in _listeners(folder))


def take_replies(folder: Path, request: PromptRequest, seconds: float) -> Dict[int, str]:
    """Wait for the answers of all that were asked, so long at most; return them by process."""
    replies: Dict[int, str] = {}
    end = time.monotonic() + seconds
    while True:
        for index in request.targets:
            file = folder / PROMPTS_FOLDER / _REPLY.format(request.name, index)
            if index not in replies and file.exists():
                content: Dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
                replies[index] = str(content["text"])
                file.unlink()
        if len(replies) == len(request.targets) or time.monotonic() > end:
            return replies
        time.sleep(0.05)
