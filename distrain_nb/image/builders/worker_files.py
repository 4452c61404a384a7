"""What of this package travels into images: the part that starts ranks."""

from __future__ import annotations

from pathlib import Path

import distrain_nb


def worker_files() -> dict[str, Path]:
    """What travels into an image of this package itself, by its place below PYTHONPATH."""
    package = Path(distrain_nb.__file__).parent
    return {
        "distrain_nb/__init__.py": package / "__init__.py",
        "distrain_nb/worker": package / "worker",
    }
