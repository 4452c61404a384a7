"""The files below a folder, with those to which links lead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import FrozenSet, Iterator, List, Optional, Tuple


def files_below(root: Path, passed_over: Optional[List[str]] = None) -> Iterator[Tuple[str, Path]]:
    """Yield every file by its name from `root`, with `/` between folders, in no order.

    `passed_over` gets the names of what is neither a file nor a folder: links that lead nowhere,
    pipes, sockets and devices.

    Links are followed, each to all that it leads to, be it elsewhere in `root` too; only one to a
    folder that it is itself in leads nowhere. Raises OSError for a folder that can't be read.
    """
    waiting: List[Tuple[str, Path, FrozenSet[Tuple[int, int]]]] = [("", root, frozenset())]
    while waiting:
        above, folder, ancestors = waiting.pop()
        stat = folder.stat()
        if (itself := (stat.st_dev, stat.st_ino)) in ancestors:
            continue
        with os.scandir(str(folder)) as entries:
            for entry in entries:
                name, path = above + entry.name, Path(entry.path)
                if path.is_dir():
                    waiting.append((f"{name}/", path, ancestors | {itself}))
                elif path.is_file():
                    yield name, path
                elif passed_over is not None:
                    passed_over.append(name)
