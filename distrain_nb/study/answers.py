"""What a page asks about a study, by HTTP or through the kernel: one module answers both."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, shown
from distrain_nb.study.page import page_of
from distrain_nb.study.summary import summary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from distrain_nb.run.pages.protocol import Answer
    from distrain_nb.study.importances import Importances
    from distrain_nb.study.study import Study

    Query = Mapping[str, str]


def answer(study: Study, importances: Importances, query: Query) -> Answer:
    """State, trials and charts; see `page_of`. It is the `end` when no more will come. Raises
    RunUnreadable."""
    summary = summary_of(study)
    over = summary.final
    importances.of(study.spec, summary.trials, last=over)
    end = over and not importances.computing
    shares = importances.of(study.spec, summary.trials, last=over)
    return {**page_of(summary, shares, query.get("seen", "")), "end": end}


def act(study: Study, action: str, query: Query) -> None:
    """Stop the study or a trial, or want more trials; see `ACTIONS`. Raises OptionError."""
    try:
        ACTIONS[action](study, query)
    except KeyError as error:
        raise OptionError(str(error.args[0])) from None


def _number(query: Query, name: str) -> int:
    text = query.get(name, "")
    if not re.fullmatch("[0-9]{1,9}", text):
        raise OptionError(f"invalid {name} {shown(text)}: expected a whole number")
    return int(text)


ACTIONS: dict[str, Callable[[Study, Query], None]] = {
    "cancel": lambda study, _: study.cancel(),
    "stop": lambda study, query: study.stop(_number(query, "trial")),
    "more": lambda study, query: study.more(_number(query, "trials")),
}
