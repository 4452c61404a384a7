#!/usr/bin/env python3
"""Chromium that hears nothing of network interfaces, with the same arguments.

While interfaces come and go, as other tests' containers and namespaces make them do, Chromium fails
all requests that wait for a connection (`net::ERR_NETWORK_CHANGED`), those to this machine too. The
kernel tells it by netlink sockets, which are refused here; it then takes the network for steady.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests import seccomp

PROGRAM = "/usr/bin/chromium"

seccomp.fail(seccomp.SOCKET, errno.EAFNOSUPPORT, socket.AF_NETLINK)
os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
