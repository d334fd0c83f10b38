"""Scores of random jobs: the compiled sums are those of a plain loop, and units do not matter."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import checked
from brokerlab.estimators.scoring import compare
from brokerlab.estimators.scoring.judged import COUNTED, PLACE, Judged
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


def by_hand(records, bounds, levels, theirs):
    """Levels chosen on other tasks, in plain words: rates of each task under both, and each task's level."""
    rows = [
        (job, row, given)
        for job, row, given in zip(records.iter_rows(named=True), bounds, theirs, strict=True)
        if not job["is_scout"]
        and math.isfinite(row[0])
        and math.isfinite(given)
        and (not job["censored"] or job["used"] >= max(given, row[-1]))
    ]
    tasks = sorted({job["jeditaskid"] for job, _, _ in rows})

    def rates(task, bound_of):
        mine = [each for each in rows if each[0]["jeditaskid"] == task]
        misses = sum(job["used"] >= bound_of(row, given) for job, row, given in mine)
        done = [
            (job["used"], bound_of(row, given)) for job, row, given in mine if not job["censored"]
        ]
        over, used = sum(max(b - u, 0) for u, b in done), sum(u for u, _ in done)
        return {"exceed": (misses, len(mine)), "over": (over, used)}

    ours = [{t: rates(t, lambda row, _, k=k: row[k]) for t in tasks} for k in range(len(levels))]
    rule = {t: rates(t, lambda _, given: given) for t in tasks}

    def mean(of, what, average):
        pairs = [pair for pair in (each[what] for each in of) if pair[1]]
        if average == "jobs":
            return sum(a for a, _ in pairs) / sum(b for _, b in pairs)
        return sum(a / b for a, b in pairs) / len(pairs)

    told = {}
    for average in ("jobs", "tasks"):
        place = {}
        for task in tasks:
            others = [t for t in tasks if t != task]
            limit = mean([rule[t] for t in others], "exceed", average)
            enough = [
                k
                for k in range(len(levels))
                if mean([ours[k][t] for t in others], "exceed", average) <= limit + 1e-12
            ]
            place[task] = enough[0] if enough else len(levels) - 1
        chosen = [ours[k][t] for t, k in place.items()]
        told[average] = (
            min(levels[k] for k in place.values()),
            max(levels[k] for k in place.values()),
            *(mean(chosen, what, average) for what in ("exceed", "over")),
            *(mean(list(rule.values()), what, average) for what in ("exceed", "over")),
        )
    return told


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_levels_chosen_on_other_tasks_are_those_of_a_plain_loop(seed):
    records = checked(random_records(60, seed=seed, tasks=3, scouts=2))
    rng = np.random.default_rng(seed)
    used, levels = records["used"].to_numpy(), (0.5, 0.7, 0.8, 0.9)
    about = used * rng.lognormal(0, 0.3, used.size)
    bounds = about[:, None] * np.array([0.8, 1.0, 1.3, 2.0])
    bounds[rng.random(used.size) < 0.1] = np.inf
    theirs = used * rng.lognormal(0.1, 0.3, used.size)
    theirs[rng.random(used.size) < 0.1] = np.inf
    ids, none = records["pandaid"].to_numpy(), np.zeros(used.size, dtype=np.int64)
    found = compare(
        records,
        {
            "ours": Predicted(ids, none, levels, bounds, bounds[:, 0]),
            "rule": Predicted(ids, none, levels, np.repeat(theirs[:, None], 4, axis=1), theirs),
        },
        quantity="memory",
        levels=levels,
        level=0.9,
        grid=levels,
        reference="rule",
        n_boot=20,
    ).at_deployed.filter(chosen_on="other tasks")
    names = [
        "level_lo",
        "level_hi",
        "exceed",
        "over_allocation",
        "exceed_reference",
        "over_reference",
    ]
    for average, told in by_hand(records, bounds, levels, theirs).items():
        row = found.filter(average=average).row(0, named=True)
        assert [row[name] for name in names] == pytest.approx(list(told))
