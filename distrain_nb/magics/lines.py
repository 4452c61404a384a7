"""`%distrain …`: the verbs that look after runs."""

from __future__ import annotations

import argparse
import shlex
import time
from typing import TYPE_CHECKING, Any

from distrain_nb import api
from distrain_nb.api.settings import described_settings
from distrain_nb.backends import plugins
from distrain_nb.config import Config
from distrain_nb.errors import OptionError, RunNotFound, did_you_mean
from distrain_nb.escapes import coloured
from distrain_nb.magics.cell import watch
from distrain_nb.magics.command_line import HELP, HelpAsked
from distrain_nb.magics.help import show, show_help
from distrain_nb.magics.help_page import page_of
from distrain_nb.magics.shard import shard, shard_elsewhere
from distrain_nb.magics.verbs import line_options, packing_options
from distrain_nb.run import LogReader, Run, final_lines
from distrain_nb.run.annotation import tags_in
from distrain_nb.run.summary import labels_of, tagged
from distrain_nb.tracking.credentials import SECRET_VARIABLES, keep_secret
from distrain_nb.worker.files.disk import readable_size

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from distrain_nb.run.stacks import Stacks
    from distrain_nb.study import Study

FOLLOW_EVERY_S = 0.1


def run_line(words: list[str], shell: InteractiveShell) -> Any:
    """Run a line magic and return its value. Raises OptionError, RunNotFound and what the verb
    raises."""
    if words[:1] == ["run"]:
        from distrain_nb.magics.script import run_script

        return run_script(words[1:])
    if words[:1] == ["session"]:
        from distrain_nb.magics.sessions import run_session

        return run_session(words[1:])
    if words[:1] == ["shard"] and (packing := packing_options(words[1:])):
        return shard_elsewhere(packing)
    if words[:1] and words[0].partition("=")[0] in HELP:
        show_help(words)
        return None
    if words[:1] and words[0].startswith("-"):
        line = shlex.join(words)
        raise OptionError(f"%distrain takes a verb: %%distrain {line} on top of a cell runs it")
    try:
        options = line_options(words)
    except HelpAsked as request:
        show(page_of(request.parser))
        return None
    options.namespace, options.shell = shell.user_ns, shell
    return _VERBS[options.verb or "runs"](options)


def _runs(options: argparse.Namespace) -> Any:
    experiment = getattr(options, "experiment", None)
    if experiment is not None:
        return _of_experiment(experiment)
    from distrain_nb.ui.table import runs_table

    return runs_table(api.runs())


def _of_experiment(experiment: str) -> Any:
    from distrain_nb.ui.experiment_table import experiment_table

    runs = api.runs(experiment) if experiment else []
    if runs:
        return experiment_table(runs)
    experiments = dict.fromkeys(run.experiment for run in api.runs() if run.experiment)
    hint = did_you_mean(experiment, experiments, ".")
    listed = f"There are {', '.join(experiments)}" if experiments else "There are none yet"
    raise OptionError(f"no run has --experiment {experiment!r}{hint} {listed}")


def _show(options: argparse.Namespace) -> None:
    from distrain_nb.ui.monitor import Monitor

    run = api.attach(options.run)
    monitor = Monitor(run)
    monitor.show()
    monitor.finish()
    for name, address in run.links.items():
        print(f"{name}: {address}")


def _logs(options: argparse.Namespace) -> None:
    run = api.attach(options.run)
    if options.carrier:
        if options.follow or options.rank is not None:
            raise OptionError("--carrier can't be combined with --rank or --follow")
        print(coloured(run.carrier_log()), end="")
    elif options.follow:
        _follow(run, options.rank)
    else:
        print(coloured(run.logs(options.rank)))


def _follow(run: Run, rank: int | None) -> None:
    """Print lines as they come, once each, until the run has ended."""
    reader, over = LogReader(run.folder), False
    process = None if rank is None else run.process_of(rank)
    while not over:
        over = run.state.final
        lines = [line for line in reader if process in (None, line.process)]
        labels = labels_of(run.status)
        for line in final_lines(lines):
            if not line.moving:
                print(coloured(tagged(labels, line)))
        time.sleep(0 if over else FOLLOW_EVERY_S)


def _stacks(options: argparse.Namespace) -> Stacks:
    return api.attach(options.run).stacks()


def _debug(options: argparse.Namespace) -> None:
    from distrain_nb.magics.prompts import debug

    debug(api.attach(options.run), options.rank)


def _attach(options: argparse.Namespace) -> Run | Study:
    from distrain_nb.study import Study, attach

    run: Run | Study = attach(options.run)
    if isinstance(run, Study):
        from distrain_nb.magics.studies import watch_study

        watch_study(run, waits=False)
        return run
    run.fetch()
    watch(run, waits=False)
    return run


def _cancel(options: argparse.Namespace) -> None:
    run = api.attach(options.run)
    if run.state.final:
        print(f"{run.title} has ended already: {run.state}")
        return
    run.cancel()
    print(f"{run.title} is being stopped")


def _resume(options: argparse.Namespace) -> Run:
    before = api.attach(options.run)
    run = before.resume()
    print(f"run {run.id} ({run.name}) goes on from what run {before.id} has saved")
    watch(run, waits=False)
    return run


def _result(options: argparse.Namespace) -> Any:
    run = api.attach(options.run)
    result = run.results.trusted if options.trust else run.results
    if not options.into:
        return result
    values = dict(result)
    options.namespace.update(values)
    print(f"from {run.title}: {', '.join(values) or 'nothing'}")
    return None


