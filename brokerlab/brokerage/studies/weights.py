"""What the weights do: the share of each factor in their spread, and the original basic weight of users against the new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules
from brokerlab.brokerage.analysis_jobs.ranking import SITE_CLASSES
from brokerlab.brokerage.comparison import Comparison, compare
from brokerlab.brokerage.engine.decisions import NOT_LOOKED_AT, TASK
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.studies.removal import NO_SHARE, with_flags
from brokerlab.brokerage.studies.users import USER, in_order, unified_queues
from brokerlab.intervals import clustered, shares, summed, sums_of

FACTORS = ("work", "data", "network", "t1", "preference")
"""Factors of the weight of a queue (production-jobs.md 7)."""


def competing_queues(decisions: Decisions) -> pl.DataFrame:
    """Return the rows of ``decisions.weighed`` that compete by weight: not removed, or only for being beyond the best ten.

    All factors are positive; ``weight`` is their product.
    """
    competes = pl.col("check").is_null() | (pl.col("check").cast(pl.String) == "rank")
    product = pl.lit(1.0)
    for name in FACTORS:
        product = product * pl.col(name).cast(pl.Float64)
    rows = decisions.weighed.filter(competes & ~pl.col("bootstrap")).with_columns(weight=product)
    return rows.filter(pl.col("weight") > 0, pl.col("weight").is_finite())


def divide_spread(rows: pl.DataFrame, factors: Sequence[str], place: str) -> pl.DataFrame:
    """Divide the spread of the log weight within each brokerage among the factors.

    With `x` the log of a factor and `y` that of the weight, each less its mean over the brokerage's places, the
    factor's part is the sum of ``x y``; the parts add up to the sum of ``y²``, as ``y`` is the sum of the ``x``. A part
    below 0 belongs to a factor that works against the others.

    Returns:
        One row per brokerage with two or more places: ``jeditaskid, snapshot``, one column per factor, ``spread`` (their
        sum); sorted.
    """
    names = list(factors)
    table = rows.sort(*TASK, pl.col(place).cast(pl.String)).select(
        *TASK, *(pl.col(name).cast(pl.Float64).log() for name in names)
    )
    sums, starts = sums_of(table, TASK, names)
    if not table.height:
        return table.with_columns(spread=pl.lit(0.0))
    sizes = np.diff(np.append(starts, table.height))
    logs = table.select(names).to_numpy()
    x = logs - np.repeat(sums / sizes[:, None], sizes, axis=0)
    parts = np.add.reduceat(x * x.sum(axis=1, keepdims=True), starts, axis=0)
    columns = [pl.Series(name, parts[:, i]) for i, name in enumerate(names)]
    result = table.select(TASK)[starts].hstack(columns)
    return result.with_columns(spread=pl.Series(parts.sum(axis=1))).filter(pl.Series(sizes > 1))


def weight_spread(decisions: Decisions, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return :func:`divide_spread` of the queues that compete by weight, with ``gshare``."""
    facts = tasks.select(*TASK, pl.col("gshare").fill_null(NO_SHARE))
    spread = divide_spread(competing_queues(decisions), FACTORS, "panda_queue")
    return spread.join(facts, on=TASK, maintain_order="left")


def factor_shares(
    spread: pl.DataFrame, factors: Sequence[str] = FACTORS, *, by: Sequence[str] = (), **dice: Any
) -> pl.DataFrame:
    """Return the share of each factor in the spread of the log weight (:func:`divide_spread`), see :func:`brokerlab.intervals.shares`.

    Parts are the factors; empty where nowhere two places compete.
    """
    return shares(spread, factors, "spread", unit=TASK[0], by=by, **dice)


CLASSES = tuple(SITE_CLASSES.values())
NOTICED = 0.1
"""A user notices a change of the expected wait by this part of the longer one."""
ORIGINAL, NEW = "original", "new"


