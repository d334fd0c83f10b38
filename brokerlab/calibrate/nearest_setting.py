"""What an estimator means for settings: the rank, margin and minimum of the scouts' rule that come nearest to it.

``translate`` scores an estimator's allocations, the best member of the family that the deployed system has, and the
current setting on the same jobs by the same loss.
``translate_trial`` does so for an estimator of memory as it was tested on the later tasks of an archive, ``translate_bound``
for the bound of one of walltime.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.calibrate.judge import MIN_UNITS, Question, cap_weights
from brokerlab.calibrate.percentiles.backtest import Backtest, at_setting
from brokerlab.calibrate.percentiles.frames import Comparison, judge_values
from brokerlab.calibrate.percentiles.history import Inputs, load
from brokerlab.calibrate.percentiles.parameters import (
    Assumptions,
    LossWeights,
    Parameter,
    Setting,
    parameter_named,
)
from brokerlab.calibrate.percentiles.replay import Replay
from brokerlab.calibrate.percentiles.study import Study, kills, study
from brokerlab.calibrate.verdict import Verdict, limit_of
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.estimators.allocation import Prices, amount_per_unit, cheapest
from brokerlab.estimators.trial import Trial
from brokerlab.frames import prepared
from brokerlab.numerics import FloatArray
from brokerlab.rulesets import RuleSetName
from brokerlab.scouts import ScoutRules
from brokerlab.units import HOUR_S
from brokerlab.words import short_percent

Who = Literal["estimator", "cheapest", "nearest", "current"]
WHO: tuple[Who, ...] = ("estimator", "cheapest", "nearest", "current")
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
        table: Of the tasks with allocations, one row per ``who`` (estimator, cheapest, nearest, current): ``label, n_tasks,
            n_scored, n_exceed, n_lost``; ``loss`` and ``exceed_rate`` (of first attempts) as the judge weighs tasks, with
            ``_lo, _hi``; over all jobs ``exceed_rate_jobs, over_allocation`` (reserved and not used / used)``, used_, over_,
            waste_, reserved_<amount>, killed_coreh, work_coreh``; ``slots_share``, mean of tasks.
        counts: ``tasks_without_allocations``, of those judged, and ``jobs``, of which ``jobs_without_allocation``.
    """

    study: Study
    estimator: str
    cheapest: Setting
    table: pl.DataFrame
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
        """The current setting against those chosen on earlier tasks; null: too few tasks."""
        return self.study.comparison if self.study.judgement.n_units >= MIN_UNITS else None

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

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables, and the tables as rows."""
        return {
            "parameter": self.study.parameter.name,
            "estimator": self.estimator,
            "cheapest": self.cheapest._asdict(),
            "nearest": self.nearest._asdict(),
            "current": self.study.current._asdict(),
            "table": self.table.to_dicts(),
            "judgement": self.study.judgement.to_dict(),
            "comparison": None if self.comparison is None else self.comparison.table.to_dicts(),
            "verdict": self.verdict.to_dict(),
            "counts": dict(self.counts),
            "notes": list(self.notes),
        }


def translate(
    source: Archive | str | Path,
    allocations: Any,
    *,
    parameter: str = "ramcount",
    name: str = "the estimator",
    span: Span | None = None,
    minima: Iterable[int | None] = MINIMA,
    question: Question | None = None,
    assumptions: Assumptions | None = None,
    **grid: Any,
) -> Translation:
    """Say which setting of the deployed system comes nearest to an estimator, and what is lost by it.

    On the same jobs, by the same loss and retries: what the estimator's allocations cost, what the best
    rank, margin and minimum of the scouts' rule cost, and what the current setting costs. Settings are chosen
    again and again on the tasks so far and scored on those that follow, by `judge`; only what beats the
    current one there becomes a proposal. The minimum is tried together with another rank or margin, not alone.

    ``source`` is an archive or its folder. ``allocations`` (``pandaid, allocated`` [MB of
    the whole job or s]) are made without knowing later jobs, which cannot be seen here; only tasks that have some are
    compared, the setting is judged on all, and where a single job has none the current setting stands in for it. Of the tasks
    those are looked at that were created in the ``span``, the end is out. Ranks, margins and loss are given as
    :func:`brokerlab.calibrate.backtest` has them; of cputime only the fixed margin can be chosen.

    Raises:
        ConfigError: A parameter that cannot be translated, or a span that is none.
        SchemaError: Columns missing.
        DataError: Allocations that are not above 0, or a job twice, or none for any job.
        InsufficientDataError: No task can be scored.

    Source: scouts.md 5.1 and 5.2; calibration.md 2.
    """
    if parameter_named(parameter).name == "outdiskcount":
        raise ConfigError(
            "parameter='outdiskcount': estimators are of ramcount (memory) or cputime"
        )
    if span is not None and not span[0] < span[1]:
        raise ConfigError(f"span={span}: needed are a first instant and a later one that is out")
    made, (start, end) = assumptions or Assumptions(), span or (None, None)
    inputs = load(source, start=start, end=end, rules=made.rules)
    given = _check(allocations)
    with_allocations = _with_allocations(inputs, given)
    judged = study(inputs, parameter, question or kills(), minima=minima, assumptions=made, **grid)
    judged_tasks = judged.judgement.outcomes.units.select(jeditaskid="unit")
    # whatever it exceeds; among equals the current one, then the first
    cheap = judged.judgement.candidates.sort(
        "loss", "is_current", "place", descending=[False, True, False]
    )
    settings: dict[Who, Setting] = {
        "cheapest": Setting(*judged.judgement.settings[cheap["place"][0]]),
        "nearest": judged.best,
        "current": judged.current,
    }
    sides = score_sides(judged.tried, with_allocations, given, settings)
    labels: dict[Who, str] = {"estimator": name}
    labels |= {who: each.words(judged.parameter, minimum=True) for who, each in settings.items()}
    return Translation(
        study=judged,
        estimator=name,
        cheapest=settings["cheapest"],
        table=compared(sides, labels, judged.parameter, judged.judgement.question),
        counts={
            "tasks_without_allocations": judged_tasks.join(
                with_allocations, on="jeditaskid", how="anti"
            ).height,
            "jobs": int(sides["estimator"]["n_scored"].sum()),
            "jobs_without_allocation": int(sides["estimator"]["n_missing"].sum()),
        },
    )


def _with_allocations(inputs: Inputs, given: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks of which finished jobs have allocations, which alone are compared."""
    jobs = inputs.quantities.select("jeditaskid", "pandaid")
    finite = given.filter(pl.col("allocated").is_finite())
    known = jobs.join(finite, on="pandaid", how="semi")
    if known.is_empty():
        raise DataError(
            f"allocations.pandaid: none of {finite.height} jobs with an allocation is a finished job of the "
            f"source, whose ids are {jobs['pandaid'].min()!r} to {jobs['pandaid'].max()!r}"
        )
    return inputs.tasks.join(known, on="jeditaskid", how="semi", maintain_order="left")


