"""The places where jobs run, a folder each. Entry points name their parts; nothing imports them."""
