"""Why a task was, or was not, sent to a queue."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import polars as pl

from brokerlab.brokerage.engine.again import Waived, peeled
from brokerlab.brokerage.engine.decisions import TASK, PlaceDecisions
from brokerlab.brokerage.explaining import weights
from brokerlab.brokerage.explaining.answer import Explanation, Obstacle
from brokerlab.brokerage.explaining.question import Question
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.words import counted, listed, number, worded

Row = dict[str, Any]


@dataclass(frozen=True)
class OnQueue(Question):
    """Why a task was, or was not, sent to a queue; a brokerage of queues says what is particular to it.

    Attributes:
        parent: The unified queue that was asked about, where ``name`` is the one of its pseudo-queues that answers for
            it; empty: ``name`` itself was asked about.
    """

    NOUN = ("queue", "queues")
    WORK: ClassVar[str]
    """What the brokerage is about."""
    RUNS: ClassVar[str]
    """Fact of a queue that runs that."""
    LAST: ClassVar[str | None]
    """Reason of candidates that are too many."""

    parent: str = ""

    @abstractmethod
    def ended(self) -> tuple[str, Sequence[str], Sequence[Obstacle]] | None:
        """Return why the task ended before any queue was looked at, remarks, and the rule; null: it did not."""

    @abstractmethod
    def besides(self, found: Waived) -> Iterator[str]:
        """Say what else there is to a queue that was skipped."""

    @abstractmethod
    def why(self, found: Waived, order: pl.DataFrame, row: Row) -> Iterator[str]:
        """Say why a queue is a candidate; ``order`` are the ranked queues of the task, ``row`` is the one of the queue."""

    def elsewhere(self) -> str:
        """Say why queues of the kind were not looked at for this task."""
        return "it is not among the queues looked at for this task."

    @property
    def may(self) -> str:
        """The verb of a candidate."""
        return "may go to"

    @property
    def shown(self) -> str:
        """The queue in words, with the pseudo-queue that answers for it."""
        return f"{self.parent} (pseudo-queue {self.name})" if self.parent else self.name

    @cached_property
    def task(self) -> Row:
        """The facts of the task, also of one for which no queue was looked at."""
        return self.who.rows(self.decisions.world.tasks).row(0, named=True)

    @cached_property
    def here(self) -> pl.DataFrame:
        """The facts of the queue at that instant, one row; none: it did not exist."""
        queues: pl.DataFrame = self.decisions.world.facts.queues
        rows = queues.filter(pl.col("panda_queue") == self.name)
        if queues["q_version"].n_unique() > 1:
            rows = rows.filter(pl.col("q_version") == self.task["t_version"])
        return rows

    def given(self) -> Row:
        """Return the task as it was given."""
        return self.who.rows(self.decisions.world.tables["tasks"]).row(0, named=True)

    def answer(self, outcome: str, *sentences: str, **more: Any) -> Explanation:
        """Return the answer, with what became of the other pseudo-queues of a unified queue."""
        asked = replace(self, name=self.parent) if self.parent else self
        return Question.answer(asked, outcome, *sentences, *self._siblings(), **more)

    def explained(self) -> Explanation:
        """Return the answer."""
        names = self.decisions.world.facts.queues["panda_queue"].unique().to_list()
        if self.name not in names:
            hint = self.near(names, f"{len(names)} queues are known.")
            return self.answer("unknown", f"There is no queue {self.name}; {hint}")
        ended = self.ended()
        if ended is not None:
            clause, remarks, obstacles = ended
            return self.answer(
                "task_ended",
                f"{self.who.text} was sent nowhere, to {self.name} neither: {clause}.",
                "No queue was looked at.",
                *remarks,
                *self.who.again(),
                obstacles=tuple(obstacles),
            )
        asked = self._furthest()
        rows = asked.looked_at([asked.name])
        if not rows.height:
            return asked.passed_over()
        found = peeled(asked.decisions, asked.task["t"], asked.here["q"][0])
        check, failed = rows["check"][0], rows["failed"][0]
        if check is not None:
            return asked.skipped(check, asked.obstacles(found, failed), asked.besides(found))
        return asked.candidate(found)

    def candidate(self, found: Waived) -> Explanation:
        """Return the answer about a candidate."""
        again = self.who.again()
        if self.decisions.world.hint:
            head = f"{self.who.text} {self.may} {self.shown}: no check skips it."
            return self.answer("candidate", head, *again)
        row = found.late.row(0, named=True) | {"loop": found.loop}
        weighed = self.who.rows(self.decisions.weighed)
        weighed = weighed.filter(pl.col("panda_queue").cast(pl.String) == self.name)
        numbers = weighed.drop(*TASK, "panda_queue", "check").row(0, named=True)
        says = self.why(found, weights.ranked(found.late_of_task), row)
        return self.answer("candidate", *says, *again, numbers=numbers)

    def goes_to(self, seen: PlaceDecisions) -> str:
        """Say how many queues the task may go to, and which are the best, after its name."""
        names, row = [str(name) for name in seen.shares["panda_queue"]], self.who.row
        best = f", the best are {listed(names, most=3)}" if len(names) > 1 else ""
        if len(names) == 1:
            best = f": {names[0]}"
        n = counted(row["n_candidates"], *self.NOUN)
        return f"may go to {n} of {number(row['n_queues'])}{best}."

    def numbered(self, order: pl.DataFrame, row: Row) -> str:
        """Say where a candidate ranks and what share of the jobs it can expect."""
        total = order["weight"].sum()
        share = row["weight"] / total if total else 1 / order.height
        n = counted(order.height, "candidate")
        return (
            f"it ranks {row['rank']} of {n} with weight {number(row['weight'])} and can expect {share * 100:.0f} % of "
            "the jobs."
        )

    def first(self, found: Waived, order: pl.DataFrame, row: Row, words: dict[str, str]) -> str:
        """Say which queue is ranked before a candidate that is not the first, and in which factor of the weight it is ahead most."""
        best = order.row(0, named=True)
        ratio = best["weight"] / row["weight"] if row["weight"] else None
        times = "many" if ratio is None else number(float(f"{ratio:.3g}"))
        return (
            f"{found.names[best['q']]} ranks first with weight {number(best['weight'])}, {times} times as much"
            f"{weights.against(row, best, words)}."
        )

    def would_be(self, found: Waived) -> str:
        """Say what the queue would be without the checks that skip it."""
        left = [name for name in found.checks if name != self.LAST]
        among = f"{found.place:,} of {number(found.n_ranked)}" if found.place else ""
        if not left:
            taken = weights.ranked(found.late_of_task).row(-1, named=True)
            last = f"{found.names[taken['q']]} is the last taken, with {number(taken['weight'])}"
            return f"It is number {among}; {last}."
        without = "this check" if len(left) == 1 else f"these {len(left)} checks"
        if found.place is None:
            return f"Without {without} it would be a candidate for jumbo jobs."
        taken_not = ", and not be taken" if self.LAST in found.checks else ""
        return f"Without {without} it would rank {among}, with weight {number(found.weight)}{taken_not}."

    def _furthest(self) -> Self:
        """Return the question about that of the queue's pseudo-queues which came furthest.

        Jobs are brokered to pseudo-queues: a unified queue may get jobs if one of them may. Of several that the same
        check skips, it is the one that fails fewest others. Where none was looked at, the question stays as it is.
        """
        rows = self.looked_at([self.name, *self._children(self.name)])
        order = self.decisions.order["check"].cast(pl.String).to_list()
        steps = {check: step for step, check in enumerate([*order, None])}

        def key(row: Row) -> tuple[int, int, int, str]:
            rank = len(steps) if row["rank"] is None else row["rank"]
            return -steps[row["check"]], rank, row["failed"].bit_count(), row["panda_queue"]

        best = min(rows.iter_rows(named=True), key=key, default={"panda_queue": self.name})
        name = best["panda_queue"]
        return self if name == self.name else replace(self, name=name, parent=self.name)

    def passed_over(self) -> Explanation:
        """Return the answer about a queue that was not looked at for the task."""
        head = f"{self.who.text} was not sent to {self.name}:"
        if not self.here.height:
            why = ["the queue did not exist at that instant."]
        elif self.here["is_unified"][0]:
            children = listed(self._children(self.name))
            why = [
                "it is a unified queue, jobs are brokered to its pseudo-queues.",
                f"Its pseudo-queues are {children}, and none was looked at: ask about one of them."
                if children
                else "It has none.",
            ]
        elif not self.here[self.RUNS][0]:
            kind = f"(type {worded(self.here['type'][0])}, no grandly_unified in catchall)"
            why = [f"it runs no {self.WORK} {kind}."]
        else:
            why = [self.elsewhere()]
        return self.answer("not_a_candidate", f"{head} {why[0]}", *why[1:])

    def _children(self, parent: str) -> list[str]:
        queues = self.decisions.world.facts.queues
        own = queues.filter((pl.col("parent") == parent) & (pl.col("panda_queue") != parent))
        return sorted(own["panda_queue"].unique())

    def looked_at(self, names: Collection[str]) -> pl.DataFrame:
        """Return ``panda_queue, check, rank, failed`` of those of some queues that were looked at for the task."""
        rows = self.who.rows(self.decisions.queues).select(
            pl.col("panda_queue", "check").cast(pl.String), "rank", "failed"
        )
        return rows.filter(pl.col("panda_queue").is_in(names)).sort("panda_queue")

    def _siblings(self) -> list[str]:
        """Return what became of the other pseudo-queues of a unified queue, a line each."""
        if not self.parent:
            return []
        rows = self.looked_at({*self._children(self.parent)} - {self.name})
        lines = [
            f"  {name}: {'candidate' if check is None else f'skipped by {check}'}"
            for name, check in rows.select("panda_queue", "check").iter_rows()
        ]
        return ["Its other pseudo-queues:", *lines] if lines else []


class OfJobs(OnQueue):
    """Why a production task was, or was not, sent to a queue."""

    WORK, RUNS, LAST = "production", "q_production", BROKERAGE.last
    ENDED: ClassVar[dict[str, str]] = {
        "unknown_nucleus": "its nucleus is not known",
        "input_incomplete": "its input is complete nowhere",
        "no_candidates": "nothing passed all checks",
    }
    decisions: Decisions

    @property
    def may(self) -> str:
        """The verb of a candidate."""
        return "could run at" if self.decisions.world.hint else "may go to"

    @property
    def not_sent(self) -> str:
        """The verb of a queue that was skipped."""
        return "could not run at" if self.decisions.world.hint else "was not sent to"

    def ending(self) -> str:
        """Say in a clause why the task found no queue."""
        row = self.who.row
        detail = f": {row['detail']}" if row["detail"] else ""
        return f"{self.ENDED[row['outcome']]} ({row['outcome']}){detail}"

    def ended(self) -> tuple[str, Sequence[str], Sequence[Obstacle]] | None:
        """Return why the task ended before any queue was looked at."""
        placed = self.who.row["outcome"] in ("candidates", "no_candidates")
        return None if placed else (self.ending(), (), ())

    def elsewhere(self) -> str:
        """Say why queues of the kind were not looked at for this task."""
        given = self.given()
        if given["preassigned_site"]:
            return (
                f"merging stays at {given['preassigned_site']}, where the files to merge are, and at queues that read "
                "its output storage."
            )
        if self.task["t_listed"]:
            return f"the task is pre-assigned to {given['site']} (site)."
        return super().elsewhere()

    def besides(self, found: Waived) -> Iterator[str]:
        """Say what the queue would be otherwise."""
        if not self.decisions.world.hint:
            yield self.would_be(found)

    def why(self, found: Waived, order: pl.DataFrame, row: Row) -> Iterator[str]:
        """Say the rank, the factors of the weight, and what ranks better."""
        world = self.decisions.world
        ranks = "it is a queue for jumbo jobs, which rank outside the best ten."
        ranks = ranks if row["jumbo"] else self.numbered(order, row)
        yield f"{self.who.text} {self.may} {self.shown}: {ranks}"
        if row["bootstrap"]:
            yield (
                f"It has no job at all: with priority {number(row['t_prio'])} it gets one job first, at weight 0, so "
                "that it starts up."
            )
        else:
            ends = self.values(found, {*weights.LINK}).row(0, named=True)
            link = weights.link(world, self.who.snapshot, ends)
            yield self.made_of()
            yield from weights.factors(row, link, world.rules)
        yield from self._cap(row)
        yield from self._better(found, order, row)

    def _cap(self, row: Row) -> list[str]:
        """Return how many jobs are queued and may be, by the cap that is tested for the queue (rows 46 and 48)."""
        jobs, queued, cap = "jobs", row["queued"], row["cap"]
        if self.decisions.world.rules.cap_mode == "twice_running":
            queued = row["queued_all"]
        elif row["t_express"]:
            return []
        elif row["q_ucore"]:
            if not row["rt_known"]:
                return []
            jobs, queued, cap = "jobs of the task's resource types", row["queued_rt"], row["cap_rt"]
        return [f"{number(queued)} {jobs} are queued there, up to {number(cap)} are let in."]

    def _better(self, found: Waived, order: pl.DataFrame, row: Row) -> list[str]:
        if row["rank"] == 1:
            return ["No queue ranks better."]
        if row["jumbo"]:
            return []
        best = order.row(0, named=True)
        if best["bootstrap"]:
            return [f"{found.names[best['q']]} ranks first, because it has no job at all."]
        return [self.first(found, order, row, weights.FACTORS)]
