"""The original basic weight against the new one: which jobs would go elsewhere, to which queues, whose."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage import compare
from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules, decide
from brokerlab.brokerage.view import view
from brokerlab.report.replays.removal import KEYS
from brokerlab.report.replays.shares import USER, shares
from brokerlab.report.replays.shares import summed as sums

QUEUE_CLASSES = {1: "hi", 0: "mid", -1: "lo"}
CLASSES = tuple(QUEUE_CLASSES.values())
FELT = 0.1
"""A user feels a change of the expected wait by this part of it."""
SIDES = ("old", "new")
SHOWN = 14
"""Queues whose change is told with an interval, those that change most."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What the new basic weight would change.

    Attributes:
        n_brokerages: Brokerages with candidates under both.
        ends: `shares` over users of the brokerages with candidates under one or both: ``kept`` (both), ``lost`` (the
            original only), ``won`` (the new one only).
        lost_by: The check that takes most candidates of the lost ones; empty: none are lost.
        moved: `shares` over users of the expected jobs that go to another queue.
        moved_by_class, moved_by_gshare: The same by ``task_class``, ``gshare``.
        places: `shares` over users of the expected jobs at `CLASSES` of queues, by ``weight`` (old, new) and
            ``task_class`` (all, or one).
        changes: The same, new less old, with intervals of the difference.
        queues: Expected jobs at each queue: ``queue, queue_class``, ``old, new``, ``change``; the largest gain first.
        gains: `shares` over users: how much more of all expected jobs the queues that change most get; parts: queues.
        users: Expected wait of each user's jobs: ``user``, ``jobs``, ``known`` (share of them at queues whose wait is
            known, under both), ``old_h, new_h``, ``change`` (new over old, less 1); the largest loss first.
        felt: `shares` over users, each counting once: ``sooner``, ``later`` (by `FELT` or more), ``same``.
        wait: Mean expected wait [h] as `shares` over users: parts ``old``, ``new``, ``change``; whole: jobs.
        known: Share of the expected jobs, under both weights, at queues whose wait is known.
    """

    n_brokerages: int
    ends: pl.DataFrame
    lost_by: str
    moved: pl.DataFrame
    moved_by_class: pl.DataFrame
    moved_by_gshare: pl.DataFrame
    places: pl.DataFrame
    changes: pl.DataFrame
    queues: pl.DataFrame
    gains: pl.DataFrame
    users: pl.DataFrame
    felt: pl.DataFrame
    wait: pl.DataFrame
    known: float | None


def studied(decisions: AnalysisDecisions, rows: pl.DataFrame, *, n_boot: int, seed: int) -> Weights:
    """Decide with the other basic weight and compare.

    Args:
        decisions: Of the analysis brokerage.
        rows: From `brokerages.brokerages`.
        n_boot: Bootstrap replicates over users.
        seed: Of the bootstrap.
    """
    old, new = both(decisions)
    placed = [expected(made, rows) for made in (old, new)]
    keys = placed[0].select(KEYS).unique().join(placed[1].select(KEYS).unique(), on=KEYS)
    one, other = (frame.join(keys, on=KEYS, how="semi") for frame in placed)
    told = compare(old, new).tasks.select(*KEYS, "shift")
    moved = (
        rows.join(keys, on=KEYS, how="semi")
        .join(told, on=KEYS, how="left")
        .with_columns(moved=pl.col("jobs") * pl.col("shift").fill_null(0.0))
    )
    by_class = _by_class(one, other)
    users = _users(one, other)
    queues = _queues(one, other)
    return Weights(
        n_brokerages=keys.height,
        ends=_ends(old, new, rows, n_boot=n_boot, seed=seed),
        lost_by=_lost_by(old, new),
        moved=_moved(moved, [], n_boot=n_boot, seed=seed),
        moved_by_class=_moved(moved, ["task_class"], n_boot=n_boot, seed=seed),
        moved_by_gshare=_moved(moved, ["gshare"], n_boot=n_boot, seed=seed),
        places=_places(by_class, n_boot=n_boot, seed=seed),
        changes=_changes(by_class, n_boot=n_boot, seed=seed),
        queues=queues,
        gains=_gains(one, other, queues, n_boot=n_boot, seed=seed),
        users=users,
        felt=_felt(users, n_boot=n_boot, seed=seed),
        wait=_wait(one, other, n_boot=n_boot, seed=seed),
        known=_known(one, other),
    )


def _moved(rows: pl.DataFrame, by: list[str], *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of the expected jobs that go elsewhere."""
    return shares(rows, ["moved"], "jobs", by=by, unit=USER, n_boot=n_boot, seed=seed)


def both(decisions: AnalysisDecisions) -> tuple[AnalysisDecisions, AnalysisDecisions]:
    """Return the decisions under the original basic weight and under the new one, all other rules as they are."""
    rules = decisions.world.rules
    given = {name: getattr(rules, name) for name in AnalysisRules.SWITCHES}
    other = "new" if rules.basic_weight == "original" else "original"
    made = decide(
        decisions.world.tables,
        rules=AnalysisRules(rules.rules, **(given | {"basic_weight": other})),
        matching=decisions.world.matching,
        config=decisions.world.config,
    )
    return (decisions, made) if other == "new" else (made, decisions)


