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


def slow_studentised(values, weights, confidence, n_boot, seed):
    """The bootstrap-t interval of a weighted mean, replicate by replicate."""
    n, rng_weights = values.size, intervals.bootstrap_weights(values.size, n_boot=n_boot, seed=seed)

    def mean_and_error(v, x):
        mean = (v * x).sum() / v.sum()
        residuals = v * (x - mean)
        return mean, np.sqrt((residuals**2).sum() * n / (n - 1)) / v.sum()

    mean, error = mean_and_error(weights, values)
    t = []
    for counts in np.concatenate(list(rng_weights)).astype(int):
        drawn = np.repeat(np.arange(n), counts)
        again, spread = mean_and_error(weights[drawn], values[drawn])
        t.append((again - mean) / max(spread, intervals.LEAST_SPREAD * error))
    tail = (1 - confidence) / 2 * max(0.3, 0.85 - 2.6 / np.sqrt(n))
    low, high = np.quantile(t, [tail, 1 - tail])
    return mean, mean - high * error, mean - low * error


def test_studentised_is_its_slow_twin():
    rng = np.random.default_rng(3)
    values, weights = rng.lognormal(0, 1, 40), rng.uniform(0.2, 1, 40)
    fast = intervals.studentise(values, weights, n_boot=300, seed=5)
    assert fast == pytest.approx(slow_studentised(values, weights, 0.95, 300, 5))


def test_studentised_moves_with_its_values():
    values, weights = np.random.default_rng(4).normal(5, 2, 60), np.ones(60)
    one = np.array(intervals.studentise(values, weights, n_boot=200))
    assert intervals.studentise(3 * values - 7, weights, n_boot=200) == pytest.approx(3 * one - 7)
    low, high = np.array(intervals.studentise(-values, weights, n_boot=200))[1:]
    assert (-high, -low) == pytest.approx(tuple(one[1:]), rel=0.02)


def test_no_kill_at_all_promises_no_more_than_so_many_trials():
    x, low, high = intervals.studentise(np.zeros(40), np.ones(40), share=True)
    tail = 0.025 * (0.85 - 2.6 / 40**0.5)
    assert (x, low) == (0.0, 0.0)
    assert high == pytest.approx(1 - tail ** (1 / 40))
    few = intervals.studentise(np.eye(1, 40)[0], np.ones(40), share=True)
    assert 0 <= few[1] <= few[0] < few[2] <= 1


def test_coverage_is_that_of_the_nearest_number_of_units():
    assert intervals.measured_coverage(60) == intervals.MEASURED[50]
    assert intervals.measured_coverage(16) == intervals.MEASURED[15] == 0.91  # no 95 % from so few
    assert intervals.measured_coverage(100_000) == intervals.MEASURED[800]
    assert intervals.pooled_coverage(1) == intervals.MEASURED_POOLED[50]
