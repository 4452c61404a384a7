"""Whether a program reads small files one by one from where each is a request of its own."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from distrain_nb.program.advice.flow import LISTS, Flow, Origin
from distrain_nb.program.advice.reading import given, keyword, last, parameters
from distrain_nb.program.advice.training import warning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

FEW = 1000  # files that may be read one by one
LARGE = 1 << 20  # bytes a file from which on a request carries enough

_TREES = {
    *("ImageFolder", "DatasetFolder", "flow_from_directory"),
    *(f"{kind}_dataset_from_directory" for kind in ("image", "text", "audio")),
}
_FOLDERS = ("imagefolder", "audiofolder")
_OPENS = {
    *("open", "imread", "read_image", "decode_image", "read_file", "read_bytes", "read_text"),
    *("default_loader", "pil_loader"),
}
_LOADS = {"numpy.load", "np.load", "torch.load", "torchaudio.load", "librosa.load"}
_SAMPLES = (
    *(".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".npy", ".dcm"),
    *(".wav", ".flac", ".mp3", ".ogg"),
)
_PACKED = (
    *(".tar", ".gz", ".tgz", ".zip", ".tfrecord", ".tfrecords", ".parquet", ".arrow", ".npz"),
    *(".h5", ".hdf5", ".csv", ".tsv", ".jsonl", ".json", ".mds", ".bin", ".rec", ".pt", ".pth"),
)
_SLASHES_OF_A_BUCKET = 2


@dataclass(frozen=True)
class RemoteFolder:
    """A folder whose files are fetched when they are opened: its `path` where the job runs, and
    the `source` that it has its data from; how many `files` with how many bytes (`size`), 0 for
    unknown; `names` are attributes that hold it, `variables` those of the environment."""

    path: str
    source: str = ""
    files: int = 0
    size: int = 0
    names: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()

    @property
    def is_quick(self) -> bool:
        """Whether it is known to have few files, or large ones."""
        return 0 < self.files < FEW or (self.files > 0 and self.size >= self.files * LARGE)

    def of(self, source: str, files: int, size: int) -> RemoteFolder:
        """Return the same, of which the source is known."""
        return replace(self, source=source, files=files, size=size)


BUCKETS = RemoteFolder("/gcs/")


def told_by(
    arguments: Sequence[str], variables: Mapping[str, str], remote: Sequence[RemoteFolder]
) -> Iterator[RemoteFolder]:
    """Yield the folders that a program's arguments name, `--name PATH` or `--name=PATH`, as the
    attribute that a parser makes of them, and those that its variables hold."""
    split = [part for argument in arguments for part in argument.split("=", 1)]
    for option, path in pairwise(split):
        if option.startswith("--") and (known := _known(path, remote)):
            yield replace(known, names=frozenset({_attribute(option)}))
    for name, path in variables.items():
        if known := _known(path, remote):
            yield replace(known, variables=frozenset({name}))


def _attribute(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _known(path: str, remote: Sequence[RemoteFolder]) -> RemoteFolder | None:
    """Return a path with what is known of the innermost remote folder that it is below."""
    below = [item for item in remote if path.startswith(item.path)]
    if not below:
        return None
    known = max(below, key=lambda item: len(item.path))
    return RemoteFolder(path, known.source, known.files, known.size)


def storage(code: Code, remote: Sequence[RemoteFolder]) -> Iterator[Note]:
    """Yield the first read of small files below each folder that is `remote`."""
    for folder in _named(code, remote):
        if folder.is_quick or folder.path.endswith(_PACKED):
            continue
        flow = Flow(code, _origin(code, folder), passes=LISTS)
        reads = ((call.lineno, does) for call in code.calls if (does := _does(code, call, flow)))
        for line, does in islice(reads, 1):
            yield warning("data.small-files", line, _message(does, folder))


def _named(code: Code, remote: Sequence[RemoteFolder]) -> Iterator[RemoteFolder]:
    """Yield the folders that the program names: each by the text that stands there, and those that
    are told by other ways."""
    for text in dict.fromkeys(code.texts):
        if known := _known(text, remote):
            yield known
    yield from (item for item in remote if item.names or item.variables)


def _origin(code: Code, folder: RemoteFolder) -> Origin:
    """Return the expression that holds a folder's path; parsed arguments do whose default it is."""
    origin = Origin(frozenset(), folder.names, folder.variables, frozenset({folder.path}))
    flow = Flow(code, origin)
    added = [c for c in code.called("add_argument") if flow.holds(keyword(c, "default"))]
    options = [o.value for call in added for o in call.args if isinstance(o, ast.Constant)]
    return origin | Origin(names=frozenset(map(_attribute, map(str, options))))


def _does(code: Code, call: ast.Call, flow: Flow) -> str:
    """Return in words what a call does that reads a file for each sample; else nothing."""
    name, gets = last(code.name(call.func)), any(map(flow.holds, given(call)))
    kind = next(iter(call.args), None) or keyword(call, "path")
    folders = name == "load_dataset" and getattr(kind, "value", "") in _FOLDERS
    texts = [getattr(node, "value", "") for node in ast.walk(call)]
    if gets and (name in _TREES or folders):
        return f"{name} opens a file for each sample"
    if gets and name == "list_files" and any(t.lower().endswith(_SAMPLES) for t in map(str, texts)):
        return "this lists a file for each sample"
    if (name in _OPENS or code.name(call.func) in _LOADS) and flow.holds(_opened(call)):
        function = code.function_of(call)
        index = parameters(function)[:1] if function and function.name == "__getitem__" else []
        by_index = Flow(code, Origin(names=frozenset(p.arg for p in index)), passes=LISTS)
        if index and by_index.holds(_opened(call)):
            return f"__getitem__ opens a file for each sample with {name}()"
    return ""


def _opened(call: ast.Call) -> ast.expr | None:
    """Return the path that is opened: the first argument, or the path whose method it is."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    is_mode = receiver is not None and isinstance(next(iter(call.args), None), ast.Constant)
    return call.args[0] if call.args and not is_mode else receiver


def _message(does: str, folder: RemoteFolder) -> str:
    many = f" ({folder.files:,} here)" if folder.files else ""
    source = folder.source or _uri(folder.path)
    is_folder = source.rpartition("/")[2] and source.count("/") != _SLASHES_OF_A_BUCKET
    places = f"{source} {source}-shards" if is_folder else f"{source or 'SOURCE'} TARGET"
    return (
        f"{does}{many}, each of which is a request to the bucket that training waits for: pack "
        f"them once, `%distrain shard {places}`, and read the shards: "
        "`from distrain_nb import data`, data.shards(pattern, batch_size)"
    )


def _uri(path: str) -> str:
    """Return the bucket's folder of a path below /gcs/, as far as no pattern begins; empty where
    the path is not written out."""
    fixed = re.split(r"[*?\[{]", path, maxsplit=1)[0]
    folder = fixed if fixed == path else fixed.rpartition("/")[0]
    below = folder.removeprefix("/gcs/").rstrip("/")
    return f"gs://{below}" if path.startswith("/gcs/") and below else ""
