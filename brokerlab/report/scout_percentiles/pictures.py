"""The charts of the scout percentile report: their frames, and titles that say what was found."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import numpy as np
import polars as pl

from brokerlab.calibrate.backtest import Backtest, Setting
from brokerlab.calibrate.finite_sample import percentile_coverage
from brokerlab.calibrate.gap import gap_summary
from brokerlab.charts import scouts as charts
from brokerlab.charts import theme
from brokerlab.report.content import Picture
from brokerlab.report.scout_percentiles import sentences as say
from brokerlab.report.scout_percentiles.promises import reach
from brokerlab.report.scout_percentiles.strata import (
    MIN_LEVEL_TASKS,
    STRATUM_NAMES,
    distinct_levels,
    shown_levels,
    worst_level,
)
from brokerlab.report.scout_percentiles.study import Study
from brokerlab.words import number, percent

TYPES_SHOWN = 8
"""Processing types in the chart of scouts against the rest, those with most tasks."""
CURVE_POINTS = 200
Drawn = tuple[alt.TopLevelMixin, str]
"""A chart and its finding."""


def sample(tried: Backtest, period: str) -> str:
    """Say what a chart is made from."""
    jobs, tasks = number(tried.counts["n_scored"]), number(tried.n_tasks)
    return f"{period}: {tasks} tasks, {jobs} jobs; bars: 95 % intervals over tasks"


def draw(study: Study, folder: Path, *, choice_days: str, proof_days: str) -> dict[str, Picture]:
    """Draw every chart of a parameter and save it.

    Args:
        study: The parameter's study.
        folder: Where the charts go.
        choice_days: Days of the calibration period.
        proof_days: Days of the proof period.

    Returns:
        Pictures by chart: frontier, strata, coverage, spread, gap, and effects where a setting
        was chosen.
    """
    calibration = f"Calibration period, {choice_days}" if study.divided else "All tasks"
    early = sample(study.early, calibration)
    late = sample(study.late, say.proof_name(study, proof_days))
    drawn: dict[str, Drawn] = {
        "frontier": frontier(study, early),
        "strata": strata(study, late),
        "coverage": coverage(study, late),
        "spread": spread(study, late),
        "gap": gap(study, late),
    }
    if study.chosen:
        drawn["effects"] = effects(study, late)
    pictures = {}
    for name, (chart, finding) in drawn.items():
        stem = f"{study.parameter.name}_{name}"
        theme.save(chart, folder, stem)
        pictures[name] = Picture(chart=stem, alt=finding)
    return pictures


def settings_shown(study: Study) -> dict[str, Setting]:
    """Return the settings that charts name: the current one, and the chosen one if there is one."""
    chosen = {"proposed": study.chosen} if study.chosen else {}
    return {"current": study.proof.current, **chosen}


def frontier(study: Study, words: str) -> Drawn:
    """Draw waste against kills for every setting."""
    amount = study.parameter.amount
    wasted = pl.col(f"over_{amount}") + pl.col(f"waste_{amount}")
    frame = study.early.by_setting.with_columns(waste_pct=100 * wasted / pl.col(f"used_{amount}"))
    name = pl.lit(None, pl.String)
    for setting, (rank, margin) in settings_shown(study).items():
        here = (pl.col("rank") == rank) & (pl.col("margin_pct") == margin)
        name = pl.when(here).then(pl.lit(setting)).otherwise(name)
    doubt = "" if study.kind == "change" else ", not proven"
    labels = [
        say.setting_words(study.parameter, pair) + (doubt if pair == study.chosen else "")
        for pair in frame.select("rank", "margin_pct").rows()
    ]
    frame = frame.sort("waste_pct", "exceed_rate").with_columns(
        frontier=pl.col("exceed_rate") < pl.col("exceed_rate").cum_min().shift(1).fill_null(2.0)
    )
    frame = frame.sort("rank", "margin_pct").select(
        "waste_pct",
        "exceed_rate",
        "exceed_lo",
        "exceed_hi",
        "frontier",
        setting=name,
        label=pl.Series(labels),
    )
    finding = _frontier_finding(study)
    chart = charts.frontier_chart(
        frame,
        limit=study.choice.max_exceed,
        finding=finding,
        sample=f"{words}. Dots: all settings; line: no other is better in both.",
        waste_title=f"{study.parameter.thing} reserved and not used, killed attempts included [% of used]",
    )
    return chart, finding


def _frontier_finding(study: Study) -> str:
    """Say in one sentence what waste against kills shows."""
    now = study.early.setting(*study.proof.current)
    limit = say.limit_words(study.choice.max_exceed)
    current = say.setting_words(study.parameter, study.proof.current)
    if study.chosen:
        then = study.early.setting(*study.chosen)
        chosen = say.setting_words(study.parameter, study.chosen)
        return (
            f"{chosen}: {percent(then['exceed_rate'])} of jobs killed; {current}: "
            f"{percent(now['exceed_rate'])}; limit: {limit}"
        ).capitalize()
    if not study.choice.candidates["meets_limit"].any():
        return f"No setting keeps kills within {limit} of jobs beyond doubt"
    return f"No setting within the limit of {limit} costs clearly less than {current}"


def effects(study: Study, words: str) -> Drawn:
    """Draw the differences on the proof period."""
    rows = study.proof.table.filter(
        pl.col("diff_pct_lo").is_not_null()
        & (pl.col("diff_pct_hi") > pl.col("diff_pct_lo"))
        & pl.col("quantity").ne("n_exceed")
    )
    frame = rows.select(
        quantity=pl.col("label").str.replace(" - ", " − ", literal=True),
        difference_pct="diff_pct",
        lo_pct="diff_pct_lo",
        hi_pct="diff_pct_hi",
    )
    text = f"{say.reserved_words(study)}, {say.kills_move(study)}"
    finding = f"{say.setting_words(study.parameter, study.other)}: {text}".capitalize()
    return charts.before_after_chart(frame, finding=finding, sample=words), finding


def strata(study: Study, words: str) -> Drawn:
    """Draw the exceed rate of each level."""
    levels = distinct_levels(study)
    sides = {"current": "before", "proposed": "after"}
    shown = shown_levels(_large(levels))
    frame = pl.concat(
        shown.select(
            "stratum",
            "level",
            "n_tasks",
            setting=pl.lit(setting),
            exceed_rate=side,
            exceed_lo=f"{side}_lo",
            exceed_hi=f"{side}_hi",
            place=pl.int_range(pl.len()),
        )
        for setting, side in sides.items()
        if setting in settings_shown(study)
    ).sort("place", "setting")
    frame = frame.with_columns(pl.col("stratum").replace(STRATUM_NAMES))
    worst = worst_level(levels)
    limit = study.choice.max_exceed
    side = "after" if study.chosen else "before"
    finding = "No level has enough tasks to be called the worst"
    if worst is not None:
        value = percent(worst[side], worst[f"{side}_lo"], worst[f"{side}_hi"])
        finding = f"Worst: {STRATUM_NAMES[worst['stratum']]} {worst['level']}, {value} of its jobs are killed"
    return charts.strata_chart(frame, limit=limit, finding=finding, sample=words), finding


def _large(levels: pl.DataFrame) -> pl.DataFrame:
    """Keep levels whose interval is not the whole axis; all of them if every one is small."""
    large = levels.filter(pl.col("n_tasks") >= MIN_LEVEL_TASKS)
    return large if large.height else levels


def coverage(study: Study, words: str) -> Drawn:
    """Draw the promised and the observed coverage by number of scouts."""
    rank, margin = study.proof.current
    levels = _large(
        study.late.by_stratum.filter(pl.col("stratum") == "n_scouts").with_columns(
            n_scouts=pl.col("level").cast(pl.Int64)
        )
    )
    shown = settings_shown(study) | ({"no margin": (rank, 0)} if margin else {})
    rows = []
    for setting, (at_rank, at_margin) in shown.items():
        here = (pl.col("rank") == at_rank) & (pl.col("margin_pct") == at_margin)
        for row in levels.filter(here).iter_rows(named=True):
            low, middle, high = percentile_coverage(row["n_scouts"], rank)
            rows.append(
                {
                    "n_scouts": row["n_scouts"],
                    "promised_lo": low,
                    "promised": middle,
                    "promised_hi": high,
                    "setting": setting,
                    "observed": 1 - row["exceed_rate"],
                    "observed_lo": 1 - row["exceed_hi"],
                    "observed_hi": 1 - row["exceed_lo"],
                }
            )
    frame = pl.DataFrame(rows).sort("n_scouts", "setting")
    now = study.late.setting(rank, margin)
    typical = levels.sort("n_tasks", "n_scouts")["n_scouts"][-1]
    finding = (
        f"{percent(1 - now['exceed_rate'])} of jobs stay within their request; rank {rank} alone of "
        f"{typical} scouts like the rest would promise {reach(typical, rank)}"
    )
    chart = charts.coverage_chart(
        frame, limit=study.choice.max_exceed, finding=finding, sample=words
    )
    return chart, finding


def spread(study: Study, words: str) -> Drawn:
    """Draw the distribution over tasks of request over use."""
    shares = np.linspace(0, 1, CURVE_POINTS + 1)
    parts, medians = [], {}
    for setting, (rank, margin) in settings_shown(study).items():
        here = (pl.col("rank") == rank) & (pl.col("margin_pct") == margin)
        ratios = 1 + study.late.by_task.filter(here)["headroom_mean"].to_numpy()
        medians[setting] = float(np.median(ratios))
        parts.append(
            pl.DataFrame(
                {"share_of_tasks": shares, "ratio": np.quantile(ratios, shares)}
            ).with_columns(setting=pl.lit(setting))
        )
    named = " and ".join(f"{value:.2f} ({name})" for name, value in medians.items())
    finding = f"Half of the tasks request at most {named} times what their jobs use"
    chart = charts.task_spread_chart(
        pl.concat(parts),
        finding=finding,
        sample=words.partition(";")[0],
        ratio_title="request over use, mean over the jobs of a task [1]",
    )
    return chart, finding


def gap(study: Study, words: str) -> Drawn:
    """Draw how scouts differ from the rest, in all and by processing type."""
    types = study.late.by_task.select("jeditaskid", "processingtype").unique("jeditaskid")
    joined = study.late.gap.join(types, on="jeditaskid").with_columns(
        pl.col("processingtype").fill_null("(none)")
    )
    groups = [("all tasks", study.late.gap)]
    largest = (
        joined["processingtype"]
        .value_counts()
        .sort("count", "processingtype", descending=[True, False])
    )
    groups += [
        (name, joined.filter(pl.col("processingtype") == name))
        for name in largest["processingtype"].head(TYPES_SHOWN)
    ]
    rows = []
    for level, tasks in groups:
        row = gap_summary(tasks).filter(pl.col("measure") == "ratio_median").row(0, named=True)
        percents = {
            key: None if row[part] is None else 100 * (row[part] - 1)
            for key, part in (("difference_pct", "ratio"), ("lo_pct", "lo"), ("hi_pct", "hi"))
        }
        rows.append({"level": level, "n_tasks": row["n_tasks"], **percents})
    finding = say.gap(study.late)
    chart = charts.gap_chart(
        pl.DataFrame(rows, infer_schema_length=None),
        finding=finding,
        sample=f"{words}; geometric mean over tasks of the ratio of medians",
    )
    return chart, finding
