"""A variable of the environment that a program asks for in vain is named, with what is there."""

from __future__ import annotations

import os

import pytest

from distrain_nb.worker.rank.tracebacks import format_exception, headline


def raised(name: str) -> KeyError:
    with pytest.raises(KeyError) as caught:
        os.environ[name]
    return caught.value


def test_one_of_another_platform_is_named_with_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIP_MODEL_DIR", "/model")
    error = raised("SM_MODEL_DIR")
    said = "the environment of the ranks has no SM_MODEL_DIR, but it has AIP_MODEL_DIR"
    assert headline(error) == f"KeyError: {said}"
    assert format_exception(error).endswith(f"KeyError: 'SM_MODEL_DIR'\n{said}\n")
    assert headline(raised("NOWHERE")) == "KeyError: the environment of the ranks has no NOWHERE"


def test_other_keys_are_as_they_were() -> None:
    with pytest.raises(KeyError) as caught:
        {}["SM_MODEL_DIR"]
    assert headline(caught.value) == "KeyError: 'SM_MODEL_DIR'"
