"""Layouts in the forms of the clouds: exact texts to copy, and the same forms read back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.layout.formats.ai_platform import training_input
from distrain_nb.layout.formats.detect import read_any
from distrain_nb.layout.formats.gcloud import custom_job_command, training_command
from distrain_nb.layout.formats.pieces import Imported
from distrain_nb.layout.formats.sagemaker import (
    distribution_argument,
    estimator_arguments,
    estimator_text,
    training_job,
)
from distrain_nb.layout.formats.vertex import custom_job_spec, image_of, worker_pool_specs
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.options import heading, printed, texts
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.successor import on_vertex
from distrain_nb.layout.yamls import data_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "EXPORTS",
    "Export",
    "Imported",
    "custom_job_command",
    "custom_job_spec",
    "distribution_argument",
    "estimator_arguments",
    "estimator_text",
    "exports",
    "left_out",
    "read_any",
    "training_command",
    "training_input",
    "training_job",
    "worker_pool_specs",
]


@dataclass(frozen=True)
class Export:
    """A form that a layout can be copied in."""

    name: str
    title: str
    places: tuple[str, ...]
    text: Callable[[Layout], str]
    but: tuple[str, ...] = ()

    def serves(self, place: str) -> bool:
        """Whether layouts of a place have this form."""
        return place not in self.but and (not self.places or place in self.places)

    def left_out(self, layout: Layout) -> tuple[str, ...]:
        """Return the fields of a layout that this form has no place for, such as
        `workers.topology`.

        Those are the ones without which the text would be the same.
        """
        text = self.text(layout)
        return tuple(path for path, without in _without(layout) if self.text(without) == text)


def _without(layout: Layout) -> Iterator[tuple[str, Layout]]:
    """Yield the layout without each of the things that were chosen, by their paths."""
    for name in texts(layout):
        pool = getattr(layout, name)
        if isinstance(pool, Pool):
            yield name, layout.edited({name: None})
            for part in _PARTS:
                if getattr(pool, part) != getattr(Pool, part):
                    yield f"{name}.{part}", layout.edited({f"{name}.{part}": getattr(Pool, part)})
        elif name == "framework" and layout.framework_version:
            yield name, layout.edited({name: layout.framework_name})
        elif name == "region" and layout.reducers:
            # Their image is the nearest to the region, which is not to say the region.
            image = image_of(layout, Role.REDUCERS, layout.reducers)
            yield name, layout.edited({name: None, "reducers.image": image})
        elif name != "on" and (name, pool) != ("scheduling", "STANDARD"):
            yield name, layout.edited({name: getattr(Layout, name)})


_PARTS = ("machine", "accelerator", "disk_type", "disk_gb", "topology", "image")


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


EXPORTS: tuple[Export, ...] = (
    Export(
        "vertex-json", "workerPoolSpecs (JSON)", ("vertex",), lambda it: _json(custom_job_spec(it))
    ),
    Export(
        "vertex-yaml",
        "workerPoolSpecs (YAML)",
        ("vertex",),
        lambda it: data_yaml(custom_job_spec(it)),
    ),
    Export(
        "vertex-gcloud",
        "gcloud ai custom-jobs create",
        ("vertex",),
        lambda it: custom_job_command(it) + "\n",
    ),
    Export(
        "ai-platform-yaml",
        "config.yaml",
        ("ai-platform",),
        lambda it: data_yaml(training_input(it)),
    ),
    Export(
        "ai-platform-gcloud",
        "gcloud ai-platform jobs submit training",
        ("ai-platform",),
        lambda it: training_command(it) + "\n",
    ),
    Export("sagemaker-python", "Estimator (Python SDK 2)", ("sagemaker",), estimator_text),
    Export(
        "sagemaker-json",
        "CreateTrainingJob (JSON)",
        ("sagemaker",),
        lambda it: _json(training_job(it)),
    ),
    Export(
        "options",
        "%%distrain",
        (),
        lambda it: heading(printed(it)) + "\n",
        but=("ai-platform",),
    ),
    Export(
        "successor",
        "%%distrain, the same on Vertex AI",
        ("ai-platform",),
        lambda it: heading(printed(on_vertex(it))) + "\n",
    ),
    Export("yaml", "layouts/NAME.yaml", (), lambda it: it.to_yaml()),
)


def exports(layout: Layout) -> dict[str, str]:
    """Return every form of a layout by the form's name, as text to copy."""
    return {form.name: form.text(layout) for form in EXPORTS if form.serves(layout.on)}


def left_out(imported: Imported) -> tuple[Finding, ...]:
    """Return a finding for everything in the imported text that a layout has no place for."""
    return tuple(
        Finding(
            "import-left-out",
            Severity.INFO,
            path,
            _why(path),
        )
        for path in imported.left_out
    )


def _why(path: str) -> str:
    if path.startswith("--config "):
        return f"the file {path.removeprefix('--config ')} is not here: paste what is in it, too."
    return f"{path} is not part of a layout and was left out."
