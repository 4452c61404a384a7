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


def plain_yaml(texts: dict[str, str]) -> str:
    """Texts by name as YAML with as few quotes as `yaml_texts` needs to read them back."""
    return _dumped(texts, plain=True)


def data_yaml(value: object) -> str:
    """The value as YAML for other programs: numbers are numbers, and `"1.10"` is quoted."""
    return _dumped(value, plain=False)


def _dumped(value: object, *, plain: bool) -> str:
    import yaml

    dumper = _dumper(plain)
    return yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1000)


@lru_cache(maxsize=2)
def _dumper(plain: bool) -> Any:
    import yaml

    class Dumper(yaml.SafeDumper):
        if plain:
            yaml_implicit_resolvers = {}

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ARG002
            return super().increase_indent(flow, False)

    return Dumper
