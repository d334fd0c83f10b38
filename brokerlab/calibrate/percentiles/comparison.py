"""The same tasks under two settings, in every quantity that an operator asks for.

What the judge judges by (kill rate and loss, each task with its capped weight) stands first; pooled amounts follow with
intervals that decide nothing and whose measured coverage is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import MIN_UNITS, Question
from brokerlab.calibrate.percentiles.parameters import Parameter
from brokerlab.calibrate.verdict import side_of
from brokerlab.errors import ConfigError
from brokerlab.intervals import Formula, Sums, clustered, measured_coverage, pooled_coverage
from brokerlab.numerics import FloatArray
from brokerlab.results import Result, Shows

JUDGED = ("exceed_rate", "loss")
"""Quantities that a verdict rests on."""
STRATA = {
    "processingtype": "processing type",
    "gshare": "gshare",
    "cores": "cores",
    "n_scouts": "scouts used",
}
"""What tasks are divided by, in the order of tables and in words."""
NO_LEVEL = "(none)"
FLOATS = [
    f"{side}{end}" for side in ("before", "after", "diff", "diff_pct") for end in ("", "_lo", "_hi")
]


class Quantity(NamedTuple):
    """One line of the before-and-after table: a weighted mean over tasks, a total, or a ratio of two totals."""

    name: str
    label: str
    unit: str
    over: str = ""


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Before and after.

    Attributes:
        table: One row per quantity: ``quantity, label, unit, before, before_lo, before_hi, after, after_lo, after_hi,
            diff, diff_lo, diff_hi, diff_pct, diff_pct_lo, diff_pct_hi``, ``judged`` (a verdict rests on it), ``coverage`` (what
            such intervals covered on a synthetic superpopulation [1]; null without an interval).
        by_stratum: One row per (stratum, level): ``n_tasks, n_scored``, ``loss`` and ``exceed_rate`` with ``_before, _after,
            _diff, _diff_lo, _diff_hi`` (judged as above), ``verdict`` (``gains``, ``loses``, ``open``).
        n_tasks: Tasks compared.
        n_scored: Their scored jobs.
    """

    shows = Shows(
        about="before and after, one row per quantity",
        columns="label, unit, before, after, diff, diff_lo, diff_hi",
        keys=("quantity",),
        next=(".by_stratum",),
    )

    table: pl.DataFrame
    by_stratum: pl.DataFrame
    n_tasks: int
    n_scored: int

    def quantity(self, name: str) -> dict[str, Any]:
        """Return one line of the table."""
        rows = self.table.filter(pl.col("quantity") == name)
        if rows.is_empty():
            raise ConfigError(f"no quantity {name!r}: {', '.join(self.table['quantity'])}")
        return rows.row(0, named=True)


def quantities_of(parameter: Parameter) -> tuple[Quantity, ...]:
    """Return the lines of the before-and-after table of a parameter."""
    suffix, unit = parameter.amount, parameter.amount_unit
    return (
        Quantity("exceed_rate", "First attempts killed", "share of a task's jobs"),
        Quantity("loss", "Stated loss", "core h per core h of work"),
        Quantity(f"reserved_{suffix}", "Reserved in all", unit),
        Quantity(f"used_{suffix}", "Used by finished jobs", unit),
        Quantity(f"over_{suffix}", "Reserved and not used", unit),
        Quantity(f"waste_{suffix}", "Reserved by killed attempts", unit),
        Quantity(
            "exceed_rate_jobs", "First attempts killed, of all jobs", "share of jobs", "n_scored"
        ),
        Quantity("n_exceed", "Jobs killed and retried", "jobs"),
        Quantity("n_lost", "Jobs killed in every attempt", "jobs"),
        Quantity("killed_coreh", "Core-hours of killed attempts", "core h"),
        Quantity("headroom_mean", "Mean head-room, request / use - 1", "share", "n_scored"),
        Quantity("queues_share", "Queues that can take a task", "share", "one"),
        Quantity("slots_share", "Slots that can take a task", "share", "one"),
    )


def compare(
    judged: pl.DataFrame,
    before: pl.DataFrame,
    after: pl.DataFrame,
    parameter: Parameter,
    question: Question,
) -> Comparison:
    """Put what the judge compared (see ``Judgement.table``) beside the amounts and ratios of the same tasks.

    ``before`` and ``after`` have one row per task in the judge's order, as of ``Backtest.under``, with its ``weight`` for the
    judged quantities. Where the judge gives no interval, nothing has one. Other tasks after than before are a ConfigError.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 13.3, for the amounts.
    """
    if not before["jeditaskid"].equals(after["jeditaskid"]):
        raise ConfigError("before and after are not of the same tasks in the same order")
    n, enough = before.height, not judged["diff_lo"].null_count()
    lines = quantities_of(parameter)
    result = {row["quantity"]: row for row in judged.iter_rows(named=True)}
    for row in result.values():  # the relative change has no interval of its own
        row["diff_pct"] = 100 * row["diff"] / row["before"] if row["before"] else None
    pooled = [line for line in lines if line.name not in JUDGED]
    result |= _amounts(pooled, [before, after], question, enough=enough)
    about = ("name", "label", "unit")
    rows = [
        [getattr(line, key) for key in about] + [result[line.name].get(end) for end in FLOATS]
        for line in lines
    ]
    schema = dict.fromkeys(("quantity", "label", "unit"), pl.String)
    table = pl.DataFrame(rows, schema | dict.fromkeys(FLOATS, pl.Float64), orient="row")
    table = table.with_columns(judged=pl.col("quantity").is_in(JUDGED))
    covered = (
        pl.when("judged")
        .then(pl.lit(measured_coverage(n, question.confidence), pl.Float64))
        .otherwise(pl.lit(pooled_coverage(n, question.confidence), pl.Float64))
    )
    return Comparison(
        table=table.with_columns(coverage=pl.when(pl.col("diff_lo").is_not_null()).then(covered)),
        by_stratum=_strata(before, after, question),
        n_tasks=n,
        n_scored=int(before["n_scored"].sum()),
    )


