import pytest
from scipy import stats

from brokerlab.calibrate.percentiles import frames as fs
from brokerlab.errors import ConfigError


def test_the_percentile_at_a_scout_covers_the_mean_of_the_beta_distribution():
    for n in (2, 5, 10):
        for k in range(1, n + 1):
            ends = fs.percentile_coverage(n, 100 * (k - 1) / (n - 1))
            assert ends[1] == pytest.approx(stats.beta(k, n + 1 - k).mean())


def test_bounds_of_the_percentile_rule():
    assert fs.percentile_coverage(10, 100) == (10 / 11, 10 / 11, 10 / 11)
    low, middle, high = fs.percentile_coverage(5, 75)  # position 3 exactly: the fourth
    assert (low, middle, high) == (4 / 6, 4 / 6, 4 / 6)
    assert fs.percentile_coverage(1, 75) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fs.percentile_coverage(0, 75),
        lambda: fs.percentile_coverage(10, 101),
    ],
)
def test_impossible_requests(call):
    with pytest.raises(ConfigError):
        call()
