"""`ranks p loss`: an expression's value in each rank, in the program's frame that knows its names.

Other ranks evaluate it in a thread beside the program, which goes on, or waits at its own prompt.
"""

from __future__ import annotations

import pprint
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.prompts import PromptRequest
from distrain_nb.worker.files.status import Status
from distrain_nb.worker.functions import is_of_program
from distrain_nb.worker.rank import prompt

ANSWER_WITHIN_S = 5.0
RELAYED_WITHIN_S = 15.0  # behind looks of both sides at files, or at a dashboard
_TRAINING = ("primary", "workers", "evaluators")

debuggers: List[Any] = []  # of this process, that wait at a prompt


def evaluate(text: str, style: str, names: Tuple[Mapping[str, Any], Mapping[str, Any]]) -> str:
    """Return the value of an expression as `p` or `pp` shows it. Raises what it raises."""
    value = eval(text, dict(names[0]), dict(names[1]))
    return pprint.pformat(value) if style == "pp" else repr(value)


def ask_ranks(folder: Path, process: int, text: str, style: str) -> Iterator[Tuple[str, str]]:
    """Yield the label of each rank but that one, and the value there."""
    ranks = [rank for rank in Status.read(folder).processes if rank.role in _TRAINING]
    living = [rank.index for rank in ranks if not rank.outcome and rank.index != process]
    request = prompts.make_request(folder, prompts.EVALUATE, living, text, style)
    has_relay = prompts.has_relay(folder)
    if has_relay:
        prompt.stream().inquire(request)
    replies = prompts.take_replies(folder, request, ANSWER_WITHIN_S)
    silent = f"*** no answer within {ANSWER_WITHIN_S:g} s"
    for rank in ranks:
        if rank.index != process:
            ended = f"*** it has ended: {rank.outcome}" if rank.outcome else silent
            yield rank.label, replies.get(rank.index, ended)
    relayed = prompts.take_given(folder, request.name, RELAYED_WITHIN_S) if has_relay else {}
    if relayed is None:
        yield "ranks of other machines", f"*** no answer within {RELAYED_WITHIN_S:g} s"
    yield from sorted((relayed or {}).items(), key=lambda item: _number(item[0]))


def _number(label: str) -> Tuple[int, str]:
    """Return what sorts labels of ranks by their numbers."""
    number = label.rpartition(" ")[2]
    return (int(number) if number.isdigit() else 0), label


def answer(folder: Path, process: int, request: PromptRequest) -> None:
    """Evaluate for another rank, in a thread of its own: the expression may wait for something."""

    def reply() -> None:
        prompts.reply(folder, request, process, _value_here(request.text, request.style))

    threading.Thread(target=reply, name="distrain inquiry", daemon=True).start()


def _value_here(text: str, style: str) -> str:
    reason = ""
    for frame in _frames():
        try:
            return evaluate(text, style, (frame.f_globals, frame.f_locals))
        except NameError as error:
            reason = reason or _in_words(error)
        except BaseException as error:
            return _in_words(error)
    return reason or "*** the program hasn't begun"


def _frames() -> Iterator[FrameType]:
    """Yield the frame chosen at this rank's prompt, else the program's, from the innermost out."""
    if debuggers:
        yield debuggers[-1].curframe
        return
    frame = main_frame()
    while frame is not None:
        if is_of_program(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def main_frame() -> Optional[FrameType]:
    """Return the innermost frame of the program that the main thread is in; outside it, any."""
    frames: Dict[int, FrameType] = sys._current_frames()
    innermost = frames.get(threading.main_thread().ident or 0)
    return frame_of_program(innermost)


def frame_of_program(innermost: Optional[FrameType]) -> Optional[FrameType]:
    """Return the first frame of the program from there outwards, or else that one."""
    frame = innermost
    while frame is not None and not is_of_program(frame.f_code.co_filename):
        frame = frame.f_back
    return frame or innermost


def _in_words(error: BaseException) -> str:
    return f"*** {type(error).__name__}: {error}"
