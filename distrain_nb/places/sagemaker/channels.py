"""Input channels: how they are written, and what the API calls them.

    NAME=URI[,mode=File|FastFile|Pipe][,sharded][,manifest|augmented][,attributes=A+B]
        [,type=MIME][,gzip][,recordio][,shuffle=SEED][,rw]

A URI is `s3://BUCKET/PREFIX`, `fsx://FILESYSTEM/PATH` (FSx for Lustre) or `efs://FILESYSTEM/PATH`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.mappings import present

if TYPE_CHECKING:
    from distrain_nb.types import Json

FORM = "NAME=URI[,mode=File|FastFile|Pipe][,sharded][,manifest|augmented]"
MODES = ("File", "FastFile", "Pipe")
FILE_SYSTEMS = {"fsx": "FSxLustre", "efs": "EFS"}

_FLAGS = ("sharded", "manifest", "augmented", "gzip", "recordio", "rw")
_KEYS = ("mode", "attributes", "type", "shuffle")


@dataclass(frozen=True)
class Channel:
    """A channel as it was written, taken apart."""

    name: str
    scheme: str
    uri: str
    flags: frozenset[str] = frozenset()
    values: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str, option: str) -> Channel:
        """Read the text of a channel. Raises OptionError that names the part which can't be
        read."""
        name, equals, rest = text.partition("=")
        uri, *extras = rest.split(",")
        scheme, colon, _ = uri.partition("://")
        if not name or not equals or not colon:
            raise OptionError(f"invalid --{option} {text!r}: expected {FORM}")
        if scheme not in ("s3", *FILE_SYSTEMS):
            allowed = "s3://BUCKET/PREFIX, fsx://FILESYSTEM/PATH or efs://FILESYSTEM/PATH"
            raise OptionError(f"--{option} {name}={uri}: write {allowed}")
        flags, values = set(), {}
        for extra in extras:
            key, equals, value = extra.partition("=")
            if not equals and key in _FLAGS:
                flags.add(key)
            elif value and key in _KEYS:
                values[key] = value
            else:
                keywords = ", ".join([*(f"{key}=…" for key in _KEYS), *_FLAGS])
                raise OptionError(f"--{option} {name}: no {extra!r} here; there are {keywords}")
        channel = cls(name, scheme, uri, frozenset(flags), values)
        for problem in channel._problems():
            raise OptionError(f"--{option} {name}: {problem}")
        return channel

    @property
    def needs_vpc(self) -> bool:
        """Whether the channel is a file system, which a job reaches only through a VPC."""
        return self.scheme in FILE_SYSTEMS

    @property
    def mode(self) -> str:
        """How the data come to the program; empty for the job's mode, File."""
        return self.values.get("mode", "")

    def config(self) -> dict[str, Json]:
        """Return the channel as the API expects it."""
        seed = self.values.get("shuffle")
        return present(
            ChannelName=self.name,
            DataSource=self._file_system() if self.needs_vpc else self._objects(),
            ContentType=self.values.get("type"),
            CompressionType="Gzip" if "gzip" in self.flags else None,
            RecordWrapperType="RecordIO" if "recordio" in self.flags else None,
            InputMode=self.mode or None,
            ShuffleConfig={"Seed": int(seed)} if seed else None,
        )

    def _objects(self) -> dict[str, Json]:
        kind = "S3Prefix"
        if "manifest" in self.flags:
            kind = "ManifestFile"
        elif "augmented" in self.flags:
            kind = "AugmentedManifestFile"
        attributes = self.values.get("attributes")
        spread = "ShardedByS3Key" if "sharded" in self.flags else "FullyReplicated"
        return {
            "S3DataSource": present(
                S3DataType=kind,
                S3Uri=self.uri,
                S3DataDistributionType=spread,
                AttributeNames=attributes.split("+") if attributes else None,
            )
        }

    def _file_system(self) -> dict[str, Json]:
        system, slash, path = self.uri.partition("://")[2].partition("/")
        return {
            "FileSystemDataSource": {
                "FileSystemId": system,
                "FileSystemAccessMode": "rw" if "rw" in self.flags else "ro",
                "FileSystemType": FILE_SYSTEMS[self.scheme],
                "DirectoryPath": slash + path or "/",
            }
        }

    def _problems(self) -> Iterator[str]:
        """Yield in plain words what the service would refuse."""
        if self.mode and self.mode not in MODES:
            yield f"invalid mode {self.mode!r}: expected one of {', '.join(MODES)}"
        if not self.values.get("shuffle", "0").isdecimal():
            yield f"invalid shuffle {self.values['shuffle']!r}: expected a number, the seed"
        if self.flags >= {"manifest", "augmented"}:
            yield "a manifest is either plain or augmented"
        yield from self._wrong_system() if self.needs_vpc else self._wrong_objects()

    def _wrong_system(self) -> Iterator[str]:
        if self.mode not in ("", "File"):
            yield f"a file system is mounted; leave mode={self.mode} out"
        if self.flags - {"rw"} or {"attributes", "shuffle"} & set(self.values):
            yield "a file system has only the settings rw and type=…"

    def _wrong_objects(self) -> Iterator[str]:
        if "rw" in self.flags:
            yield "rw is only for file systems: a channel from S3 is read"
        augmented = "augmented" in self.flags
        if augmented and self.mode != "Pipe":
            yield "an augmented manifest is read with mode=Pipe only"
        if augmented != ("attributes" in self.values):
            yield "an augmented manifest needs attributes=NAME+NAME, and no other channel has it"
        if self.mode != "Pipe" and self.flags & {"gzip", "recordio"}:
            yield "gzip and recordio are for mode=Pipe"
