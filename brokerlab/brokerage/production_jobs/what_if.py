"""What if a check were not there: the ranking is computed again, not guessed."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.engine.evaluation import evaluated
from brokerlab.brokerage.engine.pairs import Facts
from brokerlab.brokerage.production_jobs.again import facts_of
from brokerlab.brokerage.production_jobs.decide import settled
from brokerlab.brokerage.production_jobs.decisions import Decisions, Part

LAST = "rank"


@dataclass(frozen=True)
class Waived:
    """A queue, and what it would be if no check skipped it.

    Attributes:
        t: Number of the task.
        q: Number of the queue.
        checks: Every check that skips the queue: the reason it was skipped for first, then the persistent ones, the
            temporary ones, and those that look at all queues, in their order; ``rank`` where it would still not be
            among the best ten.
        late: The queue's row of :func:`~.ranking.steps` without these checks; empty in hint mode.
        late_of_task: The rows of all queues of the task then.
        names: Number of a queue to its name.
    """

    t: int
    q: int
    checks: tuple[str, ...]
    late: pl.DataFrame
    late_of_task: pl.DataFrame
    names: dict[int, str]

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
    """One task of decisions, to be settled again with checks left out.

    Attributes:
        decisions: The decisions.
        facts: The facts of the task.
        pairs: ``t, q, failed`` of the task.
    """

    decisions: Decisions
    facts: Facts
    pairs: pl.DataFrame

    @classmethod
    def of(cls, decisions: Decisions, t: int) -> Trial:
        """Take one task out of decisions."""
        facts = facts_of(decisions.world.facts, pl.DataFrame({"t": [t]}))
        return cls(decisions, facts, evaluated(facts, decisions.checks))

    def bit(self, check: str) -> int:
        """Return the bit of a check of single queues."""
        names = [each.name for each in self.decisions.checks]
        return 1 << names.index(check)

    def settled(
        self, *, clear: pl.Expr | None = None, off: dict[str, pl.Expr] | None = None
    ) -> Part:
        """Decide the task with some checks left out.

        Args:
            clear: Bits of single checks to clear, per row.
            off: Rules about all queues to leave out, see :func:`~brokerlab.brokerage.engine.steps.walk`.
        """
        pairs = self.pairs
        if clear is not None:
            kept = pl.col("failed") & (pl.lit(-1, pl.Int64) ^ clear)
            pairs = pairs.with_columns(failed=kept)
        world = self.decisions.world
        return settled(world, pairs, self.facts, self.decisions.checks, off=off)

    def without(self, check: str) -> Part:
        """Decide the task with one check left out for all queues."""
        if check in {rule.name for rule in self.decisions.checks}:
            return self.settled(clear=pl.lit(self.bit(check), pl.Int64))
        return self.settled(off={check: pl.lit(value=True)})


def peeled(decisions: Decisions, t: int, q: int) -> Waived:
    """Take away, for one queue of a task, every check that skips it, one after the other.

    Args:
        decisions: The decisions.
        t: Number of the task.
        q: Number of a queue that was looked at for the task.
    """
    trial = Trial.of(decisions, t)
    here = pl.col("q") == q

    def reason(part: Part) -> str | None:
        found: str | None = part.pairs.filter(here)["check"].item()
        return found

    part = trial.settled()
    first = reason(part)
    failed = int(trial.pairs.filter(here)["failed"].item())
    single = _of_bits(decisions, failed)
    checks = list(dict.fromkeys([first, *single] if first else single))
    part = trial.settled(clear=pl.when(here).then(pl.lit(failed, pl.Int64)).otherwise(0))
    off: dict[str, pl.Expr] = {}
    while part.late is not None and (last := reason(part)) is not None:
        if last not in checks:
            checks.append(last)
        if last == LAST:
            break
        off[last] = here
        part = trial.settled(
            clear=pl.when(here).then(pl.lit(failed, pl.Int64)).otherwise(0), off=off
        )
    late = part.late if part.late is not None else pl.DataFrame(schema={"q": pl.Int64})
    names = dict(decisions.world.facts.queues.select("q", "panda_queue").iter_rows())
    return Waived(t, q, tuple(checks), late.filter(here), late, names)


def _of_bits(decisions: Decisions, failed: int) -> list[str]:
    """Return the names of failed checks, persistent ones first."""
    checks = [check for bit, check in enumerate(decisions.checks) if failed >> bit & 1]
    return [
        check.name for kind in ("persistent", "temporary") for check in checks if check.kind == kind
    ]
