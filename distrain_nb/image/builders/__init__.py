"""Ways of building: layers appended, Docker, Cloud Build."""

from __future__ import annotations

from distrain_nb.cluster.equipment import SCRATCH
from distrain_nb.errors import ImageError, OptionError
from distrain_nb.image.builders import append, cloudbuild, docker
from distrain_nb.image.image import Image
from distrain_nb.image.progress import Listener
from distrain_nb.image.recipe import ProgramFiles, Recipe
from distrain_nb.secrets import refuse_secret_texts

_BY_NAME = {"append": append.build, "docker": docker.build}


def build(
    program: ProgramFiles,
    recipe: Recipe,
    builder: str | cloudbuild.CloudBuild = "append",
    progress: Listener | None = None,
) -> Image:
    """Build an image of a program and push it to `recipe.target`.

    `builder` is `append`, `docker`, or a place in Cloud Build. Raises OptionError for another
    one, CheckFailed for files and options that look like secrets, ImageError for what stops the
    build.
    """
    if not recipe.guarded:
        texts = {"require": recipe.requirements, "run": recipe.run, "base": (recipe.base,)}
        refuse_secret_texts(texts, recipe.allowed_secrets)
    if recipe.base == SCRATCH and builder != "append":
        raise ImageError(f"invalid base {SCRATCH}: only --builder append builds on the empty image")
    if isinstance(builder, cloudbuild.CloudBuild):
        return cloudbuild.build(program, recipe, builder, progress)
    if builder not in _BY_NAME:
        raise OptionError(
            f"invalid --builder {builder!r}: expected {', '.join(_BY_NAME)} or cloudbuild"
        )
    return _BY_NAME[builder](program, recipe, progress)
