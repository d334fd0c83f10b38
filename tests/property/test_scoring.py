"""Scores of random jobs: the compiled sums are those of a plain loop, and units do not matter."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.estimators.records import checked
from brokerlab.estimators.scoring.attempts import COUNTED, PLACE
from brokerlab.estimators.scoring.judged import Judged
from tests.estimator_kit import random_records

GB, HOUR_S = 1e9, 3600


def plainly(records, bounds):
    """The same sums in the words of the chapter, job by job."""
    found = defaultdict(lambda: dict.fromkeys(COUNTED, 0.0))
    for job, bound in zip(records.iter_rows(named=True), bounds, strict=True):
        if job["is_scout"]:
            continue
        line = found[job["jeditaskid"]]
        line["jobs"] += 1
        if math.isinf(bound):
            continue
        line["answered"] += 1
        used, hours = job["used"], job["wall_s"] * 2**20 / GB / HOUR_S
        if job["censored"]:
            line["unknown" if used < bound else "scored"] += 1
            line["exceed"] += used >= bound
            line["at_limit"] += used == bound
            continue
        seen = records.filter(
            pl.col("jeditaskid") == job["jeditaskid"],
            (pl.col("ended_s") < job["decided_s"])
            | (
                (pl.col("ended_s") == job["decided_s"])
                & ((pl.col("decided_s") < job["decided_s"]) | (pl.col("pandaid") < job["pandaid"]))
            ),
        )["used"]
        attempts = [bound]
        while attempts[-1] < used:
            again = max(2 * attempts[-1], 1.0)
            if len(attempts) == 1 and len(seen) and seen.max() > bound:
                again = max(seen.max(), 1.0)
            attempts.append(again)
        lost = sum(attempts[:-1])
        line["scored"] += 1
        line["exceed"] += used > bound
        line["used"] += used
        line["bound"] += bound
        line["over"] += max(bound - used, 0)
        line["usage"] += used * hours
        line["killed"] += lost * hours
        line["waste"] += (lost + attempts[-1] - used) * hours
        line["retries"] += len(attempts) - 1
    return found


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_sums_are_those_of_a_plain_loop(seed):
    records = checked(random_records(40, seed=seed, scouts=2))
    rng = np.random.default_rng(seed)
    bounds = records["used"].to_numpy() * rng.choice([0, 0.1, 0.7, 1, 1.5, np.inf], 40)
    judged = Judged.of(records, "memory", "production")
    sums = judged.sums(bounds[judged.rows])
    expected = plainly(records, bounds)
    assert sorted(judged.tasks.tolist()) == sorted(expected)
    for task, line in zip(judged.tasks.tolist(), sums, strict=True):
        assert line.tolist() == pytest.approx([expected[task][name] for name in COUNTED])


@given(st.integers(0, 10_000), st.floats(0.01, 100))
@settings(max_examples=15, deadline=None)
def test_counts_and_ratios_do_not_depend_on_the_unit(seed, factor):
    records = checked(random_records(40, seed=seed, scouts=2))
    bounds = records["used"].to_numpy() * np.random.default_rng(seed).choice([0.5, 1.2], 40)
    one, other = (
        Judged.of(frame, "memory", "all")
        for frame in (records, records.with_columns(pl.col("used") * factor))
    )
    a, b = one.sums(bounds).sum(axis=0), other.sums(bounds * factor).sum(axis=0)
    for name in ("jobs", "scored", "exceed", "unknown"):
        assert a[PLACE[name]] == b[PLACE[name]]
    if a[PLACE["used"]]:
        ratios = [x[PLACE["over"]] / x[PLACE["used"]] for x in (a, b)]
        assert ratios[0] == pytest.approx(ratios[1])
