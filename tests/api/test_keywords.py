"""Keyword arguments as editors see them, against the declarations of the options."""

from __future__ import annotations

import inspect
from typing import get_args, get_type_hints

import distrain_nb
from distrain_nb import api, study
from distrain_nb.api.executor import Executor
from distrain_nb.api.keywords import Options, StudyOptions, Texts
from distrain_nb.backends.options import declared
from distrain_nb.backends.plugins import all_backends
from distrain_nb.layout import OPTIONS, Pool
from distrain_nb.options import JobOptions
from distrain_nb.tuning.options import PARTS

KINDS = get_type_hints(Options)
DECLARED = [
    option
    for each in (JobOptions, *(backend.options for backend in all_backends()))
    for option in declared(each).values()
]


def test_every_declared_option_is_a_keyword_and_no_other() -> None:
    names = {option.field for option in (*DECLARED, *OPTIONS)}
    assert set(KINDS) == names | {"spot"}


def test_keywords_have_the_types_that_are_declared() -> None:
    for option in DECLARED:
        kind = KINDS[option.field]
        if isinstance(option.default, bool):
            assert kind is bool, option.field
        elif option.default == ():
            assert set(get_args(Texts)) < set(get_args(kind)), option.field
        elif option.field != "wait":
            assert str in get_args(kind), option.field
    for option in OPTIONS:
        kinds = get_args(KINDS[option.field])
        assert (Pool in kinds) == (option.read == Pool.parse), option.field
        assert (int in kinds) or option.read is not int, option.field


def test_a_study_has_keywords_for_each_of_its_parts() -> None:
    kinds = get_type_hints(StudyOptions)
    assert set(kinds) - set(KINDS) == {*PARTS, "study"}
    for name, part in PARTS.items():
        assert (set(get_args(Texts)) < set(get_args(kinds[name]))) == part.several, name
    named = inspect.signature(study.tune).parameters
    assert {"code", "spec", "workers", "study", *PARTS} < set(named)


def test_notebooks_complete_them() -> None:
    for function in (distrain_nb.submit, api.plan, api.check, Executor, distrain_nb.remote):
        assert {"workers", "ranks_per_replica"} < set(inspect.signature(function).parameters)
