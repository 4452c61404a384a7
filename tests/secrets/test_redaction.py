"""What is left of texts and options when what is secret is taken out."""

from __future__ import annotations

import time

import pytest

from distrain_nb.secrets import env_values, redacted, redacted_options, redacted_word

VALUE = "correct-horse"
TOKEN = "hf_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (f"--env A={VALUE} -n 2", "--env A=*** -n 2"),
        (f"--env=A={VALUE} -n 2", "--env=A=*** -n 2"),
        (f"--env 'A={VALUE} b' -n 2", "--env 'A=***' -n 2"),
        (f'--env A="{VALUE} \\" b" -n 2', "--env A=*** -n 2"),
        (f"--env A={VALUE}\\ b -n 2", "--env A=*** -n 2"),
        (f"--env \\\n  A={VALUE} \\\n  -n 2", "--env \\\n  A=*** \\\n  -n 2"),
        (f"--env A='{VALUE}\nb' -n 2", "--env A=***\n -n 2"),
        (f"-n 2 --env A='{VALUE} -n", "-n 2 --env A=***"),
        (f"--environment A={VALUE} -e B={VALUE}", "--environment A=*** -e B=***"),
        ("--env A=secret://mine -n 2", "--env A=secret://mine -n 2"),
        ("--env A -n 2", "--env A -n 2"),
        (f"--param=api_key={VALUE} lr=0.1", "--param=api_key=*** lr=0.1"),
        (f"-- --api-key={VALUE} --lr 1", "-- --api-key=*** --lr 1"),
        (f"-- --mine {TOKEN} --lr 1", "-- --mine *** --lr 1"),
        ("--workers 2*ml.m5.xlarge -- --epochs=3", "--workers 2*ml.m5.xlarge -- --epochs=3"),
    ],
)
def test_options_are_shown_without_values(options: str, shown: str) -> None:
    assert redacted_options(options) == shown


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        (f"--mine={TOKEN}", "--mine=***"),
        (f"mine={TOKEN}&password={VALUE}", "mine=***"),
        (f"{TOKEN}/password={VALUE}", "***"),
        (f"url=https://host.org/?lr=1&api_key={VALUE}", "url=https://host.org/?lr=1&api_key=***"),
        ("password=***", "password=***"),
        ("password=secret://mine", "password=secret://mine"),
        ("--epochs=3", "--epochs=3"),
    ],
)
def test_a_word_is_shown_without_its_secret(word: str, shown: str) -> None:
    assert redacted_word(word) == shown


@pytest.mark.parametrize("part", ["a=1&", "a=", "token=", "password=secret://"])
def test_a_row_of_names_takes_no_longer_than_other_text(part: str) -> None:
    row = part * (64_000 // len(part))
    begin = time.thread_time()
    assert redacted_options(row) == row
    assert time.thread_time() - begin < 2.0


def test_placeholders_are_no_values() -> None:
    options = "--env A={a} --env B=x$b --env C={c} --param password={a}"
    shown = "--env A={a} --env B=x$b --env C=*** --param password={a}"
    assert redacted_options(options, ("{a}", "$b")) == shown


def test_the_values_that_options_have() -> None:
    options = f"--env 'A={VALUE} b' --env=B=2 --env C=secret://c -- --epochs=3"
    assert {f"{VALUE} b", "2"} <= {*env_values(options)} <= {f"{VALUE} b", f"{VALUE} b'", "2"}


def test_values_are_taken_out_however_a_message_has_them() -> None:
    long = "0123456789" * 20
    lines = "first line\nsecond"
    text = f"{VALUE!r}, x{VALUE}, '{long[:60]}…' has 200, {lines!r}, true but trueish, true.py"
    shown = "'***', x***, '***' has 200, '***', *** but trueish, true.py"
    assert redacted(text, (VALUE, long, lines, "true", "h")) == shown
