"""What is in an archive, what in it looks wrong, and where did its jobs fail and wait?

`brokerlab.archive.profile` looks at every table, `brokerlab.archive.explore` and `brokerlab.lifecycle.states` count the
jobs; this shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field

from brokerlab.archive import Archive, Profile, explore
from brokerlab.archive.store import open_archive
from brokerlab.charts import explore as charts
from brokerlab.errors import EmptyPeriodError
from brokerlab.lifecycle.states import waiting_states
from brokerlab.report import kit
from brokerlab.report.kit import Block, Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.report.needs import Needs
from brokerlab.words import days_of, listed, plural

WHAT_STATES_MEAN = (
    "pending, waiting, defined: not yet given to the queue; assigned: at the queue, until its input is there; throttled: "
    "held back; activated: ready, until a slot is free; sent, starting: handed over, not yet running. Without status log "
    "a job is assigned until it is activated (where that time is missing, not at all), then activated until it starts."
)
FAILED_NOTE = (
    "Of the jobs that finished or failed. Jobs of a task fail together: a share that rests on one or two tasks says little "
    "of the next ones."
)


class Params(kit.Dated):
    """What may be asked."""

    report: ClassVar[str] = "explore"
    question: ClassVar[str] = (
        "What is in this archive, what in it looks wrong, and where did its jobs fail and wait?"
    )

    needs: ClassVar[Needs] = Needs(tables=("jobs",))

    every: kit.AnyDuration = Field(
        "", description="step of the charts over time, empty: one that fits [duration]"
    )
    levels: int = Field(
        6, ge=1, le=8, description="shares, queues and statuses told apart in charts over time [1]"
    )
    rows: int = Field(10, ge=1, le=50, description="queues, tasks and errors in a table [1]")


class Data(NamedTuple):
    """The archive, its profile, and its jobs with what is asked of them as columns."""

    archive: Archive
    profile: Profile
    jobs: pl.LazyFrame


@dataclass(frozen=True)
class Study:
    """What the jobs did: the frames of `brokerlab.archive.explore` and `brokerlab.lifecycle.states`."""

    totals: dict[str, Any]  # counts of jobs, tasks and queues, and shares with their intervals
    statuses: pl.DataFrame  # jobs over time
    shares: pl.DataFrame
    queues: pl.DataFrame
    needs: pl.DataFrame  # percentiles and histograms
    bins: pl.DataFrame
    errors: pl.DataFrame  # failures
    failed_queues: pl.DataFrame
    failed_tasks: pl.DataFrame
    waits: pl.DataFrame  # Waiting; states by queue
    waits_by_share: pl.DataFrame
    states: pl.DataFrame


@kit.answers
def load(p: Params) -> Data:
    """Open the archive, look at its tables, and choose the jobs of the period."""
    archive = p.needs.opened(open_archive(p.archive))
    jobs = explore.jobs(archive, start=p.start, end=p.end)
    if jobs.limit(1).collect().is_empty():
        first, last = archive.manifest.window or ("", "")
        raise EmptyPeriodError(
            f"no job was created in this period; the archive's jobs last changed from {first} to {last}"
        )
    return Data(archive, archive.profile(), jobs)


@kit.answers
def study(data: Data, p: Params) -> Study:
    """Count the jobs, ask what they needed, what failed and what waited."""
    jobs = data.jobs
    asked: dict[str, Any] = {"every": p.every or None, "most": p.levels}
    return Study(
        totals=explore.totals(jobs, n_boot=p.n_boot, seed=p.seed).row(0, named=True),
        statuses=explore.over_time(jobs, **asked),
        shares=explore.over_time(jobs, "gshare", **asked),
        queues=explore.over_time(jobs, "computingsite", **asked),
        needs=explore.distributions(jobs),
        bins=explore.histograms(jobs),
        errors=explore.failures(jobs),
        failed_queues=explore.failures(jobs, "computingsite"),
        failed_tasks=explore.failures(jobs, "jeditaskid"),
        waits=explore.waits(jobs),
        waits_by_share=explore.waits(jobs, "gshare"),
        states=waiting_states(data.archive, start=p.start, end=p.end),
    )


def page(data: Data, s: Study, p: Params) -> Page:
    """Lay out what there is."""
    totals, faults = s.totals, data.profile.frame()
    return Page(
        verdict=Verdict(kind="finding", sentence=_headline(totals, faults)),
        numbers=_numbers(totals),
        chart=_over_time(s.statuses, "Status", "statuses"),
        sections={
            "Over time": [
                _by_level(s.shares, "Global share", "shares"),
                _by_level(s.queues, "Queue", "queues"),
            ],
            "What jobs need": _needs(s),
            "What failed": _failures(s, p),
            "Where jobs waited, and why": _waits(data, s, p),
            "What the tables hold": _tables(data.profile, faults),
        },
        caveats=_caveats(data, s),
        archive=data.archive,
        window=f"jobs created {days_of(totals['first'], totals['last'])} (UTC)",
        also=kit.frames_of(data.profile) | kit.frames_of(s),
        values=totals,
    )


def _headline(totals: dict[str, Any], faults: pl.DataFrame) -> str:
    """Count the jobs and their tasks and queues where these are known, the failures, and what looks wrong."""
    text = "{jobs:#job}"
    text += " of {tasks:#task}" if totals["tasks"] else ""
    text += " at {queues:#queue}" if totals["queues"] else ""
    failed = "none" if not totals["n_failed"] else say("{x:%}", x=totals["failed_share"])
    look = "nothing odd in the tables"
    if not faults.is_empty():
        look = f"{faults.height} odd {plural(faults.height, 'thing')} in the tables"
    return say(f"{text}; {{failed}} failed; {{look}}.", totals, failed=failed, look=look)


def _numbers(totals: dict[str, Any]) -> list[Number]:
    half = "not recorded: no job starts after its creation"
    if totals["p95_wait_min"] is not None:
        half = say(
            "half of the jobs wait no longer; 95 % no longer than {p95_wait_min} min", totals
        )
    of_ended = say("of {n_ended:#job} that finished or failed", totals)
    return [
        Number.of(totals, "failed_share", label="Failed", unit="%", note=of_ended),
        Number.of(
            totals, "lost_share", label="CPU time of failed jobs", unit="%", note="of all CPU time"
        ),
        Number("Median wait, created to start", totals["median_wait_min"], unit="min", note=half),
    ]


# --- jobs -------------------------------------------------------------------------------------------------------------


def _over_time(counted: pl.DataFrame, what: str, name: str) -> Chart:
    by_level = counted.group_by("level", maintain_order=True).agg(pl.col("jobs").sum())
    level, jobs = by_level.row(0)
    text = "{what} with most jobs: {level}, {part:%}"
    steps = counted.group_by("at", maintain_order=True).agg(pl.col("jobs").sum())
    at, peak = steps.sort("jobs", descending=True, maintain_order=True).row(0)
    times = steps["at"]
    hours = (times[1] - times[0]).total_seconds() / 3600 if len(times) > 1 else None
    if what == "Status":
        text = "{part:%} of the jobs are {level}"
        text += "" if hours is None else "; most in {hours:h}: {peak}, from {at}"
    result = {"part": jobs / by_level["jobs"].sum(), "peak": peak, "hours": hours}
    return Chart(
        draw=charts.jobs_over_time,
        frame=counted,
        finding=say(text, result, what=what, level=level, at=at),
        sample=f"Jobs by the time of their creation (UTC), by {what.lower()}."
        + ("" if hours is None else say(" Steps of {hours:h}.", result)),
        name=f"{name}_over_time",
    )


def _by_level(counted: pl.DataFrame, what: str, name: str) -> Chart | str:
    """Return the chart, or say that one level has all jobs."""
    levels = counted["level"].unique()
    if len(levels) > 1:
        return _over_time(counted, what, name)
    return f"{what} of every job: {levels[0]}."


def _needs(s: Study) -> list[Block | None]:
    memory = s.needs.filter(quantity="memory_mb").row(0, named=True)
    finding = "Half of the jobs use {median} MB at most, 1 % more than {p99} MB"
    if memory["median"] is None:
        finding = "No job has its memory measured"
    return [
        Table(
            name="needs",
            frame=s.needs,
            caption=say(finding, memory),
            columns={
                "what": "Quantity",
                "jobs": "Measured [jobs]",
                "unknown": "Not recorded [jobs]",
                "p05": "5th percentile",
                "median": "Median",
                "p95": "95th",
                "p99": "99th",
                "largest": "Largest",
            },
            note="Of all jobs, failed ones too. PSS: memory of the whole job, shared pages divided among its processes.",
        ),
        Chart(
            draw=charts.distributions,
            frame=s.bins,
            finding="Memory, CPU time, run time and wait of the jobs",
            sample=say("{n:#bin} in each factor of ten.", n=explore.BINS),
        )
        if not s.bins.is_empty()
        else None,
    ]


FAILED = {
    "failed": "Failed [jobs]",
    "failed_share": "Failed [% of ended]",
    "part": "Of all failures [%]",
    "tasks": "Tasks",
    "cpu_h": "CPU time of failed [h]",
}
"""Columns of failures by anything."""


def _failures(s: Study, p: Params) -> list[Block | None]:
    if s.errors.is_empty():
        return ["No job failed."]
    captions = {
        "errors": (
            s.errors,
            "Error",
            "Most common: {level}, {part:%} of the failures, in {tasks:#task}",
        ),
        "failed_queues": (
            s.failed_queues,
            "Queue",
            "Most failures at {level}: {part:%} of all, {failed_share:%} of its jobs",
        ),
        "failed_tasks": (
            s.failed_tasks,
            "Task",
            "Most failures in task {level}: {part:%} of all, {failed_share:%} of its jobs",
        ),
    }
    tables = []
    for name, (frame, label, caption) in captions.items():
        columns = {key: text for key, text in FAILED.items() if (key, label) != ("tasks", "Task")}
        tables.append(
            Table(
                name=name,
                frame=frame,
                caption=say(caption, frame.row(0, named=True)),
                columns={"level": label, **columns},
                note=FAILED_NOTE,
                most=p.rows,
            )
        )
    return list(tables)


def _waits(data: Data, s: Study, p: Params) -> list[Block | None]:
    if not s.waits["waited_h"].sum() and s.states.is_empty():
        return ["No job has a recorded wait."]
    columns = {
        "jobs": "Jobs",
        "not_started": "No start [jobs]",
        "median_h": "Median [h]",
        "p95_h": "95th percentile [h]",
        "waited_h": "Together [h]",
        "part": "Of all waiting [%]",
    }
    tables = [
        Table(
            name=name,
            frame=frame,
            caption=say(
                "Most waiting at {level}: {part:%} of all, {jobs:#job}", frame.row(0, named=True)
            ),
            columns={"level": label, **columns},
            note="From creation to start.",
            most=p.rows,
        )
        for name, frame, label in (
            ("waits", s.waits, "Queue"),
            ("waits_by_share", s.waits_by_share, "Global share"),
        )
        if frame["level"].to_list() != [explore.UNKNOWN]
    ]
    activated = data.profile.columns.filter(table="jobs", column="activatedtime")
    if activated["null_share"].to_list() == [1.0] and not data.archive.has("job_status_log"):
        return ["Why is not known: there is no status log, and no job has activatedtime.", *tables]
    return [_states(s.states, p), *tables]


def _states(states: pl.DataFrame, p: Params) -> Chart | None:
    total = states["hours"].sum()
    if not total:
        return None
    by_state = states.group_by("state").agg(pl.col("hours").sum())
    state, hours = by_state.sort("hours", "state", descending=True).row(0)
    n = min(p.rows, states["level"].n_unique())
    text = "{part:%} of {total:h} of waiting were spent {state}"
    return Chart(
        draw=charts.waiting_states,
        frame=states,
        finding=say(text, part=hours / total, total=total, state=state),
        sample=say("The {n:#queue} with most waiting, by state before running.", n=n),
        options={"most": p.rows},
        note=WHAT_STATES_MEAN,
    )


# --- tables -----------------------------------------------------------------------------------------------------------


def _tables(profile: Profile, faults: pl.DataFrame) -> list[Block | None]:
    checked = profile.joins.drop_nulls("matched_share")
    whole = checked.filter(matched_share=1.0).height
    measured = profile.columns.filter(
        pl.col("table").is_in(["jobs", "tasks", "queues"]), pl.col("median").is_not_null()
    ).with_columns(pl.col("unit").str.replace("^%", "per cent"))  # they hold no shares
    return [
        "Nothing odd: no key that leads nowhere, no outliers, no doubled keys, no gaps."
        if faults.is_empty()
        else Table(
            name="faults",
            frame=faults,
            caption=say("{n:#thing} to look at, those with most rows first", n=faults.height),
            columns={
                "table": "Table",
                "column": "Column",
                "fault": "What",
                "rows": "Rows",
                "share": "Share [% of rows with a value]",
                "example": "Example",
            },
        ),
        Table(
            name="tables",
            frame=profile.tables,
            caption=say("{n:#table} with rows", n=profile.tables.height),
            columns={
                "table": "Table",
                "rows": "Rows",
                "first": "From",
                "last": "To",
                "days_with": "Days with rows",
                "days": "Days between",
                "longest_gap_h": "Longest gap [h]",
            },
            most=40,
            note="By the time at which rows came or changed; –: the table has none.",
        ),
        Table(
            name="joins",
            frame=checked,
            caption=say(
                "{whole} of {n:#key} lead to a row for every value", whole=whole, n=checked.height
            ),
            columns={
                "table": "Table",
                "key": "Key",
                "other": "Looked up in",
                "matched_share": "Rows matched [% of rows with a key]",
                "keys": "Keys",
                "matched_keys": "Matched keys",
                "unused_keys": "Never looked up [keys]",
            },
            most=40,
        ),
        Table(
            name="measured",
            frame=measured,
            caption=_empty_columns(profile),
            columns={
                "column": "Column",
                "table": "Table",
                "null_share": "Null [%]",
                "zeros": "Zero [rows]",
                "least": "Least",
                "median": "Median",
                "p99": "99th percentile",
                "most": "Largest",
            },
            unit="unit",
            most=60,
            note="Columns with a unit; all columns of all tables are in the files.",
        ),
    ]


def _empty_columns(profile: Profile) -> str:
    """Say how many columns of which tables hold nothing."""
    shown = profile.columns.filter(pl.col("table").is_in(["jobs", "tasks", "queues"]))
    empty = shown.filter(null_share=1.0).group_by("table", maintain_order=True).len()
    if empty.is_empty():
        return "Every column of jobs, tasks and queues has values"
    parts = [say("{n} of {table}", n=n, table=table) for table, n in empty.rows()]
    return f"Columns without any value: {listed(parts)}"


# --- what it cannot tell ----------------------------------------------------------------------------------------------


CAVEATS = {
    "stopped": "Cancelled or closed, neither finished nor failed: {stopped:#job}, in no share of failures.",
    "alive": "Not ended in the archive: {alive:#job}, in no share of failures.",
    "no_start": "Without a known wait (no start, one before creation, or one time for both): {no_start:#job}, in no percentile of it.",
    "no_task": "Of no task: {no_task:#job}; together they count as one in intervals.",
}
"""Number that makes it so, and what it makes so."""


def _caveats(data: Data, s: Study) -> list[Caveat]:
    counted = [Caveat.of(s.totals[name], text, s.totals) for name, text in CAVEATS.items()]
    unknown = data.profile.joins.filter(pl.col("matched_rows").is_null(), pl.col("keys") > 0)
    absent = unknown["other"].str.extract(r"^(\w+)").unique(maintain_order=True).to_list()
    if absent:
        text = f"Not in the archive: {listed(absent)}. Keys into them are not checked."
        counted.append(Caveat(len(absent), text))
    notes = dict.fromkeys(note for source in data.archive.manifest.sources for note in source.notes)
    return [*counted, *(Caveat(1, f"From ingest: {note}.") for note in notes)]
