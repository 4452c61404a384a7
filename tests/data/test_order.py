"""Every sample on one rank, once; equally many batches on all; the same order when it goes on."""

from __future__ import annotations

import io
import tarfile
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.worker.data import index
from distrain_nb.worker.data.order import (
    FIRST_WINDOW,
    WINDOW,
    BlockPart,
    Division,
    lane_of,
    windows,
)
from distrain_nb.worker.data.shards import ShardDataset, ShardLoader, shards
from tests.fuzzing import several

SAMPLES = 103


@settings(max_examples=several(300), deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 20),
    st.booleans(),
    st.sampled_from(["", "7"]),
)
def test_lanes_divide_all_samples(
    counts: list[int], ranks: int, lanes: int, batch_size: int, drop_last: bool, seed: str
) -> None:
    division = Division(ranks, lanes, batch_size, drop_last)
    total = sum(counts)
    try:
        batches = division.batches(total)
    except ValueError:
        assert total < ranks * batch_size if drop_last else batch_size == 1 or total < ranks
        return
    seen = []
    for rank in range(ranks):
        own = [lane_of(counts, division, rank, lane, seed) for lane in range(lanes)]
        sizes = [size for _, sizes in own for size in sizes]
        assert len(sizes) == batches
        assert all(0 < size <= batch_size for size in sizes)
        assert not drop_last or set(sizes) == {batch_size}
        for pieces, sizes in own:
            picked = [
                (window.pieces[which].block, sample)
                for window in windows(pieces, seed, 0)
                for which, sample in window.picks
            ]
            assert len(picked) == sum(sizes)
            seen += picked
    assert len(seen) == len(set(seen))
    assert drop_last or len(seen) == total


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three shards with a number in each sample, and no index."""
    monkeypatch.setattr(index, "BLOCK", 5000)
    for shard in range(3):
        with tarfile.open(tmp_path / f"train-{shard:02}.tar", "w") as tar:
            for number in range(shard, SAMPLES, 3):
                for name, content in (("cls", b"%d" % number), ("JPG", bytes(400))):
                    member = tarfile.TarInfo(f"class/{number}.{name}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    return tmp_path


def dataset(folder: Path, rank: int, shuffle: int | None, **options: object) -> ShardDataset:
    both = {"batch_size": 8, "rank": rank, "world_size": 2, "shuffle": shuffle, **options}
    return shards(f"{folder}/train-{{00..02}}.tar", transform=number, **both)  # type: ignore[arg-type]


def number(sample: dict[str, bytes]) -> int:
    assert sample["jpg"] == bytes(400)
    return int(sample["cls"])


def given_by(loader: ShardLoader) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


def test_epochs_are_whole_and_differ(folder: Path) -> None:
    loaders = [dataset(folder, rank, shuffle=3).loader() for rank in range(2)]
    assert [len(loader) for loader in loaders] == [7, 7]
    epochs = [[given_by(loader) for loader in loaders] for _ in range(2)]
    for epoch in epochs:
        assert [len(batches) for batches in epoch] == [7, 7]
        assert sorted(n for rank in epoch for batch in rank for n in batch) == list(range(SAMPLES))
    assert epochs[0] != epochs[1]
    again = dataset(folder, 1, shuffle=3).loader()
    assert [given_by(again), given_by(again)] == [epoch[1] for epoch in epochs]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_it_goes_on_in_mid_epoch(folder: Path, workers: int) -> None:
    whole = given_by(dataset(folder, 0, shuffle=3).loader(workers))
    for after in (1, 5):
        loader = dataset(folder, 0, shuffle=3).loader(workers)
        first = [batch.tolist() for batch in islice(loader, after)]
        state = loader.state_dict()
        assert state["batches"] == after
        other = dataset(folder, 0, shuffle=3).loader(workers)
        other.load_state_dict(state)
        assert first + given_by(other) == whole
        assert other.state_dict()["epoch"] == 1
        assert len(given_by(other)) == len(whole)


def test_an_epoch_begins_with_a_small_window() -> None:
    pieces = [BlockPart(block, 0, 3) for block in range(30)]
    assert [len(window.pieces) for window in windows(pieces, "7", 0)] == [2, 4, 8, 8, 8]
    assert [len(window.pieces) for window in windows(pieces, "7", 0, WINDOW)] == [8, 8, 8, 6]
    assert [len(window.pieces) for window in windows(pieces, "7", 6 + 12 + 1)] == [8, 8, 8]


@pytest.mark.parametrize("first", [None, FIRST_WINDOW, WINDOW])
def test_a_state_goes_on_in_the_order_in_which_it_began(folder: Path, first: int | None) -> None:
    """Before states had that number, all windows had as many blocks."""
    before = dataset(folder, 0, shuffle=3)
    before.go_on_as({**before.divided(), "first_window": first or WINDOW})
    whole = given_by(before.loader())
    loader = before.loader()
    begun = [batch.tolist() for batch in islice(loader, 3)]
    state = loader.state_dict()
    if first is None:
        del state["division"]["first_window"]
    other = dataset(folder, 0, shuffle=3).loader()
    other.load_state_dict(state)
    assert begun + given_by(other) == whole
    assert other.state_dict()["division"]["first_window"] == (first or WINDOW)
    anew = given_by(dataset(folder, 0, shuffle=3).loader())
    assert (anew == whole) == (first == FIRST_WINDOW)


def test_an_iteration_that_was_left_begins_anew(folder: Path) -> None:
    loader = dataset(folder, 0, None).loader()
    first = next(iter(loader)).tolist()
    assert given_by(loader)[0] == first


def test_a_state_of_another_division_is_refused(folder: Path) -> None:
    state = dataset(folder, 0, None).loader().state_dict()
    for other in (
        dataset(folder, 0, None, batch_size=4).loader(),
        dataset(folder, 0, None, world_size=4).loader(),
        dataset(folder, 0, 1).loader(),
        dataset(folder, 0, None).loader(2),
    ):
        with pytest.raises(ValueError, match="an epoch can only be resumed with the same values"):
            other.load_state_dict(state)


def test_what_cannot_be_divided_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"103 samples in batches of 1 .*: take drop_last=True"):
        dataset(folder, 0, None, batch_size=1)
    assert len(dataset(folder, 0, None, batch_size=1, drop_last=True)) == 51
    with pytest.raises(FileNotFoundError, match=r"no shards at .*nothing"):
        shards(str(folder / "nothing"), 8)
    with pytest.raises(FileNotFoundError, match=r"no shards at .*train-07.tar"):
        shards(f"{folder}/train-{{00..07}}.tar".replace("00..07", "00,07"), 8)


def test_shards_that_were_written_again_are_found_out(folder: Path) -> None:
    own = dataset(folder, 0, None)
    (folder / "train-00.tar").write_bytes((folder / "train-01.tar").read_bytes()[:-9000])
    with pytest.raises((ValueError, EOFError)):
        list(own)