def expected(decisions: AnalysisDecisions, rows: pl.DataFrame) -> pl.DataFrame:
    """Return where the jobs of every brokerage are expected.

    Jobs are drawn in proportion to the weights, so a candidate expects that share of the jobs that the chunk splits
    into. The expected wait of a queue is its waiting jobs of the share over its to-running rate, as the stabilizer
    counts both: 0 where none wait, unknown where some wait and none start.

    Returns:
        One row per candidate: ``jeditaskid, snapshot, queue, queue_class, user, task_class``, ``jobs`` expected,
        ``wait_h`` (null: unknown).
    """
    names = decisions.world.facts.queues.select("panda_queue", "parent").unique(
        "panda_queue", keep="first", maintain_order=True
    )
    text = pl.col("panda_queue").cast(pl.String)
    wait = (
        pl.when(pl.col("x_nq") == 0).then(0.0)
        .when(pl.col("trr") > 0).then(pl.col("x_nq") / pl.col("trr"))
    )  # fmt: skip
    state = decisions.weighed.select(
        *KEYS, text, wait_h=wait,
        queue_class=pl.col("s_class").replace_strict(QUEUE_CLASSES, default="mid", return_dtype=pl.String),
    )  # fmt: skip
    shared = view(decisions).shares.select(*KEYS, text, "share")
    return (
        shared.join(state, on=[*KEYS, "panda_queue"], how="left")
        .join(names, on="panda_queue", how="left")
        .join(rows.select(*KEYS, "user", "task_class", n="jobs"), on=KEYS)
        .select(
            *KEYS, "queue_class", "user", "task_class", "wait_h",
            queue=pl.coalesce("parent", "panda_queue"), jobs=pl.col("share") * pl.col("n"),
        )
        .sort(*KEYS, "queue")
    )  # fmt: skip


