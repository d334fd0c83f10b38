"""What if a check were not there: the task is decided again, in all its locality loops, not guessed."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.engine.decide import parts
from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.engine.evaluation import Failures
from brokerlab.brokerage.engine.steps import marks_of, rules_of
from brokerlab.brokerage.engine.world import Part, World


@dataclass(frozen=True)
class Waived:
    """A queue, and what it would be if no check skipped it.

    Attributes:
        t: Number of the task.
        q: Number of the place.
        checks: Every check that skips the place: the reason it was skipped for first, then other checks of single places,
            those that mark last, then rules that look at all places, in their order; marks stand in the place of the
            rule that stands for them. The last one is ``last`` of the brokerage where it would still not be among the best.
        late: The row of the place in the steps without these checks; empty in hint mode.
        late_of_task: The rows of all places of the task then.
        names: Number of a place to its name.
        loop: Locality loop that would decide then.
    """

    t: int
    q: int
    checks: tuple[str, ...]
    late: pl.DataFrame
    late_of_task: pl.DataFrame
    names: dict[int, str]
    loop: int

    @property
    def place(self) -> int | None:
        """Its place among all queues that are ranked, those beyond the best ten included."""
        return self.late["place"].item()  # type: ignore[no-any-return]

    @property
    def n_ranked(self) -> int:
        """Queues that are ranked, those beyond the best ten included."""
        return self.late_of_task["place"].count()

    @property
    def weight(self) -> float:
        """Its weight."""
        return float(self.late["weight"].item())


@dataclass(frozen=True)
class Trial:
    """A task of decisions, to be decided again with checks left out.

    Attributes:
        world: What is known of the task.
        failures: The checks that it fails.
    """

    world: World
    failures: Failures

    @classmethod
    def of(cls, decisions: PlaceDecisions, t: int) -> Trial:
        """Take a task out of decisions."""
        world = decisions.world.of_tasks(pl.DataFrame({"t": [t]}))
        return cls(world, Failures(world.checks))

    def settled(self, names: frozenset[str] = frozenset(), rows: pl.Expr | None = None) -> Part:
        """Decide the task with some checks left out, and return the loop that decides then.

        Args:
            names: Checks of single places, rules about all places, marks.
            rows: Places for which they are left out, over ``q``; null = all.
        """
        rows = pl.lit(value=True) if rows is None else rows
        bits = sum(1 << bit for bit, each in enumerate(self.world.checks) if each.name in names)
        clear = pl.when(rows).then(pl.lit(bits, pl.Int64)).otherwise(pl.lit(0, pl.Int64))
        kept = pl.col("failed") & (pl.lit(-1, pl.Int64) ^ clear)
        steps = self.world.steps
        late = {rule.name for rule in (*rules_of(steps), *marks_of(steps))}
        *_, last = parts(
            self.world,
            lambda facts, loop: self.failures(facts, loop).with_columns(failed=kept),
            off=dict.fromkeys(names & late, rows),
        )
        return last

    def without(self, check: str) -> Part:
        """Decide the task with one check, rule or mark left out for all places."""
        return self.settled(frozenset({check}))


def peeled(decisions: PlaceDecisions, t: int, q: int) -> Waived:
    """Take away, for one place that was looked at for a task, every check that skips it, one after the other."""
    trial = Trial.of(decisions, t)
    here = pl.col("q") == q
    found = trial.settled()
    checks: list[str] = []
    while (last := found.pairs.filter(here)["check"].item()) is not None:
        new = [name for name in _reasons(trial.world, found, here) if name not in checks]
        checks += new
        if last == trial.world.brokerage.last or not new:
            break
        found = trial.settled(frozenset(checks), here)
    late = found.late if found.late is not None else pl.DataFrame(schema={"q": pl.Int64})
    names = dict(decisions.world.facts.queues.select("q", trial.world.brokerage.place).iter_rows())
    return Waived(t, q, tuple(checks), late.filter(here), late, names, found.loop)


def _reasons(world: World, found: Part, here: pl.Expr) -> list[str]:
    """Return why a place is skipped, then all single checks that it fails; marks for the rule that stands for them."""
    row = found.pairs.filter(here).row(0, named=True)
    failed = [bit for bit in range(len(world.checks)) if row["failed"] >> bit & 1]
    failed.sort(key=lambda bit: not world.lasting >> bit & 1)
    if row["check"] == world.brokerage.marked and found.late is not None:
        marks = found.late.filter(here).row(0, named=True)
        return [rule.name for rule in marks_of(world.steps) if marks[rule.name]]
    return list(dict.fromkeys([row["check"], *(world.checks[bit].name for bit in failed)]))
