"""The lookup of prices in the background. Only `within` waits for an answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from distrain_nb.backends.price import NoPrice, Price
from distrain_nb.backends.price_file import own_price
from distrain_nb.backends.price_list import A_DAY_S
from distrain_nb.backends.prices import price_of
from distrain_nb.config import home
from distrain_nb.errors import DistrainError
from distrain_nb.layout import Layout
from distrain_nb.layout.place import moved

ASKED_AGAIN_S = 120.0  # after an answer that gave no price
ANSWERED_WITHIN_S = 60.0


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
