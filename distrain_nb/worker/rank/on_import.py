"""Changes to modules, made when the program imports them; nothing is imported for a change."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Dict, Mapping, Optional

Change = Callable[[Any], None]


def on_import(changes: Mapping[str, Change]) -> Callable[[], None]:
    """Call each function with the module of its name: now, or once that has been imported.

    A module of a version without what is changed is left as it is. A change that has a `begin` is
    told before a module's code runs. What comes back ends the wait.
    """
    loaded = [name for name in changes if name in sys.modules]
    finder = _Finder(dict(changes))
    sys.meta_path.insert(0, finder)
    for name in loaded:  # which may import others
        _apply(changes[name], sys.modules[name])
    return finder.end


class _Finder:
    # No MetaPathFinder: importing `importlib.abc` takes a fifth of `%load_ext`.
    def __init__(self, changes: Dict[str, Change]) -> None:
        self._changes = changes

    def end(self) -> None:
        """Change nothing that is imported later."""
        self._changes.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Any = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if fullname not in self._changes:
            return None
        spec = self._spec_of(fullname, path, target)
        load = getattr(spec and spec.loader, "exec_module", None)
        if load is not None:

            def load_and_change(module: ModuleType) -> None:
                begin = getattr(self._changes.get(fullname), "begin", None)
                if begin:
                    begin()
                load(module)
                if fullname in self._changes:
                    # PyTorch's put others in their place
                    _apply(self._changes[fullname], sys.modules.get(fullname, module))

            spec.loader.exec_module = load_and_change  # type: ignore[union-attr, method-assign]
        return spec

    def _spec_of(self, *arguments: Any) -> Optional[ModuleSpec]:
        # Those before it have been asked; another of these among them would ask this one again.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            if hasattr(finder, "find_spec"):
                spec = finder.find_spec(*arguments)
                if spec is not None:
                    return spec
        return None


def _apply(change: Change, module: ModuleType) -> None:
    try:
        change(module)
    except AttributeError as error:
        # A version without what is changed stays as it is. An error about an object of this
        # package is a mistake here; from Python 3.10 an error names its object.
        owner = getattr(error, "obj", None)
        if type(owner).__module__.partition(".")[0] == __name__.partition(".")[0]:
            raise
