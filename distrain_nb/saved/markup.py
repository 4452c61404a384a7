"""Attributes of our elements that pages heed."""

from __future__ import annotations

# Of an element in which dollars are dollars: elsewhere a page takes what they enclose for TeX.
LITERAL = "mathjax_ignore tex2jax_ignore"
# Of an element, for all that is in it: JupyterLab doesn't take its keys, where `x` cuts the cell.
OWN_KEYS = 'data-lm-suppress-shortcuts="true"'
