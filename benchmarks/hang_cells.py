"""The cells of `hangs.py`: nineteen that hang, and twenty-seven that are slow and healthy.

A cell that hangs marks the line that the verdict is to name; a healthy one prints its result.
"""

from __future__ import annotations

from typing import NamedTuple

BEGIN = """\
import ctypes, itertools, multiprocessing, os, signal, socket, subprocess, sys, tempfile
import threading, time
from pathlib import Path
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
dist.all_reduce(torch.ones(1))
print("begun", flush=True)
"""


# A server of another process, which sends `pieces` with `pause` seconds before each.
SERVER = """\
server = socket.create_server(("127.0.0.1", 0))
address, url = server.getsockname(), "http://%s:%d/" % server.getsockname()
def serve(pieces, pause):
    peer = server.accept()[0]
    peer.recv(1 << 16)
    peer.sendall(b"HTTP/1.0 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % (pieces << 15))
    for _ in range(pieces):
        time.sleep(pause)
        peer.sendall(bytes(1 << 15))
    peer.close()
def begin(pieces, pause):
    multiprocessing.get_context("fork").Process(target=serve, args=(pieces, pause)).start()
    server.close()
"""


class StuckCell(NamedTuple):
    """A cell that hangs because of rank `odd`; None if no rank is odd."""

    name: str
    odd: int | None
    ranks: int
    text: str


class SlowCell(NamedTuple):
    """A cell that says nothing for SECONDS and is well."""

    name: str
    ranks: int
    text: str


def _stuck(name: str, odd: int | None, ranks: int, text: str) -> StuckCell:
    return StuckCell(name, odd, ranks, BEGIN + text)


def _slow(name: str, ranks: int, text: str, end: str = "dist.barrier()") -> SlowCell:
    return SlowCell(name, ranks, f"{BEGIN}{text}{end}\nprint('result', rank, value, flush=True)\n")


HANGS = (
    _stuck("skipped-collective", 1, 3, """\
if rank != 1:
    dist.all_reduce(torch.ones(8))
dist.broadcast(torch.ones(8), 0)  # HERE
"""),
    _stuck("another-collective", 2, 4, """\
if rank == 2:
    dist.broadcast(torch.ones(8), 1)  # HERE
else:
    dist.all_reduce(torch.ones(8))
"""),
    _stuck("different-shapes", 1, 3, """\
batch = torch.ones(0 if rank == 1 else 8)  # the last batch of one rank is empty
dist.all_reduce(batch)
dist.broadcast(torch.ones(4), 0)  # HERE
"""),
    _stuck("dead-loader-worker", 1, 3, """\
def load(batches):
    os.kill(os.getpid(), signal.SIGKILL)
if rank == 1:
    fork = multiprocessing.get_context("fork")
    batches = fork.Queue()
    fork.Process(target=load, args=(batches,)).start()
    batch = batches.get()  # HERE
dist.barrier()
"""),
    _stuck("deadlocked-lock", 0, 3, """\
first, second = threading.Lock(), threading.Lock()
def other_way():
    with second:
        time.sleep(0.5)
        with first:
            pass
if rank == 0:
    with first:
        threading.Thread(target=other_way, daemon=True).start()
        time.sleep(0.3)
        second.acquire()  # HERE
dist.barrier()
"""),
    _stuck("endless-python-loop", 2, 3, """\
done = False
if rank == 2:
    while not done: pass  # HERE
dist.barrier()
"""),
    _stuck("endless-c-loop", 1, 2, """\
if rank == 1:
    total = sum(itertools.repeat(0))  # HERE
dist.barrier()
"""),
    _stuck("slow-disk", 1, 3, """\
shard = Path(tempfile.mkdtemp()) / "shard-000001.tar"
os.mkfifo(shard)  # a file whose disk does not answer
if rank == 1:
    file = os.open(shard, os.O_RDWR)
    data = os.read(file, 1 << 20)  # HERE
dist.barrier()
"""),
    _stuck("stopped", 3, 4, """\
if rank == 3:
    subprocess.Popen(["sh", "-c", f"sleep 6; kill -STOP {os.getpid()}"])
    while True: time.sleep(0.2)  # HERE
dist.barrier()
"""),
    _stuck("blocked-input", 0, 2, """\
sys.stdin = os.fdopen(os.pipe()[0])
if rank == 0:
    answer = sys.stdin.readline()  # HERE
dist.barrier()
"""),
    _stuck("silent-socket", 1, 3, """\
if rank == 1:
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    client.sendall(b"GET /weights")
    weights = client.recv(1 << 20)  # HERE
dist.barrier()
"""),
    _stuck("evaluator-without-checkpoint", 2, 3, """\
if rank == 2:
    while not Path("never.ckpt").exists():
        time.sleep(0.5)  # HERE
dist.barrier()
"""),
    _stuck("all-at-one-place", None, 4, """\
received = torch.ones(8)
dist.recv(received, (rank + 1) % world)  # HERE
"""),
    _stuck("endless-counting", 1, 2, """\
count = 0
def search():
    global count
    while True:  # HERE
        count += 1
if rank == 1: search()
dist.barrier()
"""),
    _stuck("flag-of-a-thread", 1, 2, """\
ready = threading.Event()
if rank == 1:
    while not ready.is_set(): pass  # HERE
dist.barrier()
"""),
    _stuck("loop-within-a-loop", 0, 2, """\
if rank == 0:
    for epoch in range(3):
        while epoch < 3: pass  # HERE
dist.barrier()
"""),
    _stuck("key-that-nobody-sets", 1, 2, """\
if rank == 1:
    dist.distributed_c10d._get_default_store().get("never")  # HERE
dist.barrier()
"""),
    _stuck("locked-file", 1, 2, """\
import fcntl
lock = open(f"{tempfile.gettempdir()}/cache-{os.environ['MASTER_PORT']}.lock", "w")
if rank == 0:
    fcntl.flock(lock, fcntl.LOCK_EX)
dist.barrier()
if rank == 1:
    fcntl.flock(lock, fcntl.LOCK_EX)  # HERE
dist.barrier()
"""),
    _stuck("left-early", 1, 3, """\
def prefetch():
    while True: time.sleep(600)  # HERE
if rank == 1:
    threading.Thread(target=prefetch).start()
    sys.exit(0)
dist.barrier()
"""),
)  # fmt: skip

