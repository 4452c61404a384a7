"""Count what makes the code hard to take over, and fail if a count has grown.

`python -m scripts.measures` prints every count and exits with 1 if one is above its limit in
`scripts/measures.json`. With `--lower`, lower counts become the limits. Sizes have no limit there:
a feature adds lines.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "distrain_nb"
LIMITS = ROOT / "scripts" / "measures.json"

LONG_FILE = 400
LONG_SENTENCE = 25

# A place's own rooms; anything else that names a cloud has to change with it.
PLACES = ("places/",)
NAMES = {"local", "vertex", "sagemaker", "ai-platform"}
_CLOUD = re.compile(r"vertex|sagemaker", re.IGNORECASE)

# They say nothing of what they name.
WORDS = {
    *("each", "found", "given", "kept", "known", "left", "made", "own", "said", "seen", "told"),
    *("wanted", "what", "whole", "wrong"),
}

_NO_TEXT = re.compile(r"^```.*?^```|<!--.*?-->\n?", re.MULTILINE | re.DOTALL)
_NO_PROSE = re.compile(r"^(\||#|!\[|\s*[-*] \[)")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")


def measures() -> dict[str, float]:
    """Return every count by its name; of each, less is better."""
    files = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    trees = [ast.parse(text) for text in files.values()]
    sizes = {path: text.count("\n") for path, text in files.items()}
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    prose = [sentence for page in pages for sentence in sentences(page.read_text(encoding="utf-8"))]
    return {
        "lines of the package": sum(sizes.values()),
        "lines of program/": sum(n for path, n in sizes.items() if "program" in path.parts),
        "files": len(files),
        f"files over {LONG_FILE} lines": sum(n > LONG_FILE for n in sizes.values()),
        "files that name a cloud outside its rooms": sum(map(_names_cloud, files, files.values())),
        "comparisons with a place's name": sum(map(_compared_places, files, trees)),
        "names that say nothing": sum(map(_empty_names, trees)),
        "docstrings without a verb": _docstrings_without_verb(),
        "words of the documents": sum(len(sentence.split()) for sentence in prose),
        "words a sentence": round(mean(len(sentence.split()) for sentence in prose), 1),
        f"sentences over {LONG_SENTENCE} words": sum(
            len(sentence.split()) > LONG_SENTENCE for sentence in prose
        ),
    }


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a Markdown page, without code, comments, tables and headings."""
    text = _NO_TEXT.sub("", page)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        if not _NO_PROSE.match(paragraph):
            yield from filter(None, _SENTENCE_END.split(" ".join(paragraph.split())))


def _names_cloud(path: Path, text: str) -> bool:
    return not _is_of_place(path) and bool(_CLOUD.search(text))


def _is_of_place(path: Path) -> bool:
    return path.relative_to(PACKAGE).as_posix().startswith(PLACES)


def _compared_places(path: Path, tree: ast.AST) -> int:
    """Return how often a module outside the places' rooms asks which place it is."""
    if _is_of_place(path):
        return 0
    compared = (node for node in ast.walk(tree) if isinstance(node, ast.Compare))
    return sum(
        any(isinstance(part, ast.Constant) and part.value in NAMES for part in ast.walk(node))
        for node in compared
    )


def _empty_names(tree: ast.AST) -> int:
    """Return how many parameters, variables, functions and classes have one of `WORDS` as name."""
    return sum(name.strip("_").lower() in WORDS for name in _bound(tree))


def _bound(tree: ast.AST) -> Iterator[str]:
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, named):
            yield node.name or ""


def _docstrings_without_verb() -> int:
    """Return what pydocstyle's rule D401 finds, by ruff."""
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "D401"]
    convention = ["--config", 'lint.pydocstyle.convention="google"']
    done = subprocess.run(
        [*ruff, *convention, "--output-format", "json", str(PACKAGE)],
        capture_output=True,
        check=False,
    )
    return len(json.loads(done.stdout))


def main() -> int:
    """Print the counts. Return 1 if one is above its limit."""
    limits = json.loads(LIMITS.read_text(encoding="utf-8"))
    counts = measures()
    for name, count in counts.items():
        limit = limits.get(name, count)
        print(f"{name:45} {count:>10,} {f'above the limit of {limit:,}' if count > limit else ''}")
    if "--lower" in sys.argv[1:]:
        limits = {name: min(limit, counts[name]) for name, limit in limits.items()}
        LIMITS.write_text(json.dumps(limits, indent=1) + "\n", encoding="utf-8")
    return int(any(count > limits.get(name, count) for name, count in counts.items()))


if __name__ == "__main__":
    sys.exit(main())
