"""What a form's layout costs, as far as it is known: nobody who types waits for a price."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.plugins import choices
from distrain_nb.backends.price import Money, Price
from distrain_nb.backends.price_lookup import LOOKUP
from distrain_nb.backends.prices import has_prices
from distrain_nb.layout.place import moved, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distrain_nb.backends.price import NoPrice
    from distrain_nb.layout import Layout

SETTLED_S = 0.8  # a layout that has not changed for so long is worth a question
ASKING = "asking for prices…"


class FormCosts:
    """Has the prices of the layouts that a form shows asked for once these have settled; `changed`
    is called from another thread when one has come. `by_region` says that somebody wants them for
    every region."""

    def __init__(self, changed: Callable[[], object]) -> None:
        self._changed = changed
        self._timer: threading.Timer | None = None
        self._unknown: list[Layout] = []
        self.by_region = False

    def view(self, layout: Layout, *, broken: bool) -> dict[str, Any] | None:
        """Return the sums, a note and the regions for a page; None where there are no prices to
        know. Those of a layout that is `broken` are not asked for."""
        self._forget()
        on_demand = moved(layout)
        if not has_prices(on_demand):
            return None
        spot = on_demand.edited({"scheduling": "SPOT"})
        on_demand = on_demand.edited({"scheduling": None}) if layout.spot else on_demand
        place = place_of(on_demand.on)
        prices = {"on demand": self._price(on_demand)}
        if place and place.reads("scheduling"):
            prices["on spot machines"] = self._price(spot)
        main = prices["on spot machines" if layout.spot and len(prices) > 1 else "on demand"]
        asks = place is not None and place.reads("region")
        return {
            "sums": [*_per_hour(prices), *_for_limit(main, layout)],
            "note": _note(main, broken=broken),
            "asks": asks and isinstance(main, Price) and not self.by_region,
            "regions": list(self._regions(layout)) if asks and self.by_region else None,
        }

    def saves(self, before: Layout, after: Layout) -> str:
        """Say what a repair saves an hour; empty where that isn't known, or nothing."""
        old = LOOKUP.price(moved(before), asks=False)
        if not isinstance(old, Price):
            return ""
        new = self._price(moved(after))
        if not isinstance(new, Price) or new.currency != old.currency:
            return ""
        less = old.hourly - new.hourly
        if abs(less) < 0.001 * old.hourly:
            return ""
        amount = Money(abs(less), old.currency)
        return f"saves {amount} an hour" if less > 0 else f"{amount} an hour more"

    def ask(self) -> None:
        """Have asked for what isn't known, once the layout has settled."""
        if self._unknown:
            self._timer = threading.Timer(SETTLED_S, self._ask, (tuple(self._unknown),))
            self._timer.daemon = True
            self._timer.start()

    def _forget(self) -> None:
        self._unknown = []
        if self._timer:
            self._timer.cancel()

    def _ask(self, layouts: tuple[Layout, ...]) -> None:
        for layout in layouts:
            LOOKUP.price(layout, tell=self._changed)

    def _price(self, layout: Layout) -> Price | NoPrice | None:
        price = LOOKUP.price(layout, asks=False)
        if price is None:
            self._unknown.append(layout)
        return price

    def _regions(self, layout: Layout) -> Iterator[list[str]]:
        """Yield the regions with their prices, the cheapest first, then those without."""
        names = [str(choice.value) for choice in choices(layout, "region") if choice.value]
        prices = [(self._price(moved(layout).edited({"region": name})), name) for name in names]
        priced = [(price.hourly, name, price) for price, name in prices if isinstance(price, Price)]
        for _, name, price in sorted(priced, key=lambda entry: entry[:2]):
            yield [name, f"at most {price.per_hour}" if price.ceiling else str(price.per_hour)]
        yield from ([name, "…"] for price, name in prices if price is None)


def _per_hour(prices: dict[str, Price | NoPrice | None]) -> Iterator[list[str]]:
    for way, price in prices.items():
        if isinstance(price, Price):
            yield ["no list price" if price.ceiling else str(price.per_hour), f"per hour {way}"]


def _for_limit(price: Price | NoPrice | None, layout: Layout) -> Iterator[list[str]]:
    if isinstance(price, Price) and layout.timeout:
        most = "at most " if price.ceiling else ""
        yield [f"{most}{price.during(layout.timeout)}", "for the time limit"]


def _note(price: Price | NoPrice | None, *, broken: bool) -> str:
    if isinstance(price, Price):
        return "; ".join(filter(None, (f"By {price.source}", price.note)))
    if price is None:
        return "" if broken else ASKING
    return f"Price not known: {price}"