def judge_values(side: pl.DataFrame) -> dict[str, FloatArray]:
    """Return each task's kill rate and loss, what the judge goes by."""
    rows = side.select(
        exceed_rate=pl.col("n_exceed") / pl.col("n_scored"),
        loss=pl.col("cost_coreh") / pl.col("work_coreh"),
    )
    return {name: rows[name].cast(pl.Float64).to_numpy() for name in JUDGED}


def levels_of(tasks: pl.DataFrame, strata: Iterable[str] = STRATA) -> pl.DataFrame:
    """Return ``stratum, level, place`` (list of the places of its tasks); null levels are `NO_LEVEL`."""
    parts = [
        tasks.select(stratum=pl.lit(name), level=pl.col(name).cast(pl.String).fill_null(NO_LEVEL))
        for name in strata
    ]
    placed = pl.concat(part.with_row_index("place") for part in parts)
    return placed.group_by("stratum", "level").agg("place").sort("stratum", "level")


def _amounts(
    lines: list[Quantity], sides: list[pl.DataFrame], question: Question, *, enough: bool
) -> dict[str, dict[str, float | None]]:
    """Return totals and ratios of totals, with the bootstrap over tasks."""
    tasks = sides[0]["jeditaskid"]
    columns = [
        _columns(side, lines).select(pl.all().name.suffix(f"_{end}"))
        for end, side in zip(("before", "after"), sides, strict=True)
    ]
    formulas: dict[str, Formula] = {
        f"{line.name} {key}": formula for line in lines for key, formula in _four(line).items()
    }
    frame = pl.concat([tasks.to_frame(), *columns], how="horizontal")
    row = clustered(
        frame,
        formulas,
        unit="jeditaskid",
        measures=[name for side in columns for name in side.columns],
        units=tasks,
        n_boot=question.n_boot if enough else 0,
        seed=question.seed,
        confidence=question.confidence,
    ).row(0, named=True)
    return {line.name: {end: row[f"{line.name} {end}"] for end in FLOATS} for line in lines}


def _columns(side: pl.DataFrame, lines: list[Quantity]) -> pl.DataFrame:
    """Return the tasks' numerators and denominators under one setting."""
    plain = [line.name for line in lines if line.name in side.columns]
    return side.select(*plain, "n_scored").with_columns(
        headroom_mean=pl.col("headroom_mean") * pl.col("n_scored"),
        exceed_rate_jobs=pl.col("n_exceed"),
        one=pl.lit(1.0),
    )


def _four(line: Quantity) -> dict[str, Formula]:
    """Return what makes before, after, difference and difference in per cent of before from totals."""

    def side(sums: Sums, end: str) -> FloatArray:
        top = sums[f"{line.name}_{end}"]
        return np.asarray(top / sums[f"{line.over}_{end}"] if line.over else top)

    def percent(sums: Sums) -> FloatArray:
        before, after = side(sums, "before"), side(sums, "after")
        return np.where(before != 0, 100 * (after - before) / before, np.nan)

    return {
        "before": lambda sums: side(sums, "before"),
        "after": lambda sums: side(sums, "after"),
        "diff": lambda sums: side(sums, "after") - side(sums, "before"),
        "diff_pct": percent,
    }


def _strata(before: pl.DataFrame, after: pl.DataFrame, question: Question) -> pl.DataFrame:
    """Compare inside each level what is judged; intervals from `MIN_UNITS` tasks on."""
    now, then = (judge_values(side) for side in (before, after))
    weights = before["weight"].cast(pl.Float64).to_numpy()
    rows = []
    for stratum, level, places in levels_of(before).iter_rows():
        n_scored = int(before["n_scored"].gather(places).sum())
        row: dict[str, Any] = {"stratum": stratum, "level": level, "n_tasks": len(places), "n_scored": n_scored}  # fmt: skip
        for name in JUDGED:
            result = question.paired(
                now[name][places],
                then[name][places],
                weights[places],
                share=name == "exceed_rate",
                enough=len(places) >= MIN_UNITS,
            )
            row |= {f"{name}_{end}": value for end, value in result.items()}
        row["verdict"] = side_of(row["loss_diff_lo"], row["loss_diff_hi"], "gains", "loses")
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)
