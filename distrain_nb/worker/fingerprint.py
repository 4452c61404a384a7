"""Fingerprints of objects: short texts by path, which two processes can compare.

`CFG.lr` is "float 0.1", `net.weight` the hash of its bytes. What differs between processes that
have the same (locks, caches, handles, addresses, devices) has no text, nor does what only its own
library understands: the comparison passes over it.
"""

from __future__ import annotations

import abc
import copyreg
import enum
import functools
import re
import sys
import types
import warnings
from types import CodeType, FunctionType, ModuleType
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, Set, Tuple

MOST_PARTS = 2000  # of one name
PASSED_OVER = ""  # the text of what is not compared, nor anything in it
_DEEPEST = 12
_SHOWN = 60  # characters of a value
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice)
LIVE = {  # packages whose objects belong to a process
    *("_thread", "threading", "logging", "_weakref", "asyncio"),
    *("_asyncio", "contextvars", "_contextvars", "_io", "io", "multiprocessing", "concurrent"),
    *("socket", "ssl", "_socket", "tqdm", "ipywidgets", "traitlets", "matplotlib", "sqlite3"),
    *("subprocess", "ctypes", "_ctypes", "select", "selectors", "_frozen_importlib", "importlib"),
    *("tensorflow", "jaxlib", "_abc", "unittest", "pydantic_core", "distrain_nb"),
}
# What is meant to differ between the notebook, a world of one, and a rank: the only names that the
# comparison of objects that know the world leaves out.
OF_THE_WORLD = {
    *("rank", "local_rank", "global_rank", "node_rank", "world_size", "num_replicas", "num_nodes"),
    *("process_index", "local_process_index", "num_processes", "num_devices", "backend"),
    *("distributed_type", "distributed_state", "accelerator_state", "gradient_state", "state"),
    *("device", "devices", "device_ids", "device_type", "output_device", "root_device", "n_gpu"),
    *("rng_types", "generator", "synchronized_generator", "process_group", "num_samples"),
    *("total_size", "ddp_backend", "logger"),
}
# What use changes, which is work and no setting: counters, modes, gradients.
BY_USE = {
    *("training", "iteration", "step", "epoch", "global_step", "current_epoch", "remainder"),
    *("end_of_dataloader", "fitting", "grad", "num_batches_tracked", "last_epoch"),
}
# Patterns that `re` compiles when they are used: `%load_ext` imports this.
_LEFT_OUT = rf"\.(_\w+|{'|'.join(sorted(OF_THE_WORLD | BY_USE))})\b|as pickled|^the keys"
_PLAIN_TEXT = r"(NoneType|bool|int|float|complex|str|bytes|range|slice|(frozen)?set) "
_OF_CLASS = {
    *("__dict__", "__weakref__", "__module__", "__qualname__", "__doc__", "__annotations__"),
    *("__static_attributes__", "__firstlineno__", "__annotate__", "__annotate_func__"),
    *(
        "__annotations_cache__",
        "__abstractmethods__",
        "_abc_impl",
        "__orig_bases__",
        "__parameters__",
    ),
    *("__slots__", "__type_params__", "__dataclass_fields__"),
    *("__dataclass_params__", "__classcell__", "__slotnames__", "__subclasshook__"),
}
_OF_FIELD = ("default", "default_factory", "init", "repr", "hash", "compare", "metadata")


def fingerprint(
    name: str, obj: Any, modules: Collection[str], skip: Collection[str] = ()
) -> Dict[str, str]:
    """Return texts of an object's parts by their path. `modules` are the modules whose code is the
    user's; those paths are passed over that `skip` has."""
    look = Fingerprint(set(modules), set(skip))
    look.at(name, obj)
    return look.parts


def settings(name: str, obj: Any) -> Dict[str, str]:
    """Return texts of the plain parts of an object of a package that knows the world, by their
    path, but for those that are meant to differ between processes."""
    look = Fingerprint(set(), set(), only_settings=True)
    look.at(name, obj)
    return {path: text for path, text in look.parts.items() if re.match(_PLAIN_TEXT, text)}


