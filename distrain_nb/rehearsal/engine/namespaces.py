"""A network of a job's own for sandboxes: each has a namespace, and a bridge joins them.

Made with `unshare`, `nsenter`, `setpriv` and `ip`, in a user namespace where we are not root.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence

from distrain_nb.errors import DistrainError
from distrain_nb.rehearsal.engine import processes
from distrain_nb.scratch import Scratch

GATEWAY = "10.77.0.254"

_PROGRAMS = ("unshare", "nsenter", "setpriv", "ip")
# Says the process id of each namespace, and ends with all of them.
_SCRIPT = """
set -e
trap 'trap - TERM; kill 0' TERM
ip link set lo up
ip link add hosts type bridge
ip addr add "$1"/24 dev hosts
ip link set hosts up
number=1
while [ "$number" -le "$2" ]; do
    setpriv --pdeathsig KILL unshare --net sleep infinity &
    while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.02; done
    ip link add name "cable$number" type veth peer name eth0 netns $!
    ip link set "cable$number" master hosts up
    nsenter --target $! --net sh -ec "
        ip link set lo up
        ip addr add 10.77.0.$number/24 dev eth0
        ip link set eth0 up
        ip route add default via $1"
    echo $!
    number=$((number + 1))
done
wait
"""
_SOCKET = """
import socket, sys
with socket.create_server((sys.argv[1], 0)) as server, socket.socket(socket.AF_UNIX) as back:
    back.connect(sys.argv[2])
    socket.send_fds(back, [b"."], [server.fileno()])
"""


def possible() -> bool:
    """Return whether this machine lets us make such networks."""
    if not all(map(shutil.which, _PROGRAMS)):
        return False
    trial = [*_unshare(), "sh", "-ec", "ip link add hosts type bridge"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


class Namespaces:
    """The namespaces of so many hosts; their addresses are 10.77.0.1, 10.77.0.2, …"""

    def __init__(self, count: int) -> None:
        script = ["sh", "-c", _SCRIPT, "sh", GATEWAY, str(count)]
        self._holder = processes.start([*_unshare(), "setpriv", "--pdeathsig", "TERM", *script])
        assert self._holder.stdout is not None and self._holder.stderr is not None
        lines = [self._holder.stdout.readline() for _ in range(count)]
        self._pids = [line.decode().strip() for line in lines if line.strip()]
        if len(self._pids) < count:
            processes.stop(self._holder, 0.0)
            error = self._holder.stderr.read().decode("utf-8", "replace").strip()
            raise DistrainError(f"No network for the job's hosts: {error}")

    def address(self, number: int) -> str:
        """Return where the host of that number (0, 1, …) is."""
        return f"10.77.0.{number + 1}"

    def command(self, number: int) -> Sequence[str]:
        """Return the command prefix that enters the namespace of a host."""
        return _enter(self._pids[number])

    def listen(self) -> socket.socket:
        """Return a socket of this process that hosts reach at `GATEWAY`, on a port of its own."""
        with Scratch("socket") as folder:
            meeting = str(folder / "s")
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(meeting)
                server.listen()
                code = [sys.executable, "-c", _SOCKET, GATEWAY, meeting]
                subprocess.run([*_enter(str(self._holder.pid)), *code], check=True)
                friend, _ = server.accept()
                with friend:
                    _, descriptors, _, _ = socket.recv_fds(friend, 1, 1)
        return socket.socket(fileno=descriptors[0])

    def close(self) -> None:
        """Take the network down."""
        processes.stop(self._holder, 5.0)
        for stream in (self._holder.stdout, self._holder.stderr):
            if stream is not None:
                stream.close()


def _unshare() -> Sequence[str]:
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ("unshare", *user, "--net")


def _enter(pid: str) -> Sequence[str]:
    user = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
    return ("nsenter", "--target", pid, *user, "--net")
