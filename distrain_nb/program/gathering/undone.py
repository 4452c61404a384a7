"""What the notebook had set beside its names, has sent to the ranks of a session, and has again as
at first: it is looked at no more, and would stay in the ranks.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from distrain_nb.worker.functions import NoAttribute
from distrain_nb.worker.rank.process_state import TABLE, read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.gathering.ranks import RankNames

AS_AT_FIRST = "as at first"  # the digest of what is sent so


def roots_undone(gathered: Collection[str], names: RankNames) -> set[str]:
    """Return the names of definitions of which ranks have a part that their text gives now."""
    parts = {name for name in names if re.match(r"\w+[.\[]", name)} - {*gathered}
    return {re.split(r"[.\[]", part, maxsplit=1)[0] for part in parts} & {*gathered}


def send_undone(gathering: Gathering, names: RankNames, digests: Mapping[str, str]) -> set[str]:
    """Take settings, and state of modules, of which ranks have another value than the notebook has
    now; return their names."""
    stale = [n for n in names if ":" in n and names.digests(n) - {digests.get(n, AS_AT_FIRST)}]
    states = dict([*_settings(stale), *_of_modules(stale, gathering)])
    return states.keys() - gathering.want_process_state(states.items()).keys()


def _settings(stale: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield settings with all their items: of a dict only those are looked at that are set."""
    others = TABLE.keys() - {*stale}
    yield from ((name, value) for name, value in read(but=others) if value is not None)


def _of_modules(stale: Iterable[str], gathering: Gathering) -> Iterator[tuple[str, Any]]:
    for name in stale:
        module, _, path = name.partition(":")
        if name in TABLE or path.endswith("()") or name in gathering.found:
            continue
        if module in gathering.modules and module in sys.modules:
            owner: Any = sys.modules[module]
            *owners, last = path.split(".")
            for attribute in owners:
                owner = getattr(owner, attribute, None)
            yield name, getattr(owner, last, NoAttribute)
