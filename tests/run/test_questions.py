"""What the kernel reads of a rank's prompt."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from distrain_nb.run.prompts import Dialogues
from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.prompts import Asker
from distrain_nb.worker.rank import prompt

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_question_that_is_answered_is_not_asked_again(tmp_path: Path) -> None:
    """Before the rank has taken the answer."""
    asker = Asker(0, os.getpid())
    prompts.listen(tmp_path, answers=True)
    asker.open(tmp_path).touch()
    asker.asked(tmp_path).write_text('{"number": 1, "prompt": "more? ", "secret": false}\n')
    dialogues = Dialogues(tmp_path)
    [question] = dialogues.questions()
    assert (question.text, question.secret) == ("more? ", False)
    dialogues.answer(question, "yes")
    assert not dialogues.questions()


def test_a_process_asks_and_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt, "_here", None)
    prompts.listen(tmp_path, answers=True)
    prompt.begin(tmp_path, 3)
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(prompt.ask("n? ")))
    thread.start()
    dialogues = Dialogues(tmp_path)
    while not (questions := dialogues.questions()):
        pass
    assert [asker.process for asker in prompts.open_prompts(tmp_path)] == [3]
    dialogues.answer(questions[0], "täglich\t√")
    thread.join(10)
    assert answers == ["täglich\t√"]
    assert not prompts.open_prompts(tmp_path)
    assert {file.name for file in (tmp_path / "prompts").iterdir()} == {
        f"asked-3-{os.getpid()}",
        f"listener-{os.getpid()}.json",
    }
    prompts.end_listening(tmp_path)
    assert prompts.is_answered(tmp_path) is None
