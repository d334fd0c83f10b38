"""Which task, at which instant, a question is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.words import number
from brokerlab.errors import DataError

_SHOWN = 5


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
