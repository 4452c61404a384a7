"""In the place of a package that servers of tests do without: it takes 1.5 s of CPU to import.

jsonschema, which imports it, checks IRIs only where it is; no schema of Jupyter's has one.
"""

raise ImportError("left out in tests")
