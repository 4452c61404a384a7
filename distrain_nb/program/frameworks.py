"""Which frameworks a program trains with, by what it imports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distrain_nb.program.python.imports import ImportedModule

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

# What the catalog's frameworks are imported as, and what builds on them alone. A framework that
# stands before another one decides where a container has only one of them.
IMPORTED_AS: Mapping[str, tuple[str, ...]] = {
    "pytorch": ("torch", "lightning", "pytorch_lightning", "accelerate", "transformers"),
    "tensorflow": ("tensorflow", "tf_keras"),
    "jax": ("jax", "flax", "optax", "orbax", "equinox", "haiku"),
    "xgboost": ("xgboost",),
    "scikit-learn": ("sklearn",),
}
# The distribution that has the framework.
PACKAGES: Mapping[str, str] = {
    "pytorch": "torch",
    "tensorflow": "tensorflow",
    "jax": "jax",
    "xgboost": "xgboost",
    "scikit-learn": "scikit-learn",
}

KERAS_BACKEND = "KERAS_BACKEND"
# Keras 3 computes with one of these, and takes TensorFlow where nobody has chosen.
_BACKENDS = ("tensorflow", "jax", "torch")
_CHOSEN = re.compile(
    rf"""(?:{KERAS_BACKEND}["']?\]?\s*[=,]|set_backend\()\s*["']?({"|".join(_BACKENDS)})\b"""
)


def frameworks_of(imports: Collection[str]) -> tuple[str, ...]:
    """Return the catalog's names of the frameworks that are imported, in the order of
    `IMPORTED_AS`."""
    names = set(imports)
    if "keras" in names and names.isdisjoint(_BACKENDS):
        names.add("tensorflow")
    return tuple(name for name, modules in IMPORTED_AS.items() if names & set(modules))


def with_backend(imports: Sequence[ImportedModule], text: str) -> tuple[ImportedModule, ...]:
    """Return the imports of a program of that text, with the module that Keras computes with, where
    Keras is imported and the module is not: it is imported too, and no package brings it."""
    roots = {found.root for found in imports}
    if "keras" not in roots:
        return tuple(imports)
    chosen = _CHOSEN.search(text)
    backend = chosen[1] if chosen else "tensorflow"
    implied = backend not in roots and (chosen or roots.isdisjoint(_BACKENDS))
    return (*imports, ImportedModule(backend, (), 0)) if implied else tuple(imports)
