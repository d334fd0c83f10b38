"""What came of a study of a scout parameter, as frames: for tables and charts, without words.

`compare` has the same tasks under two settings, in every quantity that an operator asks for. What the judge judges by (kill rate
and loss, each task with its capped weight) stands first; pooled amounts follow with intervals that decide nothing and whose
measured coverage is said.

What n scouts can promise, whatever the jobs look like, is the distribution of an order statistic's coverage: if the scouts and a
later job are exchangeable (and ties are broken), the share of jobs not above the k-th smallest of n scouts follows
Beta(k, n+1-k), for every distribution of the jobs. No margin is needed for this, and no margin can be credited for it.

Sources: Wilks, Ann. Math. Statist. 12 (1941) 91, doi:10.1214/aoms/1177731788; David and Nagaraja, Order
Statistics, 3rd edition (2003), section 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import MIN_UNITS, Question, cap_weights
from brokerlab.calibrate.percentiles.backtest import at_setting
from brokerlab.calibrate.percentiles.parameters import Parameter, Setting
from brokerlab.calibrate.percentiles.replay import frame_of
from brokerlab.calibrate.verdict import side_of
from brokerlab.errors import ConfigError, nearest
from brokerlab.intervals import ENDS, Formula, Sums, clustered, measured_coverage, pooled_coverage
from brokerlab.numerics import FloatArray
from brokerlab.results import Result, Shows

if TYPE_CHECKING:
    from brokerlab.calibrate.percentiles.study import Study


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
SIDES = ("before", "after")
VALUES = (*SIDES, "diff", "diff_pct")
FLOATS = [f"{value}{end}" for value in VALUES for end in ENDS]


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
        n_tasks: Tasks compared, with ``n_scored`` scored jobs.
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
            raise ConfigError(f"no quantity {name!r}: {nearest(name, self.table['quantity'])}")
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
        for end, side in zip(SIDES, sides, strict=True)
    ]
    formulas: dict[str, Formula] = {
        f"{line.name} {value}": partial(_compared, line, value)
        for line in lines
        for value in VALUES
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


def _compared(line: Quantity, value: str, sums: Sums) -> FloatArray:
    """Return before, after, their difference, or that in per cent of before, from totals."""
    before, after = (
        sums[f"{line.name}_{side}"] / (sums[f"{line.over}_{side}"] if line.over else 1.0)
        for side in SIDES
    )
    if value in SIDES:
        return np.asarray(before if value == "before" else after)
    diff = after - before
    return diff if value == "diff" else np.where(before != 0, 100 * diff / before, np.nan)


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


# --- frames of a study -------------------------------------------------------------------------------------------------


SPLITS = ("processingtype", "gshare", "cores")
"""Strata of which two may be the same split of the tasks under two names."""
MIN_LEVEL_TASKS = 5
"""Levels with fewer tasks are not called the worst."""


def before_after(study: Study) -> pl.DataFrame:
    """Return one row per quantity, the current setting and those chosen on earlier tasks, and their difference.

    As ``Comparison.table``, without quantities that are not known: ``label``, ``unit`` (``%`` for shares), ``before``,
    ``after``, ``diff``, ``diff_pct`` [% of before; null where nothing changes or there was next to nothing],
    each with ``_lo, _hi``; ``coverage`` (measured, of intervals of this kind, share; null without an interval); ``mark``
    ("judged" where the verdict rests on it, else null).
    """
    table = study.comparison.table.drop_nulls(["before", "after"])
    moved = pl.col("diff_hi") > pl.col("diff_lo")
    known = moved & (pl.col("before").abs() > 1e-9)
    relative = [f"diff_pct{end}" for end in ENDS]
    ends = [f"{side}{end}" for side in ("before", "after") for end in ("_lo", "_hi")]
    share = pl.col("unit").str.starts_with("share")
    unit = pl.col("unit").str.replace("share of", "% of").str.replace("share", "%")
    return table.with_columns(
        *(pl.when(known).then(name).alias(name) for name in relative),
        *(pl.when("judged").then(name).alias(name) for name in ends if name in table.columns),
        label=pl.col("label").str.replace(" - ", " − ", literal=True),
        unit=pl.when(share).then(unit).otherwise("unit"),
        mark=pl.when("judged").then(pl.lit("judged")),
    )


def by_level(study: Study) -> pl.DataFrame:
    """Return what the comparison says of each level, most kills first in each stratum.

    ``stratum, level, name`` (both in words), ``n_tasks, n_scored``, ``before``, ``after`` (kills, mean over tasks [1]) with
    ``_lo, _hi``, ``loss_diff, loss_diff_lo, loss_diff_hi`` [core h per core h of work], ``verdict`` (gains, loses, open, no
    change), ``mark`` (worst: most kills, of levels with enough tasks, under the proposed setting or else the current one; else
    null). Strata that divide the tasks as an earlier one does are left out.
    """
    sides = {
        f"{side}{end}": f"exceed_rate_{side}{end}" for side in ("before", "after") for end in ENDS
    }
    place = {name: order for order, name in enumerate(STRATA)}
    rows = (
        study.comparison.by_stratum.select(
            *("stratum", "level", "n_tasks", "n_scored"),
            *("loss_diff", "loss_diff_lo", "loss_diff_hi", "verdict"),
            **sides,
        )
        .filter(~pl.col("stratum").is_in(list(repeated_strata(study.scored[0]))))
        .with_columns(place=pl.col("stratum").replace_strict(place, return_dtype=pl.Int64))
        .sort("place", "after", "n_scored", "level", descending=[False, True, True, False])
        .drop("place")
    )
    unchanged = pl.col("loss_diff").round(4) == 0
    verdict = pl.when(unchanged).then(pl.lit("no change")).otherwise("verdict")
    worst = worst_level(rows, "after" if study.acts else "before")
    here = pl.lit(value=False)
    if worst is not None:
        here = (pl.col("stratum") == worst["stratum"]) & (pl.col("level") == worst["level"])
    return rows.with_columns(
        name=pl.format("{}: {}", pl.col("stratum").replace(STRATA), "level"),
        verdict=verdict,
        mark=pl.when(here).then(pl.lit("worst")),
    )


def worst_level(levels: pl.DataFrame, side: str = "after") -> dict[str, Any] | None:
    """Return the level with most kills before or after; null if all have too few tasks."""
    large = (pl.col("n_tasks") >= MIN_LEVEL_TASKS) & (pl.col("stratum") != "n_scouts")
    rows = levels.filter(large).sort(side, "n_scored", descending=True, maintain_order=True)
    return rows.row(0, named=True) if rows.height else None


def repeated_strata(by_task: pl.DataFrame) -> dict[str, str]:
    """Return the strata that divide the tasks exactly as an earlier one does, with that one."""
    tasks, repeated = by_task.unique("jeditaskid"), dict[str, str]()
    for place, later in enumerate(SPLITS):
        for earlier in SPLITS[:place]:
            pairs = tasks.select(earlier, later).unique().height
            if pairs == tasks[earlier].n_unique() == tasks[later].n_unique():
                repeated.setdefault(later, earlier)
    return repeated


def _name(study: Study, setting: Setting) -> str:
    several = len({each.minimum_mb for each in study.tried.grid}) > 1
    return setting.words(study.parameter, minimum=several)


def candidates(study: Study) -> pl.DataFrame:
    """Return the judge's candidates with ``rank, margin_pct, minimum_mb`` in front."""
    return frame_of(study.judgement.settings).hstack(study.judgement.candidates)


