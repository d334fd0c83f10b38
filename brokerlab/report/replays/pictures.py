"""The charts that reports of replayed brokerages share: their frames, and titles that say what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import altair as alt
import polars as pl

from brokerlab.charts import brokerage as charts
from brokerlab.charts import theme
from brokerlab.report.content import Picture
from brokerlab.report.replays.removal import CANDIDATE
from brokerlab.report.replays.rulesets import RuleSets
from brokerlab.report.replays.settings import Settings
from brokerlab.report.replays.words import of, value_of
from brokerlab.words import listed, number, percent, thin

Drawn = tuple[alt.TopLevelMixin, str]
"""A chart and its finding."""
REASONS_SHOWN = 8
"""Where jobs ran that the replay would not have sent there: reasons shown."""
COLUMNS_SHOWN = 6
"""Reasons in a table of reasons."""
KEYS_SHOWN = 10
"""Keys whose curves are drawn, those that matter most."""

S = TypeVar("S")


def draw(
    study: S, drawers: Mapping[str, Callable[[S], Drawn | None]], folder: Path
) -> dict[str, Picture]:
    """Draw every chart that a study has numbers for, and save it.

    Args:
        study: The study.
        drawers: Chart to what draws it.
        folder: Where the charts go.

    Returns:
        Pictures by chart.
    """
    pictures = {}
    for name, drawer in drawers.items():
        drawn = drawer(study)
        if drawn is not None:
            theme.save(drawn[0], folder, name)
            pictures[name] = Picture(chart=name, alt=drawn[1])
    return pictures


def over_time(
    by_time: pl.DataFrame, order: Sequence[str], *, step: str, whole: str, sample: str
) -> Drawn | None:
    """Draw how parts of a whole change with time.

    Args:
        by_time: `shares` by ``time``.
        order: The parts, in order.
        step: day or week.
        whole: What they are parts of, such as pairs.
        sample: Subtitle.
    """
    if by_time.is_empty():
        return None
    frame = by_time.sort("time").rename({"part": "check"})
    place = pl.DataFrame({"check": order}).with_row_index("place")
    frame = frame.join(place, on="check").sort("place", "time")
    sure = frame.filter(pl.col("lo").is_not_null())  # a day with one task says little of the day
    spread = (
        (sure if sure.height else frame)
        .group_by("check")
        .agg(low=pl.col("share").min(), high=pl.col("share").max())
    )
    row = spread.sort(pl.col("high") - pl.col("low"), "check", descending=[True, False]).row(
        0, named=True
    )
    finding = thin(
        f"{row['check']} changes most: from {percent(row['low'])} to {percent(row['high'])} of the {whole} of a {step}"
    )
    chart = charts.over_time_chart(
        frame, finding=finding, sample=sample, share_title=f"[% of {whole}]"
    )
    return chart, finding


def reasons(
    frame: pl.DataFrame, level: str, levels: list[str], *, order: Sequence[str], beyond: str, whole: str, sample: str
) -> Drawn | None:  # fmt: skip
    """Draw the shares of the largest reasons among some levels.

    Args:
        frame: `shares` by ``level``.
        level: Its column of levels, such as ``gshare``.
        levels: Those shown, in order.
        order: All reasons, in order.
        beyond: The reason of queues beyond the best ten, which is shown always.
        whole: What the shares are of, such as pairs.
        sample: Subtitle.
    """
    rows = frame.filter(pl.col(level).is_in(levels))
    if rows.is_empty():
        return None
    totals = (
        rows.filter(~pl.col("part").is_in([CANDIDATE, beyond]))
        .group_by("part")
        .agg(pl.col("total").sum())
    )
    biggest = totals.sort("total", "part", descending=[True, False])["part"]
    columns = [name for name in order if name in (*biggest.head(COLUMNS_SHOWN), beyond, CANDIDATE)]
    places = (
        pl.DataFrame({level: levels}).with_row_index("y"),
        pl.DataFrame({"part": columns}).with_row_index("x"),
    )
    shown = rows.join(places[0], on=level).join(places[1], on="part").sort("y", "x")
    table = shown.select(level=level, check="part", share="share")
    passed = rows.filter(pl.col("part") == CANDIDATE).sort("share", level)
    low, high = passed.row(0, named=True), passed.row(-1, named=True)
    finding = thin(
        f"Candidates in {percent(low['share'])} of the {whole} of {low[level]}, in {percent(high['share'])} of {high[level]}"
        if len(passed) > 1
        else f"Candidates in {percent(low['share'])} of the {whole} of {low[level]}"
    )
    chart = charts.reasons_chart(
        table, finding=finding, sample=sample, share_title=f"[% of {whole}]"
    )
    return chart, finding


def history(
    agreement: pl.DataFrame, against: pl.DataFrame, *, beyond: str, when: str
) -> Drawn | None:
    """Draw where jobs ran, by what the replay says of the queue.

    Args:
        agreement: From `history.agreement`.
        against: From `history.against`.
        beyond: The reason of queues beyond the best ten.
        when: Days of the brokerages.
    """
    candidate = agreement.filter(pl.col("part") == "candidate")
    if candidate.is_empty():
        return None
    rows = pl.concat([candidate, against.head(REASONS_SHOWN)])
    chance = value_of(agreement, "by_chance")
    finding = thin(
        f"{of(agreement, 'candidate')} of the jobs ran at a candidate; by chance it would be {percent(chance)}"
    )
    sample = (
        f"{when}: {number(candidate['whole'][0])} jobs of {candidate['n_tasks'][0]} tasks; bars: 95 % intervals "
        "over tasks. Other lines: what the replay says against the queue. Grey tick: queues drawn at random."
    )
    name = pl.col("part").replace(beyond, f"{beyond}: beyond the best ten")
    chart = charts.history_chart(
        rows.select("share", "lo", "hi", name=name), chance=chance, finding=finding, sample=sample
    )
    return chart, finding


def settings(found: Settings, *, sample: str, what: str) -> Drawn | None:
    """Draw the curves of the keys that matter most.

    Args:
        found: The settings tried.
        sample: What they were tried on.
        what: What the curves are shares of.
    """
    keys = found.keys.head(KEYS_SHOWN)
    if keys.is_empty():
        return None
    place = keys.select("key").with_row_index("place")
    frame = found.curves.join(place, on="key").sort("place", "value")
    frame = frame.with_columns(pl.col("current").fill_null(pl.col("value").max().over("key")))
    worth = found.keys.filter("worth")["key"].to_list()
    top = keys.row(0, named=True)
    finding = thin(
        f"Worth calibrating: {listed(worth[:4])}{' and others' if len(worth) > 4 else ''}"
        if worth
        else f"Most moves with {top['key']}: {percent(top['shift'], top['lo'], top['hi'])}; halved or doubled, none moves 1 % beyond doubt"
    )
    words = (
        f"{sample}. Blue: {what} that goes elsewhere at another value; grey dashes: current value."
    )
    chart = charts.sensitivity_chart(
        frame.select("key", "unit", "value", "current", "scale", "lo", "hi", share=pl.col("shift").fill_null(0)),
        finding=finding, sample=words, share_title="elsewhere [%]",
    )  # fmt: skip
    return chart, finding


def rule_sets(found: RuleSets, *, sample: str) -> Drawn | None:
    """Draw the most frequent changes between the rule sets."""
    if found.by_check.is_empty():
        return None
    top = found.by_check.row(0, named=True)
    finding = thin(
        f"{of(found.totals, 'pairs')} of the pairs are decided otherwise, most often {top['part']}"
    )
    frame = found.by_check.select("share", "lo", "hi", name="part")
    words = f"{sample}. {found.current} → {found.other} rules."
    chart = charts.differences_chart(
        frame, finding=finding, sample=words, difference_title="pairs decided otherwise [%]"
    )
    return chart, finding
