"""Which queues count as fast, and how much does that hang on the percentile ranks and the hour limits?

The brokerage of user analysis rates queues as hi, mid or lo by how long jobs wait there, and tasks as S, A, B or C by what
their users occupy. All is rated anew at every instant of a period; nothing is proposed. What shares run against their
targets, which the classes of tasks hang on, is written and not shown.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field, ValidationInfo, field_validator

from brokerlab.archive.store import open_archive
from brokerlab.charts import classes as charts
from brokerlab.errors import InsufficientDataError
from brokerlab.lifecycle import class_history as history
from brokerlab.lifecycle.class_history.period import RATES_QUEUES
from brokerlab.lifecycle.classification import ClassRules
from brokerlab.lifecycle.classification.wait_stats import USER
from brokerlab.report import kit
from brokerlab.report.kit import Block, Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.report.needs import Needs, Rows
from brokerlab.report.switches import switch_table
from brokerlab.times import FINE, grain
from brokerlab.words import days_of, listed

TRIED = {
    "low_ranks": "percentile_low",
    "high_ranks": "percentile_high",
    "hi_hours": "hi_limit_hours",
    "lo_hours": "lo_limit_hours",
    "long_jobs": "short_queue_jobs",
}
"""Parameter with values to try: number of the rules."""
OTHER = {"document": "production", "production": "document"}
SHOWN = ("classes", "queues", "spells", "limits", "values", "waits", "task_classes")
"""Frames of the study that blocks of the page hold."""
RATED_BY = "merge jobs of User Analysis or probes"
DAYS = "95 % intervals from resampling days"


class Params(kit.Params):
    """What may be asked."""

    report: ClassVar[str] = "site-classes"
    question: ClassVar[str] = (
        "Which queues count as fast, and how much does that hang on the percentile ranks and the hour limits?"
    )

    needs: ClassVar[Needs] = Needs(
        tables=("jobs",),
        derived=("queues",),
        rows=[
            Rows("analysis jobs", (pl.col("prodsourcelabel") == USER).sum()),
            # as the rules of the document count them; whether their waits differ, and are near enough, is known only from the
            # period and the status log
            Rows(
                f"finished {RATED_BY} at one queue",
                pl.col("computingsite")
                .filter(
                    RATES_QUEUES,
                    pl.col("prodsourcelabel") == USER,
                    pl.col("jobstatus") == "finished",
                )
                .drop_nulls()
                .value_counts()  # `unique_counts` counts what is filtered out, too, where a query is streamed
                .struct.field("count")
                .max(),
                least=2,
            ),
        ],
        without={
            "tasks": "No tasks are known: classes of tasks are left out.",
            "gdpconfig": "No settings are recorded: the catalogue's defaults count as current.",
        },
    )

    start: kit.Instant = Field(
        None,
        description="first instant, empty: 4 days after the first merge job or probe [ISO 8601, UTC]",
    )
    end: kit.Instant = Field(
        None,
        description="last instant, empty: when the last merge job or probe was made [ISO 8601, UTC]",
    )
    every: kit.Duration = Field("1h", description="step of the instants [duration]")
    low_ranks: list[float] = Field(
        [0.1, 0.2, 0.25, 0.33, 0.4, 0.5], description="ranks of the lower percentile to try [1]"
    )
    high_ranks: list[float] = Field(
        [0.5, 0.6, 0.67, 0.75, 0.8, 0.9], description="ranks of the upper percentile to try [1]"
    )
    hi_hours: list[float] = Field([0, 0.5, 1, 2, 4, 8], description="least limits of hi to try [h]")
    lo_hours: list[float] = Field([0, 1, 3, 6, 12, 24], description="least limits of lo to try [h]")
    long_jobs: list[float] = Field(
        [0, 1, 2, 3, 5, 10], description="long-queued jobs from which a queue is not hi [jobs]"
    )
    queues_shown: int = Field(16, ge=1, description="queues in the chart of classes over time [1]")
    n_boot: int = Field(1000, ge=20, description="bootstrap replicates over days [1]")

    @field_validator(*TRIED)
    @classmethod
    def _allowed(cls, values: list[float], info: ValidationInfo) -> list[float]:
        switch = ClassRules.SWITCHES[TRIED[str(info.field_name)]]
        problems = [problem for value in values for problem in switch.problem("value", value)]
        if problems:
            raise ValueError("; ".join(problems))
        return values


class Study(NamedTuple):
    """Ratings, and frames of `brokerlab.lifecycle.class_history` by name."""

    ratings: history.ratings.QueueRatings
    compared: history.alternatives.RuleSetComparison
    tasks: history.tasks.TaskRatings | None
    frames: dict[str, pl.DataFrame]

    @property
    def other(self) -> str:
        """Name of the rule set that is compared with."""
        return self.compared.there.rules.rules

    def row(self, name: str, **where: str) -> dict[str, Any]:
        """Return the one row of a frame, or the one that is asked for."""
        return self.frames[name].filter(**where).row(0, named=True)


@kit.answers
def load(p: Params) -> history.period.Period:
    """Read what the classes of the period are made from."""
    archive = p.needs.opened(open_archive(p.archive))
    rules = ClassRules(p.rules)
    return history.period.read_period(archive, start=p.start, end=p.end, every=p.every, rules=rules)


@kit.answers
def study(period: history.period.Period, p: Params) -> Study:
    """Rate queues and tasks, and ask what their classes hang on."""
    ratings = history.ratings.rate_queues(period)
    if not ratings.n_rated:
        why = history.ratings.missing_classes(ratings.cells)["reason"][0].replace("_", " ")
        raise InsufficientDataError(
            f"no queue has a class in this period; most often {why}; a queue is rated by two {RATED_BY} "
            f"of unequal wait within four days, and the archive has {period.n_sampled} such jobs at all queues"
        )
    dice: dict[str, Any] = {"n_boot": p.n_boot, "seed": p.seed}
    step = grain(period.window, FINE, most=130)
    marked = history.ratings.mark_changes(ratings.cells)
    jobs = history.waits.jobs_at_classes(ratings)
    tried = {key: getattr(p, parameter) for parameter, key in TRIED.items()}
    compared = history.alternatives.compare_rule_sets(ratings, ClassRules(OTHER[p.rules]), **dice)
    busiest = history.ratings.busiest_queues(marked, p.queues_shown)
    frames = {
        "rated": ratings.cells,
        "percentiles": ratings.found.percentiles,
        "classes": history.ratings.class_shares(marked, **dice),
        "changes": history.ratings.stability(marked, period.step_days, **dice),
        "queues": history.waits.describe_queues(marked, period.step_days, **dice),
        "spells": history.ratings.class_spells(ratings.cells, busiest),
        "slots_over_time": history.ratings.slots_over_time(ratings.cells, step),
        "missing": history.ratings.missing_classes(ratings.cells),
        "limits": history.alternatives.binding_limits(ratings, **dice),
        "values": history.alternatives.compare_values(ratings, tried, **dice),
        "waits": history.waits.waits_by_class(jobs, **dice),
        "still_waiting": history.waits.still_waiting(jobs, **dice),
        "weights": history.waits.limits_by_weight(ratings, jobs, **dice),
        "rule_totals": compared.totals,
        "rule_matrix": compared.matrix,
    }
    tasks, there = history.tasks.rate_tasks(ratings), history.tasks.rate_tasks(compared.there)
    if tasks and there:
        frames |= {
            "rated_tasks": tasks.cells,
            "task_classes": history.tasks.task_classes_by(tasks, "gshare", **dice),
            "task_changes": history.tasks.changed_tasks(tasks, there, **dice),
            "tasks_over_time": history.tasks.tasks_over_time(tasks, period.instants, step),
            "users": history.tasks.slots_of_users(tasks, **dice),
        }
    if period.share_usage is not None:
        frames["shares"] = history.tasks.shares_against_targets(period.share_usage, **dice)
        frames["shares_over_time"] = history.tasks.shares_over_time(period.share_usage, step)
    return Study(ratings, compared, tasks, frames)


def page(period: history.period.Period, s: Study) -> Page:
    """Lay out what the classes of the period say."""
    changes, unclassed = s.row("changes"), s.row("classes", class_name="none")
    near = (
        history.alternatives.next_to_current(s.frames["values"])
        .sort("differs", descending=True)
        .to_dicts()
    )
    counts = history.ratings.count_usual(s.frames["queues"])
    values: dict[str, Any] = {
        "n_instants": period.instants.height,
        "n_cells": s.ratings.cells.height,
        "n_rated": s.ratings.n_rated,
        "n_sampled": period.n_sampled,
        "n_jobs": period.jobs.height,
        "thresholds": s.tasks.thresholds if s.tasks else None,
    }
    size = "; {n_queues:#queue} at {n_instants:#instant}, every {every}"
    window = days_of(*period.window) + say(size, values | counts, every=period.every)
    headline = "{usually_hi} of {n_queues:#queue} are usually hi; a queue changes class {per_day} times a day."
    if changes["per_day"] is None:  # no change can be seen at one instant
        headline = "{usually_hi} of {n_queues:#queue} are hi at the one instant."
    return Page(
        verdict=Verdict(kind="finding", sentence=say(headline, changes | counts)),
        numbers=_numbers(changes, near, unclassed),
        chart=_classes_over_time(s),
        sections={
            "Class by class, queue by queue": _queues(s, counts),
            "What the percentiles and the hours do": _limits(s, near),
            "What a class says about the next jobs": [_waits(s)],
            f"The {s.other} rules": [_rules(s)],
            "Classes of tasks": [_tasks(s)],
        },
        caveats=_caveats(period, s),
        archive=period.archive,
        config=period.config,
        rules=s.ratings.rules,
        window=window,
        also={name: frame for name, frame in s.frames.items() if name not in SHOWN},
        values=values | counts,
    )


def _numbers(
    changes: dict[str, Any], near: list[dict[str, Any]], unclassed: dict[str, Any]
) -> list[Number]:
    """Return how often classes change, what moves them most, and how many cells have none."""
    numbers = []
    if changes["per_day"] is not None:
        numbers.append(Number.of(changes, "per_day", label="Class changes per queue and day"))
    if near and near[0]["differs"]:
        label = f"Get another class with {near[0]['what']}"
        numbers.append(_effect(near[0], "differs", label))
    return [*numbers, _effect(unclassed, "cells", "Without class, taken for mid")]


def _effect(row: dict[str, Any], name: str, label: str) -> Number:
    return Number.of(row, name, label=label, unit="%", note="of all queues and instants")


def _classes_over_time(s: Study) -> Chart:
    spells = s.frames["spells"]
    size = spells["instants"][0]
    shown = s.frames["queues"].join(spells, on="queue", how="semi")
    usual = "Of the {n_queues} busiest queues {usually_hi} are usually hi, {usually_mid} mid, {usually_lo} lo and {usually_none} without class"
    return Chart(
        draw=charts.classes_over_time,
        frame=spells,
        finding=say(usual, history.ratings.count_usual(shown)),
        sample=f"The commonest class of {size} instants each." if size > 1 else "",
        note="hi, mid, lo: from short to long waits; none: no class for want of data.",
    )


def _queues(s: Study, counts: dict[str, Any]) -> list[Block | None]:
    changes = s.row("changes")
    jump = "{jump:%} of the changes of class jump between hi and lo"
    if changes["jump"] is None:
        jump = "No queue is seen to change class"
    usual = "Usually hi: {usually_hi:#queue}, mid {usually_mid}, lo {usually_lo}, without class {usually_none}; {changing} change too often"
    return [
        Table(
            name="classes",
            frame=s.frames["classes"],
            caption=say(jump, changes),
            columns={
                "class_name": "Class",
                "cells": "Queues and instants [%]",
                "over_queues": "The same, resampling queues [%]",
                "slots": "Analysis slots running there [%]",
                "jobs": "Analysis jobs made for it [%]",
            },
            note=f"{DAYS}; neighbouring days share jobs, so they are rather too narrow.",
        ),
        Table(
            name="queues",
            frame=history.waits.in_minutes(s.frames["queues"]),
            caption=say(usual, counts),
            columns={
                "queue": "Queue",
                "usual": "Usual class",
                "none": "Without class [% of instants]",
                "per_day": "Changes [per day]",
                "mean_min": "Weighted mean wait [min]",
                "limit_min": "Upper limit [min]",
                "jobs": "Analysis jobs",
            },
            note="The busiest first. Waits: medians over the instants; the upper limit is to hold 95 % of them.",
            most=12,
        ),
    ]


def _limits(s: Study, near: list[dict[str, Any]]) -> list[Block | None]:
    most = "Of the values next to the current ones, {what} moves most: {differs:%}"
    if near and not near[0]["differs"]:
        most = "No value next to the current ones moves a queue to another class"
    binding = "The percentile sets the limit of hi at {by_percentile:%} of the instants, else the hours do"
    return [
        Chart(
            draw=charts.moved_queues,
            frame=s.frames["values"],
            finding=say(most, near[0]) if near else "What other values move",
            sample=f"One number at a time; {DAYS}.",
            note="Least limit: a percentile below counts as this. Long queue: from so many jobs that queue for longer "
            "than the mean wait on, a queue is not hi. Jobs went where history sent them; with other numbers they "
            "would have gone elsewhere.",
        ),
        Table(
            name="limits",
            frame=history.waits.in_minutes(s.frames["limits"]),
            caption=say(binding, s.row("limits", limit="hi")),
            columns={
                "limit": "Limit of",
                "rank": "Rank [%]",
                "percentile_min": "Percentile, median [min]",
                "hours_min": "Least limit [min]",
                "by_percentile": "Set by the percentile [% of instants]",
                "cut": "Percentile cut [% of instants]",
                "in_class": "In the class [% of those with one]",
            },
            note="Where percentiles are the limits, they hold for the same part of the queues however fast these are. "
            "Cut: where few jobs count, upper limits end at 999 999 s.",
        ),
    ]


def _waits(s: Study) -> Table:
    limits = s.row("weights", band="all")
    note = "Sampled: merge jobs and probes, whose waits make the classes; steered: the other analysis jobs"
    if limits["steered"] is not None:
        note += ", of which {steered:%} waited beyond the upper limit of their queue, which is to hold 95 % of them"
    return Table(
        name="waits",
        frame=history.waits.in_minutes(s.frames["waits"].filter(pl.col("n") > 0)),
        caption=_order(s.frames["waits"]),
        columns={
            "kind": "Jobs",
            "class_name": "Class of their queue",
            "n": "Started",
            "median_min": "Median wait [min]",
            "p90_min": "90th percentile [min]",
            "mean_min": "Mean [min]",
        },
        note=f"{DAYS}. {say(note, limits)}.",
    )


def _order(waits: pl.DataFrame) -> str:
    """Say whether jobs at a quicker class waited for less long."""
    pairs = history.waits.compare_medians(waits)
    wrong = [f"{quick} than at {slow}" for quick, slow, order in pairs.rows() if order == "wrong"]
    blurred = [f"{quick} and {slow}" for quick, slow, order in pairs.rows() if order == "unclear"]
    if wrong:
        return f"Analysis jobs waited longer at {listed(wrong)} queues"
    if blurred:
        return f"The median waits at {listed(blurred)} queues cannot be told apart"
    return "What jobs waited, by the class of their queue"


def _rules(s: Study) -> Table:
    totals = s.row("rule_totals") | {"there": s.other}
    moved = "The {there} rules class every queue alike"
    if totals["differs"] > 0:
        moved = (
            "The {there} rules class {differs:%} of the queues and instants otherwise, {better:%} better and {worse:%} "
            "worse, where {jobs:%} of the analysis jobs are made"
        )
    return switch_table(
        s.compared.switches,
        {
            "share": "Moves of the queues and instants [%]",
            "explained": "Brings about, of all differences [%]",
        },
        caption=say(moved, totals),
    )


def _tasks(s: Study) -> Table | None:
    if s.tasks is None:
        return None
    changes = s.row("task_changes")
    otherwise = "The {there} rules rate {differs:%} of the tasks and instants otherwise"
    if changes["unrated"]:
        otherwise += ": {unrated:%} not at all"
    return Table(
        name="task_classes",
        frame=s.frames["task_classes"],
        caption=say(otherwise, changes, there=s.other),
        columns={"gshare": "gshare", "n_tasks": "Tasks"}
        | {name: f"{name} [%]" for name in history.tasks.TASK_CLASSES}
        | {"not_rated": "Not rated [%]"},
        note="S: nearly done, or express; A, B, C: by the slots that the user occupies. Over the instants at which a "
        "task was active. Progress: of a file the last job alone is known.",
    )


def _caveats(period: history.period.Period, s: Study) -> list[Caveat]:
    recorded = period.rules.wait_time == "recorded"
    lacking = [name for name in period.lacking if name != "task_status_log"]
    values: dict[str, Any] = {
        "sampled": period.n_sampled if recorded else 0,
        "idle": int(s.frames["waits"]["n_not_started"].sum()),
        "unlogged": s.tasks.n_tasks if s.tasks and "task_status_log" in period.lacking else 0,
        "stuck": s.tasks.n_tasks if s.tasks and lacking else 0,
        "no_tasks": int(s.tasks is None and period.archive.has("tasks")),
        "logged": period.n_logged or 0,
        "tables": ", ".join(lacking),
    }
    texts = {
        "sampled": "Waits run from activation, else creation, to the start of a job: the status log knows {logged} of the "
        "{sampled:#job} that rate queues.",
        "idle": "{idle} analysis jobs never started; no wait counts them.",
        "unlogged": "Taken to run from start to last change: {unlogged:#task}, whose status has no log.",
        "stuck": "No progress is known of {stuck:#task}: there is no table {tables}.",
        "no_tasks": "No task of a user has a status that is rated.",
    }
    return [Caveat.of(values[name], text, values) for name, text in texts.items()]
