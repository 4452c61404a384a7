"""Functions with arguments as runs: an executor, and a decorator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import TYPE_CHECKING, Generic, overload

from distrain_nb.api.keywords import Options, with_options
from distrain_nb.api.preparation import prepare
from distrain_nb.api.source import call
from distrain_nb.api.submission import start, submit
from distrain_nb.errors import OptionError
from distrain_nb.options import read
from distrain_nb.types import Function, P, R, Value

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from distrain_nb.run import Run


class Executor:
    """Submits functions as jobs that have the same options.

        with distrain_nb.Executor(on="vertex", workers=3) as executor:
            runs = executor.map(train, [0.1, 0.01, 0.001])
        best = min(run.result() for run in runs)

    As a context it waits, where the block ends without an exception, until all its runs have
    ended, in whatever way; `run.result()` raises what went wrong. `runs` are those that it has
    started, in order.
    """

    @with_options
    def __init__(self, **options: Unpack[Options]) -> None:
        """Keep `options`, which are those of `submit`. Raises OptionError for one that there is
        not, and for `wait` and `dry_run`, which an executor has no use for."""
        for name in ("wait", "dry_run"):
            if options.get(name) is not None:
                raise OptionError(f"{name}: an executor submits and doesn't wait; leave it out")
        read(options)
        self._options = options
        self.runs: list[Run] = []

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Start `function(*args, **kwargs)` on every rank; gives its run at once.

        The function is one that `def` makes at the top level of the notebook, the script or a
        module. Arguments travel as the notebook's values do. `Run.result()` is what rank 0's call
        returned. Raises OptionError, CaptureError, CheckFailed or StoreError before anything is
        started.
        """
        run = submit(call(function, *args, **kwargs), **self._options)
        self.runs.append(run)
        return run

    def map(self, function: Function[R], /, *iterables: Iterable[Value]) -> list[Run[R]]:
        """Start a run for each set of arguments, in the order of `iterables`, which end with the
        shortest, as those of Python's `map`.

        All are checked before the first is started. Raises what `submit` raises; those that have
        been started until then are in `runs`.
        """
        options: Options = {**self._options, "wait": False}
        prepared = [
            prepare(call(function, *args), **options) for args in zip(*iterables, strict=False)
        ]
        for job in prepared:
            job.refuse()
        begun = len(self.runs)
        for job in prepared:
            self.runs.append(start(job))
        return self.runs[begun:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            for run in self.runs:
                run.exception()


class RemoteFunction(Generic[P, R]):
    """A function whose calls are jobs. In a rank it is the function itself."""

    def __init__(self, function: Callable[P, R], options: Options) -> None:
        update_wrapper(self, function)
        self._options = options

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Submit the call, wait, and give what rank 0's call returned; an interrupt cancels the
        run. Raises what `Executor.submit` and `Run.result` raise."""
        options: Options = {**self._options, "wait": True}
        run: Run[R] = start(prepare(call(self, *args, **kwargs), **options))
        try:
            return run.result()
        except KeyboardInterrupt:
            run.cancel()
            raise

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Submit the call and give its run at once. Raises what `Executor.submit` raises."""
        return Executor(**self._options).submit(self, *args, **kwargs)

    def map(self, *iterables: Iterable[Value]) -> list[Run[R]]:
        """Start a run for each set of arguments, as `Executor.map` does."""
        return Executor(**self._options).map(self, *iterables)


@overload
def remote(function: Callable[P, R], /) -> RemoteFunction[P, R]: ...
@overload
def remote(
    **options: Unpack[Options],
) -> Callable[[Callable[P, R]], RemoteFunction[P, R]]: ...
@with_options
def remote(function: Value = None, /, **options: Unpack[Options]) -> Value:
    """Return a decorator: calls of the function are jobs with these options.

        @distrain_nb.remote(on="sagemaker", workers="2*ml.g5.xlarge")
        def train(rate): ...

        loss = train(0.1)            # waits, and gives what rank 0 returned
        run = train.submit(0.01)     # a run, at once
        runs = train.map([0.1, 0.2]) # a run each

    `options` are those of `Executor`. In a rank the decorated function is the function itself.
    Raises OptionError for an option that there is not.
    """
    Executor(**options)
    if function is not None:
        return RemoteFunction(function, options)
    return lambda decorated: RemoteFunction(decorated, options)
