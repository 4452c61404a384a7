"""The options of a job: the layout's, and those that say what travels and what comes back."""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.layout import OPTIONS, Layout, Option, load
from distrain_nb.layout.options import changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def _option(form: str, what: str, default: Any, *, shown: bool = True, **more: Any) -> Any:
    return field(default=default, repr=shown, metadata={"form": form, "help": what, **more})


def _cloud(form: str, what: str, default: Any, *, shown: bool = True) -> Any:
    """An option that only a cloud has a use for; it may hold secrets if it isn't to be shown."""
    return _option(form, what, default, shown=shown, cloud=True)


def words(text: str) -> tuple[str, ...]:
    """A command line's words, as a shell splits them. Raises OptionError for an open quote."""
    try:
        return tuple(shlex.split(text))
    except ValueError as wrong:
        raise OptionError(f"invalid --args {text!r}: {wrong}") from None


@dataclass(frozen=True)
class JobOptions:
    """Options of a job besides its layout. In the magic, lists may be given more than once."""

    layout: str = _option("NAME|FILE", "a saved layout, which other options then change", "")
    name: str = _option("NAME", "what to call the run", "")
    experiment: str = _option("NAME", "what to file the run under", "")
    result: tuple[str, ...] = _option("NAME,…", "names of rank 0 to bring back", ())
    param: tuple[str, ...] = _option("NAME=VALUE", "give a name of the notebook another value", ())
    args: tuple[str, ...] = _option(
        "TEXT", "arguments of the program, its sys.argv[1:]; or write them after --", (), read=words
    )
    data: tuple[str, ...] = _option("NAME=URI", "a name for data that the cell reads itself", ())
    include: tuple[str, ...] = _option("PATH", "a file or folder that is to travel along", ())
    require: tuple[str, ...] = _option("NAME[==VERSION]", "a package that the program needs", ())
    allow_secret: tuple[str, ...] = _option("NAME", "a secret that may go all the same", ())
    wait: bool | None = _option("", "whether the cell waits for the run to end", None)
    dry_run: bool = _option("", "show what would be submitted, and submit nothing", False)
    rehearse: str | None = _option("EVENT,…", "send the cloud's request to this machine", None)
    builder: str = _option("append|docker|cloudbuild", "what builds the image", "append")
    project: str = _cloud("NAME", "project of Google Cloud", "")
    bucket: str = _cloud("NAME", "bucket for what the job writes", "")
    service_account: str = _cloud("EMAIL", "service account that the job runs as", "")
    repository: str = _cloud("HOST/PATH", "container repository that the image goes to", "")
    base: str = _cloud("IMAGE", "image that the program's image is built on", "")
    python_package: bool = _cloud("", "no image: a prebuilt container and staged code", False)
    pipeline: bool = _cloud("", "submit as a training pipeline", False)
    label: tuple[str, ...] = _cloud("NAME=VALUE", "a label of the job", ())
    env: tuple[str, ...] = _cloud("NAME=VALUE", "a variable, or NAME=secret://…", (), shown=False)
    nfs: tuple[str, ...] = _cloud("SERVER:PATH:MOUNT", "an NFS share to mount", ())
    lustre: tuple[str, ...] = _cloud("ADDRESS:FILESYSTEM:VOLUME:MOUNT", "a Lustre mount", ())
    reservation: str = _cloud("NAME", "reservation of machines to use", "")
    persistent_resource: str = _cloud("NAME", "persistent resource to run on", "")
    web_access: bool = _cloud("", "allow a shell in the replicas", False)
    tensorboard: str = _cloud("NAME", "Vertex AI TensorBoard instance", "")
    network: str = _cloud("NAME", "VPC network of the job", "")
    restart: bool = _cloud("", "start the whole job again when a replica is lost", False)
    role: str = _cloud("ARN", "IAM role that the job runs as", "")
    channel: tuple[str, ...] = _cloud("NAME=URI[,mode=MODE]…", "an input channel", ())
    hyperparameter: tuple[str, ...] = _cloud("NAME=VALUE", "a hyperparameter of the job", ())
    metric: tuple[str, ...] = _cloud("NAME=REGEX", "a metric that is read from the log", ())
    subnet: tuple[str, ...] = _cloud("ID", "a subnet of the job", ())
    security_group: tuple[str, ...] = _cloud("ID", "a security group of the job", ())
    kms_key: str = _cloud("ID", "key that volumes and output are encrypted with", "")
    encrypt: bool = _cloud("", "encrypt the traffic between hosts", False)
    isolate: bool = _cloud("", "keep the job from the network", False)
    keep_alive: str = _cloud("DURATION", "how long machines stay for the next job", "")
    attempts: str = _cloud("N", "how often the service starts the job at most", "")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> JobOptions:
        """From options by name; a single text will do where a list is meant."""
        lists = {f.name: f.metadata.get("read", _single) for f in fields(cls) if f.default == ()}
        given: dict[str, Any] = {
            n: _listed(v, lists[n]) if n in lists else v for n, v in options.items()
        }
        return cls(**given)

    @property
    def results(self) -> tuple[str, ...]:
        """The names in `result`, each on its own."""
        return tuple(name.strip() for text in self.result for name in text.split(",") if name)

    @property
    def cloud(self) -> dict[str, Any]:
        """The options that only a cloud has a use for, as far as they were given."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.metadata.get("cloud")}
        return {name: value for name, value in named.items() if value}

    def given(self, place: Callable[[str, str], str]) -> dict[str, Any]:
        """The names that `param` and `data` define, with their values; `place` says what a name
        for data at a URI is where the job runs."""
        values = {name: _literal(text) for name, text in _pairs("param", self.param)}
        return values | {name: place(name, uri) for name, uri in _pairs("data", self.data)}

    def brought(self, brings: Callable[[str], bool]) -> frozenset[str]:
        """The names in `data` of what comes to the job without being read by its name."""
        return frozenset(name for name, uri in _pairs("data", self.data) if brings(uri))


def read(options: Mapping[str, Any]) -> tuple[Layout, JobOptions]:
    """Options by name, in Python's spelling. Raises OptionError naming option, value and form."""
    own = {each.name for each in fields(JobOptions)}
    _refuse_unknown(options, own | {option.field for option in OPTIONS} | {"spot"})
    job = JobOptions.of({n: v for n, v in options.items() if n in own and v is not None})
    _check_name(job.name)
    layout = load(job.layout) if job.layout else Layout()
    return changed(layout, {n: v for n, v in options.items() if n not in own}), job


def layout_options() -> Iterable[Option]:
    return OPTIONS


def _refuse_unknown(options: Iterable[str], known: set[str]) -> None:
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise OptionError(f"no option {name!r}{hint} There are {', '.join(sorted(known))}")


def _check_name(name: str) -> None:
    """By its name a run is found, as by its number and by `last`."""
    if name.isdigit() or name == "last" or name != name.strip() or not name.isprintable():
        raise OptionError(
            f"invalid --name {name!r}: expected a printable name that is neither a number nor "
            f"'last', such as run-{name if name.isdecimal() else 'a'}"
        )


def _listed(value: Any, read: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    return read(value) if isinstance(value, str) else tuple(map(str, value))


def _single(text: str) -> tuple[str, ...]:
    return (text,)


def _pairs(option: str, texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise OptionError(f"--{option} can't be {text!r}; write NAME=VALUE, NAME an identifier")
        yield name, value


def _literal(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
