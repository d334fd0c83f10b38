"""Curves of the network weight: a planted curve is found again, scores are those of the libraries, bad data are refused."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import ndcg_score

from brokerlab.brokerage.curves import ThroughputCurve
from brokerlab.brokerage.network_weight import NetworkSettings, throughput_curve
from brokerlab.calibrate.network_curve import (
    compare,
    files_per_unit,
    fit_exchange,
    fit_fallback,
    fit_steps,
    from_metrics,
    from_transfers,
    importance,
    judge,
    mirror_groups,
    prove_exchange,
    prove_fallback,
    resolution,
    told_apart,
    unseen,
)
from brokerlab.calibrate.network_curve.alternatives import sites
from brokerlab.calibrate.network_curve.scores import weighted_ndcg, weighted_spearman
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.intervals import CONFIDENCE, bootstrap_totals, percentile_interval
from tests.unit.calibrate import network_toys as toys

QUICK = {"n_boot": 60, "seed": 1}


@pytest.fixture(scope="module")
def fit():
    return fit_steps(toys.planted(), most=5, **QUICK)


def test_a_planted_curve_is_recovered_within_its_intervals(fit):
    assert fit.useful
    steps = fit.steps.filter(pl.col("mbps_above").is_not_null())
    for edge in toys.EDGES:
        near = steps.filter(pl.col("mbps_above_lo") * 0.95 <= edge, edge <= pl.col("mbps_above_hi") * 1.05)  # fmt: skip
        assert near.height, (edge, steps)
    low, high = np.log(toys.HEIGHTS[0]), np.log(toys.HEIGHTS[-1])
    weights = fit.curve.weights(np.array([0.05, 1.0, 10.0, 100.0]))
    expected = 1 + (np.log(toys.HEIGHTS) - low) / (high - low)
    assert weights == pytest.approx(expected, abs=0.05)


def test_steps_beyond_the_planted_ones_bring_little(fit):
    errors = fit.by_size["error"].to_numpy()
    assert errors[3] < 0.2 * errors[0]
    assert errors[3] == pytest.approx(0.25, rel=0.2)  # the square of the planted noise
    assert fit.by_size.filter("chosen")["n_steps"].to_list() == [3]


@pytest.mark.parametrize("seed", range(6))
def test_a_curve_is_monotone_whatever_the_data(seed):
    rng = np.random.default_rng(seed)
    falling = toys.planted(200, seed=seed).with_columns(
        outcome=pl.Series(np.exp(rng.normal(size=200))) / pl.col("mbps") ** (seed % 3)
    )
    try:
        fit = fit_steps(falling, most=6, n_boot=20)
    except InsufficientDataError:
        return  # nothing rises: no edge
    weights = [fit.curve.lowest, *fit.curve.weight]
    assert weights == sorted(weights)
    assert ThroughputCurve.from_frame(fit.curve.to_frame()) == fit.curve
    if seed % 3:
        assert not fit.useful


def test_mirrored_links_count_once_and_stay_on_one_side():
    values = pl.DataFrame({"a": [1.0, 1.0, 2.0, None, None], "b": [None, None, 2.0, None, None]})
    groups = mirror_groups(values).to_numpy()
    assert groups[0] == groups[1]
    assert len(set(groups)) == 4
    numbers = np.repeat(np.arange(50), 3)
    hidden = unseen(numbers, share=0.5, seed=1)
    assert hidden.sum() == 75
    assert all(len(set(hidden[numbers == g])) == 1 for g in range(50))
    rows = toys.planted(400)
    twice = pl.concat([rows, rows])
    assert fit_steps(twice, n_boot=20).n_links == 400


def test_scores_of_resamples_are_those_of_the_libraries():
    rng = np.random.default_rng(2)
    for _ in range(20):
        n = int(rng.integers(20, 120))
        outcome, weight = rng.integers(0, 9, n) * rng.random(n), rng.integers(0, 7, n).astype(float)
        counts = rng.integers(0, 3, n).astype(float)
        drawn = np.repeat(np.arange(n), counts.astype(int))
        one = np.zeros(n, dtype=np.int64)
        top = max(1, round(0.1 * len(drawn)))
        found = weighted_spearman(outcome, weight, one, counts[None])[0]
        assert found == pytest.approx(spearmanr(outcome[drawn], weight[drawn])[0], abs=1e-12)
        found = weighted_ndcg(outcome, weight, counts[None])[0]
        assert found == pytest.approx(ndcg_score(outcome[None, drawn], weight[None, drawn], k=top))


def test_within_destinations_is_the_mean_of_each():
    rng = np.random.default_rng(3)
    query = np.repeat([0, 1, 2], [10, 20, 3])  # the last one is too small to count
    outcome, weight = rng.random(33), rng.random(33)
    each = [spearmanr(outcome[query == q], weight[query == q])[0] for q in (0, 1)]
    found = weighted_spearman(outcome, weight, query, np.ones((1, 33)))[0]
    assert found == pytest.approx((10 * each[0] + 20 * each[1]) / 30)


def test_intervals_within_few_destinations_are_those_of_few_units():
    rows = toys.planted(200).with_columns(dst=pl.format("D{}", pl.int_range(pl.len()) % 4))
    asked = {"reference": "fitted", "measures": ("spearman_within",), **QUICK}

    def within(of: pl.DataFrame) -> dict[str, float | None]:
        weights = {"fitted": of["mbps"].to_numpy()}
        return compare(of, weights, **asked).of("fitted", "spearman_within")

    found = within(rows.with_columns(query="dst"))
    drawn = bootstrap_totals(np.eye(4), n_boot=60, seed=1)[:, rows["dst"].str.tail(1).cast(pl.Int64).to_numpy()]  # fmt: skip
    query = rows["dst"].str.tail(1).cast(pl.Int64).to_numpy()
    values = weighted_spearman(rows["outcome"].to_numpy(), rows["mbps"].to_numpy(), query, drawn)
    low, high = percentile_interval(
        values[:, None], CONFIDENCE, n_tasks=4
    )  # destinations, not links
    assert (found["value_lo"], found["value_hi"]) == pytest.approx((low[0], high[0]))
    alone = within(rows.with_columns(dst=pl.lit("D"), query=pl.lit("D")))
    assert (alone["value_lo"], alone["value_hi"]) == (None, None)


def test_the_proof_tells_a_better_curve_from_an_equal_one(fit):
    later = toys.planted(500, seed=9, stage="proof")
    mbps = later["mbps"].to_numpy()
    document = throughput_curve().weights(mbps)
    shifted = 3 * document  # ranks alike
    weights = {"document": document, "fitted": fit.curve.weights(mbps), "equal": shifted}
    scores = compare(later, weights, reference="document", **QUICK)
    better = judge(scores)
    assert better.outcome == "better"
    assert 0 < better.diff_lo < better.diff < better.diff_hi
    assert judge(scores, sites_behind=-0.1).outcome == "demand"
    equal = judge(scores, proposed="equal")
    assert (equal.outcome, equal.diff, equal.diff_lo, equal.diff_hi) == ("not_proven", 0, 0, 0)
    assert judge(compare(later, {**weights, "fitted": -mbps}, reference="document", **QUICK)).outcome == "worse"  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_where_the_document_is_right_nothing_better_is_proven(seed):
    """What links deliver follows the document's own steps: the fitted curve may come near, not pass it."""
    current = throughput_curve()
    parts = []
    for stage, n, draw in (("choice", 600, seed), ("proof", 400, seed + 50)):
        rows = toys.planted(n, seed=draw, stage=stage)
        noise = np.random.default_rng(draw).normal(size=n)
        true = np.exp(6 * current.weights(rows["mbps"].to_numpy()) + noise)
        parts.append(rows.with_columns(outcome=pl.Series(true)))
    choice, proof = parts
    mbps = proof["mbps"].to_numpy()
    weights = {
        "document": current.weights(mbps),
        "fitted": fit_steps(choice, n_boot=20).curve.weights(mbps),
    }
    found = judge(compare(proof, weights, reference="document", **QUICK))
    assert found.outcome != "better"
    assert found.diff_hi < 0.02


