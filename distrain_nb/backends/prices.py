"""Prices: those of `prices.yaml` of a user or administrator, else of a place's own list.

Lists are asked in the background and kept for a day. Only a caller that asks to waits for one.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.base import Backend
from distrain_nb.backends.cost import NoPrice, Price, RunCost
from distrain_nb.backends.plugins import find
from distrain_nb.config import Config, home, private_home
from distrain_nb.errors import DistrainError
from distrain_nb.layout import Layout
from distrain_nb.layout.place import moved
from distrain_nb.layout.resolved import ResolvedPool, resolve
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import PRICES_FILE
from distrain_nb.worker.files.status import State, Status

if TYPE_CHECKING:
    from distrain_nb.types import JsonObject, Unknown

CACHE = "cache/prices"
A_DAY_S = 24 * 3600.0
ASKED_AGAIN_S = 120.0  # after an answer that gave no price
ANSWERED_WITHIN_S = 60.0
FORM = "expected a currency, and for each place node, gpu, machines or spot: docs/insight.md"


def price_of(layout: Layout, gpus: int | None = None) -> Price:
    """Return what a layout's machines cost an hour; of machines to choose from, the first choice.

    `gpus` are those of a training replica, where a plan knows them. May take seconds. Raises
    NoPrice.
    """
    layout = moved(layout).variants()[0]
    user_price = own_price(layout, gpus)
    if user_price:
        return user_price
    try:
        return find(layout.on).price(_in_its_region(layout))
    except ImportError as error:
        raise NoPrice(f"{error.name or error} is not installed") from None
    except NoPrice:
        raise
    except DistrainError as error:
        raise NoPrice(str(error)) from None


def _in_its_region(layout: Layout) -> Layout:
    if layout.region:
        return layout
    defaults_region = find(layout.on).defaults(os.environ).get("region")
    region = Config.load().region or (str(defaults_region.value) if defaults_region else "")
    return layout.edited({"region": region or None})


def own_price(layout: Layout, gpus: int | None = None) -> Price | None:
    """Return the price by `prices.yaml`; None where that has none for a cloud's machine. Raises
    NoPrice for a file that can't be read, and where nobody else has a price."""
    book, rates = _rates(layout)
    if not rates:
        return None
    place = find(layout.on)
    resolved = resolve(layout)
    trains = resolved.training
    if place.here or not resolved.pools:  # replicas here share this machine and its GPUs
        parts = [_node(rates, gpus or 0)]
    else:
        parts = [_of_pool(rates, p, gpus if p in trains else None) for p in resolved.pools]
    prices = [part for part in parts if part is not None]
    if len(prices) == len(parts):
        return Price(sum(prices), str(book["currency"]), str(_file()))
    return None


