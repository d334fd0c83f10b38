"""Where a model should not be trusted: every check of :mod:`trust` on one trial, task by task."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators import trust
from brokerlab.estimators.trial import Trial
from brokerlab.words import number

CHECKS = {
    "strata": "Strata of 200 jobs or more whose bound is missed more often than chance allows",
    "drift": "Tasks in which misses of the bound come in runs",
    "bets": "Tasks in which bets against the expected distribution win",
    "scouts": "Tasks whose scouts are unlike the rest, per core",
    "outside": "Jobs outside what was learnt, by {feature}",
}
UNTRIED = "Jobs of queues, kinds and sizes that nobody ran so far: nothing here was tested on them."
NEEDED = ("queue", "cores", "kind", "events", "input_mb", "corepower", "requested")
"""Features by which jobs can be unlike those learnt from."""


@dataclass(frozen=True, kw_only=True)
class Doubts:
    """What the checks of one model showed."""

    model: str  # its name
    level: float  # of the bounds that were checked
    strata: pl.DataFrame  # coverage of every stratum of 200 jobs: `trust.coverage_by`
    # one row per task: ``jeditaskid, n, missed, p, verdict`` of `trust.largest_deviation` of the bound as
    # it is promised (null: nowhere in the task), ``log10_largest, bet`` of `trust.bet_against` of what
    # the model expects
    tasks: pl.DataFrame
    # `trust.scouts_against_rest` per core; no row where no task has scouts that are marked
    scouts: pl.DataFrame
    # `trust.support`, with ``jeditaskid`` in front; null: all tasks together
    support: pl.DataFrame

    @property
    def by_task(self) -> pl.DataFrame:
        """``tasks`` with ``scouts`` (verdict; null: not marked) and ``exceeds`` beside them, the clearest evidence first."""
        scouts = self.scouts.select("jeditaskid", "exceeds", scouts="verdict")
        both = self.tasks.join(scouts, on="jeditaskid", how="left", maintain_order="left")
        return both.with_columns(missed_share=pl.col("missed") / pl.col("n")).sort(
            "log10_largest", "jeditaskid", descending=[True, False]
        )

    @property
    def failures(self) -> pl.DataFrame:
        """One row per check that failed somewhere.

        ``check``: ``strata`` (missed more often than chance allows), ``drift`` (misses come in runs), ``bets`` (unlike the
        expected distribution), ``scouts`` (unlike the rest of their task), ``outside`` (of what was learnt, by ``feature``);
        ``failed`` and ``of``: strata, tasks or jobs; ``worst``: the worst of them, null: not told; ``doubt``: the check in words.
        """
        parts = self.strata.filter(pl.col("stratum_by") != "all")
        missed = parts.filter(verdict="misses too often").sort("coverage", "stratum")
        drift = self.tasks.filter(verdict="misses too often").sort("p", "jeditaskid")
        bets = self.tasks.filter(bet="not as expected").sort(
            "log10_largest", "jeditaskid", descending=[True, False]
        )
        scouts = self.scouts.filter(pl.col("verdict") != "alike").sort("p_adjusted", "jeditaskid")
        rows = [
            ("strata", None, missed.height, parts.height, _first(missed, "stratum")),
            (
                "drift",
                None,
                drift.height,
                self.tasks["verdict"].count(),
                _first(drift, "jeditaskid"),
            ),
            ("bets", None, bets.height, self.tasks.height, _first(bets, "jeditaskid")),
            ("scouts", None, scouts.height, self.scouts.height, _first(scouts, "jeditaskid")),
            *self._outside(),
        ]
        named = [(*row, CHECKS[row[0]].format(feature=row[1])) for row in rows]
        return pl.DataFrame(named, schema=_FAILURES, orient="row").filter(pl.col("failed") > 0)

    @property
    def sentences(self) -> list[str]:
        """Where the model should not be trusted; never nothing, for what was not seen is never safe."""
        failed = self.failures.select("doubt", "failed", "of", "worst").rows()
        lines = [
            f"{doubt}: {number(n)} of {number(of)}{f', such as {worst}' if worst else ''}."
            for doubt, n, of, worst in failed
        ]
        return [*lines, UNTRIED]

    def _outside(self) -> list[tuple[str, str, int, int, str | None]]:
        """Count the jobs outside of what was learnt, feature by feature, the largest share first."""
        needed = self.support.filter(pl.col("feature").is_in(NEEDED))
        unlike = needed.filter(pl.col("verdict") != "learnt")
        jobs = unlike.group_by("feature").agg(pl.col("outside").sum())
        counts = needed.group_by("feature").agg(pl.col("n").sum()).join(jobs, on="feature")
        share = pl.col("outside") / pl.col("n")
        ordered = counts.sort(share, "feature", descending=[True, False])
        return [
            ("outside", feature, outside, n, None)
            for feature, n, outside in ordered.select("feature", "n", "outside").iter_rows()
        ]


_FAILURES = {
    **dict.fromkeys(("check", "feature"), pl.String),
    **dict.fromkeys(("failed", "of"), pl.Int64),
    **dict.fromkeys(("worst", "doubt"), pl.String),
}


def _first(frame: pl.DataFrame, column: str) -> str | None:
    return str(frame[column][0]) if frame.height else None


def check_model(
    trial: Trial, model: str, learnt: Callable[[int | None], pl.DataFrame], *, by_task: bool
) -> Doubts:
    """Check a model on the jobs of a trial that are no scouts."""
    judged = trial.production
    which = judged["jeditaskid"].unique(maintain_order=True).to_list() if by_task else [None]
    supports = [
        trust.support(
            learnt(task), judged if task is None else judged.filter(jeditaskid=task)
        ).select(pl.lit(task, dtype=pl.Int64).alias("jeditaskid"), pl.all())
        for task in which
    ]
    return Doubts(
        model=model,
        level=trial.comparison.level,
        strata=trial.comparison.strata.filter(estimator=model),
        tasks=_check_tasks(trial, model),
        scouts=_scouts(trial.records),
        support=pl.concat(supports),
    )


def _check_tasks(trial: Trial, model: str) -> pl.DataFrame:
    """Look for runs of misses of the bound, and bet against the expected distribution, in each task with finished jobs."""
    predicted, held, level = trial.predicted[model], trial.held[model], trial.comparison.level
    finished = trial.production.filter(~pl.col("censored"))
    rows = []
    for (task,), part in finished.group_by("jeditaskid", maintain_order=True):
        drift: dict[str, Any] = {}
        with suppress(InsufficientDataError):  # no bound is promised in it
            drift = trust.largest_deviation(part, held, level).row(0, named=True)
        bet = trust.bet_against(part, predicted).row(0, named=True)
        rows.append(
            {
                "jeditaskid": task,
                **{name: drift.get(name) for name in ("n", "missed", "p", "verdict")},
                "log10_largest": bet["log10_largest"],
                "bet": bet["verdict"],
            }
        )
    kinds = {"p": pl.Float64, "log10_largest": pl.Float64, "verdict": pl.String, "bet": pl.String}
    whole = dict.fromkeys(("jeditaskid", "n", "missed"), pl.Int64)
    columns = ("jeditaskid", "n", "missed", "p", "verdict", "log10_largest", "bet")
    return pl.DataFrame(rows, schema={name: {**whole, **kinds}[name] for name in columns})


def _scouts(records: pl.DataFrame) -> pl.DataFrame:
    """Compare scouts with the rest of their task, per core; no row where none are marked."""
    try:
        return trust.scouts_against_rest(records, per_core=True)
    except InsufficientDataError:
        columns = {"jeditaskid": pl.Int64, "exceeds": pl.Float64, "p_adjusted": pl.Float64}
        return pl.DataFrame(schema={**columns, "verdict": pl.String})
