"""Curves of the network weight: a planted curve is found again, scores are those of the libraries, bad data are refused."""

from __future__ import annotations

import itertools
import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from brokerlab.brokerage.network_weight import NetworkSettings, ThroughputCurve, throughput_curve
from brokerlab.calibrate.network_curve import (
    Evidence,
    Weight,
    files_per_unit,
    fit_steps,
    from_metrics,
    from_transfers,
    study_curve,
    study_exchange,
    study_fallback,
    study_weights,
)
from brokerlab.calibrate.network_curve.curves import LEAST, resolution, step_curve, tied_share
from brokerlab.calibrate.network_curve.evidence import dealt, mirror_groups
from brokerlab.calibrate.network_curve.study import queue_facts
from brokerlab.calibrate.network_curve.weights import (
    COVERAGE,
    Ranked,
    at,
    earned,
    exchange_weights,
    fallback_weights,
    line,
    predict,
    rank_values,
    sites,
    throughput_weights,
    top_values,
)
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.intervals import studentise
from tests.unit.calibrate import network_toys as toys

QUICK = {"n_boot": 60, "seed": 1}


@pytest.fixture(scope="module")
def fit():
    return fit_steps(toys.planted(), most=5, **QUICK)


def test_a_planted_curve_is_recovered_within_its_intervals(fit):
    assert fit.useful
    for edge in toys.EDGES:
        assert min(abs(np.log(found / edge)) for found in fit.curve.mbps_above) < np.log(1.15)
    low, high = np.log(toys.HEIGHTS[0]), np.log(toys.HEIGHTS[-1])
    middles = np.array([0.05, 1.0, 10.0, 100.0])
    expected = 1 + (np.log(toys.HEIGHTS) - low) / (high - low)
    assert fit.curve.weights(middles) == pytest.approx(expected, abs=0.05)
    grid = fit.band["mbps"].to_numpy()
    for mbps, weight in zip(middles, expected, strict=True):
        near = fit.band.row(int(np.abs(np.log(grid / mbps)).argmin()), named=True)
        assert near["weight_lo"] - 1e-9 <= weight <= near["weight_hi"] + 1e-9


def test_steps_beyond_the_planted_ones_bring_little(fit):
    errors = fit.by_size["error"].to_numpy()
    assert errors[3] < 0.2 * errors[0]
    assert errors[3] == pytest.approx(0.25, rel=0.2)  # the square of the planted noise
    assert fit.by_size.filter("chosen")["n_steps"].to_list() == [3]


@pytest.mark.parametrize("bad", [np.inf, np.nan, None])
def test_links_without_a_finite_number_make_no_curve(bad):
    links = toys.planted(100)
    odd = links.with_columns(outcome=links["outcome"].scatter(0, bad))
    with pytest.raises(DataError, match="1 of 100 links without a finite mbps and outcome"):
        step_curve(odd)
    odd = odd.vstack(links)
    assert fit_steps(odd, n_boot=20).curve == fit_steps(odd[1:], n_boot=20).curve


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
    assert ThroughputCurve.from_frame(fit.curve.frame()) == fit.curve
    if seed % 3:
        assert not fit.useful


