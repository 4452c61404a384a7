"""What `%distrain doctor` looks for, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Health(str, Enum):
    """MISSING is what only some jobs need; WRONG is in the way of every one."""

    GOOD = "good"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True)
class Check:
    """`found` says what there is; `remedy` what to do where that is not enough."""

    what: str
    state: Health
    found: str
    remedy: str = ""


def packages(what: str, names: Sequence[str], extra: str) -> Check:
    """Return whether the packages of those names are installed; `extra` brings them."""
    found = {name: installed(name) for name in names}
    lacking = [name for name, number in found.items() if number is None]
    if lacking:
        remedy = f"pip install 'distrain-nb[{extra}]'"
        return Check(what, Health.MISSING, f"{', '.join(lacking)}: not installed", remedy)
    return Check(what, Health.GOOD, ", ".join(f"{n} {number}" for n, number in found.items()))


def login(found: str, remedy: str) -> Check:
    """Return whether there are credentials; `found` names them, empty where there are none."""
    if found:
        return Check("login", Health.GOOD, found)
    return Check("login", Health.MISSING, "none on this machine's disk or in its variables", remedy)


def allowed(what: str, lacking: Sequence[str], remedy: str) -> Check:
    """Return whether the service allows all that is needed of something; `lacking` is what it does
    not."""
    if lacking:
        return Check(what, Health.MISSING, f"not allowed: {', '.join(lacking)}", remedy)
    return Check(what, Health.GOOD, "all that jobs need is allowed")


def installed(name: str) -> str | None:
    """Return the version of a distribution, None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
