"""Finding, or starting, the fork server that has this environment's frameworks imported."""

from __future__ import annotations

import getpass
import hashlib
import os
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import distrain_nb.worker
from distrain_nb.config import private_home
from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.folder import FACTS_VARIABLE, STEP_TIMES_VARIABLE
from distrain_nb.worker.files.request import TAKEN, Request, SessionQuery, Warming, ask, send
from distrain_nb.worker.machine.environment import variables

# What differs from one kernel, or one terminal, to the next and matters to no framework.
_PASSING = ("JPY_", "DISTRAIN_", "PYDEVD_", "IPY_", "SSH_", "VSCODE_", "TERM", "XPC_", "PYTEST_")
_PASSING_NAMES = frozenset(
    ["_", "COLUMNS", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "GIT_PAGER", "LINES", "OLDPWD",
     "PAGER", "PWD", "SHLVL", "WINDOWID",
     "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"]  # set by scikit-learn when it is imported
)  # fmt: skip

# PyTorch's first optimizer sets it to a folder that depends on nothing else, as it does in ranks.
_INDUCTOR = "TORCHINDUCTOR_CACHE_DIR"

MOST_SERVERS = 20  # that are killed in turn before they have taken a run
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.5  # what kills them, such as lack of memory, may pass
ENDS_WITHIN_S = 10.0  # a server that has closed a run's pipe


def submit_run(folder: Path, idle: float) -> None:
    """Start the run in `folder`. Return once a fork server has taken it.

    Its processes get this process's environment, as a user's own child would. If a server is killed
    before it has taken the run, another one is started. Raises DistrainError if the run can't be
    started on this machine.
    """
    environment = _environment()
    address = _address(environment)
    answer = ask(address, lambda writing: Request(folder, writing))
    for number in range(MOST_SERVERS):
        if answer:
            break
        time.sleep(min(LONGEST_PAUSE_S, number * FIRST_PAUSE_S))
        answer = _answer_of_new_server(folder, address, environment, idle)
    if answer != TAKEN:
        killed = f"its server has ended: it was killed, {MOST_SERVERS} times in turn"
        raise DistrainError(f"the run can't be started here: {answer or killed}")


def prepare(warming: Warming, idle: float) -> None:
    """Have a fork server of this process's environment import what a run may need.

    Raises DistrainError when none can be started on this machine.
    """
    environment = _environment()
    address = _address(environment)
    if not send(address, warming):
        _start(address, environment, idle, ["--warm", *warming.words()])


def _answer_of_new_server(
    folder: Path, address: Path, environment: Mapping[str, str], idle: float
) -> str:
    """Start a server for a run; its answer, or why it has ended. Empty where it was killed."""
    servers: list[subprocess.Popen[bytes]] = []

    def start_for(request: Request | SessionQuery) -> bool:
        words = [str(folder), str(request.answer)]
        servers.append(_start(address, environment, idle, words, [request.answer]))
        return True

    answer = ask(address, lambda writing: Request(folder, writing), start_for)
    if not answer and _has_failed(servers[0]):
        return f"its server has ended: {_last_word(address)}"
    return answer


def _start(
    address: Path,
    environment: Mapping[str, str],
    idle: float,
    words: Sequence[str],
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "distrain_nb.worker.supervisor.forkserver",
        str(address),
        str(idle),
    ]
    with _log(address).open("ab") as log:
        return subprocess.Popen(
            [*command, *words],
            cwd="/",
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=pass_fds,
        )


def _log(address: Path) -> Path:
    return address.with_suffix(".log")


def _has_failed(server: subprocess.Popen[bytes]) -> bool:
    """Say whether a server that took no run has ended by itself.

    One that passes the run on to another server succeeds, though that one may be killed.
    """
    try:
        return server.wait(ENDS_WITHIN_S) > 0
    except subprocess.TimeoutExpired:
        return False


def _last_word(address: Path) -> str:
    """Read from a server's log why it has ended."""
    lines = _log(address).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _environment() -> dict[str, str]:
    environment = {
        name: value
        for name, value in variables().items()
        if name in (FACTS_VARIABLE, STEP_TIMES_VARIABLE)
        or not (name in _PASSING_NAMES or name.startswith(_PASSING))
    }
    if environment.get("MPLBACKEND", "").startswith("module://"):
        environment["MPLBACKEND"] = "agg"  # the kernel's own draws into its cells
    if environment.get(_INDUCTOR) == _usual_inductor_folder():
        del environment[_INDUCTOR]
    return environment


def _usual_inductor_folder() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, ImportError, OSError):  # who has no name: the variable stays
        return ""
    return str(Path(tempfile.gettempdir(), f"torchinductor_{user}").absolute())


def _address(environment: Mapping[str, str]) -> Path:
    """Return one for each environment: the interpreter, its packages, and the variables.

    The files of `worker/` count too: in a checkout they change while no package does.
    """
    packages = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    worker = sorted(Path(distrain_nb.worker.__path__[0]).rglob("*.py"))
    changed = [str(path.stat().st_mtime_ns) for path in (*map(Path, packages), *worker)]
    variables = [f"{name}={value}" for name, value in sorted(environment.items())]
    text = "\0".join([sys.executable, *packages, *changed, *variables])
    name = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return _runtime_folder() / name


def _runtime_folder() -> Path:
    """Return a folder that only this user can enter: where the system has one for that, or our own.

    Raises DistrainError where none can be had.
    """
    refused = []
    for folder in _candidates():
        try:
            return _private(folder)
        except OSError as error:
            refused.append(str(error))
    raise DistrainError(
        "no private folder is available for the socket of the fork server:\n"
        + "\n".join(refused)
        + "\nset XDG_RUNTIME_DIR to an existing folder that only you can access"
    )


def _candidates() -> Iterator[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        yield Path(runtime, "distrain")
    with suppress(FileNotFoundError):  # no folder for temporary files can be written
        yield Path(tempfile.gettempdir(), f"distrain-{os.getuid()}")
    yield private_home() / "sockets"


def _private(folder: Path) -> Path:
    """Raise OSError where there is no such folder, it can't be made, or others could enter it."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    owner = folder.lstat()
    if owner.st_uid != os.getuid() or owner.st_mode & 0o077 or not stat.S_ISDIR(owner.st_mode):
        raise PermissionError(f"{folder} belongs to somebody else, or is open to others")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} can't be written")
    return folder
