"""Who gains and who loses: the levels of each stratum, and the cells that tables share."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.calibrate.backtest import Setting
from brokerlab.calibrate.strata import NO_LEVEL
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.scout_percentiles.sentences import (
    limit_words,
    other_name,
    setting_words,
)
from brokerlab.report.scout_percentiles.study import Study
from brokerlab.words import decimals_for, percent, plural

STRATUM_NAMES = {
    "processingtype": "processing type",
    "gshare": "gshare",
    "cores": "cores",
    "n_scouts": "scouts used",
}
LEVELS_SHOWN = 5
"""Levels of a stratum on the page, those with most jobs; all that lose and the worst are always among them."""
MIN_LEVEL_TASKS = 5
"""Levels with fewer tasks are not called the worst."""
SPLITS = ("processingtype", "gshare", "cores")
"""Strata of which two may be the same split of the tasks under two names."""


def by_level(study: Study) -> pl.DataFrame:
    """Join what the proof says of each level with the exceed rates of both settings.

    Returns:
        ``stratum, level, n_tasks, n_scored, before, before_lo, before_hi, after, after_lo, after_hi``
        (exceed rates), ``loss_diff, loss_diff_lo, loss_diff_hi, verdict``; worst first in each stratum.
    """
    keys = ["stratum", "level"]
    sides = [
        at_setting(study.late.by_stratum, setting).select(
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


def repeated(by_task: pl.DataFrame) -> dict[str, str]:
    """Find strata that divide the tasks exactly as an earlier one does.

    Args:
        by_task: Of a back-test.

    Returns:
        The stratum to leave out -> the one that says the same.
    """
    tasks, found = by_task.unique("jeditaskid"), dict[str, str]()
    for place, later in enumerate(SPLITS):
        for earlier in SPLITS[:place]:
            pairs = tasks.select(earlier, later).unique().height
            if pairs == tasks[earlier].n_unique() == tasks[later].n_unique():
                found.setdefault(later, earlier)
    return found


def distinct_levels(study: Study) -> pl.DataFrame:
    """Return `by_level` without strata that repeat another."""
    again = list(repeated(study.late.by_task))
    return by_level(study).filter(~pl.col("stratum").is_in(again))


def _repetition(study: Study, shown: pl.DataFrame) -> str:
    """Say which strata are left out because they repeat another, and what their levels are called."""
    tasks, words = study.late.by_task.unique("jeditaskid"), []
    for later, earlier in repeated(study.late.by_task).items():
        levels = shown.filter(pl.col("stratum") == earlier)["level"].to_list()
        names = dict(
            tasks.select(pl.col(earlier, later).cast(pl.String).fill_null(NO_LEVEL)).iter_rows()
        )
        pairs = ", ".join(f"{level} is {names[level]}" for level in levels)
        words.append(
            f"{STRATUM_NAMES[later]} divides these tasks as {STRATUM_NAMES[earlier]} does and is not "
            f"repeated: {pairs}. "
        )
    return "".join(words)


def above_limit(study: Study, levels: pl.DataFrame) -> str:
    """Name the levels in which the chosen setting kills more than the limit; nothing where none was chosen."""
    limit = study.choice.max_exceed
    # the only level of a stratum is all tasks: said already
    over = levels.filter(pl.len().over("stratum") > 1).filter(pl.col("after") > limit)
    if not study.chosen or over.is_empty():
        return ""
    large = over.filter(pl.col("n_tasks") >= MIN_LEVEL_TASKS)
    words = [
        f"{STRATUM_NAMES[row['stratum']]} {row['level']}, "
        f"{percent(row['after'], row['after_lo'], row['after_hi'])}"
        f"{', beyond doubt' if row['after_lo'] > limit else ''}"
        for row in large.iter_rows(named=True)
    ]
    small = over.height - large.height
    if small:
        words.append(
            f"{small} {plural(small, 'level')} of fewer than {MIN_LEVEL_TASKS} tasks (in the tables)"
        )
    return (
        f"Under {setting_words(study.parameter, study.chosen)} kills are above the limit of "
        f"{limit_words(limit)} of jobs in: {'; '.join(words)}."
    )


def worst_level(levels: pl.DataFrame) -> dict[str, Any] | None:
    """Return the level with most kills under the second setting; None if all are too small."""
    large = (pl.col("n_tasks") >= MIN_LEVEL_TASKS) & (pl.col("stratum") != "n_scouts")
    rows = levels.filter(large).sort("after", "n_scored", descending=True, maintain_order=True)
    return rows.row(0, named=True) if rows.height else None


def shown_levels(levels: pl.DataFrame, most: int = LEVELS_SHOWN) -> pl.DataFrame:
    """Keep the levels of each stratum with most jobs, all that lose, and the worst of all, in their order."""
    size = pl.col("n_scored").rank("ordinal", descending=True).over("stratum")
    keep = (size <= most) | (pl.col("verdict") == "loses")
    worst = worst_level(levels)
    if worst is not None:
        keep |= (pl.col("stratum") == worst["stratum"]) & (pl.col("level") == worst["level"])
    return levels.filter(keep)


def gains(study: Study, levels: pl.DataFrame) -> Table:
    """Lay out who gains and who loses."""
    worst = worst_level(levels)
    shown = shown_levels(levels)
    rows = [_level(row, worst) for row in shown.iter_rows(named=True)]
    missing = levels.height - shown.height
    left_out = f"In the tables: {missing} smaller {plural(missing, 'level')}. " if missing else ""
    judged = shown["loss_diff_lo"].is_not_null().sum()
    return Table(
        name=f"{study.parameter.name}_gains",
        caption=f"Kills and stated loss by stratum, {'proof period' if study.divided else 'all tasks'}",
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
            f"there are fewer than ten tasks. {judged} verdicts at 95 % each, not corrected for their number: "
            "where nothing changes, about one in 20 gains or loses by chance. "
            f"{_repetition(study, shown)}"
            f"{left_out}"
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
            "loss": loss_difference(row),
            "verdict": "no change" if round(row["loss_diff"], 4) == 0 else row["verdict"],
        },
        note="worst" if is_worst else "",
    )


def loss_difference(row: dict[str, Any]) -> Num:
    """Return the difference of the loss."""
    ends = row["loss_diff"], row["loss_diff_lo"], row["loss_diff_hi"]
    return Num(value=ends[0], lo=ends[1], hi=ends[2], decimals=loss_decimals(decimals_for(*ends)))


def loss_decimals(supported: int) -> int:
    """Return the decimals of a loss: three as in the verdict, or four.

    A ten-thousandth of the work is nothing to decide on.
    """
    return min(4, max(3, supported))


def share(value: float, low: float, high: float) -> Num:
    """Return a share as per cent, with one decimal at least: limits are stated in per cent."""
    centre, lower, upper = 100 * value, 100 * low, 100 * high
    places = max(1, decimals_for(centre, lower, upper))
    return Num(value=centre, lo=lower, hi=upper, decimals=places)


def at_setting(frame: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    """Keep the rows of one setting."""
    return frame.filter((pl.col("rank") == setting[0]) & (pl.col("margin_pct") == setting[1]))
