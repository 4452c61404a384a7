"""How a program gets to AWS's framework containers: the archive of script mode."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from distrain_nb.backends.remote.delivery import files_of_worker, pack, unpinned
from distrain_nb.backends.sagemaker.containers import IMPORTED_AS
from distrain_nb.backends.sagemaker.script import ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.backends.remote.delivery import Laid

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
    lines = "".join(f"{line}\n" for line in needed(program.requirements, framework))
    if lines:
        texts["requirements.txt"] = lines
    pack(texts, (*program.files(), *files_of_worker()), file)


def needed(requirements: Iterable[str], framework: str | None) -> Iterator[str]:
    """What a framework container is to install: its own framework, and the versions of all that it
    has, stay; a notebook's exact versions may not be there for its Python."""
    return unpinned(requirements, IMPORTED_AS.get(framework or "", ())[:1])
