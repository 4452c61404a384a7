"""Results of a run: values that are read when they are asked for, and with care."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from distrain_nb.errors import ResultUntrusted, RunUnreadable
from distrain_nb.run.plain_pickles import NotPlain, PlainReader
from distrain_nb.types import Value
from distrain_nb.worker.rank import values

RETURNED = "result"  # what a function returned that was submitted
_DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
_BY_OTHERS = 0o022


class Results(Mapping[str, Value]):
    """The values that a run brought back; each is read when it is asked for.

    Plain data (numbers, texts, times, containers, arrays, tensors, state dicts) is read as such.
    All else is read by running code that its file names: where others may have written the file,
    in a bucket say, asking for it raises ResultUntrusted, unless it is asked for by `trusted`.
    Asking for one that could not be saved raises ValueError with the reason; for one whose file is
    damaged, RunUnreadable.
    """

    def __init__(self, folder: Path, run: int, trusts: bool, unsuccessful: str = "") -> None:
        self._folder = folder
        self._run = run
        self._trusts = trusts
        self._unsuccessful = unsuccessful  # how the run ended, unless it succeeded

    @property
    def trusted(self) -> Results:
        """The same, for those who trust whoever could write them: it runs the code they name."""
        return Results(self._folder, self._run, True, self._unsuccessful)

    @property
    def named(self) -> tuple[str, ...]:
        """All names that were to come back, those that could not be saved too."""
        index = self._index()
        return (*self._names(index), *index.unsaved)

    def __getitem__(self, name: str) -> Value:
        if name not in self.named:
            names = ", ".join(self) or "nothing"
            if self._unsuccessful:
                raise KeyError(f"{self._unsuccessful}. It returned {names}")
            raise KeyError(f"run {self._run} returned {names}; name {name!r} with --result")
        reason = self._index().unsaved.get(name)
        if reason is not None:
            raise ValueError(f"{name} was not saved: {reason}")
        return self._all_of(name) if self._trusts else self._plain(name)

    def _all_of(self, name: str) -> Value:
        try:
            return values.load(self._folder, [name])[name]
        except AttributeError as error:
            raise AttributeError(
                f"result {name!r} of run {self._run} needs what this notebook doesn't define "
                f"({error}): run its definition in a cell of its own first, or return plain "
                "data, such as model.state_dict()"
            ) from None

    def _plain(self, name: str) -> Value:
        try:
            return values.load(self._folder, [name], PlainReader)[name]
        except NotPlain as error:
            raise ResultUntrusted(
                f"result {name!r} of run {self._run} is more than plain data: reading it runs code "
                f"from its file ({error}). Whoever can write to the job's bucket can change that "
                "file. If you trust them: "
                f"`run.results.trusted[{name!r}]`, or `%distrain result {self._run} --trust`"
            ) from None
        except Exception as error:  # whatever a stranger's pickle has Python raise
            raise RunUnreadable(
                f"result {name!r} of run {self._run} can't be read: {self._folder} is damaged "
                f"({type(error).__name__}: {error})"
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._names(self._index()))

    def __len__(self) -> int:
        return len(self._names(self._index()))

    def __repr__(self) -> str:
        return f"<result of run {self._run}: {', '.join(self) or 'nothing'}>"

    def _index(self) -> values.Index:
        if not self._folder.exists():
            return values.Index([], {}, together=False)
        try:
            return values.index_of(self._folder)
        except _DAMAGE as error:
            raise RunUnreadable(
                f"run {self._run} has results that can't be read: {self._folder} is damaged "
                f"({type(error).__name__}: {error})"
            ) from error

    def _names(self, index: values.Index) -> list[str]:
        return [entry.name for entry in index.entries]


def is_ours(folder: Path) -> bool:
    """Return whether nobody but this user could have written the values there."""
    try:
        statuses = [folder.lstat(), *(path.lstat() for path in folder.iterdir())]
    except OSError:
        return False
    return all(
        status.st_uid == os.geteuid()
        and not (stat.S_ISREG(status.st_mode) and status.st_mode & _BY_OTHERS)
        for status in statuses
    )