class Fingerprint:
    """Looks at objects part by part; `parts` are their texts."""

    most_parts = MOST_PARTS

    def __init__(self, modules: Set[str], skip: Set[str], only_settings: bool = False) -> None:
        self.modules, self.skip, self.only_settings = modules, skip, only_settings
        self.parts: Dict[str, str] = {}
        self._visited: Dict[int, Any] = {}

    def at(self, path: str, obj: Any, depth: int = 0) -> None:
        if path in self.skip or depth > _DEEPEST or len(self.parts) >= self.most_parts:
            return
        if self.only_settings and re.search(_LEFT_OUT, path):
            return
        plain = text_of(obj)
        if plain is not None:
            self.parts[path] = plain
        elif id(obj) in self._visited:
            self.again(path, obj)
        else:
            self._visited[id(obj)] = obj
            try:
                text, inside = self.kind(path, obj)
            except Exception:  # its own code would not be looked at
                text, inside = PASSED_OVER, ()
            inside = list(inside)
            if text or not inside:
                self.parts[path] = text
            for inner, part in inside:
                self.at(inner, part, depth + 1)

    def again(self, path: str, obj: Any) -> None:
        """Look at an object that another path has led to: ranks may share what the notebook
        doesn't."""

    def kind(self, path: str, obj: Any) -> Tuple[str, Iterable[Tuple[str, Any]]]:
        if isinstance(obj, ModuleType):
            return f"module {obj.__name__}", ()
        if type(obj) is FunctionType:
            return self._function(path, obj)
        if isinstance(obj, type):
            return self._class(path, obj)
        if isinstance(obj, (staticmethod, classmethod)):
            return type(obj).__name__, [(path, obj.__func__)]
        if isinstance(obj, property):
            sides = (obj.fget, obj.fset, obj.fdel)
            return "property", [(f"{path}.{f.__name__}()", f) for f in sides if f]
        if isinstance(obj, types.MethodType):
            return "", [(path, obj.__func__), (f"{path}.__self__", obj.__self__)]
        if isinstance(obj, functools.partial):
            return "partial", [
                *((f"{path}.func", obj.func), (f"{path}.args", obj.args)),
                (f"{path}.keywords", obj.keywords),
            ]
        if self.only_settings and hasattr(obj, "__array__"):
            return PASSED_OVER, ()
        array = _array(obj)
        if array:
            inside = ((f"{path}.{n}", part) for n, part in dict_of(obj).items() if n[:1] != "_")
            return array, inside
        if type(obj).__module__.split(".")[0] in LIVE:
            return PASSED_OVER, ()
        function = None if is_own(type(obj), self.modules) else _wrapped_in(path, obj)
        if function is not None:
            return f"{type(obj).__module__}.{type(obj).__qualname__}", [(f"{path}()", function)]
        return self._object(path, obj)

    def _object(self, path: str, obj: Any) -> Tuple[str, Iterable[Tuple[str, Any]]]:
        cls = type(obj)
        inside: List[Tuple[str, Any]] = []
        if isinstance(obj, (dict, types.MappingProxyType)):
            inside += [(f"{path}[{key_of(k)}]", v) for k, v in obj.items() if key_of(k)]
            inside.append((f"the keys of {path}", {key_of(k) for k in obj}))
        elif isinstance(obj, (list, tuple)):
            inside += [(f"{path}[{n}]", part) for n, part in enumerate(obj)]
            inside.append((f"len({path})", len(obj)))
        elif isinstance(obj, (set, frozenset)):
            inside.append((f"the items of {path}", {key_of(part) for part in obj}))
        attributes = dict(_attributes(obj))
        if attributes or inside or cls.__dictoffset__:
            inside += [(f"{path}.{name}", part) for name, part in attributes.items()]
            return f"{cls.__module__}.{cls.__qualname__}", inside
        reduced = [] if self.only_settings else _reduced(path, obj)
        return f"{cls.__module__}.{cls.__qualname__}", reduced

    def _function(self, path: str, function: FunctionType) -> Tuple[str, List[Tuple[str, Any]]]:
        code = function.__code__
        of_tuple = str(function.__module__).startswith("namedtuple_")
        if not of_tuple and getattr(function, "__module__", None) not in self.modules:
            return f"function {function.__module__}.{function.__qualname__}", []
        maker = function.__globals__.get("__name__", "")
        if "__wrapped__" in vars(function) and maker not in {*self.modules, ""}:
            # By a package's decorator, such as `torch.compile`: the rest is its own matter.
            shown = ((n, v) for n, v in vars(function).items() if n[0] != "_" or n == "__wrapped__")
            return f"function of {maker}", [(f"{path}.{name}", value) for name, value in shown]
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        defaults = function.__defaults__ or ()
        inside = [
            (f"the default of {name} in {path}", value)
            for name, value in zip(names[code.co_argcount - len(defaults) :], defaults)
        ]
        inside += [
            (f"the default of {name} in {path}", value)
            for name, value in (function.__kwdefaults__ or {}).items()
        ]
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                inside.append((f"{name} inside {path}", cell.cell_contents))
            except ValueError:  # it is empty
                pass
        inside += [(f"{path}.{name}", value) for name, value in vars(function).items()]
        early = sys.version_info < (3, 14) and function.__annotations__
        if early:
            texts = {f"{name}: {key_of(kind)}" for name, kind in early.items() if key_of(kind)}
            inside.append((f"{path}.__annotations__", texts))
        return f"function of the code {digest(repr(_essence(code)))}", inside

    def _class(self, path: str, cls: type) -> Tuple[str, List[Tuple[str, Any]]]:
        if not is_own(cls, self.modules):
            return f"class {cls.__module__}.{cls.__qualname__}", []
        inside = [
            (f"{path}.{name}", value)
            for name, value in vars(cls).items()
            if name not in _OF_CLASS and not isinstance(value, types.MemberDescriptorType)
            # what packages keep on a class by such names is their own matter
            if name[:2] != "__"
            or _is_plain(value)
            or hasattr(value, "__get__")
            or name == "__match_args__"
        ]
        for name, field in getattr(cls, "__dataclass_fields__", {}).items():
            of_field = [(f"{part} of the field {name} of {path}", part) for part in _OF_FIELD]
            inside += [(inner, getattr(field, part)) for inner, part in of_field]
        if isinstance(cls, abc.ABCMeta):
            inside.append((f"the classes registered with {path}", {*map(key_of, registered(cls))}))
        inside += [(f"the base {b.__qualname__} of {path}", b) for b in cls.__bases__]
        bases = ", ".join(base.__qualname__ for base in cls.__bases__)
        return f"class {cls.__qualname__}({bases})", inside


