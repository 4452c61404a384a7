"""Parameters and colours of matplotlib, as settings of a process."""

from __future__ import annotations

import sys
from typing import Any, Dict, Mapping

_DIFFERENT = object()


def rc_parameters(module: Any) -> Dict[str, Any]:
    usual, left_out = module.rcParamsDefault, sys.modules["matplotlib.rcsetup"]
    of_machine = {"backend", "backend_fallback", "interactive", "toolbar", "timezone", "datapath"}
    of_machine.update(getattr(left_out, "STYLE_BLACKLIST", ()))
    both = ((k, v, dict.get(usual, k, _DIFFERENT)) for k, v in dict.items(module.rcParams))
    return {k: v for k, v, default in both if v != default and k not in of_machine}


def color_letters(module: Any) -> Dict[str, Any]:
    colors = module.get_named_colors_mapping()
    return {c: colors[c] for c, rgb in module.BASE_COLORS.items() if colors[c] != rgb}


def set_color_letters(module: Any, values: Mapping[str, Any]) -> None:
    for letter, color in values.items():
        module.get_named_colors_mapping()[letter] = color
