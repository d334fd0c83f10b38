"""A question about a task at an instant, and perhaps a place: what is alike in every brokerage."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from brokerlab.brokerage.engine.again import Waived
from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.engine.pairs import looked_up
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.settings import SCOPES
from brokerlab.brokerage.explaining.answer import Explanation, Obstacle, others, setting
from brokerlab.brokerage.words import listed, number
from brokerlab.errors import DataError

_SHOWN = 5
MOST_QUEUES = 5
"""Queues where jobs ran that are named."""


@dataclass(frozen=True)
class Subject:
    """A task at an instant: its row in the table of tasks, how many instants it has, and whether this one was asked for."""

    row: dict[str, Any]
    n_instants: int
    chosen: bool

    @property
    def jeditaskid(self) -> int:
        """The task."""
        return int(self.row["jeditaskid"])

    @property
    def snapshot(self) -> int:
        """The instant."""
        return int(self.row["snapshot"])

    @property
    def text(self) -> str:
        """The task in words, with the instant where it was brokered more than once."""
        at = self.row.get("at")
        when = f" on {at:%Y-%m-%d at %H:%M}" if at and self.n_instants > 1 else ""
        return f"Task {self.jeditaskid}{when}"

    def rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a table that are about the task at the instant."""
        same = pl.col("snapshot").fill_null(0) == self.snapshot
        return frame.filter(pl.col("jeditaskid") == self.jeditaskid, same)

    def tried_again(self) -> list[str]:
        """Return from when on the task is tried again, where it waits."""
        at = self.row["pending_until"]
        return [f"It is tried again from {at:%Y-%m-%d %H:%M} on."] if at else []

    def again(self) -> list[str]:
        """Return the remark that there are other instants."""
        if self.chosen or self.n_instants == 1:
            return []
        return [
            f"(The last of {number(self.n_instants)} brokerages of this task, snapshot {self.snapshot}.)"
        ]


def subject(tasks: pl.DataFrame, jeditaskid: int, snapshot: int | None) -> Subject:
    """Return the task asked about; without snapshot its last one."""
    rows = tasks.filter(pl.col("jeditaskid") == jeditaskid).sort("snapshot")
    if not rows.height:
        known = tasks["jeditaskid"].unique().sort()
        distance = (pl.col("jeditaskid") - jeditaskid).abs()
        nearby = known.to_frame().sort(distance).head(_SHOWN)["jeditaskid"].sort().to_list()
        raise DataError(
            f"no decision about jeditaskid {jeditaskid} among {len(known)} tasks; the nearest are "
            f"{', '.join(map(str, nearby))}"
        )
    if snapshot is None:
        return Subject(rows.row(-1, named=True), rows.height, chosen=False)
    one = rows.filter(pl.col("snapshot") == snapshot)
    if not one.height:
        allowed = ", ".join(str(each) for each in rows["snapshot"].to_list()[-_SHOWN:])
        raise DataError(
            f"no decision about task {jeditaskid} at snapshot {snapshot}: it has {allowed}"
        )
    return Subject(one.row(0, named=True), rows.height, chosen=True)


def where_jobs_ran(who: Subject, given: pl.DataFrame, ran: pl.DataFrame) -> str:
    """Say where the jobs made after a brokerage, and before the task's next one, really ran.

    ``ran``: jobs that started, ``jeditaskid, computingsite, made, n_jobs``.
    """
    when = "that were made after this brokerage"
    jobs = ran.filter(pl.col("jeditaskid") == who.jeditaskid)
    here = who.rows(given)["at"].item() if "at" in given.columns else None
    if here is not None:
        own = given.filter(pl.col("jeditaskid") == who.jeditaskid)
        following = own.filter(pl.col("at") > here)["at"].min()
        jobs = jobs.filter(pl.col("made") >= here)
        if following is not None:
            jobs = jobs.filter(pl.col("made") < following)
            when += " and before the next one"
    queues = jobs.group_by("computingsite").agg(pl.col("n_jobs").sum())
    queues = queues.sort("n_jobs", "computingsite", descending=[True, False])
    n_jobs = int(queues["n_jobs"].sum())
    if not n_jobs:
        return f"None of its jobs {when} has started."
    if queues.height == 1:
        at = "at" if n_jobs == 1 else "all at"
        return f"Of its jobs {when}, {number(n_jobs)} started, {at} {queues['computingsite'][0]}."
    places = [f"{number(n)} at {name}" for name, n in queues.rows()]
    return f"Of its jobs {when}, {number(n_jobs)} started: {listed(places, most=MOST_QUEUES)}."


