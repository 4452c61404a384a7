"""Values in files: what a program carries from the notebook, and what it gives back.

A folder of values holds three files:

- `index.json`: for each name its type, its size in bytes and where its pickle starts; and what
  could not be saved, with the reason;
- `objects.pickle`: one pickle a name;
- `arrays.bin`: the bytes of arrays and tensors (see `pickles`).

Names that were saved together share objects, as they did before, and are read in their order.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import (
    Any,
    BinaryIO,
    Callable,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from distrain_nb.worker.files.disk import replace
from distrain_nb.worker.fingerprint import fingerprint, has_identity
from distrain_nb.worker.functions import NoAttribute
from distrain_nb.worker.pickles import Reader, Restoring, Writer
from distrain_nb.worker.rank.caches import CACHE, CachedResults
from distrain_nb.worker.rank.expected import NotAsInNotebook
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.process_state import TABLE
from distrain_nb.worker.rank.process_state import write as write_state
from distrain_nb.worker.rank.wrapped import unwrapped

INDEX, OBJECTS, ARRAYS = "index.json", "objects.pickle", "arrays.bin"
VALUES_FOLDER = "main.values"  # the folder next to main.py
_LONGEST = 200  # characters: Keras says a whole model's configuration
_open: Dict[Path, _Stored] = {}


class Entry(NamedTuple):
    """One saved value: its type's name, where its pickle starts, its size in bytes."""

    name: str
    type: str
    offset: int
    size: int


class Index(NamedTuple):
    """The index of a folder of values."""

    entries: List[Entry]
    unsaved: Dict[str, str]  # name: reason
    together: bool

    def to_json(self) -> str:
        return json.dumps({**self._asdict(), "entries": [e._asdict() for e in self.entries]})

    @classmethod
    def from_json(cls, text: str) -> Index:
        data = json.loads(text)
        if not isinstance(data["unsaved"], dict) or not isinstance(data["entries"], list):
            raise ValueError("the index of values has another form than it is written in")
        data["entries"] = [Entry(**entry) for entry in data["entries"]]
        return cls(**data)


def dump(
    values: Mapping[str, Any],
    folder: Path,
    writer: Callable[[BinaryIO, BinaryIO], Writer] = Writer,
) -> Dict[str, str]:
    """Save values to a folder, all at once or not at all.

    Tensors on a device are saved as CPU tensors. Gives the names that could not be saved, each
    with the reason; the others are saved all the same. Raises OSError when the disk does.
    """
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(str(part), ignore_errors=True)
    part.mkdir(parents=True)
    with _created(part / OBJECTS) as objects, _created(part / ARRAYS) as arrays:
        index = write(values, objects, arrays, writer=writer)
    with _created(part / INDEX) as file:
        file.write(index.to_json().encode())
    shutil.rmtree(str(folder), ignore_errors=True)
    replace(part, folder)
    return index.unsaved


