"""Plans that are made once and run on other frames again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from threading import Lock, get_ident

import polars as pl

from brokerlab.brokerage.engine.lookup import LazySide
from brokerlab.brokerage.engine.pairs import AS_WRITTEN, Side

PLANS_KEPT = 64
"""Plans of rules that are kept for the next time."""
Frames = Mapping[str, pl.DataFrame]
Lazy = dict[str, pl.LazyFrame]
Maker = Callable[[Lazy], Sequence[pl.LazyFrame]]


@dataclass(frozen=True)
class Plans:
    """Plans by name, and the frames that they read while they run.

    Making the many expressions of a brokerage takes several times as long as running them on a few thousand rows.
    """

    made: dict[str, Sequence[pl.LazyFrame]] = field(default_factory=dict)
    made_of: dict[str, Sequence[Side]] = field(default_factory=dict)
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def __reduce__(self) -> tuple[type[Plans], tuple[()]]:
        """Go to another process without any plan: they are made again there."""
        return type(self), ()

    def run(self, name: str, frames: Frames, make: Maker) -> list[pl.DataFrame]:
        """Run a plan of this name; ``frames`` have the same names, columns and types every time, ``make`` makes it the first time."""
        with self.lock:
            self.frames.update(frames)
            try:
                if name not in self.made:
                    self.made[name] = make({key: self._source(key, frames[key]) for key in frames})
                plans = [*self.made[name]]
                return pl.collect_all(plans, engine="in-memory", optimizations=AS_WRITTEN)
            finally:
                self.frames.clear()

    def frame(
        self, name: str, frames: Frames, make: Callable[[Lazy], pl.LazyFrame]
    ) -> pl.DataFrame:
        """Run a plan of one table; see :meth:`run`."""
        return self.run(name, frames, lambda lazy: [make(lazy)])[0]

    def sides(
        self, name: str, frames: Frames, make: Callable[[Lazy], Sequence[LazySide]]
    ) -> tuple[Side, ...]:
        """Run a plan of several sides; see :meth:`run`."""

        def rows(lazy: Lazy) -> list[pl.LazyFrame]:
            found = make(lazy)
            self.made_of[name] = [side for side, _ in found]
            return [plan for _, plan in found]

        found = self.run(name, frames, rows)
        return tuple(
            replace(side, rows=frame) for side, frame in zip(self.made_of[name], found, strict=True)
        )

    def _source(self, name: str, frame: pl.DataFrame) -> pl.LazyFrame:
        # scanned once a run, however often it is read
        return pl.defer(partial(self.frames.__getitem__, name), schema=frame.schema).cache()


def run_again(
    rules: Hashable, frame: pl.DataFrame, make: Callable[[pl.LazyFrame], pl.LazyFrame]
) -> pl.DataFrame:
    """Run a plan on a frame: the one made before in this thread, where it was of the same rules and the same columns."""
    plans = _plans(rules, tuple(frame.schema.items()), get_ident())
    return plans.frame("plan", {"frame": frame}, lambda lazy: make(lazy["frame"]))


@lru_cache(maxsize=PLANS_KEPT)
def _plans(rules: Hashable, schema: tuple[tuple[str, pl.DataType], ...], thread: int) -> Plans:  # noqa: ARG001
    return Plans()