@dataclass(frozen=True, kw_only=True)
class WeightComparison:
    """What the new basic weight would change; intervals are over users.

    Attributes:
        n_brokerages: Brokerages with candidates under both weights; all else but ``ends`` is of these.
        ends: One row, shares of the brokerages with candidates under one or both: ``kept`` (both), ``lost`` (the
            original only), ``won`` (the new one only), with ends; ``n_kept, n_lost, n_won``.
        lost_by: The check that takes most candidates of the lost ones; empty: none are lost.
        by_class: One row per ``task_class`` (all first): ``n_brokerages``, ``jobs`` expected; as shares of the jobs,
            with ends, ``moved`` (go to another queue), ``change_hi, change_mid, change_lo`` (at queues of this class,
            new less original).
        places: `intervals.shares` of the expected jobs at `CLASSES` of queues, by ``weight`` (original first) and
            ``task_class`` (all first).
        queues: Expected jobs at each queue, the largest gain first: ``queue, queue_class`` (the one that most of its
            pairs see under the original weight), ``original, new`` [jobs], ``change`` (new less original, as a share of
            all expected jobs) with ends.
        users: Expected wait of each user's jobs, the largest loss first: ``user``, ``jobs``, ``known`` (share of them
            at queues whose wait is known, under both), ``original_h, new_h``, ``change_h``, ``change`` (relative; null
            where nothing was waited for), ``noticed`` (sooner, later, same; see `NOTICED`).
        noticed: One row, shares of the users: ``sooner, later, same``, with ends.
        wait: One row, mean expected wait of a job [h]: ``original_h, new_h, change_h``, with ends.
        known: Share of the expected jobs, under both weights, at queues whose wait is known; null: no jobs.
    """

    n_brokerages: int
    ends: pl.DataFrame
    lost_by: str
    by_class: pl.DataFrame
    places: pl.DataFrame
    queues: pl.DataFrame
    users: pl.DataFrame
    noticed: pl.DataFrame
    wait: pl.DataFrame
    known: float | None


def compare_basic_weights(
    decisions: AnalysisDecisions, rows: pl.DataFrame, **dice: Any
) -> WeightComparison:
    """Decide with the other basic weight too, and compare; ``rows`` are `outcomes`, replicates are over users."""
    original, new = decide_both_weights(decisions)
    comparison = compare(original, new)
    sides = {ORIGINAL: expected_jobs(original, rows), NEW: expected_jobs(new, rows)}
    common = sides[ORIGINAL].select(TASK).unique().join(sides[NEW].select(TASK).unique(), on=TASK)
    expected = pl.concat(
        frame.join(common, on=TASK, how="semi", maintain_order="left").with_columns(
            weight=pl.lit(w)
        )
        for w, frame in sides.items()
    )
    by_brokerage = _by_brokerage(expected, rows, comparison.every.select(*TASK, "shift"))
    waits_of = _compare_waits(expected)
    users = _by_user(waits_of)
    waits = {f"{name}_h": (name, "jobs") for name in (ORIGINAL, NEW, "change")}
    every = pl.concat([by_brokerage.with_columns(task_class=pl.lit("all")), by_brokerage])
    return WeightComparison(
        n_brokerages=common.height,
        ends=_ends(comparison, rows, **dice),
        lost_by=_lost_by(comparison),
        by_class=_moved_by(every, "task_class", **dice),
        places=_places(every, **dice),
        queues=_by_queue(expected, **dice),
        users=users,
        noticed=_noticed(users, **dice),
        wait=clustered(waits_of, waits, unit=USER, **dice),
        known=_known(expected),
    )


def decide_both_weights(
    decisions: AnalysisDecisions,
) -> tuple[AnalysisDecisions, AnalysisDecisions]:
    """Return the decisions under the original basic weight and under the new one, all other rules as they are."""
    world = decisions.world
    rules = world.rules
    switches = {name: getattr(rules, name) for name in AnalysisRules.SWITCHES}
    other = NEW if rules.basic_weight == ORIGINAL else ORIGINAL
    changed = AnalysisRules(rules.rules, **(switches | {"basic_weight": other}))
    now = world.with_rules(changed, world.matching)
    others: AnalysisDecisions = now.brokerage.of(now)
    return (decisions, others) if other == NEW else (others, decisions)


def expected_jobs(decisions: AnalysisDecisions, rows: pl.DataFrame) -> pl.DataFrame:
    """Return where the jobs of every brokerage are expected.

    Jobs are drawn in proportion to the weights, so a candidate expects that share of the jobs that the chunk splits
    into. The expected wait of a queue is its waiting jobs of the share over its to-running rate, as the stabilizer
    counts both: 0 where none wait, unknown where some wait and none start.

    Returns:
        One row per candidate: ``jeditaskid, snapshot, queue, queue_class, user``, ``jobs`` expected, ``wait_h`` (null:
        unknown).
    """
    text = pl.col("panda_queue").cast(pl.String)
    wait = (
        pl.when(pl.col("x_nq") == 0)
        .then(0.0)
        .when(pl.col("trr") > 0)
        .then(pl.col("x_nq") / pl.col("trr"))
    )
    queue_class = pl.col("s_class").replace_strict(
        SITE_CLASSES, default="mid", return_dtype=pl.String
    )
    state = decisions.weighed.select(*TASK, text, wait_h=wait, queue_class=queue_class)
    return (
        decisions.shares.select(*TASK, text, "share")
        .join(state, on=[*TASK, "panda_queue"], how="left")
        .join(unified_queues(decisions), on="panda_queue", how="left")
        .join(rows.select(*TASK, USER, "jobs"), on=TASK)
        .with_columns(jobs=pl.col("share") * pl.col("jobs"))
        .select(*TASK, "queue", "queue_class", USER, "jobs", "wait_h")
        .sort(*TASK, "queue")
    )


