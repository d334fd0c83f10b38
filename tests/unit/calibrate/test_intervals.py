import numpy as np
import pytest

from brokerlab import intervals


def test_a_share_of_independent_tasks_is_clopper_pearson():
    # one job per task: the effective number of jobs is the number of tasks
    hits = np.array([1.0] * 3 + [0.0] * 97)
    rate = np.array([0.03])
    variance = intervals.ratio_variance(
        np.array([(hits**2).sum()]), np.array([hits.sum()]), 100.0, 100.0, rate, 100
    )
    low, high = intervals.share_interval(rate, variance, 100, 100, 0.95)
    assert low[0] == pytest.approx(0.0062, abs=0.001)
    assert high[0] == pytest.approx(0.0852, abs=0.003)


def test_shared_fate_widens_the_interval():
    rate = np.array([0.03])
    narrow = intervals.share_interval(rate, np.array([0.03 * 0.97 / 10_000]), 10_000, 100, 0.95)
    wide = intervals.share_interval(rate, np.array([0.03 * 0.97 / 50]), 10_000, 100, 0.95)
    assert wide[1][0] - wide[0][0] > 3 * (narrow[1][0] - narrow[0][0])


def test_edges_stay_between_0_and_1():
    shares = np.array([0.0, 1.0, np.nan])
    low, high = intervals.share_interval(shares, np.zeros(3), 50, 20, 0.95)
    assert (low[0], high[1]) == (0.0, 1.0)
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 20))
    assert (low[2], high[2]) == (0.0, 1.0)


def test_one_task_tells_nothing():
    assert np.isinf(intervals.ratio_variance(np.ones(1), np.ones(1), 1.0, 1.0, np.ones(1), 1))
    assert np.isinf(intervals.t_factor(1, 0.95))


def test_weights_are_multinomial_in_blocks_and_seeded():
    small = np.concatenate(list(intervals.bootstrap_weights(50, n_boot=30, seed=1, cells=500)))
    assert small.shape == (30, 50)
    assert (small.sum(axis=1) == 50).all()
    again = np.concatenate(list(intervals.bootstrap_weights(50, n_boot=30, seed=1, cells=500)))
    assert (small == again).all()
    totals = intervals.bootstrap_totals(np.ones((50, 2)), n_boot=30, seed=1)
    assert (totals == 50).all()


def test_replicates_without_a_number_are_left_out():
    replicates = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, np.nan]])
    low, high = intervals.percentile_interval(replicates, 0.95, n_tasks=1_000_000)
    assert low[0] == pytest.approx(1.05, abs=1e-4)
    assert np.isfinite(high[0])


def test_intervals_from_few_tasks_are_wider():
    replicates = np.linspace(0, 100, 10_001)[:, None]
    few, many = (intervals.percentile_interval(replicates, 0.95, n_tasks=n) for n in (10, 10_000))
    assert many[0][0] == pytest.approx(2.5, abs=0.01)
    # Student 2.262 for nine degrees of freedom, times the root of 10/9: the normal tail is 0.855 %
    assert few[0][0] == pytest.approx(0.855, abs=0.01)
    assert few[1][0] == pytest.approx(100 - few[0][0], abs=1e-6)
