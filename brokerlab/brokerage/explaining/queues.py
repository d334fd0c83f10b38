"""Why a task was, or was not, sent to a queue."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.check import Reason
from brokerlab.brokerage.explaining import weights
from brokerlab.brokerage.explaining.answer import Explanation, Obstacle
from brokerlab.brokerage.explaining.links import LINK, link
from brokerlab.brokerage.explaining.pair import Pair
from brokerlab.brokerage.explaining.selection import Subject, subject
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.production_jobs.late import late_reasons
from brokerlab.brokerage.production_jobs.recipe import Recipe
from brokerlab.brokerage.production_jobs.weights import product
from brokerlab.brokerage.production_jobs.what_if import LAST, Waived, peeled
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.words import counted, listed, number, worded

_NEAR = 3


@dataclass(frozen=True)
class _Case:
    """The question: a task of decisions, and the queue asked about."""

    decisions: Decisions
    who: Subject
    name: str

    def answer(
        self, outcome: str, *sentences: str, check: str | None = None, **more: Any
    ) -> Explanation:
        return Explanation(
            self.who.jeditaskid, self.who.snapshot, self.name, outcome, check, sentences, **more
        )

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
    who = subject(decisions.tasks, jeditaskid, snapshot)
    case = _Case(decisions, who, panda_queue)
    queues = decisions.world.facts.queues
    if panda_queue not in set(queues["panda_queue"]):
        return _unknown(case)
    if who.row["outcome"] in ENDED:
        return _ended(case)
    task = decisions.world.facts.tasks.filter(
        pl.col("jeditaskid") == jeditaskid, pl.col("snapshot") == who.snapshot
    ).row(0, named=True)
    rows = queues.filter(pl.col("panda_queue") == panda_queue)
    if queues["q_version"].n_unique() > 1:
        rows = rows.filter(pl.col("q_version") == task["t_version"])
    decided = decisions.queues.filter(
        pl.col("jeditaskid") == jeditaskid,
        pl.col("snapshot") == who.snapshot,
        pl.col("panda_queue") == panda_queue,
    )
    if not decided.height:
        return _not_a_candidate(case, task, rows)
    found = peeled(decisions, task["t"], rows["q"][0])
    if decided["check"][0] is None:
        return _candidate(case, found)
    return _skipped(case, found)


ENDED = {
    "unknown_nucleus": "its nucleus is not known",
    "input_incomplete": "its input is complete nowhere",
}


def _unknown(case: _Case) -> Explanation:
    names = case.decisions.world.facts.queues["panda_queue"].unique().to_list()
    close = difflib.get_close_matches(case.name, names, n=_NEAR)
    hint = f"did you mean {' or '.join(close)}?" if close else f"{len(names)} queues are known."
    return case.answer("unknown", f"There is no queue {case.name}; {hint}")


def _ended(case: _Case) -> Explanation:
    outcome, row = case.who.row["outcome"], case.who.row
    detail = f": {row['detail']}" if row["detail"] else ""
    return case.answer(
        "task_ended",
        f"{case.who.text} was sent nowhere, to {case.name} neither: {ENDED[outcome]} ({outcome}){detail}.",
        "No queue was looked at.",
        *case.who.again(),
    )


def _not_a_candidate(case: _Case, task: dict[str, Any], rows: pl.DataFrame) -> Explanation:
    def answer(*sentences: str) -> Explanation:
        return case.answer("not_a_candidate", *sentences)

    head = f"{case.who.text} was not sent to {case.name}:"
    if not rows.height:
        return answer(f"{head} the queue did not exist at that instant.")
    queue = rows.row(0, named=True)
    if queue["is_unified"]:
        queues = case.decisions.world.facts.queues
        children = queues.filter(
            (pl.col("parent") == case.name) & (pl.col("panda_queue") != case.name)
        )
        names = sorted(children["panda_queue"].unique())
        ask = (
            f"Its pseudo-queues are {listed(names)}: ask about one of them."
            if names
            else "It has none."
        )
        return answer(
            f"{head} it is a unified queue, jobs are brokered to its pseudo-queues.",
            ask,
            *_of_children(case, names),
        )
    if not queue["q_production"]:
        return answer(
            f"{head} it runs no production (type {worded(queue['type'])}, no grandly_unified in catchall)."
        )
    given = case.decisions.world.tables["tasks"].filter(
        pl.col("jeditaskid") == case.who.jeditaskid,
        pl.col("snapshot").fill_null(0) == case.who.snapshot,
    ).row(0, named=True)  # fmt: skip
    if given["preassigned_site"]:
        return answer(
            f"{head} merging stays at {given['preassigned_site']}, where the files to merge are, and at queues that "
            "read its output storage."
        )
    if task["t_listed"]:
        return answer(f"{head} the task is pre-assigned to {given['site']} (site).")
    return answer(f"{head} it is not among the queues looked at for this task.")


def _of_children(case: _Case, names: list[str]) -> list[str]:
    """Return what became of the pseudo-queues, a line each."""
    rows = case.decisions.queues.filter(
        pl.col("jeditaskid") == case.who.jeditaskid,
        pl.col("snapshot") == case.who.snapshot,
        pl.col("panda_queue").cast(pl.String).is_in(names),
    )
    return [
        f"  {name}: {'candidate' if check is None else f'skipped by {check}'}"
        for name, check in rows.select("panda_queue", "check").iter_rows()
    ]


def _skipped(case: _Case, found: Waived) -> Explanation:
    """Tell the reason, then all else that stands in the way."""
    world = case.decisions.world
    reasons: dict[str, Reason] = {
        reason.name: reason
        for reason in (*case.decisions.checks, *late_reasons(world.rules, world.settings))
    }
    pair = Pair(world, found.t, found.q, found.late)
    obstacles = pair.obstacles([reasons[name] for name in found.checks])
    first = obstacles[0]
    sentences = [f"{case.who.text} {case.not_sent} {case.name}: {first.text}."]
    if first.kind == "temporary":
        sentences.append("This is a temporary problem: it may be gone at the next brokerage.")
    sentences += _others(obstacles[1:])
    if not world.hint:
        sentences.append(_then(found))
    return case.answer(
        "skipped", *sentences, *case.who.again(), check=first.check, obstacles=tuple(obstacles)
    )


def _others(obstacles: list[Obstacle]) -> list[str]:
    if not obstacles:
        return ["No other check stands in the way."]
    lines = [
        f"  - {each.text}{', temporary' if each.kind == 'temporary' else ''}" for each in obstacles
    ]
    verb = "stands" if len(obstacles) == 1 else "stand"
    return [f"{counted(len(obstacles), 'other check')} {verb} in the way as well:", *lines]


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
    head = f"{case.who.text} {case.may} {case.name}"
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
