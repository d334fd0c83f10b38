"""What each check removes: in all, over time, by gshare and by queue."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.view import view
from brokerlab.report.replays.kinds import JobDecisions, kind_of
from brokerlab.report.replays.shares import shares

CANDIDATE = "candidate"
"""What a pair is called that no check removed."""
KEYS = ["jeditaskid", "snapshot"]
NO_SHARE = "(none)"
"""Name of tasks without gshare."""


def counted(decisions: JobDecisions, tasks: pl.DataFrame) -> pl.DataFrame:
    """Count the pairs that each check removed, brokerage by brokerage.

    Args:
        decisions: Of a job brokerage.
        tasks: Of the replay.

    Returns:
        One row per brokerage and check that removed something: ``jeditaskid, snapshot, check`` (`CANDIDATE`: not
        removed), ``n`` [pairs], ``at``, ``gshare``; sorted.
    """
    facts = tasks.select(*KEYS, "at", pl.col("gshare").fill_null(NO_SHARE))
    check = pl.col("check").cast(pl.String).fill_null(CANDIDATE)
    found = decisions.queues.group_by(*KEYS, "check").len("n").with_columns(check)
    return found.join(facts, on=KEYS).sort(*KEYS, "check")


def order(decisions: JobDecisions) -> list[str]:
    """Return every check in the order in which queues are removed, candidates last."""
    return [*view(decisions).steps["check"].cast(pl.String), CANDIDATE]


def wide(counts: pl.DataFrame, checks: list[str], extra: list[str] | None = None) -> pl.DataFrame:
    """Return one row per brokerage: its keys, one column per check [pairs] and ``looked_at``."""
    keys = [*KEYS, *(extra or [])]
    table = counts.group_by(keys).agg(
        *(pl.col("n").filter(pl.col("check") == name).sum().alias(name) for name in checks),
        looked_at=pl.col("n").sum(),
    )
    return table.sort(keys)


def by_check(counts: pl.DataFrame, checks: list[str], *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of pairs that each check removes, in order, and what is left after it.

    Returns:
        `shares` with ``part`` the check, and ``left``, the share of pairs not removed by it or an earlier one.
    """
    found = shares(wide(counts, checks), checks, "looked_at", n_boot=n_boot, seed=seed)
    return found.with_columns(left=1 - pl.col("share").cum_sum())


def over_time(
    counts: pl.DataFrame, checks: list[str], step: str, *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Return the share of pairs that each of some checks removes, by day or week.

    Returns:
        `shares` by ``time``, the start of the day or week.
    """
    timed = counts.with_columns(time=pl.col("at").dt.truncate(step))
    table = wide(timed, checks, ["time"])
    return shares(table, checks, "looked_at", by=["time"], n_boot=n_boot, seed=seed)


def by_gshare(counts: pl.DataFrame, checks: list[str], *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return `shares` of the pairs of each ``gshare`` that each check removes."""
    table = wide(counts, checks, ["gshare"])
    return shares(table, checks, "looked_at", by=["gshare"], n_boot=n_boot, seed=seed)


def stuck(
    decisions: JobDecisions, tasks: pl.DataFrame, by: list[str], *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Return the share of brokerages that leave their task without a queue, by outcome.

    Args:
        decisions: Of a job brokerage.
        tasks: Of the replay.
        by: ``gshare``, or nothing.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Returns:
        `shares` with the outcomes of `kinds.Kind.stuck` and ``stuck``, any of them, as parts.
    """
    names = kind_of(decisions).stuck
    facts = tasks.select(*KEYS, pl.col("gshare").fill_null(NO_SHARE))
    table = decisions.tasks.join(facts, on=KEYS).with_columns(
        *((pl.col("outcome") == name).cast(pl.Int64).alias(name) for name in names),
        stuck=(pl.col("outcome") != "candidates").cast(pl.Int64),
        brokerages=pl.lit(1),
    )
    return shares(table, [*names, "stuck"], "brokerages", by=by, n_boot=n_boot, seed=seed)


def best_of_queue(decisions: JobDecisions, queues: pl.DataFrame) -> pl.DataFrame:
    """Say what became of each stored queue at each brokerage, by that of its pseudo-queues which came furthest.

    Args:
        decisions: Of a job brokerage.
        queues: Of the replay.

    Returns:
        One row per brokerage and queue: ``jeditaskid, snapshot, queue``, ``place`` (name of that pseudo-queue, or the
        queue itself), ``check`` (`CANDIDATE`: not removed), ``rank`` (null: not ranked).
    """
    steps = pl.DataFrame({"check": order(decisions)}).with_row_index("step")
    parents = queues.select("panda_queue", "unified_name").unique("panda_queue")
    return (
        decisions.queues.select(*KEYS, pl.col("panda_queue", "check").cast(pl.String), "rank")
        .with_columns(pl.col("check").fill_null(CANDIDATE))
        .join(steps, on="check")
        .join(parents, on="panda_queue", how="left")
        .with_columns(queue=pl.coalesce("unified_name", "panda_queue"))
        .sort("step", pl.col("rank").fill_null(99), "panda_queue", descending=[True, False, False])
        .unique([*KEYS, "queue"], keep="first", maintain_order=True)
        .select(*KEYS, "queue", "check", "rank", place="panda_queue")
        .sort(*KEYS, "queue")
    )


def by_queue(
    best: pl.DataFrame, checks: list[str], queues: list[str], *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Return, for some queues, the share of brokerages in which each check removed them.

    Args:
        best: From `best_of_queue`.
        checks: In order.
        queues: Which.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Returns:
        `shares` by ``queue``.
    """
    rows = best.filter(pl.col("queue").is_in(queues)).with_columns(n=pl.lit(1))
    table = wide(rows, checks, ["queue"])
    return shares(table, checks, "looked_at", by=["queue"], n_boot=n_boot, seed=seed)
