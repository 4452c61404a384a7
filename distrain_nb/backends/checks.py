"""Checks: what `%distrain doctor` reports, and the checks that several backends make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version


class Health(str, Enum):
    """The state of what a check looks at. MISSING keeps some jobs from running, BROKEN all."""

    GOOD = "good"
    MISSING = "missing"
    BROKEN = "wrong"


@dataclass(frozen=True)
class Check:
    """The result of a check of `%distrain doctor`. If it is not good, `remedy` says what to do."""

    subject: str
    state: Health
    result: str
    remedy: str = ""


def packages(subject: str, names: Sequence[str], extra: str) -> Check:
    """Check whether these packages are installed. *extra* is the extra that installs them."""
    versions = {name: installed(name) for name in names}
    lacking = [name for name, number in versions.items() if number is None]
    if lacking:
        remedy = f"pip install 'distrain-nb[{extra}]'"
        return Check(subject, Health.MISSING, f"{', '.join(lacking)}: not installed", remedy)
    return Check(subject, Health.GOOD, ", ".join(f"{n} {number}" for n, number in versions.items()))


def login(account: str, remedy: str) -> Check:
    """Check whether there are credentials. *account* names them, or is empty."""
    if account:
        return Check("login", Health.GOOD, account)
    return Check("login", Health.MISSING, "none on this machine's disk or in its variables", remedy)


def allowed(subject: str, lacking: Sequence[str], remedy: str) -> Check:
    """Check whether a service allows what jobs need. *lacking* are permissions that it refuses."""
    if lacking:
        return Check(subject, Health.MISSING, f"not allowed: {', '.join(lacking)}", remedy)
    return Check(subject, Health.GOOD, "all that jobs need is allowed")


def installed(name: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
