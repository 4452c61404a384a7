"""The driver of a job on a Ray cluster; its argument is the folder with the code.

It places an actor for each replica, and each actor starts our worker, which starts the ranks.
Replicas that share no folder with the notebook's machine give what they write to the driver, which
lays it down as parcels beside the log files of Ray's session: whoever follows the job fetches them
from there by HTTP, one after another. `driver.json` says how the job is doing.

It travels with each job: standard library, Ray and our worker only, Python 3.8.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import ray
from ray.experimental import internal_kv
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from distrain_nb.places.ray import demand, replica

ray.cloudpickle.register_pickle_by_value(replica)  # nodes needn't have it where we do

LOOK_FIRST_S, LOOK_AT_LEAST_EVERY_S = 0.1, 0.5
# From look to look where each brings something: who fetches a parcel needs a request for it, and
# more of them than that are not fetched as fast as they come.
HEARD_LOOK_S = 0.2
ANSWERS_WITHIN_S = 2.0  # a replica that is slower is heard at a later look
ORDERED_LOOK_S, UNORDERED_LOOK_S, LATER_S = 0.05, 0.25, 60.0  # of a session
EXPLAIN_EVERY_S = 2.0
TRAIN = ("primary", "workers")


class Failed(Exception):
    """The job has failed for a reason that no rank knows."""


class LostReplica(Failed):
    """The job has failed because a machine, or a process of Ray's there, is gone."""


class Parcels:
    """What goes from the job to whoever follows it, as numbered files that never change."""

    def __init__(self, job: str, shared: str) -> None:
        # The driver's own output goes to a file among the session's log files.
        logs = Path("/proc/self/fd/1").resolve().parent
        self._folder = Path(shared) if shared else logs / "distrain" / job
        self._folder.mkdir(parents=True, exist_ok=True)
        self._shared = bool(shared)
        self._number = 0
        self._state: Dict[str, Any] = {}
        self._held: List[Tuple[str, int, bytes]] = []
        self._bytes = 0

    def say(self, **state: Any) -> None:
        """Tell how the job is doing."""
        if state != self._state:
            self._state = state
            text = json.dumps(state).encode()
            if self._shared:
                self._write("driver.json", text)
            else:
                self.send([("driver.json", -1, text)])

    def add(self, pieces: Sequence[Tuple[str, int, bytes]]) -> None:
        """Have parts of files sent with the next parcel: one for each of a thousand replicas would
        be more than anybody can fetch."""
        self._held += pieces
        self._bytes += sum(len(content) for _, _, content in pieces)
        if self._bytes >= replica.PARCEL:
            self.flush()

    def flush(self) -> None:
        """Send what was added."""
        held, self._held, self._bytes = self._held, [], 0
        self.send(held)

    def send(self, pieces: Sequence[Tuple[str, int, bytes]]) -> None:
        """Send parts of files: a path, the place there, -1 for a whole file, and bytes."""
        if pieces:
            data = bytearray()
            for path, at, content in pieces:
                head = {"path": path, "at": at, "size": len(content)}
                data += json.dumps(head).encode() + b"\n" + content
            self._number += 1
            self._write(f"{self._number:08d}", b"%d\n" % len(data) + data)

    def _write(self, name: str, data: bytes) -> None:
        draft = self._folder / (name + ".draft")
        draft.write_bytes(data)
        draft.replace(self._folder / name)


