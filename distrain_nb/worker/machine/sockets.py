"""Look up one TCP socket of this machine: whose it is, and whether a port has a listener; the
network interfaces that are bridges of containers; the bytes that came and went; this process's own.

The kernel is asked for that socket alone, as sock_diag(7) has it, in 0.1 ms. `/proc/net/tcp` says
the same, but reading it walks the table of all connections: 4 ms of CPU time on a machine with
24 GiB of memory, whatever its number of sockets. It is read where the kernel doesn't answer, as
in gVisor.
"""

import errno
import functools
import os
import socket
import struct
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

Address = Tuple[str, int]  # of IPv4, and a port

# The system's lists of sockets, and how they begin an IPv4 address: gRPC speaks it through IPv6.
_LISTS = ((Path("/proc/net/tcp"), ""), (Path("/proc/net/tcp6"), "0000000000000000FFFF0000"))
_ESTABLISHED, _LISTENING = 1, 10
_ANYWHERE = ("0.0.0.0", 0)
_LOOPBACK = "127.0.0.1"

# linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h
_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ASKED = struct.Struct("=BBBBI")  # family, protocol, extensions, padding, states
_SOCKET = struct.Struct("!HH4s12x4s12xI8s")  # ports, addresses, interface, cookie
_ANY_COOKIE = b"\xff" * 8
_USER_AT = _HEADER.size + 4 + _SOCKET.size + 12  # behind the state, the socket and three counts
_SECONDS = 5.0


def owner(end: Address, other_end: Address) -> Optional[int]:
    """Return the user who owns the end of a connection, None if it isn't one of this machine.

    Raises OSError where the system doesn't say, ValueError for an address that isn't IPv4.
    """
    if _kernel_answers():
        state_and_user = _ask(end, other_end)
        return state_and_user[1] if state_and_user and state_and_user[0] == _ESTABLISHED else None
    ends = [_listed(*end), _listed(*other_end)]
    for prefix, row in _rows():
        if (
            row[1:3] == [prefix + end_there for end_there in ends]
            and int(row[3], 16) == _ESTABLISHED
        ):
            return int(row[7])
    return None


def has_listener(port: int) -> bool:
    """Return whether a process listens at a port of the loopback interface.

    Raises OSError where the system doesn't say.
    """
    if _kernel_answers():
        state_and_user = _ask((_LOOPBACK, port), _ANYWHERE)
        return state_and_user is not None and state_and_user[0] == _LISTENING
    return any(
        int(row[3], 16) == _LISTENING and int(row[1].rpartition(":")[2], 16) == port
        for _, row in _rows()
    )


def container_bridges(interfaces: Path = Path("/sys/class/net")) -> List[str]:
    """Return the bridges that lead to no other machine: none of their members is a device."""
    bridges = sorted(path.parent for path in interfaces.glob("*/bridge"))
    return [
        bridge.name
        for bridge in bridges
        if not any(
            (interfaces / member.name / "device").exists() for member in bridge.glob("brif/*")
        )
    ]


def traffic(process: str = "self", interfaces: Path = Path("/sys/class/net")) -> Tuple[int, int]:
    """Return the bytes that the network of a process has received and sent, by loopback too. What
    a bridge and its members count, another interface counts as well.

    Raises OSError where the process is gone or the system doesn't say.
    """
    received = sent = 0
    for line in Path(f"/proc/{process}/net/dev").read_text().splitlines()[2:]:
        name, _, counts = line.partition(":")
        interface = interfaces / name.strip()
        if not (interface / "bridge").exists() and not (interface / "brport").exists():
            fields = counts.split()
            received, sent = received + int(fields[0]), sent + int(fields[8])
    return received, sent


@functools.lru_cache(maxsize=None)
def _kernel_answers() -> bool:
    """Return whether the kernel knows a socket of ours: without a module, it knows of none."""
    try:
        with socket.socket() as server:
            server.bind((_LOOPBACK, 0))
            server.listen(1)
            return _ask(server.getsockname(), _ANYWHERE) is not None
    except (OSError, AttributeError):  # AF_NETLINK is Linux's
        return False


def _ask(end: Address, other_end: Address) -> Optional[Tuple[int, int]]:
    """Return the state and the user of the socket with these ends, None if there is none."""
    addresses = [_packed(host) for host, _ in (end, other_end)]
    request = _ASKED.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFF) + _SOCKET.pack(
        end[1], other_end[1], *addresses, 0, _ANY_COOKIE
    )
    header = _HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(header + request)
        answer = kernel.recv(4096)
    if _HEADER.unpack_from(answer)[1] != _ERROR:
        return answer[_HEADER.size + 1], struct.unpack_from("=I", answer, _USER_AT)[0]
    (code,) = struct.unpack_from("=i", answer, _HEADER.size)
    if code == -errno.ENOENT:
        return None
    raise OSError(-code, "sock_diag")


def _rows() -> Iterator[Tuple[str, List[str]]]:
    """Yield the rows of both lists. Raises OSError where there is none."""
    read = False
    for path, prefix in _LISTS:
        try:
            lines = path.read_text().splitlines()
        except OSError:  # a machine without IPv6
            continue
        read = True
        for line in lines[1:]:
            yield prefix, line.split()
    if not read:
        raise OSError(errno.ENOENT, "no list of sockets", str(_LISTS[0][0]))


def _listed(host: str, port: int) -> str:
    return f"{_packed(host)[::-1].hex().upper()}:{port:04X}"


def _packed(host: str) -> bytes:
    try:
        return socket.inet_aton(host)
    except OSError:
        raise ValueError(f"{host!r} is no address of IPv4") from None


def own_sockets() -> Dict[int, str]:
    """Return the sockets of this process by descriptor, with what the system calls them."""
    names = {int(number): _name_of(int(number)) for number in os.listdir("/proc/self/fd")}
    return {number: name for number, name in names.items() if name.startswith("socket:")}


def opened_since(before: Mapping[int, str]) -> Dict[int, str]:
    """Return the sockets of this process that were not among `before`."""
    return {number: name for number, name in own_sockets().items() if before.get(number) != name}


def shut_down(sockets: Mapping[int, str]) -> None:
    """Shut down connections of this process, unless a descriptor is another file's by now.
    Listeners stay: gloo ends the process when its own breaks."""
    for descriptor, name in sockets.items():
        if _name_of(descriptor) == name:
            _shut_down(descriptor)


def _name_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # closed
        return ""


def _shut_down(descriptor: int) -> None:
    try:
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            if not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # never connected, or closed meanwhile
        pass
