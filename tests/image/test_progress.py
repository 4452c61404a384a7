"""Progress: what a bar shows, and how often."""

from __future__ import annotations

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.image import Recipe, at_most_every, build
from distrain_nb.magics.image import shown
from distrain_nb.worker.files.status import Progress

from .programs import SimpleProgram

pytestmark = pytest.mark.brief


def test_an_event_in_words_and_as_a_bar() -> None:
    event = shown(Progress("sending", 512, 2048))
    assert event["text/plain"] == "sending: 512 B of 2 KiB"
    assert "<progress value='512' max='2048'" in event["text/html"]
    packing = shown(Progress("packing"))
    assert packing["text/plain"] == "packing" and "<progress style" in packing["text/html"]


def test_a_slow_listener_hears_of_phases_and_ends_only() -> None:
    heard: list[Progress] = []
    hear = at_most_every(1000, heard.append)
    events = [Progress("packing"), *(Progress("sending", n, 50) for n in range(51))]
    for event in events:
        hear(event)
    assert heard == [events[0], events[1], events[-1]]


def test_a_quick_listener_hears_of_everything() -> None:
    heard: list[Progress] = []
    hear = at_most_every(0, heard.append)
    for done in range(51):
        hear(Progress("sending", done, 50))
    assert len(heard) == 51


def test_an_unknown_builder_names_those_that_there_are() -> None:
    with pytest.raises(OptionError, match="invalid --builder 'kaniko': expected append, docker"):
        build(SimpleProgram(), Recipe("a", "b"), "kaniko")