def _notes(judged: Study, counts: dict[str, int], name: str) -> tuple[str, ...]:
    without, jobs = counts["tasks_without_allocations"], counts["jobs_without_allocation"]
    notes = {
        OWN_RETRIES: True,
        SAME_TASKS: True,
        f"{judged.n_overlapping:,} jobs of the tasks that a setting was chosen on ended after the tasks that score it had "
        "begun: they could not have been known yet.": judged.n_overlapping,
        f"{without} tasks have no allocation of {name}: the setting is judged on them too, for it acts on them; the comparison "
        "leaves them out.": without,
        f"{jobs:,} of {counts['jobs']:,} jobs have no allocation of {name}: the current setting stands in for them.": jobs,
        f"No member of the family keeps the limit of {short_percent(limit_of(judged.judgement))} with room for chance: "
        "the nearest setting is the one that exceeds it least.": judged.judgement.cheapest_within
        is None,
    }
    return tuple(note for note, applies in notes.items() if applies)


def _check(allocations: Any) -> pl.DataFrame:
    """Return what is given, held to its contract; everything wrong at once."""
    frame = prepared({"allocations": allocations}, {"allocations": Given})["allocations"]
    wrong = {
        "allocated: above 0 is allowed, or null": pl.col("allocated").is_nan()
        | (pl.col("allocated") <= 0),
        "pandaid: each job once": pl.col("pandaid").is_duplicated(),
    }
    result = [
        f"allocations.{rule}; {rows.height} rows, such as pandaid {rows['pandaid'][0]}"
        for rule, where in wrong.items()
        if (rows := frame.filter(where)).height
    ]
    if result:
        raise DataError("; ".join(result) + "; mend or leave out those rows")
    return frame


