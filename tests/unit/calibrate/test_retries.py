"""The factor of retries: against sums by hand over single jobs, what the archive shows of it, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from brokerlab.calibrate.percentiles import Assumptions, LossWeights
from brokerlab.calibrate.percentiles.backtest import backtest
from brokerlab.calibrate.percentiles.retries import judge_retries, observed_retries
from brokerlab.errors import ConfigError, InsufficientDataError
from tests.unit.calibrate.toys import NO_JOBS, history_of, inputs, quantities, tasks

KILLED = 1212
N = 30


def jobs_table(rows):
    """The jobs table: (jeditaskid, pandaid, parentid, error, requested)."""
    task, pandaid, parent, error, requested = zip(*rows, strict=True)
    return pl.DataFrame(
        {
            "pandaid": pandaid, "jeditaskid": task, "parentid": parent, "piloterrorcode": error,
            "minramcount": requested, "jobstatus": ["failed" if e else "finished" for e in error],
        },
        schema_overrides={"parentid": pl.Int64},
    )  # fmt: skip


RETRIED = [
    (100, 1001, None, KILLED, 1000), (100, 1002, 1001, 0, 1500),  # one and a half times
    (100, 1003, None, KILLED, 1000), (100, 1004, 1003, 0, 1500), (100, 1005, 1003, 0, 900),  # divided
    (101, 1006, None, KILLED, 1000),  # not tried again
    (101, 1007, None, 1099, 1000), (101, 1008, 1007, 0, 4000),  # failed otherwise
    (999, 1009, None, KILLED, 1000), (999, 1010, 1009, 0, 4000),  # of no task that is looked at
]  # fmt: skip


def data(rows, *, spread=0.25):
    """Thirty tasks whose scouts are too few for the spread of their jobs, and what was killed."""
    every = quantities(N, seed=3, spread=spread)
    made = inputs(every, tasks(N))
    table = jobs_table(rows)
    table = pl.concat([NO_JOBS, table], how="diagonal_relaxed")
    return replace(made, history=history_of(every, table))


def test_a_retry_is_seen_where_one_followed_a_kill_for_memory():
    made = data(RETRIED)
    kills, seen = observed_retries(made.history, made.tasks)
    assert kills == 3
    assert seen.rows() == [(100, 1001, 1000, 1500, 1.5)]


def test_what_a_factor_costs_is_the_sum_over_the_jobs_above_their_first_request():
    """Retries of a job get the factor, then its square, times the first request; who needs more is given up."""
    made = data(RETRIED)
    found = judge_retries(made, (each for each in (1.1, 2.0)))
    assert found.judgement.current == 1.5
    assert found.judgement.settings == (1.1, 1.5, 2.0)
    weights = LossWeights.default("ramcount")
    tried = backtest(
        made, ranks=(75,), margins=(10,), assumptions=Assumptions(rules=made.rules),
    )  # fmt: skip
    (replay,) = tried.each(lambda each: each)
    now = tried.current
    asked, used, jobs = replay.requests(now), replay.line.used, replay.jobs
    hours = replay.line.amount
    task, coreh = jobs["task"].to_numpy(), jobs["coreh"].to_numpy()
    for place, factor in enumerate(found.judgement.settings):
        by_task = np.zeros(replay.tasks.height)
        for k in range(task.size):
            if used[k] <= int(asked[k]):
                continue
            for ask in (factor * asked[k], factor**2 * asked[k]):
                if used[k] <= int(ask):
                    by_task[task[k]] += weights.over * hours[k] * (ask - used[k])
                    break
                by_task[task[k]] += weights.killed_coreh * coreh[k]
            else:
                by_task[task[k]] += weights.n_lost
        work = np.bincount(task, coreh)
        exceeds = np.bincount(task, used > asked.astype(int)) > 0
        values = found.judgement.outcomes.values([place])["loss"][:, 0]
        assert exceeds.sum() == values.size > 10
        assert sorted(values) == pytest.approx(sorted((by_task / work)[exceeds]), abs=1e-9)


def test_the_loss_has_the_weights_that_are_given():
    weights = LossWeights.default("ramcount", over=3.0, n_lost=1.0)
    frame = judge_retries(data(RETRIED), (1.1, 2.0), loss=weights).frame()
    parts = sum(w * frame[n] for n, w in weights.to_dict().items() if n in frame.columns)
    assert frame["loss"].to_list() == pytest.approx(parts.to_list())


def test_the_answer_names_the_factor_and_proposes_nothing():
    found = judge_retries(data(RETRIED), (1.1, 2.0))
    frame = found.frame()
    assert frame["factor"].to_list() == [1.1, 1.5, 2.0]
    assert frame.filter("is_current")["factor"].to_list() == [1.5]
    assert frame.filter("is_best")["factor"].item() == found.judgement.best
    assert f"{found.judgement.best:g} times" in found.headline() or "Keep 1.5" in found.headline()


def test_an_archive_without_retries_that_ask_for_more_is_refused():
    same = [(100, 1001, None, KILLED, 1000), (100, 1002, 1001, 0, 1000)]
    with pytest.raises(
        InsufficientDataError,
        match=r"1 jobs were killed .* 1 of them tried again .* no retry asked",
    ):
        judge_retries(data(same))
    with pytest.raises(InsufficientDataError, match="0 of them tried again"):
        judge_retries(data([(100, 1001, None, KILLED, 1000)]))
    with pytest.raises(ConfigError, match="factors 1: allowed"):
        judge_retries(data(RETRIED), (1.0, 2.0))
