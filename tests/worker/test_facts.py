"""What is compared between ranks: a difference is named with its cause, and what is well is not."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from distrain_nb.worker.facts import comparing, record
from distrain_nb.worker.facts.comparing import FactComparison, compare, is_ignored
from distrain_nb.worker.facts.deviations import CODES, SENTENCES, Deviation, named
from distrain_nb.worker.facts.reader import FactReader, settle
from distrain_nb.worker.facts.record import (
    MOST_BYTES,
    Fact,
    FactRecord,
    packed,
    ranks_in,
    spans,
    unpacked,
)
from distrain_nb.worker.files.folder import FACTS_FOLDER
from distrain_nb.worker.files.launch import Launch, ProcessSpec
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE
from distrain_nb.worker.supervisor.deviating import DeviationWatch

MODULE: Fact = {"kind": "module", "of": "module 0", "ranks": [0, 1], "names": ["a", "b"],
                "place": "line 1"}  # fmt: skip
NO_LOADERS: list[Fact] = []


def weights(step: int, *values: float, of: str = "module 0", **fields: Any) -> Fact:
    """A fact of tensors that have these projections, and the norm 1."""
    numbers = packed(number for value in values for number in (value, 1.0))
    fact = {"kind": "weights", "of": of, "step": step, "weights": numbers, "place": f"line {step}"}
    return {**fact, **fields}


def gradients(*values: float) -> str:
    return packed(number for value in values for number in (value, abs(value)))


def calls(*entries: tuple[int, str, str, str, bool], **fields: Any) -> Fact:
    """A fact of collectives of the default group: number, operation, sizes, line, in backward."""
    rows = [(0, "0", n, name, sizes, "float", line, back) for n, name, sizes, line, back in entries]
    return {"kind": "collectives", "groups": {"0": [0, 1]}, "calls": rows, **fields}


def end(**fields: Any) -> Fact:
    return {"kind": "end", "failed": False, **fields}


def codes(*ranks: list[Fact], ignored: tuple[str, ...] = ()) -> list[str]:
    return [deviation.code for deviation in compare(dict(enumerate(ranks)), ignored)]


def only(*ranks: list[Fact]) -> Deviation:
    (deviation,) = compare(dict(enumerate(ranks)))
    return deviation


def test_equal_weights_are_well_and_roundings_are_none_of_a_difference() -> None:
    one = [MODULE, weights(0, 0.5, 0.5), weights(1, 0.4, 0.4), weights(2, 0.3, 0.3)]
    other = [MODULE, weights(0, 0.5, 0.5), weights(1, 0.4, 0.400001), weights(2, 0.3, 0.3)]
    assert codes(one, one) == codes(one, other) == []


def test_the_first_tensor_that_differs_is_named_with_its_steps() -> None:
    one = [MODULE, weights(0, 0.5, 0.5), weights(2, 0.4, 0.4), weights(4, 0.4, 0.4)]
    other = [MODULE, weights(0, 0.5, 0.5), weights(2, 0.4, 0.4), weights(4, 0.4, 0.1)]
    deviation = only(one, other)
    assert deviation.code == "weights.differ"
    assert deviation.sentence.startswith(
        "line 4: b differs between ranks 0 and 1 since step 4 (equal at step 2)"
    )


@pytest.mark.parametrize(
    ("mine", "theirs", "code"),
    [
        ({"bypassed": 1, "bypass": "line 9"}, {"bypassed": 1}, "gradients.bypassed"),
        ({"held": 1}, {"held": 1}, "gradients.no-sync"),
        ({"exchanges": 1}, {"exchanges": 2}, "weights.skipped-step"),
        ({"values": [[0.1]]}, {"values": [[0.2]]}, "numbers.rate"),
        ({"values": [[0.1]], "rates": 0.1}, {"values": [[0.1]], "rates": 0.3}, "numbers.rate"),
    ],
)
def test_the_cause_of_a_difference_is_named(
    mine: dict[str, Any], theirs: dict[str, Any], code: str
) -> None:
    one = [MODULE, weights(0, 0.5), weights(1, 0.4, **mine), end()]
    other = [MODULE, weights(0, 0.5), weights(1, 0.3, **theirs), end()]
    assert codes(one, other) == [code]
    assert only(one, other).place == mine.get("bypass", "line 1")


def test_a_weight_that_no_loss_reaches_is_named_unless_it_has_changed() -> None:
    def steps(last: float, unreached: list[int]) -> list[Fact]:
        noted = [weights(n, 0.5 - n / 10, 0.5, unreached=[1]) for n in (1, 2)]
        return [MODULE, weights(0, 0.5, 0.5), *noted, weights(4, 0.1, last, unreached=unreached)]

    well = steps(0.5, [1])
    deviation = only([*well, end()], [*well, end()])
    assert deviation.code == "gradients.none" and deviation.place == "line 1"
    assert deviation.text.startswith("b has no gradient on any rank in 4 steps")
    assert codes(well, well) == []  # a later step may reach it
    for others in (steps(0.4, [1]), steps(0.5, [])):
        assert codes([*others, end()], [*others, end()]) == []


def test_steps_without_exchange_whose_weights_are_equal_are_well() -> None:
    facts = [MODULE, weights(0, 0.5), weights(1, 0.4, bypassed=1, held=1)]
    assert codes(facts, facts) == []


def test_a_program_that_averages_weights_itself_goes_round_ddp_on_purpose() -> None:
    one = [MODULE, weights(0, 0.5), weights(1, 0.4, held=1)]
    other = [MODULE, weights(0, 0.5), weights(1, 0.3, held=1)]
    assert codes(one, other) == []  # it may still average
    averages = calls(large=True)
    assert codes([*one, averages, end()], [*other, averages, end()]) == []
    assert codes([*one, end()], [*other, end()]) == ["gradients.no-sync"]


def test_weights_that_are_gathered_behind_the_last_step_are_averaged_only_if_they_are_equal() -> (
    None
):
    def ended(last: float, final: float) -> list[Fact]:
        stepped = [MODULE, weights(0, 0.5), weights(1, last, bypassed=1)]
        after = {"kind": "final", "of": "module 0", "weights": gradients(final)}
        return [*stepped, calls(large=True), after, end(large=False, large_after=True)]

    assert codes(ended(0.4, 0.4), ended(0.3, 0.3)) == ["gradients.bypassed"]
    assert codes(ended(0.4, 0.35), ended(0.3, 0.35)) == []
    assert codes(ended(0.4, 0.4)[:-1], ended(0.3, 0.3)[:-1]) == []  # more steps may follow


def test_ranks_of_other_groups_are_not_compared() -> None:
    one = [{**MODULE, "ranks": [0, 2]}, weights(0, 0.5), weights(1, 0.4)]
    other = [{**MODULE, "ranks": [1, 3]}, weights(0, 0.5), weights(1, 0.1)]
    assert codes(one, other, one, other) == []


def optimizer(**fields: Any) -> Fact:
    fact = {"kind": "optimizer", "of": "optimizer 0", "shapes": [[2, 2]], "names": [""]}
    return {**fact, "horovod": False, "others": 0, "place": "line 5", **fields}


def loose(start: float, later: float, gradient: float, **fields: Any) -> list[Fact]:
    noted = [
        weights(step, later, of="optimizer 0", gradients=gradients(gradient)) for step in (1, 2)
    ]
    begun = weights(0, start, of="optimizer 0")
    return [optimizer(**fields), begun, *noted, calls(large=False), end()]


def test_models_that_nobody_wraps_are_named_only_if_one_model_was_meant() -> None:
    one, other = loose(0.5, 0.4, 1.0), loose(0.5, 0.1, 2.0)
    assert codes(one, other) == ["gradients.unwrapped"]
    ensemble = loose(0.3, 0.1, 2.0)
    assert codes(one, ensemble) == []  # which begins with other weights
    loader = {"kind": "loader", "of": "line 3", "replicas": 2}
    assert codes([*one, loader], [*ensemble, loader]) == ["gradients.unwrapped"]
    averaging = [*one[:-2], calls(large=True), end()]
    assert codes(averaging, other) == []
    sharded = [*one[:-1], end(sharded=True)]
    assert codes(sharded, other) == []
    assert codes(one[:-1], other[:-1]) == []  # they may still exchange weights


def test_equal_gradients_of_different_weights_need_a_common_start() -> None:
    deviation = only(loose(0.5, 0.4, 1.0), loose(0.3, 0.2, 1.0))
    assert deviation.code == "weights.start" and "dist.broadcast" in deviation.text
    by_horovod = only(loose(0.5, 0.4, 1.0, horovod=True), loose(0.3, 0.2, 1.0, horovod=True))
    assert "hvd.broadcast_parameters" in by_horovod.text


def test_parameters_beside_a_wrapped_model_are_named() -> None:
    one, other = loose(0.5, 0.4, 1.0, others=2), loose(0.5, 0.1, 2.0, others=2)
    assert codes(one, other) == ["gradients.outside"]
    assert codes(one, loose(0.5, 0.4, 1.0, others=2)) == []


def test_two_lines_in_one_collective_are_told_by_what_the_ranks_do_there() -> None:
    backward = calls((4, "all_reduce", "5", "line 3", True))
    deviation = only([backward], [calls((4, "all_reduce", "5", "line 9", False))])
    assert deviation.code == "collectives.mixed" and deviation.place == "line 9"
    assert "the exchange of gradients on rank 0 (line 3)" in deviation.text
    shapes = only(
        [calls((4, "all_reduce", "5", "line 3", False))],
        [calls((4, "all_reduce", "1", "line 3", False))],
    )
    assert "all_reduce of 5 float on rank 0" in shapes.text
    mark = {"kind": "mark", "number": 4, "text": "0\t0\tall_reduce\tone\tline 9\t0"}
    assert codes([backward], [calls(), mark]) == ["collectives.mixed"]


def test_collectives_that_may_differ_are_well() -> None:
    root = [calls((1, "broadcast", "2", "line 3", False), (2, "gather", "2", "line 5", False))]
    others = [calls((1, "broadcast", "2", "line 4", False), (2, "gather", "9", "line 6", False))]
    assert codes(root, others) == []  # lines alone
    backward = [calls((1, "all_reduce", "25", "line 3", True))]
    begun = [calls(), {"kind": "mark", "number": 1, "text": "0\t0\tall_reduce\t\tline 2\t1"}]
    assert codes(backward, begun) == []  # whose size is not known yet
    on_a_thread = [calls((1, "all_reduce", "25", "", False))]
    assert codes(backward, on_a_thread) == []


def test_a_rank_that_has_ended_while_another_fails_in_a_collective_is_named() -> None:
    done = [calls((1, "all_reduce", "5", "line 3", True)), end()]
    more = calls((1, "all_reduce", "5", "line 3", True), (2, "all_reduce", "5", "line 3", True))
    deviation = only(done, [more, {**end(), "failed": True}])
    assert deviation.code == "collectives.left"
    assert deviation.text.startswith("rank 0 has ended after 1 collectives")
    assert codes(done, [more, end()]) == []


def test_different_numbers_of_steps_are_named_unless_ranks_join() -> None:
    one, other = [MODULE, end(steps={"module 0": 3})], [MODULE, end(steps={"module 0": 5})]
    assert codes(one, other) == ["steps.uneven"]
    joined = [MODULE, end(steps={"module 0": 5}, joins=True)]
    assert codes(one, joined) == codes(one, [MODULE]) == []


def loader(**fields: Any) -> Fact:
    fact = {"kind": "loader", "of": "line 8 (1)", "read_at": "line 8", "made_at": "line 7"}
    sampler = {"sampler": "DistributedSampler", "shuffles": True, "replicas": 2, "replica": 0}
    return {**fact, "size": 8, "drawn": 4, "subset": None, "split_at": "", **sampler, **fields}


def samples(indices: list[int], contents: list[float], epoch: int = 1, steps: int = 2) -> Fact:
    fact = {"kind": "samples", "of": "line 8 (1)", "epoch": epoch, "began": 0, "steps": steps}
    return {**fact, "indices": indices, "contents": packed(contents)}


PLAIN = {"sampler": "RandomSampler", "shuffles": None, "replicas": 1, "drawn": 8}
ONE, TWO = samples([0, 2, 4], [0.1, 0.3, 0.5]), samples([1, 3, 5], [0.2, 0.4, 0.6])


def test_shares_of_one_dataset_are_well() -> None:
    assert codes([MODULE, loader(), ONE], [MODULE, loader(), TWO]) == []
    own = samples([0, 2, 4], [7.0, 8.0, 9.0])  # a dataset of its own
    assert codes([MODULE, loader(**PLAIN), ONE], [MODULE, loader(**PLAIN), own]) == []


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ([loader(), ONE], [loader(), ONE], "data.same"),
        ([loader(**PLAIN), ONE], [loader(**PLAIN), samples([4, 0], [0.5, 0.1])], "data.unshared"),
        ([loader(subset="4 of 8: a"), ONE], [loader(subset="4 of 8: b"), TWO], "data.split"),
        ([loader(size=8), ONE], [loader(size=6), TWO], "data.split"),
        ([loader(**PLAIN, subset="a"), ONE],
         [loader(**PLAIN, subset="b"), samples([4, 0], [0.5, 0.1])], "data.split"),
    ],
)  # fmt: skip
def test_data_that_is_shared_out_wrongly_is_named(
    first: list[Fact], second: list[Fact], code: str
) -> None:
    assert codes([MODULE, *first], [MODULE, *second]) == [code]
    assert codes(NO_LOADERS + first, second) == []  # ranks that exchange no gradients


def test_an_evaluation_and_samples_that_are_all_alike_say_nothing() -> None:
    evaluation = samples([0, 2], [0.1, 0.3], steps=0)
    assert codes([MODULE, loader(), evaluation], [MODULE, loader(), evaluation]) == []
    ones = samples([0, 2, 4], [1.0, 1.0, 1.0])
    assert codes([MODULE, loader(), ones], [MODULE, loader(), ones]) == []


def test_an_order_that_every_epoch_has_is_named() -> None:
    first, second = samples([0, 2, 4, 6], [0.0] * 4), samples([0, 2, 4, 6], [0.0] * 4, epoch=2)
    mine = [MODULE, loader(), first, second]
    theirs = [MODULE, loader(), *(samples([1, 3, 5, 7], [9.0] * 4, epoch=n) for n in (1, 2))]
    assert codes(mine, theirs) == ["data.epoch"]
    assert codes(mine[:-1], theirs) == []
    told = [loader(shuffles=False), first, second]
    assert codes([MODULE, *told], [MODULE, *told[:1], *theirs[2:]]) == []


def test_a_loss_that_is_not_finite_on_one_rank_first_is_named() -> None:
    lost = {"kind": "loss", "value": "nan", "place": "line 3"}
    one = [MODULE, {**lost, "backward": 5, "step": 5}]
    later = [MODULE, {**lost, "backward": 6, "step": 6}]
    assert only(later, one).ranks == (1,) and only(later, one).code == "numbers.loss"
    assert codes(one, one) == []  # it diverges
    assert codes(one, [MODULE]) == []  # nothing is known of the other yet
    assert codes(one, [MODULE, end(backwards=7)]) == ["numbers.loss"]


def test_codes_and_kinds_are_ignored() -> None:
    one = [MODULE, weights(0, 0.5), weights(1, 0.4)]
    other = [MODULE, weights(0, 0.5), weights(1, 0.3)]
    assert codes(one, other, ignored=("weights.differ",)) == []
    assert codes(one, other, ignored=("weights",)) == []
    assert codes(one, other, ignored=("weight", "data")) == ["weights.differ"]
    assert all(is_ignored(code, [code]) for code in CODES)


def test_the_page_has_each_code_with_its_sentence() -> None:
    text = (Path(__file__).parents[2] / "docs" / "insight.md").read_text("utf-8")
    rows = dict(re.findall(r'^\| `([a-z]+\.[a-z-]+)` \|[^|]*\| "(.*)" \|$', text, re.M))
    assert set(rows) == set(CODES)
    for code, shown in rows.items():
        sentence = _pattern(SENTENCES[code])
        whole = re.fullmatch(sentence, shown, re.S)
        assert whole or _is_begun(SENTENCES[code], shown.rstrip("… ")), code


def _pattern(template: str) -> str:
    return ".*?".join(map(re.escape, re.split(r"\{\w+\}", template)))


def _is_begun(template: str, shown: str) -> bool:
    """Whether a text is the begin of a sentence, whose fields may be anything."""
    ends = range(20, len(template))
    return any(re.fullmatch(_pattern(template[:end].rstrip()), shown) for end in ends)


def test_numbers_survive_packing() -> None:
    numbers = [0.5, -2.0, float("inf"), 1e300]
    assert unpacked(packed(numbers)) == [0.5, -2.0, float("inf"), float("inf")]
    assert named([0]) == "rank 0" and named(range(20)).endswith("6 and 13 more")


def test_a_record_is_bounded_and_ends(tmp_path: Path) -> None:
    kept = FactRecord()
    kept.begin(tmp_path / FACTS_FOLDER, 1, 2)
    for number in range(200):
        kept.note("weights", number=number, text="x" * 10_000)
    kept.mark(1, "0\tmark")
    kept.end(steps=3)
    kept.note("weights", number=-1)
    facts = FactReader(tmp_path).read()[1]
    kinds = [fact["kind"] for fact in facts]
    assert kinds[0] == "begin" and kinds[-2:] == ["end", "mark"]
    size = sum(file.stat().st_size for file in (tmp_path / FACTS_FOLDER).iterdir())
    assert 50 < len(facts) < 200 and size < MOST_BYTES + (1 << 10)


def test_the_last_mark_of_a_rank_that_was_aborted_comes_back_with_its_file(tmp_path: Path) -> None:
    for rank in (0, 1):
        kept = FactRecord()
        kept.begin(tmp_path / FACTS_FOLDER, rank, 2)
        for number in (8, 9):
            kept.mark(number, f"0\t{rank}\tall_reduce")
        if not rank:
            kept.end()
    before = [path.stat().st_size for path in sorted((tmp_path / FACTS_FOLDER).glob("*.jsonl"))]
    settle(tmp_path, [0, 1, 2])
    after = [path.stat().st_size for path in sorted((tmp_path / FACTS_FOLDER).glob("*.jsonl"))]
    assert after[0] == before[0] and after[1] > before[1]
    (tmp_path / FACTS_FOLDER / "rank-1.mark").unlink()
    last = FactReader(tmp_path).read()[1][-1]
    assert (last["number"], last["text"]) == (9, "0\t1\tall_reduce")


def test_facts_of_an_earlier_attempt_and_torn_lines_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank, attempt in ((0, "1"), (1, "2"), (2, "2")):
        monkeypatch.setenv(record.ATTEMPT_VARIABLE, attempt)
        kept = FactRecord()
        kept.begin(tmp_path / FACTS_FOLDER, rank, 3)
        kept.note("module", of="module 0", ranks=[1, 2], names=[])
    with (tmp_path / FACTS_FOLDER / "rank-2.jsonl").open("ab") as file:
        file.write(b"\xff{\n" + json.dumps({"kind": "end"}).encode())
    facts = FactReader(tmp_path).read()
    assert list(facts) == [1, 2]
    assert [fact["kind"] for fact in facts[2]] == ["begin", "module"]
    assert FactComparison(tmp_path).compare() == () == FactComparison(tmp_path / "none").compare()


def test_a_machine_without_rank_0_reads_its_own_ranks_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a shared folder would else be read as often as the square of its machines."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    for rank in range(3):
        kept = FactRecord()
        kept.begin(tmp_path / FACTS_FOLDER, rank, 3)
        kept.note(**MODULE)
        kept.note(**weights(1, float(rank > 0)))
    for ranks, are_seen in (((0,), True), ((1, 2), False)):
        processes = tuple(ProcessSpec(f"rank {n}", "workers", n, n, {}) for n in ranks)
        watch = DeviationWatch(tmp_path, Launch(processes, "/"))
        watch.finish(None)
        assert bool(watch.note) is are_seen


@pytest.mark.parametrize(
    ("ranks", "text"),
    [(range(1024), "0-1023"), ([3, 1, 0, 8], "0-1,3,8"), ([5], "5"), ((), "")],
)
def test_ranks_are_a_short_text_and_the_list_of_earlier_files(ranks: Any, text: str) -> None:
    assert spans(ranks) == text
    assert ranks_in(text) == tuple(sorted(ranks))
    assert ranks_in(list(ranks)) == tuple(ranks)


def test_a_file_is_read_from_where_it_was_read_to(tmp_path: Path) -> None:
    first, second = FactRecord(), FactRecord()
    for rank, kept in enumerate((first, second)):
        kept.begin(tmp_path / FACTS_FOLDER, rank, 2)
        kept.note(**calls((1, "all_reduce", "4", "line 2", False)))
    reader = FactReader(tmp_path)
    before = reader.read()
    assert before[0][1]["calls"][0] is before[1][1]["calls"][0], "alike in both"
    with (tmp_path / FACTS_FOLDER / "rank-0.jsonl").open("ab") as file:
        file.write(b'{"kind":"torn"')
        file.flush()
        assert reader.read() == before
        file.write(b"}\n")
    assert [fact["kind"] for fact in reader.read()[0]] == ["begin", "collectives", "torn"]


@pytest.mark.parametrize("next_attempt", ["1", "2"], ids=["same attempt", "next attempt"])
@pytest.mark.parametrize("facts", [0, 5], ids=["shorter", "longer"])
def test_a_file_that_was_written_anew_is_read_anew(
    facts: int, next_attempt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, kinds = FactReader(tmp_path), []
    for attempt, count, kind in (("1", 2, "of first"), (next_attempt, facts, "of next")):
        monkeypatch.setenv(record.ATTEMPT_VARIABLE, attempt)
        kept = FactRecord()
        kept.begin(tmp_path / FACTS_FOLDER, 0, 2)
        for _ in range(count):
            kept.note(kind)
        kinds.append([fact["kind"] for fact in reader.read()[0]])
    assert kinds == [["begin", "of first", "of first"], ["begin", *["of next"] * facts]]


def test_ranks_are_compared_for_a_part_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0, 1.0, 5.0, 12.0, 12.5])
    monkeypatch.setattr(comparing, "time", SimpleNamespace(monotonic=lambda: next(times)))
    comparison, kept = FactComparison(tmp_path), [FactRecord(), FactRecord()]
    for rank, one in enumerate(kept):
        one.begin(tmp_path / FACTS_FOLDER, rank, 2)
        one.note(**MODULE)
        one.note(**weights(0, 0.5))
    assert comparison.look() == ()  # which took a second
    for rank, one in enumerate(kept):
        one.note(**weights(1, 0.5 + rank))
    assert comparison.look() == (), "five seconds later"
    assert [deviation.code for deviation in comparison.look()] == ["weights.differ"]


def test_the_last_comparison_has_what_a_thread_is_about_to_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(2):
        kept = FactRecord()
        kept.begin(tmp_path / FACTS_FOLDER, rank, 2)
        kept.note(**MODULE)
        kept.note(**weights(1, float(rank)))
    begun, goes_on = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> list[Deviation]:
        begun.set()
        assert goes_on.wait(60)
        return compare(*arguments)

    monkeypatch.setattr(comparing, "compare", slow)
    comparison = FactComparison(tmp_path)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(comparison.compare)
        assert begun.wait(60)
        last = pool.submit(comparison.compare)
        wait([last], timeout=0.2)
        goes_on.set()
        assert first.result() == last.result() != ()
