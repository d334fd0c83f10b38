"""The frames of `brokerage.user_tasks` in the shapes that the tables of this page have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.studies.user_tasks.weights import CLASSES, WeightComparison

SIDES = {"original": "old", "new": "new"}
SHOWN = 14
"""Queues whose change is told with an interval, those that change most."""


def parts(frame: pl.DataFrame) -> pl.DataFrame:
    """Return `intervals.shares` with the names that pages know."""
    unit = "n_tasks" if (frame["resampled"] == "jeditaskid").any() else "n_users"
    names = {"share_lo": "lo", "share_hi": "hi", "n_units": unit}
    return frame.drop("resampled").rename(names)


def long(
    frame: pl.DataFrame, keys: Sequence[str], columns: Mapping[str, str], whole: str
) -> pl.DataFrame:
    """Return one row per part of a wide frame: columns by part, each with its ends."""
    rows = [
        frame.select(
            *keys,
            part=pl.lit(part),
            total=pl.col(column) * pl.col(whole),
            whole=pl.col(whole).cast(pl.Float64),
            share=column,
            lo=f"{column}_lo",
            hi=f"{column}_hi",
            n_users="n_units",
        )
        for part, column in columns.items()
    ]
    return pl.concat(rows).drop_nulls("share")


@dataclass(frozen=True, kw_only=True)
class Weights:
    """A `WeightComparison` in the shapes of the page."""

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


def weights(found: WeightComparison) -> Weights:
    """Return the comparison in the shapes of the page."""
    moved = long(found.by_class, ["task_class"], {"moved": "moved"}, "jobs")
    every = pl.col("task_class") == "all"
    changes = {name: f"change_{name}" for name in CLASSES}
    one = found.users.with_columns(one=1)
    queues = found.queues.rename({"original": "old"})
    most = (
        queues.with_columns(jobs=pl.col("old").sum())
        .filter(pl.col("change") != 0)
        .sort(pl.col("change").abs(), "queue", descending=[True, False])
        .head(SHOWN)
        .sort("change", "queue", descending=[True, False])
    )
    whole = found.ends.select("n_kept", "n_lost", "n_won").sum_horizontal()
    return Weights(
        n_brokerages=found.n_brokerages,
        ends=long(found.ends.with_columns(whole=whole), [], {n: n for n in ("kept", "lost", "won")}, "whole"),
        lost_by=found.lost_by,
        moved=moved.filter(every).drop("task_class"),
        moved_by_class=moved.filter(~every),
        moved_by_gshare=long(found.by_gshare, ["gshare"], {"moved": "moved"}, "jobs"),
        places=parts(found.places).with_columns(pl.col("weight").replace_strict(SIDES)),
        changes=long(found.by_class, ["task_class"], changes, "jobs"),
        queues=queues.select(
            "queue", "old", "new", "queue_class", change=pl.col("new") - pl.col("old")
        ),
        gains=long(most, ["queue"], {"": "change"}, "jobs").drop("part").rename({"queue": "part"}),
        users=found.users.rename({"original_h": "old_h"}).drop("change_h", "noticed"),
        felt=long(
            found.noticed.with_columns(one=pl.lit(one.height)),
            [], {n: n for n in ("sooner", "later", "same")}, "one",
        ),
        wait=long(
            found.wait.with_columns(jobs=pl.lit(one["jobs"].sum())),
            [], {"old": "original_h", "new": "new_h", "change": "change_h"}, "jobs",
        ),
        known=found.known,
    )  # fmt: skip
