"""Facts of weights and gradients that ranks should have in common (hooks: `weight_hooks.py`).

At the first step of an optimizer, then at doubling steps and at the end, each tensor leaves two
numbers (`projections.py`). Between, a step costs a few dictionary look-ups. Modules under
DistributedDataParallel are followed by their own names, whichever library wraps them. What is not
under it is followed by optimizer. Shards of FSDP and tensor parallelism are left alone, as is a
module with a communication hook of its own, which may keep ranks apart on purpose.
"""

from __future__ import annotations

import functools
import time
import weakref
from threading import get_ident
from typing import Any, Callable, Dict, Iterator, List, Sequence, Set

from distrain_nb.worker.facts.record import (
    FINAL,
    LOSS,
    MODULE,
    OPTIMIZER,
    RECORD,
    WEIGHTS,
    spans,
)
from distrain_nb.worker.rank.optimizers import (
    hyperparameters,
    is_of_horovod,
    names_by_horovod,
)
from distrain_nb.worker.rank.projections import projections
from distrain_nb.worker.rank.sharing import has_world, is_shard
from distrain_nb.worker.rank.stacks import place

_MOST_UNREACHED = 64
_SETTLED = 16  # steps, after which an optimizer is known to make them alone
_SMALL = ("torch.float16", "torch.bfloat16")


MarkOf = Callable[[Any, str], str]  # of a module and the line that calls it


class _Copies:
    """Tensors of which ranks should have equal copies, and the steps that they have made."""

    def __init__(self, kind: str, number: int) -> None:
        self.name = f"{kind} {number}"
        self.steps = 0
        self.has_exchanged = self.is_held = False  # since its last step, by a wrapper
        self._due = 1
        self._version = self._pointer = 0  # what changes when others write the first tensor
        self._first: Any = None
        self._rates = 0.0  # of all steps together
        self._optimizer: Any = None

    def tensors(self) -> List[Any]:
        raise NotImplementedError

    def fields(self) -> Dict[str, Any]:
        """Return what else a fact has to say of this step."""
        return {}

    def before_step(self) -> None:
        """Note the state before the first step."""
        if not self.steps:
            self._note({})

    def after_step(self, optimizer: Any) -> None:
        """Count a step. Gradients are noted after it: a closure computes them within."""
        self.steps += 1
        if not self.has_exchanged:
            self.step_alone()
        self.has_exchanged = self.is_held = False
        for group in optimizer.param_groups:
            rate = group.get("lr")
            if type(rate) is float:  # a tensor would have to be waited for
                self._rates += rate
        if self.steps == self._due:
            self._note_step(optimizer)
        tensor = self._first and self._first()
        if tensor is not None:
            self._version = tensor._version  # not of all: it is a look in each step

    def step_alone(self) -> None:
        """Note a step since whose last one no wrapper has exchanged anything."""
        WATCH.alone_ns = time.time_ns()

    def _note_step(self, optimizer: Any) -> None:
        self._due *= 2
        self._optimizer = weakref.ref(optimizer)
        gradients = projections([tensor.grad for tensor in self.tensors()])
        unreached = {"unreached": self._unreached(optimizer)}
        self._note({"gradients": gradients, "place": place(), **unreached, **self._settings()})

    def end(self) -> None:
        """Note the last step, unless something else has changed the weights since."""
        noted = self._due // 2
        tensor = self._first and self._first()
        if self.steps <= noted or tensor is None:
            return
        if (tensor._version, tensor.data_ptr()) == (self._version, self._pointer):
            self._note(self._settings())

    def _note(self, fields: Dict[str, Any]) -> None:
        tensors = self.tensors()
        if not tensors:
            return
        self._first, self._pointer = weakref.ref(tensors[0]), tensors[0].data_ptr()
        small = any(str(tensor.dtype) in _SMALL for tensor in tensors)
        RECORD.note(
            WEIGHTS,
            of=self.name,
            step=self.steps,
            weights=projections(tensors),
            small=small,
            **fields,
            **self.fields(),
        )

    def _unreached(self, optimizer: Any) -> List[int]:
        """Return which tensors have no gradient that this optimizer could step by."""
        stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
        numbers = [
            number
            for number, tensor in enumerate(self.tensors())
            if tensor.grad is None and tensor.requires_grad and id(tensor) in stepped
        ]
        return numbers[:_MOST_UNREACHED]

    def _settings(self) -> Dict[str, Any]:
        """Return the settings of the optimizer now, and the sum of its rates so far."""
        optimizer = self._optimizer and self._optimizer()
        values = hyperparameters(optimizer) if optimizer is not None else []
        return {"values": values, "rates": self._rates}


