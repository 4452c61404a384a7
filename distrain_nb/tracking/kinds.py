"""The kinds of trackers: MLflow, and those of places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from distrain_nb import installed
from distrain_nb.config import Config
from distrain_nb.worker.files.folder import MLFLOW_FILE, TRACKING_FILE

if TYPE_CHECKING:
    from distrain_nb.tracking.tracker import Tracker

GROUP = "distrain_nb.trackers"


@dataclass(frozen=True)
class PlaceNames:
    """How a place's tracker calls what is mirrored.

    `address` is that of its experiments for runs that are no jobs of the place, by settings and
    variables, and raises OptionError; `experiment` makes a name that an experiment can have, and
    `run` one that a run of an experiment can have.
    """

    address: Callable[[Config, Mapping[str, str]], str]
    experiment: Callable[[str], str]
    run: Callable[[str, str], str]


@dataclass(frozen=True)
class Kind:
    """A kind of tracker, by its `title`.

    `folder` of DISTRAIN_HOME is the list of what is to be mirrored; `request_file` and
    `tracked_file` of a run's folder say what and how far. `package` is what it needs, and comes
    with the extra `extra`. With `nests` a run may be below another. `tracker` connects to an
    address. A place's kind has addresses of a `scheme`, and `names`. `note_tag` is where it shows a
    run's note.
    """

    title: str
    folder: str
    request_file: str
    tracked_file: str
    package: str
    extra: str
    nests: bool
    tracker: Callable[[str], Tracker]
    scheme: str = ""
    note_tag: str = "distrain.note"
    names: PlaceNames | None = None

    @property
    def installed(self) -> bool:
        try:
            return find_spec(self.package) is not None
        except ModuleNotFoundError:  # not even what it is a part of
            return False


def _mlflow(uri: str) -> Tracker:
    from distrain_nb.tracking.mlflow_run import MlflowTracker

    return MlflowTracker(uri)


MLFLOW = Kind(
    "MLflow",
    "tracking",
    TRACKING_FILE,
    MLFLOW_FILE,
    "mlflow",
    "mlflow",
    nests=True,
    tracker=_mlflow,
    note_tag="mlflow.note.content",
)


def kinds() -> Mapping[str, Kind]:
    """Return every kind of tracker by its folder."""
    return {kind.folder: kind for kind in (MLFLOW, *installed.loaded(GROUP))}


def kind_of(uri: str) -> Kind:
    """Return the kind of tracker at an address."""
    of_places = (kind for kind in kinds().values() if kind.scheme)
    return next((kind for kind in of_places if uri.startswith(kind.scheme)), MLFLOW)


def place_kind(name: str) -> Kind | None:
    """Return the kind of tracker that a place brings; None if it brings none."""
    point = installed.points_of(GROUP).get(name)
    kind: Kind | None = point.load() if point else None
    return kind