def test_mirrored_links_count_once_and_stay_on_one_side():
    values = pl.DataFrame({"a": [1.0, 1.0, 2.0, None, None], "b": [None, None, 2.0, None, None]})
    groups = mirror_groups(values).to_numpy()
    assert groups[0] == groups[1]
    assert len(set(groups)) == 4
    both = pl.concat([toys.planted(60, span=span) for span in (0, 1)])
    both = both.with_columns(group=pl.col("group") // 3)
    found = dealt(both, seed=1)
    assert found["span"].value_counts()["count"].to_list() == [30, 30]  # all links, each once
    assert found.group_by("group").agg(pl.col("span").n_unique())["span"].to_list() == [1] * 20
    assert found.group_by("group").len()["len"].to_list() == [3] * 20  # mirrored ones together
    rows = toys.planted(400)
    twice = pl.concat([rows, rows])
    assert fit_steps(twice, n_boot=20).n_links == 400


def test_the_means_of_values_are_the_measures_of_the_libraries():
    rng = np.random.default_rng(2)
    for _ in range(20):
        n = int(rng.integers(20, 120))
        outcome = np.round(rng.integers(0, 9, n) * rng.random(n), 1)
        weight = rng.integers(0, 7, n).astype(float)
        counts = rng.integers(1, 4, n)
        drawn = np.repeat(np.arange(n), counts)
        rows = counts.astype(float)
        found = np.average(rank_values(outcome, weight, rows), weights=rows)
        assert found == pytest.approx(spearmanr(outcome[drawn], weight[drawn])[0], abs=1e-12)
        distinct = outcome + rng.random(n) / 100
        found = np.average(top_values(distinct, weight, np.ones(n)))
        first = distinct >= np.sort(distinct)[-max(1, int(np.ceil(0.1 * n)))]
        assert found == pytest.approx(roc_auc_score(first, weight))


def test_values_are_what_each_row_changes_in_the_measure():
    """The infinitesimal jackknife: the mean moves by it if one row counts a little more."""
    rng = np.random.default_rng(5)
    outcome, weight, one = rng.random(64), rng.integers(0, 9, 64).astype(float), np.ones(64)
    for values in (rank_values, top_values):
        plain = values(outcome, weight, one)
        assert plain.std() > 0
        for row in range(0, 64, 7):
            more = one.copy()
            more[row] += 1e-6
            moved = np.average(values(outcome, weight, more), weights=more) - plain.mean()
            assert moved * 64e6 == pytest.approx(plain[row] - plain.mean(), abs=1e-3)
    assert not rank_values(outcome, one, one).any()  # equal weights rank nothing
    assert set(top_values(one, weight, one)) == {0.5}


def test_the_spread_of_values_is_that_of_other_links_drawn_from_the_same():
    rng = np.random.default_rng(6)
    outcome, one = rng.random((400, 80)), np.ones(80)
    weight = outcome + rng.random((400, 80))
    values = np.array([rank_values(o, w, one) for o, w in zip(outcome, weight, strict=True)])
    errors = values.std(axis=1) / np.sqrt(80)
    assert errors.mean() == pytest.approx(values.mean(axis=1).std(), rel=0.15)


@pytest.mark.parametrize("n", [50, 200])
def test_intervals_of_a_difference_hold_the_difference_of_all_links(n):
    """Links drawn from many: 95 % intervals of what one weight ranks better than another hold the truth."""
    everything = toys.planted(4000, noise=1.5)
    outcome, mbps = (everything[name].to_numpy() for name in ("outcome", "mbps"))
    sides = throughput_curve().weights(mbps), np.log(mbps)

    def values(places: np.ndarray) -> np.ndarray:
        one = np.ones(len(places))
        now, new = (rank_values(outcome[places], side[places], one) for side in sides)
        return new - now

    truth = values(np.arange(4000)).mean()
    rng, held = np.random.default_rng(1), 0
    for _ in range(300):
        drawn = values(rng.integers(0, 4000, n))
        _, low, high = studentise(drawn, np.ones(n), n_boot=200)
        held += low <= truth <= high
    assert 0.92 <= held / 300 <= 0.985


def test_within_destinations_is_the_mean_of_each():
    rng = np.random.default_rng(3)
    query = np.repeat([0, 1, 2], [10, 20, 3])  # the last one is too small to count
    outcome, weight = rng.random(33), rng.random(33)
    rows = pl.DataFrame({"unit": np.arange(33), "span": 0, "query": query, "dst": query, "outcome": outcome})  # fmt: skip
    ranked = Ranked.of(rows, weight[:, None])
    size, means = ranked.by("dst", ranked.each(rank_values, ["query"], 5))
    each = [spearmanr(outcome[query == q], weight[query == q])[0] for q in (0, 1)]
    assert size.tolist() == [10, 20]
    assert means[:, 0] == pytest.approx(each)


def test_intervals_within_few_destinations_are_those_of_few_units():
    rows = toys.planted(200).with_columns(dst=pl.format("D{}", pl.int_range(pl.len()) % 4))

    def within(of: pl.DataFrame) -> dict[str, float | None]:
        sides = [Weight(n, n, lambda r, _: r["mbps"].to_numpy()) for n in ("now", "new")]
        both = dealt(of.with_columns(span=pl.int_range(pl.len()) % 2, query=pl.col("dst")), seed=1)
        days = [(toys.NOON, toys.NOON), (toys.NOON + timedelta(days=1), toys.NOON)]
        study, _ = study_weights(both, sides, current="now", spans=days, **QUICK)
        chosen = both.filter(span=1)
        each = [
            spearmanr(part["outcome"], part["mbps"])[0]
            for part in chosen.partition_by("dst", maintain_order=False)
        ]
        size = [part.height for part in chosen.partition_by("dst", maintain_order=False)]
        return study.of("new") | {"each": each, "size": size}

    found = within(rows)
    mean, low, high = studentise(np.array(found["each"]), np.array(found["size"], dtype=float), **QUICK)  # fmt: skip
    assert found["within"] == pytest.approx(mean)
    assert (found["within_lo"], found["within_hi"]) == pytest.approx((low, high), abs=0.02)
    alone = within(rows.with_columns(dst=pl.lit("D")))
    assert (alone["within_lo"], alone["within_hi"]) == (None, None)


def links_of(rows: pl.DataFrame, spans: int = 4) -> Evidence:
    """Links that were looked at in so many spans, one day each."""
    days = [toys.NOON + timedelta(days=i) for i in range(spans + 1)]
    all_spans = pl.concat(rows.with_columns(span=pl.lit(i, pl.Int64)) for i in range(spans))
    return Evidence(
        all_spans, all_spans, tuple(itertools.pairwise(days)), tuple(map(str, range(spans))), True
    )  # fmt: skip


def judged(rows: pl.DataFrame, weights: list[Weight], current: str):
    """Judge weights on planted links."""
    evidence = links_of(rows)
    asked = {"current": current, "spans": evidence.spans, **QUICK}
    return study_weights(dealt(evidence.rows, seed=1), weights, **asked)[0]


def test_the_judge_tells_a_better_curve_from_an_equal_one():
    rows = toys.planted(800)
    weights = [w for w in throughput_weights(rows) if w.name in ("document", "steps")]
    found = judged(rows, weights, "document")
    assert (found.judgement.kind, found.judgement.case, found.judgement.setting) == (
        "change",
        "lower_loss",
        "steps",
    )
    assert 0 < found.gain["diff_lo"] < found.gain["diff"] < found.gain["diff_hi"]
    document = weights[0]
    shifted = Weight("equal", "", lambda r, s: 3 * document.weigh(r, s))  # ranks alike
    equal = judged(rows, [document, shifted], "document")
    assert (equal.judgement.kind, equal.judgement.case, equal.gain["diff"]) == (
        "keep",
        "nothing_better",
        0,
    )
    turned = Weight("turned", "", lambda r, _: -r["mbps"].to_numpy())
    assert judged(rows, [document, turned], "document").judgement.kind != "change"


def test_what_is_ranked_worse_among_the_top_is_not_proposed():
    """A weight that is better on nine tenths and by chance among the top tenth keeps no limit."""
    rng = np.random.default_rng(8)
    rows = toys.planted(800, noise=0.1)
    true = rows["outcome"].to_numpy()
    blurred = np.where(np.argsort(np.argsort(true)) < 720, np.log(true), rng.uniform(np.log(true).min(), np.log(true).max(), 800))  # fmt: skip
    coarse = np.log(true) + rng.normal(0, 6, 800) * (np.argsort(np.argsort(true)) < 720)
    rows = rows.with_columns(blurred=pl.Series(blurred), coarse=pl.Series(coarse))
    weights = [Weight(n, n, lambda r, _, n=n: r[n].to_numpy()) for n in ("coarse", "blurred")]
    found = judged(rows, weights, "coarse")
    assert found.of("blurred")["diff"] > 0
    assert not found.judgement.acts


def test_fits_see_links_of_earlier_spans_only():
    """A weight that looks up the outcome of a link is worth nothing on links that it has not seen."""

    def looked_up(rows: pl.DataFrame, seen: pl.DataFrame) -> np.ndarray:
        known = dict(seen.select("group", "outcome").iter_rows())
        assert not known.keys() & set(rows["group"])
        assert (seen["span"].max() or 0) <= rows["span"].min()
        return np.array([known.get(g, 0.0) for g in rows["group"]])

    rows = dealt(links_of(toys.planted(200)).rows, seed=1)
    assert not predict(rows, [Weight("looked up", "", looked_up)]).any()


@pytest.mark.parametrize("seed", range(4))
def test_where_the_document_is_right_nothing_better_is_proven(seed):
    """What links deliver follows the document's own steps: the fitted curve may come near, not pass it."""
    rows = toys.planted(1000, seed=seed)
    weight = throughput_weights(rows)[0].weigh(rows, rows)
    noise = np.random.default_rng(seed + 50).normal(size=1000)
    rows = rows.with_columns(outcome=pl.Series(np.exp(6 * weight + noise)))
    found = judged(rows, [w for w in throughput_weights(rows) if w.name in ("document", "steps")], "document")  # fmt: skip
    assert not found.judgement.acts
    assert found.gain["diff_hi"] < 0.02


def test_names_of_sites_rank_links_that_were_asked_by_their_sites():
    rng = np.random.default_rng(4)
    rows = toys.planted(900)
    sizes = {name: rng.normal() * 2 for name in sorted({*rows["src"], *rows["dst"]})}
    volume = pl.Series([np.exp(sizes[s] + sizes[d]) for s, d in rows.select("src", "dst").rows()])
    asked = rows.with_columns(outcome=volume)
    seen = pl.Series(rng.random(900) < 0.6)
    guess = sites(asked.filter(~seen), asked.filter(seen))
    assert spearmanr(guess, asked.filter(~seen)["outcome"])[0] > 0.9


def test_two_queues_are_no_correlation():
    queues = pl.DataFrame({"n_queued": [5.0, 50.0, 9.0, 500.0], "wait_h": [1.0, 2.0, 3.0, 0.0]})
    assert queue_facts(queues.head(2), cap=150) == {"n_queues": 2}
    facts = queue_facts(queues, cap=50)  # who waits no time is no queue
    assert (facts["n_queues"], facts["at_cap"]) == (3, pytest.approx(1 / 3))
    assert facts["spearman_rate"] == pytest.approx(0.5)  # rates 5, 25 and 3 files/h


def test_resolution_counts_pairs():
    rows = pl.DataFrame({"mbps": [0.5, 0.6, 5.0, 6.0], "outcome": [1.0, 100.0, 50.0, 200.0]})
    curve = ThroughputCurve((1.0,), (2.0,), 1.0)
    assert tied_share(curve.weights(rows["mbps"].to_numpy())) == 2 / 6
    steps = resolution(rows, curve, curve)
    assert steps["other"].to_list() == steps["weight"].to_list()
    assert steps["beats_below"].to_list() == [None, 0.75]
    assert steps["share"].to_list() == [0.5, 0.5]


def test_transfers_in_nested_windows_become_periods_that_follow_each_other():
    table = toys.windows()
    found = from_transfers(table)
    assert found.facts["n_periods"] == 3
    rows = found.rows.filter(src="S00", dst="D0").sort("span")
    whole, half, week = (
        table.filter(src_site="S00", dst_site="D0", from_date=table["to_date"][0] - timedelta(days=d))["bytes_xs"][0]
        for d in (28, 14, 7)
    )  # fmt: skip
    rate = 1024**2 * 86400
    assert rows["mbps"].to_list() == pytest.approx([(whole - half) / 14 / rate, (half - week) / 7 / rate])  # fmt: skip
    assert rows["outcome"].to_list() == pytest.approx([(half - week) / 7 / rate, week / 7 / rate])
    assert found.labels == (
        "1 to 15 March 2026 → 15 to 22 March 2026",
        "15 to 22 March 2026 → 22 to 29 March 2026",
    )


def test_windows_within_a_day_are_told_apart():
    table = toys.windows().with_columns(length=pl.col("to_date") - pl.col("from_date"))
    hours = table.with_columns(from_date=pl.col("to_date") - pl.col("length") / 56)
    found = from_transfers(hours.cast({"from_date": pl.Datetime("us")}))
    assert found.labels == (
        "2026-03-28 12:00 to 18:00 → 2026-03-28 18:00 to 21:00",
        "2026-03-28 18:00 to 21:00 → 2026-03-28 21:00 to 00:00",
    )
    apart = found.rows["query"].str.split(" to ").list.first().n_unique()
    assert apart == 2 * found.rows["dst"].n_unique()


def test_of_several_counts_of_delivered_files_in_a_snapshot_the_newest_counts():
    ends = {"src": "S00", "dst": "D0", "ts": toys.NOON}
    queue = {**ends, "key": "Production Output_queued", "value": 12.0}
    done = {**ends, "key": "Production Output_done_6h"}
    older = {**done, "ts": toys.NOON - timedelta(hours=3), "value": 9.0}
    for rows in ([older, {**done, "value": 4.0}], [{**done, "value": 4.0}, older]):
        table = pl.concat([toys.one_snapshot(), pl.DataFrame([queue, *rows])], how="diagonal")
        assert from_metrics(table).queues["wait_h"].to_list() == [12 * 6 / 4]


def test_delivered_files_are_those_measured_six_hours_later_or_within_an_hour_after():
    """Metrics have times of their own: few are measured at the very second."""
    table = toys.snapshots()
    late = pl.when(pl.col("key") == "Production Output_done_6h").then(pl.duration(minutes=7))
    shifted = table.with_columns(pl.col("ts") + late.otherwise(pl.duration(minutes=0)))
    queues = from_metrics(table).queues
    assert queues.height > 100
    assert from_metrics(shifted).queues.equals(queues)


def test_a_series_of_snapshots_predicts_the_next_day():
    found = from_metrics(toys.snapshots())
    assert found.later_queues
    proof = found.rows.filter(pl.col("span") > 0)
    table = toys.snapshots()
    row = proof.drop_nulls("mbps").row(0, named=True)
    day = row["query"].split(" ", 1)[1][:10]
    same = table.filter(src=row["src"], dst=row["dst"])
    at = same.filter(pl.col("ts").dt.date().cast(pl.String) == day, key="dashb_mbps_1h")
    next_day = same.filter(pl.col("ts") == at["ts"][0] + timedelta(days=1), key="dashb_mbps_1d")
    assert (row["mbps"], row["outcome"]) == (at["value"][0], next_day["value"][0])
    assert found.facts["n_links"] == 60
    assert found.facts["n_with_mbps"] == 40
    instants = [found.rows.filter(span=i)["query"].str.slice(-26) for i in range(len(found.spans))]
    assert len(instants) == 3
    for earlier, later in itertools.pairwise(instants):
        assert earlier.max() < later.min()


def test_windows_of_one_snapshot_are_taken_apart_where_they_are_volumes():
    found = from_metrics(toys.one_snapshot())
    assert found.facts["n_above_volume"] == 0
    assert "6 days before the last day" in found.labels[0]
    assert found.spans[-1] == (toys.NOON - timedelta(days=1), toys.NOON)
    day = toys.one_snapshot().pivot("key", index=["src", "dst"], values="value")
    middle = (day["dashb_mbps_1d"] * 24 - day["dashb_mbps_1h"]) / 23
    proof = day.select("src", "dst", middle=middle).join(found.rows.filter(span=1), on=["src", "dst"])  # fmt: skip
    assert proof["mbps"].to_list() == pytest.approx(proof["middle"].to_list())
    nested = from_metrics(toys.one_snapshot(factor=100))
    assert nested.facts["n_above_volume"] > 0
    assert "inside the week" in nested.labels[0]


def test_closeness_earns_what_its_links_deliver():
    rows = toys.planted(800).with_columns(
        outcome=pl.when(pl.col("closeness") <= 3).then(150.0).otherwise(5.0)
    )
    fitted = earned(rows, throughput_curve())
    found = dict(fitted.rows())
    assert (found[1.0], found[3.0], found[4.0], found[11.0]) == pytest.approx((1.9, 1.9, 1.2, 1.2))
    assert at(fitted, pl.Series([None, 2.5], dtype=pl.Float64)).tolist() == pytest.approx(
        [1.2, 1.9]
    )
    nowhere = pl.DataFrame(
        {"closeness": [None], "weight": [1.4]},
        schema={"closeness": pl.Float64, "weight": pl.Float64},
    )
    assert at(pl.concat([fitted, nowhere]), pl.Series([None], dtype=pl.Float64)).tolist() == [1.4]
    study = study_fallback(links_of(rows.with_columns(mbps="outcome")), **QUICK)
    assert study.of("earned")["diff"] > 0
    assert study.judgement.best == "earned"
    levels = study.frames["levels"]
    assert levels["line"].to_list() == pytest.approx([1 + (11 - c) / 11 for c in levels["closeness"]])  # fmt: skip


def test_the_order_of_links_does_not_decide_what_ties():
    """A sum in another order may differ in its last bit; what links of a step earn is the step's weight all the same."""
    rows = toys.planted(300).with_columns(outcome=pl.lit(5.0))  # the step of weight 1.2
    for seed in range(5):
        shuffled = rows.sample(fraction=1, shuffle=True, seed=seed)
        assert set(earned(shuffled, throughput_curve())["weight"]) == {1.2}


def test_fallback_weights_concern_hidden_links_only():
    rows = toys.planted(100).with_columns(hidden=pl.int_range(100) % 2 == 0)
    curve = throughput_curve()
    shown = curve.weights(rows["mbps"].to_numpy())
    for weight in fallback_weights(curve)[:3]:
        found = weight.weigh(rows, rows)
        assert found[1::2].tolist() == shown[1::2].tolist()
        assert found[::2].tolist() != shown[::2].tolist()
    assert fallback_weights(curve)[0].weigh(rows, rows)[::2].tolist() == line(rows["closeness"])[::2].tolist()  # fmt: skip


def queues(n: int = 300, *, seed: int = 1) -> pl.DataFrame:
    """Queues that are delivered so that 40 files weigh as much as 1 of throughput weight."""
    rng = np.random.default_rng(seed)
    mbps = np.exp(rng.uniform(-1, 6, n))
    queued = np.round(np.exp(rng.uniform(0, 6, n))) + 1
    worth = throughput_curve().weights(mbps) - queued / 40
    return toys.planted(n).with_columns(
        mbps=pl.Series(mbps), n_queued=pl.Series(queued), wait_h=pl.Series(np.exp(-worth / 20))
    )


@pytest.mark.parametrize(("rules", "now"), [("document", 300), ("production", 150)])
def test_the_planted_exchange_is_found_and_proven(rules, now):
    study = study_exchange(links_of(queues(600)), NetworkSettings(), rules=rules, **QUICK)
    assert study.judgement.kind == "change"
    files = files_per_unit(NetworkSettings(study.facts["proposed"], 150), rules)
    assert files == pytest.approx(40, rel=0.3)
    best = study.of(study.judgement.best)["spearman"]
    assert best > max(study.of(part)["spearman"] for part in ("queue_only", "throughput_only"))
    table = study.frames["table"]
    assert table["files"].is_sorted()
    assert table.filter("is_current")["files"].to_list() == [now]


def test_only_importances_that_leave_both_parts_a_say_are_offered():
    offered = [float(w.name) for w in exchange_weights(NetworkSettings()) if w.offered]
    assert (min(offered), max(offered)) == (0.05, 0.95)
    assert 0.33 in [float(w.name) for w in exchange_weights(NetworkSettings(0.33)) if w.offered]


def test_slope_cap_and_importance_are_one_number_where_the_line_ends_at_the_cap():
    assert files_per_unit(NetworkSettings(0.5, 150), "production") == 150
    assert files_per_unit(NetworkSettings(0.75, 450), "production") == pytest.approx(150)
    assert files_per_unit(NetworkSettings(0, 150)) == float("inf")


def test_the_documented_line_ends_at_300_files_whatever_the_cap():
    """002, Network Weight: calculated as in the plot, whose line ends at 300 files; docs/rules/network-weight.md 1."""
    assert [files_per_unit(NetworkSettings(0.5, cap)) for cap in (30, 150, 450)] == [300] * 3
    rows = queues(40).with_columns(n_queued=pl.lit(400.0), throughput_weight=pl.lit(1.5))
    for cap in (30, 150):
        half = next(w for w in exchange_weights(NetworkSettings(0.5, cap)) if w.name == "0.5")
        assert set(half.weigh(rows, rows)) == {1.25}
    asked = exchange_weights(NetworkSettings(0.5, 200), "production")
    half = next(w for w in asked if w.name == "0.5")
    assert set(half.weigh(rows, rows)) == {0.75}  # goes on below 1: 2 - 400 / 200


def test_the_curve_that_acts_is_that_of_the_rule_set():
    rows = toys.planted(100).with_columns(mbps=pl.lit(60.0))
    for rules, other, weight in (("document", "production", 1.7), ("production", "document", 1.6)):
        first, *rest = throughput_weights(rows, rules=rules)
        assert (first.name, set(first.weigh(rows, rows))) == (rules, {weight})
        assert [w.offered for w in rest if w.name == other] == [False]


@pytest.mark.parametrize("importance_now", [0.0, 1.0])
def test_one_part_alone_can_be_the_current_setting(importance_now):
    study = study_exchange(links_of(queues()), NetworkSettings(importance_now), n_boot=20)
    alone = "queue_only" if importance_now else "throughput_only"
    assert study.of(f"{importance_now:g}")["spearman"] == study.of(alone)["spearman"]
    assert study.ranking.filter(mark="current")["name"].to_list() == [f"{importance_now:g}"]


def test_one_snapshot_proves_no_change():
    series = links_of(queues(600), spans=1)
    alone = Evidence(series.rows, series.queues, series.spans, series.labels)
    study = study_exchange(alone, NetworkSettings(), **QUICK)
    assert study_exchange(series, NetworkSettings(), **QUICK).judgement.acts
    assert (study.judgement.kind, study.judgement.case) == ("no_answer", "depends")
    assert (study.unknown, study.facts["proposed"]) == ("snapshot", None)


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
        (lambda: study_fallback(links_of(toys.planted().with_columns(closeness=pl.lit(4.0)))), "1 values of closeness"),
        (lambda: study_exchange(links_of(queues(30)), NetworkSettings()), "30 links have files"),
        (lambda: judged(toys.planted(50).with_columns(outcome=pl.lit(1.0)), throughput_weights(toys.planted(50)), "document"), "all links delivered the same"),
    ],
)  # fmt: skip
def test_data_that_cannot_answer_are_refused(make, words):
    with pytest.raises(InsufficientDataError, match=words):
        make()


