"""The charts of the walltime-estimator report: their frames, and titles that say what was found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from brokerlab.charts import estimators as estimator_charts
from brokerlab.charts import walltime as charts
from brokerlab.estimators.allocation.priced import PRICE
from brokerlab.estimators.sources.source import At
from brokerlab.report.content import Picture
from brokerlab.report.estimates import CLOCKS
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.pictures import Drawn
from brokerlab.report.walltime_estimator import logs_sentences as of_logs
from brokerlab.report.walltime_estimator import power_sentences as of_power
from brokerlab.report.walltime_estimator import tasks_sentences as of_tasks
from brokerlab.report.walltime_estimator.logs import BOUND, LEVEL, MEDIAN
from brokerlab.report.walltime_estimator.study import Study
from brokerlab.report.walltime_estimator.tasks import CHEAPEST, FEW, OURS, TaskStudy
from brokerlab.words import percent, thin

PANELS = 4
"""Tasks and times that are drawn, those of most queues."""
ANSWERED = 0.9
"""Share of the jobs that a setting must give a limit to be drawn."""
FAR = 2.5
"""Settings that leave more times the deployed rule's unused limit are not drawn."""
SCOUTS = "PanDA scouts"
"""How the names of the deployed rule and its variants begin; the variants lie near it, and are in the tables."""
BOUNDS = "conformal"
"""Part of the names of simple rules that are bounds."""


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.

    Returns:
        Pictures by chart.
    """
    drawers: dict[str, Callable[[Study], Drawn | None]] = {
        "errors": errors,
        "misses": misses,
        "power": power,
    }
    for name in study.tasks:
        drawers[f"frontier_{name}"] = partial(frontier, part=name)
        drawers[f"known_{name}"] = partial(known, part=name)
    return shared.draw(study, drawers, folder)


def frontier(study: Study, part: str = "tasks") -> Drawn | None:
    """Draw how often jobs run into limits against what limits leave unused."""
    found = study.tasks.get(part)
    if found is None:
        return None
    finding = of_tasks.finding(found)
    chart = estimator_charts.frontier_chart(
        pl.concat([_curves(found, at) for at in found.trials]),
        over_title="limit above the run [% of run time]",
        exceed_title="jobs beyond their limit [%]",
        finding=finding,
        sample=of_tasks.sample(found),
    )
    return chart, finding


def _curves(found: TaskStudy, at: At) -> pl.DataFrame:
    """Return the curves of one clock, over all jobs; settings that leave jobs out are not drawn."""
    tried = found.trials[at]
    roles = {tried.comparison.reference: "deployed", CHEAPEST: "ours", OURS: "model"}
    alone = pl.col("setting").is_null().any().over("estimator")
    marked = {tried.comparison.reference: None, CHEAPEST: PRICE}
    at_mark = [
        (pl.col("estimator") == name) & pl.col("setting").eq_missing(pl.lit(setting))
        for name, setting in marked.items()
    ]
    drawn = tried.curves.filter(
        pl.col("answered") > ANSWERED,
        pl.col("over_allocation") < FAR * tried.deployed["over_allocation"],
        pl.col("estimator").is_in(list(roles)) | alone,
        (pl.col("estimator") == tried.comparison.reference)
        | ~pl.col("estimator").str.starts_with(SCOUTS),
    )
    lines = drawn.select(
        "estimator",
        role=pl.col("estimator").replace_strict(roles, default="rule"),
        exceed="exceed",
        over="over_allocation",
        named=pl.any_horizontal(*at_mark, ~pl.col("estimator").is_in(list(roles))),
    )
    limit = tried.limits_pooled.select(
        estimator=pl.lit("best limit per group"), role=pl.lit("limit"), exceed="exceed",
        over="over_allocation", named=pl.lit(value=False),
    )  # fmt: skip
    both = pl.concat([lines, limit])
    return both.select(pl.lit(CLOCKS[at].capitalize()).alias("panel"), pl.all())


def known(study: Study, part: str = "tasks") -> Drawn | None:
    """Draw how many jobs stay below their bound by how many of their task were known; not of a few tasks."""
    found = study.tasks.get(part)
    if found is None:
        return None
    at: At = "start" if "start" in found.trials else "submit"
    tried = found.trials[at]
    if tried.comparison.counts["tasks"] < FEW:
        return None
    level = tried.comparison.level
    wanted = [tried.comparison.reference, OURS]
    rows = tried.comparison.by_scouts.filter(
        pl.col("estimator").is_in(wanted), pl.col("level").is_null() | (pl.col("level") == level)
    ).drop_nulls("coverage")
    if rows.is_empty():
        return None
    words = pl.col("known").str.replace("-", " to ").str.replace("+", " or more", literal=True)
    frame = rows.sort("known_least", "estimator").select(
        words.alias("known"), "estimator", "coverage", lo="cluster_lo", hi="cluster_hi",
        role=pl.when(pl.col("estimator") == OURS).then(pl.lit("ours")).otherwise(pl.lit("deployed")),
    )  # fmt: skip
    mine = rows.filter(estimator=OURS).sort("coverage").row(0, named=True)
    finding = thin(
        f"Decided {CLOCKS[at]}, the {100 * level:g} % bound holds least with {mine['known'].replace('-', ' to ')} jobs known: "
        f"{percent(mine['coverage'])}"
    )
    sample = f"{of_tasks.size(found)}. Bars: 95 % intervals over tasks. Blue: hierarchy; grey: deployed rule."
    chart = estimator_charts.coverage_chart(frame, level=level, finding=finding, sample=sample)
    return chart, finding


def errors(study: Study) -> Drawn | None:
    """Draw the mean error of every guess on every log over that of the best simple rule."""
    found = study.logs
    if found is None:
        return None
    role = (
        pl.when(pl.col("method") == MEDIAN)
        .then(pl.lit("ours"))
        .when(pl.col("method") == pl.col("best_peer"))
        .then(pl.lit("best"))
        .otherwise(pl.lit("other"))
    )
    guesses = (pl.col("method") != BOUND) & ~pl.col("method").str.contains(BOUNDS)
    place = pl.DataFrame({"log": list(found.logs)}).with_row_index("place")
    rows = found.table.filter(guesses).join(place, on="log").sort("place", "ratio", "method")
    frame = rows.select("log", "method", role.alias("role"), "ratio", lo="ratio_lo", hi="ratio_hi")
    finding = of_logs.finding(found)
    return charts.errors_chart(frame, finding=finding, sample=of_logs.sample(found)), finding


def misses(study: Study) -> Drawn | None:
    """Draw how often bounds of the same level are exceeded."""
    found = study.logs
    if found is None:
        return None
    wanted = f"last two x {BOUNDS} {100 * LEVEL:g} %"
    rows = found.table.filter(pl.col("method").is_in([BOUND, wanted, "requested"]))
    rows = rows.with_columns(ours=pl.col("method") == BOUND)
    frame = rows.select(
        name=pl.col("log") + ": " + pl.col("method"),
        role=pl.when("ours").then(pl.lit("ours")).otherwise(pl.lit("other")),
        missed_pct=100 * pl.col("under"),
        lo=100 * pl.col("under_lo"),
        hi=100 * pl.col("under_hi"),
    )
    finding = of_logs.misses_finding(found)
    chart = charts.misses_chart(
        frame, promised_pct=100 * (1 - LEVEL), finding=finding,
        sample=f"{of_logs.sample(found)} Blue: ours; red dashes: what was promised.",
    )  # fmt: skip
    return chart, finding


def power(study: Study) -> Drawn | None:
    """Draw time per event against core power."""
    found = study.power
    if found is None or found.queues.is_empty():
        return None
    slopes = found.slopes.filter(pl.col("slope").is_not_null())
    chosen = slopes.sort("queues", "jeditaskid", "time", descending=[True, False, False]).head(PANELS)  # fmt: skip
    if chosen.is_empty():
        return None
    panel = pl.format("task {}, {} time", "jeditaskid", "time").alias("panel")
    queues = chosen.join(found.queues, on=["jeditaskid", "time"], maintain_order="left")
    frame = queues.select(panel, "queue", "corepower", jobs="jobs_right", factor=pl.col("per_event").exp())  # fmt: skip
    finding = of_power.finding(found)
    lines = pl.concat([_lines(rows) for _, rows in queues.group_by("jeditaskid", "time", maintain_order=True)])  # fmt: skip
    chart = charts.power_chart(
        frame, lines.select(panel, "kind", "corepower", "factor"), finding=finding, sample=of_power.sample(found)
    )  # fmt: skip
    return chart, finding


def _lines(rows: pl.DataFrame) -> pl.DataFrame:
    """Return two ends of the fitted line and of that of the rule, through the middle of the points."""
    x = np.log(rows["corepower"].to_numpy())
    ends = np.array([x.min(), x.max()])
    parts = [
        pl.DataFrame(
            {
                "jeditaskid": rows["jeditaskid"].head(1).extend_constant(rows["jeditaskid"][0], 1),
                "time": [rows["time"][0]] * 2,
                "kind": [kind] * 2,
                "corepower": np.exp(ends),
                "factor": np.exp(slope * (ends - x.mean())),
            }
        )
        for kind, slope in (("fitted", rows["slope"][0]), ("rule", -1.0))
    ]
    return pl.concat(parts)
