"""A rehearsal leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.conftest import eventually
from tests.image.services.bases import BaseImage

# What was started in the background of a shell ignores interrupts, unless it says otherwise.
REHEARSAL = """\
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from tests.image.services.bases import small_base
from tests.rehearsal.conftest import cloud_with, pool

with cloud_with(small_base()) as cloud:
    command = ["python3", "-c", "import time; print('ready', flush=True); time.sleep(600)"]
    name = cloud.submit(pool(cloud.base, command=command)).name
    cloud.wait_for(name, "workerpool0-0", "ready")
    print("ready", flush=True)
    time.sleep(600)
"""
ENDS_WITHIN_S = 300


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_everything_ends_with_it(no_docker: None, small: BaseImage, number: signal.Signals) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", REHEARSAL]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    started = psutil.Process(process.pid).children(recursive=True)
    assert {"docker-registry", "bwrap", "python3"} <= {one.name() for one in started}
    os.kill(process.pid, number)
    process.wait(ENDS_WITHIN_S)
    process.stdout.close()
    assert eventually(lambda: not any(one.is_running() for one in started))
