"""A real Slurm cluster on this machine: a controller and nodes, on ports of their own."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_CONF = """
ClusterName=distrain
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={nodes_port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/jwt.key
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={spool}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
SwitchType=switch/none
MpiDefault=none
{accounting}
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=2,sched_min_interval=0,batch_sched_delay=0
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MinJobAge={known_s}
SlurmdTimeout=6
SlurmctldTimeout=10
MessageTimeout=5
InactiveLimit=0
# Programs save within it; on a busy machine 3 s were too few for two that wait for each other.
KillWait=10
# On a busy machine a step takes longer to be gone; its node would be drained.
UnkillableStepTimeout=600
Waittime=0
GresTypes=gpu
DefMemPerCPU=100
{node_lines}
PartitionName=DEFAULT State=UP PriorityTier=10
PartitionName=main Nodes=node[1-{count}] Default=YES MaxTime=1-00:00:00 DefaultTime=01:00:00
PartitionName=short Nodes=node[1-2] Default=NO MaxTime=00:10:00
PartitionName=closed Nodes=node[3-4] Default=NO MaxTime=UNLIMITED State=DOWN
PartitionName=urgent Nodes=node[1-4] Default=NO MaxTime=01:00:00 State=UP PriorityTier=100
"""
_ACCOUNTING = """AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}"""
_DBD = """
AuthType=auth/none
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/jwt.key
DbdHost=localhost
DbdPort={port}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""
# Without them MariaDB has no procedures, which slurmdbd makes.
_TABLES = [
    Path("/usr/share/mysql", name)
    for name in ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
]
_NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 Sockets=1 "
    "CoresPerSocket=4 ThreadsPerCore=1 RealMemory=8000 State=UNKNOWN{more}"
)
# Slurm counts a device only where there is a file for it.
_GPUS = "".join(
    f"NodeName=node[1-2] Name=gpu Type=a100 File=/dev/{name}\n" for name in ("null", "zero")
)
_WITH_GPUS = " Gres=gpu:a100:2 Feature=fast"


