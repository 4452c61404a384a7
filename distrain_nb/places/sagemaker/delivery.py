"""How a program gets to AWS's framework containers: the archive of script mode."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from distrain_nb.backends.remote.delivery import files_of_worker, pack, to_install
from distrain_nb.places.sagemaker.script import ENTRY
from distrain_nb.program.frameworks import PACKAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.backends.remote.delivery import Laid, Requiring

_ENTRY_SCRIPT = """\
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
os.environ["DISTRAIN_PROGRAM"] = os.path.join(here, "program")
sys.path.insert(0, here)

from distrain_nb.worker.replica.script import main

sys.exit(main())
"""


def write_archive(program: Laid, framework: str | None, file: IO[bytes]) -> None:
    """Write the archive: the entry script, the program, the worker and what pip is to install, if
    there is anything."""
    texts = {ENTRY: _ENTRY_SCRIPT}
    lines = "".join(f"{line}\n" for line in needed(program, framework))
    if lines:
        texts["requirements.txt"] = lines
    pack(texts, (*program.files(), *files_of_worker()), file)


def needed(program: Requiring, framework: str | None) -> Iterator[str]:
    """What a framework container is to install; its own framework stays."""
    there = PACKAGES.get(framework or "")
    return to_install(program, [there] if there else ())
