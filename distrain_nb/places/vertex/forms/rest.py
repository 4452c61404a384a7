"""The request that creates a custom job, for what `gcloud` takes neither as flags nor as a file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from distrain_nb.errors import OptionError
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.form import as_json
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.reduction_server import reduction_image
from distrain_nb.places.vertex.forms.specs import from_specs

if TYPE_CHECKING:
    from distrain_nb.types import Json

CREATES = re.compile(r"/customJobs\b")
REFUSED = (
    "gcloud refuses a file with an empty pool ({}): the form vertex-gcloud has a command that "
    "sends such a job"
)

_CURL, _REQUEST = "curl …/customJobs", "job.json"


def has_empty_pool(spec: Mapping[str, Json]) -> bool:
    """Return whether a `CustomJobSpec` leaves a position before its last pool empty. gcloud (528)
    refuses such a pool in a file, and takes it as a flag."""
    return not all(cast("list[Json]", spec.get("workerPoolSpecs", [])))


def request_command(layout: Layout, spec: Json) -> str:
    """Write the request that `gcloud` would send, for what it takes neither as flags nor from a
    file."""
    body = as_json({"displayName": placeholders.JOB_NAME, "jobSpec": spec})
    region = layout.region or placeholders.LOCATION
    return f"cat > {_REQUEST} <<'EOF'\n{body}EOF\n" + post_command(
        region, placeholders.PROJECT, _REQUEST
    )


def post_command(region: str, project: str, file: str) -> str:
    """Write the command that sends a file in JSON to the API."""
    url = f"{region}-aiplatform.googleapis.com/v1/projects/{project}/locations/{region}/customJobs"
    words = [
        '--header="Authorization: Bearer $(gcloud auth print-access-token)"',
        '--header="Content-Type: application/json"',
        f"--data=@{file}",
        shlex.quote(f"https://{url}"),
    ]
    return " \\\n  ".join(["curl", *words])


def from_request(words: Sequence[str], body: object) -> Imported:
    """Read the command that sends a request, with the file that it sends."""
    url = next((word for word in words if CREATES.search(word)), "")
    region = re.search(r"/locations/([^/]+)/", url)
    if not isinstance(body, dict):
        raise OptionError(f"{url} gets a file that isn't here: paste it too")
    imported = from_specs({key: value for key, value in body.items() if key != "displayName"})
    layout = imported.layout
    if region and region[1] != placeholders.LOCATION:
        layout = replace(layout, region=region[1])
    return replace(imported, form=_CURL, layout=near_image(layout))


def near_image(layout: Layout) -> Layout:
    """Return the layout without the Reduction Server's image that a job gets anyway."""
    pool = layout.reducers
    if pool and pool.image is None:
        pool = replace(pool, image=reduction_image(current(), None))
    if pool and pool.image == reduction_image(current(), layout.region):
        pool = replace(pool, image=None)
    return replace(layout, reducers=pool)
