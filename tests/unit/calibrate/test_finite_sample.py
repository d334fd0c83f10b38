import math

import polars as pl
import pytest
from scipy import stats

from brokerlab.calibrate.percentiles import finite_sample as fs
from brokerlab.errors import ConfigError


def test_expected_coverage_is_the_mean_of_the_beta_distribution():
    for n in (1, 5, 10):
        for k in range(1, n + 1):
            assert fs.expected_coverage(k, n) == pytest.approx(stats.beta(k, n + 1 - k).mean())
    assert fs.expected_coverage(11, 10) == 1.0


def test_the_largest_of_n_has_a_closed_form():
    assert fs.coverage_quantile(10, 10, 0.05) == pytest.approx(0.05 ** (1 / 10))
    assert fs.coverage_quantile(11, 10, 0.05) == 1.0


@pytest.mark.parametrize(
    ("n", "alpha", "order"),
    [
        (9, 0.1, 9),
        (19, 0.05, 19),
        (18, 0.05, None),
        (99, 0.01, 99),
        (29, 0.1, 27),
        (10, 0.3, 8),
        (1, 0.5, 1),
    ],
)
def test_conformal_order_by_hand(n, alpha, order):
    assert fs.conformal_order(n, alpha) == order


def test_the_conformal_rank_lands_on_the_order():
    for n in (5, 10, 50):
        for alpha in (0.1, 0.2, 0.5):
            order, rank = fs.conformal_order(n, alpha), fs.conformal_rank(n, alpha)
            if order is None:
                assert rank is None
            else:
                assert (n - 1) * rank / 100 == pytest.approx(order - 1)
                low, middle, high = fs.percentile_coverage(n, round(rank, 9))
                assert low <= middle <= high
                assert high >= 1 - alpha - 1e-12


def test_scouts_needed_is_the_least():
    for alpha in (0.5, 0.1, 0.05, 0.02, 0.03):
        n = fs.scouts_needed(alpha)
        assert fs.conformal_order(n, alpha) == n
        assert n == 1 or fs.conformal_order(n - 1, alpha) is None


def test_bounds_of_the_percentile_rule():
    assert fs.percentile_coverage(10, 100) == (10 / 11, 10 / 11, 10 / 11)
    low, middle, high = fs.percentile_coverage(5, 75)  # position 3 exactly: the fourth
    assert (low, middle, high) == (4 / 6, 4 / 6, 4 / 6)
    assert fs.percentile_coverage(1, 75) == (0.5, 0.5, 0.5)


def test_promise_table():
    table = fs.promise_table([5, 10, 60], [75, 95, 100], alpha=0.02)
    assert table.height == 9
    assert table.filter("promises")["n_scouts"].to_list() == [60]
    ten = table.row(by_predicate=(pl.col("n_scouts") == 10) & (pl.col("rank") == 95), named=True)
    assert ten["conformal_order"] is None
    assert math.isclose(ten["coverage_with_confidence"], stats.beta(9, 2).ppf(0.05))


@pytest.mark.parametrize(
    "call",
    [
        lambda: fs.expected_coverage(0, 10),
        lambda: fs.conformal_order(10, 0),
        lambda: fs.scouts_needed(1.5),
        lambda: fs.percentile_coverage(10, 101),
    ],
)
def test_impossible_requests(call):
    with pytest.raises(ConfigError):
        call()
