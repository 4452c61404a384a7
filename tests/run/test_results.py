"""Results are read as plain data where others may have written them."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import importlib
import os
import pickle
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from distrain_nb import api
from distrain_nb.errors import ResultUntrusted, RunUnreadable
from distrain_nb.run import Results
from distrain_nb.worker.pickles import out_of_band
from distrain_nb.worker.rank import values

MODEL = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
PLAIN = [
    (None, True, 7, 1.5, 2j, "text", b"bytes", bytearray(b"x"), ...)[:-1],
    {"a": [1, {2, 3}], (1, 2): frozenset("x"), "r": range(3), "s": slice(1, 2)},
    collections.OrderedDict(a=1),
    collections.defaultdict(list, a=[1]),
    collections.Counter("aab"),
    collections.deque([1, 2], maxlen=3),
    datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc),
    [datetime.date(2020, 1, 2), datetime.timedelta(1), decimal.Decimal("1.5"), uuid.UUID(int=7)],
    [fractions.Fraction(1, -3), fractions.Fraction(5), bytearray(), slice(None), complex(1, 2)],
    Path("/somewhere"),
    [np.float32(1.5), np.datetime64("2020-01-01"), np.dtype("i4"), np.dtype([("a", "f8", 2)])],
    [torch.Size([1, 2]), torch.float16, torch.device("cpu")],
]
ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.array(["a", "bc"]),
    np.array([(1, 2.0)], [("n", "i4"), ("x", "f8")]),
    np.array([1, "a", None], object),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


def read(value: Any, folder: Path) -> Any:
    assert values.dump({"value": value}, folder) == {}
    return Results(folder, 1, trusts=False)["value"]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_data_needs_no_trust(value: Any, folder: Path) -> None:
    found = read(value, folder)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: str(a.dtype))
def test_arrays_need_no_trust(array: Any, folder: Path) -> None:
    np.testing.assert_array_equal(read(array, folder), array)


def test_states_of_models_and_optimizers_need_no_trust(folder: Path) -> None:
    optimizer = torch.optim.Adam(MODEL.parameters())
    MODEL(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    state, steps, weight = read(
        (MODEL.state_dict(), optimizer.state_dict(), MODEL[0].weight), folder
    )
    assert all(map(torch.equal, state.values(), MODEL.state_dict().values()))
    assert state._metadata == MODEL.state_dict()._metadata  # type: ignore[attr-defined]
    assert torch.equal(steps["state"][0]["exp_avg"], optimizer.state_dict()["state"][0]["exp_avg"])
    assert isinstance(weight, torch.nn.Parameter)


class Own:
    pass


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (MODEL, "torch.nn.modules.container.Sequential"),
        (pd.DataFrame({"a": [1]}), "pandas"),
        (Own(), r"test_results\.Own"),
        (os, "importlib.import_module"),
        (print, "builtins.print"),
    ],
)
def test_what_needs_trust_says_so_and_is_read_with_it(value: Any, names: str, folder: Path) -> None:
    with pytest.raises(ResultUntrusted, match=rf"{names}.*trusted\['value'\].*result 1 --trust"):
        read(value, folder)
    assert type(Results(folder, 1, trusts=False).trusted["value"]) is type(value)


ran: list[str] = []


def deed(*_: Any) -> None:
    ran.append("!")


class Reduced:
    """What its pickle names, called with these values, and then given a state."""

    def __init__(self, call: Any, *given: Any, state: Any = None) -> None:
        self.reduced = (call, given, state)

    def __reduce__(self) -> Any:
        return self.reduced


HOSTILE = [
    Reduced(deed),
    Reduced(eval, "deed()"),
    Reduced(getattr, [], "append"),
    Reduced(importlib.import_module, "tests.run.test_results"),
    Reduced(torch.storage._load_from_bytes, pickle.dumps(Reduced(deed))),
    Reduced(out_of_band, "notebook", "deed"),
    Reduced(out_of_band, "nothing"),
    Reduced(collections.OrderedDict, state={"keys": 1}),
    Reduced(collections.Counter, state={"x": 1}),
    # dtypes that say they have no objects where they have: bytes would be taken for addresses
    Reduced(
        np.dtype, "V8", False, True,
        state=(3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0),
    ),
    Reduced(
        np.dtype, "V4", False, True,
        state=(3, "|", None, ("a",), {"a": (np.dtype("f8"), 0)}, 4, 1, 0),
    ),
    # states of dtypes that NumPy reads beyond their ends
    Reduced(np.dtype, "i4", False, True, state=(3, "<", None, -1, -1, 0)),
    Reduced(np.dtype, "V8", False, True, state=(3, "|", None, -1, -1, 0)),
    Reduced(np.dtype, "M8", False, True, state=(4, "<", None, None, None, -1, -1, 0, ({}, ()))),
    # few bytes that make many
    Reduced(bytearray, 1 << 33),
    Reduced(bytes, 1 << 33),
    Reduced(list, range(1 << 29)),
    Reduced(collections.deque, range(1 << 29)),
    Reduced(torch.Size, range(1 << 29)),
    Reduced(int, decimal.Decimal("1e99999999")),
    Reduced(fractions.Fraction, "1e99999999"),
    Reduced(str, [[1]]),
]  # fmt: skip


@pytest.mark.parametrize(
    "value", HOSTILE, ids=[f"{n}-{value.reduced[0].__name__}" for n, value in enumerate(HOSTILE)]
)
def test_what_a_stranger_wrote_runs_nothing(value: Reduced, folder: Path) -> None:
    with pytest.raises((ResultUntrusted, RunUnreadable)):
        read(value, folder)
    assert ran == []


def test_a_forged_dtype_changes_no_other(folder: Path) -> None:
    """It is made anew of its state, whatever its flags say, and NumPy's own stays as it is."""
    objects = Reduced(
        np.dtype, "O8", False, True, state=(4, "|", None, None, None, -1, -1, 0, None)
    )
    swapped = Reduced(np.dtype, "i4", False, False, state=(3, ">", None, None, None, -1, -1, 0))
    made = read([objects, swapped], folder)
    assert [each.flags for each in made] == [np.dtype("O").flags, np.dtype("i4").flags]
    assert np.dtype("i4").newbyteorder("=") == np.dtype("i4")