def _wrapped_in(path: str, obj: Any) -> FunctionType | None:
    """Return the function that an object holds and under whose name it stands, as what a decorator
    makes does; else None. What else it holds is a cache, or says where the function is from."""
    held = dict_of(obj)
    names = (path.rpartition(".")[2], held.get("__name__"))
    for value in list(held.values()):
        if type(value) is FunctionType and value.__name__ in names:
            return value
    return None


def dict_of(obj: Any) -> Mapping[str, Any]:
    """Return the attributes that an object itself holds; none where it has no dict, whatever its
    own `__getattr__` would say to that."""
    if not getattr(type(obj), "__dictoffset__", 0):
        return {}
    try:
        held: Mapping[str, Any] = object.__getattribute__(obj, "__dict__")
        return held
    except AttributeError:  # type variables from Python 3.12 on have an offset and no dict
        return {}


def own_name(obj: Any) -> str:
    """Return an object's `__name__`, "" where it has none, whatever its own `__getattr__` would say
    to that."""
    is_given = any("__name__" in vars(cls) for cls in type(obj).__mro__)
    name = obj.__name__ if is_given else dict_of(obj).get("__name__")
    return name if type(name) is str else ""


def has_identity(value: Any) -> bool:
    """Return whether a value is told apart from equal ones, so that what shares it has to have the
    very same; or a tuple has such a part. Definitions are known by their names."""
    cls: Any = type(value)
    if cls is tuple:
        return any(map(has_identity, value))
    is_definition = issubclass(cls, (type, FunctionType, enum.Enum))
    return cls.__hash__ in (object.__hash__, None) and not is_definition


def is_own(cls: type, modules: Collection[Any]) -> bool:
    """Return whether a class is of one of these modules, or of none: `make_dataclass` says
    `types`."""
    if cls.__module__ == "types":
        return not hasattr(types, cls.__qualname__)
    return cls.__module__ in modules


