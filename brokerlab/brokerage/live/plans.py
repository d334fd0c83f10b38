"""Plans that are made once and run on other frames again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

import polars as pl

from brokerlab.brokerage.production_jobs.changing import LazySide, collected
from brokerlab.brokerage.production_jobs.pairs import Side

Frames = Mapping[str, pl.DataFrame]
Lazy = dict[str, pl.LazyFrame]


@dataclass(frozen=True)
class Plans:
    """Plans by name, and the frames that they read.

    Making the many expressions of a brokerage takes several times as long as running them on a few thousand rows.
    """

    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    made: dict[str, Sequence[LazySide]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def sides(
        self, name: str, frames: Frames, make: Callable[[Lazy], Sequence[LazySide]]
    ) -> tuple[Side, ...]:
        """Run a plan of several tables.

        Args:
            name: Name of the plan.
            frames: What it reads, by name; the same names and columns every time.
            make: Makes it, the first time.
        """
        with self.lock:
            self.frames.update(frames)
            if name not in self.made:
                self.made[name] = make({key: self._source(key, frames[key]) for key in frames})
            return collected(self.made[name])

    def frame(
        self, name: str, frames: Frames, make: Callable[[Lazy], pl.LazyFrame]
    ) -> pl.DataFrame:
        """Run a plan of one table; see :meth:`sides`."""
        return self.sides(name, frames, lambda lazy: [LazySide("", "", make(lazy), {})])[0].rows

    def _source(self, name: str, frame: pl.DataFrame) -> pl.LazyFrame:
        """Return where plans read a frame."""
        return pl.defer(partial(self.frames.__getitem__, name), schema=frame.schema)
