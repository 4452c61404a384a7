"""A pool: replicas of one role on machines of one kind, and its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.catalog.index import accelerator_name, short_name

POOL_FORM = (
    "[REPLICAS*]MACHINE[|[REPLICAS*]MACHINE…][+COUNT*ACCELERATOR]"
    "[,disk=TYPE:GB][,topology=AxB][,image=URI]"
)

_UNSET = "?"
_MOST = 999_999_999
_POOL = re.compile(
    r"""(?: (?P<bare>-?\d+)
          | (?:(?P<replicas>-?\d+)\*)? (?P<machine>[A-Za-z][\w.:-]*|\?)
            (?P<alternatives>(?:\|(?:-?\d+\*)?[A-Za-z][\w.-]*)*)
            (?:\+(?P<count>-?\d+)\*(?P<accelerator>[A-Za-z][\w.-]*|\?))? )
        (?P<extras>(?:,[a-z]+=[^,\s]+)*)""",
    re.VERBOSE,
)
_DISK = re.compile(r"(?P<type>[A-Za-z][\w.-]*)?:?(?P<gb>-?\d+)?")

_EXAMPLE = "for example 4*n1-highmem-96+8*V100, 2*ml.p4d.24xlarge, or just 4 on local"


class Role(str, Enum):
    """The role of a pool's replicas. The value is the name of the option that lays it out."""

    PRIMARY = "primary"
    WORKERS = "workers"
    SERVERS = "servers"
    REDUCERS = "reducers"
    EVALUATORS = "evaluators"

    def __str__(self) -> str:
        return self.value

    @property
    def position(self) -> int:
        """The place in Vertex AI's list of worker pools, which servers and reducers share."""
        return _POSITIONS[self]


_POSITIONS = {
    Role.PRIMARY: 0,
    Role.WORKERS: 1,
    Role.SERVERS: 2,
    Role.REDUCERS: 2,
    Role.EVALUATORS: 3,
}


@dataclass(frozen=True)
class Alternative:
    """A machine type that is taken where those before it have no capacity.

    `replicas` is how many a pool has of it; None is as many as of the first. Prints as it is
    written in a pool.
    """

    machine: str
    replicas: int | None = None

    def __str__(self) -> str:
        return self.machine if self.replicas is None else f"{self.replicas}*{self.machine}"


@dataclass(frozen=True)
class Pool:
    """Replicas of one role on machines of one kind; None is what was not chosen.

    `machine` is a machine type (Vertex AI), an instance type (SageMaker) or a legacy machine type
    (AI Platform), and None on `local`. `accelerator` is the name in the API; other ways to write
    it are turned into that one. `accelerator_count` is per replica. `disk_gb` is GB, and on
    SageMaker the volume. `topology` is that of a TPU slice. `image` is for this pool alone.
    `alternatives` are machine types to take in the place of `machine`, in this order, where it has
    no capacity.
    """

    replicas: int = 1
    machine: str | None = None
    accelerator: str | None = None
    accelerator_count: int = 0
    disk_type: str | None = None
    disk_gb: int | None = None
    topology: str | None = None
    image: str | None = None
    alternatives: tuple[Alternative, ...] = ()

    def __post_init__(self) -> None:
        counts = (alternative.replicas or 0 for alternative in self.alternatives)
        numbers = (self.replicas, self.accelerator_count, self.disk_gb or 0, *counts)
        if any(abs(number) > _MOST for number in numbers):
            raise OptionError(f"a number of a pool is larger than {_MOST:,}")
        if self.accelerator:
            object.__setattr__(self, "accelerator", accelerator_name(self.accelerator))

    @classmethod
    def parse(cls, text: str) -> Pool:
        """Read what `str` of a pool gives. Raises OptionError with the form that is allowed."""
        match = _POOL.fullmatch(text.strip())
        if not match:
            raise OptionError(f"invalid pool {shown(text)}: expected {POOL_FORM}, {_EXAMPLE}")
        fields = dict(_extras(match["extras"]))
        if match["bare"]:
            return cls(int(match["bare"]), **fields)
        return cls(
            int(match["replicas"] or 1),
            _chosen(match["machine"]),
            _chosen(match["accelerator"]),
            int(match["count"] or 0),
            alternatives=alternatives_of(match["alternatives"]),
            **fields,
        )

    def __str__(self) -> str:
        text = self._machines()
        if self.disk_type or self.disk_gb is not None:
            parts = [self.disk_type, None if self.disk_gb is None else str(self.disk_gb)]
            text += ",disk=" + ":".join(part for part in parts if part)
        if self.topology:
            text += f",topology={self.topology}"
        return f"{text},image={self.image}" if self.image else text

    @property
    def machines(self) -> tuple[str | None, ...]:
        """The machine types to choose from, the first choice first."""
        return self.machine, *(alternative.machine for alternative in self.alternatives)

    def taking(self, number: int) -> Pool:
        """Return the pool with one of its machine types.

        0 is its own type. Higher numbers are its alternatives; the last one stands for all numbers
        above.
        """
        if number == 0 or not self.alternatives:
            return replace(self, alternatives=())
        alternative = self.alternatives[:number][-1]
        replicas = self.replicas if alternative.replicas is None else alternative.replicas
        return replace(self, machine=alternative.machine, replicas=replicas, alternatives=())

    def _machines(self) -> str:
        equipped = self.accelerator or self.accelerator_count
        if not self.machine and not equipped and not self.alternatives:
            return str(self.replicas)
        text = self.machine or _UNSET
        if self.replicas != 1:
            text = f"{self.replicas}*{text}"
        text = "|".join((text, *map(str, self.alternatives)))
        if not equipped:
            return text
        name = short_name(self.accelerator) if self.accelerator else _UNSET
        return f"{text}+{self.accelerator_count}*{name}"


def alternatives_of(text: str) -> tuple[Alternative, ...]:
    """Read `|ml.p4d.24xlarge|4*ml.g5.48xlarge`, of which empty parts don't count."""
    parts = (part.rpartition("*") for part in text.split("|") if part)
    return tuple(Alternative(name, int(count) if star else None) for count, star, name in parts)


def _chosen(text: str | None) -> str | None:
    return None if text in (None, _UNSET) else text


def _extras(text: str) -> Iterator[tuple[str, Any]]:
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name == "disk":
            yield from _disk(value)
        elif name in ("topology", "image"):
            yield name, value
        else:
            raise OptionError(
                f"unknown pool setting {shown(name)}: expected disk, topology or image"
            )


def _disk(text: str) -> Iterator[tuple[str, Any]]:
    match = _DISK.fullmatch(text)
    if not match or text == ":":
        raise OptionError(f"invalid disk={text}: expected disk=TYPE:GB, disk=TYPE or disk=GB")
    if match["type"]:
        yield "disk_type", match["type"]
    if match["gb"]:
        yield "disk_gb", int(match["gb"])
