"""A regular expression over a stretch of a log: a program of its own, standard library only.

An expression can take forever (`(a+)+$`), or long to compile, and nothing else runs in its process
meanwhile: no kernel or server can try one itself. This one gives up by an alarm.

In: JSON with `path`, `begin` and `end` in bytes, `expression`, `flags`, `seconds`. Out, as int64:
where it stopped, then where each record begins whose text matches. An expression that can't be
read ends it with the status UNREADABLE, and why on stderr.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from array import array
from pathlib import Path

# As escapes.py leaves them out, in UTF-8: what a reader can't see is not searched.
ESCAPE = (
    rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]"
    rb"|(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\n\xc2]|\xc2[\xa0-\xbf])*(?:\x07|\x1b\\|\xc2\x9c)"
    rb"|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]"
)
ALARM_AFTER_S = 3
UNREADABLE = 3
LOOK_EVERY = 64


def main() -> None:
    query = json.load(sys.stdin)
    signal.alarm(ALARM_AFTER_S)
    try:
        matches = re.compile(query["expression"], query["flags"]).search
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(str(error))
        sys.exit(UNREADABLE)
    plain = re.compile(ESCAPE).sub
    give_up = time.monotonic() + query["seconds"]
    at, offsets = query["begin"], array("q")
    with Path(query["path"] if at < query["end"] else os.devnull).open("rb") as log:
        log.seek(at)
        for count, record in enumerate(log):
            if at >= query["end"]:
                break
            if count % LOOK_EVERY == 0:
                if time.monotonic() > give_up:
                    break
                signal.alarm(ALARM_AFTER_S)
            text = record.split(b"\t", 3)[-1].rstrip(b"\n")
            if matches(plain(b"", text).decode("utf-8", "replace")):
                offsets.append(at)
            at += len(record)
    sys.stdout.buffer.write(array("q", [at]).tobytes() + offsets.tobytes())


if __name__ == "__main__":
    main()
