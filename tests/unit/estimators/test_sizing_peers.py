"""The published methods that learn: their models, their retries, what they waste, and the results that are kept."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from benchmarks.sizing import Method, Run, Store, compare, size, sized_types, trace_of
from benchmarks.sizing.peers import all_peers, slow
from benchmarks.sizing.peers import ensemble as ensemble_module
from benchmarks.sizing.peers.ensemble import WeightedEnsemble, best_offset
from benchmarks.sizing.peers.models import Family, accuracy, families
from benchmarks.sizing.peers.rules import LargestSeen, Percentile
from benchmarks.sizing.peers.wastage import LowWastageLine, waste
from benchmarks.sizing.scoring import score
from brokerlab.errors import DataError, InsufficientDataError
from tests.unit.estimators.toys import drawn, history, runs


@pytest.fixture
def few_candidates(monkeypatch):
    """Let the ensemble choose among two settings of each model: the choice is most of its time."""

    def fewer(rows):
        return [Family(each.candidates[:2], each.folds) for each in families(rows)]

    monkeypatch.setattr(ensemble_module, "families", fewer)


def test_the_most_accurate_settings_are_chosen():
    x = np.linspace(0, 1, 20)
    line, neighbours, _, _ = families(20)
    make, score_of_line = line.select(x, x + 1)
    assert score_of_line == pytest.approx(0.0, abs=1e-6)
    assert make().fit(x, x + 1).predict(np.array([3.0])) == pytest.approx(4.0)
    chosen, best = neighbours.select(x, x + 1)
    assert best == max(accuracy(each, x, x + 1, 10) for each in neighbours.candidates)
    assert chosen in neighbours.candidates


def test_an_error_counts_one_at_most():
    class Zero:
        def fit(self, _x, _y):
            return self

        def predict(self, x):
            return np.full(x.size, -9.0)

    assert accuracy(Zero, np.arange(4.0), np.ones(4), 2) == -1.0


def test_neighbours_of_a_short_history_are_few():
    assert len(families(3)[1].candidates) == 2
    assert len(families(40)[1].candidates) == 10


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        # both runs fit without an offset, so the least statistic wastes least
        ([-0.2, -0.4, 0.01], 0.0),
        # the spread of the sizes (0) leaves every run to fail once: 1.5 times half of it lost
        ([0.3, 0.3, 0.3], 0.3),
    ],
)
def test_the_offset_that_would_have_wasted_least(errors, expected):
    low = errors[-1] > 0.1
    predicted = np.full(2, 0.8e9 if low else 1e9)
    assert best_offset(np.array(errors), predicted, np.full(2, 1e9)) == pytest.approx(expected)


def test_a_single_error_gives_the_first_offset_for_spreads():
    assert best_offset(np.array([-0.5]), np.full(2, 1e9), np.full(2, 1e9)) == 0.05


def started(memory, input_b):
    sizer = WeightedEnsemble()
    sizer.start(history(memory, input_b=input_b))
    return sizer


@pytest.mark.usefixtures("few_candidates")
def test_the_ensemble_retries_as_published():
    inputs = np.arange(12.0)
    growing = started(1e9 + 1e8 * inputs, inputs)
    inside, beyond = Run(5.0, math.nan), Run(20.0, math.nan)
    assert growing.retry(inside, [1e9]) == 2.1e9  # the largest value seen
    assert growing.retry(inside, [2.05e9]) == 4.1e9  # which is too near
    assert growing.retry(beyond, [1e9]) == 2e9  # or the input larger than its
    falling = started(2.1e9 - 1e8 * inputs, inputs)
    assert falling.retry(beyond, [1e9]) == 2.1e9  # which tells nothing where memory falls
    assert started([1e9] * 12, inputs).allocate(inside) == pytest.approx(1.05e9)


@pytest.mark.long
@pytest.mark.usefixtures("few_candidates")
def test_the_ensemble_learns_and_does_not_look_ahead():
    frame = drawn(40)
    changed = frame.with_columns(
        peak_rss=pl.when(pl.col("submit") < 30_000).then("peak_rss").otherwise(1)
    )
    methods = {"Sizey": Method(WeightedEnsemble)}
    before, after = (size(trace_of(each, name="toy"), methods) for each in (frame, changed))
    same = before["first_b"].to_numpy() == after["first_b"].to_numpy()
    assert same[:19].all()  # the history ends with the 12th run: the 31st is the 19th arrival
    assert not same[19:].any()
    assert (before["last_b"] >= before["memory_b"]).all()
    assert before["first_b"].median() == pytest.approx(before["memory_b"].median(), rel=0.5)


@pytest.mark.long
@pytest.mark.usefixtures("few_candidates")
def test_errors_may_be_shared_by_task_types():
    frame = pl.concat([drawn(34), drawn(34, seed=1, process="b")])
    shared, own = (
        size(trace_of(frame, name="toy"), {"Sizey": slow(shared=each)["Sizey"]})
        for each in (True, False)
    )
    same = pl.Series(shared["first_b"] == own["first_b"])
    assert same.filter(shared["process"] == "a").all()
    assert not same.filter(shared["process"] == "b").any()


def test_the_closed_form_is_the_scoring_of_doubled_attempts():
    class Doubling(LargestSeen):
        def allocate(self, run):
            return run.input_b

    rng = np.random.default_rng(0)
    given, memory, hours = rng.uniform(1, 9, 50), rng.uniform(1, 9, 50), rng.uniform(1, 2, 50)
    scored = [
        score(Doubling(), Run(g, math.nan), m, t).waste
        for g, m, t in zip(given, memory, hours, strict=True)
    ]
    assert waste(given, memory, hours) == pytest.approx(sum(scored))


def test_the_line_of_least_waste_follows_the_input_and_learns_nothing_later():
    rng = np.random.default_rng(1)
    inputs = rng.uniform(1e9, 9e9, 20)
    line = LowWastageLine()
    line.start(history(1e9 + 0.5 * inputs, input_b=inputs))
    given = [line.allocate(Run(x, math.nan)) for x in (2e9, 8e9)]
    assert given == pytest.approx([2e9, 5e9], rel=0.1)
    line.reveal(Run(2e9, math.nan), 9e10, 100.0)
    assert line.allocate(Run(2e9, math.nan)) == given[0]
    assert line.retry(Run(2e9, math.nan), [3e9]) == 6e9


def test_the_line_of_least_waste_leaves_rare_peaks_to_a_second_attempt():
    line = LowWastageLine()
    line.start(history([1e9] * 38 + [8e9] * 2))
    assert line.allocate(Run(1e3, math.nan)) == pytest.approx(1e9, rel=0.1)


def toy_methods(calls):
    def make():
        calls.append(1)
        return Percentile(90)

    return lambda: {"quick": Method(LargestSeen), "slow": Method(make, slow=True)}


def test_results_of_slow_methods_are_kept_and_read(tmp_path):
    traces = [trace_of(drawn(40), name="toy")]
    calls = []
    methods = toy_methods(calls)
    settings = {"peers": ["quick", "slow"], "orders": [1, "submit"], "n_boot": 10}
    plain = compare(traces, methods, **settings)
    filled = compare(traces, methods, store=Store(tmp_path / "new"), **settings)
    n_calls = len(calls)
    read = compare(traces, methods, store=Store(tmp_path / "new", fills=False), **settings)
    assert (n_calls, len(calls)) == (4, 4)
    for each in (filled, read):
        assert_frame_equal(each.types, plain.types)
        assert_frame_equal(each.summary, plain.summary)
        assert each.left_out.is_empty()


def test_what_is_not_kept_is_left_out_and_told(tmp_path):
    trace = trace_of(drawn(40), name="toy")
    methods = toy_methods([])
    sized_types(trace, methods(), order=1, store=Store(tmp_path))
    settings = {"orders": [1, 2, 3], "n_boot": 10, "store": Store(tmp_path, fills=False)}
    found = compare([trace], methods, peers=["quick", "slow"], **settings)
    assert found.left_out.rows() == [("toy", "slow", 2)]
    assert found.summary["method"].to_list() == ["quick"]
    with pytest.raises(InsufficientDataError, match="trace 'toy': no results of slow are kept"):
        compare([trace], methods, peers=["slow"], **settings)
    with pytest.raises(InsufficientDataError, match="trace 'toy', order 2: no results of slow"):
        sized_types(trace, {"slow": methods()["slow"]}, order=2, store=settings["store"])


def test_a_result_belongs_to_its_runs_order_method_and_truth(tmp_path):
    store = Store(tmp_path)
    trace, other = (trace_of(runs([m] * 40), name="toy") for m in (1e9, 2e9))
    kept = pl.DataFrame({"process": ["a"]})
    store.put(trace, 1, "slow", "rss", kept)
    assert_frame_equal(store.get(trace, 1, "slow", "rss"), kept)
    assert store.get(other, 1, "slow", "rss") is None
    assert store.get(trace, 2, "slow", "rss") is None
    assert store.get(trace, 1, "slower", "rss") is None
    assert store.get(trace, 1, "slow", "peak_rss") is None
    assert [file.suffix for file in tmp_path.iterdir()] == [".parquet"]
    next(tmp_path.iterdir()).write_bytes(b"half")
    assert store.get(trace, 1, "slow", "rss") is None  # it is made again
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="name a folder that can be made"):
        Store(tmp_path / "file").put(trace, 1, "slow", "rss", kept)


def test_slow_peers_are_peers():
    assert list(all_peers())[-2:] == ["Witt wastage", "Sizey"]
    assert [name for name, each in all_peers().items() if each.slow] == list(slow())
