"""Runs and studies as a tracker is to have them."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.tracker import may_be_reached
from distrain_nb.config import Config
from distrain_nb.errors import OptionError
from distrain_nb.run import Run
from distrain_nb.tracking.address import OFF, address
from distrain_nb.tracking.kinds import kind_of, place_kind
from distrain_nb.tracking.request import TrackingRequest
from distrain_nb.tracking.starting import begin, missing_package
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.tracked import TRIAL_TAG, Tracked

if TYPE_CHECKING:
    from distrain_nb.run.store import Record
    from distrain_nb.tracking.kinds import Kind

NAME_VARIABLE = "MLFLOW_EXPERIMENT_NAME"  # what runs are filed under that have no --experiment


def begin_run(record: Record, config: Config, *, here: bool, experiments: str = "") -> str:
    """Have a run mirrored that is about to be started; `here` on this machine. `experiments` is
    where its service keeps them. See `begin`."""
    uri = address(config, os.environ)
    waits = here or may_be_reached(uri)
    notes = (
        _begin_at_place(record, config, experiments, here),
        begin(_of(record, uri, here), waits=waits),
    )
    return "; ".join(filter(None, notes))


def _begin_at_place(
    record: Record, config: Config, experiments: str, here: bool, study: str = ""
) -> str:
    try:
        request = place_request(record, config, os.environ, experiments, here=here)
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
    experiments: str = "",
) -> str:
    """Have a study mirrored that is about to be started, to which its trials then belong; `here`
    and `experiments` are as in `begin_run`. Gives also what keeps its trials from the place's
    experiments, where they are to be there."""
    try:
        config = Config.load()
    except OptionError as error:
        return str(error)
    uri = address(config, os.environ)
    filed = experiment or os.environ.get(NAME_VARIABLE, "") or name
    request = TrackingRequest(uri, filed, name, "", created, str(folder), dict(options), _common())
    note = begin(replace(request, ends_here=False), waits=here or may_be_reached(uri))
    return "; ".join(filter(None, (_not_at_place(config, experiments), note)))


def _not_at_place(config: Config, experiments: str) -> str:
    """Say what keeps runs out of a place's experiments, where they are to be there."""
    try:
        kind, address = _at_place(config, os.environ, experiments)
    except OptionError as error:
        return str(error)
    return missing_package(kind, address) if kind else ""


def _at_place(
    config: Config, environ: Mapping[str, str], experiments: str
) -> tuple[Kind | None, str]:
    """Return the tracker of a place that runs are to be in, and its address: `experiments`, or as
    it is set; None if there is none. Raises OptionError."""
    if config.tracking == OFF:
        return None, ""
    kind = kind_of(experiments) if experiments else place_kind(config.tracking)
    if kind is None or kind.names is None:
        return None, ""
    return kind, experiments or kind.names.address(config, environ)


def begin_trial(record: Record, study: Path, *, here: bool, experiments: str = "") -> str:
    """Have the run of a trial mirrored, to MLflow if its study is; `here` and `experiments` are as
    in `begin_run`. See `begin`."""
    with suppress(OSError, OptionError):
        _begin_at_place(record, Config.load(), experiments, here, str(study))
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


def place_request(
    record: Record, config: Config, environ: Mapping[str, str], experiments: str = "", *, here: bool
) -> TrackingRequest | None:
    """Make the request for a run in a place's experiments; None if it is not to be there.

    Raises OptionError where the experiment is asked for and no project is known.
    """
    if not record.experiment:
        return None
    kind, address = _at_place(config, environ, experiments)
    if kind is None or kind.names is None:
        return None
    filed, _, run = record.experiment.partition("/") if experiments else (record.experiment, "", "")
    experiment = kind.names.experiment(filed)
    name = kind.names.run(experiment, run or record.name)
    request = replace(_of(record, address, here), experiment=experiment, name=name, joins=bool(run))
    own_tags = {n: text for n, text in request.tags.items() if not n.startswith("mlflow.")}
    return replace(request, tags=own_tags)


def _of(record: Record, uri: str, here: bool) -> TrackingRequest:
    options = Run(record).options
    parameters = dict(text.split("=", 1) for text in options.get("param", ()) if "=" in text)
    changing = "param", "tag"  # tags may change, and the mirror sends them
    settings = {name: " ".join(texts) for name, texts in options.items() if name not in changing}
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
