"""Decisions on places, whatever chapter made them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, Self

import polars as pl

from brokerlab.brokerage.engine.pairs import Facts, matched, positions
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import MARKED, Step, marks_of, names_of, rules_of
from brokerlab.brokerage.engine.world import Part, World
from brokerlab.brokerage.inputs.frames import run
from brokerlab.results import Result, Shows

TASK = ["jeditaskid", "snapshot"]
PLACED = ("candidates", "nucleus")
"""Outcomes of tasks that found a place."""
NOT_LOOKED_AT: Final = "not looked at"
"""Stands for the check at a place that was no candidate for the task to begin with."""
TEMPORARY = "temporary problem"
"""Stage at which places with a temporary mark are removed."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """What is kept of decisions on queues.

    Attributes:
        weighed: Columns of the queues that reached the weight, over what the steps made.
        sums: Further sums over the ``check`` of a task's queues that ``outcome`` reads.
        outcome: How a task ends, over ``outcome`` (how it ended before any queue was looked at), ``n_candidates`` and sums.
        pending_min: A task without candidates waits as long [min].
        tasks: Columns of the table of tasks behind ``jeditaskid, snapshot, at``.
    """

    weighed: Mapping[str, pl.Expr]
    sums: Mapping[str, pl.Expr] = field(default_factory=dict)
    outcome: pl.Expr
    pending_min: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class PlaceDecisions(Result, ABC):
    """What a brokerage decided.

    Attributes:
        places: One row per (task, place) that was looked at: the key, ``check`` (why it was skipped; null: it was not),
            ``failed`` (i64: bit i is set where check i alone says skip) and more.
        tasks: One row per task.
        world: What was decided on.
    """

    shows = Shows(
        about="decisions of a brokerage, one row per task and place",
        columns="jeditaskid, at, panda_queue, check, weight, rank, outcome, nucleus, n_nuclei, n_passed",
        keys=("jeditaskid", "snapshot", "panda_queue"),
        next=(
            "brokerage.funnel(decisions)",
            "brokerage.explain_task(decisions, jeditaskid=...)",
            "brokerage.what_if(decisions, key, values)",
            "brokerage.compare(decisions, others)",
        ),
    )

    places: pl.DataFrame
    tasks: pl.DataFrame
    world: World

    @classmethod
    @abstractmethod
    def of(cls, world: World, parts: Iterable[Part]) -> Self:
        """Name tasks and queues and sum up the tasks."""

    @property
    @abstractmethod
    def shares(self) -> pl.DataFrame:
        """``share`` of the task's expected jobs (probability of a nucleus) at its candidates, the best of a task first."""

    @property
    @abstractmethod
    def best(self) -> pl.DataFrame:
        """One row per task: ``best``, the place ranked first or chosen."""

    @property
    @abstractmethod
    def about(self) -> pl.DataFrame:
        """One row per task: what is known of it, by which results may be grouped."""

    @property
    def place(self) -> str:
        """Column that names a place: ``panda_queue`` or ``nucleus``."""
        return self.world.brokerage.place

    @property
    def pairs(self) -> pl.DataFrame:
        """``jeditaskid, snapshot``, the place and ``check`` (null: candidate) of every pair looked at, sorted."""
        return self.places.select(*TASK, self.place, "check")

    @property
    def order(self) -> pl.DataFrame:
        """``check, stage, kind``, in the order in which they remove."""
        order = stages(self.checks, self.world.steps).sort("step", "check")
        return order.select("check", "stage", "kind")

    @property
    def ends(self) -> pl.DataFrame:
        """One row per task: ``outcome`` and ``best``."""
        return self.tasks.select(*TASK, "outcome").join(
            self.best, on=TASK, how="left", maintain_order="left"
        )

    def of_tasks(self, tasks: pl.DataFrame) -> Self:
        """Return the decisions on some tasks, ``jeditaskid, snapshot``; what they were decided on stays whole."""
        frames = {each.name: getattr(self, each.name) for each in fields(self)}
        kept = {
            name: frame.join(tasks, on=TASK, how="semi", maintain_order="left")
            for name, frame in frames.items()
            if name != "world" and frame.width
        }
        return replace(self, **kept)

    @cached_property
    def known(self) -> dict[int, pl.DataFrame]:
        """Loop to ``t, q, failed`` of the tasks that went through it, sorted."""
        return {1: matched(self.world.facts).hstack(self.places.select("failed"))}

    @property
    def checks(self) -> tuple[Rule, ...]:
        """The checks of single places, in order."""
        return self.world.checks

    @property
    def reasons(self) -> tuple[Rule, ...]:
        """Every reason for which a place may be skipped, in order; a rule may be there twice, of single places first."""
        return (*self.checks, *rules_of(self.world.steps))

    @property
    def marks(self) -> tuple[Rule, ...]:
        """Why queues are marked problematic."""
        return marks_of(self.world.steps)

    def headline(self) -> str:
        """Return what it says, in a line."""
        ends = self.tasks["outcome"].value_counts(sort=True).rows()
        counts = ", ".join(f"{n:,} {outcome}" for outcome, n in ends)
        return f"{self.shows.about}; tasks: {counts or 'none'}"


