"""From a source and options to the program that ranks run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.config import Config
from distrain_nb.errors import OptionError, did_you_mean
from distrain_nb.findings import Finding, Severity
from distrain_nb.program import Program, Script, capture, capture_script
from distrain_nb.program.advice import unread_arguments

if TYPE_CHECKING:
    from distrain_nb.api.source import Source
    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.options import JobOptions

CHANNEL = "SM_CHANNEL_"  # SageMaker's own variables for the folders of channels begin so
# Not of a URI with the data itself, `data:image/png;base64,…`.
_IN_ARGUMENT = re.compile(r"(?<![\w:])data:([A-Za-z_]\w*)(?!\w|/[\w.+-]+;[\w-]+[=,])")
_VALUE_OF_DATA = re.compile(r"(?:.*=)?data:([A-Za-z_]\w*)")
MIB = 1 << 20


def with_places(arguments: Iterable[str], places: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arguments with the place of data for each `data:NAME`. Raises OptionError for a
    name that there is not."""
    replaced = []
    for argument in arguments:
        match = _VALUE_OF_DATA.fullmatch(argument)
        if match and match[1] not in places:
            hint = did_you_mean(match[1], places, f": add --data {match[1]}=URI")
            raise OptionError(
                f"no --data has the name of data:{match[1]}{hint}", where=f"data:{match[1]}"
            )
        replaced.append(_IN_ARGUMENT.sub(lambda m: places.get(m[1], m[0]), argument))
    return tuple(replaced)


def data_names(arguments: Iterable[str]) -> frozenset[str]:
    """Return the names of data that arguments have."""
    return frozenset(name for argument in arguments for name in _IN_ARGUMENT.findall(argument))


def variables(
    options: JobOptions, places: Mapping[str, str], backend: AnyBackend
) -> dict[str, str]:
    """Return SageMaker's variable for each name, but for those that the service sets itself."""
    brought = options.delivered_names(backend.brings)
    return {f"{CHANNEL}{n.upper()}": path for n, path in places.items() if n not in brought}


def unread_data_findings(
    program: Program, arguments: Sequence[str], names: Iterable[str]
) -> Iterator[Finding]:
    """Yield a warning for each of the names that a script has no use for, as far as one can see."""
    unread = [name for name in names if name not in data_names(arguments)]
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


def program_of(source: Source, options: JobOptions, backend: AnyBackend) -> Program:
    """Make the program from its source. Its arguments are the options', after a script's own."""
    limit = int(Config.load().carry_limit * MIB)
    if options.debug and not backend.asks:
        raise OptionError(f"--debug has no meaning on {backend.title}: ranks there can't ask")
    places = options.places(backend.data)
    program = (
        _of_cell(source, options, limit, backend)
        if source.script is None
        else _of_script(source.script, options, limit, backend)
    )
    unread = unread_arguments(program, options.args) if program.is_read else ()
    return replace(
        program,
        arguments=with_places(options.args, places),
        variables=variables(options, places, backend)
        | options.hang_variables
        | options.finding_variables
        | options.debug_variables
        | options.display_variables,
        findings=(*program.findings, *unread),
    )


def _of_cell(source: Source, options: JobOptions, limit: int, backend: AnyBackend) -> Program:
    if options.exclude:
        raise OptionError("--exclude is for scripts: a cell sends only the files that it needs")
    variables_of_cell = {**source.notebook.given, **options.values(backend.data)}
    otherwise_read = options.delivered_names(backend.brings) | data_names(options.args)
    if CHANNEL in source.cell.source:
        otherwise_read |= options.places(backend.data).keys()
    return capture(
        source.cell,
        source.first_line,
        replace(source.notebook, given=variables_of_cell, optional=otherwise_read),
        include=options.include,
        require=options.require,
        limit=limit,
        results=options.results,
        for_image=backend.has_image,
    )


def _of_script(script: Script, options: JobOptions, limit: int, backend: AnyBackend) -> Program:
    if options.param:
        raise OptionError(
            f"--param {options.param[0]} sets a name that a cell reads, and a script reads "
            f"arguments: write them behind {script.path.name}"
        )
    program = capture_script(
        script,
        include=options.include,
        exclude=options.exclude,
        require=options.require,
        limit=limit,
        for_image=backend.has_image,
    )
    names = options.places(backend.data).keys() - options.delivered_names(backend.brings)
    unread = unread_data_findings(program, options.args, sorted(names))
    return replace(program, findings=(*program.findings, *unread))
