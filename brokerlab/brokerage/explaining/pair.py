"""What is known of one (task, place) pair, put into the clauses of its checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.engine.pairs import looked_up
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.settings import SCOPES
from brokerlab.brokerage.engine.world import World
from brokerlab.brokerage.explaining.answer import Obstacle, obstacle, setting


@dataclass(frozen=True)
class Pair:
    """One task and one place.

    Attributes:
        world: What was decided on.
        t: Number of the task.
        q: Number of the place.
        late: Its row of the steps; empty frame: it did not come so far.
    """

    world: World
    t: int
    q: int
    late: pl.DataFrame

    def obstacles(self, reasons: Sequence[Rule]) -> list[Obstacle]:
        """Return the reasons with the numbers of this pair."""
        known = self.values({name for reason in reasons for name in reason.columns()})
        task = self.values({*SCOPES.values(), "at"}).row(0, named=True)
        scope = {name: task[column] for name, column in SCOPES.items()}
        config = self.world.config
        config = config.at(task["at"]) if config.has_history else config
        found = []
        for reason in reasons:
            told = known.with_columns(**reason.numbers)
            settings = [
                setting(config, key, self.world.place_of(key), scope) for key in reason.keys
            ]
            found.append(obstacle(reason, told.row(0, named=True), settings))
        return found

    def values(self, columns: set[str]) -> pl.DataFrame:
        """Return the columns of the pair, in one row; those of the ranking first, where it has them."""
        late = [name for name in sorted(columns) if name in self.late.columns]
        one = pl.DataFrame({"t": [self.t], "q": [self.q]})
        facts = self.world.facts.of_tasks(one)
        return looked_up(facts, one, columns - set(late)).hstack(self.late.select(late))

    def row(self, columns: Sequence[str]) -> dict[str, Any]:
        """Return the values of columns."""
        return self.values(set(columns)).row(0, named=True)