def stages(checks: Sequence[Rule], steps: Sequence[Step]) -> pl.DataFrame:
    """Return at which step each check removes places: ``check, stage, step, kind``.

    Where temporary ones only mark, they remove together, where the last mark removes.
    """
    order = names_of(checks, steps)
    kinds = {rule.name: rule.kind for rule in (*checks, *rules_of(steps))}
    marked = steps.index(MARKED) if MARKED in steps else None
    at = None if marked is None else len(checks) + len(rules_of(steps[:marked])) - 0.5
    temporary = {check.name for check in checks if check.kind == "temporary" and at is not None}
    rows = [
        (name, *((TEMPORARY, at) if name in temporary else (name, float(step))), kinds[name])
        for step, name in enumerate(order)
    ]
    frame = pl.DataFrame(rows, schema=["check", "stage", "step", "kind"], orient="row")
    return frame.with_columns(pl.col("check").cast(pl.Enum(order)))


def with_names(facts: Facts, tasks: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """Put the keys of the decision, those of ``tasks``, and the name of the queue before the rest of ``t, q``, and drop ``q``."""
    task = positions(tasks["t"], frame["t"])
    queue = positions(facts.queues["q"], frame["q"])
    names = facts.names[pl.Series(queue)].to_frame()
    keys = tasks.drop("t")[pl.Series(task)].hstack(names)
    return keys.hstack(frame.drop("q"))


@dataclass(frozen=True, repr=False)
class QueueDecisions(PlaceDecisions):
    """What a brokerage of queues decided.

    Attributes:
        places: One row per (task, queue) that was a candidate in the last loop, sorted by task and name:
            ``jeditaskid``, ``snapshot``, ``panda_queue`` (Enum), ``failed`` (i64: bit i is set where check i alone says
            skip), ``check`` (Enum: why it was skipped; null: it was not), ``weight``, ``rank`` and what else the
            brokerage ranks by.
        tasks: One row per task: ``outcome``, ``stage`` that emptied the list, ``n_queues`` looked at, ``n_candidates``,
            ``pending_until`` (null in hint mode, which leaves the task where it is) and more.
        world: What was decided on.
        weighed: The queues that reached the weight; same keys.
        first_loop: The rows of ``places`` of the first loop of tasks that went on to a second one.
    """

    weighed: pl.DataFrame
    first_loop: pl.DataFrame

    @classmethod
    def of(cls, world: World, parts: Iterable[Part]) -> Self:
        """Name tasks and queues and sum up the tasks; a part is let go before the next is asked for."""
        brokerage, order = world.brokerage, stages(world.checks, world.steps)
        results = cls.results(world)
        tasks = world.tasks.select("t", *TASK)
        loop = [] if world.second is None else ["loop"]
        shown = ["t", "q", "failed", "check", *loop, *brokerage.ranks]
        queues, weighed, sums = [], [], []
        for part in parts:
            pairs = part.pairs.with_columns(loop=pl.lit(part.loop))
            queues.append(with_names(world.facts, tasks, pairs.select(shown)))
            sums.append(_sums(pairs, order["step"], results.sums))
            if part.late is not None:
                late = part.late.with_columns(loop=pl.lit(part.loop))
                late = late.select("t", "q", *loop, **results.weighed)
                weighed.append(with_names(world.facts, tasks, late))
        every, summed = pl.concat(queues), pl.concat(sums)
        again = summed.filter(pl.col("loop") > 1).select("t")
        first = every.clear()
        if again.height:
            gone = every.join(again, on="t", how="semi", maintain_order="left")
            first = gone.filter(pl.col("loop") == 1)
        summed = _last(summed, again)
        late = _last(pl.concat(weighed), again).drop("t") if weighed else pl.DataFrame()
        result = _of_tasks(world, summed, order, results)
        last = _last(every, again).drop("t")
        return cls(last, result, world, late, first.drop("t", *brokerage.ranks))

    @staticmethod
    @abstractmethod
    def results(world: World) -> Results:
        """Return what is kept."""

    @property
    def queues(self) -> pl.DataFrame:
        """One row per (task, queue) that was a candidate."""
        return self.places

    @property
    def shares(self) -> pl.DataFrame:
        """See :class:`PlaceDecisions`."""
        if not self.weighed.width:  # hint mode: nothing is weighed
            keys = self.places.select(*TASK, "panda_queue").clear()
            return keys.with_columns(share=pl.lit(None, pl.Float64))
        chosen = self.weighed.filter(pl.col("rank").is_not_null()).sort(*TASK, "rank")
        return chosen.select(*TASK, "panda_queue", "share")

    @property
    def about(self) -> pl.DataFrame:
        """See there: the input table, ``day`` of the instant, and how the task ended."""
        given = self.world.tables["tasks"].with_columns(
            pl.col("snapshot").fill_null(0), day=pl.col("at").dt.date()
        )
        names = [name for name in ("outcome", "throttle", "loop") if name in self.tasks.columns]
        ended = self.tasks.select(*TASK, *names)
        result = given.join(ended, on=TASK, how="left", maintain_order="left")
        if "t_class" not in self.world.tasks.columns:
            return result
        classes = self.world.tasks.select(*TASK, task_class="t_class")
        return result.join(classes, on=TASK, how="left", maintain_order="left")

    @property
    def best(self) -> pl.DataFrame:
        """See there."""
        first = self.places.filter(pl.col("rank") == 1)
        named = first.select(*TASK, best=pl.col("panda_queue").cast(pl.String))
        return self.tasks.select(TASK).join(named, on=TASK, how="left", maintain_order="left")

    @cached_property
    def known(self) -> dict[int, pl.DataFrame]:
        """See :attr:`PlaceDecisions.known`."""
        if self.world.second is None:
            return super().known
        # the tables have names in the place of numbers, in the order of the numbers
        facts = self.world.facts
        last = matched(facts).hstack(self.places.select("loop", "failed"))
        gone = self.world.tasks.join(self.first_loop, on=TASK, how="semi").select("t")
        first = matched(facts.of_tasks(gone)).hstack(self.first_loop.select("failed"))
        one, two = (last.filter(pl.col("loop") == loop).drop("loop") for loop in (1, 2))
        return {1: pl.concat([one, first]).sort("t", "q"), 2: two}

    def frame(self) -> pl.DataFrame:
        """Return the decisions on queues."""
        return self.places

    def to_dict(self) -> dict[str, Any]:
        """Return the tables and their provenance as plain Python values."""
        return {
            "queues": self.places.to_dicts(),
            "tasks": self.tasks.to_dicts(),
            "matching": self.world.matching.to_dict(),
            "brokerage": self.world.brokerage.name,
            "rules": self.world.rules.to_dict(),
            "config_digest": self.world.config.digest,
            "unasked": self.world.unasked,
        }


def furthest(decisions: QueueDecisions, rows: pl.DataFrame) -> pl.DataFrame:
    """Return of each stored queue that of its pseudo-queues which came furthest, of several rows of ``decisions.queues``.

    Jobs are brokered to pseudo-queues: a unified queue may get jobs if one of them may. Of several that the same check
    skips, it is the one that fails fewest others. ``jeditaskid, snapshot, queue``, ``place`` (the name of that pseudo-queue, or
    the queue itself), ``check``, ``rank``; sorted.
    """
    order = [*decisions.order["check"].cast(pl.String), None]
    steps = pl.DataFrame({"check": order, "step": range(len(order))})
    queues = decisions.world.facts.queues.select(place="panda_queue", queue="parent")
    queues = queues.unique("place", keep="first", maintain_order=True)
    by = [-pl.col("step"), pl.col("rank").fill_null(99), pl.col("failed").bitwise_count_ones()]
    return (
        rows.select(
            *TASK, pl.col("check").cast(pl.String), "rank", "failed",
            place=pl.col("panda_queue").cast(pl.String),
        )
        .join(steps, on="check", nulls_equal=True)
        .join(queues, on="place")
        .sort(*by, "place")
        .unique([*TASK, "queue"], keep="first", maintain_order=True)
        .select(*TASK, "queue", "place", "check", "rank")
        .sort(*TASK, "queue")
    )  # fmt: skip


def _last(frame: pl.DataFrame, again: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the last loop of each task; those of ``again`` went through two."""
    if not again.height:
        return frame
    second = frame["t"].is_in(again["t"].implode())
    return frame.filter((pl.col("loop") > 1) | ~second).sort("t", maintain_order=True)


def _sums(pairs: pl.DataFrame, steps: pl.Series, more: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Return ``t, loop, n_queues, n_candidates, step`` (the last one that removed a queue) and more sums over ``check``."""
    step = steps.gather(pairs["check"].to_physical()).alias("step")
    return (
        pairs.select("t", "loop", "check")
        .hstack([step])
        .group_by("t", maintain_order=True)
        .agg(
            pl.col("loop").first(),
            n_queues=pl.len().cast(pl.Int64),
            n_candidates=pl.col("step").null_count().cast(pl.Int64),
            step=pl.col("step").max(),
            **more,
        )
    )


def _of_tasks(
    world: World, summed: pl.DataFrame, order: pl.DataFrame, results: Results
) -> pl.DataFrame:
    named = order.select("stage", "step").unique()
    waits = (pl.col("outcome") != "candidates") & (not world.hint)
    until = pl.col("at") + pl.duration(minutes=results.pending_min)
    tasks = (
        world.tasks.lazy()
        .join(summed.lazy(), on="t", how="left")
        .join(named.lazy(), on="step", how="left")
        .join(world.outcomes.lazy(), on="t", how="left")
        .with_columns(pl.col("n_queues", "n_candidates").fill_null(0))
        .with_columns(outcome=results.outcome)
        .with_columns(
            stage=pl.when(pl.col("n_candidates") == 0).then("stage"),
            pending_until=pl.when(waits).then(until),
        )
    )
    return run(tasks.sort("t").select(*TASK, "at", *results.tasks))
