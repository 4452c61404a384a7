"""The training script that a job's shell script starts: `srun torchrun … train.py --lr 0.1`."""

from __future__ import annotations

import re
import shlex

_LAUNCHERS = frozenset(["torchrun", "torch.distributed.run", "torch.distributed.launch"])
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
# What takes no value, of each. All else that begins with a dash takes the next word, or has `=`.
_SWITCHES_OF_TORCHRUN = frozenset(
    ["--standalone", "--no-python", "--no_python", "--run-path", "--run_path", "--use-env",
     "--use_env", "-m", "--module"]
)  # fmt: skip
_VALUES_OF_PYTHON = frozenset(["-X", "-W", "--check-hash-based-pycs"])
_OF_SHELLS = re.compile(r"[$`|&;<>()*?{}]")


def started_script(text: str) -> tuple[str, ...]:
    """Return the words behind `%distrain run` for the last training script that is started; empty
    where none is, or where a shell would make other words of it."""
    for line in reversed(text.replace("\\\n", " ").splitlines()):
        if line.lstrip().startswith("#"):
            continue
        try:
            words = shlex.split(line)
        except ValueError:  # a quote that goes on in the next line
            continue
        comment = next((n for n, word in enumerate(words) if word.startswith("#")), len(words))
        script = _script(words[:comment])
        if script:
            return () if any(map(_OF_SHELLS.search, script)) else tuple(script)
    return ()


def _script(words: list[str]) -> list[str]:
    """Return the script and its arguments in the words of a command."""
    if not words or (words[0] not in ("srun", "exec", "time") and not _starts(words[0])):
        return []
    at = next((number for number, word in enumerate(words) if _starts(word)), len(words))
    if at == len(words):
        return []
    return _behind(words[at + 1 :], is_python=words[at] not in _LAUNCHERS)


def _starts(word: str) -> bool:
    return word in _LAUNCHERS or bool(_PYTHON.fullmatch(word))


def _behind(words: list[str], *, is_python: bool) -> list[str]:
    """Return what a launcher, or Python, starts by its words."""
    rest, is_module = list(words), False
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word in ("-m", "--module"):
            is_module = True
            if is_python:
                break
        elif word == "-c" and is_python:
            return []
        elif is_python:
            del rest[: word in _VALUES_OF_PYTHON]
        elif "=" not in word and word not in _SWITCHES_OF_TORCHRUN:
            del rest[:1]
    if is_python and is_module and rest[:1] and rest[0] in _LAUNCHERS:
        return _behind(rest[1:], is_python=False)
    if not rest or not (is_module or rest[0].endswith(".py")):
        return []
    return ["-m", *rest] if is_module else rest