class _Module(_Copies):
    """A module under DDP, and how its gradients were exchanged."""

    def __init__(self, number: int, ddp: Any, ranks: List[int], mark_of: MarkOf) -> None:
        super().__init__("module", number)
        self._mark_of = mark_of
        self._ddp = weakref.ref(ddp)
        self.exchanges = self.held_steps = self.bypassed_steps = 0
        self.called_at = ""
        self.mark = ""  # of its exchange, if that has one
        self.bypass = ""  # the line that calls what DDP wraps
        self._catcher: Any = None
        names = [name for name, _ in self.named()]
        shown, members = type(ddp.module).__name__, spans(ranks)
        RECORD.note(MODULE, of=self.name, ranks=members, names=names, shown=shown, place=place())

    def named(self) -> Iterator[Any]:
        """Yield the parameters that DDP exchanges gradients of, with their names."""
        ddp = self._ddp()
        if ddp is not None:
            for name, parameter in ddp.module.named_parameters():
                if name not in ddp.parameters_to_ignore and not is_shard(parameter):
                    yield name, parameter

    def tensors(self) -> List[Any]:
        return [parameter for _, parameter in self.named()]

    def look_for_line(self, ddp: Any) -> None:
        """Note the line that calls DDP; now and then, as it takes as long as all else."""
        self.called_at = place()
        self.mark = self._mark_of(ddp, self.called_at)

    def step_alone(self) -> None:
        super().step_alone()
        self.held_steps += self.is_held
        self.bypassed_steps += not self.is_held
        if not self.is_held:
            self._catch_bypass()

    def _catch_bypass(self) -> None:
        """Have the wrapped module say, once, who calls it; a healthy program's has no such hook."""
        ddp = self._ddp()
        if ddp is None or self._catcher is not None:
            return

        def caught(*_: Any) -> None:
            if get_ident() == RECORD.thread:
                self.bypass = self.bypass or place()
                self._catcher.remove()

        self._catcher = ddp.module.register_forward_pre_hook(caught)

    def end(self) -> None:
        if self._catcher is not None:
            self._catcher.remove()
        super().end()

    def fields(self) -> Dict[str, Any]:
        counts = {"exchanges": self.exchanges, "held": self.held_steps}
        return {**counts, "bypassed": self.bypassed_steps, "bypass": self.bypass}


class _Loose(_Copies):
    """Parameters of an optimizer that no wrapper knows."""

    def __init__(self, number: int, parameters: List[Any], optimizer: Any, others: int) -> None:
        super().__init__("optimizer", number)
        self._parameters = parameters
        RECORD.note(
            OPTIMIZER,
            of=self.name,
            shapes=[list(parameter.shape) for parameter in parameters],
            names=names_by_horovod(optimizer, parameters),
            horovod=is_of_horovod(optimizer),
            others=others,
            place=place(),
        )

    def tensors(self) -> List[Any]:
        return self._parameters


class _Stepping:
    """An optimizer and the copies that its steps change."""

    def __init__(
        self, optimizer: Any, copies: List[_Copies], gone: Callable[[object], None]
    ) -> None:
        self.reference = weakref.ref(optimizer, gone)
        self.count = len(optimizer.param_groups)  # parameters are added in groups
        self.copies = copies
        self.has_inner = False  # another makes its steps within those of this one


