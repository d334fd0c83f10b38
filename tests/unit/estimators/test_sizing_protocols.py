"""Traces under three protocols: ratios to the best peer, what is left to gain, where ours loses."""

import math
from dataclasses import replace

import polars as pl
import pytest

from benchmarks.sizing import trace_of
from benchmarks.sizing.peers import peers
from benchmarks.sizing.protocols import ALL, LADDER, frames, study_traces
from tests.unit.estimators.toys import drawn

QUICK = ("p75 x 1.1", "max seen")


def methods():
    return {name: each for name, each in peers().items() if name in QUICK}


@pytest.fixture(scope="module")
def study():
    traces = [
        trace_of(pl.concat([drawn(60, seed=i), drawn(60, seed=i + 5, process="b")]), name=name)
        for i, name in enumerate(("one", "two"))
    ]
    return study_traces(traces, peers=methods, seeds=(1, 2), n_boot=100, seed=1)


def test_the_ratio_is_the_geometric_mean_over_traces(study):
    assert list(study.protocols) == ["drawn", "submitted", "published"]
    for protocol in study.protocols.values():
        ratios = protocol.ours["ratio"]
        assert protocol.ratio == pytest.approx(math.exp(ratios.log().mean()))
        assert protocol.ratio_lo <= protocol.ratio <= protocol.ratio_hi
        assert (protocol.ours["waste_gbh"] / protocol.ours["best_gbh"]).to_list() == pytest.approx(
            ratios.to_list()
        )


def test_the_last_row_is_of_all_traces(study):
    rows = study.main.by_trace
    assert rows["trace"].to_list() == ["one", "two", ALL]
    last = rows.row(-1, named=True)
    assert last["ratio"] == study.main.ratio
    assert last["failures"] == pytest.approx(rows["failures"][:2].sum())
    assert study.by_protocol.row(-1, named=True)["submitted"] == study.protocols["submitted"].ratio


@pytest.mark.parametrize(
    ("ratio", "over", "met"),
    [(0.5, -1.0, True), (0.8, -1.0, False), (0.5, 2.0, False), (1.2, -1.0, False)],
)
def test_the_target_is_met_by_every_trace_without_more_kills(study, ratio, over, met):
    mine = pl.col("method") == LADDER
    summary = study.main.comparison.summary.with_columns(
        ratio=pl.when(mine).then(ratio).otherwise("ratio"),
        failures_over=pl.when(mine).then(over).otherwise("failures_over"),
    )
    main = replace(
        study.main, ratio=ratio, comparison=replace(study.main.comparison, summary=summary)
    )
    assert replace(study, protocols=study.protocols | {"drawn": main}).meets(0.7) is met


def test_runs_are_counted_once(study):
    assert study.n_runs == 168  # 70 % of four types of 60 runs


def test_every_method_is_in_the_table_once(study):
    rows = study.main.by_method
    assert set(rows["method"]) == {*QUICK, LADDER}
    assert rows["ratio"].is_sorted()
    ours = rows.filter(method=LADDER).row(0, named=True)
    assert ours["ratio"] == pytest.approx(study.main.ratio)
    assert ours["one"] == study.main.ours["waste_gbh"][0]


def test_a_method_that_lacks_a_trace_has_no_mean_ratio(study):
    summary = study.main.comparison.summary
    lacking = summary.filter(~((pl.col("trace") == "two") & (pl.col("method") == "max seen")))
    main = replace(study.main, comparison=replace(study.main.comparison, summary=lacking))
    last = main.by_method.row(-1, named=True)
    assert (last["method"], last["ratio"], last["two"]) == ("max seen", None, None)


def test_knowing_the_other_runs_is_drawn_where_it_would_be(study):
    knowing = study.ratios.filter(role="knowing")
    expected = study.main.ours["ratio"] / study.limits["over_knowing"]
    assert knowing["ratio"].to_list() == pytest.approx(expected.to_list())
    assert study.ratios.filter(role="peer")["ratio_lo"].null_count() == 4


def test_types_are_shown_from_both_ends(study):
    rows = study.extreme_types(1)
    assert rows["short"].to_list() == [each.split(":")[-1] for each in rows["process"]]
    gaps = study.types["difference_gbh"]
    expected = [gap for gap in (gaps.max(), gaps.min()) if gap]
    if gaps.max() > 0:
        assert rows["mark"].to_list()[0] == "worst"
    assert set(rows["difference_gbh"]) <= set(expected)
    assert study.heaviest["share"].is_between(0.5, 1).all()  # of two types each


def test_what_was_not_run_on_every_trace_is_named(study):
    assert study.not_everywhere == ["Sizey", "Witt wastage"]
    kept = study.main.comparison.summary.with_columns(
        method=pl.col("method").replace({QUICK[0]: "Sizey"})
    )
    main = replace(study.main, comparison=replace(study.main.comparison, summary=kept))
    some = replace(study, protocols={"drawn": main})
    assert some.not_everywhere == ["Witt wastage"]


def test_frames_of_a_study_are_those_of_its_protocols(study):
    written = frames(study)
    assert set(written) == {
        *("limits", "all_types", "traces", "drawn", "drawn_orders"),
        *("submitted", "submitted_orders", "published", "published_orders"),
    }
    assert study.n_lost == (study.types["difference_gbh"] > 0).sum()
    assert study.to_dict()["kills"]["drawn"] == (study.main.failures, study.main.failures_peer)
