"""Data that `--data` names, in a program's arguments and in variables of its environment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, did_you_mean
from distrain_nb.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.options import JobOptions
    from distrain_nb.program import Program

CHANNEL = "SM_CHANNEL_"  # SageMaker's own variables for the folders of channels begin so
# Not of a URI with the data itself, `data:image/png;base64,…`.
_IN_ARGUMENT = re.compile(r"(?<![\w:])data:([A-Za-z_]\w*)(?!\w|/[\w.+-]+;[\w-]+[=,])")
_WHOLE = re.compile(r"(?:.*=)?data:([A-Za-z_]\w*)")


def with_places(arguments: Iterable[str], places: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arguments with the place of data for each `data:NAME`. Raises OptionError for a
    name that there is not."""
    replaced = []
    for argument in arguments:
        match = _WHOLE.fullmatch(argument)
        if match and match[1] not in places:
            hint = did_you_mean(match[1], places, f": add --data {match[1]}=URI")
            raise OptionError(
                f"no --data has the name of data:{match[1]}{hint}", where=f"data:{match[1]}"
            )
        replaced.append(_IN_ARGUMENT.sub(lambda m: places.get(m[1], m[0]), argument))
    return tuple(replaced)


def named_in(arguments: Iterable[str]) -> frozenset[str]:
    """Return the names of data that arguments have."""
    return frozenset(name for argument in arguments for name in _IN_ARGUMENT.findall(argument))


def variables(
    options: JobOptions, places: Mapping[str, str], backend: AnyBackend
) -> dict[str, str]:
    """Return SageMaker's variable for each name, but for those that the service sets itself."""
    brought = options.brought(backend.brings)
    return {f"{CHANNEL}{n.upper()}": path for n, path in places.items() if n not in brought}


def about_unread(
    program: Program, arguments: Sequence[str], names: Iterable[str]
) -> Iterator[Finding]:
    """Yield a warning for each of the names that a script has no use for, as far as one can see."""
    unread = [name for name in names if name not in named_in(arguments)]
    if not unread or _reads_variables(program):
        return
    for name in unread:
        message = (
            f"nothing reads --data {name}: write data:{name} where the script's arguments are to "
            f"have its path, or read the variable {CHANNEL}{name.upper()}"
        )
        yield Finding("capture.unused-name", Severity.WARNING, f"--data {name}", message)


def _reads_variables(program: Program) -> bool:
    files = (file for name, file in program.files.items() if name.endswith(".py"))
    texts = (f.read_bytes() if isinstance(f, Path) else f for f in files)
    return CHANNEL in program.main or any(CHANNEL.encode() in text for text in texts)