def _delete(options: argparse.Namespace) -> None:
    run = api.attach(options.run)
    api.delete(run)
    print(f"{run.title} is deleted")


def _note(options: argparse.Namespace) -> None:
    run = api.attach(options.run)
    if options.text:
        run.note = " ".join(options.text)
    print(run.note or f"{run.title} has no note")


def _tag(options: argparse.Namespace) -> None:
    run = api.attach(options.run)
    removed = run.tags if "all" in options.remove else tags_in(options.remove)
    for tag in removed:
        if tag not in run.tags:
            hint = did_you_mean(tag, run.tags, ".")
            has = (run.tags and f"It has {', '.join(run.tags)}") or "It has none"
            raise OptionError(f"{run.title} has no tag {tag!r}{hint} {has}")
    if options.tags or removed:
        run.tags = (*(tag for tag in run.tags if tag not in removed), *options.tags)
    print(", ".join(run.tags) or f"{run.title} has no tags")


def _export(options: argparse.Namespace) -> None:
    from distrain_nb.ui.export import export

    file = export(api.attach(options.run), options.file)
    print(f"{file} ({readable_size(file.stat().st_size)})")


def _compare(options: argparse.Namespace) -> Any:
    from IPython.display import display

    from distrain_nb.ui.compare import ComparisonView

    view = ComparisonView(api.compare(*(run for name in options.runs for run in _named(name))))
    display(view.charts(), raw=True)
    return view


def _named(name: str) -> list[Run]:
    """Return the run of that name or number, or else those of a study's trials, or of an
    experiment.

    Raises RunNotFound.
    """
    try:
        return [api.attach(name)]
    except RunNotFound:
        from distrain_nb.study import studies

        study = next((study for study in studies() if study.name == name), None)
        runs = study.runs if study else api.runs(name)[::-1] if name else []
        if not runs:
            raise
        return runs


def _catalog(options: argparse.Namespace) -> Any:
    from distrain_nb.layout.catalog.lookup import query

    return query(*options.words)


def _form(options: argparse.Namespace) -> Any:
    from distrain_nb.ui.form import form

    return form(options.layout or None)


def _advise(options: argparse.Namespace) -> Any:
    from distrain_nb.magics.advise import answer

    return answer(options, options.shell)


def _doctor(_: argparse.Namespace) -> Any:
    from distrain_nb.health import doctor
    from distrain_nb.program.progress import report_to
    from distrain_nb.ui.outputs import show_until_next

    with report_to(lambda progress: show_until_next(f"{progress.phase}…")):
        return doctor()


def _clean(options: argparse.Namespace) -> None:
    from distrain_nb.run.disk_usage import cleaning
    from distrain_nb.study.listing import keys_of_unended, studies_ended_before

    reclaimable = cleaning(options.older_than, studies_ended_before, keys_of_unended())
    print(reclaimable)
    if options.yes:
        reclaimable.free()
        print("freed")
    elif reclaimable.parts:
        older = "" if options.older_than is None else f" --older-than {options.older_than:g}"
        print(f"nothing is deleted yet: %distrain clean{older} --yes frees it")


def _vars(options: argparse.Namespace) -> Any:
    from distrain_nb.run.session import find_session
    from distrain_nb.ui.sessions import names_table

    return names_table(find_session(options.session))


def _config(options: argparse.Namespace) -> None:
    from distrain_nb.ui.outputs import say

    config, of_backends = Config.load(), plugins.settings()
    for setting in options.settings:
        name, equals, value = setting.partition("=")
        if name in SECRET_VARIABLES:
            _ask_for(name, value)
            continue
        if not equals:
            raise OptionError(f"invalid setting {setting!r}: write {name}=VALUE")
        config = config.changed(name, value, of_backends)
    if options.settings:
        config.save()
        _follow_observing(config)
    names, described = described_settings()
    say("\n".join(filter(None, (config.described(of_backends, names), described))))


def _ask_for(name: str, text: str) -> None:
    """Ask for a secret, which no notebook keeps; an empty answer forgets it."""
    if text:
        raise OptionError(
            f"{name} is a secret, which the notebook would keep: `%distrain config {name}` asks "
            f"for it, or set {SECRET_VARIABLES[name]}; delete what is written here"
        )
    from getpass import getpass

    keep_secret(name, getpass(f"{name} (empty forgets it): ").strip())


def _follow_observing(config: Config) -> None:
    from IPython import get_ipython

    from distrain_nb.magics.observing import start_observing, stop_observing

    (start_observing if config.observe else stop_observing)(get_ipython())


def _tune(options: argparse.Namespace) -> Any:
    from distrain_nb.magics.studies import tune_verb

    return tune_verb(options)


_VERBS = {
    "runs": _runs,
    "show": _show,
    "logs": _logs,
    "stacks": _stacks,
    "debug": _debug,
    "attach": _attach,
    "cancel": _cancel,
    "resume": _resume,
    "result": _result,
    "delete": _delete,
    "note": _note,
    "tag": _tag,
    "export": _export,
    "compare": _compare,
    "tune": _tune,
    "shard": shard,
    "catalog": _catalog,
    "form": _form,
    "advise": _advise,
    "doctor": _doctor,
    "clean": _clean,
    "config": _config,
    "vars": _vars,
}
