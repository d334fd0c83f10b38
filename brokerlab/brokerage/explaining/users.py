"""Why a user task was, or was not, sent to a queue, what became of it as a whole, its weight factor by factor, and the Analysis Stabilizer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.ranking import BY_CLASS, MARKS, SITE_CLASSES
from brokerlab.brokerage.analysis_jobs.settings import HIGH_PRIORITY, AnalysisRules
from brokerlab.brokerage.analysis_jobs.throttle import WAITING, throttle_rules
from brokerlab.brokerage.engine.decide import Waived
from brokerlab.brokerage.engine.rule import SETTING
from brokerlab.brokerage.explaining.question import Obstacle
from brokerlab.brokerage.explaining.queues import OnQueue, Row, running
from brokerlab.brokerage.words import counted, filled, number, worded
from brokerlab.units import GB

TASK_CLASSES = {2: "S", 1: "A", 0: "B", -1: "C"}
STABILIZER_KEYS = (
    *(
        "BASE_QUEUE_LENGTH_PER_PQ",
        "BASE_EXPECTED_WAIT_HOUR_ON_PQ",
        "STATIC_MAX_QUEUE_RUNNING_RATIO",
    ),
    *("MAX_EXPECTED_WAIT_HOUR", "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER", "BASE_QUEUE_RATIO_ON_PQ"),
)


def _basic_weights(rules: AnalysisRules) -> dict[str, str]:
    """Return the basic weights, the one that ranks first, and their columns."""
    columns = {
        "original": "orig",
        "new": "new" if rules.new_weight == "budgets" else "new_document",
    }
    return dict(sorted(columns.items(), key=lambda each: each[0] != rules.basic_weight))


def factors(row: Row, rules: AnalysisRules, user: str | None) -> list[str]:
    """Return the factors of the weight and the basic weight that is not in use.

    Source: analysis-jobs.md 7.
    """
    made_of = {"original": _original(row, rules), "new": _new(row, rules, user)}
    values = {
        name: (number(row[column]), made_of[name]) for name, column in _basic_weights(rules).items()
    }
    (used, (value, why)), (unused, (other, other_why)) = values.items()
    return [
        f"The weight is the {used} basic weight times the data factor:",
        f"  {used} basic weight {value}: {why}",
        f"  data factor {number(row['data_factor'])}: {_data(row, rules)}",
        f"  ({unused} basic weight, not in use, {other}: {other_why})",
    ]


def _original(row: Row, rules: AnalysisRules) -> str:
    whose = "of the share" if rules.counted_jobs == "share" else "of the queue"
    runs = running(row, "really_running", "starting")
    return f"({runs} + 1) / ({number(row['waiting'])} waiting + 1), {whose}"


def _new(row: Row, rules: AnalysisRules, user: str | None) -> str:
    """Say how many of the task's jobs the queue's class gets, and which part of them the queue takes."""
    by_class = row["t_gshare"] in BY_CLASS
    budgets = by_class and rules.new_weight == "budgets"
    values = dict(row) | {"who": worded(user), "all": row["q_class" if budgets else "q_all"]}
    room = filled(
        "{who} may have {rem_q_len} more jobs waiting there (max_q_len {max_q_len} - {u_queued}), {all} at all candidates",
        values,
    )
    jobs = counted(row["t_n_jobs"], "job")
    if not by_class:
        return f"{jobs} to make, for queues of every class alike; {room}"
    own, site = TASK_CLASSES[row["t_class"]], SITE_CLASSES[row["s_class"]]
    if not budgets:
        return f"{jobs} to make, a task of class {own} at a queue of class {site}; {room}"
    table = ", ".join(f"{name} {number(row[f'budget_{name}'])}" for name in SITE_CLASSES.values())
    return (
        f"of {jobs} to make for a task of class {own}, queues of class {table} get as many, and this is class {site}; "
        f"{room} of its class"
    )


def _data(row: Row, rules: AnalysisRules) -> str:
    if not rules.data_factor:
        return "the page has no such factor"
    if not row["t_has_input"]:
        return "the task has no input"
    if row["t_local"] and not row["t_union"]:
        if not row["x_data_weight"]:
            return "no dataset of the input counts there"
        return "1 for each dataset of the input on disk there, 0.001 for each on tape only"
    if row["t_total"] < GB:
        return "the task has no input of 1 GB or more"
    return f"1 + {number(row['x_avail'] // GB)} GB of the input on disk there / 10"


def other_rank(candidates: pl.DataFrame, row: Row, rules: AnalysisRules) -> str:
    """Say where the queue would rank, among the ranked rows of the task, by the basic weight that is not in use."""
    *_, (name, column) = _basic_weights(rules).items()
    own = row[column] * row["data_factor"]
    place = 1 + int((candidates[column] * candidates["data_factor"] > own).sum())
    return f"By the {name} basic weight it would rank {number(place)}, with weight {number(own)}."


def stabilizer(row: Row, user: str | None, rules: AnalysisRules) -> list[str]:
    """Return how many jobs a user may have waiting at a queue, and why, a line each.

    Source: analysis-jobs.md 5.
    """
    length, wait_h, ratio, longest_h, length_user, ratio_user = (
        row[f"{SETTING}{key}"] for key in STABILIZER_KEYS
    )
    base, rate = counted(length, "job"), f"{number(row['trr'])} jobs/h that start"
    values = dict(row) | {
        "who": worded(user),
        "larger": f"the larger of {base} and {number(wait_h)} h x {rate}",
        "percent": f"{number(100 * row['user_share'])} %",
        "runs": counted(row["running_users"], "running job"),
        "rate": rate,
        "base": base,
        "wait": longest_h,
        "base_user": counted(length_user, "job"),
        "ratio": ratio,
        "ratio_user": ratio_user,
        "least": max(length, wait_h * row["trr"]),
        "so": _so(row, worded(user), rules),
    }
    lines = (
        "The stabilizer lets {who} have {max_q_len} jobs waiting there (max_q_len); {u_queued} wait.",
        "  it acts from {least} waiting jobs of the share on ({larger}); {x_nq} wait{so}",
        "  nQ_max {nq_max}: the largest of {base}, {ratio} x {runs} and {wait} h x {rate}",
        f"  part of {{who}} {{percent}}: {_part(row, rules)}",
        "  max_q_len {max_q_len}: the largest of {base_user}, {ratio_user} x {runs} and {percent} of nQ_max",
    )
    return [filled(line, values) for line in lines]


def _so(row: Row, who: str, rules: AnalysisRules) -> str:
    if row["t_merging"] and rules.code_only_exemptions:
        return ", but merge jobs are not held back"
    if row["looked_at"]:
        return ", so it acts"
    if rules.bad_jobs_mode == "after_stabilizer" and not row["u_known"]:
        return f", but {who} has no job there, so it does not act"
    return ", so it does not act"


def _part(row: Row, rules: AnalysisRules) -> str:
    """Say what the user's part of the queue is, with names in braces."""
    if not row["x_users"]:
        return "no user has jobs of the share there"
    total = " and the row of totals" if rules.count_total_row else ""
    users = counted(row["x_users"], "user")
    return f"the larger of one of {users}{total}, and {{u_running}} of {{runs}} are of {{who}}"


