"""The `CustomJob` of Vertex AI's SDK, written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from distrain_nb.layout.formats import pieces
from distrain_nb.layout.formats.pieces import present, snake
from distrain_nb.layout.layout import Layout
from distrain_nb.places.vertex.forms.specs import worker_pool_specs

if TYPE_CHECKING:
    from distrain_nb.types import Json

_BUCKET = "gs://BUCKET"
_STRATEGIES = "from google.cloud.aiplatform.compat.types import custom_job\n"


def custom_job_text(layout: Layout) -> str:
    """Return the layout as a job of the SDK that can be pasted into a notebook, with its
    imports."""
    pools = json.dumps(_snake_keys(worker_pool_specs(layout)), indent=4, ensure_ascii=False)
    start = present(timeout=layout.timeout, max_wait_duration=layout.max_wait)
    lines = [f"    {name}={value!r},\n" for name, value in start.items()]
    if strategy := layout.scheduling:
        name = f".{strategy}" if strategy.isidentifier() else f"[{strategy!r}]"
        lines.append(f"    scheduling_strategy=custom_job.Scheduling.Strategy{name},\n")
    body = "\n" + "".join(lines) if lines else ""
    return (
        f"from google.cloud import aiplatform\n{_STRATEGIES if layout.scheduling else ''}\n"
        f"aiplatform.init(\n    project={pieces.PROJECT!r},\n"
        f"    location={layout.region or pieces.LOCATION!r},\n    staging_bucket={_BUCKET!r},\n)\n"
        f"job = aiplatform.CustomJob(\n    display_name={pieces.JOB_NAME!r},\n"
        f"    worker_pool_specs={pools.replace(chr(10), chr(10) + '    ')},\n)\n"
        f"job.submit({body})\n"
    )


def _snake_keys(value: Json) -> Json:
    """Return a value with keys as Python has them."""
    if isinstance(value, dict):
        return {snake(name): _snake_keys(member) for name, member in value.items()}
    return [_snake_keys(member) for member in value] if isinstance(value, list) else value
