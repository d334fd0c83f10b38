"""Curves as data: what a table may be, and what it gives."""

import numpy as np
import polars as pl
import pytest

from brokerlab.brokerage.network_weight import ThroughputCurve, queued_weights, throughput_curve
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError

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


def test_unknown_throughput_stays_unknown():
    assert np.isnan(throughput_curve().weights(np.array([np.nan])))[0]