def _rates(layout: Layout) -> tuple[Mapping[str, Unknown], Mapping[str, Unknown]]:
    """Return the file, and what it has for machines of the layout's place."""
    import yaml

    try:
        book = yaml.safe_load(_file().read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        return {}, {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NoPrice(f"{_file()} can't be read: {error}") from None
    if not isinstance(book, dict) or not isinstance(book.get("currency"), str):
        raise NoPrice(f"{_file()} has no currency, such as currency: EUR")
    rates = book.get(layout.on, {})
    if isinstance(rates, dict) and layout.spot:
        rates = rates.get("spot", {})
    _check(layout.on, rates)
    return book, rates


def _check(place: str, rates: object) -> None:
    """Raise NoPrice for what is no price."""
    if not isinstance(rates, dict):
        raise NoPrice(f"{_file()}: invalid {place} {rates!r}: {FORM}")
    for name, value in rates.items():
        if name == "spot":
            _check(f"{place}.spot", value)
        elif name not in ("node", "gpu", "machines") or (
            name == "machines" and not isinstance(value, dict)
        ):
            raise NoPrice(f"{_file()}: invalid {place}.{name} {value!r}: {FORM}")
        else:
            for key, price in value.items() if name == "machines" else ((name, value),):
                if isinstance(price, bool) or not isinstance(price, int | float) or price < 0:
                    raise NoPrice(f"{_file()}: invalid {place}.{key} {price!r}: expected a number")


def _of_pool(rates: Mapping[str, Unknown], pool: ResolvedPool, gpus: int | None) -> float | None:
    machines, replicas = rates.get("machines", {}), pool.pool.replicas
    if pool.pool.machine in machines:
        return replicas * float(machines[pool.pool.machine])
    node = _node(rates, pool.accelerators if gpus is None else gpus)
    return None if node is None else replicas * node


def _node(rates: Mapping[str, Unknown], gpus: int) -> float | None:
    if not {"node", "gpu"} & rates.keys():
        return None
    return float(rates.get("node", 0)) + gpus * float(rates.get("gpu", 0))


def _file() -> Path:
    return home() / PRICES_FILE


def has_prices(layout: Layout) -> bool:
    """Return whether somebody may have a price of a layout's machines: a file, or its place."""
    try:
        has_list = type(find(layout.on)).price is not Backend.price
        return has_list or bool(_rates(layout)[1])
    except NoPrice:
        return True  # the file says what is wrong
    except DistrainError:
        return False


def cached_answer(name: str, ask: Callable[[], JsonObject]) -> JsonObject:
    """Return a list of prices as it was asked for within a day, else as it is asked for now. Raises
    what `ask` raises."""
    with _LOCKS[name]:
        return _cached_answer(private_home() / CACHE / f"{name}.json", ask)


_LOCKS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def _cached_answer(path: Path, ask: Callable[[], JsonObject]) -> JsonObject:
    with suppress(OSError, ValueError):
        if 0 <= time.time() - path.stat().st_mtime < A_DAY_S:
            return _read(path, path.stat().st_mtime_ns)
    answer = ask()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(answer).encode())
    return answer


@lru_cache(maxsize=8)
def _read(path: Path, version: int) -> JsonObject:  # noqa: ARG001
    held: JsonObject = json.loads(path.read_text(encoding="utf-8"))
    return held


class PriceLookup:
    """Prices that are asked for in the background, each by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Price | NoPrice]] = {}
        self._asked: dict[str, tuple[float, list[Callable[[], object]]]] = {}

    def price(
        self,
        layout: Layout,
        gpus: int | None = None,
        tell: Callable[[], object] | None = None,
        *,
        asks: bool = True,
    ) -> Price | NoPrice | None:
        """Return a price or why there is none; None while it is asked for, or where nobody has
        `asks`-ed. `tell` is called from another thread once it has come."""
        try:
            user_price = own_price(moved(layout).variants()[0], gpus)
        except DistrainError as error:
            return error if isinstance(error, NoPrice) else NoPrice(str(error))
        if user_price:
            return user_price
        key = f"{home()} {_priced(layout)}"
        with self._lock:
            if key in self._known:
                since, last_price = self._known[key]
                fresh = A_DAY_S if isinstance(last_price, Price) else ASKED_AGAIN_S
                if time.monotonic() - since < fresh:
                    return last_price
            if not asks:
                return None
            asked = key in self._asked
            since, tells = self._asked.setdefault(key, (time.monotonic(), []))
            tells += [tell] if tell else []
        if asked:
            late = time.monotonic() - since > ANSWERED_WITHIN_S
            return NoPrice(f"no answer within {ANSWERED_WITHIN_S:g} s") if late else None
        work = (key, layout, gpus)
        threading.Thread(target=self._ask, args=work, name="prices", daemon=True).start()
        return None

    def within(self, seconds: float, layout: Layout, gpus: int | None = None) -> Price:
        """Return a price, for which this waits so long at most. Raises NoPrice."""
        ready = threading.Event()
        price = self.price(layout, gpus, ready.set)
        end = time.monotonic() + seconds
        while price is None and time.monotonic() < end:
            ready.wait(0.05)
            price = self.price(layout, gpus)
        if price is None:
            raise NoPrice(f"no answer within {seconds:g} s")
        if isinstance(price, NoPrice):
            raise price
        return price

    def _ask(self, key: str, layout: Layout, gpus: int | None) -> None:
        answer: Price | NoPrice
        try:
            answer = price_of(layout, gpus)
        except NoPrice as error:
            answer = error
        except Exception as error:  # of a service's client; whoever looks at the price sees it
            answer = NoPrice(f"{type(error).__name__}: {error}")
        with self._lock:
            self._known[key] = time.monotonic(), answer
            _, tells = self._asked.pop(key)
        for tell in tells:
            tell()


def _priced(layout: Layout) -> Layout:
    """Return what of a layout its price depends on."""
    pools = {role.value: replace(pool, image=None) for role, pool in layout.pools()}
    fresh = Layout(layout.on, region=layout.region, scheduling=layout.scheduling, tier=layout.tier)
    return fresh.edited(pools)


LOOKUP = PriceLookup()


def with_price(cost: RunCost) -> RunCost:
    """Return it with its price, if that has come by now; else it is asked for."""
    if cost.hourly is not None:
        return cost
    price = LOOKUP.price(Layout.from_line(cost.layout), cost.gpus)
    return cost.at(price) if price else cost


class CostWatch:
    """What the carrier of a run does about its cost: it has the price asked for, keeps in the run's
    folder what is known, and says when `--max-cost` is reached."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cost = RunCost.read(folder)

    def look(self, status: Status, billed: float | None) -> str:
        """Return why the run is to be stopped now; empty if it isn't. `billed` are the seconds that
        the service says it bills, None where it doesn't."""
        before = cost = self._cost
        if cost is None:
            return ""
        cost = replace(with_price(cost), billed=billed)
        if not cost.stopped:
            cost = replace(cost, stopped=cost.reaches(cost.so_far(status, time.time())))
        if cost != before:
            cost.write(self._folder)
            self._cost = cost
        return cost.stopped

    def ended(self, state: State, error: str) -> tuple[State, str]:
        """Return how a run has ended: one that was stopped for its cost has failed."""
        if state is State.CANCELLED and self._cost and self._cost.stopped:
            return State.FAILED, self._cost.stopped
        return state, error