def _ends(
    old: AnalysisDecisions, new: AnalysisDecisions, rows: pl.DataFrame, *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Return the shares of brokerages that keep, lose and win candidates."""
    one, other = (_with_candidates(made, side) for made, side in ((old, "old"), (new, "new")))
    some = one.join(other, on=KEYS, how="full", coalesce=True).with_columns(
        pl.col("old", "new").fill_null(value=False)
    )
    table = some.join(rows.select(*KEYS, "user", "one"), on=KEYS).with_columns(
        kept=(pl.col("old") & pl.col("new")).cast(pl.Int64),
        lost=(pl.col("old") & ~pl.col("new")).cast(pl.Int64),
        won=(~pl.col("old") & pl.col("new")).cast(pl.Int64),
    )
    return shares(table, ["kept", "lost", "won"], "one", unit=USER, n_boot=n_boot, seed=seed)


def _with_candidates(made: AnalysisDecisions, side: str) -> pl.DataFrame:
    """Return the brokerages that have candidates, marked."""
    there = made.tasks.filter(pl.col("outcome") == "candidates").select(KEYS)
    return there.with_columns(pl.lit(value=True).alias(side))


def _lost_by(old: AnalysisDecisions, new: AnalysisDecisions) -> str:
    """Name the check that takes most candidates of brokerages that lose them all."""
    lost = _with_candidates(old, "old").join(_with_candidates(new, "new"), on=KEYS, how="anti")
    before = old.queues.filter(pl.col("check").is_null()).join(lost, on=KEYS, how="semi")
    place = pl.col("panda_queue").cast(pl.String)
    after = new.queues.select(*KEYS, place, pl.col("check").cast(pl.String))
    took = before.select(*KEYS, place).join(after, on=[*KEYS, "panda_queue"])["check"].drop_nulls()
    if took.is_empty():
        return ""
    found = took.value_counts().sort("count", "check", descending=[True, False])
    return str(found["check"][0])


def _by_class(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return the expected jobs by brokerage, weight and class of queue, and once more for all classes of tasks."""
    sides = [
        frame.with_columns(weight=pl.lit(name)) for frame, name in ((one, "old"), (other, "new"))
    ]
    rows = pl.concat(sides)
    rows = pl.concat([rows.with_columns(task_class=pl.lit("all")), rows])
    jobs = pl.col("jobs")
    return (
        rows.group_by("weight", "task_class", *KEYS, "user")
        .agg(
            *(jobs.filter(pl.col("queue_class") == name).sum().alias(name) for name in CLASSES),
            jobs=jobs.sum(),
        )
        .sort("weight", "task_class", *KEYS)
    )


def _places(by_class: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the shares of the expected jobs at each class of queues."""
    return shares(
        by_class, CLASSES, "jobs", by=["weight", "task_class"], unit=USER, n_boot=n_boot, seed=seed
    )


def _changes(by_class: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return new less old of these shares."""
    keys = ["task_class", *KEYS, "user"]
    old, new = (by_class.filter(pl.col("weight") == side).drop("weight") for side in SIDES)
    joined = old.join(new, on=keys, suffix="_new")
    table = joined.with_columns(
        (pl.col(f"{name}_new") - pl.col(name)).alias(name) for name in CLASSES
    )
    return shares(table, CLASSES, "jobs", by=["task_class"], unit=USER, n_boot=n_boot, seed=seed)


def _queues(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return the expected jobs of every queue under both weights."""

    def summed(frame: pl.DataFrame, name: str) -> pl.DataFrame:
        classes = frame.group_by("queue").agg(
            pl.col("queue_class").mode().sort().first().alias(f"class_{name}")
        )
        return sums(frame, ["queue"], ["jobs"]).rename({"jobs": name}).join(classes, on="queue")

    joined = summed(one, "old").join(summed(other, "new"), on="queue", how="full", coalesce=True)
    return (
        joined.with_columns(pl.col("old", "new").fill_null(0.0))
        .select(
            "queue", "old", "new", queue_class=pl.coalesce("class_old", "class_new"),
            change=pl.col("new") - pl.col("old"),
        )
        .sort("change", "queue", descending=[True, False])
    )  # fmt: skip


def _gains(
    one: pl.DataFrame, other: pl.DataFrame, queues: pl.DataFrame, *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Return the change at the queues that change most, the largest gain first."""
    moved = queues.filter(pl.col("change") != 0)
    most = moved.sort(pl.col("change").abs(), "queue", descending=[True, False]).head(SHOWN)
    names = most.sort("change", "queue", descending=[True, False])["queue"].to_list()
    jobs = pl.concat([one.with_columns(-pl.col("jobs")), other])
    table = jobs.group_by(*KEYS, "user").agg(
        pl.col("jobs").filter(pl.col("queue") == name).sum().alias(name) for name in names
    )
    whole = sums(one, [*KEYS, "user"], ["jobs"]).rename({"jobs": "all_jobs"})
    both_ways = whole.join(table, on=[*KEYS, "user"], how="left").fill_null(0.0)
    return shares(both_ways, names, "all_jobs", unit=USER, n_boot=n_boot, seed=seed)


def _waits(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the expected wait of each brokerage's jobs, at queues whose wait is known."""
    known = pl.col("wait_h").is_not_null()
    parts = frame.with_columns(
        (pl.col("jobs") * pl.col("wait_h")).fill_null(0.0).alias(f"hours_{name}"),
        pl.when(known).then("jobs").otherwise(0.0).alias(f"known_{name}"),
        pl.col("jobs").alias(f"jobs_{name}"),
    )
    return sums(parts, [*KEYS, "user"], [f"{what}_{name}" for what in ("hours", "known", "jobs")])


def _compared(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return brokerages with their mean expected wait under both weights, where some of it is known under both."""
    rows = _waits(one, "old").join(_waits(other, "new"), on=[*KEYS, "user"]).sort(KEYS)
    usable = rows.filter(pl.col("known_old") > 0, pl.col("known_new") > 0)
    return usable.with_columns(
        (pl.col(f"hours_{name}") / pl.col(f"known_{name}") * pl.col("jobs_old")).alias(name)
        for name in SIDES
    ).with_columns(change=pl.col("new") - pl.col("old"))


def _wait(one: pl.DataFrame, other: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the mean expected wait of a job under both weights, and the change [h]."""
    parts = (*SIDES, "change")
    rows = _compared(one, other)
    return shares(rows, parts, "jobs_old", unit=USER, n_boot=n_boot, seed=seed)


def _users(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return the expected wait of each user's jobs under both weights."""
    columns = ["jobs_old", "known_old", "known_new", *SIDES]
    found = sums(_compared(one, other), ["user"], columns).select(
        "user", jobs="jobs_old", known=pl.min_horizontal("known_old", "known_new"), old_h="old", new_h="new",
    ).filter(pl.col("jobs") > 0)  # fmt: skip
    jobs = pl.col("jobs")
    return (
        found.with_columns(
            known=pl.col("known") / jobs, old_h=pl.col("old_h") / jobs, new_h=pl.col("new_h") / jobs
        )
        .with_columns(
            change=pl.when(pl.col("old_h") > 0).then(pl.col("new_h") / pl.col("old_h") - 1)
        )
        .sort(pl.col("new_h") - pl.col("old_h"), "user", descending=[True, False])
    )


def _felt(users: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of users whose jobs would wait longer, shorter, or much as before."""
    step = pl.col("new_h") - pl.col("old_h")
    limit = FELT * pl.max_horizontal("old_h", "new_h")
    rows = users.with_columns(
        sooner=((step < 0) & (-step >= limit)).cast(pl.Int64),
        later=((step > 0) & (step >= limit)).cast(pl.Int64),
        one=pl.lit(1),
    ).with_columns(same=1 - pl.col("sooner") - pl.col("later"))
    return shares(rows, ["sooner", "later", "same"], "one", unit=USER, n_boot=n_boot, seed=seed)


def _known(one: pl.DataFrame, other: pl.DataFrame) -> float | None:
    """Return the share of the expected jobs at queues whose wait is known."""
    rows = pl.concat([one, other])
    total = float(rows["jobs"].sum())
    known = float(rows.filter(pl.col("wait_h").is_not_null())["jobs"].sum())
    return known / total if total else None
