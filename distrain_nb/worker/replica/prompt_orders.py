"""What a replica is ordered for the prompts of its ranks, in the place of the notebook.

The orders (`files/orders.py`) come from whoever passes on what ranks ask
(`backends/remote/prompt_relay.py`). A session's replica follows them among others; that of a run
follows nothing else, from `follow` to the end of its process.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Optional

from distrain_nb.worker.files import fields, prompts
from distrain_nb.worker.files.orders import (
    HEARD,
    HOLD,
    ORDERS,
    REPLIES,
    REPLY,
    REQUEST,
    Order,
    OrderReader,
)
from distrain_nb.worker.files.prompts import Asker, PromptRequest

# A look is a request to a network file system, also where a thousand replicas have none to hear of.
LOOK_AT_PROMPT_S, LOOK_S, EACH_SECOND = 0.05, 1.0, 256
FOR_PROMPTS = (REPLY, HEARD, HOLD, REQUEST, REPLIES)


def follow(job: Path, index: int, replicas: int, place: Path) -> None:
    """Do what is ordered for the prompts of a run, whose replica `index` of so many has its files
    in `place`, if the job has been sent with such an order."""
    if not (job / ORDERS).exists():
        return
    reader = OrderReader(job)

    def take() -> None:
        for order in reader.new():
            apply(place, index, order)

    def go_on() -> None:
        seldom = LOOK_S * max(1.0, replicas / EACH_SECOND)
        while True:
            time.sleep(LOOK_AT_PROMPT_S if prompts.open_prompts(place) else seldom)
            take()

    take()  # first: a rank may ask as soon as it is there
    threading.Thread(target=go_on, name="orders", daemon=True).start()


def apply(place: Path, index: int, order: Order) -> None:
    """Do an order for the prompts of the ranks that have their files in that place."""
    words = order.words
    if order.do not in FOR_PROMPTS or words.get("replica", index) != index or not place.exists():
        return
    try:
        if order.do == REPLY:
            prompts.send_answer(place, Asker(*words["asker"]), words["number"], words["text"])
        elif order.do == REQUEST:
            prompts.write_request(place, fields.decode(PromptRequest, words["request"], place))
        elif order.do == REPLIES:
            prompts.give_replies(place, words["name"], words["replies"])
        elif order.do == HOLD:
            prompts.hold(place, waits=any(n != index for n in words["replicas"]))
        else:
            hear(place, words["answered"])
    except OSError:  # the folder has been deleted
        pass


def hear(place: Path, answered: Optional[bool]) -> None:
    """Have the ranks know whether somebody can answer; None where nobody follows them."""
    if answered is None:
        prompts.end_listening(place)
    else:
        prompts.listen(place, answers=answered, secrets=False)