# --- estimators as they were tested -----------------------------------------------------------------------------------


def translate_trial(
    trial: Trial,
    archive: Archive,
    *,
    model: str,
    name: str,
    learnt: pl.DataFrame,
    rules: RuleSetName = "document",
    **how: Any,
) -> Translation:
    """Translate the allocations that cost least of the stated loss into rank, margin and minimum of the scouts' rule.

    The setting is judged on the tasks that were created from the first of the trial, which is of memory on later tasks of the
    archive, to its last. ``learnt`` are the records that the model learnt from: they say how long jobs usually take; ``how`` is of
    `kills`.
    """
    allocated = allocate_by_stated_loss(trial, model, learnt)
    return translate(
        archive,
        pl.DataFrame({"pandaid": trial.records["pandaid"], "allocated": allocated}),
        parameter="ramcount",
        name=name,
        span=_span(archive, trial.records),
        question=kills(**how),
        assumptions=Assumptions(rules=ScoutRules(rules)),
    )


def translate_bound(
    trial: Trial,
    archive: Archive,
    *,
    model: str,
    level: float = 0.98,
    rules: RuleSetName = "document",
    **how: Any,
) -> Translation:
    """Translate a bound of walltime given at submission into rank and margin of the scouts' rule.

    A bound that is refused allocates nothing: there the current setting stands in. The limit of the setting is the share of jobs
    that the bound lets through: 1 - ``level``. It is judged on the tasks that were created from the first of the trial to its last;
    ``how`` is of `kills`.

    Raises:
        InsufficientDataError: No bound of the level can be promised.
    """
    held = trial.held[model]
    if not np.isfinite(held.at(level)).any():
        raise InsufficientDataError(
            f"{model}: no bound of {100 * level:g} % can be promised; it needs {math.ceil(level / (1 - level) - 1e-9)} finished jobs "
            "of a task"
        )
    return translate(
        archive,
        pl.DataFrame({"pandaid": held.pandaid, "allocated": held.at(level)}),
        parameter="cputime",
        name=f"{model}, bound {100 * level:g} %",
        span=_span(archive, trial.records),
        question=kills(round(1 - level, 9), **how),
        assumptions=Assumptions(rules=ScoutRules(rules)),
    )


def allocate_by_stated_loss(trial: Trial, model: str, learnt: pl.DataFrame) -> FloatArray:
    """Return the first allocations that cost least of the stated loss [MB]; infinite where nothing is known.

    A job is expected to take as long as the median of its kind among the jobs learnt from.
    """
    records, predicted = trial.records, trial.predicted[model]
    usual = learnt.group_by("kind").agg(usual=pl.col("wall_s").median())
    seconds = records.join(usual, on="kind", how="left", nulls_equal=True, maintain_order="left")
    wall_s = seconds["usual"].fill_null(learnt["wall_s"].median()).to_numpy()
    cores = records["cores"].cast(pl.Float64).to_numpy()
    factor, prices = stated_prices(LossWeights.default("ramcount"), Assumptions())
    known = np.isfinite(predicted.bounds[:, 0])
    first = np.full(known.size, np.inf)
    first[known] = cheapest(
        predicted.bounds[known],
        levels=predicted.levels,
        prices=prices,
        retry_factor=factor,
        amount=amount_per_unit("memory", wall_s=wall_s[known]),
        core_hours=(cores * wall_s / HOUR_S)[known],
    ).first
    return first


def _span(archive: Archive, records: pl.DataFrame) -> Span | None:
    """Return when the judged tasks were created, from the first to behind the last; null: not known."""
    created = archive.scan("tasks").select("jeditaskid", "creationdate").collect()
    dates = created.join(records, on="jeditaskid", how="semi")["creationdate"].drop_nulls().sort()
    return (dates[0], dates[-1] + timedelta(microseconds=1)) if len(dates) else None


def stated_prices(weights: LossWeights, made: Assumptions) -> tuple[float, Prices]:
    """Return the factor of the one retry and the prices [core h] under which the cheapest memory costs least of the stated loss.

    The share of slots that cannot take a job is not among the prices: it is not a job's alone.

    Example:
        >>> stated_prices(LossWeights.default("ramcount"), Assumptions())
        (2.0, Prices(idle=0.5, lost=0.0, failure=0.5, burnt=1.0, giving_up=9.5))
    """
    (factor,) = made.retry_factors
    return factor, Prices(
        idle=weights.over,
        lost=0.0,
        burnt=weights.killed_coreh * made.killed_after,
        failure=weights.n_exceed,
        giving_up=max(weights.n_lost - weights.n_exceed, 0.0),  # the second kill counts once
    )