@dataclass
class Cluster:
    """One cluster of so many nodes, four at least, in a folder of its own. Jobs that have ended are
    known for `known_s` seconds, and in its `accounts`, if it keeps any, for ever."""

    folder: Path
    known_s: int = 300
    count: int = 4
    accounts: bool = False
    _daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _spool: tempfile.TemporaryDirectory[str] | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """What has Slurm's commands find this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self) -> None:
        """Write the configuration, start all, and wait until the nodes are idle."""
        (self.folder / "state").mkdir(parents=True)
        # Steps have sockets there, whose paths may have 107 characters.
        self._spool = tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True)
        names = [f"node{number}" for number in range(1, self.count + 1)]
        host, ports = socket.gethostname().partition(".")[0], free_ports(2 + self.count)
        lines = [
            _NODE.format(name=name, host=host, port=port, more=_WITH_GPUS if number < 2 else "")
            for number, (name, port) in enumerate(zip(names, ports[2:], strict=True))
        ]
        dbd_port, database_port = free_ports(2)
        kept = _ACCOUNTING.format(port=dbd_port)
        text = _CONF.format(
            accounting=kept if self.accounts else "AccountingStorageType=accounting_storage/none",
            host=host, port=ports[0], nodes_port=ports[1], user=getpass.getuser(),
            folder=self.folder, spool=self._spool.name, known_s=self.known_s, count=self.count,
            node_lines="\n".join(lines),
        )  # fmt: skip
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "gres.conf").write_text(_GPUS)
        (self.folder / "jwt.key").write_bytes(os.urandom(32))
        (self.folder / "jwt.key").chmod(0o600)
        if self.accounts:
            self._start_accounting(dbd_port, database_port)
        self.start_controller("-c")
        for name in names:
            self.start_node(name)
        self.wait_idle()

    def _start_accounting(self, port: int, database_port: int) -> None:
        """Start a database on this machine alone, and slurmdbd; both ask for no login."""
        data = self.folder / "database"
        data.mkdir()
        options = [
            "--no-defaults", f"--datadir={data}", f"--user={getpass.getuser()}",
            "--skip-grant-tables", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M",
        ]  # fmt: skip
        tables = "".join(path.read_text() for path in _TABLES)
        subprocess.run(
            [_path("mariadbd"), *options, "--bootstrap"], check=True, capture_output=True,
            input=f"create database mysql;\nuse mysql;\n{tables}".encode(),
        )  # fmt: skip
        self._start(
            "mariadbd", *options, "--bind-address=127.0.0.1", f"--port={database_port}",
            f"--socket={data}.sock", f"--pid-file={data}.pid",
        )  # fmt: skip
        self.wait(lambda: _answers(database_port))
        path = self.folder / "slurmdbd.conf"
        path.touch(0o600)
        path.write_text(
            _DBD.format(
                folder=self.folder, port=port, user=getpass.getuser(), database_port=database_port
            )
        )
        self._start("slurmdbd", "-D")
        self.wait(lambda: _answers(port))
        added = self.run("sacctmgr", "-i", "add", "cluster", "distrain")
        assert added.returncode == 0, added.stderr

    def wait_idle(self) -> None:
        """Wait until every node can take jobs."""
        self.wait(lambda: self.run("sinfo", "-h", "-o", "%T %D").stdout == f"idle {self.count}\n")

    def wait(self, condition: object, within: float = 60.0) -> None:
        end = time.monotonic() + within
        while not condition():  # type: ignore[operator]
            assert time.monotonic() < end, self.logs()
            time.sleep(0.1)

    def start_controller(self, *options: str) -> None:
        self._start("slurmctld", "-D", *options)

    def start_node(self, name: str) -> None:
        self._start("slurmd", "-D", "-N", name)

    def start_rest(self, port: int) -> None:
        """Start slurmrestd, which listens on this machine alone, and wait until it answers."""
        # Its checks refuse root and the user of the controller, who the tests are.
        more = {"SLURMRESTD_SECURITY": "disable_user_check", "SLURM_JWT": "daemon"}
        kinds = "openapi/v0.0.38,openapi/dbv0.0.38" if self.accounts else "openapi/v0.0.38"
        options = ["-a", "rest_auth/jwt", "-s", kinds, f"127.0.0.1:{port}"]
        self._start("slurmrestd", *options, **more)
        self.wait(lambda: _answers(port))

    def token(self, lifespan: int = 3600) -> str:
        """Return a token for slurmrestd, valid for so many seconds."""
        printed = self.run("scontrol", "token", f"lifespan={lifespan}").stdout
        return printed.strip().removeprefix("SLURM_JWT=")

    def end(self, daemon: str, number: int = signal.SIGKILL) -> None:
        """End the controller, `slurmctld`, or the daemon of a node, `node1`."""
        process = self._daemons.pop(daemon)
        process.send_signal(number)
        process.wait()

    def pid(self, daemon: str) -> int:
        """Return the process id of the controller, `slurmctld`, or a node's daemon."""
        return self._daemons[daemon].pid

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=self._variables(), capture_output=True, text=True)

    def resume_all(self) -> None:
        """Take back nodes that an earlier test has left drained."""
        drained = self.run("sinfo", "--noheader", "--states=drain", "--format=%n").stdout.split()
        for name in dict.fromkeys(drained):
            self.run("scontrol", "update", f"nodename={name}", "state=resume")

    def cancel_all(self) -> None:
        self.run("scancel", "--user", getpass.getuser(), "--signal=KILL", "--full")
        self.run("scancel", "--user", getpass.getuser())

    def logs(self) -> str:
        return "\n".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))

    def stop(self) -> None:
        """End all jobs and daemons."""
        if "slurmctld" in self._daemons:
            self.cancel_all()
            with suppress(AssertionError):  # steps that have nobody to tell of their end stay
                self.wait(lambda: not self.run("squeue", "--noheader").stdout, 10)
        for process in self._daemons.values():
            process.send_signal(signal.SIGTERM)
        for process in self._daemons.values():
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._daemons.clear()
        ours = f"SLURM_CONF={self.environment['SLURM_CONF']}\0".encode()
        for process in psutil.process_iter(["name"]):
            if process.info["name"] in ("slurmstepd", "slurm_script"):
                with suppress(psutil.Error, OSError):
                    # A title is written over the first variables, so psutil reads none.
                    if ours in Path(f"/proc/{process.pid}/environ").read_bytes():
                        process.kill()
        if self._spool:
            self._spool.cleanup()

    def _variables(self) -> dict[str, str]:
        own = {**os.environ, **self.environment}
        own.pop("SLURM_JWT", None)  # with it, Slurm's programs log in by another plugin
        return own

    def _start(self, daemon: str, *options: str, **more: str) -> None:
        with ExitStack() as stack:
            log = stack.enter_context((self.folder / "daemons.log").open("ab"))
            name = options[-1] if daemon == "slurmd" else daemon
            self._daemons[name] = subprocess.Popen(
                [_path(daemon), *options], env={**self._variables(), **more},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip


def _path(daemon: str) -> str:
    return shutil.which(daemon, path=f"{os.environ['PATH']}:/usr/sbin") or daemon


def _answers(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def free_ports(count: int) -> Sequence[int]:
    with ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [each.getsockname()[1] for each in sockets]
