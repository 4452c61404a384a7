"""Runs and studies as a tracker is to have them."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.tracker import may_be_reached
from distrain_nb.config import Config
from distrain_nb.errors import OptionError
from distrain_nb.run import Run
from distrain_nb.tracking.request import OFF, TrackingRequest, address
from distrain_nb.tracking.starting import begin, missing
from distrain_nb.tracking.tracker import VERTEX
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.tracked import TRIAL_TAG, Tracked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from distrain_nb.run.store import Record

NAME_VARIABLE = "MLFLOW_EXPERIMENT_NAME"  # what runs are filed under that have no --experiment


def begin_run(record: Record, *, here: bool, own: str = "") -> str:
    """Have a run mirrored that is about to be started; `here` on this machine. `own` is where its
    service keeps experiments. See `begin`."""
    try:
        config = Config.load()
    except OptionError as error:
        return str(error)
    uri = address(config, os.environ)
    waits = here or may_be_reached(uri)
    notes = (_begin_vertex(record, config, own, here), begin(_of(record, uri, here), waits=waits))
    return "; ".join(filter(None, notes))


def _begin_vertex(record: Record, config: Config, own: str, here: bool, study: str = "") -> str:
    try:
        request = vertex_request(record, config, os.environ, own, here=here)
    except OptionError as error:
        return str(error)
    return "" if request is None else begin(replace(request, parent=study), waits=False)


def begin_study(
    folder: Path,
    name: str,
    created: float,
    experiment: str,
    options: Mapping[str, str],
    *,
    here: bool,
    own: str = "",
) -> str:
    """Have a study mirrored that is about to be started, to which its trials then belong; `here`
    and `own` are as in `begin_run`. Gives also what keeps its trials from Vertex AI Experiments,
    where they are to be there."""
    try:
        config = Config.load()
    except OptionError as error:
        return str(error)
    uri = address(config, os.environ)
    filed = experiment or os.environ.get(NAME_VARIABLE, "") or name
    request = TrackingRequest(uri, filed, name, "", created, str(folder), dict(options), _common())
    note = begin(replace(request, ends_here=False), waits=here or may_be_reached(uri))
    return "; ".join(filter(None, (_not_at_vertex(config, own), note)))


def _not_at_vertex(config: Config, own: str) -> str:
    """Say what keeps runs out of Vertex AI Experiments, where they are to be there."""
    if config.tracking == OFF or not (own or config.tracking):
        return ""
    from distrain_nb.backends.vertex.experiments import place_of

    try:
        place = own or place_of(config, os.environ)
    except OptionError as error:
        return str(error)
    return missing(VERTEX, str(place))


def begin_trial(record: Record, study: Path, *, here: bool, own: str = "") -> str:
    """Have the run of a trial mirrored, to MLflow if its study is; `here` and `own` are as in
    `begin_run`. See `begin`."""
    with suppress(OSError, OptionError):
        _begin_vertex(record, Config.load(), own, here, str(study))
    with suppress(OSError, Damaged):
        parent, tracked = TrackingRequest.read(study), Tracked.read(study)
        if parent is not None:
            request = _of(record, parent.uri, here)
            request = replace(
                request,
                parent=str(study),
                experiment=parent.experiment,
                tags={**request.tags, TRIAL_TAG: str(record.handle["trial"])},
            )
            return begin(request, waits=here and (tracked is None or not tracked.note))
    return ""


def vertex_request(
    record: Record, config: Config, environ: Mapping[str, str], own: str = "", *, here: bool
) -> TrackingRequest | None:
    """Make the request for a run in Vertex AI Experiments; None if it is not to be there.

    Raises OptionError where the experiment is asked for and no project is known.
    """
    if not record.experiment or config.tracking == OFF or not (own or config.tracking):
        return None
    from distrain_nb.backends.vertex.experiments import experiment_name, place_of, run_name

    place = own or str(place_of(config, environ))
    filed, _, run = record.experiment.partition("/") if own else (record.experiment, "", "")
    experiment = experiment_name(filed)
    name = run_name(experiment, run or record.name)
    request = replace(_of(record, place, here), experiment=experiment, name=name, joins=bool(run))
    own_tags = {n: text for n, text in request.tags.items() if not n.startswith("mlflow.")}
    return replace(request, tags=own_tags)


def _of(record: Record, uri: str, here: bool) -> TrackingRequest:
    options = Run(record).options
    parameters = dict(text.split("=", 1) for text in options.get("param", ()) if "=" in text)
    settings = {name: " ".join(texts) for name, texts in options.items() if name != "param"}
    tags = {
        **_common(),
        "distrain.run": str(record.id),
        "distrain.layout": record.line,
        "distrain.backend": record.backend,
        **{f"distrain.{name}": text for name, text in settings.items()},
    }
    experiment = record.experiment or os.environ.get(NAME_VARIABLE, "")
    request = TrackingRequest(
        uri, experiment, record.name, "", record.created, str(record.folder), parameters, tags
    )
    return replace(request, ends_here=here or bool(record.handle.get("rehearsal")))


def _common() -> dict[str, str]:
    tags = {"mlflow.source.name": "distrain-nb", "mlflow.source.type": "NOTEBOOK"}
    with suppress(OSError, KeyError):
        tags["mlflow.user"] = getpass.getuser()
    return tags
