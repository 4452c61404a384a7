"""A rank that stays: runs one cell after the other in the same names.

A thread hears the session's process: what frees a rank from a collective is done there, at once;
all else waits for the main thread, where cells run. SIGINT stops a cell, and nothing but a cell.
"""

from __future__ import annotations

import _thread
import gc
import json
import os
import queue
import signal
import socket
import sys
import time
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional

from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.files.session import GET, NAMES, PUT, NamesSent
from distrain_nb.worker.machine import system
from distrain_nb.worker.metrics import writer
from distrain_nb.worker.rank import (
    debugger,
    displays,
    program,
    rank,
    redefinitions,
    stopping,
    values,
)
from distrain_nb.worker.rank.names import NameTable, bound_lines
from distrain_nb.worker.rank.process_groups import ProcessGroups
from distrain_nb.worker.rank.wrapped import ResultWriter

LONGEST_ORDER = 1 << 17
CELL, LEAVE, FINISH = "cell", "leave", "finish"


class StayingRank:
    """One rank of a session, from its fork to the session's end."""

    def __init__(self, channel: socket.socket, folder: Path, process: int) -> None:
        self._channel = channel
        self._orders: queue.SimpleQueue[Dict[str, Any]] = queue.SimpleQueue()
        self._main = ModuleType("__main__")
        self._names = NameTable(folder, process, vars(self._main))
        self._groups = ProcessGroups()
        self._at_work = self._was_stopped = False

    def serve(self, folder: Path) -> int:
        """Do what comes until the session ends; return the exit status."""
        signal.signal(signal.SIGINT, self._on_interrupt)
        rank.prepare(folder)
        debugger.end_in_c = self._stop
        self._groups.watch()
        _thread.start_new_thread(self._listen, ())
        actions: Dict[str, Callable[[Mapping[str, Any]], Dict[str, Any]]] = {
            CELL: self._run_cell,
            GET: self._get,
            PUT: self._put,
            NAMES: self._write_names,
        }
        while True:
            order = self._orders.get()
            if order["do"] == FINISH:
                return 0
            self._reply({"did": order["do"], **actions[order["do"]](order)})

    def _listen(self) -> None:
        while True:
            data = self._channel.recv(LONGEST_ORDER)
            order = json.loads(data) if data else {"do": FINISH}  # its process has ended
            if order["do"] == LEAVE:
                self._was_stopped = self._at_work
                self._groups.leave()
            else:
                self._orders.put(order)
            if order["do"] == FINISH:
                return

    def _reply(self, word: Mapping[str, Any]) -> None:
        self._channel.send(json.dumps(word).encode())

    def _stop(self) -> None:
        """Stop the cell from another thread."""
        os.kill(os.getpid(), signal.SIGINT)
        self._groups.leave()

    def _on_interrupt(self, _: int, __: Optional[FrameType]) -> None:
        """Stop the cell. One that comes when the cell has just ended must not stop the rank."""
        if self._at_work:
            self._was_stopped = True
            raise KeyboardInterrupt

    # -- cells --------------------------------------------------------------------------------

    def _run_cell(self, order: Mapping[str, Any]) -> Dict[str, Any]:
        folder, process = Path(order["folder"]), int(order["process"])
        had_group = self._groups.forget()
        os.environ.update(order["environment"])
        os.chdir(order["working_folder"])
        signal.signal(signal.SIGINT, self._on_interrupt)  # which a cell may have changed
        displays.forget()
        writer.begin_run()
        sent = NamesSent.read(folder / PROGRAM_FOLDER)
        changes = redefinitions.Redefinitions(vars(self._main))
        status = stopping.STOPPED

        def before_cell() -> None:
            changes.apply()
            self._names.received(sent)

        self._was_stopped = False
        try:
            self._at_work = True
            status = rank.run_cell(
                folder, process, order["results"], self._main, before_cell, self._has_stopped
            )
            self._at_work = False
        except KeyboardInterrupt:  # between the cell's last line and this one
            pass
        self._at_work = False
        values.forget()
        if status:
            gc.collect()  # what only a traceback held, such as a loader with its processes
        self._flush()
        cell = next((p for p in _pieces(folder) if p.is_cell), None)
        if cell is not None:
            self._names.cell_ended(sent, cell.label, _lines(cell.text))
        return {
            "status": status,
            "sequence": self._groups.sequence(),
            "had_group": had_group,
        }

    def _has_stopped(self) -> bool:
        return self._was_stopped

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        system.flush_c_streams()

    # -- names --------------------------------------------------------------------------------

    def _get(self, order: Mapping[str, Any]) -> Dict[str, Any]:
        """Save values of names to a folder."""
        namespace = vars(self._main)
        missing = [name for name in order["names"] if name not in namespace]
        present = {name: namespace[name] for name in order["names"] if name in namespace}
        try:
            unsaved = values.dump(present, Path(order["folder"]), ResultWriter)
        except OSError as error:
            return {"missing": missing, "unsaved": {name: str(error) for name in present}}
        return {"missing": missing, "unsaved": unsaved}

    def _put(self, order: Mapping[str, Any]) -> Dict[str, Any]:
        """Take values from a folder, as names that the notebook has sent."""
        try:
            received = values.load(Path(order["folder"]))
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        vars(self._main).update(received)
        sent = NamesSent(order["kernel"], order["at"], order["digests"])
        self._names.received(sent)
        self._names.write()
        return {}

    def _write_names(self, _: Mapping[str, Any]) -> Dict[str, Any]:
        self._names.write()
        return {"time": time.time()}


def _pieces(folder: Path) -> List[program.Piece]:
    try:
        return program.read_pieces(folder / PROGRAM_FOLDER)[0]
    except (OSError, ValueError, SyntaxError):  # the run's folder has been deleted
        return []


def _lines(text: str) -> Dict[str, int]:
    try:
        return bound_lines(text)
    except SyntaxError:
        return {}


def serve(channel: socket.socket, folder: Path, process: int) -> int:
    """Run as a rank of the session in that folder."""
    return StayingRank(channel, folder, process).serve(folder)