def test_names_of_sites_rank_links_that_were_asked_by_their_sites():
    rng = np.random.default_rng(4)
    rows = toys.planted(900)
    sizes = {name: rng.normal() * 2 for name in sorted({*rows["src"], *rows["dst"]})}
    volume = pl.Series([np.exp(sizes[s] + sizes[d]) for s, d in rows.select("src", "dst").rows()])
    asked = rows.with_columns(outcome=volume)
    seen = pl.Series(rng.random(900) < 0.6)
    guess = sites(asked.filter(~seen), asked.filter(seen))
    assert spearmanr(guess, asked.filter(~seen)["outcome"])[0] > 0.9


def test_resolution_counts_pairs():
    rows = pl.DataFrame({"mbps": [0.5, 0.6, 5.0, 6.0], "outcome": [1.0, 100.0, 50.0, 200.0]})
    curve = ThroughputCurve((1.0,), (2.0,), 1.0)
    found = told_apart(rows, curve)
    assert found == {"n_used": 2, "largest": 0.5, "tied": 2 / 6, "tied_far": 0.5, "right": 0.75}
    steps = resolution(rows, curve)
    assert steps["beats_below"].to_list() == [None, 0.75]
    assert steps["share"].to_list() == [0.5, 0.5]


def test_transfers_in_nested_windows_become_periods_that_follow_each_other():
    table = toys.windows()
    found = from_transfers(table)
    assert found.facts["n_periods"] == 3
    rows = found.rows.filter(src="S00", dst="D0").sort("stage")
    whole, half, week = (
        table.filter(src_site="S00", dst_site="D0", from_date=table["to_date"][0] - timedelta(days=d))["bytes_xs"][0]
        for d in (28, 14, 7)
    )  # fmt: skip
    rate = 1024**2 * 86400
    assert rows["mbps"].to_list() == pytest.approx([(whole - half) / 14 / rate, (half - week) / 7 / rate])  # fmt: skip
    assert rows["outcome"].to_list() == pytest.approx([(half - week) / 7 / rate, week / 7 / rate])
    assert "1 to 15 March 2026 → 15 to 22 March 2026" in found.stages["choice"]


