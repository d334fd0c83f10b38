import pytest
from scipy import stats

from brokerlab.calibrate.percentiles import frames as fs
from brokerlab.errors import ConfigError


def test_the_percentile_at_a_scout_covers_the_mean_of_the_beta_distribution():
    for n in (2, 5, 10):
        for k in range(1, n + 1):
            ends = fs.percentile_coverage(n, 100 * (k - 1) / (n - 1))
            assert ends[1] == pytest.approx(stats.beta(k, n + 1 - k).mean())


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


def test_fewer_scouts_than_one_in_alpha_promise_nothing():
    for alpha, least in ((0.5, 1), (0.1, 9), (0.05, 19), (0.02, 49), (0.03, 33)):
        assert fs.conformal_order(least, alpha) == least
        assert least == 1 or fs.conformal_order(least - 1, alpha) is None


def test_bounds_of_the_percentile_rule():
    assert fs.percentile_coverage(10, 100) == (10 / 11, 10 / 11, 10 / 11)
    low, middle, high = fs.percentile_coverage(5, 75)  # position 3 exactly: the fourth
    assert (low, middle, high) == (4 / 6, 4 / 6, 4 / 6)
    assert fs.percentile_coverage(1, 75) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fs.percentile_coverage(0, 75),
        lambda: fs.conformal_order(10, 0),
        lambda: fs.conformal_rank(10, 1.5),
        lambda: fs.percentile_coverage(10, 101),
    ],
)
def test_impossible_requests(call):
    with pytest.raises(ConfigError):
        call()
