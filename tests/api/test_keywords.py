"""Keyword arguments as editors see them, against the declarations of the options."""

from __future__ import annotations

import inspect
from typing import get_args, get_type_hints

import pytest

import distrain_nb
from distrain_nb import api, study
from distrain_nb.api.executor import Executor
from distrain_nb.api.keywords import Options, StudyOptions
from distrain_nb.backends.plugins import all_backends
from distrain_nb.layout import Option, Pool
from distrain_nb.layout.durations import seconds
from distrain_nb.layout.options import SPOT, option_of
from distrain_nb.magics.command_line import cell_parser
from distrain_nb.tuning.options import PARTS, STUDY
from scripts import keywords

pytestmark = pytest.mark.brief


def test_the_file_is_as_the_declarations_have_it() -> None:
    """`make keywords` writes it."""
    assert keywords.TARGET.read_text(encoding="utf-8") == keywords.text()


@pytest.mark.parametrize(
    ("option", "kind"),
    [
        (SPOT, "bool"),
        (Option("wait", "", "wait"), "bool | None"),
        (Option("param", "NAME=VALUE", "names", default=(), several=True), "Texts | None"),
        (option_of("workers"), "Pooled | None"),
        (Option("timeout", "TIME", "how long", read=seconds), "Seconds | None"),
        (PARTS["trials"], "Number | None"),
        (STUDY, "str | None"),
    ],
    ids=lambda item: getattr(item, "field", item),
)
def test_a_keyword_has_the_type_that_its_declaration_reads(option: Option, kind: str) -> None:
    assert keywords.kind(option) == kind


def test_keywords_are_the_options_of_the_magic_and_no_others() -> None:
    parser = cell_parser(all_backends())
    options = {action.dest for action in parser._actions} - {"help"}
    assert set(get_type_hints(StudyOptions)) == options
    assert set(get_type_hints(StudyOptions)) - set(get_type_hints(Options)) == {*PARTS, "study"}
    assert Pool in get_args(get_type_hints(Options)["workers"])


def test_notebooks_complete_them() -> None:
    for function in (distrain_nb.submit, api.plan, api.check, Executor, distrain_nb.remote):
        assert {"workers", "ranks_per_replica"} < set(inspect.signature(function).parameters)
    named = inspect.signature(study.tune).parameters
    assert {"code", "spec", "workers", "study", *PARTS} < set(named)