# --- allocations beside settings --------------------------------------------------------------------------------------


def score_sides(
    tried: Backtest, tasks: pl.DataFrame, allocations: pl.DataFrame, settings: Mapping[Who, Setting]
) -> dict[Who, pl.DataFrame]:
    """Score allocations and settings on the same tasks, as a back-test does: rows of tasks, of the estimator with ``n_missing``.

    Of ``allocations`` (``pandaid, allocated`` [MB or s]) null and infinite say that the estimator cannot tell: the current setting
    stands in.
    """
    score = partial(
        _score_allocations, allocations=allocations, current=tried.current, weights=tried.weights
    )
    under = tried.under(list(dict.fromkeys(settings.values())))
    rows: dict[Who, pl.DataFrame] = {who: at_setting(under, one) for who, one in settings.items()}
    rows["estimator"] = pl.concat(tried.each(score)).sort("jeditaskid")
    kept = {who: side.join(tasks, on="jeditaskid", how="semi") for who, side in rows.items()}
    if kept["estimator"].is_empty():
        raise InsufficientDataError(
            f"none of {tasks.height} tasks with allocations has scouts and other jobs enough to be scored"
        )
    return kept


def _score_allocations(
    replay: Replay, allocations: pl.DataFrame, current: Setting, weights: LossWeights
) -> pl.DataFrame:
    """Return one row per task with each job given its allocation, and ``n_missing``: jobs that have none."""
    jobs = replay.jobs.join(allocations, on="pandaid", how="left", maintain_order="left")
    stated = jobs["allocated"].fill_null(float("inf")).to_numpy()
    missing = np.isinf(stated)
    allocated = np.where(missing, replay.requests(current), stated)
    n = np.bincount(replay.jobs["task"].to_numpy(), missing, minlength=replay.tasks.height)
    return replay.by_allocation(allocated, weights).with_columns(
        n_missing=pl.Series(n, dtype=pl.Float64)
    )


def compared(
    sides: Mapping[Who, pl.DataFrame],
    labels: Mapping[Who, str],
    parameter: Parameter,
    question: Question,
) -> pl.DataFrame:
    """Lay results on the same tasks side by side: ``table`` of :class:`Translation`.

    Loss and kill rate are means over tasks with the weights that the judge gives them, and its intervals; below `MIN_UNITS`
    tasks there are none. The rest are sums over all jobs.
    """
    working = {who: side.filter(pl.col("work_coreh") > 0) for who, side in sides.items()}
    weights = cap_weights(working["current"]["work_coreh"].to_numpy())
    if not weights.size:
        raise InsufficientDataError(
            "no task with allocations has work: there is nothing to compare"
        )

    def mean(name: str, values: FloatArray, *, share: bool = False) -> dict[str, float | None]:
        enough = weights.size >= MIN_UNITS
        return question.interval(name, values, weights, share=share, enough=enough)

    rows = []
    for who in WHO:
        judged = judge_values(working[who])
        row = {"who": who, "label": labels[who]} | mean("loss", judged["loss"])
        row |= mean("exceed_rate", judged["exceed_rate"], share=True)
        rows.append(
            pl.DataFrame([row], schema_overrides=LOSS_ENDS).hstack(_sums(sides[who], parameter))
        )
    return pl.concat(rows)


LOSS_ENDS = dict.fromkeys(["loss_lo", "loss_hi", "exceed_rate_lo", "exceed_rate_hi"], pl.Float64)


def _sums(side: pl.DataFrame, parameter: Parameter) -> pl.DataFrame:
    used, over, *rest = (
        f"{name}_{parameter.amount}" for name in ("used", "over", "waste", "reserved")
    )
    return side.select(
        pl.len().cast(pl.Int64).alias("n_tasks"),
        pl.col("n_scored", "n_exceed", "n_lost").sum(),
        pl.col(used, over, *rest, "killed_coreh", "work_coreh").sum(),
        pl.col("slots_share").mean(),
        exceed_rate_jobs=pl.col("n_exceed").sum() / pl.col("n_scored").sum(),
        over_allocation=pl.col(over).sum()
        / pl.when(pl.col(used).sum() > 0).then(pl.col(used).sum()),
    )
