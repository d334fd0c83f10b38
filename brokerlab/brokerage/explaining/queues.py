"""Why a task was, or was not, sent to a queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.explaining import weights
from brokerlab.brokerage.explaining.answer import Explanation
from brokerlab.brokerage.explaining.case import Case, others
from brokerlab.brokerage.explaining.links import LINK, link
from brokerlab.brokerage.explaining.pair import Pair
from brokerlab.brokerage.explaining.selection import subject
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.production_jobs.recipe import Recipe
from brokerlab.brokerage.production_jobs.weights import product
from brokerlab.brokerage.production_jobs.what_if import LAST, Waived, peeled
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.view import NOT_LOOKED_AT
from brokerlab.brokerage.words import counted, number


@dataclass(frozen=True)
class _Case(Case):
    """The question about decisions of the job brokerage."""

    decisions: Decisions

    def link(self, found: Waived) -> str:
        """Return what is known of the link from the queue's storage to the nucleus."""
        pair = Pair(self.decisions.world, found.t, found.q, found.late)
        return link(self.decisions.world, self.who.snapshot, pair.row(LINK))

    @property
    def may(self) -> str:
        """The verb of a candidate."""
        return "could run at" if self.decisions.world.hint else "may go to"

    @property
    def not_sent(self) -> str:
        """The verb of a queue that was skipped."""
        return "could not run at" if self.decisions.world.hint else "was not sent to"


def explain_queue(
    decisions: Decisions, jeditaskid: int, panda_queue: str, snapshot: int | None = None
) -> Explanation:
    """Answer why a task was, or was not, sent to a queue; see :func:`brokerlab.brokerage.explain`."""
    case = _Case(panda_queue, subject(decisions.tasks, jeditaskid, snapshot), decisions)
    if not case.exists:
        return case.unknown()
    if case.who.row["outcome"] in ENDED:
        return _ended(case)
    case = case.furthest()
    task, rows = case.asked()
    check = case.decided()
    if check == NOT_LOOKED_AT:
        return _not_a_candidate(case, task, rows)
    found = peeled(decisions, task["t"], rows["q"][0])
    return _candidate(case, found) if check is None else _skipped(case, found)


ENDED = {
    "unknown_nucleus": "its nucleus is not known",
    "input_incomplete": "its input is complete nowhere",
}


def _ended(case: _Case) -> Explanation:
    outcome, row = case.who.row["outcome"], case.who.row
    detail = f": {row['detail']}" if row["detail"] else ""
    return case.answer(
        "task_ended",
        f"{case.who.text} was sent nowhere, to {case.shown} neither: {ENDED[outcome]} ({outcome}){detail}.",
        "No queue was looked at.",
        *case.who.again(),
    )


def _not_a_candidate(case: _Case, task: dict[str, Any], rows: pl.DataFrame) -> Explanation:
    said = case.not_there(rows, "production", "q_production")
    if said is not None:
        return said
    head = f"{case.who.text} was not sent to {case.shown}:"
    given = case.who.rows(case.decisions.world.tables["tasks"]).row(0, named=True)
    if given["preassigned_site"]:
        return case.not_a_candidate(
            f"{head} merging stays at {given['preassigned_site']}, where the files to merge are, and at queues that "
            "read its output storage."
        )
    if task["t_listed"]:
        return case.not_a_candidate(f"{head} the task is pre-assigned to {given['site']} (site).")
    return case.not_a_candidate(f"{head} it is not among the queues looked at for this task.")


def _skipped(case: _Case, found: Waived) -> Explanation:
    """Tell the reason, then all else that stands in the way."""
    world = case.decisions.world
    reasons = {reason.name: reason for reason in case.decisions.reasons}
    pair = Pair(world, found.t, found.q, found.late)
    obstacles = pair.obstacles([reasons[name] for name in found.checks])
    first = obstacles[0]
    sentences = [f"{case.who.text} {case.not_sent} {case.shown}: {first.text}."]
    if first.kind == "temporary":
        sentences.append("This is a temporary problem: it may be gone at the next brokerage.")
    sentences += others(obstacles[1:])
    if not world.hint:
        sentences.append(_then(found))
    return case.answer(
        "skipped", *sentences, *case.who.again(), check=first.check, obstacles=tuple(obstacles)
    )


