"""The studies that there are: a folder for each, by its number."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distrain_nb.config import home, private_home
from distrain_nb.errors import (
    RunNotReady,
    RunUnreadable,
    StudyNotFound,
)
from distrain_nb.run import Run, Store
from distrain_nb.run.disk_usage import Reclaimable, size_of
from distrain_nb.run.numbered_folders import remove
from distrain_nb.run.store import not_found
from distrain_nb.study.files import (
    TRIALS_FOLDER,
    study_folders,
)
from distrain_nb.study.study import Study
from distrain_nb.tracking import catch_up


def studies() -> list[Study]:
    """Return all studies, the newest first, with those that can't be read. Raises StoreError."""
    return [Study(folder) for folder in study_folders(home()).complete()]


def find_study(study: object = "last") -> Study:
    """Find a study by number, by name (the newest of that name), or `last`.

    Raises StudyNotFound naming those that there are; StoreError.
    """
    catch_up()
    all_studies, name = studies(), str(study)
    for item in all_studies:
        if name in ("last", str(item.id), item.name):
            return item
    none_yet = "none yet: start one with --tune"
    raise StudyNotFound(not_found("study", name, all_studies, none_yet))


def delete(study: Study) -> None:
    """Remove a study that has ended, or that can't be read, with its trials' runs as far as its
    file tells them. What was removed when this was interrupted is gone, and the rest can be deleted
    again.

    Raises RunNotReady if something of it goes on, StoreError.
    """
    if not study.may_be_deleted:
        raise RunNotReady(f"study {study.id} is {study.state}: stop it first")
    store, runs = Store(), list[Run]()
    with suppress(RunUnreadable):  # its file has the key by which its runs are known
        key = study.file.key
        runs = [Run(record) for record in store.all() if record.handle.get("study") == key]
    for run in runs:
        if not run.may_be_deleted:
            raise RunNotReady(f"run {run.id} of study {study.id} is {run.state}: cancel it first")
    for run in runs:
        store.delete(run.record)
    remove(study.folder)


def studies_ended_before(moment: float) -> Iterator[Reclaimable]:
    """Yield the folders of studies that ended before that, without the runs of their trials."""
    for study in studies():
        if study.ended_before(moment):
            yield Reclaimable(study.title, study.folder, size_of(study.folder))


def keys_of_unended() -> set[str]:
    """Return the keys of the studies that go on, which their trials' runs have."""
    keys = set()
    for study in studies():
        with suppress(RunUnreadable):
            if not study.may_be_deleted:
                keys.add(study.file.key)
    return keys


@contextmanager
def new_folder() -> Iterator[tuple[int, Path]]:
    """Have the block fill a folder for a study, by its number, `StudyFile` last. If the block
    raises, the folder is removed. Raises StoreError."""
    with study_folders(private_home()).new() as folder:
        (folder / TRIALS_FOLDER).mkdir()
        yield int(folder.name), folder


def new_key() -> str:
    return secrets.token_hex(8)
