"""What optimizers say of themselves: their settings, and who exchanges for them."""

from __future__ import annotations

from typing import Any, List

_HYPERPARAMETERS = ("lr", "weight_decay", "momentum", "betas", "eps")


def is_of_horovod(optimizer: Any) -> bool:
    """Return whether Horovod exchanges what an optimizer reads."""
    synchronize = getattr(type(optimizer), "synchronize", None)
    return str(getattr(synchronize, "__module__", "")).startswith("horovod.")


def names_by_horovod(optimizer: Any, parameters: List[Any]) -> List[str]:
    """Return the names that Horovod has for parameters, "" for those without."""
    names = getattr(optimizer, "_parameter_names", None) or {}
    return [str(names.get(parameter, "")) for parameter in parameters]


def hyperparameters(optimizer: Any) -> List[List[float]]:
    """Return the numbers of each group of an optimizer that steps depend on."""
    groups = []
    for group in optimizer.param_groups:
        values = [group[name] for name in _HYPERPARAMETERS if name in group]
        flat = [n for value in values for n in (value if isinstance(value, tuple) else (value,))]
        groups.append([float(number) for number in flat if isinstance(number, (int, float))])
    return groups