class Driver:
    """The replicas of a job, from their place on nodes to their end."""

    def __init__(self, here: Path, request: Dict[str, Any], parcels: Parcels) -> None:
        self._here, self._request, self._parcels = here, request, parcels
        self._bundles = [demand.Bundle(b["needs"], b["group"]) for b in request["bundles"]]
        self._actors: List[Any] = []
        self._codes: Dict[int, int] = {}
        self._lost: Dict[int, str] = {}
        self._nodes: List[str] = []
        self._calls: Dict[int, Any] = {}  # that replicas have not answered yet
        self._heard = LOOK_FIRST_S
        self._orders, self._ordered_at = 0, time.monotonic()
        self.stopped = False

    def run(self) -> int:
        """Return the job's exit status."""
        self._place()
        self._start()
        begun = time.monotonic()  # a limit counts from the ranks' start, as elsewhere
        limit, before = self._request["timeout"], self._request.get("signal_before", 0)
        within = self._request["stop"]
        while not self._look():
            if self.stopped:
                self._end(within)
                return 143
            if limit and before and time.monotonic() > begun + limit - before:
                before = 0
                for number in filter(self._is_up, range(len(self._actors))):
                    self._actors[number].notify.remote()
            if limit and time.monotonic() > begun + limit:
                self._end(within)
                raise Failed(f"the job has not ended within its --timeout of {limit:g} s")
        self._end(within)
        if self._stays:
            return 0
        self._say_lost()
        return int(any(self._codes.get(number) for number in self._training()))

    def _say_lost(self) -> None:
        for number, why in self._lost.items():
            role, index = self._request["members"][number]
            where = f", on node {self._nodes[number]}," if self._nodes else ""
            raise LostReplica(f"{role} {index}{where} was lost: {why}")

    def _training(self) -> Iterator[int]:
        members = self._request["members"]
        serves = any(role == "servers" for role, _ in members)  # its workers wait for ever
        leading = TRAIN[:1] if serves else TRAIN
        return (number for number, (role, _) in enumerate(members) if role in leading)

    def _place(self) -> None:
        strategy, limit = self._request["strategy"], self._request["max_wait"]
        labels = [{demand.GROUP: b.group} if b.group else {} for b in self._bundles]
        more = {"bundle_label_selector": labels} if any(labels) else {}
        needs = [dict(bundle.needs) for bundle in self._bundles]
        self._group = placement_group(needs, strategy=strategy, **more)
        ready, begun, explain = self._group.ready(), time.monotonic(), 0.5
        while not ray.wait([ready], timeout=explain)[0]:
            why = demand.waiting(self._bundles, strategy, _nodes())
            self._parcels.say(phase="waiting for nodes", reason=why)
            explain = EXPLAIN_EVERY_S
            if self.stopped:
                sys.exit(143)
            if limit and time.monotonic() > begun + limit:
                raise Failed(f"no nodes within --max-wait of {limit:g} s: {why}")
        ray.get(ready)

    def _start(self) -> None:
        self._parcels.say(phase="starting replicas", reason="")
        variables = (
            (self._here / "variables.json").read_text() if not self._request["shared"] else ""
        )
        replica_actor = ray.remote(replica.ReplicaActor)  # its code is exported once
        for number, bundle in enumerate(self._bundles):
            custom = {
                n: much for n, much in bundle.needs.items() if n not in ("CPU", "GPU", "memory")
            }
            actor = replica_actor.options(
                num_cpus=bundle.needs.get("CPU", 0),
                num_gpus=bundle.needs.get("GPU", 0),
                memory=bundle.needs.get("memory", 0) or None,
                resources=custom,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    self._group, placement_group_bundle_index=number
                ),
            )
            self._actors.append(actor.remote(number, self._request["shared"], variables))
        try:
            addresses = ray.get([actor.address.remote() for actor in self._actors])
            self._nodes = [address.rpartition(":")[0] for address in addresses]
            hosts = ",".join(addresses)
            while not self._request["shared"] and self._hand_orders():
                pass  # ranks may ask at once, whom the first order tells whether somebody answers
            ray.get([actor.start.remote(hosts) for actor in self._actors])
        except ray.exceptions.RayError as error:
            raise LostReplica(f"a replica could not be started: {_brief(error)}") from None
        print("replicas on", ", ".join(self._nodes), flush=True)
        self._parcels.say(phase="running", nodes=self._nodes)

    @property
    def _stays(self) -> bool:
        """Whether the ranks are those of a session, which a lost replica doesn't end."""
        return bool(self._request.get("stays"))

    def _look_at_session(self) -> bool:
        """Hear all replicas, and hand them what was ordered; return whether none is left."""
        begun = time.monotonic()
        heard = self._hear()
        if heard or (not self._request["shared"] and self._hand_orders()):
            self._ordered_at = time.monotonic()
            if heard < replica.PARCEL:
                time.sleep(max(0.0, begun + ORDERED_LOOK_S - time.monotonic()))
        else:
            is_late = time.monotonic() - self._ordered_at > LATER_S
            time.sleep(UNORDERED_LOOK_S if is_late else ORDERED_LOOK_S)
        gone = {n: f"its process has ended with status {code}" for n, code in self._codes.items()}
        lost = {str(number): why for number, why in {**gone, **self._lost}.items()}
        self._parcels.say(phase="running", nodes=self._nodes, lost=lost)
        return not any(map(self._is_up, range(len(self._actors))))

    def _hand_orders(self) -> bool:
        """Hand on the orders that have come; return whether there was one."""
        name = f"gcs://{replica.order_package(self._request['name'], self._orders + 1)}".encode()
        order = internal_kv._internal_kv_get(name)
        if order is None:
            return False
        data = ray.put(order)
        calls = {n: a.deliver.remote(data) for n, a in enumerate(self._actors) if self._is_up(n)}
        for number, call in calls.items():
            try:
                ray.get(call)
            except ray.exceptions.RayError as error:
                self._lost[number] = _brief(error)
        internal_kv._internal_kv_del(name)
        self._orders += 1
        return True

    def _look(self) -> bool:
        """Hear all replicas; return whether the job is over."""
        if self._stays:
            return self._look_at_session()
        begun = time.monotonic()
        heard = self._hear()
        ordered = not self._request["shared"] and self._hand_orders()
        quiet = not (heard or ordered)
        self._heard = min(1.5 * self._heard, LOOK_AT_LEAST_EVERY_S) if quiet else LOOK_FIRST_S
        if self._lost or any(self._codes.values()):
            return True
        if all(number in self._codes for number in self._training()):
            return True
        if quiet:
            time.sleep(self._heard)
        elif heard < replica.PARCEL:
            time.sleep(max(0.0, begun + HEARD_LOOK_S - time.monotonic()))
        return False

    def _hear(self) -> int:
        """Bring what replicas have written; return how many bytes there were, 1 at least if any.

        One that doesn't answer in time, as on a node that hangs, is not waited for: the lines of
        all others would wait too, and the job's limit of time.
        """
        for number in filter(self._is_up, range(len(self._actors))):
            if number not in self._calls:
                self._calls[number] = self._actors[number].pull.remote()
        calls = list(self._calls.values())
        if not calls:
            return 0
        answered, _ = ray.wait(
            calls, num_returns=len(calls), timeout=ANSWERS_WITHIN_S, fetch_local=False
        )
        ready, heard = set(answered), 0
        for number, call in list(self._calls.items()):
            if call not in ready:
                continue
            del self._calls[number]
            try:
                pieces, code = ray.get(call)
            except ray.exceptions.RayError as error:
                self._lost[number] = _brief(error)
                continue
            self._parcels.add(pieces)
            heard += sum(len(content) or 1 for _, _, content in pieces)
            if code is not None and not pieces:
                self._codes[number] = code
        self._parcels.flush()
        return heard

    def _is_up(self, number: int) -> bool:
        return number not in self._codes and number not in self._lost

    def _end(self, within: float) -> None:
        """Have all replicas end that have not, and bring their last words."""
        for number, actor in enumerate(self._actors):
            if self._is_up(number):
                actor.stop.remote()
        end = time.monotonic() + within
        while any(map(self._is_up, range(len(self._actors)))) and time.monotonic() < end:
            if not self._hear():
                time.sleep(LOOK_FIRST_S)
        closing = [
            actor.close.remote() for n, actor in enumerate(self._actors) if n not in self._lost
        ]
        ready, _ = ray.wait(closing, num_returns=len(closing), timeout=2) if closing else ([], [])
        for call in ready:
            line = ray.get(call)
            if line:
                print(line, flush=True)
        remove_placement_group(self._group)


