"""Rules of layouts and studies for SageMaker."""

from __future__ import annotations

from functools import partial

from distrain_nb.layout.rules.engine import named_rule, named_warning

rule = partial(named_rule, on=("sagemaker",))
warning = partial(named_warning, on=("sagemaker",))
