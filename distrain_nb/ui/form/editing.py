"""A layout being edited: what has been chosen, what can't be read yet, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.layout import Layout, Pool, Role
from distrain_nb.layout.choices import with_own_accelerators
from distrain_nb.layout.place import place_of
from distrain_nb.layout.reduction_server import sized_reducers
from distrain_nb.layout.resolved import resolve
from distrain_nb.layout.rules import check
from distrain_nb.layout.text import printed
from distrain_nb.layout.words import heading
from distrain_nb.ui.form.fields import text_of, with_text
from distrain_nb.ui.form.own import OWN_PREFIX, LineFix, from_line, own_findings, own_words
from distrain_nb.ui.form.tuning import TUNING, Tuning

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_STEPS = 200
NO_POOL = ("primary-missing", "instances-missing")  # what a place says of a layout without pools


@dataclass(frozen=True)
class Draft:
    """The text of a field that can't be read: the layout keeps its last value."""

    path: str
    text: str
    why: str


@dataclass(frozen=True)
class Editing:
    """A layout, the fields whose text says something that is not in it, a study, and the texts of
    the fields that backends have for themselves, by name."""

    layout: Layout = field(default_factory=Layout)
    drafts: tuple[Draft, ...] = ()
    tuning: Tuning = field(default_factory=Tuning)
    backend_texts: Mapping[str, str] = field(default_factory=dict)
    # A place's usual pools, and the layout without them: they are nobody's own choice.
    laid_out: tuple[Layout, Layout] | None = field(default=None, compare=False)

    def text(self, path: str) -> str:
        """Return the text that a field shows."""
        if _of_tuning(path):
            return self.tuning.text(path.removeprefix(f"{TUNING}."))
        if _of_backend(path):
            return self.backend_texts.get(path.partition(".")[2], "")
        return next((d.text for d in self.drafts if d.path == path), text_of(self.layout, path))

    def typed(self, path: str, text: str) -> Editing:
        """Return the form after a text was typed into a field, whether it can be read or not."""
        if _of_tuning(path):
            typed = self.tuning.typed(path.removeprefix(f"{TUNING}."), text)
            return replace(self, tuning=typed)
        if _of_backend(path):
            return replace(
                self, backend_texts={**self.backend_texts, path.partition(".")[2]: text.strip()}
            )
        drafts = self._drafts_beside(path)
        layout = self._chosen_layout if path == "on" else self.layout
        try:
            layout = with_text(layout, path, text)
        except OptionError as error:
            return replace(self, drafts=(*drafts, Draft(path, text, str(error))))
        if path != "on":
            return replace(self, layout=layout, drafts=drafts)
        usual = _laid_out(_with_gpus(layout, self.layout))
        return replace(self, layout=usual, drafts=drafts, laid_out=(usual, layout))

    @property
    def _chosen_layout(self) -> Layout:
        """The layout without the pools of its place that nobody has touched."""
        usual, without = self.laid_out or (None, self.layout)
        return without if self.layout == usual else self.layout

    def chosen(self, path: str, text: str) -> Editing:
        """Return the form after a choice from a field's list: a machine brings its own GPUs."""
        after = self.typed(path, text)
        name, _, field = path.partition(".")
        if field != "machine":
            return after
        return replace(after, layout=with_own_accelerators(after.layout, Role(name)))

    def added(self, role: Role) -> Editing:
        """Return the form with a pool of a role, like those that are there already."""
        return replace(self, layout=self.layout.edited({role.value: _like(self.layout, role)}))

    def removed(self, role: Role) -> Editing:
        """Return the form without the pool of a role."""
        drafts = tuple(d for d in self.drafts if d.path.partition(".")[0] != role.value)
        return replace(self, layout=self.layout.edited({role.value: None}), drafts=drafts)

    def sized(self) -> Editing:
        """Return the form with a Reduction Server that covers the workers. Raises OptionError if
        none can."""
        pool = sized_reducers(self.layout)
        return replace(self.removed(Role.REDUCERS), layout=self.layout.edited({"reducers": pool}))

    def repaired(self, finding: Finding, fix: Fix[Any]) -> Editing:
        """Return the form after a repair of a finding."""
        if _of_tuning(finding.where):
            return replace(self, tuning=fix.apply(self.tuning))
        drafts = self._drafts_beside(*finding.places)
        if isinstance(fix, LineFix):
            words = [*printed(self.layout), *own_words(self.layout.on, self.backend_texts)]
            line, texts = from_line(fix.apply(heading(words)).removeprefix("%%distrain"))
            return replace(self, layout=Layout.from_line(line), backend_texts=texts, drafts=drafts)
        return replace(self, layout=fix.apply(self.layout), drafts=drafts)

    def findings(self) -> tuple[Finding, ...]:
        """Return everything that is wrong, what can't be read first."""
        unreadable = map(self._unreadable, self.drafts)
        limits = own_findings(self.layout, self.backend_texts)
        return (*unreadable, *check(self.layout), *limits, *self.tuning.findings(self.layout.on))

    def _unreadable(self, draft: Draft) -> Finding:
        before = text_of(self.layout, draft.path)
        keep: Fix[Layout] = Fix(f"Keep {before}" if before else "Leave it empty", lambda it: it)
        return Finding("field-unreadable", Severity.ERROR, draft.path, draft.why, (keep,))

    def _drafts_beside(self, *paths: str) -> tuple[Draft, ...]:
        return tuple(d for d in self.drafts if d.path not in paths)


