"""A program becomes a container image in a registry, by default without Docker."""

from distrain_nb.image.builders.choice import build
from distrain_nb.image.builders.cloudbuild import CloudBuild
from distrain_nb.image.builders.dependencies import read_requirements
from distrain_nb.image.builders.docker import REDUCTION_SERVER, dockerfile
from distrain_nb.image.image import Image, ImageLayer, Recipe
from distrain_nb.image.progress import Listener, at_most_every
from distrain_nb.image.registry.reference import Reference

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
