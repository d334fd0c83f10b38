"""Scores on synthetic archives: what a back-test says must hold on periods that it never saw."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from brokerlab import archive, scouts
from brokerlab.calibrate.judge import cap_weights
from brokerlab.calibrate.percentiles import Assumptions, Setting, kills
from brokerlab.worlds import synthesise
from brokerlab.worlds.truth import QUANTILES
from tests.unit.calibrate.toys import backtest

REPEATS, FEW = 24, 2
"""Periods of a long run, and of every run."""
SETTINGS = [(75, 10), (80, 20), (95, 10)]


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return fresh(tmp_path_factory, range(FEW))


@pytest.fixture(scope="module")
def periods(few, tmp_path_factory):
    return [*few, *fresh(tmp_path_factory, range(FEW, REPEATS))]


def fresh(tmp_path_factory, seeds):
    """Return back-tests of fresh periods of one law: no drift, another seed each."""
    tried = []
    for seed in seeds:
        folder = tmp_path_factory.mktemp("period")
        synthesise(folder, jobs=25_000, days=14, seed=1000 + seed, drift=0.0, max_task_jobs=400)
        opened = archive.open(folder)
        tables = {
            n: opened.scan(n).collect() for n in ("jobs", "files", "tasks", "datasets", "queues")
        }
        jobs, _, tasks, _, queues = tables.values()
        found = backtest(
            scouts.job_quantities(tables),
            tasks,
            queues,
            jobs,
            ranks={rank for rank, _ in SETTINGS},
            margins={margin for _, margin in SETTINGS},
            assumptions=Assumptions(min_scored=20),
        )
        truth = opened.truth("tasks").join(tasks, on="jeditaskid", suffix="_task")
        tried.append((found, truth))
    return tried


def rates(periods, setting):
    """Kill rate and core-hours of every task of some periods under a setting."""
    rows = [found.under([Setting(*setting)]) for found, _ in periods]
    tasks = pl.concat(rows).filter(pl.col("work_coreh") > 0)
    return tasks["exceed_rate"].to_numpy(), cap_weights(tasks["work_coreh"].to_numpy())


@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS)
def test_intervals_of_the_exceed_rate_hold_on_fresh_periods(periods, setting):
    inside = 0
    for i, period in enumerate(periods):
        others, sizes = rates([*periods[:i], *periods[i + 1 :]], setting)
        row = kills().interval("rate", *rates([period], setting), share=True)
        inside += row["rate_lo"] <= np.average(others, weights=sizes) <= row["rate_hi"]
    # 95 % promised: at 93 %, 6 misses or more have a probability below 1 %
    assert inside >= REPEATS - 5


@pytest.mark.parametrize("which", ["few", pytest.param("periods", marks=pytest.mark.long)])
def test_scored_rates_agree_with_the_truth_beside_the_archive(which, request):
    """Per task, the truth gives the probability that a job exceeds the request; the jobs must follow it."""
    periods = request.getfixturevalue(which)
    shares = [true_and_seen(found, truth) for found, truth in periods]
    true, seen, jobs = (np.concatenate(part) for part in zip(*shares, strict=True))
    assert true.size > 12 * len(periods)
    gap = (seen - true) * jobs
    error = np.sqrt((gap**2).sum()) / jobs.sum()
    assert (
        abs(gap.sum() / jobs.sum()) <= 3 * error + 0.002
    )  # the truth is a table of twelve quantiles
    assert np.corrcoef(true, seen)[0, 1] > 0.9


def true_and_seen(found, truth):
    """Return true and scored exceed rate, and jobs, of single-core tasks under (75, 10)."""
    base = pl.col("baseramcount").fill_null(0) * pl.col("ramunit").str.starts_with("MBPerCore")
    rows = (
        found.under([Setting(75, 10)])
        .join(truth, on="jeditaskid")
        .filter((pl.col("cores") == 1) & (pl.col("ref_cores") == 1))
        .with_columns(request_kb=(pl.col("estimate") + base) * 1024)
    )
    table = rows.select(f"maxpss_kb_q{round(1000 * q)}" for q in QUANTILES).to_numpy()
    true = np.array(
        [
            1 - np.interp(request, quantiles, QUANTILES, left=0.5, right=1.0)
            for request, quantiles in zip(rows["request_kb"], table, strict=True)
        ]
    )
    clear = true < 0.5  # below the median the table says nothing
    return true[clear], rows["exceed_rate"].to_numpy()[clear], rows["n_scored"].to_numpy()[clear]
