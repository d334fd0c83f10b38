"""Plans of the facts of pairs that change, made once and run on other tables again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from brokerlab.brokerage.engine.lookup import LazySide, collected
from brokerlab.brokerage.engine.pairs import Side
from brokerlab.brokerage.engine.plans import Frames, Lazy, Plans


@dataclass(frozen=True)
class SidePlans(Plans):
    """Plans, some of them of several sides."""

    made_of: dict[str, Sequence[LazySide]] = field(default_factory=dict)

    def sides(
        self, name: str, frames: Frames, make: Callable[[Lazy], Sequence[LazySide]]
    ) -> tuple[Side, ...]:
        """Run a plan of several sides; see :meth:`run`."""

        def rows(lazy: Lazy) -> list[pl.LazyFrame]:
            self.made_of[name] = make(lazy)
            return [side.rows for side in self.made_of[name]]

        found = self.run(name, frames, rows)
        return collected(self.made_of[name], found)