def _then(found: Waived) -> str:
    """Say what the queue would be without the checks that skip it."""
    others = [name for name in found.checks if name != LAST]
    among = f"{number(found.place)} of {number(found.n_ranked)}" if found.place else ""
    if not others:
        tenth = weights.ranked(found.late_of_task).row(-1, named=True)
        return f"It is number {among}; {found.names[tenth['q']]} is the last taken, with {number(tenth['weight'])}."
    without = "this check" if len(others) == 1 else f"these {len(others)} checks"
    if found.place is None:
        return f"Without {without} it would be a candidate for jumbo jobs."
    taken = ", and not be taken" if LAST in found.checks else ""
    return f"Without {without} it would rank {among}, with weight {number(found.weight)}{taken}."


def _candidate(case: _Case, found: Waived) -> Explanation:
    """Tell the rank, the factors of the weight, and what ranks better."""
    head = f"{case.who.text} {case.may} {case.shown}"
    if case.decisions.world.hint:
        return case.answer("candidate", f"{head}: no check skips it.", *case.who.again())
    order = weights.ranked(found.late_of_task)
    row = found.late.row(0, named=True)
    own = weights.numbers(row)
    if row["jumbo"]:
        says = [f"{head}: it is a queue for jumbo jobs, which rank outside the best ten."]
    else:
        share = row["weight"] / total if (total := order["weight"].sum()) else 1 / order.height
        own["share"] = share
        ranks = f"it ranks {row['rank']} of {counted(order.height, 'candidate')}"
        weight = f"with weight {number(row['weight'])}"
        says = [f"{head}: {ranks} {weight} and can expect {share * 100:.0f} % of the jobs."]
    if row["bootstrap"]:
        says.append(
            f"It has no job at all: with priority {number(row['t_prio'])} it gets one job first, at weight 0, so that "
            "it starts up."
        )
    else:
        says += [_made_of(case.decisions.world.recipe), *weights.factors(row, case.link(found))]
    says += _cap(row, case.decisions.world.rules)
    says += _better(found, order, row)
    return case.answer("candidate", *says, *case.who.again(), numbers=own)


def _made_of(recipe: Recipe) -> str:
    """Introduce the factors: of an organisation's own weight they are only what it may be made of."""
    if recipe.weight is product:
        return "The weight is the product of"
    return f"The weight is that of brokerage {recipe.name}; the factors that it may read are"


def _cap(row: dict[str, Any], rules: ProductionRules) -> list[str]:
    """Return how many jobs are queued and may be, by the cap that is tested for the queue (rows 46 and 48)."""
    jobs, queued, cap = "jobs", row["queued"], row["cap"]
    if row["t_express"]:
        return []
    if rules.cap_mode == "document":
        queued = row["queued_all"]
    elif row["q_ucore"]:
        if not row["rt_known"]:
            return []
        jobs, queued, cap = "jobs of the task's resource types", row["queued_rt"], row["cap_rt"]
    return [f"{number(queued)} {jobs} are queued there, up to {number(cap)} are let in."]


def _better(found: Waived, order: pl.DataFrame, row: dict[str, Any]) -> list[str]:
    """Say which queue is ranked first, and why."""
    if row["jumbo"] or row["rank"] == 1:
        return ["No queue ranks better."] if row["rank"] == 1 else []
    best = order.row(0, named=True)
    name = found.names[best["q"]]
    if best["bootstrap"]:
        return [f"{name} ranks first, because it has no job at all."]
    times = f"{best['weight'] / row['weight']:.3g}" if row["weight"] else "many"
    by = weights.against(row, best)
    return [
        f"{name} ranks first with weight {number(best['weight'])}, {times} times as much{', ' + by if by else ''}."
    ]
