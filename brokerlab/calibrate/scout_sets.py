"""Which jobs of a task were its scouts, which of them had finished at the first trigger, which are the rest."""

from __future__ import annotations

from typing import Literal

import polars as pl

ScoutsUsed = Literal["half", "all"]
FIRST_SCOUTS = 10  # a task gets ten chunks of input while scouting (scouts.md 7)


def scout_sets(
    quantities: pl.DataFrame,
    others: pl.DataFrame | None = None,
    *,
    scouts_used: ScoutsUsed = "half",
) -> pl.DataFrame:
    """Divide the finished jobs of every task into scouts and rest; never by chance.

    Marked jobs are the scouts. A task without a mark gets those it would have had: the first ten created.
    The first trigger comes when half of the scouts finished; every scout finished by then is used.

    Args:
        quantities: Finished jobs: ``jeditaskid, pandaid, is_scout, creationtime, endtime, finish_time``.
        others: Jobs that did not finish and were not retried, with ``jeditaskid, pandaid, is_scout,
            creationtime``: they count among the scouts of which half must finish. None: not known.
        scouts_used: ``half`` (the documented first trigger) or ``all`` finished scouts.

    Returns:
        One row per finished job: ``jeditaskid, pandaid, role`` (``scout`` used, ``late_scout`` not finished
        at the trigger, ``rest``), ``marked`` (the task's scouts were marked), ``n_scouts_total``.

    Source: scouts.md section 7, T1; "Dynamic Optimization of Task Parameters", triggers.
    """
    key = ["jeditaskid", "pandaid"]
    jobs = quantities.select(
        *key,
        "creationtime",
        pl.col("is_scout").fill_null(value=False),
        done=pl.coalesce("finish_time", "endtime"),
        finished=pl.lit(value=True),
    )
    if others is not None:
        open_ended = others.select(
            *key,
            "creationtime",
            pl.col("is_scout").fill_null(value=False),
            done=pl.lit(None).cast(jobs.schema["done"]),
            finished=pl.lit(value=False),
        )
        jobs = pl.concat([jobs, open_ended], how="vertical_relaxed")
    jobs = jobs.sort("jeditaskid", "creationtime", "pandaid", nulls_last=True).with_columns(
        marked=pl.col("is_scout").any().over("jeditaskid"),
        order=pl.int_range(pl.len()).over("jeditaskid"),
    )
    first = pl.col("order") < FIRST_SCOUTS
    jobs = jobs.with_columns(
        scout=pl.when("marked").then(pl.col("is_scout")).otherwise(first)
    ).join(_first_trigger(jobs, first), on="jeditaskid", how="left")
    used = pl.lit(value=True) if scouts_used == "all" else _by_trigger()
    role = (
        pl.when(~pl.col("scout")).then(pl.lit("rest"))
        .when(used).then(pl.lit("scout"))
        .otherwise(pl.lit("late_scout"))
    )  # fmt: skip
    return (
        jobs.filter("finished")
        .select(*key, "marked", "n_scouts_total", role=role)
        .sort("jeditaskid", "pandaid")
    )


def _by_trigger() -> pl.Expr:
    """Tell which scouts had finished at the trigger; all, if the trigger has no time."""
    return (pl.col("done") <= pl.col("trigger_at")).fill_null(pl.col("trigger_at").is_null())


def _first_trigger(jobs: pl.DataFrame, first: pl.Expr) -> pl.DataFrame:
    """Return per task the number of scouts and the time when half of them had finished.

    If fewer than half ever finish, the last of them to finish decides (all scout files done).
    """
    scouts = jobs.filter(pl.when("marked").then(pl.col("is_scout")).otherwise(first))
    totals = scouts.group_by("jeditaskid").agg(
        n_scouts_total=pl.len().cast(pl.Int64), n_done=pl.col("finished").sum().cast(pl.Int64)
    )
    needed = pl.min_horizontal((pl.col("n_scouts_total") + 1) // 2, "n_done")
    ordered = scouts.filter("finished").sort("jeditaskid", "done", "pandaid", nulls_last=True)
    ordered = ordered.with_columns(finish_order=pl.int_range(1, pl.len() + 1).over("jeditaskid"))
    at = ordered.join(totals.with_columns(needed=needed), on="jeditaskid").filter(
        pl.col("finish_order") == pl.col("needed")
    )
    return totals.select("jeditaskid", "n_scouts_total").join(
        at.select("jeditaskid", trigger_at="done"), on="jeditaskid", how="left"
    )
