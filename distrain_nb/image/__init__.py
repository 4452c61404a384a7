"""A program becomes a container image in a registry, by default without Docker."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distrain_nb.image.builders import build
    from distrain_nb.image.builders.cloudbuild import CloudBuild
    from distrain_nb.image.builders.dependencies import read_requirements
    from distrain_nb.image.builders.docker import REDUCTION_SERVER, dockerfile
    from distrain_nb.image.image import Image, ImageLayer
    from distrain_nb.image.progress import Listener, at_most_every
    from distrain_nb.image.recipe import Recipe
    from distrain_nb.image.registry.reference import Reference

# A process that carries a run needs none of the registry client.
_HOMES = {
    "build": "distrain_nb.image.builders",
    "CloudBuild": "distrain_nb.image.builders.cloudbuild",
    "read_requirements": "distrain_nb.image.builders.dependencies",
    "REDUCTION_SERVER": "distrain_nb.image.builders.docker",
    "dockerfile": "distrain_nb.image.builders.docker",
    "Image": "distrain_nb.image.image",
    "ImageLayer": "distrain_nb.image.image",
    "Recipe": "distrain_nb.image.recipe",
    "Listener": "distrain_nb.image.progress",
    "at_most_every": "distrain_nb.image.progress",
    "Reference": "distrain_nb.image.registry.reference",
}

__all__ = [
    "REDUCTION_SERVER",
    "CloudBuild",
    "Image",
    "ImageLayer",
    "Listener",
    "Recipe",
    "Reference",
    "at_most_every",
    "build",
    "dockerfile",
    "read_requirements",
]

if not TYPE_CHECKING:  # or checkers would take any name for one that is here

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
