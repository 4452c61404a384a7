"""`%%distrain image`: the cell as a container image, built and pushed but not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb import api
from distrain_nb.errors import CaptureError
from distrain_nb.findings import errors
from distrain_nb.image import CloudBuild, Recipe, at_most_every, build, dockerfile
from distrain_nb.magics.command_line import image_options

if TYPE_CHECKING:
    import argparse

    from distrain_nb.image import Image, Progress

BAR_EVERY_S = 0.1


def run_image(words: list[str], source: api.Source) -> Image | None:
    """The image, which shows what is in it. Raises OptionError, CaptureError and ImageError."""
    options = image_options(words)
    if options is None:
        return None
    program = api.program(source, include=options.include, require=options.require)
    if errors(program.findings):
        raise CaptureError(errors(program.findings))
    recipe = Recipe(
        base=options.base,
        target=options.target,
        python=options.python,
        platform=options.platform,
        allowed_secrets=tuple(options.allow_secret),
        run=tuple(options.run),
        look_inside=options.look_inside,
    )
    if options.dockerfile:
        print(dockerfile(program, recipe))
        return None
    bar = _Bar()
    try:
        return build(program, recipe, _builder(options), at_most_every(BAR_EVERY_S, bar.show))
    finally:
        bar.clear()


def _builder(options: argparse.Namespace) -> str | CloudBuild:
    if options.builder != "cloudbuild":
        return str(options.builder)
    return CloudBuild(options.project, options.bucket)


class _Bar:
    """One output that shows how far the build is, and is empty when that is over."""

    def __init__(self) -> None:
        from IPython.display import DisplayHandle

        self._handle: Any = DisplayHandle()
        self._shown = False

    def show(self, event: Progress) -> None:
        bundle = {"text/plain": str(event), "text/html": event._repr_html_()}
        show = self._handle.update if self._shown else self._handle.display
        self._shown = True
        show(bundle, raw=True)

    def clear(self) -> None:
        if self._shown:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)
