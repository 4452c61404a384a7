"""Names that a run may have, and that shells, URLs, paths and file patterns read as something
else; and those that no run may have."""

from __future__ import annotations

ALLOWED = (
    "two words", "try #2", "what?", "lr/0.1", "/absolute", "a//b", "..", ".", "../../../x",
    "$(touch PLANTED)", "`touch PLANTED`", 'a"; touch PLANTED; "', "a'; touch PLANTED; '",
    "a; touch PLANTED #", "a | b && c > d", "$HOME", "~", "*", "50% lr", "a%j-%x", "a\\nb", "\\",
    "-x", "--help", "#SBATCH", "a:b,c=d", "{RUN} {{7*7}}", "<b>&amp;", "x" * 300, "é日本🎉",
    "CON", "last.yaml", "",
)  # fmt: skip
REFUSED = ("last", "7", "a\nb", "tab\tx", " ahead", "behind ", "nul\0x", "\x1b[31mred")
