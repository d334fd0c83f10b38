"""Why a user task was, or was not, sent to a queue, and what became of it as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.analysis_jobs.ranking import MARKS
from brokerlab.brokerage.analysis_jobs.settings import HIGH_PRIORITY
from brokerlab.brokerage.analysis_jobs.throttle import WAITING, throttle_rules
from brokerlab.brokerage.engine.again import Waived
from brokerlab.brokerage.engine.rule import SETTING
from brokerlab.brokerage.explaining import user_weights
from brokerlab.brokerage.explaining.answer import Obstacle
from brokerlab.brokerage.explaining.queues import OnQueue, Row
from brokerlab.brokerage.words import counted, filled, number

STOPPED_CLOCK = (
    "Waiting like this does not count towards the time after which a pending task is exhausted."
)
RELAXED = {
    "priority": "the task's priority of {taskpriority} is {high} or more",
    "io_intensity": "the task's I/O of {iointensity} kB/s is at most IO_INTENSITY_CUTOFF_USER, {most_io} kB/s",
    "no_progress": "the task makes no progress since {since}, longer than DATA_CHECK_TIMEOUT_USER, {timeout} h",
}
"""Why the input of a task does not have to be at the queue (4.1c)."""
_SHOWN = 3


class OfUsers(OnQueue):
    """Why a user task was, or was not, sent to a queue."""

    WORK, RUNS, LAST = "analysis", "q_candidate", BROKERAGE.last
    ENDED: ClassVar[dict[str, str]] = {
        "fatal": "the queue that it is pre-assigned to was skipped",
        "temporary_error": "nothing passed all checks",
    }
    decisions: AnalysisDecisions

    @cached_property
    def held(self) -> Obstacle | None:
        """The rule that holds the task back, with the numbers compared; null: none does.

        Source: analysis-jobs.md 2.
        """
        name = self.who.row["throttle"]
        if name is None:
            return None
        world = self.decisions.world
        rule = next(each for each in throttle_rules(world.rules) if each.name == name)
        whose = "_USER_" if self.task["t_group"] is None else "_GROUP_"
        keys = [key for key in rule.keys if whose in key or not key.startswith("CAP_")]
        return self.told(rule, self.who.rows(world.tasks), self.task, keys)

    def ending(self) -> str:
        """Say in a clause why the task found no queue."""
        if self.held is not None:
            return f"it is held back, because {self.held.text}"
        return f"{self.ENDED[self.who.row['outcome']]} ({self.who.row['outcome']})"

    def ended(self) -> tuple[str, Sequence[str], Sequence[Obstacle]] | None:
        """Return which rule holds the task back, and how it waits."""
        if self.held is None:
            return None
        return self.ending(), [*self._clock(), *self.who.tried_again()], [self.held]

    def remarks(self) -> list[str]:
        """Say how the task waits, which locality loop decided, and which marks its queues have."""
        if not self.who.rows(self.decisions.world.facts.tasks).height:
            return self._clock()
        return [*self._loops(), *self._marks()]

    def besides(self, found: Waived) -> Iterator[str]:
        """Say which loop decided, what the queue would be otherwise, and what the stabilizer lets wait."""
        yield from self._loops()
        if found.place is not None:
            yield self.would_be(found)
        if "user_queue" in found.checks:
            row, rules = found.late.row(0, named=True), self.decisions.world.rules
            yield from user_weights.stabilizer(row, self.task["t_user"], rules)

    def why(self, found: Waived, order: pl.DataFrame, row: Row) -> Iterator[str]:
        """Say the rank, the factors of the weight, what ranks better, and what the stabilizer lets wait."""
        world, user = self.decisions.world, self.task["t_user"]
        yield f"{self.who.text} {self.may} {self.shown}: {self.numbered(order, row)}"
        own = world.brokerage.own_weight is not None
        head, *factors = user_weights.factors(row, world.rules, user)
        yield f"{self.made_of()}:" if own else head
        yield from factors
        yield user_weights.other_rank(order, row, world.rules)
        yield self._better(found, order, row)
        yield from user_weights.stabilizer(row, user, world.rules)
        yield from self._loops()

    def _better(self, found: Waived, order: pl.DataFrame, row: Row) -> str:
        if row["rank"] == 1:
            return "No queue ranks better."
        best, rules = order.row(0, named=True), self.decisions.world.rules
        name = found.names[best["q"]]
        if rules.used_sites_first and best["x_used"] and not row["x_used"]:
            return f"{name} ranks first, because the task has been there already."
        if best["weight"] == row["weight"]:
            return f"{name} has the same weight and ranks first by its name."
        words = {"basic": f"{rules.basic_weight} basic weight", "data_factor": "data factor"}
        return self.first(found, order, row, words)

    def _clock(self) -> list[str]:
        return [STOPPED_CLOCK] if self.who.row["outcome"] == WAITING else []

    def _loops(self) -> list[str]:
        """Say which locality loop decided, and what the other one said of the queue, or of all queues."""
        whole = not self.name
        if not self.task["t_has_input"]:
            return ["It has no input, so queues are not asked for it."] if whole else []
        if self.who.row["loop"] == 1:
            if whole:
                return [
                    "Decided in the first locality loop, which asks for queues that hold the input."
                ]
            return ["The first locality loop decided: it asks for queues that hold the input."]
        first = self.who.rows(self.decisions.first_loop).with_columns(
            pl.col("check").cast(pl.String)
        )
        if not first.height:
            there = "at the queue" if whole else "there"
            return [f"The input does not have to be {there}: {self._relaxed()}."]
        which = "which does not ask for the input at the queue: the first one left none of "
        n = counted(first.height, *self.NOUN)
        if whole:
            counts = first["check"].drop_nulls().value_counts()
            most = counts.sort("count", "check", descending=[True, False])
            reasons = [f"{check} {number(n)}" for check, n in most.head(_SHOWN).iter_rows()]
            rest = int(most["count"][_SHOWN:].sum())
            reasons += [f"others {number(rest)}"] if rest else []
            return [f"Decided in the second locality loop, {which}{n} ({', '.join(reasons)})."]
        check = first.filter(pl.col("panda_queue") == self.name)["check"][0]
        skipped = f"{self.shown} was skipped there by {check}"
        return [f"The second locality loop decided, {which}{n}, {skipped}."]

    def _marks(self) -> list[str]:
        rows = self.who.rows(self.decisions.weighed).filter(pl.any_horizontal(MARKS))
        if not rows.height:
            return []
        counts = [f"{name} {number(n)}" for name in MARKS if (n := int(rows[name].sum()))]
        verb = "is" if rows.height == 1 else "are"
        return [
            f"{counted(rows.height, *self.NOUN)} {verb} marked as problematic: {', '.join(counts)}."
        ]

    def _relaxed(self) -> str:
        given = self.given()
        since = given["frozentime"]
        values = given | {
            "high": HIGH_PRIORITY,
            "most_io": self.task[f"{SETTING}IO_INTENSITY_CUTOFF_USER"],
            "timeout": self.task[f"{SETTING}DATA_CHECK_TIMEOUT_USER"],
            "since": f"{since:%Y-%m-%d %H:%M}" if since else None,
        }
        return filled(RELAXED.get(self.task["t_relaxed"], RELAXED["no_progress"]), values)
