"""Print which slow tests `make test` runs: of which kind of real thing each one is, or `brief`."""

from __future__ import annotations

import sys

import pytest


class Kinds:
    """Collects tests that stand for their kind, and modules of brief ones."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.rows = [
            (str(mark.args[0]), item.nodeid)
            for item in session.items
            for mark in item.iter_markers("stands_for")
        ]
        brief = (item.path for item in session.items if item.get_closest_marker("brief"))
        self.rows += [
            ("brief", str(path.relative_to(session.path))) for path in dict.fromkeys(brief)
        ]


def main() -> int:
    """Print a line for each; return the exit status."""
    kinds = Kinds()
    status = pytest.main(
        ["--collect-only", "-o", "addopts=", "-p", "no:terminal", "-m", "stands_for or brief"],
        plugins=[kinds],
    )
    width = max((len(kind) for kind, _ in kinds.rows), default=0)
    print("\n".join(f"{kind:{width}}  {test}" for kind, test in sorted(kinds.rows)))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
