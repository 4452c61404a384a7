"""Programs to build images of, as simple as the builders allow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HELLO = """\
import os, sys
print("hello from", sys.version_info[:2], os.environ.get("NAME", "nobody"))
"""


@dataclass(frozen=True)
class SimpleProgram:
    """A `main.py` and other files."""

    source: str = HELLO
    requirements: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        for name, data in {"main.py": self.source.encode(), **self.files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
