"""Notebooks on machines that belong to the host of the notebook, and to no project of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.backends.notebooks.place import NotebookPlace

if TYPE_CHECKING:
    from collections.abc import Mapping

# Colab Enterprise sets the first too, and its machines are the user's.
COLAB, PRODUCT, COLAB_ENTERPRISE = "COLAB_RELEASE_TAG", "VERTEX_PRODUCT", "COLAB_ENTERPRISE"
# `Interactive`, or `Batch` for a version that is saved.
KAGGLE = "KAGGLE_KERNEL_RUN_TYPE"


def place(environ: Mapping[str, str]) -> NotebookPlace | None:
    """Kaggle or Colab; None elsewhere. What ends their sessions is told by no variable."""
    if environ.get(KAGGLE):
        return NotebookPlace(f"Kaggle, {environ[KAGGLE].lower()} session")
    if environ.get(COLAB) and environ.get(PRODUCT) != COLAB_ENTERPRISE:
        return NotebookPlace("Colab")
    return None
