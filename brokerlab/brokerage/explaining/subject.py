"""Which task, at which instant, a question is about, and where its jobs really ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.words import listed, number
from brokerlab.errors import DataError

_SHOWN = 5
MOST_QUEUES = 5
"""Queues where jobs ran that are named."""


@dataclass(frozen=True)
class Subject:
    """A task at an instant.

    Attributes:
        row: Its row in the table of tasks.
        n_instants: Instants at which it was brokered.
        chosen: The instant was asked for.
    """

    row: dict[str, Any]
    n_instants: int
    chosen: bool

    @property
    def jeditaskid(self) -> int:
        """The task."""
        return int(self.row["jeditaskid"])

    @property
    def snapshot(self) -> int:
        """The instant."""
        return int(self.row["snapshot"])

    @property
    def text(self) -> str:
        """The task in words, with the instant where it was brokered more than once."""
        at = self.row.get("at")
        when = f" on {at:%Y-%m-%d at %H:%M}" if at and self.n_instants > 1 else ""
        return f"Task {self.jeditaskid}{when}"

    def rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a table that are about the task at the instant."""
        same = pl.col("snapshot").fill_null(0) == self.snapshot
        return frame.filter(pl.col("jeditaskid") == self.jeditaskid, same)

    def tried_again(self) -> list[str]:
        """Return from when on the task is tried again, where it waits."""
        at = self.row["pending_until"]
        return [f"It is tried again from {at:%Y-%m-%d %H:%M} on."] if at else []

    def again(self) -> list[str]:
        """Return the remark that there are other instants."""
        if self.chosen or self.n_instants == 1:
            return []
        return [
            f"(The last of {number(self.n_instants)} brokerages of this task, snapshot {self.snapshot}.)"
        ]


def subject(tasks: pl.DataFrame, jeditaskid: int, snapshot: int | None) -> Subject:
    """Return the task asked about; without snapshot its last one.

    Raises:
        DataError: There is no such task, or not at that instant.
    """
    rows = tasks.filter(pl.col("jeditaskid") == jeditaskid).sort("snapshot")
    if not rows.height:
        known = tasks["jeditaskid"].unique().sort()
        distance = (pl.col("jeditaskid") - jeditaskid).abs()
        nearby = known.to_frame().sort(distance).head(_SHOWN)["jeditaskid"].sort().to_list()
        raise DataError(
            f"no decision about jeditaskid {jeditaskid} among {len(known)} tasks; the nearest are "
            f"{', '.join(map(str, nearby))}"
        )
    if snapshot is None:
        return Subject(rows.row(-1, named=True), rows.height, chosen=False)
    one = rows.filter(pl.col("snapshot") == snapshot)
    if not one.height:
        allowed = ", ".join(str(each) for each in rows["snapshot"].to_list()[-_SHOWN:])
        raise DataError(
            f"no decision about task {jeditaskid} at snapshot {snapshot}: it has {allowed}"
        )
    return Subject(one.row(0, named=True), rows.height, chosen=True)


def where_jobs_ran(who: Subject, given: pl.DataFrame, ran: pl.DataFrame) -> str:
    """Say where the jobs made after a brokerage, and before the task's next one, really ran.

    Args:
        who: The task.
        given: The table of tasks that was decided on.
        ran: Jobs that started: ``jeditaskid, computingsite, made, n_jobs``.
    """
    when = "that were made after this brokerage"
    jobs = ran.filter(pl.col("jeditaskid") == who.jeditaskid)
    here = who.rows(given)["at"].item() if "at" in given.columns else None
    if here is not None:
        own = given.filter(pl.col("jeditaskid") == who.jeditaskid)
        following = own.filter(pl.col("at") > here)["at"].min()
        jobs = jobs.filter(pl.col("made") >= here)
        if following is not None:
            jobs = jobs.filter(pl.col("made") < following)
            when += " and before the next one"
    queues = jobs.group_by("computingsite").agg(pl.col("n_jobs").sum())
    queues = queues.sort("n_jobs", "computingsite", descending=[True, False])
    n_jobs = int(queues["n_jobs"].sum())
    if not n_jobs:
        return f"None of its jobs {when} has started."
    if queues.height == 1:
        at = "at" if n_jobs == 1 else "all at"
        return f"Of its jobs {when}, {number(n_jobs)} started, {at} {queues['computingsite'][0]}."
    places = [f"{number(n)} at {name}" for name, n in queues.rows()]
    return f"Of its jobs {when}, {number(n_jobs)} started: {listed(places, most=MOST_QUEUES)}."
