"""A question about a task at an instant, and perhaps a place, and its answer: what is alike in every brokerage."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import polars as pl

from brokerlab.brokerage.engine.decide import Waived
from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.engine.pairs import looked_up
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import SCOPES
from brokerlab.brokerage.words import counted, listed, number, worded
from brokerlab.errors import DataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig import keys as catalogue
from brokerlab.results import Result, Shows

BARE = ("", "ratio", "factor", "weight")
"""Units of the catalogue that say nothing behind a number."""


@dataclass(frozen=True)
class Setting:
    """A gdpconfig key, its value in force (null: not known) and unit (empty: none), and whether that is the default."""

    key: str
    value: Any
    unit: str
    is_default: bool

    @property
    def text(self) -> str:
        """The setting in words."""
        if self.value is None:
            return f"gdpconfig {self.key}"
        default = " by default" if self.is_default else ""
        unit = "" if self.unit in BARE else f" {self.unit}"
        return f"{self.key} is {worded(self.value)}{unit}{default}"


@dataclass(frozen=True)
class Obstacle:
    """One reason why a place is skipped.

    Attributes:
        check: Name of the check.
        clause: Why, with the numbers compared.
        source: Chapter and row.
        kind: ``persistent`` or ``temporary``.
        settings: The keys it reads.
    """

    check: str
    clause: str
    source: str
    kind: str
    settings: tuple[Setting, ...]

    @property
    def text(self) -> str:
        """The clause with the check's name and settings."""
        notes = [f"check {self.check}", *(setting.text for setting in self.settings)]
        return f"{self.clause} ({'; '.join(notes)})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer(Result):
    """An answer about a task.

    Attributes:
        jeditaskid: The task.
        snapshot: The instant.
        outcome: How it ended.
        sentences: The answer, the first sentence says what happened and why.
    """

    shows = Shows(
        about="an answer about a task", next=("brokerage.what_would_help(decisions)", ".text")
    )

    jeditaskid: int
    snapshot: int
    outcome: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The answer, one sentence a line."""
        return "\n".join(self.sentences)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return asdict(self) | {"text": self.text}

    def headline(self) -> str:
        """Return what it says, in a line."""
        return self.text


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation(Answer):
    """Answer to the question why a task was, or was not, sent to a place.

    Attributes:
        place: Name of the queue or nucleus.
        outcome: ``candidate``; ``skipped``; ``task_ended`` (before any place was looked at); ``not_a_candidate`` (the
            place was not looked at for this task); ``unknown`` (there is no such place).
        check: Why it was skipped; null otherwise.
        obstacles: All that stands in the way, the reason of the skip first.
        numbers: Of a candidate: its row of the decisions' table ``weighed`` (``nuclei``).
    """

    place: str
    check: str | None = None
    obstacles: tuple[Obstacle, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)

    def frame(self) -> pl.DataFrame:
        """Return one row per reason that stands in the way: ``check, clause, source, kind``."""
        names = ("check", "clause", "source", "kind")
        rows = [[getattr(one, name) for name in names] for one in self.obstacles]
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


@dataclass(frozen=True, kw_only=True, repr=False)
class TaskExplanation(Answer):
    """Answer to the question what became of a task.

    Attributes:
        outcome: As in the table of tasks.
        funnel: What each check removed, only those that removed something; see :func:`brokerlab.brokerage.funnel`.
    """

    funnel: tuple[dict[str, Any], ...] = ()

    def frame(self) -> pl.DataFrame:
        """Return the funnel of the task."""
        return pl.DataFrame(list(self.funnel))


def others(obstacles: Sequence[Obstacle]) -> list[str]:
    """Return the lines about what else stands in the way."""
    if not obstacles:
        return ["No other check stands in the way."]
    lines = [
        f"  - {each.text}{', temporary' if each.kind == 'temporary' else ''}" for each in obstacles
    ]
    verb = "stands" if len(obstacles) == 1 else "stand"
    return [f"{counted(len(obstacles), 'other check')} {verb} in the way as well:", *lines]


def setting(config: Config, key: str, place: str, scope: dict[str, str | None]) -> Setting:
    """Return the value of a key that acts on a task; ``place``: ``app/component`` where it is looked up."""
    if not catalogue.rows_of(key):  # a key of an organisation's own, read by its own checks
        return Setting(key, None, "", is_default=False)
    app, component = place.split("/")
    result = config.found(key, app=app, component=component, vo="atlas", **scope)
    name = key
    for placeholder, text in scope.items():
        name = name.replace(f"[_<{placeholder}>]", "").replace(f"<{placeholder}>", text or "")
    exact = result.entry.key if result.entry else name
    return Setting(exact, result.value, result.row.unit, result.entry is None)


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

    def obstacles(self, waived: Waived, failed: int) -> list[Obstacle]:
        """Return all that skips a place, with the numbers compared.

        ``failed``: bits of the checks of single places that it fails; they stand before rules of their name.
        """
        decisions = self.decisions
        known = {rule.name: rule for rule in (*decisions.reasons, *decisions.marks)}
        known |= {rule.name: rule for bit, rule in enumerate(decisions.checks) if failed >> bit & 1}
        reasons = [known[name] for name in waived.checks]
        values = self.values(waived, {name for rule in reasons for name in rule.columns()})
        task = self.values(waived, {*SCOPES.values(), "at"}).row(0, named=True)
        return [self.obstacle_of(rule, values, task) for rule in reasons]

    def values(self, waived: Waived, columns: set[str]) -> pl.DataFrame:
        """Return the columns of the pair, in one row; those of the ranking first, where it has them."""
        late = [name for name in sorted(columns) if name in waived.late.columns]
        one = pl.DataFrame({"t": [waived.t], "q": [waived.q]})
        facts = self.decisions.world.in_loop(one, self.who.row.get("loop", 1))
        return looked_up(facts, one, columns - set(late)).hstack(waived.late.select(late))

    def obstacle_of(
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