def _nodes() -> List[demand.Node]:
    free: Dict[str, Any] = {}
    try:
        free = ray._private.state.available_resources_per_node()
    except Exception:  # it is not part of Ray's API
        free = {}
    return [
        demand.Node(node["NodeManagerAddress"], node["Resources"], free.get(node["NodeID"]),
                    node.get("Labels", {}))
        for node in ray.nodes()
        if node["Alive"]
    ]  # fmt: skip


def _brief(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and "creation task" in lines[0]:  # the traceback's last line is the cause
        return lines[-1]
    return lines[0] if lines else type(error).__name__


def main() -> int:
    """Run the job and return its exit status."""
    here = Path(sys.argv[1]).resolve()
    request = json.loads((here / "job.json").read_text(encoding="utf-8"))
    parcels = Parcels(request["name"], request["shared"])
    ray.init(log_to_driver=False, configure_logging=False)
    driver = Driver(here, request, parcels)

    def stop(*_: Any) -> None:
        driver.stopped = True

    signal.signal(signal.SIGTERM, stop)
    try:
        code = driver.run()
    except Failed as error:
        cause = "lost" if isinstance(error, LostReplica) else ""
        parcels.say(phase="failed", error=str(error), cause=cause)
        print(error, file=sys.stderr, flush=True)
        return 1
    parcels.say(phase="ended", code=code)
    return code


if __name__ == "__main__":
    sys.exit(main())
