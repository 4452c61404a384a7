"""The context of decimal numbers, as a setting of a process."""

from __future__ import annotations

from typing import Any, Tuple

_OF_DECIMAL = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def decimal_context(module: Any) -> Tuple[Any, ...]:
    context = module.getcontext()
    traps = tuple(sorted(kind.__name__ for kind, is_on in context.traps.items() if is_on))
    return (*(getattr(context, name) for name in _OF_DECIMAL), traps)


def set_decimal_context(module: Any, value: Tuple[Any, ...]) -> None:
    context = module.getcontext()  # the same object, which a name may have
    for name, part in zip(_OF_DECIMAL, value):
        setattr(context, name, part)
    for kind in context.traps:
        context.traps[kind] = kind.__name__ in value[-1]
    context.clear_flags()