def frontier(study: Study) -> pl.DataFrame:
    """Return what every setting tried costs, and how often it kills, over all tasks.

    ``rank, margin_pct, minimum_mb, label``, ``waste`` (reserved and not used, killed attempts included, over used [1]),
    ``kills, kills_lo, kills_hi`` (mean over tasks [1], two standard errors), ``setting`` (current, proposed; null).
    """
    amount = study.parameter.amount
    wasted = pl.col(f"over_{amount}") + pl.col(f"waste_{amount}")
    mean, reach = pl.col("exceed_rate"), 2 * pl.col("exceed_rate_se")
    judged = candidates(study).select(
        *Setting._fields,
        kills=mean,
        kills_lo=(mean - reach).clip(lower_bound=0),
        kills_hi=(mean + reach).clip(upper_bound=1),
    )
    costs = study.tried.by_setting.select(*Setting._fields, waste=wasted / pl.col(f"used_{amount}"))
    rows = costs.join(judged, on=Setting._fields, nulls_equal=True).sort(Setting._fields)
    settings = [Setting(*row) for row in rows.select(Setting._fields).rows()]
    roles = {study.best: "proposed"} if study.acts else {}
    roles |= {study.current: "current"}
    return rows.with_columns(
        label=pl.Series([_name(study, each) for each in settings], dtype=pl.String),
        setting=pl.Series([roles.get(each) for each in settings], dtype=pl.String),
    )


def coverage(study: Study) -> pl.DataFrame:
    """Return, by number of scouts, the share of jobs within their request, as the judge weighs tasks.

    ``n_scouts, n_tasks``, ``setting`` (promised: the current rank without margin, for scouts like the rest; current,
    proposed), ``kept, kept_lo, kept_hi`` (share of a task's jobs; ends null below `MIN_UNITS` tasks; of the promise those
    of the scouts below and above the rank).
    """
    settings = {"current": study.current}
    settings |= {"proposed": study.best} if study.acts else {}
    rows = []
    for name, setting in settings.items():
        tasks = at_setting(study.by_task, setting).filter(pl.col("work_coreh") > 0)
        weights = cap_weights(tasks["work_coreh"].to_numpy())
        kept = 1 - tasks["exceed_rate"].to_numpy()
        levels = levels_of(tasks, ["n_scouts"]).with_columns(n_tasks=pl.col("place").list.len())
        large = levels.filter(pl.col("n_tasks") >= MIN_LEVEL_TASKS)
        for _, level, places, n in (large if large.height else levels).iter_rows():
            row = {"n_scouts": int(level), "n_tasks": n, "setting": name}
            rows.append(
                row
                | study.judgement.question.interval(
                    "kept", kept[places], weights[places], share=True, enough=n >= MIN_UNITS
                )
            )
    seen = {row["n_scouts"]: row["n_tasks"] for row in rows if row["setting"] == "current"}
    promised = []
    for n, n_tasks in seen.items():
        low, middle, high = percentile_coverage(n, study.current.rank)
        promised.append((n, n_tasks, "promised", middle, low, high))
    ends = dict.fromkeys(("kept", "kept_lo", "kept_hi"), pl.Float64)
    schema = {"n_scouts": pl.Int64, "n_tasks": pl.Int64, "setting": pl.String, **ends}
    parts = [pl.DataFrame(promised, schema, orient="row"), pl.DataFrame(rows, schema)]
    return pl.concat(parts).sort("n_scouts", maintain_order=True)


