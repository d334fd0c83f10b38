"""What if a check were not there: a user task is decided again, in both locality loops, not guessed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from brokerlab.brokerage.analysis_jobs.decide import loops
from brokerlab.brokerage.analysis_jobs.decisions import AnalysisDecisions, Loop
from brokerlab.brokerage.analysis_jobs.facts import World, in_loop
from brokerlab.brokerage.analysis_jobs.ranking import MARKS
from brokerlab.brokerage.engine.evaluation import evaluated
from brokerlab.brokerage.engine.pairs import Facts, matched
from brokerlab.brokerage.engine.steps import marks_of, rules_of
from brokerlab.brokerage.production_jobs.again import facts_of
from brokerlab.brokerage.production_jobs.what_if import Waived

LAST = "low_weight"
MARKED = "badsite"


@dataclass(frozen=True)
class WaivedInLoop(Waived):
    """A queue, and what it would be if no check skipped it; marks stand in the place of ``badsite``.

    Attributes:
        loop: Locality loop that would decide then.
    """

    loop: int


@dataclass(frozen=True)
class Trial:
    """One user task of decisions, to be decided again with checks left out.

    Attributes:
        decisions: The decisions.
        world: What is known of the task.
        known: What is known of its loops: ``t, q, failed``.
    """

    decisions: AnalysisDecisions
    world: World
    known: dict[int, pl.DataFrame]

    @classmethod
    def of(cls, decisions: AnalysisDecisions, t: int) -> Trial:
        """Take one task out of decisions."""
        facts = facts_of(decisions.world.facts, pl.DataFrame({"t": [t]}))
        keys = facts.tasks.select("jeditaskid", "snapshot")
        pairs, known = matched(facts), {}
        for loop, table in ((1, decisions.first_loop), (None, decisions.queues)):
            rows = table.join(keys, on=keys.columns, how="semi", maintain_order="left")
            if rows.height:  # in the order of the pairs
                known[loop or rows["loop"][0]] = pairs.hstack(rows.select("failed"))
        return cls(decisions, replace(decisions.world, facts=facts), known)

    def failed(self, loop: int) -> pl.DataFrame:
        """Return which checks skip which queues in a loop: ``t, q, failed``; asked only if that is not known."""
        if loop not in self.known:
            self.known[loop] = evaluated(self.facts(loop), self.decisions.checks)
        return self.known[loop]

    def facts(self, loop: int) -> Facts:
        """Return what is known of the task in a loop."""
        return in_loop(self.world.facts, self.world.facts.tasks.select("t"), local=loop == 1)

    def settled(self, names: frozenset[str] = frozenset(), rows: pl.Expr | None = None) -> Loop:
        """Decide the task with some checks left out, and return the loop that decides then.

        Args:
            names: Checks of single queues, rules about all queues, marks.
            rows: Queues for which they are left out, over ``q``; null = all.
        """
        rows = pl.lit(value=True) if rows is None else rows
        bits = sum(1 << bit for bit, each in enumerate(self.decisions.checks) if each.name in names)
        clear = pl.when(rows).then(pl.lit(bits, pl.Int64)).otherwise(pl.lit(0, pl.Int64))
        kept = pl.col("failed") & (pl.lit(-1, pl.Int64) ^ clear)

        def evaluate(facts: Facts, loop: int) -> pl.DataFrame:
            if not facts.tasks.height:
                return matched(facts).with_columns(failed=pl.lit(0, pl.Int64))
            return self.failed(loop).with_columns(failed=kept)

        steps = self.world.steps
        late = {rule.name for rule in (*rules_of(steps), *marks_of(steps))}
        off = dict.fromkeys(names & late, rows)
        first, second = loops(self.world, self.decisions.checks, evaluate, off=off)
        return second if second.pairs.height else first

    def without(self, check: str) -> Loop:
        """Decide the task with one check, rule or mark left out for all queues."""
        return self.settled(frozenset({check}))


def peeled(decisions: AnalysisDecisions, t: int, q: int) -> WaivedInLoop:
    """Take away, for one queue of a task, every check that skips it, one after the other.

    Args:
        decisions: The decisions.
        t: Number of the task.
        q: Number of a queue that was looked at for the task.
    """
    trial = Trial.of(decisions, t)
    here = pl.col("q") == q
    found = trial.settled()
    checks: list[str] = []
    while (last := found.pairs.filter(here)["check"].item()) is not None:
        new = [name for name in _reasons(decisions, found, q) if name not in checks]
        checks += new
        if last == LAST or not new:
            break
        found = trial.settled(frozenset(checks), here)
    late = found.late.filter(here)
    names = dict(decisions.world.facts.queues.select("q", "panda_queue").iter_rows())
    return WaivedInLoop(t, q, tuple(checks), late, found.late, names, found.number)


def _reasons(decisions: AnalysisDecisions, found: Loop, q: int) -> list[str]:
    """Return all single checks that a queue fails, the first one first, or the rule or the marks that skip it."""
    row = found.pairs.filter(pl.col("q") == q).row(0, named=True)
    single = [check.name for bit, check in enumerate(decisions.checks) if row["failed"] >> bit & 1]
    if single:
        return single
    if row["check"] == MARKED:
        marks = found.late.filter(pl.col("q") == q).row(0, named=True)
        return [name for name in MARKS if marks[name]]
    return [row["check"]]
