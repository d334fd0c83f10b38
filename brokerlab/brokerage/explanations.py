"""Decisions explained: why a task was, or was not, sent to a queue or given to a nucleus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.engine.decide import without_checks
from brokerlab.brokerage.engine.decisions import PLACED, TASK, TEMPORARY, PlaceDecisions
from brokerlab.brokerage.explaining.question import (
    Answer,
    Explanation,
    Question,
    TaskExplanation,
    subject,
    where_jobs_ran,
)
from brokerlab.brokerage.explaining.queues import OfJobs
from brokerlab.brokerage.explaining.users import OfUsers
from brokerlab.brokerage.funnels import funnel, what_would_help
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.production_tasks.brokerage import TaskDecisions
from brokerlab.brokerage.words import counted, filled, listed, number
from brokerlab.errors import ConfigError

ENDED = {
    "input_not_readable": "no site can send its input",
    "parent_missing": "its parent task is not known",
    "abort": "a nucleus before it has no endpoint for an output, at which the deployed code gives up",
    "no_queue_at_all": "no queue could run it",
    "no_candidates": "nothing passed all checks",
}
FACTORS = (
    "work {work}: {rw} HS06 s of work {which} are left there",
    "data {data}: {input}",
    "tape {tape}",
    "space fraction {space_fraction}: {space} of {space_total} GB",
    "space amount {space_amount} TB, at most {free_disk_cutoff_tb} TB count",
)
SPACE = "{space_free} GB free and {space_expired} GB expired"
LEFT = "{usable_gb} GB usable, less the {demand_gb} GB that work assigned asks for,"
NUMBERS = ("weight", "probability", "work", "data", "tape", "space_fraction", "space_amount")


class OfNucleus(Question):
    """Why a task was, or was not, given to a nucleus."""

    NOUN = ("nucleus", "nuclei")

    @property
    def not_sent(self) -> str:
        """The verb of a nucleus that was skipped."""
        return "was not given to"

    def ending(self) -> str:
        """Say in a clause why the task has no nucleus."""
        outcome = self.who.row["outcome"]
        return f"{ENDED.get(outcome, outcome)} ({outcome})"

    def goes_to(self, seen: PlaceDecisions) -> str:  # noqa: ARG002 - of queues
        """Say which nucleus the task has, after its name."""
        row = self.who.row
        if row["already_assigned"]:
            return f"had its nucleus already, {row['nucleus']}: nothing was checked."
        n = counted(row["n_passed"], *self.NOUN)
        return f"goes to nucleus {row['nucleus']}, drawn from {n} of {number(row['n_nuclei'])}."

    def explained(self) -> Explanation:
        """Return the answer."""
        who, again = self.who, self.who.again()
        every = who.rows(self.decisions.nuclei)
        here = every.filter(pl.col("nucleus") == self.name)
        if who.row["already_assigned"]:
            already = (
                f"{who.text} had its nucleus already, {who.row['nucleus']}: nothing was checked."
            )
            return self.answer("task_ended", already, *again)
        if not every.height:
            return self.answer(
                "task_ended", f"{who.text} was given to no nucleus: {self.ending()}.", *again
            )
        if not here.height:
            names = every["nucleus"].to_list()
            among = f"the {counted(len(names), *self.NOUN)} of {who.text.lower()}"
            hint = self.near(names, f"they are {listed(names)}.")
            return self.answer("unknown", f"{self.name} is not among {among}; {hint}", *again)
        row = here.row(0, named=True)
        return self._candidate(row) if row["check"] is None else self._skipped(row)

    def _skipped(self, row: Mapping[str, Any]) -> Explanation:
        world = self.decisions.world
        t = self.who.rows(world.tasks)["t"].item()
        version = pl.col("q_version") == self.who.snapshot
        queues = world.facts.queues.filter(version, pl.col("nucleus") == self.name)
        result = without_checks(self.decisions, t, queues["q"].item())
        return self.skipped(row["check"], self.obstacles(result, row["failed"]))

    def _candidate(self, row: Mapping[str, Any]) -> Explanation:
        who, chosen = self.who, self.who.row["nucleus"]
        chance = f"{100 * row['probability']:.3g} %"
        head = f"was given to {self.name}: it was drawn with a chance of {chance}"
        if self.name != chosen:
            head = (
                f"could have gone to {self.name} with a chance of {chance}, but {chosen} was drawn"
            )
        n = counted(who.row["n_passed"], *self.NOUN)
        rules = self.decisions.world.rules
        counts_all = rules.work_of_weight == "all"
        which = "of all priorities" if counts_all else "at this priority and above"
        values = {
            **row,
            "which": which,
            "space": filled(LEFT if rules.weight_after_demand else SPACE, row),
            "input": "the task has no input that counts",
        }
        if row["tot_size"]:
            values["input"] = filled("{ava_size_any} of {tot_size} B of the input are there", row)
        return self.answer(
            "candidate",
            f"{who.text} {head} among {n} (weight {number(row['weight'])}).",
            self.made_of(),
            *(f"  {filled(factor, values)}" for factor in FACTORS),
            *who.again(),
            numbers={name: row[name] for name in NUMBERS},
        )


__all__ = ["Explanation", "TaskExplanation", "explain", "explain_task"]
A = TypeVar("A", bound=Answer)
KINDS: dict[type, type[Question]] = {
    Decisions: OfJobs,
    AnalysisDecisions: OfUsers,
    TaskDecisions: OfNucleus,
}
"""Decisions, to what is particular to questions about them."""


def explain(
    decisions: PlaceDecisions,
    *,
    jeditaskid: int,
    panda_queue: str | None = None,
    nucleus: str | None = None,
    snapshot: int | None = None,
    ran: pl.DataFrame | None = None,
) -> Explanation:
    """Answer why a task was, or was not, sent to a queue (given to a nucleus), with the numbers compared.

    What else stands in the way is told as well, and what the queue would be without it: weights, caps and ranks are
    computed again for that one task. Of a candidate: rank, weight, its factors and what ranks better. Jobs for a unified queue are
    brokered to its pseudo-queues: that of them which came furthest answers for it.

    Args:
        decisions: Of the job brokerage or of the analysis brokerage (``panda_queue``), or of the task brokerage
            (``nucleus``).
        jeditaskid: The task.
        panda_queue: Name of a queue.
        nucleus: Name of a nucleus.
        snapshot: The instant; null = the last one of the task.
        ran: Jobs that really started: ``jeditaskid, computingsite, made, n_jobs``
            (:func:`.studies.period.jobs_that_ran`); of a queue the answer then ends with where the task's jobs ran.

    Returns:
        The answer; ``str()`` of it is the text.

    Raises:
        ConfigError: No place given, or of the wrong kind.
        DataError: There is no such task. (A queue that does not exist is an answer, with the nearest names.)
    """
    wanted = "nucleus" if isinstance(decisions, TaskDecisions) else "panda_queue"
    given = {"panda_queue": panda_queue, "nucleus": nucleus}
    place = given.pop(wanted)
    other, extra = given.popitem()
    if place is None or extra is not None:
        raise ConfigError(
            f"explain: these are decisions on a {wanted}: give {wanted}=..., and no {other}"
        )
    asked = _question(decisions, jeditaskid, snapshot, place)
    answer = asked.explained()
    if answer.outcome == "unknown":
        return answer
    return _with_jobs(_with_missing(answer, asked), asked, ran)


def explain_task(
    decisions: PlaceDecisions,
    *,
    jeditaskid: int,
    snapshot: int | None = None,
    ran: pl.DataFrame | None = None,
) -> TaskExplanation:
    """Answer what became of a task: its outcome, what each check removed, and which single checks stand in the way.

    Args:
        decisions: Of any brokerage.
        jeditaskid: The task.
        snapshot: The instant; null = the last one of the task.
        ran: See :func:`explain`; not of the task brokerage.

    Returns:
        The answer; ``str()`` of it is the text.

    Raises:
        DataError: There is no such task.
    """
    asked = _question(decisions, jeditaskid, snapshot)
    return _with_jobs(_with_missing(what_became(asked), asked), asked, ran)


def _question(
    decisions: PlaceDecisions, jeditaskid: int, snapshot: int | None, place: str = ""
) -> Question:
    return KINDS[type(decisions)](decisions, subject(decisions.tasks, jeditaskid, snapshot), place)


def _with_missing(answer: A, asked: Question) -> A:
    if not asked.decisions.world.unasked:
        return answer
    tables = listed(sorted(asked.decisions.world.unasked))
    unknown = f"Nothing is known of {tables}: checks that need these tables removed nothing."
    return replace(answer, sentences=(*answer.sentences, unknown))


def _with_jobs(answer: A, asked: Question, ran: pl.DataFrame | None) -> A:
    if ran is None or isinstance(asked, OfNucleus):
        return answer
    jobs = where_jobs_ran(asked.who, asked.decisions.world.tables["tasks"], ran)
    return replace(answer, sentences=(*answer.sentences, jobs))


_HINTS = 3


def what_became(asked: Question) -> TaskExplanation:
    """Answer what became of a task; see :func:`brokerlab.brokerage.explain_task`."""
    who, outcome = asked.who, asked.who.row["outcome"]
    seen = asked.decisions.of_tasks(pl.DataFrame({name: [who.row[name]] for name in TASK}))
    table = funnel(seen).filter(pl.col("n_pairs") > 0)
    says = [_head(asked, seen), *asked.remarks(), *_removed(asked, table, seen)]
    if outcome not in PLACED and seen.pairs.height:
        says += _hints(asked)
    return TaskExplanation(
        jeditaskid=who.jeditaskid,
        snapshot=who.snapshot,
        outcome=outcome,
        sentences=(*says, *who.again()),
        funnel=tuple(table.to_dicts()),
    )


def _head(asked: Question, seen: PlaceDecisions) -> str:
    who, stage = asked.who, asked.who.row["stage"]
    if who.row["outcome"] in PLACED:
        return f"{who.text} {asked.goes_to(seen)}"
    last = f"; the last were removed by {stage}" if stage else ""
    if stage == TEMPORARY:
        last = "; what was left had a temporary problem"
    return " ".join([f"{who.text} finds no place: {asked.ending()}{last}.", *who.tried_again()])


def _removed(asked: Question, table: pl.DataFrame, seen: PlaceDecisions) -> list[str]:
    looked_at, left = seen.pairs.height, seen.pairs["check"].null_count()
    if not looked_at:
        return [f"No {asked.NOUN[0]} was looked at."]
    of = counted(looked_at, *asked.NOUN)
    if not table.height:
        return [f"No check removed any of {of}."]
    lines = [
        f"  {check} removed {number(n)}{' (temporary)' if kind == 'temporary' else ''}, {number(rest)} left"
        for check, kind, n, rest in table.select("check", "kind", "n_pairs", "n_left").iter_rows()
    ]
    return [f"Of {of}, {number(left)} {'is' if left == 1 else 'are'} left:", *lines]


def _hints(asked: Question) -> list[str]:
    who = asked.who
    table = what_would_help(asked.decisions, jeditaskid=who.jeditaskid, snapshot=who.snapshot)
    alone = table.filter(pl.col("n_gained") > 0)
    if not alone.height:
        return ["No single check stands in the way: wherever it might go, at least two do."]
    lines = [
        f"  {check}: {counted(n, *asked.NOUN)} more{f' (it reads {change})' if change else ''}"
        for check, n, change in alone.head(_HINTS).select("check", "n_gained", "change").iter_rows()
    ]
    return ["Without one of these checks it would find a place:", *lines]