def by_task(study: Study) -> pl.DataFrame:
    """Return what happened in each scored task.

    ``jeditaskid, n_scouts, n_scored``, ``gap`` (medians of scouts over those of the rest, minus one [1]), ``rank,
    margin_pct`` (chosen on earlier tasks), ``estimate_before, estimate_after`` [the parameter's unit], ``before, after``
    (kills, share of jobs).
    """
    killed = pl.col("n_exceed") / pl.col("n_scored")
    gap = study.tried.gap.select("jeditaskid", gap=pl.col("ratio_median") - 1)
    before, after = study.scored
    now = before.select(
        *("jeditaskid", "n_scouts", "n_scored"), estimate_before="estimate", before=killed
    )
    then = after.select(
        *("jeditaskid", "rank", "margin_pct"), estimate_after="estimate", after=killed
    )
    tasks = now.join(gap, on="jeditaskid", how="left").join(then, on="jeditaskid")
    return tasks.sort("jeditaskid")


def by_block(study: Study) -> pl.DataFrame:
    """Return the blocks of time: what was chosen on those before each, and what it did there.

    ``block, start, end, n_tasks``, ``chosen`` (name of the setting; null for the first), ``before``, ``after`` (kills, mean over
    tasks [1]), ``loss_before, loss_after`` [core h per core h of work].
    """
    names = [_name(study, each) for each in study.judgement.settings]
    return study.judgement.blocks.select(
        *("block", "start", "end"),
        pl.col("n_units").alias("n_tasks"),
        chosen=pl.col("place").replace_strict(dict(enumerate(names)), return_dtype=pl.String),
        before="exceed_rate_before",
        after="exceed_rate_after",
        loss_before="loss_before",
        loss_after="loss_after",
    )


def weights_moved(study: Study) -> pl.DataFrame:
    """Return the stated loss, and what would be chosen with one of its weights halved or doubled.

    ``weight``, ``value`` [core h per unit], ``halved``, ``doubled`` (the setting's name), ``why``.
    """
    moved = {change: _name(study, setting) for change, setting in study.rechosen.items()}
    why = study.tried.weights.why(study.parameter.name)
    rows = [
        {"weight": n, "value": v, "halved": moved[n, 0.5], "doubled": moved[n, 2.0], "why": why[n]}
        for n, v in study.tried.weights.to_dict().items()
    ]
    return pl.DataFrame(rows)


def written(study: Study) -> dict[str, pl.DataFrame]:
    """Return what a study was read from and the frames beside it, by the names they are written under."""
    return {
        "settings": study.tried.by_setting,
        "candidates": candidates(study),
        "judged": study.judgement.table,
        "compared": study.comparison.table,
        "compared_strata": study.comparison.by_stratum,
        "tasks": by_task(study),
        "gap": study.tried.gap,
    }


# --- what so few scouts can promise -----------------------------------------------------------------------------------


def percentile_coverage(n_scouts: int, rank: float) -> tuple[float, float, float]:
    """Return lower bound, interpolation and upper bound of the expected coverage of the percentile rule, without margin.

    The rule interpolates between two order statistics, so its coverage lies between theirs; the middle
    value is linear in between (exact for uniformly distributed jobs).

    Source: scouts.md section 4 for the rule; David and Nagaraja (2003), section 7.1 for the bounds.

    Example:
        >>> [round(c, 3) for c in percentile_coverage(10, 75)]
        [0.636, 0.705, 0.727]
    """
    _check(n_scouts)
    if not 0 <= rank <= 100:
        raise ConfigError(f"rank={rank}: allowed is 0 to 100")
    position = (n_scouts - 1) * rank / 100
    lower, upper = int(np.floor(position)) + 1, int(np.ceil(position)) + 1
    return lower / (n_scouts + 1), (position + 1) / (n_scouts + 1), upper / (n_scouts + 1)


def _check(n_scouts: int) -> None:
    if n_scouts < 1:
        raise ConfigError(f"n_scouts={n_scouts}: allowed is at least 1")