def test_a_series_of_snapshots_predicts_the_next_day():
    found = from_metrics(toys.snapshots())
    assert found.source == "snapshots"
    assert found.later_queues
    proof = found.rows.filter(stage="proof")
    table = toys.snapshots()
    row = proof.drop_nulls("mbps").row(0, named=True)
    day = row["query"].split(" ", 1)[1][:10]
    same = table.filter(src=row["src"], dst=row["dst"])
    at = same.filter(pl.col("ts").dt.date().cast(pl.String) == day, key="dashb_mbps_1h")
    next_day = same.filter(pl.col("ts") == at["ts"][0] + timedelta(days=1), key="dashb_mbps_1d")
    assert (row["mbps"], row["outcome"]) == (at["value"][0], next_day["value"][0])
    assert found.facts["n_links"] == 60
    assert found.facts["n_with_mbps"] == 40
    choice, later = (
        found.rows.filter(stage=s)["query"].str.slice(-26) for s in ("choice", "proof")
    )
    assert choice.max() < later.min()


def test_windows_of_one_snapshot_are_taken_apart_where_they_are_volumes():
    found = from_metrics(toys.one_snapshot())
    assert found.facts["n_above_volume"] == 0
    assert "6 days before the last day" in found.stages["choice"]
    day = toys.one_snapshot().pivot("key", index=["src", "dst"], values="value")
    middle = (day["dashb_mbps_1d"] * 24 - day["dashb_mbps_1h"]) / 23
    proof = day.select("src", "dst", middle=middle).join(found.rows.filter(stage="proof"), on=["src", "dst"])  # fmt: skip
    assert proof["mbps"].to_list() == pytest.approx(proof["middle"].to_list())
    nested = from_metrics(toys.one_snapshot(factor=100))
    assert nested.facts["n_above_volume"] > 0
    assert "inside the week" in nested.stages["choice"]


def test_closeness_earns_what_its_links_deliver():
    rows = toys.planted(800).with_columns(
        outcome=pl.when(pl.col("closeness") <= 3).then(150.0).otherwise(5.0)
    )
    fit = fit_fallback(rows, throughput_curve(), **QUICK)
    found = dict(fit.table.select("closeness", "weight").rows())
    assert (found[1.0], found[3.0], found[4.0], found[11.0]) == (1.9, 1.9, 1.2, 1.2)
    assert fit.table["line"].to_list() == pytest.approx([1 + (11 - c) / 11 for c in fit.table["closeness"]])  # fmt: skip
    scores = prove_fallback(rows, throughput_curve(), fit, **QUICK)
    assert scores.of("fitted")["diff"] > 0
    assert fit.at(pl.Series([None, 2.5], dtype=pl.Float64)).tolist() == [1.2, 1.9]


def queues(n: int = 300, *, stage: str = "choice", seed: int = 1) -> pl.DataFrame:
    """Queues that are delivered so that 40 files weigh as much as 1 of throughput weight."""
    rng = np.random.default_rng(seed)
    mbps = np.exp(rng.uniform(-1, 6, n))
    queued = np.round(np.exp(rng.uniform(0, 6, n))) + 1
    worth = throughput_curve().weights(mbps) - queued / 40
    return toys.planted(n, stage=stage).with_columns(
        mbps=pl.Series(mbps), n_queued=pl.Series(queued), wait_h=pl.Series(np.exp(-worth / 20))
    )