STOPPED_CLOCK = (
    "Waiting like this does not count towards the time after which a pending task is exhausted."
)
RELAXED = {
    "priority": "the task's priority of {taskpriority} is {high} or more",
    "io_intensity": "the task's I/O of {iointensity} kB/s is at most IO_INTENSITY_CUTOFF_USER, {most_io} kB/s",
    "no_progress": "the task makes no progress since {since}, longer than DATA_CHECK_TIMEOUT_USER, {timeout} h",
}
"""Why the input of a task does not have to be at the queue (4.1c)."""
_SHOWN = 3


class OfUsers(OnQueue):
    """Why a user task was, or was not, sent to a queue."""

    WORK, RUNS = "analysis", "q_candidate"
    ENDED: ClassVar[dict[str, str]] = {
        "fatal": "the queue that it is pre-assigned to was skipped",
        "temporary_error": "nothing passed all checks",
    }
    decisions: AnalysisDecisions

    @cached_property
    def held(self) -> Obstacle | None:
        """The rule that holds the task back, with the numbers compared; null: none does.

        Source: analysis-jobs.md 2.
        """
        name = self.who.row["throttle"]
        if name is None:
            return None
        world = self.decisions.world
        rule = next(each for each in throttle_rules(world.rules) if each.name == name)
        whose = "_USER_" if self.task["t_group"] is None else "_GROUP_"
        keys = [key for key in rule.keys if whose in key or not key.startswith("CAP_")]
        return self.obstacle_of(rule, self.who.rows(world.tasks), self.task, keys)

    def ending(self) -> str:
        """Say in a clause why the task found no queue."""
        if self.held is not None:
            return f"it is held back, because {self.held.text}"
        return f"{self.ENDED[self.who.row['outcome']]} ({self.who.row['outcome']})"

    def ended(self) -> tuple[str, Sequence[str], Sequence[Obstacle]] | None:
        """Return which rule holds the task back, and how it waits."""
        if self.held is None:
            return None
        return self.ending(), [*self._clock(), *self.who.tried_again()], [self.held]

    def remarks(self) -> list[str]:
        """Say how the task waits, which locality loop decided, and which marks its queues have."""
        if not self.who.rows(self.decisions.world.facts.tasks).height:
            return self._clock()
        return [*self._loops(), *self._marks()]

    def besides(self, waived: Waived) -> Iterator[str]:
        """Say which loop decided, what the queue would be otherwise, and what the stabilizer lets wait."""
        yield from self._loops()
        if waived.place is not None:
            yield self.would_be(waived)
        if "user_queue" in waived.checks:
            row, rules = waived.late.row(0, named=True), self.decisions.world.rules
            yield from stabilizer(row, self.task["t_user"], rules)

    def why(self, waived: Waived, row: Row) -> Iterator[str]:
        """Say the rank, the factors of the weight, what ranks better, and what the stabilizer lets wait."""
        world, user = self.decisions.world, self.task["t_user"]
        yield f"{self.who.text} {self.may} {self.shown}: {self.numbered(waived, row)}"
        own = world.brokerage.own_weight is not None
        head, *lines = factors(row, world.rules, user)
        yield f"{self.made_of()}:" if own else head
        yield from lines
        yield other_rank(waived.ranked, row, world.rules)
        yield self._better(waived, row)
        yield from stabilizer(row, user, world.rules)
        yield from self._loops()

    def _better(self, waived: Waived, row: Row) -> str:
        if row["rank"] == 1:
            return "No queue ranks better."
        best, rules = waived.ranked.row(0, named=True), self.decisions.world.rules
        name = waived.names[best["q"]]
        if rules.used_sites_first and best["x_used"] and not row["x_used"]:
            return f"{name} ranks first, because the task has been there already."
        if best["weight"] == row["weight"]:
            return f"{name} has the same weight and ranks first by its name."
        words = {"basic": f"{rules.basic_weight} basic weight", "data_factor": "data factor"}
        return self.first(waived, best, row, words)

    def _clock(self) -> list[str]:
        return [STOPPED_CLOCK] if self.who.row["outcome"] == WAITING else []

    def _loops(self) -> list[str]:
        """Say which locality loop decided, and what the other one said of the queue, or of all queues."""
        whole = not self.name
        if not self.task["t_has_input"]:
            return ["It has no input, so queues are not asked for it."] if whole else []
        if self.who.row["loop"] == 1:
            if whole:
                return [
                    "Decided in the first locality loop, which asks for queues that hold the input."
                ]
            return ["The first locality loop decided: it asks for queues that hold the input."]
        first = self.who.rows(self.decisions.first_loop).with_columns(
            pl.col("check").cast(pl.String)
        )
        if not first.height:
            there = "at the queue" if whole else "there"
            return [f"The input does not have to be {there}: {self._relaxed()}."]
        which = "which does not ask for the input at the queue: the first one left none of "
        n = counted(first.height, *self.NOUN)
        if whole:
            counts = first["check"].drop_nulls().value_counts()
            most = counts.sort("count", "check", descending=[True, False])
            reasons = [f"{check} {number(n)}" for check, n in most.head(_SHOWN).iter_rows()]
            rest = int(most["count"][_SHOWN:].sum())
            reasons += [f"others {number(rest)}"] if rest else []
            return [f"Decided in the second locality loop, {which}{n} ({', '.join(reasons)})."]
        check = first.filter(pl.col("panda_queue") == self.name)["check"][0]
        skipped = f"{self.shown} was skipped there by {check}"
        return [f"The second locality loop decided, {which}{n}, {skipped}."]

    def _marks(self) -> list[str]:
        rows = self.who.rows(self.decisions.weighed).filter(pl.any_horizontal(MARKS))
        if not rows.height:
            return []
        counts = [f"{name} {number(n)}" for name in MARKS if (n := int(rows[name].sum()))]
        verb = "is" if rows.height == 1 else "are"
        return [
            f"{counted(rows.height, *self.NOUN)} {verb} marked as problematic: {', '.join(counts)}."
        ]

    def _relaxed(self) -> str:
        given = self.given()
        since = given["frozentime"]
        values = given | {
            "high": HIGH_PRIORITY,
            "most_io": self.task[f"{SETTING}IO_INTENSITY_CUTOFF_USER"],
            "timeout": self.task[f"{SETTING}DATA_CHECK_TIMEOUT_USER"],
            "since": f"{since:%Y-%m-%d %H:%M}" if since else None,
        }
        return filled(RELAXED.get(self.task["t_relaxed"], RELAXED["no_progress"]), values)
