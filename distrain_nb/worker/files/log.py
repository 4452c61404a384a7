"""The log of a run: one file, every line of every rank in order of arrival.

A record is one line of text, `SECONDS TAB PROCESS TAB KIND TAB TEXT`: seconds since the epoch,
the process's index, what the line is, and the line itself. Kinds: `o` stdout, `e` stderr; in
capitals, a line that is still moving (a progress bar): the next record of the same process and
stream takes its place.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import List, Tuple

from distrain_nb.worker.files.folder import LOG_FILE

MOVING_EVERY_S = 0.2
LONGEST_LINE = 1 << 20
HELD_AT_MOST = 64 << 20
RETRY_EVERY_S = 1.0
TROUBLES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


class LogLost(OSError):
    """The log could not be written for so long that lines would be lost."""


class LogWriter:
    """Appends records. While the disk is full they are held in memory and written later."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG_FILE
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(str(self.path), flags, 0o644)
        self._held = bytearray()
        self._retry_at = 0.0
        self._lost = 0
        self.trouble = ""

    def write(self, records: bytes) -> None:
        """Raise LogLost when more than 64 MiB could not be written; what comes then is lost."""
        if self._lost:
            self._lost += len(records)
            return
        self._held += records
        if self._held and time.monotonic() >= self._retry_at:
            self.flush()
        if len(self._held) > HELD_AT_MOST:
            self._lost = len(self._held)
            self._held.clear()
            raise LogLost(self.trouble)

    def flush(self) -> bool:
        """Try to write what is held; say whether nothing is left."""
        try:
            while self._held:
                written = os.write(self._fd, self._held[: 1 << 20])
                del self._held[:written]
        except OSError as error:
            if error.errno not in TROUBLES:
                raise
            self.trouble = f"{os.strerror(error.errno)}: {self.path}"
            self._retry_at = time.monotonic() + RETRY_EVERY_S
            return False
        self.trouble = ""
        return True

    def close(self) -> int:
        """Give up what is still held, and say how many bytes are lost."""
        os.close(self._fd)
        return self._lost + len(self._held)


class LineSplitter:
    """Turns what one stream of one process writes into records."""

    def __init__(self, process: int, stream: str) -> None:
        self._prefix = b"\t%d\t%s\t" % (process, stream.encode())
        self._moving = b"\t%d\t%s\t" % (process, stream.upper().encode())
        self._pending = b""
        self._shown = b""
        self._shown_at = 0.0

    def feed(self, data: bytes) -> bytes:
        """Return records for the lines that `data` completes."""
        body, newline, rest = data.rpartition(b"\n")
        stamp = b"%.3f" % time.time()
        if not newline:
            self._keep(rest)
            return self._split_long(stamp)
        lines = (self._pending + body).split(b"\n")
        self._pending, self._shown = b"", b""
        self._keep(rest)
        prefix = stamp + self._prefix
        text = b"".join([prefix + last_overwrite(line) + b"\n" for line in lines])
        return text + self._split_long(stamp)

    def moving(self) -> bytes:
        """Return a record for a line that has no end yet, if it changed and the last one is old
        enough."""
        text = last_overwrite(self._pending)
        now = time.monotonic()
        if not text or text == self._shown or now - self._shown_at < MOVING_EVERY_S:
            return b""
        self._shown, self._shown_at = text, now
        return b"%.3f" % time.time() + self._moving + text + b"\n"

    def finish(self) -> bytes:
        """End the stream: what is pending was its last line."""
        return self.feed(b"\n") if self._pending else b""

    def _keep(self, rest: bytes) -> None:
        pending = self._pending + rest
        if b"\r" in pending:
            pending = last_overwrite(pending) + (b"\r" if pending.endswith(b"\r") else b"")
        self._pending = pending

    def _split_long(self, stamp: bytes) -> bytes:
        if len(self._pending) <= LONGEST_LINE:
            return b""
        text, self._pending = self._pending, b""
        return stamp + self._prefix + text.rstrip(b"\r") + b"\n"


def last_overwrite(line: bytes) -> bytes:
    """Return the text that stays on screen when carriage returns overwrite a line."""
    if b"\r" not in line:
        return line
    parts = [part for part in line.split(b"\r") if part]
    return parts[-1] if parts else b""


def parse(record: bytes) -> Tuple[float, int, str, str]:
    """Parse a record without its line end into (seconds since the epoch, process, kind, text)."""
    stamp, process, kind, text = record.split(b"\t", 3)
    return float(stamp), int(process), kind.decode(), text.decode("utf-8", "replace")


def parse_all(records: bytes) -> List[Tuple[float, int, str, str]]:
    """Parse whole records as `parse` does one, in half its time for each."""
    split = [record.split("\t", 3) for record in records.decode("utf-8", "replace").split("\n")]
    return [(float(stamp), int(process), kind, text) for stamp, process, kind, text in split[:-1]]