def test_the_planted_exchange_is_found_and_proven():
    settings = NetworkSettings()
    fit = fit_exchange(queues(), throughput_curve(), settings, **QUICK)
    assert (fit.current, fit.at_edge) == (150, False)
    assert fit.files_lo <= 47
    assert fit.files_hi >= 31
    assert fit.files == pytest.approx(40, rel=0.3)
    later = queues(stage="proof", seed=5)
    scores = prove_exchange(later, throughput_curve(), fit, **QUICK)
    assert judge(scores).outcome == "better"
    assert scores.of("fitted")["value"] > max(scores.of("queue_only")["value"], scores.of("throughput_only")["value"])  # fmt: skip


def test_slope_cap_and_importance_are_one_number():
    assert files_per_unit(NetworkSettings(0.5, 150)) == 150
    assert files_per_unit(NetworkSettings(0.75, 450)) == pytest.approx(150)
    assert files_per_unit(NetworkSettings(0, 150)) == float("inf")
    assert importance(files_per_unit(NetworkSettings(0.3, 200)), 200) == pytest.approx(0.3)


@pytest.mark.parametrize("importance_now", [0.0, 1.0])
def test_one_part_alone_can_be_the_current_setting(importance_now):
    fit = fit_exchange(queues(), throughput_curve(), NetworkSettings(importance_now), n_boot=20)
    scores = prove_exchange(queues(stage="proof"), throughput_curve(), fit, n_boot=20)
    alone = "queue_only" if importance_now else "throughput_only"
    assert scores.of("current")["value"] == scores.of(alone)["value"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fit_steps(toys.planted(20)), "20 links have a throughput"),
        (lambda: fit_steps(toys.planted().with_columns(mbps=pl.lit(3.0))), "same throughput, 3 MB/s"),
        (lambda: fit_steps(toys.planted().with_columns(outcome=pl.lit(2.0))), "same later throughput"),
        (lambda: fit_steps(toys.planted().with_columns(outcome=pl.lit(None, pl.Float64))), "0 links"),
        (lambda: from_transfers(toys.windows(spans=(7,))), r"1 period\(s\)"),
        (lambda: from_transfers(toys.windows(spans=(14, 7))), "3 are needed"),
        (lambda: from_transfers(toys.windows().clear()), "no window"),
        (lambda: from_metrics(toys.snapshots(days=3)), "snapshots at 2 instants"),
        (lambda: from_metrics(toys.snapshots().filter(key="AGIS_closeness")), "no link has a throughput"),
        (lambda: fit_fallback(toys.planted().with_columns(closeness=pl.lit(4.0)), throughput_curve()), "1 values of closeness"),
        (lambda: fit_exchange(queues(30), throughput_curve(), NetworkSettings()), "30 links have files"),
        (lambda: compare(toys.planted(5), {"a": np.arange(5.0)}, reference="a"), "5 links to score"),
    ],
)  # fmt: skip
def test_data_that_cannot_answer_are_refused(make, words):
    with pytest.raises(InsufficientDataError, match=words):
        make()


def test_impossible_settings_are_refused():
    with pytest.raises(ConfigError, match="steps=0"):
        fit_steps(toys.planted(), most=0)
    with pytest.raises(ConfigError, match=r"NW_QUEUE_IMPORTANCE is 1\.5"):
        fit_exchange(queues(), throughput_curve(), NetworkSettings(1.5))


REAL = Path(__file__).parents[3] / os.environ.get("BROKERLAB_DATA", "../shared/data")


@pytest.mark.real_data
@pytest.mark.skipif(not REAL.is_dir(), reason="the shared real data are not here")
def test_real_transfers_measure_demand():
    """The names of the sites rank unseen links as well as any curve of their own throughput."""
    table = pl.read_parquet(REAL / "atlas-ddm-transfers-2019" / "transfers.parquet").with_columns(
        pl.col("from_date", "to_date").str.to_datetime(time_unit="us")
    )
    found = from_transfers(table)
    assert found.facts["n_periods"] == 3
    assert found.facts["n_negative"] == 0
    hidden = pl.Series(unseen(found.rows["group"].to_numpy(), share=0.5, seed=1))
    seen = found.rows.filter(~hidden).filter(stage="choice").drop_nulls(["mbps", "outcome"])
    proof = found.rows.filter(hidden).filter(stage="proof").drop_nulls(["mbps", "outcome"])
    mbps = proof["mbps"].to_numpy()
    fit = fit_steps(seen, n_boot=20)
    weights = {
        "document": throughput_curve().weights(mbps),
        "fitted": fit.curve.weights(mbps),
        "sites": sites(proof, seen),
    }
    scores = compare(proof, weights, reference="document", n_boot=50)
    assert scores.of("fitted")["diff_lo"] > 0.08
    assert scores.of("sites")["value"] > scores.of("fitted")["value"] > 0.78
