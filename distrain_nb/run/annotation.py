"""What people say of a run: a note and tags, which may be changed at any time.

They stand in a file of the run's folder. Until it is written, the tags are those of `--tag`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from distrain_nb.errors import OptionError, shown
from distrain_nb.run.folder_access import writable
from distrain_nb.types import Json
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import ANNOTATION_FILE, OPTIONS_FILE

LONGEST_NOTE, LONGEST_TAG, MOST_TAGS = 2_000, 64, 20


@dataclass(frozen=True)
class Annotation:
    """The note and the tags of a run."""

    note: str = ""
    tags: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Annotation:
        """Return the annotation of the run in this folder; an empty one if it can't be read."""
        with suppress(OSError, fields.Damaged):
            return fields.read(cls, folder / ANNOTATION_FILE)
        with suppress(OSError, fields.Damaged, OptionError):
            return cls("", tags_in(fields.load(folder / OPTIONS_FILE).get("tag", ())))
        return cls()

    def changed(self, note: str | None = None, tags: Iterable[str] | None = None) -> Annotation:
        """Return it with another note, or other tags. Raises OptionError for what is too long."""
        text = self.note if note is None else note.strip()
        if len(text) > LONGEST_NOTE:
            raise OptionError(
                f"invalid note {shown(text)}: {len(text):,} characters; "
                f"at most {LONGEST_NOTE:,} are allowed"
            )
        return Annotation(text, self.tags if tags is None else tags_in(tags))

    def write(self, folder: Path) -> None:
        """Keep it. Raises StoreError where the folder can't be written."""
        with writable(f"run {folder.name}", folder, "keeps its note and tags"):
            replace_file(folder / ANNOTATION_FILE, fields.encode(self))

    def as_json(self) -> dict[str, Json]:
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    @property
    def tag_text(self) -> str:
        """The tags in a line: `baseline, good`."""
        return ", ".join(self.tags)


def tags_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the tags in texts that may have several, parted by commas, each once.

    Raises OptionError for a tag that can't be one, and for too many.
    """
    words = [word.strip() for text in texts for word in str(text).split(",")]
    tags = tuple(dict.fromkeys(filter(None, words)))
    for tag in tags:
        if len(tag) > LONGEST_TAG or not tag.isprintable():
            raise OptionError(
                f"invalid tag {shown(tag)}: expected at most {LONGEST_TAG} printable characters"
            )
    if len(tags) > MOST_TAGS:
        raise OptionError(f"{len(tags)} tags are too many: a run has at most {MOST_TAGS}")
    return tags


def annotate(folder: Path, query: Mapping[str, str]) -> Annotation:
    """Change what a page says in `note` and `tags`, and return all of it. Raises OptionError,
    StoreError."""
    tags = (query["tags"],) if "tags" in query else None
    annotation = Annotation.read(folder).changed(query.get("note"), tags)
    annotation.write(folder)
    return annotation
