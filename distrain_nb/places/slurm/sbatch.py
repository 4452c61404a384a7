"""The options of `sbatch`, read from a script or a list of words, and written.

The table is that of Slurm 22.05 to 25.11. `sbatch -vv --test-only` prints its options without a
controller. A test compares these readers with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from distrain_nb.errors import OptionError, shown

_SHORT = {
    "a": "array", "A": "account", "b": "begin", "B": "extra-node-info", "c": "cpus-per-task",
    "C": "constraint", "d": "dependency", "D": "chdir", "e": "error", "F": "nodefile",
    "G": "gpus", "h": "help", "H": "hold", "i": "input", "J": "job-name", "k": "no-kill",
    "L": "licenses", "m": "distribution", "M": "clusters", "n": "ntasks", "N": "nodes",
    "o": "output", "O": "overcommit", "p": "partition", "q": "qos", "Q": "quiet",
    "s": "oversubscribe", "S": "core-spec", "t": "time", "v": "verbose", "V": "version",
    "w": "nodelist", "W": "wait", "x": "exclude",
}  # fmt: skip
# They take no value.
_SWITCHES = frozenset(
    [
        "consolidate-segments", "contiguous", "help", "hold", "ignore-pbs", "no-requeue",
        "overcommit", "oversubscribe", "parsable", "quiet", "reboot", "requeue",
        "spread-job", "stepmgr", "test-only", "usage", "use-min-nodes", "verbose", "version",
        "wait",
    ]
)  # fmt: skip
# They take a value behind `=` alone, and none in the next word.
_SWITCHES_WITH_VALUE = frozenset(
    ["exclusive", "get-user-env", "nice", "no-kill", "oom-kill-step", "propagate", "resv-ports"]
)
_VALUES = frozenset(
    [
        "account", "acctg-freq", "array", "batch", "bb", "bbf", "begin", "chdir",
        "cluster-constraint", "clusters", "comment", "constraint", "container", "container-id",
        "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu", "cpus-per-task", "deadline",
        "delay-boot", "dependency", "distribution", "error", "exclude", "export", "export-file",
        "extra", "extra-node-info", "gid", "gpu-bind", "gpu-freq", "gpus", "gpus-per-node",
        "gpus-per-socket", "gpus-per-task", "gres", "gres-flags", "hint", "input", "job-name",
        "kill-on-invalid-dep", "licenses", "mail-type", "mail-user", "mcs-label", "mem",
        "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "network", "nodefile", "nodelist",
        "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
        "ntasks-per-socket", "open-mode", "output", "partition", "power", "prefer", "priority",
        "profile", "qos", "reservation", "segment", "signal", "sockets-per-node", "switches",
        "tasks-per-node", "thread-spec", "threads-per-core", "time", "time-min", "tmp",
        "tres-bind", "tres-per-task", "uid", "wait-all-nodes", "wckey", "wrap",
    ]
)  # fmt: skip
_OTHER_NAMES = {"tasks-per-node": "ntasks-per-node"}
NAMES = _SWITCHES | _SWITCHES_WITH_VALUE | _VALUES
HET_JOB = ("hetjob", "packjob")  # the line between the parts of a job


def in_script(script: str) -> list[dict[str, str]]:
    """Return the options of each part of a script's job, by their long names. Most jobs have one
    part.

    Like sbatch, this reads all lines up to the first command as one list of words. Raises
    OptionError for what sbatch refuses.
    """
    parts: list[list[str]] = [[]]
    for line in script.splitlines():
        if line.startswith("#SBATCH"):
            words = list(words_of(line.removeprefix("#SBATCH")))
            if words[:1] and words[0] in HET_JOB:
                parts.append([])
            else:
                parts[-1] += words
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return [dict(in_words(words)) for words in parts]


def words_of(line: str) -> Iterator[str]:
    """Yield the words behind `#SBATCH`. Raises OptionError for an open quote.

    Quotes work as in a shell, except that a backslash escapes in both kinds, and that `#` begins a
    comment even within a word.
    """
    word, quote, escaped, is_empty = "", "", False, False
    for sign in line:
        if escaped and (quote or not sign.isspace()):
            word, escaped = word + sign, False
        elif sign == "\\":
            escaped = True
        elif quote:
            word, quote = (word, "") if sign == quote else (word + sign, quote)
        elif sign in "\"'":
            quote, is_empty = sign, True
        elif sign == "#":
            break
        elif sign.isspace():  # unlike in a shell, a backslash keeps nothing of a word
            escaped = False
            if word:
                yield word
            elif is_empty:  # sbatch takes an empty word for the line's end
                return
            word, is_empty = "", False
        else:
            word += sign
    if quote:
        raise OptionError(f"invalid line {shown(line)}: the quote {quote} isn't closed")
    if word:
        yield word


def in_words(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the long name and the value of each option. Raises OptionError for a word that is no
    option of sbatch, and for an option without its value."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word in ("-", "--"):
            raise OptionError(f"{shown(word)} is no option of sbatch")
        yield from _long(word, rest) if word.startswith("--") else _cluster(word, rest)


def _long(word: str, rest: list[str]) -> Iterator[tuple[str, str]]:
    written, equals, value = word.removeprefix("--").partition("=")
    name = _full_name(written)
    if name in _SWITCHES and equals:
        raise OptionError(f"invalid {shown(word)}: --{name} takes no value")
    if name in _VALUES and not equals:
        value = _next(rest, f"--{name}")
    yield _OTHER_NAMES.get(name, name), value


def _full_name(written: str) -> str:
    """Return the option that a beginning of its name stands for, if only one has that beginning."""
    names = [written] if written in NAMES else sorted(n for n in NAMES if n.startswith(written))
    if not names or len(names) > 1:
        among = f": it may be --{' or --'.join(names)}" if names else " of sbatch"
        raise OptionError(f"no option --{written}{among}")
    return names[0]


def _cluster(word: str, rest: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of a word such as `-HN2`.

    The first option that takes a value takes the rest of the word.
    """
    signs = word[1:]
    while signs:
        sign, signs = signs[0], signs[1:]
        name = _SHORT.get(sign)
        if name is None:
            raise OptionError(f"no option -{sign} of sbatch, in {shown(word)}")
        if name in _SWITCHES:
            yield name, ""
        elif name in _SWITCHES_WITH_VALUE:
            yield name, signs
            return
        else:
            yield name, signs or _next(rest, f"-{sign}")
            return


def _next(rest: list[str], option: str) -> str:
    if not rest:
        raise OptionError(f"{option} of sbatch needs a value")
    return rest.pop(0)


def written(name: str, value: str) -> str:
    """Return an option as one word."""
    return f"--{name}={value}" if value else f"--{name}"


def heads(asked: Mapping[str, str]) -> Iterator[str]:
    """Yield options of sbatch as it reads them from a script, with values in double quotes if
    necessary.

    Raises OptionError for a value with a line break or another control character: the rest would be
    a line of the script.
    """
    for name, value in asked.items():
        if not value.isprintable():
            raise OptionError(
                f"invalid --{name} {shown(value)}: expected one line without control characters"
            )
        if set(value) & set(" \"'\\#"):
            value = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        yield f"#SBATCH {written(name, value)}"
