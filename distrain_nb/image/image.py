"""The request for a build, and its result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import distrain_nb
from distrain_nb.errors import ImageError
from distrain_nb.secrets import is_secret_name
from distrain_nb.worker.files.disk import readable_size
from distrain_nb.worker.files.status import Progress

if TYPE_CHECKING:
    from distrain_nb.image.registry.reference import Reference

Listener = Callable[[Progress], None]


def at_most_every(seconds: float, listener: Listener) -> Listener:
    """Return a listener that hears of every phase and every end, and of what is between now and
    then."""
    phase, due = "", 0.0

    def hear(event: Progress) -> None:
        nonlocal phase, due
        now = time.monotonic()
        if event.phase != phase or event.done == event.total or now >= due:
            phase, due = event.phase, now + seconds
            listener(event)

    return hear


class Stopped(ImageError):
    """The sending of other parts failed, or somebody interrupted it."""


class Meter:
    """Adds up bytes that several threads send, and tells the listener after each piece."""

    def __init__(self, listener: Listener | None, phase: str) -> None:
        self._listener = listener
        self._phase = phase
        self._lock = threading.Lock()
        self._done = 0
        self._total = 0
        self._stopped = False

    @property
    def done(self) -> int:
        """The bytes sent so far."""
        return self._done

    def expect(self, more: int) -> None:
        """Add `more` bytes to the total to send."""
        self._report(0, more)

    def sent(self, more: int) -> None:
        """Count `more` bytes as sent; negative when they must be sent again.

        Raises Stopped in the threads that still send after `stop`.
        """
        if self._stopped and more > 0:
            raise Stopped("The image was not sent: its other parts failed.")
        self._report(more, 0)

    def stop(self) -> None:
        """Let every thread that sends end at its next piece."""
        self._stopped = True

    def _report(self, done: int, total: int) -> None:
        with self._lock:
            self._done += done
            self._total += total
            if self._listener is not None:
                self._listener(Progress(self._phase, self._done, self._total))


def announce(listener: Listener | None, phase: str) -> None:
    """Announce a phase."""
    if listener is not None:
        listener(Progress(phase))


ROOT = "/opt/distrain"
WORKER = f"{ROOT}/worker"
PACKAGES = f"{ROOT}/packages"
PROGRAM = f"{ROOT}/program"
ENTRYPOINT = ("python3", "-m", "distrain_nb.worker")


class ProgramFiles(Protocol):
    """The files of a captured cell that a build needs."""

    @property
    def requirements(self) -> tuple[str, ...]:
        """`name==version` of what the program imports."""
        ...

    def write(self, folder: Path) -> object:
        """Lay down `main.py` and what goes with it."""
        ...


@dataclass(frozen=True)
class Recipe:
    """The recipe for an image of a program.

    `requirements` are asked for on top of what the program imports. `python` (`3.11`) is needed
    when the base doesn't say which one it has; `look_inside` finds it, and the packages, by
    reading the base's layers once. `device` (gpu, tpu) is what the packages have to use: what the
    base has for the CPU alone is refused; in an image that is `rehearsed`, on a machine that may
    have no such device, it is noted. With `bare_processes` the base may be the empty one: what is
    built runs as processes of this machine's Python. `allowed_secrets` are files, values and
    variables that the guard lets pass; `guarded` says that the program has been through it already.
    `run` are shell commands that the image needs, for the builders that can run them.
    """

    base: str
    target: str
    requirements: tuple[str, ...] = ()
    python: str | None = None
    platform: str = "linux/amd64"
    device: str = ""
    rehearsed: bool = False
    bare_processes: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    allowed_secrets: tuple[str, ...] = ()
    guarded: bool = False
    run: tuple[str, ...] = ()
    look_inside: bool = False


def environment_for(recipe: Recipe, base: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the worker needs, with those of the recipe."""
    paths = (path for path in base.get("PYTHONPATH", "").split(":") if path not in ("", WORKER))
    return {
        "PYTHONPATH": ":".join((WORKER, *paths)),
        "PYTHONUNBUFFERED": "1",
        "DISTRAIN_PROGRAM": PROGRAM,
        "DISTRAIN_PACKAGES": PACKAGES,
        **recipe.environment,
    }


def worker_files() -> dict[str, Path]:
    """Return the part of this package that starts ranks, by its paths below PYTHONPATH."""
    package = Path(distrain_nb.__file__).parent
    return {
        "distrain_nb/__init__.py": package / "__init__.py",
        "distrain_nb/data/__init__.py": package / "data/__init__.py",
        "distrain_nb/worker": package / "worker",
    }


@dataclass(frozen=True)
class ImageLayer:
    """One layer: what it is for, its size in bytes as sent, and how it came to its repository."""

    purpose: str
    digest: str
    size: int
    how: str


@dataclass(frozen=True, repr=False)
class Image:
    """An image in a registry. `reference` has its digest; `sent` is in bytes, where it is known."""

    reference: Reference
    base: Reference
    platform: str
    layers: tuple[ImageLayer, ...]
    entrypoint: tuple[str, ...]
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    notes: tuple[str, ...]
    sent: int | None
    seconds: float

    @property
    def uri(self) -> str:
        """The name by digest, for a job's request."""
        return self.reference.pinned()

    @property
    def by_hand(self) -> str:
        """The command that runs the image on any machine with Docker."""
        return f"docker run --rm {self.uri}"

    def __str__(self) -> str:
        table = [(x.purpose, readable_size(x.size), x.how, x.digest[7:19]) for x in self.layers]
        lines = [
            f"{self.reference.name}:{self.reference.tag or 'latest'}  ({self.platform})",
            f"  on {self.base}",
            *(f"  {p:<9} {s:>9}  {how:<14} {digest}" for p, s, how, digest in table),
            *(f"  {label:<12} {value}" for label, value in self._rows()),
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(x.purpose)}</td><td>{readable_size(x.size)}</td>"
            f"<td>{escape(x.how)}</td><td><code>{x.digest[7:19]}</code></td></tr>"
            for x in self.layers
        )
        figures = "".join(
            f"<tr><td>{escape(label)}</td><td colspan='3'><code>{escape(value)}</code></td></tr>"
            for label, value in self._rows()
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return (
            f"<div><b>{escape(str(self.reference.name))}</b> on {escape(str(self.base))}"
            "<table><tr><th>layer</th><th>size</th><th>how</th><th>digest</th></tr>"
            f"{rows}{figures}</table>{f'<ul>{notes}</ul>' if notes else ''}</div>"
        )

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("entry point", " ".join(self.entrypoint)),
            *(("environment", f"{name}={shown}") for name, shown in self._variables()),
            ("digest", self.reference.digest or "not known"),
            ("run it", self.by_hand),
            ("took", f"{self.seconds:.1f} s{self._sent()}"),
        ]

    def _variables(self) -> list[tuple[str, str]]:
        """Return the new variables; a secret that was let in is not shown."""
        pairs = self.environment.items()
        return [(name, "(hidden)" if is_secret_name(name) else value) for name, value in pairs]

    def _sent(self) -> str:
        return "" if self.sent is None else f", {readable_size(self.sent)} sent"
