"""Every number of a file of results that a stranger wrote, beyond all bounds.

What takes one of them for an address ends the process that reads, or gives away its memory: so a
process of its own reads them all, and looks at every byte of what is read.
"""

from __future__ import annotations

import itertools
import json
import pickle
import pickletools
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from distrain_nb.errors import ResultUntrusted, RunUnreadable
from distrain_nb.run import Results
from distrain_nb.worker.pickles import out_of_band
from distrain_nb.worker.rank import values
from tests.fuzzing import mutated, rounds, several
from tests.run.test_results import ARRAYS, DTYPES, MODEL, PLAIN

ROOT = Path(__file__).parents[2]
SIZE = 256  # bytes of the arrays in the file
WHOLE = 4  # elements
AT_ONCE = 40  # values
NUMBERS = (
    -(2**63),
    -SIZE,
    -1,
    0,
    1,
    SIZE,
    SIZE + 1,
    2**31,
    2**62,
    2**63 - 1,
    2**63,
    2**64,
    0.5,
    "1",
)
READ = """
import sys
from pathlib import Path
import numpy, torch
from distrain_nb.errors import ResultUntrusted, RunUnreadable
from distrain_nb.run import Results

def touched(value):
    if isinstance(value, torch.Tensor):
        assert value.untyped_storage().nbytes() <= 256
        return value.numel() < 1 << 20 and value.double().sum()
    if isinstance(value, numpy.ndarray):
        assert value.nbytes <= 256 or not value.dtype.itemsize, (value.shape, value.dtype)
        fields = [value[name].tolist() for name in value.dtype.fields or ()]
        return value.size < 1 << 20 and (value.tobytes(), str(value), fields)
    return str(value)

read = 0
for folder in Path(sys.argv[1]).iterdir():
    results = Results(folder, 1, trusts=False)
    for name in results:
        try:
            touched(results[name])
            read += 1
        except (ResultUntrusted, RunUnreadable):
            pass
print(read)
"""


class Pickled:
    """What its pickle names, called with these values, and then given a state."""

    def __init__(self, call: Any, *given: Any, state: Any = None) -> None:
        self.reduced = (call, given, state)

    def __reduce__(self) -> Any:
        return self.reduced


