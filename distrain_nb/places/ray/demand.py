"""What a job's replicas need of a Ray cluster, and why it can't give that, in words.

It travels with each job: standard library only, Python 3.8.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

TYPE = "accelerator_type:"  # how Ray calls the resource that stands for a kind of accelerator
SPREAD_OUT = "STRICT_SPREAD"
STRATEGIES = (SPREAD_OUT, "SPREAD", "PACK", "STRICT_PACK")
GROUP = "ray.io/node-group"  # the label of a node that says its worker group
_GIB = 1 << 30
_TITLES = {"CPU": "CPUs", "GPU": "GPUs", "TPU": "TPU chips"}


class Node(NamedTuple):
    """A node of a cluster: what it has, what of it is free (None where nobody says), its labels."""

    name: str
    total: Mapping[str, float]
    free: Optional[Mapping[str, float]]
    labels: Mapping[str, str]


class Bundle(NamedTuple):
    """What a replica needs: amounts of resources by Ray's names, and a worker group."""

    needs: Mapping[str, float]
    group: str = ""

    def fits(self, node: Node, amounts: Mapping[str, float]) -> bool:
        """Return whether a node has that much among these amounts."""
        right = not self.group or node.labels.get(GROUP) == self.group
        return right and all(amounts.get(name, 0) >= much for name, much in self.needs.items())


def refusal(bundles: Sequence[Bundle], strategy: str, nodes: Sequence[Node]) -> str:
    """Return why the cluster can never place these bundles as it is; empty if it can."""
    for bundle in bundles:
        if not any(bundle.fits(node, node.total) for node in nodes):
            return _no_node(bundle, nodes)
    totals = [dict(node.total) for node in nodes]
    if _placed(bundles, strategy, nodes, totals):
        return ""
    first = bundles[0]
    fitting = [node for node in nodes if first.fits(node, node.total)]
    if strategy == SPREAD_OUT and all(b == first for b in bundles):
        return (
            f"{len(bundles)} replicas need a node each (STRICT_SPREAD): "
            f"the cluster has {len(fitting)} with {_words(first)}"
        )
    if strategy == SPREAD_OUT and len(bundles) > len(nodes):
        return (
            f"{len(bundles)} replicas need a node each (STRICT_SPREAD): "
            f"the cluster has {len(nodes)} of {len(bundles)}"
        )
    return f"the cluster has no room for {_sums(bundles, nodes)} ({strategy})"


def waiting(bundles: Sequence[Bundle], strategy: str, nodes: Sequence[Node]) -> str:
    """Return what the bundles wait for; empty if the cluster has it free."""
    never = refusal(bundles, strategy, nodes)
    if never:
        return never
    frees = [dict(node.total if node.free is None else node.free) for node in nodes]
    if _placed(bundles, strategy, nodes, frees):
        return ""
    names = sorted({name for bundle in bundles for name in bundle.needs if _is_amount(name)})
    parts = []
    for name in names:
        needed = sum(bundle.needs.get(name, 0) for bundle in bundles)
        have = sum(node.total.get(name, 0) for node in nodes)
        free = sum((node.total if node.free is None else node.free).get(name, 0) for node in nodes)
        parts.append(f"{_much(name, needed)}: {_number(name, free)} of {_number(name, have)} free")
    return "needs " + "; ".join(parts)


def _placed(
    bundles: Sequence[Bundle], strategy: str, nodes: Sequence[Node], amounts: List[Dict[str, float]]
) -> bool:
    """Return whether all bundles find their place, the largest first, with what there is."""
    if strategy == "STRICT_PACK":
        sums: Dict[str, float] = {}
        for bundle in bundles:
            for name, much in bundle.needs.items():
                sums[name] = sums.get(name, 0) + much
        one = Bundle(sums, bundles[0].group)
        return any(one.fits(node, has) for node, has in zip(nodes, amounts))
    used = set()
    # A node that had no room for a bundle has none for an equal one later: what is left only
    # shrinks. Without these places, a thousand bundles look at half a million nodes.
    tried: Dict[Tuple[object, ...], int] = {}
    for bundle in sorted(bundles, key=lambda bundle: -sum(bundle.needs.values())):
        equal = (bundle.group, *sorted(bundle.needs.items()))
        for number in range(tried.get(equal, 0), len(nodes)):
            tried[equal] = number
            if number in used or not bundle.fits(nodes[number], amounts[number]):
                continue
            for name, much in bundle.needs.items():
                amounts[number][name] -= much
            if strategy == SPREAD_OUT:
                used.add(number)
            break
        else:
            return False
    return True


def _no_node(bundle: Bundle, nodes: Sequence[Node]) -> str:
    if bundle.group:
        members = [node for node in nodes if node.labels.get(GROUP) == bundle.group]
        if not members:
            groups = sorted({node.labels[GROUP] for node in nodes if GROUP in node.labels})
            there = f"there are {', '.join(groups)}" if groups else "no node says its group"
            return f"no node is of the worker group {bundle.group}: {there}"
        nodes = members
    for name in bundle.needs:
        if name.startswith(TYPE) and not any(name in node.total for node in nodes):
            types = sorted({key[len(TYPE) :] for n in nodes for key in n.total if TYPE in key})
            there = f"the cluster has {', '.join(types)}" if types else "the cluster has none"
            return f"no node has an accelerator {name[len(TYPE) :]}: {there}"
    for name, much in bundle.needs.items():
        most = max((node.total.get(name, 0) for node in nodes), default=0)
        if _is_amount(name) and most < much:
            where = f"of {len(nodes)} node{'s' * (len(nodes) != 1)} the largest has"
            return f"no node has {_much(name, much)}: {where} {_number(name, most)}"
    return f"no node has {_words(bundle)} together"


def _words(bundle: Bundle) -> str:
    return " and ".join(_much(name, much) for name, much in bundle.needs.items() if much >= 0.01)


def _sums(bundles: Sequence[Bundle], nodes: Sequence[Node]) -> str:
    def parts() -> Iterator[str]:
        for name in sorted({name for bundle in bundles for name in bundle.needs}):
            needed = sum(bundle.needs.get(name, 0) for bundle in bundles)
            have = sum(node.total.get(name, 0) for node in nodes)
            if _is_amount(name):
                yield f"{_much(name, needed)} (it has {_number(name, have)})"

    return " and ".join(parts())


def _is_amount(name: str) -> bool:
    return not name.startswith(TYPE)


def _much(name: str, much: float) -> str:
    if name == "memory":
        return f"{_number(name, much)} of memory"
    title = _TITLES.get(name, name)
    if much == 1 and title.endswith("s"):
        title = title[:-1]
    return f"{_number(name, much)} {title}"


def _number(name: str, much: float) -> str:
    return f"{much / _GIB:.3g} GiB" if name == "memory" else f"{much:g}"
