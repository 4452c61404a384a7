"""Arguments that nothing of a program reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from distrain_nb.program.program import Program

# `sys.argv`, and what reads it: by the names of parsers, or of packages that have some.
_READS = re.compile(
    r"argv|argparse|arg_?parser|parse_args|parse_known|from_cli|(\b|_)CLI\b|\bcli\b"
    r"|\b(getopt|optparse|click|typer|fire|docopt|absl|hydra|tyro|draccus|pyrallis|simple_parsing"
    r"|tap|gin|plac|cyclopts|clize|sacred|ml_collections|flags|FLAGS|DISTRAIN_ARGUMENTS)\b",
    re.I,
)


def unread_arguments(program: Program, arguments: Sequence[str]) -> Iterator[Finding]:
    """An info where neither the program nor its own modules seem to read any argument."""
    if arguments and not any(map(_READS.search, _texts(program))):
        # Values may be secrets.
        options = [word.partition("=")[0] for word in arguments if word.startswith("-")]
        words = f"`{' '.join(options)}`" if options else "its arguments"
        message = f"nothing of the program reads {words}, which `sys.argv[1:]` has"
        yield Finding("capture.unread-arguments", Severity.INFO, "arguments", message)


def _texts(program: Program) -> Iterator[str]:
    yield program.main
    for name, file in program.files.items():
        if name.endswith(".py"):
            data = file.read_bytes() if isinstance(file, Path) else file
            yield data.decode("utf-8", "replace")
