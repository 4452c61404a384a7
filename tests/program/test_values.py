"""Values in files, as programs carry them and runs give them back."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from distrain_nb.worker.rank import values
from distrain_nb.worker.rank.values import dump, index_of, load, names
from tests.fuzzing import several

if TYPE_CHECKING:
    from pathlib import Path


def there_and_back(value: Any, folder: Path) -> Any:
    dump({"value": value}, folder)
    return load(folder)["value"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "values"


ARRAYS = [
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(10)[::3],
    np.arange(6).reshape(2, 3).T,
    np.empty((0, 3)),
    np.array(5),
    np.array(["a", "bcd"]),
    np.array(["2020-01-01"], "M8[s]"),
    np.array([(1, 2.0)], [("n", "i4"), ("x", "f8")]),
    np.array([1 + 2j]),
    np.array([True, False]),
    np.array([1, "a", None], object),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays(array: np.ndarray[Any, Any], folder: Path) -> None:
    found = there_and_back(array, folder)
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape, found.flags.writeable) == (array.dtype, array.shape, True)
    np.testing.assert_array_equal(found, array)


@settings(max_examples=several(50), deadline=None)
@given(arrays.arrays(arrays.scalar_dtypes(), arrays.array_shapes(min_dims=0, min_side=0)))
def test_any_array(tmp_path_factory: pytest.TempPathFactory, array: Any) -> None:
    found = there_and_back(array, tmp_path_factory.mktemp("v") / "values")
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_arrays_are_mapped_and_private(folder: Path) -> None:
    dump({"x": np.zeros(4)}, folder)
    one, other = load(folder)["x"], load(folder)["x"]
    one[0] = 7
    assert other[0] == 0
    assert load(folder)["x"][0] == 0
    base = one
    while isinstance(base, np.ndarray):
        base = base.base
    assert type(base).__name__ in ("mmap", "memoryview")


TENSORS = [
    torch.arange(6).reshape(2, 3),
    torch.ones(3, dtype=torch.bfloat16),
    torch.arange(6).reshape(2, 3).T,
    torch.tensor(True),
    torch.empty(0, 3),
    torch.arange(100)[:3],
    torch.tensor([1 + 2j]).conj(),
    torch.eye(3).to_sparse(),
    torch.ones(2, 3, requires_grad=True),
    torch.nn.Parameter(torch.ones(2)),
    torch.ones(2, dtype=torch.float8_e4m3fn),
]


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda t: f"{t.dtype}-{tuple(t.shape)}")
def test_tensors(tensor: torch.Tensor, folder: Path) -> None:
    found = there_and_back(tensor, folder)
    assert type(found) is type(tensor)
    assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
    assert found.requires_grad == tensor.requires_grad
    assert found.to_dense().tolist() == tensor.to_dense().tolist()


def test_tensors_of_the_host_whatever_the_default_device(folder: Path) -> None:
    """As in a notebook after `torch.set_default_device("cuda")`: `meta` is no CPU either."""
    value = {"x": torch.arange(3.0), "w": torch.nn.Parameter(torch.ones(2)), "none": torch.ones(0)}
    with torch.device("meta"):
        found = there_and_back(value, folder)
    assert {name: tensor.tolist() for name, tensor in found.items()} == {
        name: tensor.tolist() for name, tensor in value.items()
    }


def test_a_small_view_does_not_carry_the_rest(folder: Path) -> None:
    dump({"x": torch.zeros(10**6)[:3]}, folder)
    assert (folder / values.ARRAYS).stat().st_size < 100


def test_shared_storage_stays_shared(folder: Path) -> None:
    base = torch.arange(10.0)
    dump({"pair": (base, base[::2])}, folder)
    whole, half = load(folder)["pair"]
    whole[0] = 7
    assert half[0] == 7


def test_model_and_optimizer(folder: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    found, steps = there_and_back((model, optimizer), folder)
    assert all(map(torch.equal, found.state_dict().values(), model.state_dict().values()))
    assert steps.param_groups[0]["params"][0] is next(found.parameters())
    found(torch.randn(4, 3)).sum().backward()
    steps.step()


def test_frames(folder: Path) -> None:
    frame = pd.DataFrame(
        {"a": [1, 2], "b": ["x", None], "c": pd.to_datetime(["2020", None]), "d": [1.5, None]},
        index=pd.Index(["p", "q"], name="key"),
    )
    frame["e"] = frame["b"].astype("category")
    pd.testing.assert_frame_equal(there_and_back(frame, folder), frame)


def test_modules_go_by_name(folder: Path) -> None:
    assert there_and_back({"np": np}, folder)["np"] is np


def test_what_cannot_be_saved_names_itself_and_loses_nothing_else(folder: Path) -> None:
    big = np.ones(1000)
    bad = [big, threading.Lock()]
    unsaved = dump({"a": 1, "bad": bad, "c": big, "f": print, "d": big}, folder)
    assert unsaved == {"bad": "cannot pickle '_thread.lock' object"}
    assert names(folder) == ["a", "c", "f", "d"]
    assert load(folder, ["d"])["d"].sum() == 1000
    assert index_of(folder).unsaved == unsaved
    with pytest.raises(ValueError, match=r"bad was not saved: cannot pickle '_thread\.lock'"):
        load(folder, ["bad"])
    with pytest.raises(KeyError, match="no value is named e; there are: a, c, f, d"):
        load(folder, ["e"])


def test_a_value_that_cannot_be_read_leaves_the_others(folder: Path) -> None:
    script = (
        "import sys, pathlib\nfrom distrain_nb.worker.rank.values import dump\n"
        "class OnlyThere: pass\n"
        "dump({'a': [1], 'odd': OnlyThere(), 'b': [2]}, pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True)
    assert load(folder, ["a", "b"]) == {"a": [1], "b": [2]}
    with pytest.raises(AttributeError, match="OnlyThere"):
        load(folder, ["odd"])


def test_saving_again_replaces_all_or_nothing(folder: Path) -> None:
    dump({"a": 1, "x": np.ones(9)}, folder)
    dump({"b": 2}, folder)
    assert names(folder) == ["b"]
    with pytest.raises(OSError, match="No space left"):
        dump({"c": FullDisk()}, folder)
    assert load(folder) == {"b": 2}


class FullDisk:
    def __reduce__(self) -> Any:
        raise OSError(28, "No space left on device")


def test_numpy_1_and_2_read_each_other(folder: Path) -> None:
    dump({"x": np.float32(1.5)}, folder)
    reader = values.Reader((folder / values.OBJECTS).open("rb"), values.Restoring(b"", {}))
    sys.modules["numpy._core.only_in_2"] = sys.modules["json"]
    try:
        assert reader.find_class("numpy.core.only_in_2", "loads") is sys.modules["json"].loads
    finally:
        del sys.modules["numpy._core.only_in_2"]


def test_reading_with_plain_pickle_says_what_to_use(folder: Path) -> None:
    dump({"x": np.ones(3)}, folder)
    with pytest.raises(pickle.UnpicklingError, match=r"distrain_nb\.worker\.rank\.values"):
        pickle.loads((folder / values.OBJECTS).read_bytes())


def test_the_format_needs_neither_numpy_nor_torch(folder: Path) -> None:
    dump({"x": {"a": [1, "b"]}}, folder)
    script = (
        "import sys, pathlib\nfrom distrain_nb.worker.rank.values import load\n"
        "print(load(pathlib.Path(sys.argv[1])), 'numpy' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "{'x': {'a': [1, 'b']}} False False"


@st.composite
def nested(draw: st.DrawFn) -> Any:
    leaves = st.one_of(st.none(), st.integers(), st.text(max_size=5), st.floats(allow_nan=False))
    return draw(st.recursive(leaves, lambda x: st.lists(x) | st.dictionaries(st.text(), x)))


@settings(max_examples=several(50), deadline=None)
@given(st.dictionaries(st.text(min_size=1), nested(), max_size=4))
def test_any_names_and_plain_values(tmp_path_factory: pytest.TempPathFactory, given: Any) -> None:
    folder = tmp_path_factory.mktemp("v") / "values"
    assert dump(given, folder) == {}
    assert load(folder) == given
