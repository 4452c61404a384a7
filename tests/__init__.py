"""All tests of distrain_nb."""

import sys

# Which jsonschema imports where it is installed: more than a second in which it compiles a grammar.
# Here, as this is imported before any test's helper imports nbformat, and that jsonschema.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
