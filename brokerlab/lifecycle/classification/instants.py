"""The instants that a classification is made for: one, or all hours of a month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import numpy as np
import polars as pl

from brokerlab.numerics import IntArray
from brokerlab.times import number_instants, time_of

At: TypeAlias = datetime | str | Sequence[datetime | str] | pl.DataFrame
"""What a public function takes as ``at``: an instant, several, or a table ``snapshot``, ``at`` (UTC without zone)."""


@dataclass(frozen=True)
class Instants:
    """Instants in the order of time."""

    snapshots: IntArray  # number of each instant
    at_us: IntArray  # the instants [us since 1970], ascending

    @classmethod
    def of(cls, at: At) -> Instants:
        """Read the argument ``at``.

        Example:
            >>> Instants.of(datetime(1970, 1, 1, 0, 1)).at_us.tolist()
            [60000000]
        """
        if not isinstance(at, pl.DataFrame):
            times = at if isinstance(at, Sequence) and not isinstance(at, str) else [at]
            times = [time_of(time, "at") for time in times]
            at = pl.DataFrame(
                {"snapshot": range(len(times)), "at": times},
                schema={"snapshot": pl.Int64, "at": pl.Datetime("us")},
            )
        return cls(*number_instants(at, "at"))

    def __len__(self) -> int:
        return len(self.at_us)

    @property
    def first(self) -> datetime:
        """The first instant."""
        return _time(int(self.at_us[0]))

    @property
    def last(self) -> datetime:
        """The last instant."""
        return _time(int(self.at_us[-1]))

    @property
    def step_us(self) -> int:
        """Largest step that leads from the first instant to every other [us]."""
        return max(int(np.gcd.reduce(self.at_us - self.at_us[0])), 1)

    def columns(self, place: IntArray) -> dict[str, pl.Series]:
        """Return ``snapshot`` and ``at`` of the instants at some positions."""
        return {
            "snapshot": pl.Series(self.snapshots[place], dtype=pl.Int64),
            "at": pl.Series(self.at_us[place], dtype=pl.Int64).cast(pl.Datetime("us")),
        }


def _time(us: int) -> datetime:
    time: datetime = pl.Series([us], dtype=pl.Int64).cast(pl.Datetime("us"))[0]
    return time
