"""Translate allocations into the setting of the deployed system that comes nearest, and judge it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.calibrate.judge import MIN_UNITS, Question
from brokerlab.calibrate.nearest_setting.allocations import Difference, Who, compared, score_sides
from brokerlab.calibrate.nearest_setting.records import RECORDS_ONLY, of_records
from brokerlab.calibrate.percentiles.comparison import Comparison
from brokerlab.calibrate.percentiles.history import Inputs, load
from brokerlab.calibrate.percentiles.parameters import (
    Assumptions,
    LossWeights,
    Setting,
    parameter_named,
)
from brokerlab.calibrate.percentiles.study import Study, kills, study
from brokerlab.calibrate.verdict import Verdict, limit_of
from brokerlab.errors import ConfigError, DataError
from brokerlab.frames import prepared
from brokerlab.scouts import ScoutRules
from brokerlab.words import short_percent

Span = tuple[datetime, datetime]
"""First instant, and the first one after it [UTC]."""
MINIMA: tuple[int | None, ...] = (None, 250, 500, 1000, 1500, 2000)
"""Minima tried [MB, per core if the task's unit is]: up to the 2 GB that a slot has per core."""
OWN_RETRIES = (
    "All are tried again as the back-test retries, not as the estimator would; what slots cannot take "
    "is that of the typical job of a task."
)
SAME_TASKS = (
    "Nearest and cheapest were chosen on the tasks they are scored on: what is lost by a setting comes out too small. Whether "
    "one is proposed rests on tasks that had no part in its choice."
)


class Given(dy.Schema):
    """One row per job: what an estimator would have given it as it was decided."""

    pandaid = dy.Int64(metadata={"meaning": "the job"})
    allocated = dy.Float64(
        nullable=True,
        metadata={
            "unit": "MB of the whole job or s of walltime",
            "meaning": "first allocation, above 0; null or infinite: it cannot tell",
        },
    )


@dataclass(frozen=True, kw_only=True)
class Translation:
    """An estimator's allocations, the setting of the deployed system that comes nearest, and the current one.

    Amount columns end in the parameter's unit: ``_gbh`` of memory, ``_coreh`` of a walltime limit. The loss
    is in core-hours per core-hour of useful work, in every row by the same prices and retries.

    Attributes:
        study: The settings, judged on all tasks, with allocations or without; the answer rests on it, not on the table.
        estimator: Name of the estimator.
        cheapest: The member of the family that costs least, whatever it exceeds.
        table: Of the tasks with allocations, one row per ``who`` (estimator, cheapest, nearest, current): ``label, n_tasks, n_scored,
            n_exceed, n_lost``; ``loss`` and ``exceed_rate`` (of first attempts) as the judge weighs tasks, with ``_lo, _hi``; over all jobs
            ``exceed_rate_jobs, over_allocation`` (reserved and not used / used)``, used_, over_, waste_, reserved_<amount>,
            killed_coreh, work_coreh``; ``slots_share``, mean of tasks.
        differences: One row per ``difference``, paired by task: ``of, against, loss, loss_lo, loss_hi,
            pct_of_current``. ``restriction``: cheapest - estimator, what is lost by having to set a rule;
            ``limit``: nearest - cheapest, lost for the limit; ``setting``: current - nearest;
            ``estimator``: current - estimator.
        counts: ``tasks_without_allocations`` and ``jobs``, of which ``jobs_without_allocation``.
    """

    study: Study
    estimator: str
    cheapest: Setting
    table: pl.DataFrame
    differences: pl.DataFrame
    counts: dict[str, int]

    @property
    def nearest(self) -> Setting:
        """The setting that costs least within the limit, by the judge's last choice: what may be proposed."""
        return self.study.best

    @property
    def verdict(self) -> Verdict:
        """The answer."""
        return self.study.verdict

    @property
    def comparison(self) -> Comparison | None:
        """The current setting against those chosen on earlier tasks; null: records, or too few tasks."""
        enough = self.study.judgement.n_units >= MIN_UNITS
        return self.study.comparison if enough and self.study.inputs.window else None

    @property
    def side_by_side(self) -> pl.DataFrame:
        """The table with ``mark`` (current) and ``killed_share`` (of the work)."""
        return self.table.with_columns(
            mark=pl.when(who="current").then(pl.lit("current")),
            killed_share=pl.col("killed_coreh") / pl.col("work_coreh"),
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What this cannot tell, in sentences."""
        return _notes(self.study, self.counts, self.estimator)

    def side(self, who: Who) -> dict[str, Any]:
        """Return one row of the table."""
        return self.table.row(by_predicate=pl.col("who") == who, named=True)

    def difference(self, name: Difference) -> dict[str, Any]:
        """Return one row of the differences."""
        return self.differences.row(by_predicate=pl.col("difference") == name, named=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables, and the tables as rows."""
        return {
            "parameter": self.study.parameter.name,
            "estimator": self.estimator,
            "cheapest": self.cheapest._asdict(),
            "nearest": self.nearest._asdict(),
            "current": self.study.current._asdict(),
            "table": self.table.to_dicts(),
            "differences": self.differences.to_dicts(),
            "judgement": self.study.judgement.to_dict(),
            "comparison": None if self.comparison is None else self.comparison.table.to_dicts(),
            "verdict": self.verdict.to_dict(),
            "counts": dict(self.counts),
            "notes": list(self.notes),
        }


def translate(
    source: Archive | str | Path | Any,
    allocations: Any,
    *,
    parameter: str = "ramcount",
    name: str = "the estimator",
    span: Span | None = None,
    created_at: datetime | None = None,
    ranks: Iterable[int] = range(50, 100),
    margins: Iterable[int] | None = None,
    minima: Iterable[int | None] = MINIMA,
    question: Question | None = None,
    loss: LossWeights | None = None,
    assumptions: Assumptions | None = None,
) -> Translation:
    """Say which setting of the deployed system comes nearest to an estimator, and what is lost by it.

    On the same jobs, by the same loss and retries: what the estimator's allocations cost, what the best
    rank, margin and minimum of the scouts' rule cost, and what the current setting costs. Settings are chosen
    again and again on the tasks so far and scored on those that follow, by `judge`; only what beats the
    current one there becomes a proposal.

    The minimum is tried together with another rank or margin, not alone.

    Args:
        source: An archive or its folder; or records (memory for ``ramcount``, walltime for ``cputime``),
            which have no settings and no base memory: the answer is then "no answer", with the table.
        allocations: ``pandaid, allocated`` [MB of the whole job or s]; made without knowing later jobs, which
            cannot be seen here. Only tasks that have some are compared, so that those an estimator learnt from
            can be left out; the setting is judged on all. Where a single job has none, the
            current setting stands in for it.
        parameter: ``ramcount`` or ``cputime``.
        name: Of the estimator, for sentences.
        span: When the tasks that are looked at were created, the end is out; None: all of them.
        created_at: When the proposal is made, UTC without zone; None: when the last task was created.
        ranks: Ranks tried.
        margins: Margins tried [%]; None: those of the parameter. Of cputime only the fixed one can be chosen.
        minima: Minima tried [MB]; None among them: no minimum.
        question: Of `kills`: how settings are judged; None: with its defaults.
        loss: Weights; None: the parameter's.
        assumptions: Of the back-test; None: the defaults.

    Returns:
        A :class:`Translation`.

    Raises:
        ConfigError: A parameter that cannot be translated, or a span of records.
        SchemaError: Columns missing.
        DataError: Allocations that are not above 0, or a job twice, or none for any job.
        InsufficientDataError: No task can be scored.

    Source: scouts.md 5.1 and 5.2; calibration.md 2.
    """
    if parameter_named(parameter).name == "outdiskcount":
        raise ConfigError(
            "parameter='outdiskcount': estimators are of ramcount (memory) or cputime"
        )
    made = assumptions or Assumptions()
    inputs = _inputs(source, parameter, made.rules, span)
    given = _checked(allocations)
    with_allocations, n_without = _with_allocations(inputs, given)
    judged = study(
        inputs,
        parameter,
        question or kills(),
        created_at=created_at,
        ranks=ranks,
        margins=margins,
        minima=minima,
        loss=loss,
        assumptions=made,
    )
    settings: dict[Who, Setting] = {
        "cheapest": cheapest_of(judged),
        "nearest": judged.best,
        "current": judged.current,
    }
    sides = score_sides(judged.tried, with_allocations, given, settings)
    labels: dict[Who, str] = {"estimator": name}
    labels |= {who: each.words(judged.parameter, minimum=True) for who, each in settings.items()}
    table, differences = compared(sides.rows, labels, judged.parameter, judged.judgement.question)
    return Translation(
        study=judged,
        estimator=name,
        cheapest=settings["cheapest"],
        table=table,
        differences=differences,
        counts={
            "tasks_without_allocations": n_without,
            "jobs": sides.n_jobs,
            "jobs_without_allocation": sides.n_missing,
        },
    )


def _inputs(source: Any, parameter: str, rules: ScoutRules, span: Span | None) -> Inputs:
    if not isinstance(source, Archive | str | Path):
        if span is not None:
            raise ConfigError(f"span={span}: it is of the tasks of an archive; records have none")
        return of_records(source, parameter, rules)
    if span is None:
        return load(source, rules=rules)
    if not span[0] < span[1]:
        raise ConfigError(f"span={span}: needed are a first instant and a later one that is out")
    return load(source, start=span[0], end=span[1], rules=rules)


def _with_allocations(inputs: Inputs, given: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the tasks of which finished jobs have allocations, which alone are compared, and how many others have such jobs.

    Raises:
        DataError: None has.
    """
    jobs = inputs.quantities.select("jeditaskid", "pandaid")
    finite = given.filter(pl.col("allocated").is_finite())
    known = jobs.join(finite, on="pandaid", how="semi")
    if known.is_empty():
        raise DataError(
            f"allocations.pandaid: none of {finite.height} jobs with an allocation is a finished job of the "
            f"source, whose ids are {jobs['pandaid'].min()!r} to {jobs['pandaid'].max()!r}"
        )
    tasks = inputs.tasks.join(jobs, on="jeditaskid", how="semi", maintain_order="left")
    having = tasks.join(known, on="jeditaskid", how="semi", maintain_order="left")
    return having, tasks.height - having.height


def cheapest_of(judged: Study) -> Setting:
    """Return the setting of least loss over all tasks, whatever it exceeds; among equals the current one, then the first."""
    order = judged.judgement.candidates.sort(
        "loss", "is_current", "place", descending=[False, True, False]
    )
    return Setting(*judged.judgement.settings[order["place"][0]])


def _notes(judged: Study, counts: dict[str, int], name: str) -> tuple[str, ...]:
    """Say what this cannot tell."""
    notes = [*(RECORDS_ONLY if judged.inputs.window is None else ()), OWN_RETRIES, SAME_TASKS]
    if judged.n_overlapping:
        notes.append(
            f"{judged.n_overlapping:,} jobs of the tasks that a setting was chosen on ended after the tasks that score it had "
            "begun: they could not have been known yet."
        )
    if counts["tasks_without_allocations"]:
        notes.append(
            f"{counts['tasks_without_allocations']} tasks have no allocation of {name}: the setting is judged on "
            "them too, for it acts on them; the comparison leaves them out."
        )
    if counts["jobs_without_allocation"]:
        notes.append(
            f"{counts['jobs_without_allocation']:,} of {counts['jobs']:,} jobs have no allocation of "
            f"{name}: the current setting stands in for them."
        )
    if judged.judgement.cheapest_within is None:
        notes.append(
            f"No member of the family keeps the limit of {short_percent(limit_of(judged.judgement))} with room for chance: "
            "the nearest setting is the one that exceeds it least."
        )
    return tuple(notes)


def _checked(allocations: Any) -> pl.DataFrame:
    """Return what is given, held to its contract; everything wrong at once."""
    frame = prepared({"allocations": allocations}, {"allocations": Given})["allocations"]
    wrong = {
        "allocated: above 0 is allowed, or null": pl.col("allocated").is_nan()
        | (pl.col("allocated") <= 0),
        "pandaid: each job once": pl.col("pandaid").is_duplicated(),
    }
    found = [
        f"allocations.{rule}; {rows.height} rows, such as pandaid {rows['pandaid'][0]}"
        for rule, where in wrong.items()
        if (rows := frame.filter(where)).height
    ]
    if found:
        raise DataError("; ".join(found) + "; mend or leave out those rows")
    return frame
