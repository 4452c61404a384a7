"""Layouts to test with: any that can be written, however little sense they make."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import Phase, settings
from hypothesis import strategies as st

from distrain_nb.layout import LAUNCHERS, PLACES, Layout, Pool
from distrain_nb.layout.catalog import current
from distrain_nb.layout.pool import Alternative
from tests.fuzzing import several

examples = settings(
    derandomize=True,
    max_examples=several(50),
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)

_CATALOG = current()
_WORD = st.from_regex(r"[a-z][A-Za-z0-9_.-]{0,12}", fullmatch=True)
_MACHINES = st.one_of(
    st.sampled_from(
        [
            *_CATALOG.machines,
            *_CATALOG.instances,
            *(row.name for row in _CATALOG.legacy_machines.values() if row.kind == "machine"),
        ]
    ),
    _WORD,
)
_ACCELERATORS = st.one_of(st.sampled_from(sorted(_CATALOG.accelerators)), _WORD)
_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12
)
_SECONDS = st.none() | st.integers(0, 10**7)


_ALTERNATIVES = st.builds(Alternative, _MACHINES, st.none() | st.integers(-1, 40))


def pools() -> st.SearchStrategy[Pool]:
    """Pools of real and made-up machines, with any numbers."""
    return st.builds(
        Pool,
        replicas=st.integers(-1, 40),
        machine=st.none() | _MACHINES,
        accelerator=st.none() | _ACCELERATORS,
        accelerator_count=st.integers(-1, 17),
        disk_type=st.none()
        | st.sampled_from(["pd-ssd", "pd-standard", "hyperdisk-balanced"])
        | _WORD,
        disk_gb=st.none() | st.integers(-1, 70000),
        topology=st.none() | st.sampled_from(["2x2", "2x4", "4x4", "2x2x1", "9x9"]),
        image=st.none() | st.sampled_from(["gcr.io/p/i:1", "us-docker.pkg.dev/p/reductionserver"]),
        alternatives=st.just(()) | st.lists(_ALTERNATIVES, max_size=6).map(tuple),
    )


def layouts(places: tuple[str, ...] = PLACES) -> st.SearchStrategy[Layout]:
    """Layouts with any pools and any settings."""
    pool = st.none() | pools()
    return st.builds(
        Layout,
        on=st.sampled_from(places),
        primary=pool,
        workers=pool,
        servers=pool,
        reducers=pool,
        evaluators=pool,
        region=st.none() | st.sampled_from(["us-central1", "europe-west4", "us-east-1"]) | _WORD,
        framework=st.none()
        | st.sampled_from(["pytorch-2.4", "tensorflow-2.17", "pytorch"])
        | _WORD,
        image=st.none() | st.just("gcr.io/project/train:latest"),
        launcher=st.sampled_from(LAUNCHERS),
        ranks_per_replica=st.none() | st.integers(-1, 200),
        distribution=st.none() | st.sampled_from(["smdistributed.dataparallel", "mpi"]) | _WORD,
        mpi_options=st.none() | st.sampled_from(["-verbose -x A=b", "it's"]) | _TEXT,
        scheduling=st.none() | st.sampled_from(["STANDARD", "SPOT", "FLEX_START", "ODD"]),
        timeout=_SECONDS,
        max_wait=_SECONDS,
        signal_before=_SECONDS,
        retries=st.none() | st.integers(0, 9),
        retry_on=st.none() | st.sampled_from(["75", "SIGKILL,lost", "signals"]),
        checkpoint=st.none() | st.sampled_from(["s3://bucket/checkpoints", "gs://bucket"]),
        tier=st.none() | st.sampled_from(["CUSTOM", "BASIC_GPU", "STANDARD_1", "ODD"]),
    )


def whole_layouts(places: tuple[str, ...] = PLACES) -> st.SearchStrategy[Layout]:
    """Layouts that say what each pool is, though not always something that can be had."""
    return layouts(places).map(_whole)


def _whole(layout: Layout) -> Layout:
    pools = {role.value: _known(pool) for role, pool in layout.pools()}
    pools.setdefault("primary", Pool(1, "n1-standard-4"))
    if len(pools) > 1:  # groups of instances have no alternatives
        pools = {name: replace(pool, alternatives=()) for name, pool in pools.items()}
    changes: dict[str, object] = {**pools}
    if layout.servers:
        changes |= {"reducers": None, "servers.image": None}
    elif layout.reducers:
        changes["reducers.image"] = None
    return layout.edited(changes)


def _known(pool: Pool) -> Pool:
    return replace(
        pool,
        replicas=max(pool.replicas, 1),
        machine=pool.machine or "n1-standard-4",
        accelerator=pool.accelerator if pool.accelerator in _CATALOG.accelerators else None,
    )
