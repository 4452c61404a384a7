"""What the process that carries a run is told, in the run's folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote import variables
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.status import Owner, Process

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SUBMISSION_FILE = "submission.json"
JOURNAL_FILE = "carrier.json"
LINKS_FILE = "links.json"


@dataclass(frozen=True)
class Submission:
    """`told` is what the backend makes its service of, with the values of its `variables`; `kernel`
    is the process that waits for the run, if one does; `rehearse` is the text after `--rehearse`,
    None for the service itself.
    """

    backend: str
    told: dict[str, Any]
    processes: tuple[Process, ...]
    kernel: Owner | None = None
    rehearse: str | None = None

    def write(self, folder: Path) -> None:
        """No secret is in it: credentials come from the environment's own chain, and the values
        of variables have a file of their own until the job is submitted."""
        raw = asdict(self)
        variables.keep(raw["told"].pop("variables", {}), folder)
        replace_file(folder / SUBMISSION_FILE, json.dumps(raw, indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> Submission:
        raw = json.loads((folder / SUBMISSION_FILE).read_text(encoding="utf-8"))
        raw["told"]["variables"] = variables.kept(folder)
        raw["processes"] = tuple(Process(**process) for process in raw["processes"])
        raw["kernel"] = Owner(**raw["kernel"]) if raw["kernel"] else None
        return cls(**raw)


@dataclass
class Journal:
    """How far a run has been carried, so that another process can go on from there.

    `request` is there once the code has been staged; `sent` is when it was last sent (seconds
    since the epoch), 0 as long as the service can't have it; `job` is there once the service has
    answered. `cursor` is how far the service's log has been read, which makes `log_size` bytes of
    ours and `points_size` of metrics; `labels` names the log's processes by their index; `denied`
    is what the log says of missing permissions. `missing` is what could not be fetched when the
    job had ended, and why.
    """

    request: dict[str, Any] | None = None
    sent: float = 0.0
    job: str = ""
    cursor: dict[str, Any] = field(default_factory=dict)
    log_size: int = 0
    points_size: int = 0
    labels: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Journal:
        """What the process before has written; empty where there was none."""
        try:
            return cls(**json.loads((folder / JOURNAL_FILE).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()

    def write(self, folder: Path) -> None:
        replace_file(folder / JOURNAL_FILE, json.dumps(asdict(self)).encode())


def write_links(links: Mapping[str, str], folder: Path) -> None:
    """Where a person finds the job and its folders, by what they are called."""
    replace_file(folder / LINKS_FILE, json.dumps(dict(links)).encode())


def read_links(folder: Path) -> dict[str, str]:
    """What `write_links` wrote; empty for a run that has none, or not yet."""
    try:
        return dict(json.loads((folder / LINKS_FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