DTYPES = [
    *("?", "<i4", ">i4", "<f2", "<c16", "S3", "<U2", "V5", "O", "M8", "<M8[15m]", ">m8[s]"),
    np.dtype(("f4", (2, 3))),
    np.dtype([("a", "<i1"), ("b", ">f8", 2), ("c", [("d", "<U3")])]),
    np.dtype([("a", "<i1"), ("b", "<f8")], align=True),
    np.dtype([(("a title", "a"), "<i4")]),
    np.dtype({"names": ["b", "a"], "formats": ["i4", "i4"], "offsets": [8, 2], "itemsize": 20}),
    np.dtype("O", metadata={"vlen": str}),
    np.dtype("M8[s]", metadata={"a": 1}),
]


@pytest.mark.parametrize("kind", DTYPES, ids=str)
def test_a_dtype_comes_back_as_it_was(kind: Any, folder: Path) -> None:
    kind = np.dtype(kind)
    back, again = read([kind, kind], folder)
    assert back is again
    assert (back, back.metadata, back.fields) == (kind, kind.metadata, kind.fields)
    assert (back.alignment, back.flags, back.isalignedstruct) == (
        kind.alignment, kind.flags, kind.isalignedstruct,
    )  # fmt: skip


def test_objects_are_never_made_of_bytes(folder: Path) -> None:
    """Arrays and scalars of objects whose addresses would be what stands in the file."""
    objects = np.dtype("O")
    forged = {
        "mapped": Reduced(out_of_band, "array", 0, (1,), objects, "C"),
        "direct": Reduced(np.ndarray, (1,), objects, b"A" * 8),
        "scalar": Reduced(np.float64(1).__reduce__()[0], objects, b"A" * 8),
    }
    values.dump({"room": np.full(8, 0x41414141), **forged}, folder)
    for name in forged:
        with pytest.raises((ResultUntrusted, RunUnreadable)):
            Results(folder, 1, trusts=False)[name]


def test_a_local_run_s_own_file_is_read_whole(home: Path) -> None:
    before = os.umask(0o002)
    try:
        run = api.submit("import collections\nnet = collections.UserDict(a=1)", result="net")
        run.wait(60)
    finally:
        os.umask(before)
    assert run.results["net"]["a"] == 1
    objects = run.folder / "results" / values.OBJECTS
    assert objects.stat().st_mode & 0o022 == 0
    objects.chmod(0o664)  # as an earlier version left it where the umask was 002
    with pytest.raises(ResultUntrusted, match=r"collections\.UserDict"):
        run.results["net"]
    assert run.results.trusted["net"]["a"] == 1
