"""Layers as anybody may write them: their entries are what a test says, whatever that is."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass, field
from typing import Any

TYPES = {
    "f": tarfile.REGTYPE, "d": tarfile.DIRTYPE, "s": tarfile.SYMTYPE, "l": tarfile.LNKTYPE,
    "c": tarfile.CHRTYPE, "b": tarfile.BLKTYPE, "p": tarfile.FIFOTYPE,
}  # fmt: skip


@dataclass(frozen=True)
class Written:
    """An entry: its kind (see TYPES), its name, and its content or what it leads to."""

    kind: str
    name: str
    content: str = ""
    about: dict[str, Any] = field(default_factory=dict)


def archive(*entries: Written) -> bytes:
    """A tar archive; `about` overrides fields of an entry's header, `pax` those of a pax header."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for written in entries:
            entry = tarfile.TarInfo(written.name)
            entry.type, entry.mode = TYPES[written.kind], 0o755
            content = written.content.encode() if written.kind == "f" else b""
            entry.size = len(content)
            entry.linkname = written.content if written.kind in "sl" else ""
            entry.pax_headers = dict(written.about.get("pax", {}))
            for name, value in written.about.items():
                if name != "pax":
                    setattr(entry, name, value)
            tar.addfile(entry, io.BytesIO(content))
    return data.getvalue()
