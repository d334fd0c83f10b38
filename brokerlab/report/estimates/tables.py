"""The tables of a trial: every estimator, at equal exceed rates, by what was known, by task and by stratum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.estimators.trial import Trial
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.estimates import CLOCKS
from brokerlab.words import number, thin

WASTE = {"memory": "GB h", "walltime": "core h"}


def overall(trial: Trial) -> Table:
    """Lay out every estimator: how often jobs exceed, what is allocated for nothing, what the retries cost."""
    table, reference = trial.comparison.table, trial.comparison.reference
    ratios = _paired(trial, "over_allocation_task_mean")
    rows = []
    for row in table.iter_rows(named=True):
        name, at = row["estimator"], row["level"]
        rows.append(
            Row(
                cells={
                    "estimator": name if at is None else f"{name}, {100 * at:g} %",
                    "exceed": _pct(row["exceed_task_mean"], 1),
                    "pooled": _pct(row["exceed"], 2),
                    "over": _pct(row["over_allocation_task_mean"], 1),
                    "over_pooled": _pct(row["over_allocation"], 1),
                    "change": "–" if name == reference else _change(ratios.get((name, at))),
                    "waste": _pct(row["waste_per_usage"], 1),
                },
                note=_note(trial, name),
            )
        )
    said = (
        ""
        if table["share_without"].max() == 0
        else " Jobs without an answer of an estimator are left out for it."
    )
    return Table(
        name=f"estimators_{trial.at}",
        caption=f"Every estimator, decided {CLOCKS[trial.at]}",
        columns=(
            Column(key="estimator", label="Estimator"),
            Column(key="exceed", label="Jobs above it", unit="%"),
            Column(key="pooled", label="all jobs", unit="%"),
            Column(key="over", label="For nothing", unit="% of use"),
            Column(key="change", label="against deployed", unit="%"),
            Column(key="over_pooled", label="all jobs", unit="% of use"),
            Column(key="waste", label="With retries", unit="% of use"),
        ),
        rows=tuple(rows),
        footnote=thin(
            f"{trial.comparison.counts['jobs']:,} jobs of {trial.comparison.counts['tasks']} tasks, their scouts not counted. "
            "Jobs above their allocation and what is allocated for nothing: means of tasks, and over all jobs. Models by the level "
            "of their bound. With retries, over all jobs: a killed attempt is lost for as long as the job ran, the "
            "next one gets the largest use seen of its task or twice as much, in " + WASTE[trial.quantity] + " over those used."
            + said + (" In brackets: least and most when one task is left out." if trial.comparison.counts["tasks"] < FEW else " In brackets: 95 % intervals over tasks.")
        ),
    )  # fmt: skip


FEW = 8
"""With fewer tasks an interval over tasks rests on hardly anything: the range without one of them is shown."""


def at_equal_exceed(trial: Trial, exceeds: Mapping[str, float]) -> Table:
    """Lay out every estimator at the setting that exceeds no more often than each of the named rules.

    Args:
        trial: The trial.
        exceeds: Name of a rule to its exceed rate, mean over tasks.
    """
    matched = {name: trial.matched(exceed) for name, exceed in exceeds.items()}
    over = {name: trial.comparison.row(name)["over_allocation_task_mean"] for name in exceeds}
    names = dict.fromkeys(name for part in matched.values() for name in part["estimator"])
    best = matched[next(iter(exceeds))]["estimator"].to_list()
    rows = []
    for name in sorted(names, key=lambda each: (best.index(each) if each in best else len(best), each)):  # fmt: skip
        cells: dict[str, Num | str | None] = {"estimator": name}
        for rule, part in matched.items():
            found = part.filter(estimator=name)
            row = found.row(0, named=True) if found.height else None
            cells |= _setting(rule, row, over[rule])
        rows.append(Row(cells=cells, note=_note(trial, name)))
    limits: dict[str, Num | str | None] = {"estimator": "best allocation per group (hindsight)"}
    for rule, exceed in exceeds.items():
        least = trial.limit(exceed)
        limits |= {f"{rule}_setting": "–", f"{rule}_over": _pct(least, 1), f"{rule}_change": Num(value=100 * (least / over[rule] - 1), decimals=0)}  # fmt: skip
    return Table(
        name=f"matched_{trial.at}",
        caption=f"Allocated for nothing at equal exceed rates, decided {CLOCKS[trial.at]}",
        columns=(
            Column(key="estimator", label="Estimator"),
            *(
                column
                for rule, exceed in exceeds.items()
                for column in (
                    Column(key=f"{rule}_setting", label=f"Setting, at most {number(100 * exceed, 1)} % above"),
                    Column(key=f"{rule}_over", label="for nothing", unit="% of use"),
                    Column(key=f"{rule}_change", label=f"against {rule}", unit="%"),
                )
            ),
        ),
        rows=(*rows, Row(cells=limits, note="limit")),
        footnote="Means over tasks. Each estimator at the setting (level of a bound, price of a failed attempt in uses of the "
        "job, margin) that allocates least for nothing and is exceeded no more often than the rule: chosen with hindsight, for "
        "all alike. The limit gives all jobs of a task, queue and number of cores one allocation and knows what they will use.",
    )  # fmt: skip


def _setting(rule: str, row: Mapping[str, Any] | None, over: float) -> dict[str, Num | str | None]:
    if row is None:
        return {f"{rule}_setting": "exceeds more often", f"{rule}_over": None, f"{rule}_change": None}  # fmt: skip
    found = row["over_allocation_task_mean"]
    return {
        f"{rule}_setting": "as it is" if row["setting"] is None else f"{row['setting']:g}",
        f"{rule}_over": _pct(found, 1),
        f"{rule}_change": Num(value=100 * (found / over - 1), decimals=0),
    }


def by_known(trial: Trial) -> Table:
    """Lay out coverage and over-allocation by how many finished jobs of the task were known."""
    level = trial.comparison.level
    shown = [trial.comparison.reference, *trial.models, *trial.policies]
    frame = trial.comparison.by_scouts.filter(_compared(trial), pl.col("estimator").is_in(shown))
    rows = [
        Row(
            cells={
                "estimator": row["estimator"],
                "known": row["known"].replace("-", " to ").replace("+", " and more"),
                "tasks": Num(value=row["tasks"], decimals=0),
                "jobs": Num(value=row["jobs"], decimals=0),
                "coverage": _pct(row["coverage"], 1, row["cluster_lo"], row["cluster_hi"]),
                "over": _pct(row["over_allocation"], 1),
            },
            note=_note(trial, row["estimator"]),
        )
        for row in frame.iter_rows(named=True)
    ]
    return Table(
        name=f"known_{trial.at}",
        caption=f"By finished jobs of the task that were known, decided {CLOCKS[trial.at]}",
        columns=(
            Column(key="estimator", label="Estimator"),
            Column(key="known", label="Known", unit="jobs"),
            Column(key="tasks", label="Tasks"),
            Column(key="jobs", label="Jobs"),
            Column(key="coverage", label="Within their bound", unit="%"),
            Column(key="over", label="Allocated for nothing", unit="% of use"),
        ),
        rows=tuple(rows),
        footnote=f"Models at their bound of {100 * level:g} %. In brackets: 95 % intervals over tasks; wide where few tasks have "
        "such jobs.",
    )


def strata(frame: pl.DataFrame, *, name: str, caption: str, level: float, most: int = 14) -> Table:
    """Lay out the strata whose coverage is furthest from the level, those outside their interval first.

    Args:
        frame: Of :func:`trust.coverage_by`.
        name: Of the table.
        caption: Of the table.
        level: Of the bound.
        most: Rows.
    """
    parts = frame.filter(pl.col("stratum_by") != "all")
    worst = pl.concat([frame.filter(stratum_by="all"), parts.sort("inside", "coverage", "stratum").head(most)])  # fmt: skip
    rows = [
        Row(
            cells={
                "stratum": "all jobs" if row["stratum_by"] == "all" else stratum_name(row),
                "n": Num(value=row["n"], decimals=0),
                "coverage": _pct(row["coverage"], 1),
                "allowed": f"{number(100 * row['lo'], 1)} to {number(100 * row['hi'], 1)}",
                "verdict": row["verdict"],
            },
            note="" if place == 0 or row["inside"] else "outside",
        )
        for place, row in enumerate(worst.iter_rows(named=True))
    ]  # fmt: skip
    return Table(
        name=name,
        caption=caption,
        columns=(
            Column(key="stratum", label="Stratum"),
            Column(key="n", label="Jobs"),
            Column(key="coverage", label="Within their bound", unit="%"),
            Column(key="allowed", label="Chance allows", unit="%"),
            Column(key="verdict", label="Verdict"),
        ),
        rows=tuple(rows),
        footnote=f"{parts.filter('inside').height} of {parts.height} strata of 200 jobs or more are inside what chance allows at "
        f"{100 * level:g} % (binomial, jobs independent; jobs of a task err together, so that even a right model leaves it more "
        "often). The lowest coverage first.",
    )


def stratum_name(row: Mapping[str, Any]) -> str:
    """Name a stratum in words.

    Example:
        >>> stratum_name({"stratum_by": "jeditaskid / cores", "stratum": "15350577 / 8"})
        'task 15350577, cores 8'
    """
    names = str(row["stratum_by"]).replace("jeditaskid", "task").split(" / ")
    values = str(row["stratum"]).split(" / ", maxsplit=len(names) - 1)
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=False))


def by_task(trial: Trial, ours: str, *, most: int = 12) -> Table:
    """Lay out each task under the deployed rule and under ours; the largest loss first."""
    tasks = trial.comparison.tasks.filter(_compared(trial))
    deployed = tasks.filter(estimator=trial.comparison.reference)
    mine = tasks.filter(estimator=ours).select("jeditaskid", *(pl.col(n).alias(f"our_{n}") for n in ("exceed", "over_allocation", "waste_per_usage")))  # fmt: skip
    both = deployed.join(mine, on="jeditaskid").with_columns(
        difference=pl.col("our_waste_per_usage") - pl.col("waste_per_usage")
    ).sort("difference", "jeditaskid", descending=[True, False], nulls_last=True)  # fmt: skip
    shown = (
        both
        if both.height <= most
        else pl.concat([both.head(most // 2), both.drop_nulls("difference").tail(most // 2)])
    )
    rows = [
        Row(
            cells={
                "task": str(row["jeditaskid"]),
                "jobs": Num(value=row["jobs"], decimals=0),
                "exceed": _pct(row["exceed"], 1),
                "our_exceed": _pct(row["our_exceed"], 1),
                "over": _pct(row["over_allocation"], 1),
                "our_over": _pct(row["our_over_allocation"], 1),
                "waste": _pct(row["waste_per_usage"], 1),
                "our_waste": _pct(row["our_waste_per_usage"], 1),
            },
            note="worst" if place == 0 and (row["difference"] or 0) > 0 else "",
        )
        for place, row in enumerate(shown.iter_rows(named=True))
    ]
    lost = both.filter(pl.col("difference") > 0).height
    return Table(
        name=f"tasks_{trial.at}",
        caption=f"Task by task, the deployed rule and {ours}, decided {CLOCKS[trial.at]}",
        columns=(
            Column(key="task", label="Task"),
            Column(key="jobs", label="Jobs"),
            Column(key="exceed", label="Above: deployed", unit="%"),
            Column(key="our_exceed", label="ours", unit="%"),
            Column(key="over", label="For nothing: deployed", unit="%"),
            Column(key="our_over", label="ours", unit="%"),
            Column(key="waste", label="With retries: deployed", unit="%"),
            Column(key="our_waste", label="ours", unit="%"),
        ),
        rows=tuple(rows),
        footnote=f"{lost} of {both.height} tasks waste more with ours, retries counted."
        + (f" Shown: the {most // 2} that lose most and the {most // 2} that gain most." if both.height > most else ""),
    )  # fmt: skip


def _compared(trial: Trial) -> pl.Expr:
    """Keep rules, and models at the level that is compared."""
    return pl.col("level").is_null() | (pl.col("level") == trial.comparison.level)


def _paired(trial: Trial, measure: str) -> dict[tuple[str, float | None], dict[str, Any]]:
    """Return the comparison with the deployed rule by estimator and level."""
    found = trial.comparison.paired.filter(measure=measure)
    return {(row["estimator"], row["level"]): row for row in found.iter_rows(named=True)}


def _change(row: Mapping[str, Any] | None) -> Num | str:
    """Return a ratio to the deployed rule as a change in per cent."""
    if row is None or row["ratio"] is None:
        return "–"
    value = 100 * (row["ratio"] - 1)
    of = "without" if row["few_tasks"] else "ratio"
    low, high = row[f"{of}_lo"], row[f"{of}_hi"]
    if low is None:
        return Num(value=value, decimals=0)
    return Num(value=value, lo=100 * (low - 1), hi=100 * (high - 1), decimals=0)


def _note(trial: Trial, name: str) -> str:
    if name == trial.comparison.reference:
        return "deployed"
    return "ours" if name in trial.policies else ""


def _pct(
    value: float | None, decimals: int, lo: float | None = None, hi: float | None = None
) -> Num:
    """Return a share as a cell in per cent."""
    share, low, high = (None if part is None else 100 * part for part in (value, lo, hi))
    return Num(value=share, lo=low, hi=high, decimals=decimals)
