"""Files of a study's folder as chance leaves them: a page's answer, or a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.errors import RunUnreadable
from distrain_nb.run.metrics.finite import to_json
from distrain_nb.study.answers import answer
from distrain_nb.study.importances import Importances
from distrain_nb.study.rows import StudyListing
from distrain_nb.study.study import Study
from distrain_nb.worker.files.status import State
from tests.fuzzing import flipped, mutated, rounds
from tests.run.test_readers_by_chance import CRUEL, PIECES
from tests.study.stored import stored_study

if TYPE_CHECKING:
    from pathlib import Path


def test_the_files_of_a_study_by_chance_are_answered_or_named(home: Path) -> None:
    study = stored_study(home, trials=4, wanted=4, state=State.SUCCEEDED)
    files = [study.folder / name for name in ("study.json", "status.json", "trials/2.json")]
    whole = [file.read_bytes() for file in files]
    answered = 0
    for number, chance in enumerate(rounds(34, 4_000)):
        which = chance.randrange(len(files))
        odd = CRUEL[number] if number < len(CRUEL) else mutated(chance, [whole[which]], PIECES)
        files[which].write_bytes(odd if chance.random() < 0.7 or not odd else flipped(chance, odd))
        try:
            to_json(answer(Study(study.folder), Importances(), {}))
            answered += 1
        except RunUnreadable as error:
            assert "study 1" in str(error)
        to_json([row.as_json() for row in StudyListing().read([study])])
        files[which].write_bytes(whole[which])
    assert answered
