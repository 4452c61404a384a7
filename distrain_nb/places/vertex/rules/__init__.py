"""Rules of layouts and studies for Vertex AI, and what AI Platform shares of them."""

from __future__ import annotations

from functools import partial

from distrain_nb.layout.rules.engine import named_rule, named_warning

rule = partial(named_rule, on=("vertex",))
warning = partial(named_warning, on=("vertex",))
