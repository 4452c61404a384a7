"""What a rank does when another process asks it: to stop at a prompt, or for a value."""

from __future__ import annotations

from pathlib import Path

from distrain_nb.worker.files import prompts
from distrain_nb.worker.rank import debugger, inquiry


class Requests:
    """Looks for requests to one process of a run, and sees to each once."""

    def __init__(self, folder: Path, process: int) -> None:
        self._folder = folder
        self._process = process
        last = prompts.request(folder)  # of an earlier attempt
        self._seen = last.name if last else ""

    def look(self) -> None:
        """See to a new request; called every half a second by a thread beside the program."""
        request = prompts.request(self._folder)
        if request is None or request.name == self._seen:
            return
        self._seen = request.name
        if self._process not in request.targets:
            return
        if request.kind == prompts.STOP:
            debugger.stop_main()
        elif request.kind == prompts.EVALUATE:
            inquiry.answer(self._folder, self._process, request)