class TrainingWatch:
    """What is followed of one run: its modules and optimizers."""

    def __init__(self) -> None:
        self._modules: Dict[int, _Module] = {}
        self._stepping: Dict[int, _Stepping] = {}
        self.settled: Set[int] = set()  # optimizers whose steps need no look before them
        self._loose: List[_Loose] = []
        self._outer = 0  # the `id` of the outermost optimizer whose step has begun
        self._hooked: Set[int] = set()
        self.steps = 0  # of all optimizers
        self._backwards = 0
        self.began_ns = 0  # when the first step was made
        self.alone_ns = 0  # when the last one was that no wrapper has exchanged anything for
        self._is_finite = True
        self.joins = False
        self.is_sharded = False

    def add(self, ddp: Any, ranks: List[int], mark_of: MarkOf) -> None:
        """Follow a module that DDP has wrapped. `mark_of` returns the mark of its exchange, for the
        line that calls it."""
        if len(ranks) > 1:
            self._modules[id(ddp)] = _Module(len(self._modules), ddp, ranks, mark_of)
            self._begin_anew()

    def leave(self, ddp: Any) -> None:
        """Follow it no more: it exchanges in a way of its own."""
        self._modules.pop(id(ddp), None)
        self._hooked.update(id(parameter) for parameter in ddp.module.parameters())
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._stepping.clear()
        self.settled.clear()

    def forward(self, ddp: Any) -> None:
        """Note a forward pass of a module, and mark the exchange of its backward pass."""
        module = self._modules.get(id(ddp))
        self._outer = 0  # a step that has failed never ends
        if module is None:
            return
        if not ddp.require_backward_grad_sync:
            module.is_held = True
            return
        count = module.exchanges = module.exchanges + 1
        module.has_exchanged = True
        if not count & (count - 1):
            module.look_for_line(ddp)
        if module.mark:
            RECORD.mark(ddp.process_group._get_sequence_number_for_group() + 1, module.mark)

    def backward(self, tensors: Any) -> None:
        """Note the first loss that is not finite. A GPU is not waited for: its losses are passed
        over."""
        self._backwards += 1
        if self._is_finite and getattr(tensors, "is_cpu", False) and not tensors.dim():
            value = tensors.item()
            if value - value:  # neither inf nor nan is 0 then
                self._is_finite = False
                where = {"place": place(), "step": self.steps + 1}
                RECORD.note(LOSS, backward=self._backwards, value=str(value), **where)

    def before_step(self, optimizer: Any) -> None:
        """Note the begin of a step, unless the optimizer is settled."""
        key = id(optimizer)
        if self._outer and self._outer != key:
            return
        self._outer = key
        entry = self._stepping.get(key)
        if entry is None or entry.count != len(optimizer.param_groups):
            gone = functools.partial(self._forget, key)
            entry = _Stepping(optimizer, self._copies(optimizer), gone)
            self._stepping[key] = entry
            self.began_ns = self.began_ns or time.time_ns()
            for copies in entry.copies:
                copies.before_step()

    def after_step(self, optimizer: Any) -> None:
        """Count a step. That of an optimizer within another is no step by itself: the outer one may
        exchange weights after it."""
        key = id(optimizer)
        if self._outer and self._outer != key:
            outer = self._stepping.get(self._outer)
            if outer is not None:
                outer.has_inner = True
            return
        self._outer = 0
        entry = self._stepping.get(key)
        if entry is None:
            return
        self.steps += 1
        for copies in entry.copies:
            copies.after_step(optimizer)
        if entry.count != len(optimizer.param_groups):
            self.settled.discard(key)
        elif not self.steps & (self.steps - 1) and self.steps >= _SETTLED and not entry.has_inner:
            self.settled.add(key)

    def _forget(self, key: int, _: object) -> None:
        """Forget an optimizer that has gone: another may get its `id`."""
        self.settled.discard(key)
        self._stepping.pop(key, None)

    @property
    def largest(self) -> int:
        """The elements of the largest parameter that is followed."""
        return max((t.numel() for copies in self._all() for t in copies.tensors()), default=1)

    def end(self, large_ns: Sequence[int]) -> Dict[str, Any]:
        """Note the last steps. Return what the fact of the end has of them.

        `large_ns` are the times of the first and last collective by which the program may have
        exchanged weights or gradients itself.
        """
        after = any(ns > self.alone_ns for ns in large_ns)
        for copies in self._all():
            copies.end()
            if after:
                RECORD.note(FINAL, of=copies.name, weights=projections(copies.tensors()))
        return {
            "large": any(ns <= self.alone_ns for ns in large_ns),
            "large_after": after,
            "steps": {copies.name: copies.steps for copies in self._all()},
            "exchanges": {m.name: m.exchanges for m in self._modules.values()},
            "backwards": self._backwards,
            "joins": self.joins,
            "sharded": self.is_sharded,
        }

    def names(self) -> Dict[int, str]:
        """Return the names of parameters under DDP, by `id`."""
        named = [pair for module in self._modules.values() for pair in module.named()]
        return {id(parameter): name for name, parameter in named}

    def _all(self) -> List[_Copies]:
        return [*self._modules.values(), *self._loose]

    def _copies(self, optimizer: Any) -> List[_Copies]:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        present = {id(p) for p in parameters}
        copies: List[_Copies] = []
        for module in self._modules.values():
            wrapped = {id(tensor) for tensor in module.tensors()}
            if wrapped & present:
                copies.append(module)
                present -= wrapped
        sharded = any(map(is_shard, parameters))
        self.is_sharded |= sharded
        loose = [p for p in parameters if id(p) in present and id(p) not in self._hooked]
        if loose and not sharded and has_world():
            others = len(parameters) - len(loose)
            number = len(self._loose)
            self._loose.append(_Loose(number, loose, optimizer, others))
            copies.append(self._loose[-1])
        return copies


WATCH = TrainingWatch()