def _created(path: Path) -> BinaryIO:
    """Return a new file that nobody else may write, whatever the umask."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return os.fdopen(os.open(str(path), flags, 0o644), "wb+")


def write(
    values: Mapping[str, Any],
    objects: BinaryIO,
    arrays: BinaryIO,
    together: bool = False,
    writer: Callable[[BinaryIO, BinaryIO], Writer] = Writer,
) -> Index:
    """Write values to two seekable files. `together` keeps what they share shared."""
    start = objects.tell(), arrays.tell()
    unsaved: Dict[str, str] = {}
    while True:  # a pickle may refer to those before it: so what fails is left out from the start
        entries, failed = _written(values, objects, arrays, together, writer, unsaved)
        unsaved.update(failed)
        if not (together and failed):
            return Index(entries, unsaved, together)
        for file, position in zip((objects, arrays), start):
            file.seek(position)
            file.truncate()


def _written(
    values: Mapping[str, Any],
    objects: BinaryIO,
    arrays: BinaryIO,
    together: bool,
    writer: Callable[[BinaryIO, BinaryIO], Writer],
    left_out: Mapping[str, str],
) -> Tuple[List[Entry], Dict[str, str]]:
    """Write values but some; the names of those that fail come back with the reason."""
    pickler = writer(objects, arrays)
    entries: List[Entry] = []
    failed: Dict[str, str] = {}
    for name, value in values.items():
        if name in left_out:
            continue
        starts = objects.tell(), arrays.tell()
        if not together:
            pickler.clear_memo()
        try:
            pickler.dump(value)
        except OSError:
            raise
        except Exception as error:
            failed[name] = reason(error)
            if together:
                continue  # the others are tried too, and then written again
            objects.seek(starts[0])
            objects.truncate()
            pickler.forget_from(starts[1])
        else:
            size = objects.tell() - starts[0] + arrays.tell() - starts[1]
            entries.append(Entry(name, type(value).__name__, starts[0], size))
    return entries, failed


def reason(error: BaseException) -> str:
    """Return an error as the end of a sentence: "cannot pickle '_thread.lock' object"."""
    text = " ".join(str(error).split())
    return (text[:_LONGEST] + "\u2026" if len(text) > _LONGEST else text) or type(error).__name__


def load(
    folder: Path,
    names: Optional[Sequence[str]] = None,
    reader: Callable[[BinaryIO, Restoring], Any] = Reader,
) -> Dict[str, Any]:
    """Read values by name, or all that were saved, by what `reader` makes of their pickles.

    Raises KeyError for a name that the folder doesn't have, ValueError for one that could not be
    saved, with the reason; and whatever reading a value raises.
    """
    stored = _Stored(folder, vars(sys.modules["__main__"]), reader)
    return {name: stored.get(name) for name in (stored.names if names is None else names)}


def index_of(folder: Path) -> Index:
    """Read the index of a folder of values, without the values."""
    return Index.from_json((folder / INDEX).read_text(encoding="utf-8"))


def names(folder: Path) -> List[str]:
    """Return the names that a folder of values holds."""
    return [entry.name for entry in index_of(folder).entries]


def captured(*names: str) -> Any:
    """Return the values that were captured for a program, from the folder next to the calling file.

    One name gives its value, several give a tuple.
    """
    stored = _beside(sys._getframe(1).f_globals)
    values = tuple(stored.get(name) for name in names)
    return values if len(names) > 1 else values[0]


def forget() -> None:
    """Let go of the captured values, which are the program's own."""
    _open.clear()


def restored(*paths: str) -> None:
    """Give definitions of the program, `CFG.lr`, modules beside it, `module:CFG.lr`, random
    generators, `random:getstate()`, and settings of the process what they have in the notebook.

    A module gets it when the program imports it, now or later; none is imported for that. What is
    the same as they have it stays; what is not takes its place wherever the program and these
    modules name it.
    """
    namespace = sys._getframe(1).f_globals
    stored = _beside(namespace)
    of_modules: Dict[str, List[str]] = {}
    for path in paths:
        of_modules.setdefault(path.rpartition(":")[0], []).append(path)
    of_user = {m for m, paths_in in of_modules.items() if not _is_of_process(paths_in[0])}
    modules = {"__main__", *of_user}

    def restore(module: Any) -> None:
        for path in of_modules[module.__name__]:
            try:
                _restore(path, module, stored, modules, namespace)
            except Exception as error:  # of which who imports may say no more than that
                raise NotAsInNotebook(
                    f"`{path}` can't be set as in the notebook: {error}"
                ) from error

    changes = {name: functools.partial(stored.between_reads, restore) for name in of_modules}
    if changes.pop("", None):
        restore(SimpleNamespace(**{**namespace, "__name__": ""}))
    on_import(changes)


def give(path: str, folder: Path, namespace: Dict[str, Any]) -> None:
    """Give a name, or an attribute of a definition, the value that a folder of its own has."""
    stored = _Stored(folder, namespace)
    if "." in path:
        main = SimpleNamespace(**{**namespace, "__name__": ""})
        _restore(path, main, stored, {"__main__"}, namespace)
    else:
        namespace[path] = stored.get(path)


def _is_of_process(path: str) -> bool:
    return path in TABLE or (path.endswith("()") and not path.endswith(CACHE))