def _of_backend(path: str) -> bool:
    return path.partition(".")[0] == OWN_PREFIX


def _of_tuning(path: str) -> bool:
    return path.partition(".")[0] == TUNING


def _laid_out(layout: Layout) -> Layout:
    """Return the layout with a pool, and with machines for its pools, where its place asks for
    them: the usual ones. On this machine a form shows a pool, of no machine, that no option has."""
    for finding in check(layout):
        if finding.code == "machine-missing" or (finding.code in NO_POOL and not [*layout.pools()]):
            return _laid_out(finding.fixes[0].apply(layout)) if finding.fixes else layout
    return layout


def _with_gpus(layout: Layout, before: Layout) -> Layout:
    """Return the layout with the GPUs that its pools had at the place before, in words of its own:
    `gpu:8` of Slurm is `node+8*GPU` of Ray."""
    place = place_of(layout.on)
    if place is None or place.pool_gpus is None or layout.on == before.on:
        return layout
    counts = {pool.role: pool.accelerators for pool in resolve(before).pools}
    give = place.pool_gpus.give
    pools = {role.value: give(pool, counts.get(role, 0)) for role, pool in layout.pools()}
    return layout.edited(pools)


def _like(layout: Layout, role: Role) -> Pool:
    """Return a first idea of a pool: reducers are sized, workers and the primary are like each
    other."""
    if role is Role.REDUCERS:
        try:
            return sized_reducers(layout)
        except OptionError:
            return Pool()
    model = layout.workers if role is Role.PRIMARY else layout.primary
    return Pool() if model is None or role is Role.SERVERS else replace(model, replicas=1)


@dataclass(frozen=True)
class Repaired:
    """The label of a repair that was made, and the places that it was for."""

    label: str
    places: tuple[str, ...]


@dataclass(frozen=True)
class History:
    """The state that is edited, the states before it, and those that were undone.

    Steps with the same `group`, such as the keystrokes in one field, are undone together.
    `repaired` is there while the last step was a repair.
    """

    now: Editing
    past: tuple[Editing, ...] = ()
    future: tuple[Editing, ...] = ()
    group: str = ""
    repaired: Repaired | None = None

    def repair(self, finding: Finding, fix: Fix[Any]) -> History:
        """Apply a repair of a finding as the next step."""
        after = self.then(self.now.repaired(finding, fix))
        return replace(after, repaired=Repaired(fix.label, finding.places))

    def then(self, step: Editing, group: str = "") -> History:
        """Add a step to the history."""
        if step == self.now:
            return self
        if group and group == self.group:
            return replace(self, now=step, future=(), repaired=None)
        return History(step, (*self.past, self.now)[-MOST_STEPS:], (), group)

    def undone(self) -> History:
        """Go one step back, if there is one."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (self.now, *self.future))

    def redone(self) -> History:
        """Return the last undone step again, if there is one."""
        if not self.future:
            return self
        return History(self.future[0], (*self.past, self.now), self.future[1:])
