"""A question about a task and a queue, and the answers that every brokerage of queues has in common."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.explaining.answer import Explanation, Obstacle
from brokerlab.brokerage.explaining.selection import Subject
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.view import NOT_LOOKED_AT, view
from brokerlab.brokerage.words import counted, listed, worded

_NEAR = 3
C = TypeVar("C", bound="Case")


@dataclass(frozen=True)
class Case:
    """The question: a task of decisions, and the queue asked about.

    Attributes:
        name: The queue.
        who: The task.
        decisions: What was decided.
        parent: The unified queue that was asked about, where ``name`` is the one of its pseudo-queues that answers for
            it; empty: ``name`` itself was asked about.
    """

    name: str
    who: Subject
    decisions: Decisions | AnalysisDecisions
    parent: str = ""

    @property
    def shown(self) -> str:
        """The queue in words, with the pseudo-queue that answers for it."""
        return f"{self.parent} (pseudo-queue {self.name})" if self.parent else self.name

    def answer(
        self, outcome: str, *sentences: str, check: str | None = None, **more: Any
    ) -> Explanation:
        """Return the answer, with what became of the other pseudo-queues of a unified queue."""
        place = self.parent or self.name
        others = self._siblings() if self.parent else []
        return Explanation(
            self.who.jeditaskid,
            self.who.snapshot,
            place,
            outcome,
            check,
            (*sentences, *others),
            **more,
        )

    def furthest(self) -> Self:
        """Return the question about that of the queue's pseudo-queues which came furthest.

        Jobs are brokered to pseudo-queues: a unified queue may get jobs if one of them may. Of several that the same
        check skips, it is the one that fails fewest others. Where none was looked at, the question stays as it is.
        """
        children = self._children(self.name)
        if not children:
            return self
        rows = self._looked_at([self.name, *children])
        steps = view(self.decisions).steps["check"].cast(pl.String).to_list()
        places = {check: place for place, check in enumerate(steps)} | {None: len(steps)}

        def order(row: dict[str, Any]) -> tuple[int, int, int, str]:
            rank = len(places) if row["rank"] is None else row["rank"]
            return -places[row["check"]], rank, row["failed"].bit_count(), row["panda_queue"]

        best = min(rows.iter_rows(named=True), key=order, default=None)
        if best is None or best["panda_queue"] == self.name:
            return self
        return replace(self, name=best["panda_queue"], parent=self.name)

    def not_a_candidate(self, *sentences: str) -> Explanation:
        """Return the answer about a queue that was not looked at for the task."""
        return self.answer("not_a_candidate", *sentences)

    @property
    def exists(self) -> bool:
        """There is a queue of that name, at some instant."""
        return self.name in set(self.decisions.world.facts.queues["panda_queue"])

    def unknown(self) -> Explanation:
        """Return the answer about a queue that does not exist."""
        names = self.decisions.world.facts.queues["panda_queue"].unique().to_list()
        close = difflib.get_close_matches(self.name, names, n=_NEAR)
        hint = f"did you mean {' or '.join(close)}?" if close else f"{len(names)} queues are known."
        return self.answer("unknown", f"There is no queue {self.name}; {hint}")

    def asked(self) -> tuple[dict[str, Any], pl.DataFrame]:
        """Return the facts of the task, and those of the queue at that instant."""
        facts = self.decisions.world.facts
        task = self.who.rows(facts.tasks).row(0, named=True)
        rows = facts.queues.filter(pl.col("panda_queue") == self.name)
        if facts.queues["q_version"].n_unique() > 1:
            rows = rows.filter(pl.col("q_version") == task["t_version"])
        return task, rows

    def decided(self) -> str | None:
        """Return why the queue was skipped; null: it was not; :data:`NOT_LOOKED_AT`."""
        found = self.who.rows(self.decisions.queues).filter(pl.col("panda_queue") == self.name)
        return found["check"][0] if found.height else NOT_LOOKED_AT

    def not_there(self, rows: pl.DataFrame, kind: str, runs: str) -> Explanation | None:
        """Say why a queue was not looked at, where it is no queue for such tasks.

        Args:
            rows: Facts of the queue at that instant.
            kind: What the brokerage is about, ``production`` or ``analysis``.
            runs: Column that says whether a queue runs that.
        """
        head = f"{self.who.text} was not sent to {self.name}:"
        if not rows.height:
            return self.not_a_candidate(f"{head} the queue did not exist at that instant.")
        queue = rows.row(0, named=True)
        if queue["is_unified"]:
            names = self._children(self.name)
            ask = (
                f"Its pseudo-queues are {listed(names)}, and none was looked at: ask about one of them."
                if names
                else "It has none."
            )
            return self.not_a_candidate(
                f"{head} it is a unified queue, jobs are brokered to its pseudo-queues.", ask
            )
        if queue[runs]:
            return None
        return self.not_a_candidate(
            f"{head} it runs no {kind} (type {worded(queue['type'])}, no grandly_unified in catchall)."
        )

    def _children(self, parent: str) -> list[str]:
        """Return the names of the pseudo-queues of a queue."""
        queues = self.decisions.world.facts.queues
        own = queues.filter((pl.col("parent") == parent) & (pl.col("panda_queue") != parent))
        return sorted(own["panda_queue"].unique())

    def _looked_at(self, names: Collection[str]) -> pl.DataFrame:
        """Return ``panda_queue, check, rank, failed`` of those of some queues that were looked at for the task."""
        rows = self.who.rows(self.decisions.queues).select(
            pl.col("panda_queue", "check").cast(pl.String), "rank", "failed"
        )
        return rows.filter(pl.col("panda_queue").is_in(names)).sort("panda_queue")

    def _siblings(self) -> list[str]:
        """Return what became of the other pseudo-queues, a line each."""
        rows = self._looked_at(set(self._children(self.parent)) - {self.name})
        lines = [
            f"  {name}: {'candidate' if check is None else f'skipped by {check}'}"
            for name, check in rows.select("panda_queue", "check").iter_rows()
        ]
        return ["Its other pseudo-queues:", *lines] if lines else []


def others(obstacles: Sequence[Obstacle]) -> list[str]:
    """Return the lines about what else stands in the way."""
    if not obstacles:
        return ["No other check stands in the way."]
    lines = [
        f"  - {each.text}{', temporary' if each.kind == 'temporary' else ''}" for each in obstacles
    ]
    verb = "stands" if len(obstacles) == 1 else "stand"
    return [f"{counted(len(obstacles), 'other check')} {verb} in the way as well:", *lines]
