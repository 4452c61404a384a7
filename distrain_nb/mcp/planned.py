"""The files that an agent's plan reads: layouts of a folder that may be a stranger's, and what a
program takes along when it starts."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout import files

if TYPE_CHECKING:
    from distrain_nb.api import Prepared

PLANS_KEPT = 10
_LARGEST_LAYOUT, _CHUNK = 1 << 20, 1 << 20
# By its number, each with the digests of the files that it named.
_plans: dict[int, tuple[Prepared, dict[Path, str]]] = {}


def keep_plan(prepared: Prepared) -> int:
    """Keep a plan until it is started, and return its number; the last ten are kept."""
    number = max(_plans, default=0) + 1
    _plans[number] = prepared, _digests_of(prepared)
    _plans.pop(number - PLANS_KEPT, None)
    return number


def take_plan(number: int) -> Prepared:
    """Return the plan of that number, once. Raises OptionError for none, and for one of which a
    file has changed since."""
    if number not in _plans:
        raise OptionError(f"no plan {number}: plan_run makes one, and each can be started once")
    prepared, digests = _plans.pop(number)
    now = _digests_of(prepared)
    if changed := [path.name for path in digests if digests[path] != now.get(path)]:
        names = ", ".join(changed[:5])
        raise OptionError(f"plan {number} is no longer what was shown: {names} changed; plan again")
    return prepared


def readable_layouts() -> dict[str, str]:
    """Return the text of each saved layout by its name.

    The folder may be a stranger's, such as a clone: what is no file in it, a link or a FIFO, would
    show another file or never end, so it is left out.
    """
    texts = {}
    root = Path(files.FOLDER)
    for name in () if root.is_symlink() else files.saved():
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(root / f"{name}.yaml", flags)
        except OSError:
            continue
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST_LAYOUT:
            os.close(descriptor)
            continue
        with os.fdopen(descriptor, "rb") as file:
            texts[name] = file.read(_LARGEST_LAYOUT).decode(errors="replace")
    return texts


def _digests_of(prepared: Prepared) -> dict[Path, str]:
    """Return the digests of the files that a plan reads only when it starts; those of files that
    can't be read are empty. The script's own text is in the plan."""
    digests = {}
    for path in prepared.job.program.files.values():
        if isinstance(path, Path):
            try:
                digest = hashlib.sha256()
                with path.open("rb") as file:
                    while chunk := file.read(_CHUNK):
                        digest.update(chunk)
                digests[path] = digest.hexdigest()
            except OSError:
                digests[path] = ""
    return digests
