"""Questions of ranks elsewhere reach the notebook by the relay, and answers reach the ranks."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import cast

from distrain_nb.backends.remote.prompt_relay import PromptRelay
from distrain_nb.run.prompts import Dialogues
from distrain_nb.types import JsonObject
from distrain_nb.worker.files import orders, prompts
from distrain_nb.worker.files.orders import Order
from distrain_nb.worker.rank import prompt
from distrain_nb.worker.replica import prompt_orders
from tests.conftest import eventually

NUMBER = 3


def test_a_rank_elsewhere_is_answered_and_the_others_wait(tmp_path: Path) -> None:
    run, job = tmp_path / "run", tmp_path / "job"
    run.mkdir()
    places = [orders.place_of(job, NUMBER, index) for index in range(2)]
    for place in places:
        place.mkdir(parents=True)

    def give(do: str, words: JsonObject) -> None:
        for index, place in enumerate(places):
            prompt_orders.apply(place, index, Order(NUMBER + 1, do, dict(words)))

    relay = PromptRelay(run, places.__getitem__, NUMBER, {0: [0], 1: [1]}, give)
    prompts.listen(run, answers=True)
    for place in places:
        prompt_orders.hear(place, relay.begin())
    asking = os.fork()
    if not asking:
        os._exit(_ask(places[1]))
    dialogues = Dialogues(run)

    def question_is_there() -> bool:
        relay.turn()
        return bool(dialogues.questions())

    assert eventually(question_is_there)
    (question,) = dialogues.questions()
    assert (question.asker.process, question.text) == (1, "who? ")
    assert prompts.stands_still(places[0])
    assert not prompts.open_prompts(places[0])
    dialogues.answer(question, "Ada")
    relay.turn()
    assert os.waitpid(asking, 0)[1] == 0
    relay.turn()
    assert not prompts.open_prompts(run)
    assert not prompts.stands_still(places[0])
    prompts.end_listening(run)
    relay.turn()
    assert prompts.is_answered(places[0]) is None
    relay.end()


def _ask(place: Path) -> int:
    """Ask as rank 1 does; return the exit status. No password may lie in a file."""
    prompt.begin(place, 0)
    try:
        prompt.ask("password? ", secret=True)
    except prompt.NobodyAnswers:
        return int(prompt.ask("who? ") != "Ada")
    return 2


def test_a_request_to_stop_reaches_its_rank_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    given: list[tuple[str, JsonObject]] = []
    place = partial(orders.place_of, tmp_path / "job", NUMBER)
    members = {0: [0], 1: [1, 2]}
    relay = PromptRelay(run, place, NUMBER, members, lambda *order: given.append(order))
    relay.begin()
    prompts.make_request(run, prompts.STOP, (2,))
    relay.turn()
    relay.turn()
    ((do, words),) = given
    assert (do, words["of"], words["replica"]) == (orders.REQUEST, NUMBER, 1)
    request = cast("dict[str, object]", words["request"])
    assert (request["kind"], request["targets"]) == (prompts.STOP, [1])
