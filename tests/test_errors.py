"""A warning stands at the user's line."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from distrain_nb import errors


def called_by(module: str, function: Callable[[str], None]) -> Callable[[str], None]:
    """A function of a module of that name that calls another one."""
    scope: dict[str, Callable[[str], None]] = {"function": function}
    text = f"__name__ = {module!r}\ndef call(message):\n    function(message)\n"
    exec(compile(text, f"{module}.py", "exec"), scope)
    return scope["call"]


def test_a_warning_names_the_line_that_led_here() -> None:
    inner = called_by("distrain_nb.run.waiting", errors.warn)
    for outer in (inner, called_by("IPython.core.interactiveshell", inner)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            called_by("users", outer)("the tracker is away")
        assert [(one.filename, one.lineno) for one in seen] == [("users.py", 3)]
