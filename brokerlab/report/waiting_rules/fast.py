"""Fast rebrokerage over a period: which queues and shares trigger at its instants, and what its keys do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.replay.counts import Counts
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import fast_rebrokerage_at
from brokerlab.lifecycle.timeouts.settings import FRACTION, NQUEUE, RATIO, number, share_threshold
from brokerlab.report.waiting_rules.inputs import Inputs
from brokerlab.report.waiting_rules.sums import Derived, Draws, summed
from brokerlab.times import duration_us, rounded

PLACE = ("computingsite", "gshare")
CONDITIONS = ("ratio_ok", "fraction_ok", "threshold_ok")
THRESHOLDS = (1, 2, 5, 10, 20, 50)
"""Thresholds of queued jobs that are tried: so many times what is set, or 10."""
MEASURES = ("n_met", "to_move")


@dataclass(frozen=True, kw_only=True)
class Fast:
    """What fast rebrokerage would do.

    Attributes:
        instants: ``snapshot``, ``at``.
        shares: One row per instant, queue and share with jobs, see
            :func:`brokerlab.lifecycle.timeouts.fast_rebrokerage_at`, and ``met`` (all conditions hold, with 10 for a
            share without a threshold), ``to_move`` (jobs that would move then), ``onset`` (not met an instant before).
        places: One row per queue and share that meets them: ``computingsite, gshare``, ``n_instants``, ``n_onsets``,
            ``onset_jobs`` (to move at the onsets, once each), ``mean_jobs`` (to move, mean over the instants at which it is
            met), ``max_jobs``, ``dry_run``; most jobs first.
        by_time: ``at``, ``n_places``, ``to_move``.
        totals: Per instant, with intervals over queues: ``n_met`` (queues and shares), ``to_move`` (jobs).
        by_share: ``gshare``, ``dry_run``, ``threshold``, the same.
        keys: ``key, value, current``, the same: one key at a time.
        n_slots: Queues that are left out for slots set by hand.
        waiting: Mean queued jobs per instant, at all queues that count.
    """

    instants: pl.DataFrame
    shares: pl.DataFrame
    places: pl.DataFrame
    by_time: pl.DataFrame
    totals: pl.DataFrame
    by_share: pl.DataFrame
    keys: pl.DataFrame
    n_slots: int
    waiting: float

    @property
    def dry_run(self) -> bool:
        """Whether no share has a threshold, so that nothing moves as things are set."""
        return bool(self.by_share["dry_run"].all())

    @property
    def as_set(self) -> tuple[int, float]:
        """Queues and shares that trigger as things are set, and the jobs that move then, mean over the instants."""
        places = self.shares.filter("triggered").select(PLACE).unique().height
        return places, float(self.shares["n_moved"].sum()) / self.instants.height


def studied(inputs: Inputs, *, every: str, draws: Draws) -> Fast | None:
    """Judge every queue and share at the instants of a period.

    Args:
        inputs: Archive, period and settings.
        every: Step of the instants.
        draws: How intervals are made; queues are drawn, whatever else the study draws.

    Returns:
        What is found; null where no queue and share ever has a job.
    """
    instants = _instants(inputs, every)
    tables = _tables(inputs, instants)
    found = fast_rebrokerage_at(tables, rules=inputs.rules, config=inputs.config)
    if found.is_empty() or instants.is_empty():
        return None
    shares = judged(found, 1 if inputs.rules.fr_row_limit_bug else 0)
    names = shares["computingsite"].unique().sort()
    over_queues = Draws(names, draws.n_boot, draws.seed)
    n = instants.height
    return Fast(
        instants=instants,
        shares=shares,
        places=_places(shares),
        by_time=_by_time(shares, instants),
        totals=_means(shares, [], over_queues, n),
        by_share=_by_share(shares, over_queues, n),
        keys=_keys(inputs, tables, shares, over_queues, n),
        n_slots=tables["slots"]["pandaqueuename"].n_unique(),
        waiting=float(shares["nq"].sum()) / n,
    )


def judged(found: pl.DataFrame, bug: int) -> pl.DataFrame:
    """Add ``met``, ``to_move`` and ``onset``; shares without a threshold are judged with 10, as the dry run does."""
    met = pl.col("excess").is_not_null() & ~pl.col("exempt")
    told = found.with_columns(
        met=met, to_move=pl.when(met).then(pl.max_horizontal(pl.col("excess") - bug, 0)).otherwise(0)
    ).sort(*PLACE, "snapshot")  # fmt: skip
    before = pl.col("met").shift(1).over(PLACE).fill_null(value=False)
    # a queue and share without jobs has no row: an instant that is left out ends an episode
    beside = (pl.col("snapshot") - pl.col("snapshot").shift(1).over(PLACE)) == 1
    going = (before & beside).fill_null(value=False)
    return told.with_columns(onset=pl.col("met") & ~going)


def _instants(inputs: Inputs, every: str) -> pl.DataFrame:
    """Return the instants of the period on the grid."""
    start, end = inputs.window
    begin = pl.select(at=rounded(pl.lit(start, dtype=pl.Datetime("us")), every)).item()
    times = pl.datetime_range(
        begin, end, f"{duration_us(every)}us", closed="left", time_unit="us", eager=True
    )
    inside = pl.DataFrame({"at": times}).filter(pl.col("at") >= start)
    return inside.select(snapshot=pl.int_range(pl.len(), dtype=pl.Int64), at="at")


def _tables(inputs: Inputs, instants: pl.DataFrame) -> dict[str, Any]:
    archive = inputs.archive
    log = archive.job_status_log if archive.has("job_status_log") else None
    counts = Counts.of(archive.jobs, log, instants).table(*PLACE, "jobstatus")
    named = counts.drop_nulls(list(PLACE))
    slots = archive.scan("slots").collect() if archive.has("slots") else pl.DataFrame()
    names = "pandaqueuename" if "pandaqueuename" in slots.columns else "panda_queue"
    known = slots[names].drop_nulls().unique() if names in slots.columns else pl.Series([], dtype=pl.String)  # fmt: skip
    return {
        "share_job_stats": named,
        "queues": inputs.read.places,
        "slots": pl.DataFrame({"pandaqueuename": known}),
    }


def _places(shares: pl.DataFrame) -> pl.DataFrame:
    met = shares.filter("met")
    found = met.group_by(PLACE).agg(
        n_instants=pl.len().cast(pl.Int64),
        n_onsets=pl.col("onset").sum().cast(pl.Int64),
        onset_jobs=pl.col("to_move").filter("onset").sum(),
        mean_jobs=pl.col("to_move").mean(),
        max_jobs=pl.col("to_move").max(),
        dry_run=pl.col("dry_run").first(),
    )
    return found.sort("onset_jobs", *PLACE, descending=[True, False, False])


def _by_time(shares: pl.DataFrame, instants: pl.DataFrame) -> pl.DataFrame:
    sums = shares.group_by("snapshot").agg(
        n_places=pl.col("met").sum().cast(pl.Int64), to_move=pl.col("to_move").sum()
    )
    joined = instants.join(sums, on="snapshot", how="left", maintain_order="left")
    return joined.select("at", pl.col("n_places", "to_move").fill_null(0))


def _means(shares: pl.DataFrame, by: Sequence[str], draws: Draws, n: int) -> pl.DataFrame:
    """Return means over the instants."""
    rows = shares.select(*by, "to_move", unit="computingsite", n_met=pl.col("met").cast(pl.Int64))
    each: Derived = {name: lambda s, name=name: s[name] / n for name in MEASURES}  # type: ignore[misc]
    return summed(rows, by, MEASURES, draws).table(each)


def _by_share(shares: pl.DataFrame, draws: Draws, n: int) -> pl.DataFrame:
    about = shares.group_by("gshare").agg(
        pl.col("dry_run", "threshold").first(), queued=pl.col("nq").sum() / n
    )
    found = _means(shares, ["gshare"], draws, n).join(about, on="gshare")
    return found.sort("to_move", "gshare", descending=[True, False])


def _keys(
    inputs: Inputs, tables: Mapping[str, Any], shares: pl.DataFrame, draws: Draws, n: int
) -> pl.DataFrame:
    """Change one key at a time."""
    parts = []
    for key, value, current, config in _settings(inputs, shares):
        found = fast_rebrokerage_at(tables, rules=inputs.rules, config=config)
        rows = judged(found, 1 if inputs.rules.fr_row_limit_bug else 0)
        told = _means(rows, [], draws, n)
        about = {"key": key, "value": float(value), "current": float(current)}
        parts.append(
            told.select(*(pl.lit(number).alias(name) for name, number in about.items()), pl.all())
        )
    return pl.concat(parts)


def _settings(inputs: Inputs, shares: pl.DataFrame) -> list[tuple[str, float, float, Config]]:
    """Return key, value, current value and configuration of everything that is tried."""
    names = shares["gshare"].unique().sort().to_list()
    config = inputs.config
    told: list[tuple[str, float, float, Config]] = []
    for key in (RATIO, FRACTION):
        current = number(config, key)
        top = 1.0 if key == FRACTION else float("inf")
        values = sorted({min(scale * current, top) for scale in inputs.scales})
        told += [(key, v, current, config.with_values({key: float(v)})) for v in values]
    least = {name: share_threshold(config, name)[0] for name in names}
    usual = sorted(least.values())[len(least) // 2]
    for times in sorted({*THRESHOLDS, *inputs.scales}):
        given = {
            NQUEUE.replace("<gshare>", name): max(1, round(times * value))
            for name, value in least.items()
        }
        told.append((NQUEUE, max(1, round(times * usual)), usual, config.with_values(given)))
    return told
