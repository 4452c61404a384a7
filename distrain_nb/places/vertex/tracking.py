"""Vertex AI Experiments as a tracker of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from distrain_nb.config import Config
from distrain_nb.tracking.kinds import Kind, PlaceNames
from distrain_nb.worker.files.folder import VERTEX_FILE, VERTEX_REQUEST_FILE
from distrain_nb.worker.files.tracked import VERTEX_SCHEME

if TYPE_CHECKING:
    from distrain_nb.tracking.tracker import Tracker


def _tracker(uri: str) -> Tracker:
    from distrain_nb.places.vertex.tracker import VertexTracker

    return VertexTracker(uri)


def _address(config: Config, environ: Mapping[str, str]) -> str:
    from distrain_nb.places.vertex.experiments import place_of

    return str(place_of(config, environ))


def _experiment(name: str) -> str:
    from distrain_nb.places.vertex.experiments import experiment_name

    return experiment_name(name)


def _run(experiment: str, name: str) -> str:
    from distrain_nb.places.vertex.experiments import run_name

    return run_name(experiment, name)


VERTEX = Kind(
    "Vertex AI Experiments",
    "tracking-vertex",
    VERTEX_REQUEST_FILE,
    VERTEX_FILE,
    "google.cloud.aiplatform",
    "vertex",
    nests=False,
    tracker=_tracker,
    scheme=VERTEX_SCHEME,
    names=PlaceNames(_address, _experiment, _run),
)
