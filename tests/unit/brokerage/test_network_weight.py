"""The network weight: worked values of the chapter, windows, many instants, special links; curves as data."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.brokerage.network_weight import (
    CLOSENESS_KEY,
    QUEUED_KEYS,
    THROUGHPUT_KEYS,
    NetworkSettings,
    ThroughputCurve,
    at_links,
    links,
    nucleus_total_queued,
    queued_weights,
    throughput_curve,
)
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, SchemaError
from brokerlab.gdpconfig import Config
from tests.one_value import network_weight

NOON = datetime(2026, 6, 1, 12)
DOCUMENT, PRODUCTION = ProductionRules(), ProductionRules("production")


def row(key, value, *, src="SAT", dst="NUC", age_min=10.0, at=NOON):
    return {
        "src": src,
        "dst": dst,
        "key": key,
        "value": value,
        "ts": at - timedelta(minutes=age_min),
    }


def link(closeness=None, queued=None, week=None, day=None, hour=None, **where):
    values = {
        CLOSENESS_KEY: closeness,
        QUEUED_KEYS[False]: queued,
        THROUGHPUT_KEYS["1w"]: week,
        THROUGHPUT_KEYS["1d"]: day,
        THROUGHPUT_KEYS["1h"]: hour,
    }
    return [row(key, value, **where) for key, value in values.items() if value is not None]


def weight(rows, rules=DOCUMENT, src="SAT", **more):
    return network_weight(rows, nucleus="NUC", storage_site=src, at=NOON, rules=rules, **more)


def weighed(known, **settings):
    """Return known links with their weights."""
    asked = known.select("snapshot", "nucleus", "express", storage_site="src")
    return at_links(asked, known, **settings)


def matrix(rows):
    schema = {"value": pl.Float64, "ts": pl.Datetime("us")}
    return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=schema)


# network-weight.md 1
WORKED = [
    ((0, 0, None, None, None), 2.0, 2.0),
    ((11, 75, None, None, None), 1.375, 1.25),
    ((4, 30, 60, None, None), 1.80, 1.70),
    ((4, 30, 5, None, 250), 1.95, 1.50),
    ((4, 30, None, 250, 250), 1.95, 1.71818181818),
    ((None, None, 200, 200, 200), 1.95, 1.95),
]


@pytest.mark.parametrize(("values", "document", "production"), WORKED)
def test_worked_values(values, document, production):
    rows = link(*values)
    assert weight(rows, DOCUMENT) == pytest.approx(document, rel=1e-9)
    assert weight(rows, PRODUCTION) == pytest.approx(production, rel=1e-9)


@pytest.mark.parametrize("values", [case[0] for case in WORKED])
def test_the_nucleus_itself_weighs_2_5(values):
    config = Config.empty().with_values({"NW_QUEUE_IMPORTANCE": 0.9})
    assert weight(link(*values, src="NUC"), src="NUC", config=config) == 2.5


# network-weight.md 1
WINDOWS = [
    ("yyy", "1h", "1h"),
    ("yy-", "1d", "1d"),
    ("y-y", "1h", "1w"),
    ("y--", "1w", "1w"),
    ("-yy", "1h", None),
    ("-y-", "1d", None),
    ("--y", "1h", None),
    ("---", None, None),
]


@pytest.mark.parametrize(("there", "document", "production"), WINDOWS)
@pytest.mark.parametrize("value", [0, 30])
def test_windows(there, document, production, value):
    values = [value if flag == "y" else None for flag in there]
    rows = matrix(link(3, None, *values))
    for rules, window in ((DOCUMENT, document), (PRODUCTION, production)):
        found = links(rows, rules=rules)
        assert found["window"].to_list() == [window, window]
        assert found["mbps"].to_list() == [None if window is None else value] * 2


@pytest.mark.parametrize(
    ("closeness", "expected"), [(0, 2.0), (11, 1.0), (None, 1.3), (-1, 1 + 12 / 11)]
)
def test_closeness_stands_in_for_throughput(closeness, expected):
    found = weighed(links(matrix(link(closeness, 0))))
    assert found["throughput_weight"][0] == pytest.approx(expected, rel=1e-12)


def test_unknown_links():
    assert weight([]) == pytest.approx(1.65)
    assert weight([], src=None) == pytest.approx(1.65)
    importance = Config.empty().with_values({"NW_QUEUE_IMPORTANCE": 0.0})
    assert weight([], config=importance) == pytest.approx(1.3)
    assert weight(link(0, 0, src="OTHER")) == pytest.approx(1.65)


@pytest.mark.parametrize("nucleus", [None, ""])
def test_no_nucleus_no_weight(nucleus):
    assert network_weight([], nucleus=nucleus, storage_site="SAT") is None


def test_express_has_its_own_queue():
    rows = [row(QUEUED_KEYS[True], 75), row(QUEUED_KEYS[False], 150), row(CLOSENESS_KEY, 0)]
    assert weight(rows, express=True) == 1.875
    assert weight(rows, PRODUCTION, express=True) == 1.75
    assert weight(rows, express=False) == 1.75


@pytest.mark.parametrize(
    ("age_min", "counts"), [(59.99, True), (60, False), (61, False), (0, True), (-1, False)]
)
def test_only_the_last_hour_counts(age_min, counts):
    found = weight([row(CLOSENESS_KEY, 0, age_min=age_min)])
    assert found == pytest.approx(2.0 if counts else 1.65)


def test_the_newest_row_counts_even_if_it_is_not_the_last():
    rows = [row(CLOSENESS_KEY, value, age_min=age) for value, age in ((3, 5), (0, 1), (11, 50))]
    assert weight(rows) == 2.0


def test_rows_without_value_or_time_are_missing():
    rows = [row(CLOSENESS_KEY, None), row(CLOSENESS_KEY, 0) | {"ts": None}]
    assert weight(rows) == pytest.approx(1.65)
    assert weight([row(CLOSENESS_KEY, float("nan"))]) == pytest.approx(1.65)


def test_zero_cap_is_refused():
    config = Config.empty().with_values({"NQUEUED_SAT_CAP": 0})
    with pytest.raises(ConfigError, match="NQUEUED_SAT_CAP"):
        weighed(links(None), config=config)


def test_settings_are_read():
    config = Config.empty().with_values({"NQUEUED_SAT_CAP": 300, "NW_QUEUE_IMPORTANCE": 0.0})
    assert NetworkSettings.of(config) == NetworkSettings(queue_importance=0.0, link_cap=300)
    assert NetworkSettings.of(Config.empty()) == NetworkSettings(0.5, 150)


def test_missing_columns_are_named():
    with pytest.raises(SchemaError, match=r"network_matrix\.ts"):
        links(pl.DataFrame({"src": ["a"], "dst": ["b"], "key": ["k"], "value": [1.0]}))


def world(seed=5, n=400):
    draw = random.Random(seed)  # noqa: S311
    keys = [CLOSENESS_KEY, *QUEUED_KEYS.values(), *THROUGHPUT_KEYS.values(), "other"]
    rows = [
        row(
            draw.choice(keys),
            draw.choice([None, -1, 0, 3, 10, 60, 150, 250]),
            src=draw.choice("ABC"),
            dst=draw.choice("ABX"),
            age_min=draw.uniform(-100, 200),
        )
        for _ in range(n)
    ]
    moments = pl.DataFrame(
        {"snapshot": range(9), "at": [NOON + timedelta(minutes=20 * i) for i in range(-4, 5)]}
    )
    return rows, moments


@pytest.mark.parametrize("rules", [DOCUMENT, PRODUCTION])
def test_many_instants_are_as_one_at_a_time_in_any_order(rules):
    rows, moments = world()
    together = links(matrix(rows), instants=moments, rules=rules)
    shuffled = links(
        matrix(rows).sample(fraction=1, shuffle=True, seed=3),
        instants=moments.reverse(),
        rules=rules,
    )
    assert_frame_equal(together, shuffled)
    single = pl.concat(
        links(matrix(rows), instants=moments[i], rules=rules) for i in range(moments.height)
    )
    assert_frame_equal(together, single)
    assert together.height > 50


def test_weights_are_those_of_the_single_link():
    rows, moments = world()
    table = weighed(links(matrix(rows), instants=moments))
    for found in table.sample(25, seed=1).to_dicts():
        alone = network_weight(
            [one for one in rows if one["src"] == found["storage_site"]],
            nucleus=found["nucleus"],
            storage_site=found["storage_site"],
            express=found["express"],
            at=moments["at"][found["snapshot"]],
        )
        assert alone == found["network_weight"]


def test_only_what_is_asked_for():
    rows, moments = world()
    everything = links(matrix(rows), instants=moments)
    asked = pl.DataFrame({"snapshot": [1, 4, 4], "nucleus": ["A", "B", None]})
    found = links(matrix(rows), instants=moments, nuclei=asked)
    assert_frame_equal(
        found, everything.join(asked, on=["snapshot", "nucleus"], how="semi", maintain_order="left")
    )
    express = links(matrix(rows), instants=moments, nuclei=asked.with_columns(express=True))
    assert_frame_equal(express, found.filter("express"))
    anytime = links(matrix(rows), instants=moments, nuclei=pl.DataFrame({"nucleus": ["A"]}))
    assert_frame_equal(anytime, everything.filter(pl.col("nucleus") == "A"))


def test_rows_of_one_snapshot_hold_there_only():
    rows = [row(CLOSENESS_KEY, 0) | {"snapshot": 1}, row(CLOSENESS_KEY, 11, src="ANY")]
    moments = pl.DataFrame({"snapshot": [1, 2], "at": [NOON, NOON]})
    found = links(matrix(rows), instants=moments).filter(~pl.col("express"))
    assert found.select("snapshot", "src", "closeness").rows() == [
        (1, "ANY", 11.0),
        (1, "SAT", 0.0),
        (2, "ANY", 11.0),
    ]


def test_snapshots_may_have_any_numbers():
    n = 2000
    times = [NOON + timedelta(seconds=i) for i in range(n)]
    rows = pl.concat(
        matrix([row(CLOSENESS_KEY, i, src=f"s{i}", dst=f"d{i}", at=at)])
        for i, at in enumerate(times)
    )

    def found(numbers):
        moments = pl.DataFrame({"snapshot": numbers, "at": times})
        return links(rows.with_columns(snapshot=moments["snapshot"]), instants=moments)

    few, far = found([*range(n)]), found([10**6 * i for i in range(n)])
    assert_frame_equal(few.drop("snapshot"), far.drop("snapshot"))


def test_instants_without_time_have_no_age_limit():
    moments = pl.DataFrame(
        {"snapshot": [1, 2], "at": [None, NOON]}, schema_overrides={"at": pl.Datetime("us")}
    )
    rows = matrix([row(CLOSENESS_KEY, 4, age_min=900), row(CLOSENESS_KEY, 2, age_min=100)])
    found = links(rows, instants=moments)
    assert found["snapshot"].unique().to_list() == [1]
    assert found["closeness"][0] == 2.0


def test_pairs_keep_their_order_and_columns():
    known = links(matrix(link(0, 150)))
    pairs = pl.DataFrame(
        {
            "snapshot": pl.Series([None] * 5, dtype=pl.Int64),
            "nucleus": ["NUC", "NUC", "NUC", None, ""],
            "express": [False] * 5,
            "storage_site": ["NUC", "SAT", None, "SAT", "SAT"],
            "queue": list("abcde"),
        }
    )
    found = at_links(pairs, known)
    assert found["queue"].to_list() == list("abcde")
    assert found["link_known"].to_list() == [False, True, False, False, False]
    assert found["network_weight"].to_list() == pytest.approx([2.5, 1.75, 1.65, None, None])
    assert found["n_queued"].to_list() == [0, 150, 0, 0, 0]


def test_backlog_of_a_nucleus_counts_every_source():
    rows = [*link(0, 100, src="A"), *link(0, 7, src="NUC"), *link(1, None, src="B")]
    totals = nucleus_total_queued(links(matrix(rows)))
    assert totals.select("nucleus", "express", "total_queued").rows() == [
        ("NUC", False, 107.0),
        ("NUC", True, 0.0),
    ]


# network-weight.md 1: value at, and just above, each edge
EDGES = {
    200: (1.9, 2.0),
    100: (1.8, 1.9),
    75: (1.7, 1.8),
    50: (1.5, 1.7),
    20: (1.3, 1.5),
    10: (1.2, 1.3),
    2: (1.1, 1.2),
    1: (1.0, 1.1),
}


@pytest.mark.parametrize("edge", EDGES)
def test_intervals_are_open_on_the_left_and_closed_on_the_right(edge):
    curve = throughput_curve()
    assert (curve.of(edge), curve.of(np.nextafter(edge, 1000))) == EDGES[edge]


@pytest.mark.parametrize("mbps", [0, -5, 1])
def test_nothing_and_less_is_the_lowest_step(mbps):
    assert throughput_curve().of(mbps) == 1.0


def test_the_rule_sets_differ_in_one_step():
    document, production = (
        throughput_curve(ProductionRules(name)).frame() for name in ("document", "production")
    )
    differ = document.filter(document["weight"] != production["weight"])
    assert differ.rows() == [(50.0, 1.7)]
    assert throughput_curve(ProductionRules("production")).of(60) == 1.6


def test_a_table_goes_in_and_comes_out():
    curve = throughput_curve()
    assert ThroughputCurve.from_frame(curve.frame()) == curve
    whole_numbers = pl.DataFrame({"mbps_above": [None, 5], "weight": [1, 3]})
    assert ThroughputCurve.from_frame(whole_numbers).of(6) == 3.0


@pytest.mark.parametrize(
    ("edges", "weights", "says"),
    [
        ([None, 2.0, 1.0], [1.0, 1.1, 1.2], "ascending"),
        ([None, 1.0, 1.0], [1.0, 1.1, 1.2], "ascending"),
        ([None, float("inf")], [1.0, 1.1], "finite"),
        ([None, 1.0], [1.0, float("nan")], "finite"),
        ([0.0, 1.0], [1.0, 1.1], "first row"),
        ([None, 1.0, None], [1.0, 1.1, 1.2], "below the first row"),
        ([None, 1.0], [1.0, None], "weight is null"),
        ([None], [1.0], "no step"),
    ],
)
def test_a_table_that_is_no_curve_is_refused(edges, weights, says):
    frame = pl.DataFrame({"mbps_above": edges, "weight": weights}, strict=False).cast(pl.Float64)
    with pytest.raises(ConfigError, match=says):
        ThroughputCurve.from_frame(frame)


def test_everything_wrong_is_said_at_once():
    frame = pl.DataFrame({"weight": ["a"]})
    with pytest.raises(ConfigError, match=r"mbps_above is missing.*weight is String"):
        ThroughputCurve.from_frame(frame)
    with pytest.raises(ConfigError, match="2 edges, 1 weights"):
        ThroughputCurve((1.0, 2.0), (1.0,), 1.0)


@pytest.mark.parametrize(
    ("n_queued", "cap", "weight"),
    [(0, 150, 2.0), (75, 150, 1.5), (150, 150, 1.0), (300, 300, 1.0), (600, 150, -2.0)],
)
def test_the_queued_weight_of_the_code_is_a_line_that_is_not_clamped(n_queued, cap, weight):
    files = np.array([n_queued], dtype=np.float64)
    assert queued_weights(files, cap, ProductionRules("production")).tolist() == [weight]


@pytest.mark.parametrize("cap", [50, 150, 600])
def test_the_plot_falls_to_1_at_300_files_and_ends_there(cap):
    files = np.array([0.0, 75.0, 150.0, 300.0, 301.0, 900.0])
    assert queued_weights(files, cap).tolist() == [2.0, 1.75, 1.5, 1.0, 1.0, 1.0]
    assert np.isnan(queued_weights(np.array([np.nan]), cap)).all()


def test_unknown_throughput_stays_unknown():
    assert np.isnan(throughput_curve().weights(np.array([np.nan])))[0]
