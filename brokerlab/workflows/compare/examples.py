"""One instant at which every strategy is looked at closely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from brokerlab.workflows import batch
from brokerlab.workflows.compare.comparison import Comparison
from brokerlab.workflows.compare.plan import BESIDE
from brokerlab.workflows.manager import run
from brokerlab.workflows.queues import BatchQueue
from brokerlab.workflows.runs import Run

MOST_LEVELS = 12  # levels of a workflow whose runs can be drawn line by line
BARS = {
    "job": pl.String,
    "first_level": pl.Int64,
    "last_level": pl.Int64,
    "hosts": pl.Int64,
    "n_jobs": pl.Int64,
    "phase": pl.String,
    "begin_s": pl.Float64,
    "end_s": pl.Float64,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """Every strategy at one instant at which it came to an end."""

    system: str  # name of the machine
    workflow: str  # name of the workflow
    submit_time: float  # the instant [s]
    runs: Mapping[str, Run]  # by strategy, the first to end first

    def summary(self) -> pl.DataFrame:
        """Return one row per ``strategy``, the first to end first: the metrics of `Run.metrics`, ``shape``."""
        rows = [
            {"strategy": name, **done.metrics, "shape": done.shape}
            for name, done in self.runs.items()
        ]
        return pl.DataFrame(rows)

    def timelines(self) -> dict[str, pl.DataFrame]:
        """Return ``jobs``, ``tasks`` and ``decisions`` of all strategies together, with ``strategy``."""
        frames = {
            "jobs": Run.jobs_frame,
            "tasks": Run.tasks_frame,
            "decisions": Run.decisions_frame,
        }
        return {
            name: pl.concat(
                frame(done).select(pl.lit(label).alias("strategy"), pl.all())
                for label, done in self.runs.items()
            )
            for name, frame in frames.items()
        }

    def bars(self) -> pl.DataFrame:
        """Return `bars` of all strategies together, with ``strategy``."""
        return pl.concat(
            bars(done).select(pl.lit(label).alias("strategy"), pl.all())
            for label, done in self.runs.items()
        )


def example(comparison: Comparison) -> Example | None:
    """Look closely at the run with most pilots under the rules of the paper: there the strategies differ in what they do."""
    plan = comparison.plan
    low = [name for name, dag in plan.workflows.items() if len(dag.levels) <= MOST_LEVELS]
    seen = comparison.done.filter(
        pl.col("strategy") == BESIDE[1], pl.col("workflow").is_in(low or list(plan.workflows))
    )
    if seen.is_empty():
        return None
    order = ["splits", "jobs_submitted", "system", "workflow", "instant"]
    chosen = seen.sort(order, descending=[True, True, False, False, False]).row(0, named=True)
    place = {name: chosen[name] for name in ("system", "workflow", "instant")}
    ran = comparison.done.filter(**place)["strategy"].to_list()  # the others came to no end there
    system, at = plan.systems[chosen["system"]], chosen["submit_time"]
    sim = batch.start(system.background, hosts=system.hosts, policy=system.policy)
    batch.advance(sim, at)
    runs = {
        label: run(plan.workflows[chosen["workflow"]], BatchQueue(sim.copy()), how, submit_time=at)
        for label, how in plan.strategies.items()
        if how is not None and label in ran
    }
    ordered = sorted(runs.items(), key=lambda item: (item[1].metrics["turnaround"], item[0]))
    return Example(
        system=chosen["system"], workflow=chosen["workflow"], submit_time=at, runs=dict(ordered)
    )


def bars(done: Run) -> pl.DataFrame:
    """Return when the jobs of a run waited and ran, pilots one by one, single tasks a level at a time.

    One row per phase, in the order of the jobs: ``job`` (of a pilot; null: the single tasks of a level),
    ``first_level, last_level`` (from 1), ``hosts`` (null for single tasks), ``n_jobs``, ``phase`` (waits, runs,
    expires, cancelled), ``begin_s, end_s`` [s since the submission], ``line`` (the pilot, or the level, in words).
    """
    jobs = done.jobs_frame().with_columns(
        pl.col("submit", "start", "end") - done.submit_time, pl.col("first_level", "last_level") + 1
    )
    pilots = jobs.filter(~pl.col("individual")).with_columns(n_jobs=pl.lit(1, dtype=pl.Int64))
    levels = (
        jobs.filter(pl.col("individual"))
        .group_by("first_level", "last_level")
        .agg(pl.col("submit", "start").min(), pl.col("end").max(), n_jobs=pl.len().cast(pl.Int64))
        .sort("first_level")
    )
    rows = pl.concat([pilots, levels], how="diagonal_relaxed").iter_rows(named=True)
    phases = pl.DataFrame([phase for row in rows for phase in _phases(row)], schema=BARS)
    return phases.with_columns(line=_line())


def _line() -> pl.Expr:
    """Name a pilot, or the single tasks of a level."""
    first, last = pl.col("first_level"), pl.col("last_level")
    several = pl.format("levels {} to {}", first, last)
    levels = pl.when(first == last).then(pl.format("level {}", first)).otherwise(several)
    pilot = pl.format("{}: {}, hosts: {}", "job", levels, "hosts")
    single = pl.format("level {}, single tasks: {}", first, "n_jobs")
    return pl.when(pl.col("job").is_null()).then(single).otherwise(pilot)


def _phases(row: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the phases of a job, or of the single tasks of a level together."""
    known = {name: row[name] for name in ("job", "first_level", "last_level", "hosts", "n_jobs")}
    submit, start, end = row["submit"], row["start"], row["end"]
    if start is None:
        return [known | {"phase": "cancelled", "begin_s": submit, "end_s": end}]
    ends = "expires" if row["outcome"] == "expired" else "runs"
    return [
        known | {"phase": "waits", "begin_s": submit, "end_s": start},
        known | {"phase": ends, "begin_s": start, "end_s": end},
    ]
