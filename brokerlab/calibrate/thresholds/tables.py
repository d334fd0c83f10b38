"""A calibration in tables and words.

Two settings by every quantity, by who it is and by queue; all settings beside each other; what is to be done with keys, what it
changes, for whom, and what an interval holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import Judgement
from brokerlab.calibrate.thresholds.outcomes import LIMITS, QUANTITIES, Outcome, Period, quantity_of
from brokerlab.calibrate.thresholds.settings import Key, Setting, Space, shown
from brokerlab.calibrate.thresholds.simulations import PREFIX, Simulations
from brokerlab.calibrate.verdict import side_of, steps_of
from brokerlab.gdpconfig.proposal import Affected
from brokerlab.intervals import ENDS, t_factor
from brokerlab.numerics import percent_of
from brokerlab.words import days_of

STRATA = ("gshare", "user_class")
NO_LEVEL = "(none)"
_SHOWN = {
    **dict.fromkeys(("quantity", "label", "unit"), pl.String),
    **dict.fromkeys(("before", "after"), pl.Float64),
    **{f"{name}{end}": pl.Float64 for name in ("diff", "diff_pct") for end in ENDS},
    "limit": pl.Float64,
    "limit_unit": pl.String,
    "limited": pl.Float64,
    "kept": pl.Boolean,
    "coverage": pl.Float64,
}


def as_shown(table: pl.DataFrame, n_tasks: int) -> pl.DataFrame:
    """Return a comparison of the judge in words and units, one row per quantity of `QUANTITIES`; nulls where it is not known.

    ``quantity, label, unit, before, after, diff, diff_lo, diff_hi`` (interval of the difference; null below so many units as
    the judge asks for), ``diff_pct, diff_pct_lo, diff_pct_hi`` (the same in per cent of ``before``; null where that is almost
    nothing), ``limit`` (null: none) [``limit_unit``], ``limited`` (by how much what is limited is above now: of bytes and lost
    core-hours for the same work) and ``kept``, ``coverage`` (null: not measured).
    """
    known = {row["quantity"]: row for row in table.iter_rows(named=True)}
    limits = {
        one.quantity: (one, known[f"{PREFIX}{name}"])
        for name, one in LIMITS.items()
        if f"{PREFIX}{name}" in known
    }
    rows = []
    for quantity in QUANTITIES:
        about: dict[str, Any] = {
            "quantity": quantity.name,
            "label": quantity.label,
            "unit": quantity.unit,
        }
        result = known.get(quantity.name)
        if result is not None:
            times = n_tasks if quantity.total else 1
            wanted = ("before", "after", *(f"diff{end}" for end in ENDS))
            about |= {n: None if result[n] is None else result[n] * times for n in wanted}
            for end in ENDS:
                value = about[f"diff{end}"]
                about[f"diff_pct{end}"] = percent_of(value, about["before"], least=quantity.least)
        if quantity.name in limits:
            limited, row = limits[quantity.name]
            about |= {"limit": row["limit"], "limit_unit": limited.unit or quantity.unit}
            about |= {"limited": row["after"], "kept": row["kept"]}
        rows.append(about)
    return pl.DataFrame(rows, schema=_SHOWN)


def tried_frame(first: Simulations, known: Sequence[Setting]) -> pl.DataFrame:
    """Compare settings with the current one on the first period, one row per setting and quantity, in the order tried.

    ``setting`` (words), ``key`` and ``value`` (null for several keys), ``n_keys``, ``replications`` and the columns of
    :func:`as_shown`.
    """
    parts = []
    for one in known:
        if one == first.current:
            continue
        (key, value), *others = one.values
        number = None if others or value is None else float(value)
        table = as_shown(first.compare(first.current, one), first.n_tasks())
        parts.append(
            table.select(
                pl.lit(one.name).alias("setting"),
                pl.lit(None if others else key, pl.String).alias("key"),
                pl.lit(number, pl.Float64).alias("value"),
                pl.lit(len(one.values), pl.Int64).alias("n_keys"),
                pl.lit(len(first.blocks[0].seeds), pl.Int64).alias("replications"),
                pl.all(),
            )
        )
    return pl.concat(parts) if parts else pl.DataFrame()


def by_stratum(simulations: Simulations, settings: tuple[Setting, Setting]) -> pl.DataFrame:
    """Compare two settings inside each level of what tasks are known by, on the second period, the worst first.

    ``stratum``, ``level``, ``n_tasks, before, after, diff, diff_lo, diff_hi, diff_pct`` of the objective and ``verdict`` (gains,
    loses: the interval excludes 0; open), ``role`` (worst; null: not).
    """
    objective, tasks = simulations.options.objective, simulations.tasks(simulations.blocks[1])
    rows: list[dict[str, Any]] = []
    for stratum in STRATA:
        labels = tasks[stratum]
        if objective == "unfairness" or labels.null_count() == len(labels):
            continue
        for level in labels.unique().sort(nulls_last=True):
            part = simulations.only((stratum, level))
            if any(part.tasks(one).is_empty() for one in part.blocks):
                continue
            n = part.n_tasks([1])
            table = as_shown(part.compare(*settings, [1]), n)
            row = table.row(by_predicate=pl.col("quantity") == objective, named=True)
            row |= {"stratum": stratum, "level": NO_LEVEL if level is None else level, "n_tasks": n}
            rows.append(
                row | {"verdict": side_of(row["diff_lo"], row["diff_hi"], "gains", "loses")}
            )
    result = pl.DataFrame(rows, schema=_STRATA).sort("diff_pct", descending=True, nulls_last=True)
    return result.with_columns(role=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("worst")))


_STRATA = {
    **dict.fromkeys(("stratum", "level"), pl.String),
    "n_tasks": pl.Int64,
    **dict.fromkeys(("before", "after", "diff", "diff_lo", "diff_hi", "diff_pct"), pl.Float64),
    "verdict": pl.String,
}


def by_queue(
    current: Sequence[Outcome], other: Sequence[Outcome], confidence: float
) -> pl.DataFrame:
    """Compare how full queues are, the largest change first; intervals over replications.

    ``panda_queue, n_jobs_before, n_jobs_after`` (mean over replications), ``used_before, used_after`` (part of the slots),
    ``diff, diff_lo, diff_hi`` and ``verdict`` (fuller, emptier, open).
    """
    n = len(current)
    factor = t_factor(n, confidence) / float(np.sqrt(n)) if n > 1 else None
    both = pl.concat(
        now.queues.join(then.queues, on="panda_queue", suffix="_after", maintain_order="left")
        for now, then in zip(current, other, strict=True)
    )
    part = [pl.col(f"used_core_h{end}") / pl.col("capacity_core_h") for end in ("", "_after")]
    known = both.filter(pl.col("capacity_core_h") > 0).with_columns(before=part[0], after=part[1])
    shift = pl.col("after") - pl.col("before")
    half = shift.std() * pl.lit(factor, pl.Float64)
    rows = known.group_by("panda_queue").agg(
        n_jobs_before=pl.col("n_jobs").mean(),
        n_jobs_after=pl.col("n_jobs_after").mean(),
        used_before=pl.col("before").mean(),
        used_after=pl.col("after").mean(),
        diff=shift.mean(),
        diff_lo=shift.mean() - half,
        diff_hi=shift.mean() + half,
    )
    ends = rows.select("diff_lo", "diff_hi").iter_rows()
    verdict = [side_of(low, high, "emptier", "fuller") for low, high in ends]
    return rows.with_columns(verdict=pl.Series(verdict, dtype=pl.String)).sort(
        pl.col("diff").abs(), "panda_queue", descending=[True, False]
    )


def proof_of(table: pl.DataFrame, objective: str) -> pl.DataFrame:
    """Return the quantities that are known, with ``role``: objective, beyond its limit (null: neither)."""
    beyond = pl.when(pl.col("kept").not_()).then(pl.lit("beyond its limit"))
    role = beyond.when(pl.col("quantity") == objective).then(pl.lit("objective"))
    return table.filter(pl.col("before").is_not_null()).with_columns(role=role)


def candidates_of(judgement: Judgement, n_tasks: int) -> pl.DataFrame:
    """Return what the judge chose among, beside the current setting, on all periods, least objective first.

    ``setting, n_keys``, ``after`` (mean or total of the objective), ``diff, diff_lo, diff_hi`` (interval by which the judge asks
    whether it is better), the same in per cent of the current setting (``diff_pct`` ...; null where that is almost nothing),
    ``broken`` (limits, comma list), ``lowers`` (by its whole interval), ``role`` (chosen; null: not).
    """
    quantity, known = quantity_of(judgement.question.objective), judgement.candidates
    times = n_tasks if quantity.total else 1
    now = known.filter("is_current")[quantity.name][0]
    rows = []
    for row in known.filter(~pl.col("is_current")).iter_rows(named=True):
        setting, diff = judgement.settings[row["place"]], row[quantity.name] - now
        high = None if row["gain_lo"] is None else -row["gain_lo"]
        low = None if high is None else 2 * diff - high
        ends = [None if x is None else x * times for x in (diff, low, high)]
        about = {
            "setting": setting.name,
            "n_keys": len(setting.values),
            "after": row[quantity.name] * times,
            "broken": ", ".join(
                one.quantity.removeprefix(PREFIX)
                for one in judgement.question.limits
                if row[one.quantity] > one.most
            ),
            "lowers": high is not None and high < 0,
            "role": "chosen" if setting == judgement.best else None,
        }
        for end, value in zip(ENDS, ends, strict=True):
            pct = percent_of(value, now * times, least=quantity.least)
            about |= {f"diff{end}": value, f"diff_pct{end}": pct}
        rows.append(about)
    return pl.DataFrame(rows, schema=_CANDIDATES).sort("diff", "n_keys", "setting")


_CANDIDATES = {
    "setting": pl.String,
    "n_keys": pl.Int64,
    "after": pl.Float64,
    **{f"{name}{end}": pl.Float64 for name in ("diff", "diff_pct") for end in ENDS},
    "broken": pl.String,
    "lowers": pl.Boolean,
    "role": pl.String,
}


def sensitivity_of(judgement: Judgement) -> pl.DataFrame:
    """Choose on everything again, each limit halved and doubled: ``limit, factor, setting``."""
    rows = []
    for limit in judgement.question.limits:
        for factor in (0.5, 2.0):
            setting = judgement.rechoose(limits={limit.quantity: limit.most * factor})
            rows.append((limit.quantity.removeprefix(PREFIX), factor, setting.name))
    schema = {"limit": pl.String, "factor": pl.Float64, "setting": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


# --- in words ---------------------------------------------------------------------------------------------------------


NAMED = 5
"""Queues named in a sentence at most."""
COVERS = (
    "other tasks and hours like these, and the noise of the simulation; not another history of this system, of which there "
    "is one, and not a simulation that is wrong"
)
"""What an interval holds, and what it does not."""


def capacity_unknown(queues: Sequence[str], seen: str, more: str) -> str:
    """Say that an answer depends on slots that nobody knows."""
    names = ", ".join(queues[:NAMED]) + (", ..." if len(queues) > NAMED else "")
    return (
        f"capacity of {len(queues)} queues unknown ({names}), and the answer depends on it. With the slots seen in use: {seen} "
        f"With more: {more} Their slots would settle it: in the table slots, or as capacity"
    )


def days(period: Period) -> str:
    """Write the days of a period; its end is not part of it."""
    return days_of(period.start, period.end - timedelta(microseconds=1))


def small(text: str) -> str:
    """Let a sentence go on in the middle of another."""
    return text[:1].lower() + text[1:]


def as_is(keys: Sequence[Key]) -> str:
    """Say what keys are now."""
    if len(keys) > 3:
        return f"all {len(keys)} keys as they are"
    return ", ".join(
        f"{key.name}{' as it is' if key.mixed else f' = {shown(key.current)}'}" for key in keys
    )


def action(space: Space, setting: Setting) -> str:
    """Say what to do with each key, but those whose value changes nothing."""
    steps = []
    for name, value in setting.values:
        key = space.key(name)
        if space.entries(Setting.of({name: value})):
            steps.append((name, None if key.mixed else key.current, value))
    return steps_of(steps, shown)


def effects(objective: str, table: pl.DataFrame) -> str:
    """Say what changes: the objective, what limits are on, and what they could be on and are not."""
    row = table.row(by_predicate=pl.col("quantity") == objective, named=True)
    label = small(row["label"])
    if row["diff_pct"] is not None and row["diff_pct_lo"] is not None:
        gain = (
            f"{label} {-row['diff_pct']:.1f} % less ({-row['diff_pct_hi']:.1f} to {-row['diff_pct_lo']:.1f}; "
            f"{row['before']:.3g} to {row['after']:.3g} {row['unit']})"
        )
    elif row["diff"] is None or row["diff_lo"] is None:
        gain = f"{label} compared without an interval"
    else:
        gain = f"{label} {row['diff']:+.3g} {row['unit']} ({row['diff_lo']:+.3g} to {row['diff_hi']:+.3g})"
    parts = [gain]
    limits = {one.quantity: one for one in LIMITS.values()}
    for one in table.filter(pl.col("quantity") != objective).iter_rows(named=True):
        if not one["diff"] or one["quantity"] not in limits:
            continue
        of, size = limits[one["quantity"]].of, f"{one['diff']:+.3g}"
        if of:  # of almost nothing there is no per cent
            known = one["diff_pct"] is not None
            size = f"{one['diff_pct']:+.1f} %" if known else f"{size} {one['unit']}"
        limit = "not limited" if one["limit"] is None else f"limit +{one['limit']:g}"
        if of and one["limit"] is not None:
            limit = f"for the same work {one['limited']:+.1f} {one['limit_unit']}, {limit}"
        parts.append(f"{small(one['label'])} {size} ({limit})")
    return ", ".join(parts)


def affected(
    strata: pl.DataFrame, queues: pl.DataFrame, verdicts: tuple[str, str]
) -> list[Affected]:
    """Name the levels whose objective falls, or rises, by its whole interval, and the queues that get emptier, or fuller."""
    if strata.is_empty():
        return []
    levels = [
        Affected(
            f"{row['stratum']} {row['level']}",
            f"{row['diff']:+.3g} ({row['diff_lo']:+.3g} to {row['diff_hi']:+.3g}), {row['n_tasks']} tasks",
        )
        for row in strata.filter(verdict=verdicts[0]).sort("stratum", "level").to_dicts()
    ]
    return levels + [
        Affected(
            f"queue {row['panda_queue']}",
            f"{verdicts[1]}: {100 * row['used_before']:.1f} to {100 * row['used_after']:.1f} % of its slots used",
        )
        for row in queues.filter(verdict=verdicts[1]).head(NAMED).to_dicts()
    ]
