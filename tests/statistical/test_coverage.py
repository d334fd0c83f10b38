"""Do the intervals and promises hold as often as they say? Every experiment has a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from brokerlab.calibrate.percentiles import frames as promises
from brokerlab.intervals import (
    ShareSums,
    bootstrap_totals,
    percentile_interval,
    ratio_variance,
    t_factor,
)
from brokerlab.numerics import SortedGroups

DRAWS = 20_000


@pytest.mark.parametrize(("n", "order"), [(5, 3), (5, 5), (10, 8), (10, 10), (50, 49)])
def test_coverage_of_an_order_statistic_is_beta(n, order):
    rng = np.random.default_rng(n * 100 + order)
    scouts = np.sort(rng.lognormal(7.8, 0.6, (DRAWS, n)), axis=1)
    covered = stats.norm.cdf((np.log(scouts[:, order - 1]) - 7.8) / 0.6)
    assert stats.kstest(covered, stats.beta(order, n + 1 - order).cdf).pvalue > 1e-3
    _, expected, _ = promises.percentile_coverage(n, 100 * (order - 1) / (n - 1))
    assert covered.mean() == pytest.approx(expected, abs=4 * covered.std() / DRAWS**0.5)


@pytest.mark.parametrize("shape", ["lognormal", "uniform", "heavy"])
@pytest.mark.parametrize(("n", "rank"), [(5, 75), (10, 75), (10, 95), (9, 60)])
def test_the_percentile_rule_stays_within_its_bounds(shape, n, rank):
    rng = np.random.default_rng(n + rank)
    uniform = rng.uniform(size=(DRAWS, n))
    quantile = {
        "lognormal": stats.lognorm(0.8),
        "uniform": stats.uniform(),
        "heavy": stats.pareto(1.2),
    }
    law = quantile[shape]
    values = law.ppf(uniform)
    group = np.repeat(np.arange(DRAWS), n)
    estimate = SortedGroups.of(group, values.ravel(), DRAWS).percentile(rank)
    covered = law.cdf(estimate)
    low, middle, high = promises.percentile_coverage(n, rank)
    error = 4 * covered.std() / DRAWS**0.5
    assert low - error <= covered.mean() <= high + error
    if shape == "uniform":
        assert covered.mean() == pytest.approx(middle, abs=error)


def tasks(rng, n_tasks, mean_rate, shape):
    """Tasks of very different size whose jobs share their fate: rates from a skewed Beta."""
    jobs = np.round(rng.lognormal(4.5, 0.8, n_tasks)) + 20
    rate = rng.beta(shape, shape * (1 - mean_rate) / mean_rate, n_tasks)
    return jobs, rng.binomial(jobs.astype(int), rate).astype(float)


@pytest.mark.parametrize(
    ("n_tasks", "rate", "shape"),
    [(60, 0.02, 0.5), (150, 0.02, 0.5), (150, 0.1, 0.5), (400, 0.005, 0.5), (100, 0.02, 0.1)],
)
def test_the_upper_bound_of_an_exceed_rate_is_rarely_too_low(n_tasks, rate, shape):
    """97.5 % are promised; a very skewed sample of few tasks costs some of it, never below 91 %."""
    rng = np.random.default_rng(n_tasks)
    above, inside = 0, 0
    repeats = 1500
    for _ in range(repeats):
        jobs, exceed = tasks(rng, n_tasks, rate, shape)
        _, low, high = ShareSums.of(exceed[:, None], jobs).interval(0.95)
        above += high[0] >= rate
        inside += low[0] <= rate <= high[0]
    assert above / repeats >= (0.94 if shape > 0.1 else 0.91)
    assert inside / repeats >= (0.93 if shape > 0.1 else 0.90)


def test_the_bootstrap_over_tasks_covers_a_paired_difference():
    """Two ratios of totals over the same tasks; a bootstrap over jobs would be far too narrow."""
    rng = np.random.default_rng(8)
    n_tasks, repeats, hits = 80, 300, 0
    for repeat in range(repeats):
        work = rng.lognormal(3, 0.7, n_tasks)
        before = work * (0.30 + rng.normal(0, 0.15, n_tasks))
        after = before - work * (0.05 + rng.normal(0, 0.05, n_tasks))
        totals = np.column_stack([before, after, work])
        drawn = bootstrap_totals(totals, n_boot=400, seed=repeat)
        gain = ((drawn[:, 1] - drawn[:, 0]) / drawn[:, 2])[:, None]
        low, high = percentile_interval(gain, 0.95, n_tasks=n_tasks)
        hits += low[0] <= -0.05 <= high[0]
    assert 0.90 <= hits / repeats <= 0.99


def test_the_bootstrap_covers_the_mean_of_ten_tasks():
    """Ten is the fewest that get an interval; unexpanded, it would hold 90 % of normal means."""
    rng = np.random.default_rng(10)
    values = rng.normal(size=(1000, 10))
    hits = 0
    for repeat, row in enumerate(values):
        means = bootstrap_totals(row[:, None], n_boot=400, seed=repeat) / 10
        low, high = percentile_interval(means, 0.95, n_tasks=10)
        hits += low[0] <= 0 <= high[0]
    assert hits / 1000 >= 0.92


def test_the_linearised_interval_of_the_loss_covers():
    rng = np.random.default_rng(9)
    n_tasks, repeats, hits = 80, 2000, 0
    for _ in range(repeats):
        work = rng.lognormal(3, 0.7, n_tasks)
        gain = work * (-0.05 + rng.normal(0, 0.1, n_tasks))
        ratio = np.array([gain.sum() / work.sum()])
        variance = ratio_variance(
            np.array([(gain**2).sum()]),
            np.array([(gain * work).sum()]),
            float((work**2).sum()),
            float(work.sum()),
            ratio,
            n_tasks,
        )
        hits += abs(ratio[0] + 0.05) <= t_factor(n_tasks, 0.95) * variance[0] ** 0.5
    assert 0.92 <= hits / repeats <= 0.97