def test_impossible_settings_are_refused():
    with pytest.raises(ConfigError, match="steps=0"):
        fit_steps(toys.planted(), most=0)
    with pytest.raises(ConfigError, match=r"NW_QUEUE_IMPORTANCE is 1\.5"):
        study_exchange(links_of(queues()), NetworkSettings(1.5))


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
    study = study_curve(found, n_boot=50)
    assert study.of("steps")["diff_lo"] > 0.08
    assert study.of("sites")["spearman"] > study.of("steps")["spearman"] > 0.78
    assert study.of("log_throughput")["spearman"] >= study.of("steps")["spearman"]
    assert (study.judgement.kind, study.unknown) == ("no_answer", "demand")


@pytest.mark.real_data
@pytest.mark.skipif(not REAL.is_dir(), reason="the shared real data are not here")
def test_an_hour_says_less_of_a_real_link_than_the_days_before():
    """What 23 hours delivered is ranked by the hour after them, or by the six days before; links that mirror each other once."""
    links = pl.read_parquet(REAL / "atlas-network-metrics-2024" / "links.parquet")
    hour, day, week = (pl.col(f"mbps_{window}") for window in ("1h", "1d", "1w"))
    seen = (
        links.filter(pl.col("src") != pl.col("dst"))
        .unique(["mbps_1h", "mbps_1d", "mbps_1w"], keep="first", maintain_order=True)
        .select(hour=hour, day=(24 * day - hour) / 23, days=(7 * week - day) / 6)
        .filter(pl.all_horizontal(pl.all() > LEAST))
    )
    by = {
        name: seen.select(pl.corr(name, "day", method="spearman")).item()
        for name in ("hour", "days")
    }
    assert seen.height > 1000
    assert by["hour"] < 0.65 < 0.75 < by["days"]