def instead(whole: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The tuple with each number in it, however deep, replaced by each of the others."""
    for at, item in enumerate(whole):
        if type(item) is int:
            others: Any = NUMBERS
        elif type(item) is tuple:
            others = [*instead(item), (), item * 2, *itertools.product(NUMBERS[:6], repeat=2)]
        elif item in ("C", "float32"):
            others = ["F", "K", "int8", "float64", "nn", "quint8", 7]
        else:
            others = ()
        yield from ((*whole[:at], other, *whole[at + 1 :]) for other in others)


def dtype(state: tuple[Any, ...], made: str = "V8") -> Pickled:
    return Pickled(np.dtype, made, False, True, state=state)


def arrays_of(made: Any) -> Iterator[Pickled]:
    yield Pickled(out_of_band, "array", 0, (WHOLE,), made, "C")
    yield Pickled(*_NUMPYS_SCALAR, made, b"x" * 8)


_NUMPYS_SCALAR = (np.float64(1).__reduce__()[0],)
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_START = (np.ndarray, (0,), b"b")
_FIELDS = {"a": (np.dtype("f4"), 0), "b": (np.dtype("f4"), 4)}
STRUCT = (3, "|", None, ("a", "b"), _FIELDS, 8, 1, 16)
F4 = np.dtype("f4")


def hostile() -> Iterator[Any]:
    for state in instead((0, (WHOLE,), F4, "C")):
        yield Pickled(out_of_band, "array", *state)
    for state in instead((0, SIZE, "float32", (0, (WHOLE,), (1,)), False, False)):
        yield Pickled(out_of_band, "tensor", *state)
    for shape in itertools.product(NUMBERS[:10], repeat=2):
        yield Pickled(out_of_band, "array", 0, shape, F4, "C")
        yield Pickled(out_of_band, "tensor", 0, SIZE, "float32", (0, shape, (1, 1)), False, False)
        yield Pickled(out_of_band, "tensor", 0, SIZE, "float32", (0, (2, 2), shape), False, False)
    for kind, data in (("f4", b"x" * 16), ("O", [1, 2, 3, 4])):
        for state in instead((1, (WHOLE,), np.dtype(kind), False, data)):
            yield Pickled(_RECONSTRUCT, *_START, state=state)
        for other in ([], [1], b"", b"x" * 15, (1, 2), "xxxx", None):
            state = (1, (WHOLE,), np.dtype(kind), False, other)
            yield Pickled(_RECONSTRUCT, *_START, state=state)
    yield from made_of_odd_dtypes()


def made_of_odd_dtypes() -> Iterator[Pickled]:
    for state in instead(STRUCT):
        yield from arrays_of(dtype(state))
    for number in NUMBERS:
        fields = {**_FIELDS, "b": (F4, number)}
        yield from arrays_of(dtype((*STRUCT[:4], fields, *STRUCT[5:])))
        unnamed = {**_FIELDS, "c": (F4, number)}  # which is found all the same
        yield from arrays_of(dtype((*STRUCT[:4], unnamed, *STRUCT[5:])))
        for shape in ((number,), (number, number)):
            inner = dtype((3, "|", (np.dtype("f8"), shape), None, None, 8, 1, 0))
            yield from arrays_of(inner)
            yield from arrays_of(dtype((*STRUCT[:4], {**_FIELDS, "b": (inner, 0)}, *STRUCT[5:])))
        date = (4, "<", None, None, None, -1, -1, 0, ({}, (b"s", number, 1, 1)))
        yield from arrays_of(dtype(date, "M8[s]"))
        for kind in ("V8", "S8", "U2"):
            yield from arrays_of(dtype((3, "|", None, None, None, number, 1, 0), kind))


@pytest.mark.slow  # reads a thousand files in a process of its own
def test_no_number_of_a_stranger_reaches_beyond_the_file(tmp_path: Path) -> None:
    made = list(hostile())
    assert len(made) > 1_000
    unsaved = 0
    for first in range(0, len(made), AT_ONCE):  # each reads the index of its folder
        folder = tmp_path / str(first)
        few = made[first : first + AT_ONCE]
        unsaved += len(values.dump({f"value {n}": each for n, each in enumerate(few)}, folder))
        (folder / values.ARRAYS).write_bytes(bytes(SIZE))
    assert unsaved < len(made) / 20
    command = [sys.executable, "-c", READ, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert 0 < int(done.stdout) < len(made) / 4


# What calls, builds, sets, names or counts.
PIECES = [
    *(pickle.REDUCE, pickle.BUILD, pickle.POP, pickle.DUP, pickle.NONE, pickle.MARK, pickle.TUPLE),
    *(pickle.TUPLE1, pickle.TUPLE2, pickle.NEWOBJ, pickle.SETITEM, pickle.SETITEMS, pickle.OBJ),
    *(
        b"K\0",
        b"K\xff",
        b"J\xff\xff\xff\xff",
        b"J\xff\xff\xff\x7f",
        b"\x8a\x08" + b"\xff" * 7 + b"\x7f",
    ),
    *(b"cbuiltins\nrange\n", b"cbuiltins\nlist\n", b"cnumpy\ndtype\n", b"r\xff\xff\xff\x7f"),
    *(b"X\1\0\0\0<", b"C\2xx", b"}", b"]", b")"),
]
MOST_MEMORY = 8 << 30  # of addresses: what takes more fails, and harms nobody
READ_BY_CHANCE = """
import sys
from pathlib import Path
from tests.run import test_results_hostile
test_results_hostile.read_by_chance(Path(sys.argv[1]), int(sys.argv[2]))
"""


def opcodes(value: Any, folder: Path) -> tuple[bytes, ...]:
    """The pickle of a value, without the sizes of its frames."""
    values.dump({"value": value}, folder)
    data = (folder / values.OBJECTS).read_bytes()
    starts = [
        (start, code.name) for code, _, start in pickletools.genops(data) if start is not None
    ]
    ends = [*(start for start, _ in starts[1:]), len(data)]
    parts = zip(starts, ends, strict=True)
    return tuple(data[start:end] for (start, name), end in parts if name != "FRAME")


def read_by_chance(folder: Path, share: int) -> None:
    """Read so many files that chance has changed, and touch what is read of them."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    dtypes = [np.dtype(kind) for kind in DTYPES]
    whole = [*PLAIN, *ARRAYS, *dtypes, torch.arange(3), MODEL.state_dict()]
    seeds = [opcodes(value, folder) for value in whole]
    opcodes(1, folder)
    pieces = [(piece,) for piece in PIECES]
    (folder / values.ARRAYS).write_bytes(bytes(SIZE))
    read = 0
    for chance in rounds(18, share):
        (folder / values.OBJECTS).write_bytes(b"".join(mutated(chance, seeds, pieces)))
        try:
            str(Results(folder, 1, trusts=False)["value"])
            read += 1
        except (ResultUntrusted, RunUnreadable):
            pass
    print(read)


@pytest.mark.slow  # in a process of its own, with PyTorch
def test_a_file_by_chance_is_read_or_refused(tmp_path: Path) -> None:
    """What ends the process, takes long, or raises anything else is seen by its status."""
    command = [sys.executable, "-W", "ignore", "-c", READ_BY_CHANCE, str(tmp_path / "results")]
    command.append(str(several(10_000)))
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 0


def pickled_twice(use: bytes) -> bytes:
    """`[use(D), D]` for a dtype D, to which a state of 1 MiB is given after its use."""
    made = b"cnumpy\ndtype\n(S'V8'\nI00\nI01\ntRp0\n"
    state = b"(I3\nS'|'\nNNNI1048576\nI1\nI0\ntb"
    return b"(l" + made + b"0" + use + b"ag0\n" + state + b"a."


@pytest.mark.parametrize(
    "use",
    [
        b"cdistrain_nb.worker.pickles\nout_of_band\n(S'array'\nI0\n(I4\ntg0\nS'C'\ntR",
        b"cnumpy\ndtype\n((lp1\n(S'a'\ng0\ntatRp2\n0"
        b"cdistrain_nb.worker.pickles\nout_of_band\n(S'array'\nI0\n(I4\ntg2\nS'C'\ntR",
    ],
    ids=["its own", "a field's"],
)
def test_a_dtype_that_is_in_use_gets_no_other_size(use: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    values.dump({"value": 1}, folder)
    (folder / values.ARRAYS).write_bytes(bytes(SIZE))
    (folder / values.OBJECTS).write_bytes(pickled_twice(use))
    with pytest.raises(ResultUntrusted, match=r"no dtype where|NumPy doesn't write"):
        Results(folder, 1, trusts=False)["value"]


@pytest.mark.parametrize("number", NUMBERS)
def test_no_number_of_the_index_leads_elsewhere(number: object, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    values.dump({"value": torch.arange(3)}, folder)
    index = json.loads((folder / values.INDEX).read_text())
    index["entries"][0]["offset"] = number
    (folder / values.INDEX).write_text(json.dumps(index))
    if number != 0:
        with pytest.raises((ResultUntrusted, RunUnreadable)):
            Results(folder, 1, trusts=False)["value"]


READ_ONE = """
import sys
from pathlib import Path
from distrain_nb.run import Results
Results(Path(sys.argv[1]), 1, trusts=False)["value"]
"""
DOUBLED = b")" + b"2\x86" * 60  # a tuple of twice the one before, and so on: 2^60 parts
KEYS = {
    "a dict's": b"}" + DOUBLED + b"K\x01s.",
    "a dict's, several": b"}(" + DOUBLED + b"K\x01u.",
    "a set's": b"\x8f(" + DOUBLED + b"\x90.",
    "a frozenset's": b"(" + DOUBLED + b"\x91.",
    "a slice's": b"}cbuiltins\nslice\n" + DOUBLED + b"\x85RK\x01s.",
    "counted": b"ccollections\nCounter\n(" + DOUBLED + b"l\x85R.",
    "in order": b"ccollections\nOrderedDict\n((" + DOUBLED + b"K\x01\x86l\x85R.",
}


@pytest.mark.parametrize("code", KEYS.values(), ids=KEYS)
def test_keys_that_take_for_ever_to_hash_are_refused(code: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    values.dump({"value": 1}, folder)
    (folder / values.OBJECTS).write_bytes(b"\x80\x04" + code)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONE, str(folder)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "ResultUntrusted" in done.stderr or "RunUnreadable" in done.stderr


@pytest.mark.parametrize(("field", "odd"), [("unsaved", []), ("unsaved", "x"), ("entries", {})])
def test_an_index_of_another_form_is_damaged(field: str, odd: object, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    values.dump({"value": 1}, folder)
    index = json.loads((folder / values.INDEX).read_text())
    (folder / values.INDEX).write_text(json.dumps({**index, field: odd}))
    for use in (len, repr, lambda results: results.named, lambda results: results["value"]):
        with pytest.raises(RunUnreadable, match="is damaged"):
            use(Results(folder, 1, trusts=False))
