"""A layout: the machines of a job, their region, and the start of its ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distrain_nb.errors import OptionError
from distrain_nb.layout import files
from distrain_nb.layout.files import plain_yaml
from distrain_nb.layout.place import place_of
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.text import changed, line, split, texts
from distrain_nb.layout.yaml_reading import yaml_texts

_FRAMEWORK = re.compile(r"(?P<name>.+?)(?:-(?P<version>\d[\w.]*))?")


@dataclass(frozen=True)
class Layout:
    """The machines of a job; None is what was not chosen. Prints as the magic's options.

    `on`: where it runs, one of `PLACES`.
    `primary` … `evaluators`: the pools. On `local` a job without a primary pool has one primary
    replica all the same; on SageMaker the worker pool alone is the whole job.
    `region`: of Google Cloud or AWS.
    `framework`: a name with or without a version, such as `pytorch-2.4`.
    `image`: the training container's image, for every pool that names none itself.
    `launcher`: what starts the ranks of a replica, one of `LAUNCHERS`.
    `ranks_per_replica`: on SageMaker with MPI, `processes_per_host`.
    `distribution`: a SageMaker distribution that `launcher` doesn't cover, such as `smddp`.
    `mpi_options`: more options for `mpirun`.
    `scheduling`: Vertex AI's strategy; `SPOT` is managed spot training on SageMaker.
    `timeout`, `max_wait`: seconds that the job may run, and wait for machines.
    `signal_before`: seconds ahead of `timeout` at which the program is asked to save.
    `retries`: how often a run is started again after an end whose cause is in `retry_on`.
    `checkpoint`: URI that a job on spot machines saves its checkpoints under.
    `tier`: AI Platform's scale tier; None is CUSTOM.
    """

    on: str = "local"
    primary: Pool | None = None
    workers: Pool | None = None
    servers: Pool | None = None
    reducers: Pool | None = None
    evaluators: Pool | None = None
    region: str | None = None
    framework: str | None = None
    image: str | None = None
    launcher: str = "auto"
    ranks_per_replica: int | None = None
    distribution: str | None = None
    mpi_options: str | None = None
    scheduling: str | None = None
    timeout: int | None = None
    max_wait: int | None = None
    signal_before: int | None = None
    retries: int | None = None
    retry_on: str | None = None
    checkpoint: str | None = None
    tier: str | None = None

    @classmethod
    def of(cls, on: str = "local", **options: object) -> Layout:
        """Return a layout from options as a user writes them.

        Options are the fields by name. Values are texts, or numbers in fields with numbers.
        `reducers="auto"` sizes that pool. `spot=True` is short for `scheduling="SPOT"`. Raises
        OptionError with the option, the value and the allowed form.
        """
        return changed(cls(), {"on": on, **options})

    @classmethod
    def from_line(cls, line: str) -> Layout:
        """Read the text that `str` of a layout returns. Raises OptionError as `of` does."""
        return changed(cls(), split(line))

    @classmethod
    def from_yaml(cls, text: str) -> Layout:
        """Read the text that `to_yaml` returns.

        Options may also be written with dashes.

        Raises OptionError as `of` does.
        """
        options = yaml_texts(text)
        if not isinstance(options, dict) or not all(isinstance(name, str) for name in options):
            raise OptionError(
                "invalid layout: expected a mapping of options to values, such as `on: vertex`"
            )
        return changed(cls(), options)

    @classmethod
    def load(cls, name: str, folder: Path | str = files.FOLDER) -> Layout:
        """Return the layout of that name, or of that file if *name* ends in `.yaml` or `.yml`.

        Raises OptionError with the file, and with the saved layouts if there is no such file.
        """
        path, text = files.read(name, folder)
        try:
            return cls.from_yaml(text)
        except OptionError as error:
            raise OptionError(f"{path}: {error}") from None

    def to_yaml(self) -> str:
        """Return the options by name, as a YAML mapping."""
        return plain_yaml(texts(self))

    def save(self, name: str, folder: Path | str = files.FOLDER) -> Path:
        """Write `FOLDER/NAME.yaml`, for use as `--layout NAME`.

        Return its path.

        Raises OptionError for a name that can't be used.
        """
        return files.write(self.to_yaml(), name, folder)

    def __str__(self) -> str:
        return line(self)

    def pool(self, role: Role) -> Pool | None:
        """Return the pool of a role as the user wrote it."""
        pool_of_role: Pool | None = getattr(self, Role(role).value)
        return pool_of_role

    def pools(self) -> Iterator[tuple[Role, Pool]]:
        """Yield the pools that the job has, in order.

        If a place implies a primary replica, it is one of them.
        """
        place = place_of(self.on)
        implied = place is not None and place.implies_primary
        for role in Role:
            pool = self.pool(role)
            if pool is None and role is Role.PRIMARY and implied:
                pool = Pool()
            if pool is not None:
                yield role, pool

    def replicas(self, role: Role) -> int:
        """Return how many replicas a role has."""
        return sum(pool.replicas for role_of_pool, pool in self.pools() if role_of_pool is role)

    def variants(self) -> tuple[Layout, ...]:
        """Return the layouts that may come of this one, the first choice first.

        Each has one machine type for each pool with alternatives. Without alternatives, or if the
        place reads none, the first choice is the only one.
        """
        pools = [(role.value, pool) for role, pool in self.pools() if pool.alternatives]
        if not pools:
            return (self,)
        place = place_of(self.on)
        read = [pool for name, pool in pools if not place or place.reads(f"{name}.alternatives")]
        most = max((len(pool.alternatives) for pool in read), default=0)
        return tuple(
            self.edited({name: pool.taking(number) for name, pool in pools})
            for number in range(most + 1)
        )

    @property
    def size(self) -> int:
        """Replicas of all roles together; of machines to choose from the most that there may be."""
        return max(sum(pool.replicas for _, pool in one.pools()) for one in self.variants())

    @property
    def title(self) -> str:
        """The name that people read of the layout's place."""
        place = place_of(self.on)
        return place.title if place else self.on

    @property
    def spot(self) -> bool:
        """Whether the job runs on machines that may be taken away."""
        return self.scheduling == "SPOT"

    @property
    def framework_name(self) -> str | None:
        """`pytorch` of `pytorch-2.4`."""
        match = _FRAMEWORK.fullmatch(self.framework or "")
        return match["name"] if match else None

    @property
    def framework_version(self) -> str | None:
        """`2.4` of `pytorch-2.4`."""
        match = _FRAMEWORK.fullmatch(self.framework or "")
        return match["version"] if match else None

    def edited(self, changes: Mapping[str, Any]) -> Layout:
        """Return the layout with other values at some paths, such as `workers.accelerator_count`.

        A path without a dot replaces a whole field. A field of a pool that is missing adds the
        pool.
        """
        fields: dict[str, Any] = {}
        for path, value in changes.items():
            name, _, part = path.partition(".")
            if part:
                pool = fields[name] if name in fields else getattr(self, name)
                value = replace(pool or Pool(), **{part: value})
            fields[name] = value
        return replace(self, **fields)
