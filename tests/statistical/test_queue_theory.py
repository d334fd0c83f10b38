"""The queue core against closed forms; every queue of a run is one more repetition, intervals are at 99.9 %.

Sources: Erlang (1917) for P(wait) and mean wait of M/M/c; Pollaczek (1930), Khinchine (1932) for M/G/1; Cobham, Oper.
Res. 2 (1954) 70, doi:10.1287/opre.2.1.70 for priorities.
"""

from __future__ import annotations

import math
from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.queue_toys import attempts

T0 = np.datetime64("2026-03-01", "us")
QUEUES, JOBS = 40, 4000
WARM = JOBS // 5  # the first jobs see an empty queue
MEAN_S = 3600.0


def simulate(load: float, servers: int, service_s: np.ndarray, priority: np.ndarray | None = None):
    """Run jobs that come at random to many like queues; returns attempts in the order of arrival, and the run."""
    rng = np.random.default_rng(round(load * 100) * 1000 + servers)
    gaps = rng.exponential(MEAN_S / (load * servers), (QUEUES, JOBS)).cumsum(axis=1)
    names = [f"Q{i:02}" for i in range(QUEUES)]
    jobs = pl.DataFrame(
        {
            "pandaid": np.arange(QUEUES * JOBS),
            "computingsite": np.repeat(names, JOBS),
            "readytime": T0 + (gaps * 1e6).astype("timedelta64[us]").ravel(),
            "walltime_s": service_s.ravel(),
            "currentpriority": np.zeros(QUEUES * JOBS, np.int64) if priority is None else priority.ravel(),
        }
    )  # fmt: skip
    queues = pl.DataFrame({"panda_queue": names, "slots": servers})
    done = attempts(jobs, queues, end=T0.item() + timedelta(days=1500))
    return done, done["waiting_s"].to_numpy().reshape(QUEUES, JOBS)[:, WARM:]


def agrees(found: np.ndarray, expected: float) -> None:
    """Hold the mean over repetitions to the closed form, and see that the interval can say something."""
    low, high = stats.t.interval(0.999, len(found) - 1, found.mean(), stats.sem(found))
    assert low <= expected <= high
    assert high - low < expected / 3


def erlang_c(load: float, servers: int) -> float:
    """Return the probability of waiting in M/M/c."""
    offered = load * servers
    term = offered**servers / math.factorial(servers) / (1 - load)
    return term / (sum(offered**k / math.factorial(k) for k in range(servers)) + term)


def busy(done, servers: int, span_s: float) -> np.ndarray:
    """Return the used part of each queue's slots, while jobs come to all of them and none is empty from the start."""
    begin, end = (T0 + np.timedelta64(round(span_s * part), "s") for part in (0.2, 0.85))
    times = done.select("starttime", "endtime").to_numpy().clip(begin, end)
    used = ((times[:, 1] - times[:, 0]) / (end - begin)).reshape(QUEUES, JOBS)
    return used.sum(axis=1) / servers


@pytest.mark.parametrize(("load", "servers"), [(0.5, 1), (0.7, 3), (0.75, 10)])
def test_erlang_c(load, servers):
    service = np.random.default_rng(servers).exponential(MEAN_S, (QUEUES, JOBS))
    done, waits = simulate(load, servers, service)
    p_wait = erlang_c(load, servers)
    agrees((waits > 0).mean(axis=1), p_wait)
    agrees(waits.mean(axis=1), p_wait * MEAN_S / (servers * (1 - load)))
    agrees(busy(done, servers, MEAN_S * JOBS / (load * servers)), load)


@pytest.mark.parametrize("shape", ["constant", "lognormal", "two kinds"])
def test_pollaczek_khinchine(shape):
    rng, load, size = np.random.default_rng(5), 0.6, (QUEUES, JOBS)
    if shape == "constant":
        service, square = np.full(size, MEAN_S), MEAN_S**2
    elif shape == "lognormal":
        service = MEAN_S * rng.lognormal(-0.125, 0.5, size)
        square = MEAN_S**2 * math.exp(0.25)
    else:  # a third are short
        service = np.where(rng.random(size) < 1 / 3, 0.4, 1.3) * MEAN_S
        square = MEAN_S**2 * (0.4**2 / 3 + 1.3**2 * 2 / 3)
    _, waits = simulate(load, 1, service)
    agrees(waits.mean(axis=1), load / MEAN_S * square / (2 * (1 - load)))


def test_cobham_priorities():
    rng, load, share = np.random.default_rng(6), 0.7, 0.3
    service = rng.exponential(MEAN_S, (QUEUES, JOBS))
    urgent = rng.random((QUEUES, JOBS)) < share
    _, waits = simulate(load, 1, service, np.where(urgent, 900, 100))
    residual = load * MEAN_S
    chosen = urgent[:, WARM:]
    first = residual / (1 - load * share)
    for group, expected in ((chosen, first), (~chosen, first / (1 - load))):
        agrees(np.where(group, waits, 0).sum(axis=1) / group.sum(axis=1), expected)
