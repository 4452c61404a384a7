"""A program: a cell that has become self-contained, and what it says about itself."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.program.progress import ByteCounter, report, write_file
from distrain_nb.secrets import HIDDEN, is_secret
from distrain_nb.worker.files.disk import readable_size
from distrain_nb.worker.files.session import SENT, NamesSent
from distrain_nb.worker.rank import values
from distrain_nb.worker.rank.expected import EXPECTED
from distrain_nb.worker.rank.later import LATER, LATER_VALUES, Later, written
from distrain_nb.worker.rank.program import (
    ARGUMENTS,
    ENTRY,
    ENVIRONMENT,
    RUNS_MAIN,
    SOURCE_MAP,
    TUNED,
    EntryPoint,
    Segment,
    source_map,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from distrain_nb.findings import Finding


SYNTAX_ERROR = "capture.syntax-error"


@dataclass(frozen=True)
class CapturedValue:
    """A captured value: its type's name, its size in bytes, the places that use it.

    `literal` is its text where it is short enough to stand in main.py. Making one with
    `starts_tensorflow` starts TensorFlow's runtime.
    """

    name: str
    type: str
    size: int
    where: tuple[str, ...]
    literal: str | None = None
    starts_tensorflow: bool = False


@dataclass(frozen=True)
class CapturedSource:
    """A captured definition: what it is, the cell it is from, the places that use it."""

    name: str
    kind: str
    origin: str
    where: tuple[str, ...]


@dataclass(frozen=True)
class Data:
    """The files of the captured values, complete."""

    index: str = field(repr=False)
    objects: bytes = field(repr=False)
    arrays: bytes = field(repr=False)

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / values.INDEX).write_text(self.index, encoding="utf-8")
        meter = ByteCounter("writing values", len(self.objects) + len(self.arrays))
        write_file(folder / values.OBJECTS, self.objects, meter)
        write_file(folder / values.ARRAYS, self.arrays, meter)


@dataclass(frozen=True)
class Program:
    """A cell or script with all that it needs.

    `main` is the text of the file that runs, which `entry` names; `segments` say which of its lines
    are which lines of which cell. `files` go beside it, by their path. `requirements` are
    `name==version` of what is imported and installed, `required` those that were asked for;
    `imports` the top-level names of all imported modules, those of the standard library and local
    ones included; `arguments` are its `sys.argv[1:]`, `variables` of the environment are set before
    it runs; `expected` is what its text must have made before the cell runs, and `exempt` what of
    it is not compared, with why; `later` are definitions that it makes on demand, with the files of
    their values in `later_data`; `tuned` are the names that trials of a study give values, and the
    type of each: "float", "int" or "str"; `sent` is what ranks of a session note of it. Errors
    among `findings` mean that it can't run.
    """

    label: str
    main: str = field(repr=False)
    segments: tuple[Segment, ...] = field(repr=False)
    values: tuple[CapturedValue, ...]
    sources: tuple[CapturedSource, ...]
    files: Mapping[str, bytes | Path]
    requirements: tuple[str, ...]
    imports: frozenset[str]
    findings: tuple[Finding, ...]
    data: Data | None = field(default=None, repr=False)
    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    entry: EntryPoint = RUNS_MAIN
    tuned: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    expected: str = field(default="", repr=False)
    exempt: tuple[str, ...] = ()
    later: Mapping[str, Later] = field(default_factory=dict, repr=False)
    later_data: Data | None = field(default=None, repr=False)
    sent: NamesSent | None = None

    @property
    def is_read(self) -> bool:
        """Whether Python reads it; else its findings say where it doesn't, and nothing more."""
        return all(finding.code != SYNTAX_ERROR for finding in self.findings)

    def write(self, folder: Path) -> None:
        """Write what runs, its source map, the values and the files to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, file in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            report(f"copying {name}")
            if isinstance(file, bytes):
                target.write_bytes(file)
            else:
                shutil.copyfile(file, target)
        if self.data is not None:
            self.data.write(folder / values.VALUES_FOLDER)
        if self.expected:
            (folder / EXPECTED).write_text(self.expected, encoding="utf-8")
        if self.sent is not None:
            (folder / SENT).write_bytes(self.sent.encode())
        if self.later_data is not None:
            self.later_data.write(folder / LATER_VALUES)
        if self.later:
            (folder / LATER).write_text(written(dict(self.later)), encoding="utf-8")
        (folder / SOURCE_MAP).write_text(source_map(self.segments), encoding="utf-8")
        for name, content in (
            (ARGUMENTS, self.arguments),
            (ENVIRONMENT, dict(self.variables)),
            (TUNED, dict(self.tuned)),
            (ENTRY, self.entry._asdict() if self.entry.is_script else None),
        ):
            if content:
                (folder / name).write_text(json.dumps(content), encoding="utf-8")
        main = folder / self.entry.file
        main.parent.mkdir(parents=True, exist_ok=True)
        main.write_text(self.main, encoding="utf-8")

    def describe(self, packages: Sequence[str] | None = None) -> str:
        """Return what it captured and why, and its text, as `--dry-run` prints it. `packages` are
        those that the job installs; None if it installs none, and its Python has them."""
        parts = [
            *(str(f) for f in self.findings),
            *_section(
                "Definitions from the notebook",
                (f"{s.name}: {s.kind} from {s.origin}{_used(s.where)}" for s in self.sources),
            ),
            *_section("Values from the notebook", map(_value_line, self.values)),
            *_section("Not compared with the notebook", self.exempt),
            *_section("Arguments", [shlex.join(self.arguments)] if self.arguments else []),
            *_section("Variables", (f"{name}={value}" for name, value in self.variables.items())),
            *_section("Files", sorted(self.files)),
            *(
                _section("Requirements", (*self.requirements, *self.required))
                if packages is None
                else _section("Packages that the job gets", packages)
            ),
            f"{self.entry.file}:",
        ]
        text = self.main
        for value in filter(_is_hidden, self.values):  # that look like secrets
            line = f"\n{value.name} = {value.literal}\n"
            text = text.replace(line, f"\n{value.name} = {HIDDEN}\n")
        return "\n".join([*parts, text])


# What stands for a program where there is none yet.
NO_PROGRAM = Program("", "", (), (), (), {}, (), frozenset(), ())


def _is_hidden(value: CapturedValue) -> bool:
    return value.literal is not None and is_secret(value.name, value.literal)


def _section(title: str, lines: object) -> list[str]:
    found = [f"  {line}" for line in lines]  # type: ignore[attr-defined]
    return [f"{title}:", *found, ""] if found else []


def _value_line(value: CapturedValue) -> str:
    literal = HIDDEN if _is_hidden(value) else value.literal
    size = f"= {literal}" if literal is not None else readable_size(value.size)
    return f"{value.name}: {value.type}, {size}{_used(value.where)}"


def _used(where: tuple[str, ...]) -> str:
    more = f" and {len(where) - 1} more" if len(where) > 1 else ""
    return f", used at {where[0]}{more}" if where else ""
