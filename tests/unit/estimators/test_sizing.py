"""Traces, scoring and the online order: what is kept, what an attempt costs, what is known when."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sizing import (
    Method,
    Run,
    compare,
    read_trace,
    size,
    size_knowing_others,
    trace_of,
)
from benchmarks.sizing.peers import peers
from benchmarks.sizing.peers.rules import ConformalBound, Percentile, Presets
from benchmarks.sizing.scoring import score
from brokerlab.errors import ConfigError, DataError, InsufficientDataError, SchemaError
from tests.unit.estimators.toys import drawn, runs

ALL = peers()
HOUR_MS = 3_600_000.0


class Ladder:
    """Names the same allocations for every run."""

    def __init__(self, *steps):
        self.steps = steps

    def start(self, history):
        pass

    def allocate(self, _run):
        return self.steps[0]

    def retry(self, _run, failed_b):
        return self.steps[len(failed_b)]

    def reveal(self, run, memory_b, runtime_s):
        pass


def test_a_killed_attempt_loses_all_and_the_last_one_what_is_left():
    scored = score(Ladder(1e9, 2e9, 5e9), Run(0.0, math.nan), 3e9, HOUR_MS)
    assert (scored.failures, scored.last_b) == (2, 5e9)
    assert scored.waste == (1e9 + 2e9 + (5e9 - 3e9)) * HOUR_MS


def test_an_allocation_of_exactly_the_memory_is_enough():
    scored = score(Ladder(3e9), Run(0.0, math.nan), 3e9, HOUR_MS)
    assert (scored.failures, scored.waste) == (0, 0.0)


@pytest.mark.parametrize("second", [1e9, 0.5e9, math.nan])
def test_a_retry_that_is_not_larger_is_refused(second):
    with pytest.raises(DataError, match="Ladder: attempt 2 gets"):
        score(Ladder(1e9, second), Run(0.0, math.nan), 3e9, HOUR_MS)


def test_types_are_kept_as_published():
    frame = pl.concat(
        [
            runs([1e9] * 33, process="few"),
            runs([1e9] * 40, process="kept"),
            runs([1e9] * 40, process="short", runtime=[1_000] * 39 + [0]),
            runs([0] * 40, process="unmeasured"),
            runs([1e9] * 34, process="just enough"),
        ]
    )
    trace = trace_of(frame, name="toy")
    assert [each.process for each in trace.types] == ["kept", "just enough"]
    assert trace.left_out.rows() == [
        ("few", 33, "fewer than 34 runs"),
        ("short", 40, "1 runs too short to be measured"),
    ]


def test_a_seed_permutes_and_submit_keeps_the_order_of_time():
    task_type = trace_of(drawn(40), name="toy").types[0]
    past, arrivals = task_type.split(1996)
    order = np.random.RandomState(1996).permutation(40)
    assert arrivals.tolist() == order[:28].tolist()
    assert past.tolist() == order[28:].tolist()
    past, arrivals = task_type.split("submit")
    assert np.concatenate([past, arrivals]).tolist() == list(range(40))


@pytest.mark.parametrize("order", ["submit", 3])
@settings(max_examples=5)
@given(cut=st.integers(0, 27), factor=st.floats(0.2, 5.0))
def test_no_method_looks_ahead(order, cut, factor):
    """What comes later, and the truth of the run itself, changes no allocation made before."""
    frame = drawn(40)
    arrivals = trace_of(frame, name="toy").types[0].split(order)[1]
    later = pl.Series(range(40)).is_in(arrivals[cut:].tolist())
    changed = frame.with_columns(
        pl.when(later).then((pl.col(name) * factor).cast(pl.Int64)).otherwise(name).alias(name)
        for name in ("rss", "peak_rss", "realtime")
    )
    before, after = (
        size(trace_of(each, name="toy"), peers(shared=False), order=order).filter(
            pl.col("arrival") <= cut
        )
        for each in (frame, changed)
    )
    assert before["first_b"].to_list() == after["first_b"].to_list()


def test_the_shared_errors_of_the_published_code_do_look_ahead():
    frame = drawn(40)
    changed = frame.with_columns(
        peak_rss=pl.when(pl.col("submit") < 39_000).then("peak_rss").otherwise(1)
    )
    last = []
    for each in (frame, changed):
        sized = size(trace_of(each, name="toy"), peers()).filter(method="Witt LR under")
        last.append(sized["first_b"].head(27).to_list())
    assert last[0] != last[1]


@pytest.mark.parametrize("name", ALL)
def test_constant_memory_costs_nothing_but_the_margin(name):
    margins = {"presets": 10.0, "p75 x 1.1": 1.1, "p90 x 1.15": 1.15, "p99 x 1.1": 1.1}
    sized = size(trace_of(runs([1e9] * 40), name="toy"), {name: peers()[name]})
    assert sized["failures"].sum() == 0
    margin = margins.get(name, 1.0)
    if name == "conformal 95 %":
        margin = 1.1  # up to 18 values: none bounds the next at 95 %
        sized = sized.head(6)
    assert sized["first_b"].to_list() == pytest.approx([margin * 1e9] * sized.height)


def test_the_comparison_sums_and_ranks():
    methods = {"low": Method(lambda: Percentile(50)), "high": Method(lambda: Percentile(100, 1.2))}
    traces = [
        trace_of(pl.concat([drawn(40, seed=i, process=str(i)) for i in range(3)]), name="toy")
    ]
    result = compare(traces, lambda: methods, peers=["high"], orders=[1, "submit"], n_boot=50)
    sized = pl.concat(size(traces[0], methods, order=o, truth=None) for o in (1, "submit"))
    low = sized.filter(pl.col("method") == "low")
    row = result.summary.filter(method="low").row(0, named=True)
    assert row["waste_gbh"] == pytest.approx(low["waste_gbh"].sum() / 2)
    assert row["failures"] == low["failures"].sum() / 2
    assert row["coverage"] == pytest.approx((low["failures"] == 0).mean())
    assert row["ratio_lo"] <= row["ratio"] <= row["ratio_hi"]
    assert result.ratio("high") == 1.0
    assert result.summary.filter(method="high")["orders_won"].item() == 0


def test_sizing_from_all_other_runs():
    trace = trace_of(pl.concat([drawn(40), drawn(36, process="b")]), name="toy")
    sized = size_knowing_others(trace, Method(lambda: Percentile(100)), folds=76)
    assert sized.select("process", "row").is_unique().all()
    assert sized.height == 76
    memory = trace.types[0].peak_rss_b
    largest = np.array([np.delete(memory, row).max() for row in range(40)])
    first = sized.filter(process="a").sort("row")["first_b"].to_numpy()
    assert first.tolist() == largest.tolist()
    with pytest.raises(ConfigError, match="folds 1"):
        size_knowing_others(trace, Method(lambda: Percentile(100)), folds=1)


def test_what_cannot_be_compared_is_refused(tmp_path):
    trace = trace_of(drawn(40), name="toy")
    with pytest.raises(ConfigError, match="peer 'max sen': did you mean 'max seen'"):
        compare([trace], peers, peers=["max sen"])
    with pytest.raises(ConfigError, match="level 1"):
        ConformalBound(1.0)
    with pytest.raises(ConfigError, match="rank 101"):
        Percentile(101)
    with pytest.raises(DataError, match="presets need one"):
        Presets().allocate(Run(0.0, math.nan))
    with pytest.raises(InsufficientDataError, match="none of its 1 task types"):
        trace_of(drawn(10), name="toy")
    with pytest.raises(SchemaError, match="process"):
        trace_of(drawn(40).drop("process"), name="toy")
    with pytest.raises(DataError, match="a trace is a CSV file"):
        read_trace(tmp_path / "trace_none.csv")


def test_a_trace_is_read_as_written(tmp_path):
    path = tmp_path / "trace_toy.csv"
    drawn(40).with_columns(rchar=pl.lit("-"), extra=1).write_csv(path)
    trace = read_trace(path)
    assert trace.name == "toy"
    assert trace.types[0].input_b.tolist() == [0.0] * 40