@pytest.mark.real_data
@pytest.mark.skipif(not REAL.is_dir(), reason="the shared real data are not here")
@pytest.mark.parametrize("n", [50, 200])
def test_the_coverage_that_proposals_say_is_the_one_measured_on_real_links(n):
    """Links drawn from real transfers; of fewer draws than the 400 behind the stated figures."""
    table = pl.read_parquet(REAL / "atlas-ddm-transfers-2019" / "transfers.parquet").with_columns(
        pl.col("from_date", "to_date").str.to_datetime(time_unit="us")
    )
    rows = from_transfers(table).rows.filter(pl.col("mbps") > 0, pl.col("outcome") > 0, span=1)
    links = rows.unique("group", keep="first", maintain_order=True)
    assert links.height == 6621
    outcome, mbps = (links[name].to_numpy() for name in ("outcome", "mbps"))
    sides = throughput_curve().weights(mbps), np.log(mbps)

    def values(places: np.ndarray) -> np.ndarray:
        now, new = (
            rank_values(outcome[places], side[places], np.ones(len(places))) for side in sides
        )
        return new - now

    truth, rng, held = values(np.arange(links.height)).mean(), np.random.default_rng(1), 0
    for _ in range(200):
        _, low, high = studentise(values(rng.integers(0, links.height, n)), np.ones(n), n_boot=200)
        held += low <= truth <= high
    assert held / 200 == pytest.approx(COVERAGE[n], abs=0.04)
