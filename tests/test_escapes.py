"""What of a program's words reaches the user's terminal: text and colours, whatever it writes."""

from __future__ import annotations

import random
import re

import pytest

from distrain_nb import escapes
from distrain_nb.errors import RunFailed
from distrain_nb.saved.tables import as_text
from distrain_nb.ui import outputs

CLIPBOARD, TITLE, SCREEN = "\x1b]52;c;ZXZpbA==\x07", "\x1b]0;title\x1b\\", "\x1b[?1049h\x1b[2J"
COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
PIECES = (
    *(
        "\x1b",
        "\x1b[",
        "\x1b]",
        "\x1bP",
        "\x1b\\",
        "\x07",
        "\x9b",
        "\x9d",
        "\x9c",
        "\x90",
        "[",
        "]",
    ),
    *(
        "31m",
        "0",
        ";",
        ":",
        "m",
        "?",
        "h",
        "J",
        " ",
        "a",
        "\t",
        "\r",
        "\x08",
        "\x85",
        "\x1b[32m",
        "é",
    ),
)


def harmless(text: str) -> bool:
    """Whether no more than colours are left besides text."""
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", COLOURS.sub("", text))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (f"a{CLIPBOARD}b{TITLE}c{SCREEN}d", "abcd"),
        ("\x1b[1;31mred", "\x1b[1;31mred\x1b[0m"),
        ("\x9d52;c;ZXZpbA==\x9ca\x9b2Jb", "ab"),
        ("lone\x1b", "lone"),
        ("a\x1b[31mb\x1b[38:2::1:2:3mc", "a\x1b[31mb\x1b[38:2::1:2:3mc\x1b[0m"),
        ("no end\x1b]52;c;ZXZpbA==", "no end52;c;ZXZpbA=="),
        ("\x1b\x1b]0;a\x07b", "b"),
        ("one\n\ttwo\r\n", "one\n\ttwo\n"),
    ],
)
def test_colours_pass_alone(written: str, shown: str) -> None:
    assert escapes.coloured(written) == shown
    assert escapes.plain(written) == COLOURS.sub("", shown)


def test_whatever_a_program_puts_together_is_harmless() -> None:
    drawn = random.Random(12)
    for _ in range(20_000):
        text = "".join(drawn.choices(PIECES, k=drawn.randint(1, 8)))
        assert harmless(escapes.coloured(text)), repr(text)
        assert "\x1b" not in escapes.plain(text), repr(text)


def test_a_long_text_takes_linear_time() -> None:
    """A pattern that goes back from each beginning would take minutes for this."""
    for piece in ("\x1b]", "\x1b[1", "\x9d;", "\x1b[ "):
        assert harmless(escapes.coloured(piece * 100_000))


def test_errors_outputs_and_tables_pass_by_it(capsys: pytest.CaptureFixture[str]) -> None:
    (rendered,) = RunFailed(f"run 1 failed\n{CLIPBOARD}why")._render_traceback_()
    assert harmless(rendered)
    assert "why" in rendered
    outputs.say(f"{SCREEN}said")
    outputs.show({"text/plain": f"{TITLE}shown"}).replace({"text/plain": f"{TITLE}again"})
    printed = capsys.readouterr().out
    assert harmless(printed)
    assert "said" in printed
    assert as_text(["a"], [[f"{CLIPBOARD}x"], ["long"]], "") == "a\nx\nlong"
