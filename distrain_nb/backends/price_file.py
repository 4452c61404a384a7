"""The file `prices.yaml` in DISTRAIN_HOME: prices that a user or an administrator wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.plugins import find
from distrain_nb.backends.price import NoPrice, Price
from distrain_nb.config import home
from distrain_nb.layout import Layout
from distrain_nb.layout.resolved import ResolvedPool, resolve
from distrain_nb.worker.files.folder import PRICES_FILE

if TYPE_CHECKING:
    from distrain_nb.types import Unknown


FORM = "expected a currency, and for each place node, gpu, machines or spot: docs/insight.md"


def own_price(layout: Layout, gpus: int | None = None) -> Price | None:
    """Return the price by `prices.yaml`; None where that has none for a cloud's machine. Raises
    NoPrice for a file that can't be read, and where nobody else has a price."""
    book, rates = rates_for(layout)
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


def rates_for(layout: Layout) -> tuple[Mapping[str, Unknown], Mapping[str, Unknown]]:
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
