"""The tables of the scout percentile report."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.scout_percentiles.sentences import (
    WEIGHTS,
    limit_words,
    other_name,
    proof_name,
    setting_words,
)
from brokerlab.report.scout_percentiles.strata import (
    at_setting,
    loss_decimals,
    loss_difference,
    share,
)
from brokerlab.report.scout_percentiles.study import Study
from brokerlab.words import decimals_for, listed, number

FEW_TASKS = 12
"""Up to so many tasks are shown one by one."""
COARSEST = -3
"""Amounts are rounded to thousands at most, where their difference is no better known."""
ENFORCED = {"ramcount": "memory", "cputime": "walltime"}
"""What a job that outgrows its request is killed for, where it is recorded."""


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
        if line["quantity"] == "n_exceed":
            rows += _recorded(study)
    return Table(
        name=f"{study.parameter.name}_before_after",
        caption=f"{proof_name(study, days)}: {number(study.late.n_tasks)} tasks, {number(study.late.counts['n_scored'])} jobs",
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
            "In brackets: 95 % intervals from resampling tasks. Core h per core h of work: what the stated loss "
            "costs for each core-hour of useful work."
            f"{_enforced(study)}"
        ),
    )


def _recorded(study: Study) -> list[Row]:
    """Return the line of the kills that the archive holds; none where it cannot hold any."""
    if not _kills_known(study):
        return []
    return [
        Row(
            cells={
                "quantity": "Attempts killed for it, as recorded [jobs]",
                "before": Num(value=study.late.counts["n_kills"], decimals=0),
                "after": None,
                "difference": None,
                "relative": None,
            }
        )
    ]


def _kills_known(study: Study) -> bool:
    """Tell whether failed jobs were given and name what this parameter would have killed."""
    return study.parameter.name in ENFORCED and bool(study.late.counts["failures_known"])


def _enforced(study: Study) -> str:
    """Say why the kills of the replay and those of the archive differ."""
    if not _kills_known(study):
        return ""
    return (
        f" As recorded: attempts of these tasks killed for {ENFORCED[study.parameter.name]}, scouts and retries "
        "among them, under the requests they really had. The replay counts every job above its request as "
        "killed; not every queue enforces the request."
    )


def _line(line: dict[str, Any], factor: float, label: str) -> dict[str, Num | str | None]:
    """Return the cells of one quantity, all with the decimals that its difference supports."""

    def scaled(name: str) -> float | None:
        return None if line[name] is None else factor * line[name]

    difference, low, high = scaled("diff"), scaled("diff_lo"), scaled("diff_hi")
    moved = low is not None and high is not None and high > low
    places = _places(line["unit"], scaled("before"), difference, low, high)
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


def _places(
    unit: str,
    before: float | None,
    difference: float | None,
    low: float | None,
    high: float | None,
) -> int:
    """Return the decimals of a quantity: none of jobs, at least the verdict's of the loss, else the data's."""
    if unit == "jobs":
        return 0
    amount = not unit.startswith(("share", "core h per"))
    fewest = COARSEST if amount and low is not None else 0
    moved = low is not None and high is not None and high > low
    places = (
        decimals_for(difference, low, high, fewest=fewest)
        if moved
        else decimals_for(before, fewest=fewest)
    )
    return places if amount or unit.startswith("share") else loss_decimals(places)


def by_task(study: Study) -> Table:
    """Lay out what happened in each task; for archives of few tasks, where this is all there is."""
    gap = study.late.gap.select("jeditaskid", "ratio_median")
    sides = [
        at_setting(study.late.by_task, setting).select(
            "jeditaskid",
            pl.col("estimate").alias(f"estimate_{name}"),
            pl.col("n_exceed").alias(name),
        )
        for name, setting in (("before", study.proof.current), ("after", study.other))
    ]
    tasks = at_setting(study.late.by_task, study.proof.current).select(
        "jeditaskid", "n_scouts", "n_scored"
    )
    for frame in (*sides, gap):
        tasks = tasks.join(frame, on="jeditaskid", how="left")
    rows = [
        Row(
            cells={
                "task": str(row["jeditaskid"]),
                "scouts": Num(value=row["n_scouts"], decimals=0),
                "jobs": Num(value=row["n_scored"], decimals=0),
                "gap": Num(
                    value=None if row["ratio_median"] is None else 100 * (row["ratio_median"] - 1),
                    decimals=1,
                ),
                **{
                    f"estimate_{s}": Num(value=row[f"estimate_{s}"], decimals=0)
                    for s in ("before", "after")
                },
                **{
                    s: Num(value=100 * row[s] / row["n_scored"], decimals=1)
                    for s in ("before", "after")
                },
            }
        )
        for row in tasks.sort("jeditaskid").iter_rows(named=True)
    ]
    unit, other = study.parameter.value_unit, other_name(study).lower()
    return Table(
        name=f"{study.parameter.name}_tasks",
        caption="Task by task",
        columns=(
            Column(key="task", label="Task"),
            Column(key="scouts", label="Scouts used"),
            Column(key="jobs", label="Other jobs"),
            Column(key="gap", label="Scouts against the rest, medians", unit="%"),
            Column(key="estimate_before", label="Estimate, current", unit=unit),
            Column(key="before", label="Kills, current", unit="% of jobs"),
            Column(key="estimate_after", label=f"Estimate, {other}", unit=unit),
            Column(key="after", label=f"Kills, {other}", unit="% of jobs"),
        ),
        rows=tuple(rows),
    )


def periods(study: Study, choice_days: str, proof_days: str) -> Table:
    """Lay calibration and proof period side by side."""
    rows = []
    # one interval for one number: the proof's, as in the table before and after
    line = study.proof.quantity("loss")
    proven = {f"loss_{key}": line[key] for key in ("diff", "diff_lo", "diff_hi")}
    sides = [(f"Calibration, {choice_days}", study.early), (f"Proof, {proof_days}", study.late)]
    for label, tried in sides if study.divided else [("All tasks", study.late)]:
        now, then = tried.setting(*study.proof.current), tried.setting(*study.other)
        rows.append(
            Row(
                cells={
                    "period": label,
                    "tasks": Num(value=tried.n_tasks, decimals=0),
                    "jobs": Num(value=tried.counts["n_scored"], decimals=0),
                    "before": _kills(now),
                    "after": _kills(then),
                    "loss": loss_difference(then if tried is not study.late else proven),
                }
            )
        )
    return Table(
        name=f"{study.parameter.name}_periods",
        caption="Calibration and proof period side by side" if study.divided else "All tasks",
        columns=(
            Column(key="period", label="Period"),
            Column(key="tasks", label="Tasks"),
            Column(key="jobs", label="Jobs"),
            Column(key="before", label="Kills, current", unit="% of jobs"),
            Column(key="after", label=f"Kills, {other_name(study).lower()}", unit="% of jobs"),
            Column(key="loss", label="Loss, difference", unit="core h per core h"),
        ),
        rows=tuple(rows),
        footnote=(
            "Intervals of the loss: linearised on the calibration period, by bootstrap over tasks on the proof "
            "period, as before and after."
            if study.divided
            else ""
        ),
    )


def _kills(row: dict[str, Any]) -> Num:
    return share(row["exceed_rate"], row["exceed_lo"], row["exceed_hi"])


def weights(study: Study) -> Table:
    """Lay out the loss: each weight, why, and what its half and double would choose."""
    why = study.choice.weights.why(study.parameter.name)
    units = {"over": study.parameter.amount_unit, "n_exceed": "kill", "n_lost": "job"}
    moved: dict[str, dict[float, str]] = {}
    for row in study.choice.sensitivity.iter_rows(named=True):
        words = setting_words(study.parameter, (row["rank"], row["margin_pct"]))
        moved.setdefault(row["weight"], {})[row["factor"]] = words
    rows = tuple(
        Row(
            cells={
                "weight": f"{WEIGHTS[name]} ({name}) [core h per {units.get(name, 'core h')}]",
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
        caption="The stated loss, and what would be chosen with one of its weights halved or doubled",
        columns=(
            Column(key="weight", label="Weight"),
            Column(key="value", label="Value"),
            Column(key="half", label="Halved"),
            Column(key="double", label="Doubled"),
            Column(key="why", label="Why"),
        ),
        rows=rows,
    )


def conformal(study: Study) -> Table:
    """Lay the conformal rule beside the percentile rule, both on the calibration period."""
    now = study.early.setting(*study.proof.current)
    then = study.early.setting(*study.other)
    words = setting_words(study.parameter, study.proof.current)
    rows = [_rule("percentile, current", words, now, None)]
    if study.other != study.proof.current:
        words = setting_words(study.parameter, study.other)
        rows.append(_rule(f"percentile, {other_name(study).lower()}", words, then, None))
    for coverages, row in _same_conformal(study.conformal):
        words = f"coverage {listed([str(coverage) for coverage in coverages])} %"
        if study.parameter.name != "outdiskcount":
            words += f", margin {row['margin_pct']} %"
        rows.append(_rule("conformal", words, row, row["n_fallback"]))
    return Table(
        name=f"{study.parameter.name}_conformal",
        caption="The conformal rule beside the percentile rule, on the same tasks",
        columns=(
            Column(key="rule", label="Rule"),
            Column(key="promise", label="Setting"),
            Column(key="kills", label="Kills", unit="% of jobs"),
            Column(key="loss", label="Loss", unit="core h per core h"),
            Column(key="fallback", label="No promise", unit="tasks"),
        ),
        rows=tuple(rows),
        footnote=(
            "The conformal rule takes the scout value that promises a coverage whatever the distribution, if the "
            "scouts are like the rest. No promise: tasks with too few scouts for that coverage; the largest "
            "scout is taken. Coverages that come to the same stand in one line."
        ),
    )


def _same_conformal(tried: pl.DataFrame) -> list[tuple[list[int], dict[str, Any]]]:
    """Return the outcomes of the conformal rule with the coverages that lead to each, by margin."""
    found: dict[tuple[Any, ...], tuple[list[int], dict[str, Any]]] = {}
    for row in tried.sort("margin_pct", "rank").iter_rows(named=True):
        outcome = tuple(row[name] for name in ("margin_pct", "n_fallback", "exceed_rate", "loss"))
        found.setdefault(outcome, ([], row))[0].append(row["rank"])
    return list(found.values())


def _rule(rule: str, words: str, row: dict[str, Any], fallback: int | None) -> Row:
    """Return the line of one rule at one setting."""
    return Row(
        cells={
            "rule": rule,
            "promise": words,
            "kills": _kills(row),
            "loss": Num(value=row["loss"], lo=row["loss_lo"], hi=row["loss_hi"]),
            "fallback": None if fallback is None else Num(value=fallback, decimals=0),
        }
    )