def _ends(comparison: Comparison, rows: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return the shares of brokerages that keep, lose and win candidates."""
    before, after = (pl.col(f"outcome_{side}") == "candidates" for side in "ab")
    parts = {"kept": before & after, "lost": before & ~after, "won": after & ~before}
    flags = (
        comparison.every.filter(before | after)
        .join(rows.select(*TASK, USER, "one"), on=TASK)
        .with_columns(flag.cast(pl.Int64).alias(f"n_{name}") for name, flag in parts.items())
    )
    ends = clustered(flags, {name: (f"n_{name}", "one") for name in parts}, unit=USER, **dice)
    return ends.with_columns(pl.lit(flags[f"n_{name}"].sum()).alias(f"n_{name}") for name in parts)


def _lost_by(comparison: Comparison) -> str:
    """Return the check that takes most candidates of brokerages that lose them all."""
    lost = comparison.tasks.filter(
        pl.col("outcome_a") == "candidates", pl.col("outcome_b") != "candidates"
    )
    removed = comparison.pairs.filter(
        pl.col("change") == "lost", pl.col("check_b") != NOT_LOOKED_AT
    ).join(lost, on=TASK, how="semi")
    counts = removed["check_b"].value_counts().sort("count", "check_b", descending=[True, False])
    return str(counts["check_b"].first() or "")


def _by_brokerage(expected: pl.DataFrame, rows: pl.DataFrame, shifts: pl.DataFrame) -> pl.DataFrame:
    """Return one row per brokerage: its jobs, those that move, those at each class of queues under either weight."""
    jobs = pl.col("jobs")
    at = expected.group_by(TASK).agg(
        jobs.filter(queue_class=name, weight=weight).sum().alias(_at(name, weight))
        for name in CLASSES
        for weight in (ORIGINAL, NEW)
    )
    wide = rows.select(*TASK, USER, "task_class", "gshare", "jobs").join(at, on=TASK)
    moved = pl.col("shift").fill_null(0.0) * jobs
    return wide.join(shifts, on=TASK, how="left").with_columns(moved=moved).sort(TASK)


def _at(queue_class: str, weight: str) -> str:
    return f"{queue_class}_{weight}"


def _moved_by(by_brokerage: pl.DataFrame, column: str, **dice: Any) -> pl.DataFrame:
    """Return the shares of the jobs that move, and that classes of queues gain, by level of a column."""
    changes = {
        f"change_{name}": pl.col(_at(name, NEW)) - pl.col(_at(name, ORIGINAL)) for name in CLASSES
    }
    frame = by_brokerage.with_columns(**changes)
    moved = clustered(
        frame,
        {name: (name, "jobs") for name in ("moved", *changes)},
        unit=USER,
        by=[column],
        **dice,
    )
    counts = frame.group_by(column).agg(
        n_brokerages=pl.len().cast(pl.Int64), jobs=pl.col("jobs").sum()
    )
    return in_order(counts.join(moved, on=column), column, "jobs")


def _places(by_brokerage: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return the shares of the expected jobs at each class of queues, under either weight."""
    sides = [
        by_brokerage.select(
            USER,
            "task_class",
            "jobs",
            *(pl.col(_at(name, weight)).alias(name) for name in CLASSES),
            weight=pl.lit(weight),
        )
        for weight in (ORIGINAL, NEW)
    ]
    by = ["weight", "task_class"]
    places = shares(pl.concat(sides), CLASSES, "jobs", by=by, unit=USER, **dice)
    return in_order(places, "task_class", "whole").sort(
        "weight", descending=True, maintain_order=True
    )


def _by_queue(expected: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return the expected jobs of every queue under both weights, and the change as a share of all jobs."""
    sides = (
        summed(frame, [USER, "queue"], ["jobs"]).rename({"jobs": weight})
        for weight, frame in _by_weight(expected)
    )
    by_user = next(sides).join(next(sides), on=[USER, "queue"], how="full", coalesce=True)
    by_user = by_user.fill_null(0.0)
    by_user = by_user.sort(USER, "queue")  # so that sums do not depend on the number of threads
    totals = summed(by_user, ["queue"], [ORIGINAL, NEW])
    names = totals["queue"].to_list()
    change = pl.col(NEW) - pl.col(ORIGINAL)
    wide = by_user.group_by(USER).agg(
        *(change.filter(pl.col("queue") == name).sum().alias(name) for name in names),
        pl.col(ORIGINAL).sum().alias("jobs of all queues"),
    )
    changes = shares(wide, names, "jobs of all queues", unit=USER, **dice)
    most = pl.col("queue_class").mode().sort().first()
    classes = [frame.group_by("queue").agg(most) for _, frame in _by_weight(expected)]
    names_of_changes = {f"share{end}": f"change{end}" for end in ("", "_lo", "_hi")}
    return (
        totals.join(
            pl.concat(classes).unique("queue", keep="first", maintain_order=True), on="queue"
        )
        .join(changes.rename(names_of_changes), left_on="queue", right_on="part")
        .drop("total", "whole")
        .sort("change", "queue", descending=[True, False])
    )


def _by_weight(expected: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    return [(weight, expected.filter(weight=weight)) for weight in (ORIGINAL, NEW)]


def _compare_waits(expected: pl.DataFrame) -> pl.DataFrame:
    """Return brokerages of which some wait is known under both weights.

    ``jeditaskid, snapshot, user``, ``jobs``, ``known_original, known_new`` [jobs at queues whose wait is known],
    ``original, new, change``: mean wait there times the jobs [h].
    """
    sides = []
    for weight, frame in _by_weight(expected):
        jobs, wait = pl.col("jobs"), pl.col("wait_h")
        parts = frame.with_columns(
            hours=(jobs * wait).fill_null(0.0),
            known=pl.when(wait.is_not_null()).then(jobs).otherwise(0.0),
        )
        sums = summed(parts, [*TASK, USER], ["hours", "known", "jobs"]).filter(pl.col("known") > 0)
        sides.append(sums.rename({"known": f"known_{weight}"}))
    joined = sides[0].join(sides[1], on=[*TASK, USER], suffix=f"_{NEW}").sort(TASK)
    hours = {
        weight: pl.col(column) / pl.col(f"known_{weight}") * pl.col("jobs")
        for weight, column in ((ORIGINAL, "hours"), (NEW, f"hours_{NEW}"))
    }
    return joined.select(
        *TASK, USER, "jobs", f"known_{ORIGINAL}", f"known_{NEW}", **hours
    ).with_columns(change=pl.col(NEW) - pl.col(ORIGINAL))


def _by_user(waits: pl.DataFrame) -> pl.DataFrame:
    known = [f"known_{ORIGINAL}", f"known_{NEW}"]
    columns = ["jobs", *known, ORIGINAL, NEW]
    sums = summed(waits, [USER], columns).filter(pl.col("jobs") > 0)
    jobs, original, new = pl.col("jobs"), pl.col("original_h"), pl.col("new_h")
    step = pl.col("change_h")
    notice = step.abs() >= NOTICED * pl.max_horizontal(original, new)
    return (
        sums.select(
            USER,
            "jobs",
            known=pl.min_horizontal(known) / jobs,
            original_h=pl.col(ORIGINAL) / jobs,
            new_h=pl.col(NEW) / jobs,
        )
        .with_columns(change_h=new - original)
        .with_columns(
            change=pl.when(original > 0).then(new / original - 1),
            noticed=pl.when(notice & (step < 0))
            .then(pl.lit("sooner"))
            .when(notice & (step > 0))
            .then(pl.lit("later"))
            .otherwise(pl.lit("same")),
        )
        .sort("change_h", USER, descending=[True, False])
    )


def _known(expected: pl.DataFrame) -> float | None:
    total = float(expected["jobs"].sum())
    known = float(expected.filter(pl.col("wait_h").is_not_null())["jobs"].sum())
    return known / total if total else None


def _noticed(users: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return the share of users whose jobs would wait longer, shorter, or much as before; each user counts once."""
    parts = ("sooner", "later", "same")
    flags = with_flags(users, "noticed", parts).with_columns(one=pl.lit(1))
    formulas = {name: (name, "one") for name in parts}
    return clustered(flags, formulas, unit=USER, **dice)
