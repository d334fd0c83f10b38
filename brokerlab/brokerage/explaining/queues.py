"""Why a task was, or was not, sent to a queue, and the weight of a queue told factor by factor, with the counts that made it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import polars as pl

from brokerlab.brokerage.engine.decide import Waived, without_checks
from brokerlab.brokerage.engine.decisions import TASK, PlaceDecisions, furthest
from brokerlab.brokerage.engine.world import World
from brokerlab.brokerage.explaining.question import Explanation, Obstacle, Question
from brokerlab.brokerage.network_weight import at_links
from brokerlab.brokerage.production_jobs.ranking import MOST_WORKERS, QUEUE_OFFSET, Decisions
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.words import counted, filled, listed, number, worded
from brokerlab.units import MB

FACTORS = {
    "work_factor": "work",
    "data_factor": "data",
    "t1_factor": "nucleus",
    "network_factor": "network",
    "preference_factor": "hardware preference",
}
"""Column of the ranking to the word for it."""
LINK = ("t_nucleus", "t_nucleus_id", "t_express", "p_storage", "p_storage_id")
"""Columns of a pair that say which link its outputs take."""
_WINDOWS = {"1h": "the last hour", "1d": "the last day", "1w": "the last week"}

Row = Mapping[str, Any]


def factors(row: Row, link: str, rules: ProductionRules) -> list[str]:
    """Return one line per factor of the rule set; ``link``: what is known of the link to the nucleus."""
    silent = "the network weight does not act on this task"
    why = {"work_factor": f": {_work(row)}", "data_factor": f": {_data(row)}"}
    if rules.nucleus_preferred:
        near, far = (
            "at the nucleus, or shares its storage",
            "neither at the nucleus nor shares its storage",
        )
        why["t1_factor"] = f": {near if row['x_near'] else far}"
    why["network_factor"] = f": {link if row['t_network'] else silent}"
    if rules.hardware_preferred:
        why["preference_factor"] = ""
    return [f"  {FACTORS[name]} {number(row[name])}{text}" for name, text in why.items()]


def _work(row: Row) -> str:
    counts = "{x_activated} activated, {x_starting} starting, {defined} defined"
    if not row["local"]:
        counts += ", {x_assigned} assigned"
    text = f"({running(row, 'x_running')} + 1) / ({filled(counts, row)}, + {QUEUE_OFFSET})"
    if row["local"]:
        return text
    many = "{many_assigned} ({x_assigned} assigned against {x_activated} activated)"
    return f"{text} / {filled(many, row)}"


def running(row: Row, really: str, starting: str = "x_starting") -> str:
    """Return the running jobs that count, and why they are more than ``really`` run."""
    text = counted(row["running"], "running job")
    if row["running"] == row[really]:
        return text
    why = []
    if row["x_numslots"] is not None:
        why.append(counted(row["x_numslots"], "slot") + " set")
    if row["s_workers"]:
        workers = counted(row["s_workers"], "batch worker")
        why.append(f"{workers}, at most {MOST_WORKERS} of which count")
    if row[starting]:
        why.append(f"{number(row[starting])} starting")
    return f"{text} ({number(row[really])} really run; {', '.join(why)})"


def _data(row: Row) -> str:
    if not row["t_total"]:
        return "the task has no input"
    total = f"{number(row['t_total'] // MB)} MB in {counted(row['t_nfiles'], 'file')}"
    if row["missing_files"] <= 0:
        return f"all {total} are there"
    missing = f"{number(row['missing_mb'])} MB in {counted(row['missing_files'], 'file')}"
    return f"{missing} of {total} are missing there"


def against(row: Row, best: Row, words: Mapping[str, str] = FACTORS) -> str:
    """Say in which factor another queue is ahead most, by the words for them."""
    ahead = {name: best[name] / row[name] for name in words if row[name] and best[name] > row[name]}
    if not ahead:
        return ""
    name = max(ahead, key=lambda each: ahead[each])
    return f", mostly by its {words[name]} ({number(best[name])} against {number(row[name])})"


def link_of(world: World, snapshot: int, pair: Row) -> str:
    """Say how fast outputs get to the nucleus; ``pair`` has :data:`LINK`."""
    if pair["t_nucleus"] is None:
        return "the task has no nucleus"
    if pair["p_storage_id"] == pair["t_nucleus_id"]:
        return "its storage is that of the nucleus"
    site = pair["p_storage"]
    if site is None:
        return "the site of its storage is not known"
    asked = pl.DataFrame(
        {
            "snapshot": [snapshot],
            "nucleus": [pair["t_nucleus"]],
            "express": [pair["t_express"]],
            "storage_site": [site],
        }
    )
    row = at_links(asked, world.base.made["links"], config=world.config, rules=world.rules).row(
        0, named=True
    )
    name = f"from {site} to {pair['t_nucleus']}"
    if not row["link_known"]:
        return f"nothing is known of the link {name}"
    speed = f"closeness {number(row['closeness'])}" if row["closeness"] is not None else "no metric"
    if row["mbps"] is not None:
        speed = f"{number(row['mbps'])} MB/s over {_WINDOWS[row['window']]}"
    weighs = f"weighs {{throughput_weight}} for its throughput ({speed}) and {{queued_weight}} for its queue"
    return f"the link {name} {filled(weighs, row)} ({number(row['n_queued'])} files)"


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

    parent: str = ""

    @abstractmethod
    def ended(self) -> tuple[str, Sequence[str], Sequence[Obstacle]] | None:
        """Return why the task ended before any queue was looked at, remarks, and the rule; null: it did not."""

    @abstractmethod
    def besides(self, waived: Waived) -> Iterator[str]:
        """Say what else there is to a queue that was skipped."""

    @abstractmethod
    def why(self, waived: Waived, row: Row) -> Iterator[str]:
        """Say why a queue is a candidate; ``row`` is its own in the steps."""

    def elsewhere(self) -> str:
        """Say why queues of the kind were not looked at for this task."""
        return "it is not among the queues looked at for this task."

    @property
    def may(self) -> str:
        """The verb of a candidate."""
        return "could run at" if self.decisions.world.hint else "may go to"

    @property
    def not_sent(self) -> str:
        """The verb of a queue that was skipped."""
        return "could not run at" if self.decisions.world.hint else "was not sent to"

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

    def given(self) -> dict[str, Any]:
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
        result = without_checks(asked.decisions, asked.task["t"], asked.here["q"][0])
        check, failed = rows["check"][0], rows["failed"][0]
        if check is not None:
            return asked.skipped(check, asked.obstacles(result, failed), asked.besides(result))
        return asked.candidate(result)

    def candidate(self, waived: Waived) -> Explanation:
        """Return the answer about a candidate."""
        again = self.who.again()
        if self.decisions.world.hint:
            head = f"{self.who.text} {self.may} {self.shown}: no check skips it."
            return self.answer("candidate", head, *again)
        row = waived.late.row(0, named=True)
        weighed = self.who.rows(self.decisions.weighed)
        weighed = weighed.filter(pl.col("panda_queue").cast(pl.String) == self.name)
        numbers = weighed.drop(*TASK, "panda_queue", "check").row(0, named=True)
        return self.answer("candidate", *self.why(waived, row), *again, numbers=numbers)

    def goes_to(self, seen: PlaceDecisions) -> str:
        """Say how many queues the task may go to, and which are the best, after its name."""
        names, row = [str(name) for name in seen.shares["panda_queue"]], self.who.row
        best = f", the best are {listed(names, most=3)}" if len(names) > 1 else ""
        if len(names) == 1:
            best = f": {names[0]}"
        n = counted(row["n_candidates"], *self.NOUN)
        return f"may go to {n} of {number(row['n_queues'])}{best}."

    def numbered(self, waived: Waived, row: Row) -> str:
        """Say where a candidate ranks and what share of the jobs it can expect."""
        order = waived.ranked
        total = order["weight"].sum()
        share = row["weight"] / total if total else 1 / order.height
        n = counted(order.height, "candidate")
        return (
            f"it ranks {row['rank']} of {n} with weight {number(row['weight'])} and can expect {share * 100:.0f} % of "
            "the jobs."
        )

    def first(self, waived: Waived, best: Row, row: Row, words: dict[str, str]) -> str:
        """Say which queue is ranked before a candidate that is not the first, and in which factor of the weight it is ahead most."""
        ratio = best["weight"] / row["weight"] if row["weight"] else None
        times = "many" if ratio is None else number(float(f"{ratio:.3g}"))
        return (
            f"{waived.names[best['q']]} ranks first with weight {number(best['weight'])}, {times} times as much"
            f"{against(row, best, words)}."
        )

    def would_be(self, waived: Waived) -> str:
        """Say what the queue would be without the checks that skip it."""
        too_many = self.decisions.world.brokerage.last
        left = [name for name in waived.checks if name != too_many]
        n_ranked = waived.late_of_task["place"].count()
        among = f"{waived.place:,} of {number(n_ranked)}" if waived.place else ""
        if not left:
            taken = waived.ranked.row(-1, named=True)
            last = f"{waived.names[taken['q']]} is the last taken, with {number(taken['weight'])}"
            return f"It is number {among}; {last}."
        without = "this check" if len(left) == 1 else f"these {len(left)} checks"
        if waived.place is None:
            return f"Without {without} it would be a candidate for jumbo jobs."
        taken_not = ", and not be taken" if too_many in waived.checks else ""
        weight = number(waived.late["weight"].item())
        return f"Without {without} it would rank {among}, with weight {weight}{taken_not}."

    def _furthest(self) -> Self:
        """Return the question about that of the queue's pseudo-queues which came furthest; as it is where none was looked at."""
        rows = furthest(self.decisions, self.who.rows(self.decisions.queues))
        name = str(rows.filter(queue=self.name)["place"].first() or self.name)
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
        """Return ``panda_queue, check, failed`` of those of some queues that were looked at for the task."""
        rows = self.who.rows(self.decisions.queues).select(
            pl.col("panda_queue", "check").cast(pl.String), "failed"
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

    WORK, RUNS = "production", "q_production"
    ENDED: ClassVar[dict[str, str]] = {
        "unknown_nucleus": "its nucleus is not known",
        "input_incomplete": "its input is complete nowhere",
        "no_candidates": "nothing passed all checks",
    }
    decisions: Decisions

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

    def besides(self, waived: Waived) -> Iterator[str]:
        """Say what the queue would be otherwise."""
        if not self.decisions.world.hint:
            yield self.would_be(waived)

    def why(self, waived: Waived, row: Row) -> Iterator[str]:
        """Say the rank, the factors of the weight, and what ranks better."""
        world = self.decisions.world
        ranks = "it is a queue for jumbo jobs, which rank outside the best ten."
        ranks = ranks if row["jumbo"] else self.numbered(waived, row)
        yield f"{self.who.text} {self.may} {self.shown}: {ranks}"
        if row["bootstrap"]:
            yield (
                f"It has no job at all: with priority {number(row['t_prio'])} it gets one job first, at weight 0, so "
                "that it starts up."
            )
        else:
            ends = self.values(waived, {*LINK}).row(0, named=True)
            link = link_of(world, self.who.snapshot, ends)
            yield self.made_of()
            yield from factors(row, link, world.rules)
        yield from self._cap(row)
        yield from self._better(waived, row)

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

    def _better(self, waived: Waived, row: Row) -> list[str]:
        if row["rank"] == 1:
            return ["No queue ranks better."]
        if row["jumbo"]:
            return []
        best = waived.ranked.row(0, named=True)
        if best["bootstrap"]:
            return [f"{waived.names[best['q']]} ranks first, because it has no job at all."]
        return [self.first(waived, best, row, FACTORS)]
