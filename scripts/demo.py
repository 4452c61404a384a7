"""Runs the quickstart notebook as a user would, headless, and says where to look."""

from __future__ import annotations

import os
import sys
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
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": SOURCE.parent}}
    )
    try:
        client.execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        nbformat.write(notebook, EXECUTED)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stdout":
                print(output.text, end="")
    print(f"\nThe executed notebook: {EXECUTED.relative_to(ROOT)}")
    print("Look at it: .venv/bin/jupyter lab out/quickstart.ipynb")
    return 0


if __name__ == "__main__":
    sys.exit(main())