HEALTHY = (
    _slow("sleep", 2, "time.sleep(SECONDS)\nvalue = 1\n"),
    _slow("one-sleeps", 2, "value = rank == 0 and time.sleep(SECONDS)\n"),
    _slow("c-call-with-the-lock", 2, "value = ctypes.PyDLL(None).sleep(int(SECONDS))\n"),
    _slow("c-call-without-the-lock", 2, "value = ctypes.CDLL(None).sleep(int(SECONDS))\n"),
    _slow("one-call-that-computes", 2, """\
import sqlite3
count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
database, value = sqlite3.connect(":memory:", check_same_thread=False), "interrupted"
threading.Timer(SECONDS, database.interrupt).start()
try:
    rank == 0 and database.execute(count).fetchone()
except sqlite3.OperationalError:
    pass
"""),
    _slow("checkpoint", 2, """\
end, value = time.time() + SECONDS, "saved"
with tempfile.TemporaryFile() as file:
    while rank == 0 and time.time() < end:
        file.seek(0)
        file.write(bytes(1 << 18))
        file.flush()
        time.sleep(0.2)
"""),
    _slow("evaluation", 2, """\
end, value = time.time() + SECONDS, "evaluated"
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
while rank == 0 and time.time() < end:
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(torch.ones(9, 64)), torch.zeros(9).long())
"""),
    _slow("download", 2, """\
server, value = socket.create_server(("127.0.0.1", 0)), 0
def serve():
    peer = server.accept()[0]
    end = time.time() + SECONDS
    while time.time() < end:
        peer.sendall(bytes(4096))
        time.sleep(0.1)
    peer.close()
if rank == 0:
    child = multiprocessing.get_context("fork").Process(target=serve)
    child.start()
    client = socket.create_connection(server.getsockname())
    while client.recv(1 << 16): value = "fetched"
"""),
    _slow("compile", 2, """\
busy = "import time; end = time.time() + SECONDS\\nwhile time.time() < end: pass"
value = rank == 0 and subprocess.run([sys.executable, "-c", busy]).returncode
"""),
    _slow("program-that-sleeps", 2, """\
value = rank == 0 and subprocess.run(["sleep", "SECONDS"]).returncode
"""),
    _slow("silent-training", 2, """\
end, value = time.time() + SECONDS, "trained"
going = torch.ones(1)
while going:
    time.sleep(0.05)
    dist.all_reduce(torch.ones(1000))
    going[0] = time.time() < end
    dist.broadcast(going, 0)
"""),
    _slow("python-on-all-ranks", 2, """\
end, value = time.time() + SECONDS, "counted"
while time.time() < end: pass
"""),
    _slow("slow-loader", 2, """\
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, n):
        time.sleep(SECONDS / 4)
        return n
value = sum(float(n) for n in torch.utils.data.DataLoader(Slow(), num_workers=1))
"""),
    _slow("metrics-alone", 2, """\
import distrain_nb
for step in range(10):
    distrain_nb.log_metrics(step=step, loss=1 / (1 + step))
    time.sleep(SECONDS / 10)
value = step
"""),
    _slow("pool-of-threads", 2, """\
from concurrent.futures import ThreadPoolExecutor
def read(n):
    end = time.time() + SECONDS
    while time.time() < end:
        Path("/proc/self/maps").read_bytes()
        time.sleep(0.05)
    return n
value = sum(ThreadPoolExecutor(2).map(read, range(2))) if rank == 0 else 0
"""),
    _slow("evaluation-by-sample", 2, """\
torch.set_num_threads(1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 10))
data, labels = torch.randn(100000, 64), torch.randint(0, 10, (100000,))
def evaluate():
    right = 0
    with torch.no_grad():
        for i in range(len(data)):
            right += int(model.module(data[i]).argmax() == labels[i])
    return right
end, value = time.time() + SECONDS, "evaluated"
while rank == 0 and time.time() < end: evaluate()
"""),
    _slow("evaluation-in-one-line", 2, """\
model, data = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()), torch.ones(64, 512)
end, value = time.time() + SECONDS, "evaluated"
while rank == 0 and time.time() < end: model(data)
"""),
    _slow("evaluation-in-python", 2, """\
def score(words):
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return len(counts)
end, value = time.time() + SECONDS, "scored"
while rank == 0 and time.time() < end: score(range(10**6))
"""),
    _slow("recursion", 2, """\
def paths(n): return paths(n - 1) + paths(n - 2) if n > 1 else 1
end, value = time.time() + SECONDS, "counted"
while rank == 0 and time.time() < end: paths(28)
"""),
    _slow("forest", 2, """\
import numpy
from sklearn.ensemble import RandomForestClassifier
x, y = numpy.random.rand(20000, 20), numpy.random.randint(0, 2, 20000)
end, value = time.time() + SECONDS, "fitted"
while rank == 0 and time.time() < end: RandomForestClassifier(n_estimators=200).fit(x, y)
"""),
    _slow("threads-that-compute", 2, """\
def multiply():
    while time.time() < end: torch.ones(500, 500) @ torch.ones(500, 500)
end, value = time.time() + SECONDS, "multiplied"
threads = [threading.Thread(target=multiply) for _ in range(2 * (rank == 0))]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""),
    _slow("download-in-bursts", 2, SERVER + """\
value = 0
if rank == 0:
    begin(int(SECONDS), 1.0)
    client = socket.create_connection(address)
    client.sendall(b"GET /")
    while client.recv(1 << 16): value = "fetched"
"""),
    _slow("download-with-a-timeout", 2, SERVER + """\
import urllib.request
value = 0
if rank == 0:
    begin(int(SECONDS / 3), 3.0)
    value = len(urllib.request.urlopen(url, timeout=300).read()) > 0
"""),
    _slow("slow-answer", 2, SERVER + """\
import urllib.request
value = 0
if rank == 0:
    begin(1, SECONDS)
    value = len(urllib.request.urlopen(url).read())
"""),
    _slow("slow-answer-of-a-thread", 2, SERVER + """\
import urllib.request
from concurrent.futures import ThreadPoolExecutor
value = 0
if rank == 0:
    begin(1, SECONDS)
    ask = ThreadPoolExecutor(1).submit(lambda: urllib.request.urlopen(url).read())
    value = len(ask.result())
"""),
    _slow("slow-answer-to-a-program", 2, SERVER + """\
ask = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"
value = 0
if rank == 0:
    begin(1, SECONDS)
    value = subprocess.run([sys.executable, "-c", ask, url]).returncode
"""),
    _slow("waits-with-an-end", 2, """\
import asyncio
value = "waited"
threading.Event().wait(SECONDS / 2) if rank == 0 else asyncio.run(asyncio.sleep(SECONDS / 2))
if rank == 0: asyncio.run(asyncio.sleep(SECONDS / 2))
"""),
)  # fmt: skip
