"""The charts of the memory-estimator report: their frames, and titles that say what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from brokerlab.charts import estimators as shared_charts
from brokerlab.charts import memory as charts
from brokerlab.estimators.allocation.priced import PRICE
from brokerlab.estimators.learners import MODEL
from brokerlab.estimators.memory_tasks import OTHER_MARGINS, OURS
from brokerlab.estimators.trial import Trial
from brokerlab.report.content import Picture
from brokerlab.report.estimates import CLOCKS
from brokerlab.report.memory_estimator import jobs_sentences, traces_sentences
from brokerlab.report.memory_estimator.jobs import JobStudy
from brokerlab.report.memory_estimator.study import Study
from brokerlab.report.page import together
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.pictures import Drawn
from brokerlab.words import thin

ANSWERED = 0.999
"""Settings without an answer for more jobs than that are not drawn."""
FAR = 3.0
"""Settings that allocate more times the rule's over-allocation are not drawn."""
LIMIT = "limit"


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.

    Returns:
        Pictures by chart.
    """
    drawers: dict[str, Callable[[Study], Drawn | None]] = {
        "ratios": ratios,
        "frontier_tasks": lambda found: frontier(found.tasks),
        "frontier_archive": lambda found: frontier(found.archive),
        "known_archive": lambda found: known(found.archive),
    }
    return shared.draw(study, drawers, folder)


def ratios(study: Study) -> Drawn | None:
    """Draw what every method wastes on traces over the best peer."""
    found = study.traces
    if found is None:
        return None
    finding = traces_sentences.finding(found)
    frame = found.ratios.rename({"ratio_lo": "lo", "ratio_hi": "hi"})
    chart = charts.ratios_chart(
        frame,
        target=traces_sentences.TARGET,
        finding=finding,
        sample=traces_sentences.sample(found),
    )
    return chart, finding


def frontier(study: JobStudy | None) -> Drawn | None:
    """Draw how often jobs exceed against what is allocated for nothing, for every setting of every estimator."""
    if study is None:
        return None
    curves = pl.concat(
        _curves(trial).select(pl.lit(f"decided {CLOCKS[at]}").alias("panel"), pl.all())
        for at, trial in study.trials.items()
    )
    finding = together(jobs_sentences.finding(dict(study.trials)))
    sent = max(float(curves.filter(named=True)["exceed"].max() or 0.0), 0.05)  # type: ignore[arg-type]
    chart = shared_charts.frontier_chart(
        curves,
        over_title="allocated for nothing [% of use]",
        exceed_title="jobs above their allocation [%]",
        finding=finding,
        sample=jobs_sentences.sample(study),
        most_exceed=min(0.5, 1.1 * sent),
    )
    return chart, finding


def _curves(trial: Trial) -> pl.DataFrame:
    """Return every setting as a point of a line, and the limit."""
    columns = {"exceed": "exceed_task_mean", "over": "over_allocation_task_mean"}
    answered = trial.curves.filter(pl.col("answered") >= ANSWERED)
    settings = answered.select("estimator", "setting", **{k: pl.col(v) for k, v in columns.items()})
    roles = {
        trial.comparison.reference: "deployed",
        OTHER_MARGINS: "deployed",
        OURS: "ours",
        **dict.fromkeys(trial.models, "model"),
    }
    points = settings.with_columns(
        role=pl.col("estimator").replace_strict(roles, default="rule", return_dtype=pl.String)
    ).filter(pl.col("over") < FAR * trial.deployed["over_allocation_task_mean"])
    price = pl.col("setting") == PRICE
    level = pl.col("setting") == trial.comparison.level
    named = (
        pl.when(pl.col("estimator") == OURS)
        .then(price)
        .when(pl.col("role") == "model")
        .then(level)
        .otherwise(pl.col("estimator") != OTHER_MARGINS)
    )
    limit = trial.limits.select(
        estimator=pl.lit(LIMIT), exceed=pl.col("exceed"), over=pl.col("over_allocation"),
        role=pl.lit("limit"), named=pl.int_range(pl.len()) == 0,
    )  # fmt: skip
    names = ["estimator", "role", "exceed", "over", "named"]
    return pl.concat([points.with_columns(named=named).select(names), limit.select(names)])


def known(study: JobStudy | None) -> Drawn | None:
    """Draw coverage by how many finished jobs of the task were known; with hundreds of tasks only."""
    if study is None:
        return None
    trial = study.trials.get("start", study.main)
    rows = trial.comparison.by_scouts.filter(
        pl.col("estimator").is_in(trial.models), pl.col("level") == trial.comparison.level
    )
    shown = rows.sort("known_least").select(
        pl.col("known").str.replace("-", " to ").str.replace(r"\+", " or more"),
        "estimator",
        pl.when(pl.col("estimator") == MODEL).then(pl.lit("ours")).otherwise(pl.lit("model")).alias("role"),
        "coverage",
        lo="cluster_lo",
        hi="cluster_hi",
    )  # fmt: skip
    if shown.is_empty():
        return None
    finding = together(jobs_sentences.coverage_finding(trial, MODEL))
    said = f"n = {jobs_sentences.whose(study)}, decided {CLOCKS[trial.at]}. Bounds of {100 * trial.comparison.level:g} %; 95 % intervals over tasks."
    chart = shared_charts.coverage_chart(
        shown, level=trial.comparison.level, finding=finding, sample=thin(said)
    )
    return chart, finding
