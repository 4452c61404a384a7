"""Options of pandas, as a setting of a process."""

from __future__ import annotations

import sys
from typing import Any, Dict, Mapping


def pandas_options(_: Any) -> Dict[str, Any]:
    options = sys.modules["pandas._config.config"]
    changed: Dict[str, Any] = {}
    for key, option in options._registered_options.copy().items():
        value = options._global_config
        for part in key.split("."):
            value = value[part]
        if value is not option.defval and value != option.defval:
            changed[key] = value
    return changed


def set_pandas_options(module: Any, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        module.set_option(key, value)
