"""Runs the quickstart notebook as a user would, headless, and says where to look."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "notebooks" / "quickstart.ipynb"
EXECUTED = ROOT / "out" / "quickstart.ipynb"


def main() -> int:
    EXECUTED.parent.mkdir(exist_ok=True)
    os.environ.setdefault("DISTRAIN_HOME", str(EXECUTED.parent / "distrain"))
    notebook = nbformat.read(SOURCE, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": SOURCE.parent}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        nbformat.write(notebook, EXECUTED)
    for text in printed(notebook):
        print(text)
    print(f"The executed notebook: {EXECUTED.relative_to(ROOT)}")
    print(f"Look at it: .venv/bin/jupyter lab {EXECUTED.relative_to(ROOT)}")
    return 0


def printed(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """What the cells show as text, but for the long text of the dry run."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []) if "--dry-run" not in cell.source else []:
            if output.get("name") == "stdout":
                yield output.text
            elif "text/plain" in output.get("data", {}):
                yield output.data["text/plain"] + "\n"


if __name__ == "__main__":
    sys.exit(main())