def _restore(
    path: str, module: Any, stored: _Stored, modules: Set[str], namespace: Dict[str, Any]
) -> None:
    *owners, name = path.rpartition(":")[2].split(".")
    owner: Any = module
    if path in TABLE:
        write_state(path, module, stored.get(path))
        return
    if _is_of_process(path) and ":" in path:  # the state of a generator: `random:getstate()`
        getattr(module, "set" + name[len("get") : -len("()")])(stored.get(path))
        return
    for attribute in owners:
        owner = getattr(owner, attribute)
    value = stored.get(path)
    if isinstance(value, CachedResults):
        value.fill(owner)
        return
    before = vars(owner).get(name, NoAttribute)
    parts = fingerprint(name, value, modules)
    is_equal = any(parts.values()) and parts == fingerprint(name, before, modules)
    if value is before or (is_equal and not has_identity(value)):
        return
    # A metaclass or a frozen class may have a way of its own, which the notebook has gone.
    kind: Any = type if isinstance(owner, type) else object
    if value is NoAttribute:
        kind.__delattr__(owner, name)
        return
    kind.__setattr__(owner, name, value)
    # The program's own names may be imports of it. What other modules share has a path of its own.
    if has_identity(before):
        namespace.update({key: value for key, v in namespace.items() if v is before})


def loaded(model: Any, name: str) -> None:
    """Give a model that was made again the weights that it has in the notebook: those that a name
    such as `net.state_dict()` stands for. Raises NotAsInNotebook where it is another model."""
    weights, model = _beside(sys._getframe(1).f_globals).get(name), unwrapped(model)
    load = getattr(model, "load_state_dict", None) or model.set_weights
    try:
        load(weights)
    except Exception as error:
        path = name.rpartition(".")[0]
        raise NotAsInNotebook(
            f"`{path}` has other weights in the run than in the notebook ({error}): create it in"
            " the cell, or load its weights there"
        ) from error


def _beside(namespace: Dict[str, Any]) -> _Stored:
    folder = Path(namespace["__file__"]).parent / VALUES_FOLDER
    if folder not in _open:
        _open[folder] = _Stored(folder, namespace)
    return _open[folder]


class _Stored:
    """A folder of values that is being read."""

    def __init__(
        self,
        folder: Path,
        namespace: Mapping[str, Any],
        reader: Callable[[BinaryIO, Restoring], Any] = Reader,
    ) -> None:
        self.index = index_of(folder)
        self.entries = {entry.name: entry for entry in self.index.entries}
        self.names = list(self.entries)
        self.loaded: Dict[str, Any] = {}
        self.objects = (folder / OBJECTS).open("rb")
        self.restoring = Restoring(_map(folder / ARRAYS), namespace)
        self.new_reader = reader
        self.reader = reader(self.objects, self.restoring)
        self._reading = False
        self._waiting: List[Callable[[], None]] = []

    def between_reads(self, change: Callable[[Any], None], module: Any) -> None:
        """Change a module; where reading a value has just imported it, once that has been read."""
        if self._reading:
            self._waiting.append(functools.partial(change, module))
        else:
            change(module)

    def get(self, name: str) -> Any:
        if name in self.index.unsaved:
            raise ValueError(f"{name} was not saved: {self.index.unsaved[name]}")
        if name not in self.entries:
            allowed = ", ".join(self.names)
            raise KeyError(f"no value is named {name}; there are: {allowed}")
        if not self.index.together:
            return self._read(name)
        while name not in self.loaded:  # in order: a pickle may refer to one before it
            upcoming = self.names[len(self.loaded)]
            self._reading = True
            try:
                self.loaded[upcoming] = self.reader.load()
            finally:
                self._reading = False
            while self._waiting:
                self._waiting.pop(0)()
        return self.loaded[name]

    def _read(self, name: str) -> Any:
        self.objects.seek(self.entries[name].offset)
        return self.new_reader(self.objects, self.restoring).load()


def _map(path: Path) -> Any:
    if not path.stat().st_size:
        return bytearray()
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