_NEAR = 3


@dataclass(frozen=True)
class Question(ABC):
    """A task of decisions, and the place asked about; empty where the task as a whole is asked about."""

    NOUN: ClassVar[tuple[str, str]]
    """One place, and several."""

    decisions: Any
    who: Subject
    name: str = ""

    @property
    def shown(self) -> str:
        """The place in words."""
        return self.name

    @property
    def not_sent(self) -> str:
        """The verb of a place that was skipped."""
        return "was not sent to"

    @abstractmethod
    def explained(self) -> Explanation:
        """Return why the task was, or was not, sent to the place."""

    @abstractmethod
    def ending(self) -> str:
        """Say in a clause why the task found no place."""

    @abstractmethod
    def goes_to(self, seen: PlaceDecisions) -> str:
        """Say where the task goes, after its name."""

    def remarks(self) -> list[str]:
        """Return what is said of the task as a whole besides."""
        return []

    def answer(self, outcome: str, *sentences: str, **more: Any) -> Explanation:
        """Return the answer."""
        return Explanation(
            jeditaskid=self.who.jeditaskid,
            snapshot=self.who.snapshot,
            place=self.name,
            outcome=outcome,
            sentences=sentences,
            **more,
        )

    def skipped(
        self, check: str, obstacles: Sequence[Obstacle], besides: Iterable[str] = ()
    ) -> Explanation:
        """Return the answer about a place that was skipped: the reason, all else that stands in the way, and what is said besides."""
        first = obstacles[0]
        says = [f"{self.who.text} {self.not_sent} {self.shown}: {first.text}."]
        if first.check != check:
            says.append(
                f"That marks the queue as problematic, and the final list drops it ({check})."
            )
        if first.kind == "temporary":
            says.append("This is a temporary problem: it may be gone at the next brokerage.")
        says += [*others(obstacles[1:]), *besides, *self.who.again()]
        return self.answer("skipped", *says, check=check, obstacles=tuple(obstacles))

    def obstacles(self, found: Waived, failed: int) -> list[Obstacle]:
        """Return all that skips a place, with the numbers compared.

        ``failed``: bits of the checks of single places that it fails; they stand before rules of their name.
        """
        decisions = self.decisions
        known = {rule.name: rule for rule in (*decisions.reasons, *decisions.marks)}
        known |= {rule.name: rule for bit, rule in enumerate(decisions.checks) if failed >> bit & 1}
        reasons = [known[name] for name in found.checks]
        values = self.values(found, {name for rule in reasons for name in rule.columns()})
        task = self.values(found, {*SCOPES.values(), "at"}).row(0, named=True)
        return [self.told(rule, values, task) for rule in reasons]

    def values(self, found: Waived, columns: set[str]) -> pl.DataFrame:
        """Return the columns of the pair, in one row; those of the ranking first, where it has them."""
        late = [name for name in sorted(columns) if name in found.late.columns]
        one = pl.DataFrame({"t": [found.t], "q": [found.q]})
        facts = self.decisions.world.in_loop(one, self.who.row.get("loop", 1))
        return looked_up(facts, one, columns - set(late)).hstack(found.late.select(late))

    def told(
        self,
        rule: Rule,
        values: pl.DataFrame,
        task: Mapping[str, Any],
        keys: Sequence[str] | None = None,
    ) -> Obstacle:
        """Return a reason with its values, one row, in its clause, and the settings of its keys."""
        world = self.decisions.world
        config = world.config.at(task["at"]) if world.config.has_history else world.config
        scope = {name: task[column] for name, column in SCOPES.items()}
        row = values.with_columns(**rule.numbers).row(0, named=True)
        settings = [
            setting(config, key, world.place_of(key), scope)
            for key in (rule.keys if keys is None else keys)
        ]
        return Obstacle(rule.name, rule.clause(row), rule.source, rule.kind, tuple(settings))

    def made_of(self) -> str:
        """Introduce the factors of a weight: of an organisation's own they are only what it may be made of."""
        brokerage = self.decisions.world.brokerage
        if brokerage.own_weight is None:
            return "The weight is the product of"
        return f"The weight is that of brokerage {brokerage.name}; the factors that it may read are"

    def near(self, names: Sequence[str], otherwise: str) -> str:
        """Return the names that the place may be a slip of, else another hint."""
        close = difflib.get_close_matches(self.name, names, n=_NEAR)
        return f"did you mean {' or '.join(close)}?" if close else otherwise
