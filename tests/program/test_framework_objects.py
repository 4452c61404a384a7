"""What notebooks make with frameworks, and their training cell reads."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from tests.kernels import kernel as real_kernel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program.notebooks import Kernel, Place

KERAS = """
import json, keras
class Scale(keras.layers.Layer):
    def build(self, shape): self.by = self.add_weight(shape=(shape[-1],), initializer="ones")
    def call(self, x): return x * self.by
def own_loss(y, p): return keras.ops.mean((y - p) ** 2)
model = keras.Sequential([keras.Input((2,)), Scale(), keras.layers.Dense(1)])
model.compile("sgd", own_loss)
model.layers[0].by.assign([2.0, 3.0])
"""


@pytest.mark.slow
def test_a_model_of_keras_brings_the_notebooks_layers(
    kernel: Kernel, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused with all of its configuration: Keras found no class of that name."""
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "true")  # Keras sets it for the whole process
    kernel.run(KERAS)
    shown = "json.dumps([model.layers[0].by.numpy().tolist(), model.loss.__name__])"
    program = kernel.capture(f"print('RESULT', {shown})")
    assert place.results(program) == [[2.0, 3.0], "own_loss"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "advice"),
    [
        ("import tensorflow as tf\nv = tf.data.Dataset.range(3).batch(2)", "the arrays or paths"),
        ("import xgboost\nv = xgboost.DMatrix([[1.0]])", "capture its arrays"),
        ("import wandb\nv = wandb.init(mode='disabled')", "call wandb.init in the cell"),
    ],
)
def test_what_a_library_holds_is_refused_by_its_name(
    tmp_path: Path, setup: str, advice: str
) -> None:
    """In a kernel of its own: TensorFlow's threads stay, and other tests fork."""
    with real_kernel(tmp_path, {**os.environ, "DISTRAIN_HOME": str(tmp_path / "home")}) as running:
        running.run("%load_ext distrain_nb")
        assert not running.run(setup).error
        outcome = running.run("%%distrain -n 1\nprint(v)")
    said = outcome.text + outcome.error
    assert "`v` (" in said and advice in said


@pytest.mark.slow
def test_a_tensor_of_another_cell_can_not_be_made_before_a_strategy(tmp_path: Path) -> None:
    cell = "%%distrain --workers 1\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
    with real_kernel(tmp_path, {**os.environ, "DISTRAIN_HOME": str(tmp_path / "home")}) as running:
        running.run("%load_ext distrain_nb")
        assert not running.run("import tensorflow as tf\nv = {'a': [tf.Variable(1.0)]}").error
        outcome = running.run(f"{cell}print(v)")
        assert "launcher.before-strategy" in outcome.text + outcome.error
        assert "`v` is a value of TensorFlow" in outcome.text + outcome.error


def test_a_module_named_train_trains_nothing(kernel: Kernel, place: Place) -> None:
    """`tf.train.Checkpoint(model=model)` counted as training, and its model was refused."""
    kernel.run("import json, os, types\nclass tf: train = types.ModuleType('train')")
    kernel.run("tf.train.Saved = dict\nmodel = {'rank': int(os.environ.get('RANK', 0))}")
    kernel.run("saved = tf.train.Saved(model=model)")
    program = kernel.capture("print(saved)")
    assert not [f for f in program.findings if f.severity == "error"]


def test_a_package_that_asks_whether_to_print_seeds_alike(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lightning's `seed_everything(42)` asks, and seeds all alike: nothing is to be said."""
    names: dict[str, Any] = {"__name__": "light", "__file__": "/lib/site-packages/light.py"}
    text = "import os, random\ndef seed_everything(n):\n    os.environ.get('RANK')"
    exec(f"{text}\n    random.seed(n)", names)
    light = ModuleType("light")
    vars(light).update(names)
    monkeypatch.setitem(sys.modules, "light", light)
    kernel.run("import light, random\nlight.seed_everything(42)\nx = [random.random()]")
    program = kernel.capture("print(x, light, random.random())")
    assert not [f for f in program.findings if f.code == "capture.measured"]
    kernel.run("import os\nrandom.seed(int(os.environ.get('RANK', 0)))\nx = [random.random()]")
    program = kernel.capture("print(x, random.random())")
    seeded, drawn, _ = program.main.partition("x = [random.random()]")
    assert drawn and "random.seed(int(os.environ" in seeded


def test_a_wrapper_of_a_package_keeps_what_is_its_own(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`jax.jit` keeps the shardings of a mesh, in each rank those of its own."""
    names: dict[str, Any] = {"__name__": "jits", "__file__": "/lib/site-packages/jits.py"}
    text = "import functools\nclass Of:\n    def __init__(self): self.full = False\n"
    text += "    def __reduce__(self): raise TypeError\nclass Jit:\n"
    text += "    def __init__(self, f): functools.update_wrapper(self, f); self._info = ()\n"
    exec(f"{text}    def __call__(self, x): self._info = (Of(), x)", names)
    jits = ModuleType("jits")
    vars(jits).update(names)
    monkeypatch.setitem(sys.modules, "jits", jits)
    kernel.run("import jits\ndef double(x): return x * 2\nf = jits.Jit(double)")
    kernel.run("f(1.0)")
    program = kernel.capture("print(f(1.0))")
    assert not [f for f in program.findings if f.severity == "error"]


def test_what_the_cell_sets_first_lacks_nothing(kernel: Kernel) -> None:
    """A loss has no graph when its pickle is read: each second run of such a loop had a warning."""
    kernel.run("import torch\nnet = torch.nn.Linear(2, 1)")
    loop = "for _ in range(2):\n    loss = net(torch.ones(2)).sum()\n    loss.backward()\n"
    kernel.run(loop)
    assert not kernel.capture(f"{loop}print(loss.item())").findings
    assert [f.code for f in kernel.capture("loss.backward()").findings] == ["capture.lost-part"]
