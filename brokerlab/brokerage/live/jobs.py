"""The production job brokerage, standing: prepared once, asked again and again with other counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.engine.again import changes
from brokerlab.brokerage.engine.decide import first_reasons, in_parts
from brokerlab.brokerage.engine.decide import named as in_words
from brokerlab.brokerage.engine.evaluation import asked_of
from brokerlab.brokerage.engine.pairs import looked_up
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import names_of, reads_of, walk
from brokerlab.brokerage.live.asked import Known, asked, at_instants, places, states, with_others
from brokerlab.brokerage.live.kept import Kept, Plan, per_instant
from brokerlab.brokerage.live.ranked import Ranked, Tally, named, queue_names
from brokerlab.brokerage.live.sides import SidePlans
from brokerlab.brokerage.production_jobs import changing
from brokerlab.brokerage.production_jobs.counts import spread
from brokerlab.brokerage.production_jobs.facts import JobWorld
from brokerlab.brokerage.production_jobs.nucleus import unwritable
from brokerlab.brokerage.production_jobs.ranking import shares
from brokerlab.gdpconfig import Config
from brokerlab.numerics import IntArray

Tables = dict[str, pl.DataFrame]

STATE_TABLES = tuple(dict.fromkeys(changing.TABLES))
"""Tables that may change from cycle to cycle."""
KEYS = ("t_state", "t_counted", "t_slots")
"""Numbers of tasks that stand for a state of the grid, too."""
TOGETHER = (changing.COUNT_TABLES, changing.RT_TABLES)
"""Tables that are read together: one that is not given is the one prepared."""
_NAMES = ("t_tag", "t_gshare", "t_counts_share_only", "t_queue_name", "t_resource_type", "t_at_s")


@dataclass(frozen=True)
class Cycle:
    """What is done at every question.

    Attributes:
        kept: What stands of the pairs.
        plans: How the rest is found.
    """

    kept: Kept
    plans: SidePlans = field(default_factory=SidePlans)


@dataclass(frozen=True)
class JobStanding:
    """See :func:`brokerlab.brokerage.live.prepare`.

    Attributes:
        world: Rules, settings, tables and facts.
        checks: The checks of single queues.
        known: The tasks that may be asked for.
        lost: ``snapshot, nucleus`` of nuclei that cannot be written.
        names: ``q, name`` of queues.
        ended: How each task ended before any queue was looked at, by number.
        cycles: What is done at every question, by the names of the tables that change.
        root: The brokerage that this one differs from in its settings only; null: it is none of another's.
    """

    world: JobWorld
    checks: tuple[Rule, ...]
    known: Known
    lost: pl.DataFrame
    names: pl.DataFrame
    ended: pl.Series
    cycles: dict[frozenset[str], Cycle] = field(default_factory=dict)
    root: JobStanding | None = None

    @classmethod
    def of(cls, world: JobWorld) -> JobStanding:
        """Make it from tables that are prepared."""
        snapshots = world.tasks.select("snapshot").unique()
        endpoints = spread(world.tables["storage_endpoints"], snapshots)
        places = world.tables | {"storage_endpoints": endpoints}
        lost = unwritable(places, rules=world.rules)
        ended = world.tasks.join(world.outcomes, on="t", how="left").sort("t")["outcome"]
        known = Known.of(world.tasks)
        return cls(world, world.checks, known, lost, queue_names(world.facts.queues), ended)

    def decide(self, wanted: Any, state: Mapping[str, Any]) -> Ranked:
        """Decide for tasks in worlds; see :func:`brokerlab.brokerage.live.prepare`."""
        rows = asked(wanted, self.known)
        given = states(state, TABLES, STATE_TABLES, rows.select("world", "instant"))
        cycle = self.cycle(frozenset(given))
        place = places(self.world.facts.tasks["t"].to_numpy(), rows["t"].to_numpy())
        there = np.flatnonzero(place >= 0)
        place, looked_at = place[there], rows[pl.Series(there)]
        tasks = self._tasks(looked_at, place, cycle.kept.plan)
        tables = with_others(given, looked_at, self.world.tables, TOGETHER)
        pairs = self._asked_again(tasks, place, cycle, tables, looked_at)
        late, codes = self._ranked(pairs, cycle)
        names = pl.Enum(names_of(self.checks, self.world.steps))
        closed = np.zeros((rows.height, len(self.checks)), dtype=np.int64)
        closed[there] = cycle.kept.closed[place]
        tally = Tally.of(codes, there[pairs["t"].to_numpy()], closed, len(names.categories))
        some = np.where(tally.left > 0, "candidates", "no_candidates")
        ended = self.ended.gather(rows["t"])
        outcome = pl.Series(some, dtype=pl.String).zip_with(ended.is_null(), ended)
        return Ranked(named(late, looked_at, self.names), tally.told(rows, outcome, names))

    def with_config(self, config: Config) -> JobStanding:
        """Return the same brokerage under other settings; only what they change is worked out anew.

        Raises:
            ConfigError: Settings that no rule can work with.
        """
        root = self.root or self
        world = root.world.with_config(config)
        if not world.facts.tasks["t"].equals(root.world.facts.tasks["t"]):
            return JobStanding.of(world)
        return replace(root, world=world, checks=world.checks, cycles={}, root=root)

    def cycle(self, names: frozenset[str]) -> Cycle:
        """Return what is done while these tables change."""
        if names not in self.cycles:
            plan, facts = self.plan(names), self.world.facts
            if self.root is None:
                kept = Kept.of(plan, facts, in_parts)
            else:
                before = self.root
                changed = changes(before.world.facts, facts)
                kept = before.cycle(names).kept.again(plan, facts, in_parts, changed)
            self.cycles[names] = Cycle(kept)
        return self.cycles[names]

    def plan(self, names: frozenset[str]) -> Plan:
        """Return which checks stand while these tables change."""
        made = changing.facts_of(names)
        return Plan.of(
            self.checks, self.world.facts, made, self._late(), lasting=self.world.lasting
        )

    def _tasks(self, rows: pl.DataFrame, place: IntArray, plan: Plan) -> pl.DataFrame:
        """Return the facts of the tasks that are looked at, one row each, keyed by their worlds."""
        read = {"t", "jeditaskid", *KEYS, *_NAMES, *self._late()}
        read |= {name for bit in plan.asked for name in plan.checks[bit].reads}
        tasks = self.world.facts.tasks
        chosen = tasks.select([name for name in tasks.columns if name in read])[pl.Series(place)]
        at = pl.coalesce(rows["at"].dt.epoch("s"), "t_at_s")
        return per_instant(chosen.with_columns(t_at_s=at), rows["instant"].to_numpy(), KEYS)

    def _late(self) -> set[str]:
        """Return what the ranking reads."""
        return {*reads_of(self.world.steps)}

    def _asked_again(
        self, tasks: pl.DataFrame, place: IntArray, cycle: Cycle, state: Tables, rows: pl.DataFrame,
    ) -> pl.DataFrame:  # fmt: skip
        """Ask the checks that see what changes; return the open pairs with all that the ranking reads."""
        plan, plans = cycle.kept.plan, cycle.plans
        queues, ids = self.world.facts.queues, self.world.ids
        read_there = {"tasks": tasks, "lost": at_instants(self.lost, rows, "snapshot"), **state}
        sides = plans.sides(
            "sides",
            read_there,
            lambda lazy: changing.changing(
                lazy["tasks"], queues.lazy(), lazy, ids, lazy["lost"], [*state]
            ),
        )
        pairs = cycle.kept.pairs(place)
        checks = [plan.checks[bit] for bit in plan.asked]
        read = self._late() | {name for check in checks for name in check.reads}
        facts = replace(self.world.facts, tasks=tasks, sides=sides)
        numbers = looked_up(facts, pairs.select("t", "q"), read - set(plan.columns))
        found = pairs.hstack(numbers.drop("t", "q"))
        if not checks:
            return found
        bits = {plan.checks[bit].name: bit for bit in plan.asked}
        again = asked_of(found, checks, bits)
        return found.with_columns(failed=pl.col("failed") | again["failed"])

    def _ranked(self, pairs: pl.DataFrame, cycle: Cycle) -> tuple[pl.DataFrame, IntArray]:
        """Rank what is left; return the candidates, and the check of each pair (-1: candidate)."""
        world, checks = self.world, self.checks
        order = pl.Enum(names_of(checks, world.steps))
        first, mark = first_reasons(pairs["failed"].to_numpy(), world.lasting)
        marked = pairs.drop("failed").with_columns(mark=in_words(mark, order))
        left = marked.filter(pl.Series(first < 0))
        late = cycle.plans.frame(
            "ranking",
            {"left": left},
            lambda lazy: walk(lazy["left"], world.steps, order).with_columns(
                share=shares(pl.when(pl.col("rank").is_not_null()).then("weight"))
            ),
        )
        world.check_weights(late)
        reasons = first.copy()
        reasons[first < 0] = late["check"].to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        best = late.select("t", "q", "weight", "rank", "share")
        return best.filter(pl.col("rank").is_not_null()), reasons
