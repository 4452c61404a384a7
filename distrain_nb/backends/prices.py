"""Who has a price of a layout: `prices.yaml` comes first, then the place's own list."""

from __future__ import annotations

import os

from distrain_nb.backends.base import Backend
from distrain_nb.backends.plugins import find
from distrain_nb.backends.price import NoPrice, Price
from distrain_nb.backends.price_file import own_price, rates_for
from distrain_nb.config import Config
from distrain_nb.errors import DistrainError
from distrain_nb.layout import Layout
from distrain_nb.layout.place import moved


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


def has_prices(layout: Layout) -> bool:
    """Return whether somebody may have a price of a layout's machines: a file, or its place."""
    try:
        has_list = type(find(layout.on)).price is not Backend.price
        return has_list or bool(rates_for(layout)[1])
    except NoPrice:
        return True  # the file says what is wrong
    except DistrainError:
        return False