def text_of(value: Any) -> str | None:
    """Return a number, text or the like, or a collection of these, as it is written; None for
    others."""
    if not _is_plain(value):
        return None
    if isinstance(value, (set, frozenset)):
        text = "{" + ", ".join(sorted(map(repr, value))) + "}"
    else:
        text = repr(value)
    if len(text) > _SHOWN:
        return f"{type(value).__name__} {text[:_SHOWN]}… ({digest(text)})"
    return f"{type(value).__name__} {text}"


def _is_plain(value: Any) -> bool:
    if type(value) in _PLAIN:
        return True
    return type(value) in (set, frozenset) and all(type(part) in _PLAIN for part in value)


def registered(cls: type) -> List[type]:
    """Return the classes that are an abstract class's by registration alone."""
    dump = getattr(sys.modules.get("_abc"), "_get_dump", None)
    refs = dump(cls)[0] if dump and isinstance(cls, abc.ABCMeta) else ()
    return sorted((c for c in (ref() for ref in refs) if c), key=key_of)


def key_of(key: Any) -> str:
    """Return a text for a key of a dict that is the same in all processes; empty where it is only
    its address."""
    if isinstance(key, (type, FunctionType)):
        return key.__qualname__
    if isinstance(key, enum.Enum):
        return str(key)
    if isinstance(key, tuple):
        inside = [key_of(part) for part in key]
        return f"({', '.join(inside)})" if all(inside) else ""
    return repr(key) if isinstance(key, _PLAIN) else ""


def digest(text: str) -> str:
    """Return a short hash of a text."""
    from hashlib import sha1  # 3 ms, which `%load_ext` needn't take

    return sha1(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _essence(code: CodeType) -> Tuple[Any, ...]:
    """Return the parts of a function's code that are equal in every context that compiles it.

    Bytecode isn't: CPython 3.11 calls `torch.ones` otherwise where the same unit imports torch.
    """
    constants = [
        _essence(c) if isinstance(c, CodeType) else text_of(c)
        for c in code.co_consts
        if not isinstance(c, tuple)
    ]
    return code.co_name, code.co_varnames, sorted(code.co_names), code.co_freevars, constants


def _array(obj: Any) -> str:
    """Return the text of an array or tensor, by its bytes."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and isinstance(obj, numpy.ndarray) and not obj.dtype.hasobject:
        data = numpy.ascontiguousarray(obj).reshape(-1).view("u1").data if obj.size else b""
        return f"array of {obj.dtype}, {obj.shape}, {_hash(data)}"
    if torch is not None and hasattr(torch, "Tensor") and isinstance(obj, torch.Tensor):
        graph = "" if obj.is_leaf else ", with the graph that computed it"
        kind = f"tensor of {obj.dtype}, {tuple(obj.shape)}{graph}"
        if obj.layout is not torch.strided or obj.is_quantized or obj.device.type == "meta":
            return kind
        data = obj.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        return f"{kind}, {_hash(data.view(torch.uint8).numpy().data if data.numel() else b'')}"
    pandas: Any = sys.modules.get("pandas")
    if pandas is not None and hasattr(pandas, "DataFrame") and isinstance(obj, pandas.DataFrame):
        rows = pandas.util.hash_pandas_object(obj).to_numpy()
        return f"frame of {obj.shape}, {digest(repr(list(obj.columns)))}, {_hash(rows.data)}"
    return ""


def _hash(data: Any) -> str:
    from hashlib import sha256  # which processors have instructions for

    return sha256(data).hexdigest()[:16]


def _attributes(obj: Any) -> Iterator[Tuple[str, Any]]:
    cls = type(obj)
    for name, value in list(dict_of(obj).items()):
        if not isinstance(getattr(cls, name, None), functools.cached_property):
            yield name, value
    if isinstance(obj, BaseException):
        yield from ((name, getattr(obj, name)) for name in ("args", "__cause__", "__context__"))
    for base in cls.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(obj, name):
                yield name, getattr(obj, name)


def _reduced(path: str, obj: Any) -> List[Tuple[str, Any]]:
    """Return the parts of an object whose state only its own `__reduce_ex__` tells."""
    reduce = copyreg.dispatch_table.get(type(obj))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reduced = reduce(obj) if reduce else obj.__reduce_ex__(4)
    if not isinstance(reduced, tuple):
        return []
    return [(f"{path} as pickled, {n}", part) for n, part in enumerate(reduced[1:3])]
