"""`%%distrain image`: the cell as a container image, built and pushed but not run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from distrain_nb import api
from distrain_nb.errors import CaptureError
from distrain_nb.findings import errors
from distrain_nb.image import CloudBuild, Recipe, at_most_every, build, dockerfile
from distrain_nb.magics.command_line import HelpAsked, image_options
from distrain_nb.magics.help import show
from distrain_nb.magics.help_page import page_of
from distrain_nb.worker.files.disk import readable_size
from distrain_nb.worker.files.status import Progress

if TYPE_CHECKING:
    from distrain_nb.image import Image
    from distrain_nb.ui.outputs import CellOutput


def run_image(words: list[str], source: api.Source) -> Image | None:
    """Return the image, which shows what is in it. Raises OptionError, CaptureError and
    ImageError."""
    try:
        options = image_options(words)
    except HelpAsked as request:
        show(page_of(request.parser))
        return None
    program = api.program(source, include=options.include, require=options.require)
    if errors(program.findings):
        raise CaptureError(errors(program.findings))
    recipe = Recipe(
        base=options.base,
        target=options.target,
        requirements=program.required,
        python=options.python,
        platform=options.platform,
        allowed_secrets=tuple(options.allow_secret),
        run=tuple(options.run),
        look_inside=options.look_inside,
    )
    if options.dockerfile:
        print(dockerfile(program, recipe))
        return None
    from distrain_nb.ui.outputs import pause_s

    bar = _Bar()
    try:
        return build(program, recipe, _builder(options), at_most_every(pause_s(), bar.show))
    finally:
        bar.clear()


def _builder(options: argparse.Namespace) -> str | CloudBuild:
    if options.builder != "cloudbuild":
        return str(options.builder)
    return CloudBuild(options.project, options.bucket)


class _Bar:
    """One output that shows how far the build is, and is empty when that is over."""

    _output: CellOutput | None = None

    def show(self, event: Progress) -> None:
        from distrain_nb.ui import outputs

        bundle = shown(event)
        if self._output is not None:
            self._output.replace(bundle)
        elif outputs.replaceable():
            self._output = outputs.show(bundle)

    def clear(self) -> None:
        if self._output is not None:
            self._output.replace({"text/plain": "", "text/html": ""})


def shown(progress: Progress) -> dict[str, str]:
    """Return how far the build is, in words and as a bar."""
    text, value = progress.phase, ""
    if progress.total:
        text += f": {readable_size(progress.done)} of {readable_size(progress.total)}"
        value = f" value='{progress.done}' max='{progress.total}'"
    bar = f"<div><progress{value} style='width: 20em'></progress> {text}</div>"
    return {"text/plain": text, "text/html": bar}
