"""YAML in which every scalar is text: `on` is no boolean, and `1.10` is no number."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from distrain_nb.errors import OptionError


def yaml_texts(text: str) -> Any:
    """What the text holds, with every scalar as text. Raises OptionError if it is not YAML."""
    import yaml

    try:
        return yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as wrong:
        raise OptionError(f"not YAML: {wrong}") from None


def plain_yaml(value: object) -> str:
    """The value as YAML with as few quotes as `yaml_texts` needs to read it back."""
    import yaml

    return yaml.dump(value, Dumper=_plain_dumper(), sort_keys=False, allow_unicode=True, width=1000)


@lru_cache(maxsize=1)
def _plain_dumper() -> Any:
    import yaml

    class Plain(yaml.SafeDumper):
        yaml_implicit_resolvers = {}  # noqa: RUF012

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ARG002
            return super().increase_indent(flow, False)

    return Plain
