"""What each place reads of a layout: the form offers it, and all else is a finding there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.layout.pool import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MACHINE = frozenset(["machine", "disk_gb", "image"])
_GOOGLE = _MACHINE | {"accelerator", "accelerator_count", "disk_type"}
_CLOUD = frozenset(["region", "framework", "image", "launcher", "ranks_per_replica", "timeout"])


@dataclass(frozen=True)
class Place:
    """A place where jobs run, as layouts know it.

    `roles` are the pools that its jobs may have, in the order of their positions; `fields` are the
    other fields of a layout that it reads, and `pool_fields` those of a pool besides `replicas`.
    `implies_primary` says that a job whose layout names no primary pool has a primary replica, and
    `tunes` that a service there suggests the trials of studies and runs them.
    """

    name: str
    title: str
    roles: tuple[Role, ...]
    fields: frozenset[str]
    pool_fields: frozenset[str] = frozenset()
    implies_primary: bool = False
    tunes: bool = False

    def reads(self, path: str) -> bool:
        """Return whether jobs there depend on a field, such as `region` or `workers.machine`."""
        name, _, field = path.partition(".")
        if field:
            return field == "replicas" or field in self.pool_fields
        return name == "on" or name in self.roles or name in self.fields


_PLACES = {
    place.name: place
    for place in (
        Place(
            "local", "this machine", tuple(Role),
            frozenset(["launcher", "ranks_per_replica", "mpi_options", "timeout"]),
            implies_primary=True,
        ),
        Place(
            "vertex", "Vertex AI", tuple(Role),
            _CLOUD | {"mpi_options", "scheduling", "max_wait"},
            _GOOGLE | {"topology"},
            tunes=True,
        ),
        Place(
            "sagemaker", "SageMaker", (Role.PRIMARY, Role.WORKERS),
            _CLOUD | {"mpi_options", "scheduling", "max_wait", "distribution", "checkpoint"},
            _MACHINE,
            tunes=True,
        ),
        Place(
            "ai-platform", "AI Platform",
            (Role.PRIMARY, Role.WORKERS, Role.SERVERS, Role.EVALUATORS),
            _CLOUD | {"tier"},
            _GOOGLE,
            tunes=True,
        ),
    )
}  # fmt: skip
PLACES = tuple(_PLACES)  # those that the fact tables know


def declare(
    name: str,
    title: str,
    reads: Iterable[str],
    *,
    implies_primary: bool = False,
    tunes: bool = False,
) -> None:
    """Make a backend's place known, by the paths of the fields that it reads, as
    `Place.reads` takes them. Places that the fact tables know stay as they are."""
    if name in PLACES:
        return
    paths = [path.partition(".") for path in reads]
    roles = tuple(role for role in Role if role in {name for name, _, _ in paths})
    pool_fields = frozenset(field for _, _, field in paths if field)
    fields = frozenset(name for name, _, field in paths if not field)
    _PLACES[name] = Place(
        name, title, roles, fields - set(Role), pool_fields, implies_primary, tunes
    )


def places() -> Mapping[str, Place]:
    """Get all places that are known, by name."""
    return _PLACES


def place_of(name: str) -> Place | None:
    """Look a place up by its name; None where no backend that is loaded has declared it."""
    return _PLACES.get(name)
