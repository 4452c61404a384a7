"""A job: a program with its machines and options, as a backend takes it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from distrain_nb.config import Config
from distrain_nb.worker.machine.environment import variables

if TYPE_CHECKING:
    from distrain_nb.backends.settings import Settled
    from distrain_nb.backends.uploads import Upload
    from distrain_nb.layout import Layout
    from distrain_nb.program import Program


OptionsT_co = TypeVar("OptionsT_co", covariant=True)


@dataclass(frozen=True)
class Job(Generic[OptionsT_co]):
    """A program, the machines to run it on, and options.

    `folder` is the working folder on this machine. `options` are those that the backend declares.
    `results` are names to bring back from rank 0. A job that `waits` ends when the process ends
    that waits for it. `data` are the texts of `--data`, NAME=URI. `uploads` are files of `data` on
    this machine that a job elsewhere needs. `allowed_secrets` are what the guard lets pass.

    `environ` are the variables of the process that asks for the job. `defaults` are settings that
    the backend found on this machine. `machine` has all other facts that a plan depends on. `nonce`
    makes the run's name unique.

    `trial` is the number of a study's trial, as text. `cost_limit` has seconds after which a job of
    this machine ends, and the reason in words. `as_rank` and `steps` are texts of these options:
    ranks then run alone on this machine.
    """

    program: Program
    layout: Layout
    folder: Path
    options: OptionsT_co
    name: str = ""
    results: tuple[str, ...] = ()
    waits: bool = False
    config: Config = field(default_factory=Config)
    experiment: str = ""
    data: tuple[str, ...] = ()
    uploads: tuple[Upload, ...] = ()
    allowed_secrets: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=variables, repr=False)
    defaults: Settled = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    nonce: str = field(default_factory=lambda: secrets.token_hex(4))
    trial: str | None = None
    cost_limit: tuple[float | None, str] = (None, "")
    as_rank: str = ""
    steps: str = ""


def named(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield names and values of texts NAME=VALUE, such as those of `--data`."""
    for text in texts:
        name, _, value = text.partition("=")
        yield name, value


AnyJob: TypeAlias = "Job[object]"
