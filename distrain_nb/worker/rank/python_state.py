"""Settings of the standard library that no single function reads and sets."""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
from types import FunctionType
from typing import Any, Dict, Mapping, Optional, Tuple

from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.process_setting import is_of_package, of_user

_LOCALES = ("LC_CTYPE", "LC_COLLATE", "LC_TIME", "LC_MONETARY", "LC_NUMERIC", "LC_MESSAGES")


def umask(_: Any) -> Optional[int]:
    """Return the umask; None if this system only tells it to a process that sets it."""
    try:
        with open("/proc/self/status", "rb") as status:
            return int(re.search(rb"Umask:\s*(\d+)", status.read())[1], 8)  # type: ignore[index]
    except (OSError, TypeError):
        return None


def categories(locale: Any) -> Tuple[str, ...]:
    """Return the locale of each category, in the order of `_LOCALES`."""
    return tuple(locale.setlocale(getattr(locale, name)) for name in _LOCALES)


def set_categories(locale: Any, values: Tuple[str, ...]) -> None:
    """Set the locale of each category."""
    for name, value in zip(_LOCALES, values):
        locale.setlocale(getattr(locale, name), value)


def set_filters(module: Any, filters: Any) -> None:
    """Set filters of warnings. Filters for classes of packages that this rank imported follow."""
    of_packages = [f for f in module.filters if is_of_package(f[2]) and f not in filters]
    module.resetwarnings()  # drops past decisions too: a change of the list alone doesn't
    module.filters[:] = [*filters, *of_packages]


def logger_states(module: Any) -> Dict[str, Tuple[int, bool, bool]]:
    """Return level, propagation and whether it is disabled of each logger, by name."""
    loggers = {"": module.root, **module.root.manager.loggerDict}
    return {
        name: (item.level, item.propagate, item.disabled)
        for name, item in loggers.copy().items()
        if isinstance(item, logging.Logger)
    }


def set_loggers(module: Any, loggers: Mapping[str, Tuple[int, bool, bool]]) -> None:
    """Set loggers. Set those of a package again after its import, which may set its own levels."""

    def again(_: Any) -> None:
        for name, (level, propagate, disabled) in loggers.items():
            logger = module.getLogger(name)
            if logger.level != level:  # `setLevel` walks over all loggers
                logger.setLevel(level)
            logger.propagate, logger.disabled = propagate, disabled

    again(module)
    roots = {name.partition(".")[0] for name in loggers} - sys.modules.keys() - {""}
    on_import(dict.fromkeys(roots, again))


def set_gc(module: Any, is_on: bool) -> None:
    """Turn the garbage collection on or off."""
    (module.enable if is_on else module.disable)()


def mime_types(module: Any) -> Dict[str, str]:
    """Return the MIME types by file ending that the program has added or changed."""
    if not module.inited:
        return {}
    usual = _usual_types(module)
    return {k: v for k, v in module.types_map.items() if usual.get(k) != v}


def add_mime_types(module: Any, types: Mapping[str, str]) -> None:
    """Add MIME types by file ending."""
    for ending, kind in types.items():
        module.add_type(kind, ending)


@functools.lru_cache(maxsize=None)
def _usual_types(module: Any) -> Dict[str, str]:
    files = tuple(filter(os.path.isfile, module.knownfiles))
    return dict(module.MimeTypes(files).types_map[True])


def pickle_reducers(module: Any) -> Any:
    """Return pairs of a class and its function for pickle, if the user has written either."""
    table = module.dispatch_table.copy().items()
    return [(c, f) for c, f in table if "__main__" in (c.__module__, f.__module__)]


def set_pickle_reducers(module: Any, pairs: Any) -> None:
    """Register these pairs of a class and its function for pickle."""
    for kind, reducer in pairs:
        module.pickle(kind, reducer)


def signal_handlers(module: Any) -> Dict[str, Any]:
    """Return the handlers that the user has written, by signal."""
    handlers = {s.name: module.getsignal(s) for s in module.Signals}
    return {n: f for n, f in handlers.items() if type(f) is FunctionType and of_user(f)}


def timers(module: Any) -> Dict[str, float]:
    """Return the interval in seconds of each running timer; 0 if it signals only once."""
    running = {n: module.getitimer(getattr(module, n)) for n in ("ITIMER_REAL", "ITIMER_PROF")}
    return {name: times[1] for name, times in running.items() if any(times)}
