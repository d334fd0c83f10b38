"""Why a user task was, or was not, sent to a queue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.facts import in_loop
from brokerlab.brokerage.analysis_jobs.keys import place_of
from brokerlab.brokerage.analysis_jobs.ranking import MARKS
from brokerlab.brokerage.analysis_jobs.what_if import LAST, WaivedInLoop, peeled
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.explaining import analysis_weights as weights
from brokerlab.brokerage.explaining.answer import Explanation
from brokerlab.brokerage.explaining.case import Case, others
from brokerlab.brokerage.explaining.held import clock, held_back, until
from brokerlab.brokerage.explaining.pair import Pair
from brokerlab.brokerage.explaining.selection import subject
from brokerlab.brokerage.explaining.stabilizer import stabilizer
from brokerlab.brokerage.explaining.user_tasks import relaxation
from brokerlab.brokerage.explaining.weights import ranked
from brokerlab.brokerage.view import NOT_LOOKED_AT
from brokerlab.brokerage.words import counted, number


@dataclass(frozen=True)
class _Case(Case):
    """The question about decisions of the analysis brokerage."""

    decisions: AnalysisDecisions


def explain_user_queue(
    decisions: AnalysisDecisions, jeditaskid: int, panda_queue: str, snapshot: int | None = None
) -> Explanation:
    """Answer why a user task was, or was not, sent to a queue; see :func:`brokerlab.brokerage.explain`."""
    case = _Case(panda_queue, subject(decisions.tasks, jeditaskid, snapshot), decisions)
    if not case.exists:
        return case.unknown()
    held = held_back(decisions, case.who)
    if held is not None:
        return case.answer(
            "task_ended",
            f"{case.who.text} was sent nowhere, to {case.shown} neither: it is held back, because {held.text}.",
            "No queue was looked at.",
            *clock(case.who.row["outcome"]),
            *until(case.who.row["pending_until"]),
            *case.who.again(),
            obstacles=(held,),
        )
    case = case.furthest()
    task, rows = case.asked()
    check = case.decided()
    if check == NOT_LOOKED_AT:
        head = f"{case.who.text} was not sent to {case.shown}:"
        said = case.not_there(rows, "analysis", "q_candidate")
        return said or case.not_a_candidate(
            f"{head} it is not among the queues looked at for this task."
        )
    found = peeled(decisions, task["t"], rows["q"][0])
    return _candidate(case, found, task) if check is None else _skipped(case, found, task, check)


def _skipped(
    case: _Case, found: WaivedInLoop, task: dict[str, Any], check: str | None
) -> Explanation:
    """Tell the reason, then all else that stands in the way."""
    world = case.decisions.world
    pair = Pair(replace(world, facts=_in_loop(case, task)), found.t, found.q, found.late, place_of)
    obstacles = pair.obstacles(_reasons(case, found))
    first = obstacles[0]
    says = [f"{case.who.text} was not sent to {case.shown}: {first.text}."]
    if first.check in MARKS:
        says.append("That marks the queue as problematic, and the final list drops it (badsite).")
    if first.kind == "temporary":
        says.append("This is a temporary problem: it may be gone at the next brokerage.")
    says += [*others(obstacles[1:]), *_loops(case, task), *_then(found)]
    if "user_queue" in found.checks:
        says += stabilizer(world, found.late.row(0, named=True), task["t_user"])
    return case.answer("skipped", *says, *case.who.again(), check=check, obstacles=tuple(obstacles))


def _reasons(case: _Case, found: WaivedInLoop) -> list[Rule]:
    """Return the reasons that skip the queue, checks of single queues before rules of their name."""
    decisions = case.decisions
    rows = case.who.rows(decisions.queues).filter(pl.col("panda_queue") == case.name)
    failed = rows["failed"][0]
    known = {reason.name: reason for reason in (*decisions.reasons, *decisions.marks)}
    known |= {check.name: check for bit, check in enumerate(decisions.checks) if failed >> bit & 1}
    return [known[name] for name in found.checks]


def _in_loop(case: _Case, task: dict[str, Any]) -> Any:
    """Return the facts as the loop that decided saw them."""
    one = pl.DataFrame({"t": [task["t"]]})
    return in_loop(case.decisions.world.facts, one, local=case.who.row["loop"] == 1)


def _then(found: WaivedInLoop) -> list[str]:
    """Say what the queue would be without the checks that skip it."""
    left = [name for name in found.checks if name != LAST]
    if found.place is None:
        return []
    among = f"{number(found.place)} of {number(found.n_ranked)}"
    if not left:
        taken = ranked(found.late_of_task).row(-1, named=True)
        return [
            f"It is number {among}; {found.names[taken['q']]} is the last taken, with {number(taken['weight'])}."
        ]
    without = "this check" if len(left) == 1 else f"these {len(left)} checks"
    taken_not = ", and not be taken" if LAST in found.checks else ""
    return [
        f"Without {without} it would rank {among}, with weight {number(found.weight)}{taken_not}."
    ]


def _candidate(case: _Case, found: WaivedInLoop, task: dict[str, Any]) -> Explanation:
    """Tell the rank, the factors of the weight, the stabilizer, and what ranks better."""
    world = case.decisions.world
    order = ranked(found.late_of_task)
    row = found.late.row(0, named=True) | {"loop": found.loop}
    total = order["weight"].sum()
    share = row["weight"] / total if total else 1 / order.height
    says = [
        (
            f"{case.who.text} may go to {case.shown}: it ranks {row['rank']} of {counted(order.height, 'candidate')} with "
            f"weight {number(row['weight'])} and can expect {share * 100:.0f} % of the jobs."
        ),
        *weights.factors(row, world.rules, task["t_user"]),
        weights.other_rank(order, row, world.rules),
        *_better(found, order, row, case),
        *stabilizer(world, row, task["t_user"]),
        *_loops(case, task),
    ]
    own = weights.numbers(row, world.rules) | {"share": share}
    return case.answer("candidate", *says, *case.who.again(), numbers=own)


def _better(
    found: WaivedInLoop, order: pl.DataFrame, row: dict[str, Any], case: _Case
) -> list[str]:
    """Say which queue is ranked first, and why."""
    if row["rank"] == 1:
        return ["No queue ranks better."]
    best = order.row(0, named=True)
    rules = case.decisions.world.rules
    if rules.used_sites_first and best["x_used"] and not row["x_used"]:
        return [f"{found.names[best['q']]} ranks first, because the task has been there already."]
    if best["weight"] == row["weight"]:
        return [f"{found.names[best['q']]} has the same weight and ranks first by its name."]
    times = f"{best['weight'] / row['weight']:.3g}" if row["weight"] else "many"
    by = weights.against(row, best, rules)
    return [
        (
            f"{found.names[best['q']]} ranks first with weight {number(best['weight'])}, {times} times as much"
            f"{', ' + by if by else ''}."
        )
    ]


def _loops(case: _Case, task: dict[str, Any]) -> list[str]:
    """Say which locality loop decided, and what the other one said of the queue."""
    if not task["t_has_input"]:
        return []
    if case.who.row["loop"] == 1:
        return ["The first locality loop decided: it asks for queues that hold the input."]
    first = case.who.rows(case.decisions.first_loop)
    if not first.height:
        return [
            f"The input does not have to be there: {relaxation(case.decisions, case.who, task)}."
        ]
    here = first.filter(pl.col("panda_queue") == case.name)["check"]
    return [
        (
            "The second locality loop decided, which does not ask for the input at the queue: the first one left none of "
            f"{counted(first.height, 'queue')}, {case.shown} was skipped there by {here[0]}."
        )
    ]
