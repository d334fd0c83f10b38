"""The tables of the scout percentile report."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.calibrate.backtest import Setting
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.format import decimals_for, number
from brokerlab.report.scout_percentiles.sentences import limit_words, setting_words
from brokerlab.report.scout_percentiles.study import Study

STRATUM_NAMES = {
    "processingtype": "processing type",
    "gshare": "gshare",
    "cores": "cores",
    "n_scouts": "scouts used",
}
LEVELS_SHOWN = 5
"""Levels of a stratum on the page, those with most jobs; the worst is always among them."""
MIN_LEVEL_TASKS = 5
"""Levels with fewer tasks are not called the worst."""


def other_name(study: Study) -> str:
    """Return what the second setting is called on the page."""
    if study.kind == "change":
        return "Proposed"
    return "Chosen, not proven" if study.chosen else "Best other"


def before_after(study: Study, days: str) -> Table:
    """Lay out the proof period: one line per quantity, both settings, the difference."""
    rows = []
    for line in study.proof.table.iter_rows(named=True):
        if line["before"] is None or line["after"] is None:
            continue
        share = line["unit"].startswith("share")
        unit = line["unit"].replace("share of", "% of").replace("share", "%")
        rows.append(
            Row(
                cells=_line(
                    line, 100.0 if share else 1.0, f"{line['label'].replace(' - ', ' − ')} [{unit}]"
                ),
                note=f"limit {limit_words(study.choice.max_exceed)}"
                if line["quantity"] == "exceed_rate"
                else "",
            )
        )
    return Table(
        name=f"{study.parameter.name}_before_after",
        caption=f"Proof period, {days}: {number(study.late.n_tasks)} tasks, {number(study.late.counts['n_scored'])} jobs",
        columns=(
            Column(key="quantity", label="Quantity"),
            Column(
                key="before",
                label="Current",
                unit=setting_words(study.parameter, study.proof.current),
            ),
            Column(
                key="after",
                label=other_name(study),
                unit=setting_words(study.parameter, study.other),
            ),
            Column(key="difference", label="Difference"),
            Column(key="relative", label="Relative", unit="%"),
        ),
        rows=tuple(rows),
        footnote=(
            "In brackets 95 % intervals, tasks as the unit of chance. Core h per core h of work: what the "
            "stated loss costs for each core-hour of useful work."
        ),
    )


def _line(line: dict[str, Any], factor: float, label: str) -> dict[str, Num | str | None]:
    """Return the cells of one quantity, all with the decimals that its difference supports."""

    def scaled(name: str) -> float | None:
        return None if line[name] is None else factor * line[name]

    difference, low, high = scaled("diff"), scaled("diff_lo"), scaled("diff_hi")
    moved = low is not None and high is not None and high > low
    places = decimals_for(difference, low, high) if moved else decimals_for(scaled("before"))
    bounds = ("_lo", "_hi") if line["quantity"] == "exceed_rate" else ("", "")

    def side(name: str) -> Num:
        ends = [scaled(f"{name}{end}") if end else None for end in bounds]
        return Num(value=scaled(name), lo=ends[0], hi=ends[1], decimals=places)

    return {
        "quantity": label,
        "before": side("before"),
        "after": side("after"),
        "difference": Num(value=difference, lo=low, hi=high, decimals=places),
        "relative": Num(value=line["diff_pct"], lo=line["diff_pct_lo"], hi=line["diff_pct_hi"])
        if moved
        else None,
    }


def by_level(study: Study) -> pl.DataFrame:
    """Join what the proof says of each level with the exceed rates of both settings.

    Returns:
        ``stratum, level, n_tasks, n_scored, before, before_lo, before_hi, after, after_lo, after_hi``
        (exceed rates), ``loss_diff, loss_diff_lo, loss_diff_hi, verdict``; worst first in each stratum.
    """
    keys = ["stratum", "level"]
    sides = [
        _at(study.late.by_stratum, setting).select(
            *keys,
            pl.col("exceed_rate").alias(name),
            pl.col("exceed_lo").alias(f"{name}_lo"),
            pl.col("exceed_hi").alias(f"{name}_hi"),
        )
        for name, setting in (("before", study.proof.current), ("after", study.other))
    ]
    losses = study.proof.by_stratum.select(
        *keys, "n_tasks", "n_scored", "loss_diff", "loss_diff_lo", "loss_diff_hi", "verdict"
    )
    joined = losses.join(sides[0], on=keys).join(sides[1], on=keys)
    place = {name: order for order, name in enumerate(STRATUM_NAMES)}
    return (
        joined.with_columns(place=pl.col("stratum").replace_strict(place, return_dtype=pl.Int64))
        .sort("place", "after", "n_scored", "level", descending=[False, True, True, False])
        .drop("place")
    )


def worst_level(levels: pl.DataFrame) -> dict[str, Any] | None:
    """Return the level with most kills under the second setting; None if all are too small."""
    large = (pl.col("n_tasks") >= MIN_LEVEL_TASKS) & (pl.col("stratum") != "n_scouts")
    rows = levels.filter(large).sort("after", "n_scored", descending=True, maintain_order=True)
    return rows.row(0, named=True) if rows.height else None


def shown_levels(levels: pl.DataFrame, most: int = LEVELS_SHOWN) -> pl.DataFrame:
    """Keep the levels of each stratum with most jobs, in their order."""
    size = pl.col("n_scored").rank("ordinal", descending=True).over("stratum")
    return levels.filter(size <= most)


def gains(study: Study, levels: pl.DataFrame) -> Table:
    """Lay out who gains and who loses."""
    worst = worst_level(levels)
    shown = shown_levels(levels)
    rows = [_level(row, worst) for row in shown.iter_rows(named=True)]
    missing = levels.height - shown.height
    return Table(
        name=f"{study.parameter.name}_gains",
        caption="Kills and stated loss by stratum on the proof period",
        columns=(
            Column(key="level", label="Stratum"),
            Column(key="tasks", label="Tasks"),
            Column(key="before", label="Kills, current", unit="% of jobs"),
            Column(key="after", label=f"Kills, {other_name(study).lower()}", unit="% of jobs"),
            Column(key="loss", label="Loss, difference", unit="core h per core h"),
            Column(key="verdict", label="Verdict"),
        ),
        rows=tuple(rows),
        footnote=(
            "Gains and loses: the 95 % interval of the loss lies on that side of 0; open: it does not, or "
            f"there are fewer than ten tasks. {f'{missing} smaller levels are in the tables. ' if missing else ''}"
            "Not split by queue class or user class: a request is made for a whole task."
        ),
    )


def _level(row: dict[str, Any], worst: dict[str, Any] | None) -> Row:
    """Return the line of one level."""
    kills = {
        side: share(row[side], row[f"{side}_lo"], row[f"{side}_hi"]) for side in ("before", "after")
    }
    is_worst = worst is not None and (row["stratum"], row["level"]) == (
        worst["stratum"],
        worst["level"],
    )
    return Row(
        cells={
            "level": f"{STRATUM_NAMES[row['stratum']]}: {row['level']}",
            "tasks": Num(value=row["n_tasks"], decimals=0),
            **kills,
            "loss": _loss(row),
            "verdict": "no change" if round(row["loss_diff"], 4) == 0 else row["verdict"],
        },
        note="worst" if is_worst else "",
    )


def periods(study: Study, choice_days: str, proof_days: str) -> Table:
    """Lay calibration and proof period side by side."""
    rows = []
    for label, tried in (
        (f"Calibration, {choice_days}", study.early),
        (f"Proof, {proof_days}", study.late),
    ):
        now, then = tried.setting(*study.proof.current), tried.setting(*study.other)
        rows.append(
            Row(
                cells={
                    "period": label,
                    "tasks": Num(value=tried.n_tasks, decimals=0),
                    "jobs": Num(value=tried.counts["n_scored"], decimals=0),
                    "before": _kills(now),
                    "after": _kills(then),
                    "loss": _loss(then),
                }
            )
        )
    return Table(
        name=f"{study.parameter.name}_periods",
        caption="Calibration and proof period side by side",
        columns=(
            Column(key="period", label="Period"),
            Column(key="tasks", label="Tasks"),
            Column(key="jobs", label="Jobs"),
            Column(key="before", label="Kills, current", unit="% of jobs"),
            Column(key="after", label=f"Kills, {other_name(study).lower()}", unit="% of jobs"),
            Column(key="loss", label="Loss, difference", unit="core h per core h"),
        ),
        rows=tuple(rows),
    )


def _kills(row: dict[str, Any]) -> Num:
    return share(row["exceed_rate"], row["exceed_lo"], row["exceed_hi"])


def _loss(row: dict[str, Any]) -> Num:
    """Return the difference of the loss; a ten-thousandth of the work is nothing to decide on."""
    ends = row["loss_diff"], row["loss_diff_lo"], row["loss_diff_hi"]
    return Num(value=ends[0], lo=ends[1], hi=ends[2], decimals=min(4, decimals_for(*ends)))


def share(value: float, low: float, high: float) -> Num:
    """Return a share as per cent, with one decimal at least: limits are stated in per cent."""
    centre, lower, upper = 100 * value, 100 * low, 100 * high
    places = max(1, decimals_for(centre, lower, upper))
    return Num(value=centre, lo=lower, hi=upper, decimals=places)


def weights(study: Study) -> Table:
    """Lay out the loss: each weight, why, and what its half and double would choose."""
    why = study.choice.weights.why(study.parameter.name)
    units = {"over": study.parameter.amount_unit, "n_exceed": "kill", "n_lost": "loss"}
    moved: dict[str, dict[float, str]] = {}
    for row in study.choice.sensitivity.iter_rows(named=True):
        words = setting_words(study.parameter, (row["rank"], row["margin_pct"]))
        moved.setdefault(row["weight"], {})[row["factor"]] = words
    rows = tuple(
        Row(
            cells={
                "weight": f"{name} [core h per {units.get(name, 'core h')}]",
                "value": f"{value:g}",
                "half": moved[name][0.5],
                "double": moved[name][2.0],
                "why": why[name],
            }
        )
        for name, value in study.choice.weights.to_dict().items()
    )
    return Table(
        name=f"{study.parameter.name}_weights",
        caption="The stated loss, and what the calibration period would choose with other weights",
        columns=(
            Column(key="weight", label="Weight"),
            Column(key="value", label="Value"),
            Column(key="half", label="With half of it"),
            Column(key="double", label="With twice of it"),
            Column(key="why", label="Why"),
        ),
        rows=rows,
    )


def conformal(study: Study) -> Table:
    """Lay the conformal rule beside the percentile rule, both on the calibration period."""
    now = study.early.setting(*study.proof.current)
    then = study.early.setting(*study.other)
    named = [("percentile, current", study.proof.current, now, None)]
    if study.other != study.proof.current:
        named.append((f"percentile, {other_name(study).lower()}", study.other, then, None))
    rows = [_rule(study, *entry) for entry in named]
    rows += [
        _rule(study, "conformal", (row["rank"], row["margin_pct"]), row, row["n_fallback"])
        for row in study.conformal.iter_rows(named=True)
    ]
    return Table(
        name=f"{study.parameter.name}_conformal",
        caption="The conformal rule beside the percentile rule, on the calibration period",
        columns=(
            Column(key="rule", label="Rule"),
            Column(key="promise", label="Setting"),
            Column(key="kills", label="Kills", unit="% of jobs"),
            Column(key="loss", label="Loss", unit="core h per core h"),
            Column(key="fallback", label="No promise", unit="tasks"),
        ),
        rows=tuple(rows),
        footnote=(
            "The conformal rule takes the scout value that promises a coverage whatever the distribution. No "
            "promise: tasks with too few scouts for it, where the largest stands in."
        ),
    )


def _rule(
    study: Study, rule: str, setting: Setting, row: dict[str, Any], fallback: int | None
) -> Row:
    words = setting_words(study.parameter, setting)
    if rule == "conformal":
        words = f"coverage {setting[0]} %"
        words += f", margin {setting[1]} %" if study.parameter.name != "outdiskcount" else ""
    return Row(
        cells={
            "rule": rule,
            "promise": words,
            "kills": _kills(row),
            "loss": Num(value=row["loss"], lo=row["loss_lo"], hi=row["loss_hi"]),
            "fallback": None if fallback is None else Num(value=fallback, decimals=0),
        }
    )


def _at(frame: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    """Keep the rows of one setting."""
    return frame.filter((pl.col("rank") == setting[0]) & (pl.col("margin_pct") == setting[1]))
