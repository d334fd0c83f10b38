"""Fast rebrokerage over a period: which queues and shares trigger at its instants, and what its keys do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.keys import rows_of
from brokerlab.gdpconfig.ranges import grid
from brokerlab.intervals import Formula, clustered
from brokerlab.lifecycle.timeouts import fast_rebrokerage_at
from brokerlab.lifecycle.timeouts.facts import FRACTION, NQUEUE, RATIO, number, share_threshold
from brokerlab.lifecycle.waits.period import Waiting

PLACE = ("computingsite", "gshare")
PREFIX = "FAST_REBRO_THRESHOLD_"  # what the names of its keys begin with
POINTS = 6  # values tried of each key, besides the current one, its half and its double


@dataclass(frozen=True, kw_only=True)
class FastOver:
    """What fast rebrokerage would do at instants, each judged in the state that history left."""

    # one row per instant, queue and share with jobs: the columns of
    # `brokerlab.lifecycle.timeouts.fast_rebrokerage_at` and those of `with_dry_run`
    shares: pl.DataFrame
    # one row per queue and share that meets the conditions: ``computingsite, gshare``, ``n_instants``,
    # ``met_share`` (of the instants [1]), ``n_onsets``, ``onset_jobs`` (to move at the onsets, once each),
    # ``mean_jobs`` (to move, mean over the instants at which they are met), ``max_jobs``, ``dry_run``; most
    # jobs first
    places: pl.DataFrame
    # ``at``, ``n_places`` (that meet the conditions), ``to_move`` (jobs); one row per instant
    by_time: pl.DataFrame
    # one row of means over the instants, with ``_lo`` and ``_hi`` over queues: ``n_met`` (queues and shares),
    # ``to_move`` (jobs); ``resampled``, ``n_units``
    totals: pl.DataFrame
    # the same by ``gshare``, with its ``threshold``, ``dry_run`` and mean ``queued`` jobs; most to move first
    by_share: pl.DataFrame
    # the same by ``key`` and ``value``, one key at a time, with ``is_current`` and ``times`` (value over the
    # current one), ``name`` (the key without what all begin with); of the threshold ``value`` is that of the
    # median share, those of the others rise and fall with it
    keys: pl.DataFrame
    n_slots: int  # queues that are left out for slots set by hand
    queued: float  # mean queued jobs at an instant, at all queues that count

    @property
    def n_instants(self) -> int:
        """Instants looked at."""
        return self.by_time.height

    @property
    def widest_key(self) -> dict[str, Any]:
        """The key whose values make the largest difference: ``name``, ``low``, ``high`` (jobs to move at an instant)."""
        ends = self.keys.group_by("name", maintain_order=True).agg(
            low=pl.col("to_move").min(), high=pl.col("to_move").max()
        )
        return ends.sort(pl.col("high") - pl.col("low"), descending=True).row(0, named=True)

    @property
    def dry_run(self) -> bool:
        """Whether no share has a threshold, so that nothing moves as things are set."""
        return bool(self.by_share["dry_run"].all())

    @property
    def n_places_as_set(self) -> int:
        """Queues and shares that trigger as things are set."""
        return self.shares.filter("triggered").select(PLACE).unique().height

    @property
    def moved_as_set(self) -> float:
        """Jobs that move at an instant as things are set, mean."""
        return float(self.shares["n_moved"].sum()) / self.n_instants


def fast_rebrokerage_over(
    waiting: Waiting,
    counts: pl.DataFrame,
    instants: pl.DataFrame,
    *,
    points: int = POINTS,
    n_boot: int = 0,
    seed: int = 1,
) -> FastOver | None:
    """Judge every queue and share at the instants of a period.

    ``counts``: jobs at the instants, ``snapshot, computingsite, gshare, jobstatus, njobs``; ``instants``: ``snapshot, at``; ``points``: values
    tried of each key, besides the current one, its half and its double; of the bootstrap queues are drawn, ``n_boot`` 0: no
    intervals. None where no queue and share ever has a job at an instant.
    """
    tables = {
        "share_job_stats": counts.drop_nulls(list(PLACE)),
        "queues": waiting.histories.places,
        "slots": _slots(waiting),
    }
    shares = _judge(waiting, tables, waiting.config)
    if shares.is_empty():
        return None
    means = _Means(shares["computingsite"].unique().sort(), instants.height, n_boot, seed)
    parts = []
    for key, value, current, config in _settings(waiting.config, shares, points):
        judged = means.of(_judge(waiting, tables, config))
        about = {
            "key": key,
            "name": key.removeprefix(PREFIX),
            "value": float(value),
            "is_current": value == current,
            "times": value / current,
        }
        parts.append(judged.select(*(pl.lit(v).alias(name) for name, v in about.items()), pl.all()))
    about_share = shares.group_by("gshare").agg(
        pl.col("dry_run", "threshold").first(), queued=pl.col("nq").sum() / instants.height
    )
    by_share = means.of(shares, "gshare").join(about_share, on="gshare")
    return FastOver(
        shares=shares,
        places=_places(shares, instants.height),
        by_time=_by_time(shares, instants),
        totals=means.of(shares),
        by_share=by_share.sort("to_move", "gshare", descending=[True, False]),
        keys=pl.concat(parts),
        n_slots=tables["slots"].height,
        queued=float(shares["nq"].sum()) / instants.height,
    )


def with_dry_run(shares: pl.DataFrame, *, too_few: int = 0) -> pl.DataFrame:
    """Say what would move if shares without a threshold had 10, as the dry run takes it.

    Its columns and ``met`` (all conditions hold), ``to_move`` (jobs that would move), ``onset`` (not met an instant
    before); sorted by queue, share and instant.
    """
    met = pl.col("excess").is_not_null() & ~pl.col("exempt")
    to_move = pl.when(met).then(pl.max_horizontal(pl.col("excess") - too_few, 0)).otherwise(0)
    known = shares.with_columns(met=met, to_move=to_move).sort(*PLACE, "snapshot")
    before = pl.col("met").shift(1).over(PLACE)
    # a queue and share without jobs has no row: an instant that is left out ends an episode
    adjacent = (pl.col("snapshot") - pl.col("snapshot").shift(1).over(PLACE)) == 1
    going = (before & adjacent).fill_null(value=False)
    return known.with_columns(onset=pl.col("met") & ~going)


def _judge(waiting: Waiting, tables: Mapping[str, pl.DataFrame], config: Config) -> pl.DataFrame:
    shares = fast_rebrokerage_at(tables, rules=waiting.rules, config=config)
    return with_dry_run(shares, too_few=1 if waiting.rules.fr_row_limit_bug else 0)


def _slots(waiting: Waiting) -> pl.DataFrame:
    """Return the queues with slots set by hand, which fast rebrokerage leaves alone."""
    if not waiting.archive.has("slots"):
        return pl.DataFrame(schema={"pandaqueuename": pl.String})
    slots = waiting.archive.scan("slots").select("pandaqueuename")
    return slots.drop_nulls().unique().collect()


@dataclass(frozen=True)
class _Means:
    """Means over the instants, with intervals over queues."""

    queues: pl.Series
    n_instants: int
    n_boot: int
    seed: int

    def of(self, shares: pl.DataFrame, *by: str) -> pl.DataFrame:
        """Return ``by, n_met, to_move`` with their ends."""
        rows = shares.select(*by, "to_move", "computingsite", n_met=pl.col("met").cast(pl.Int64))
        return clustered(
            rows,
            {"n_met": self._mean("n_met"), "to_move": self._mean("to_move")},
            unit="computingsite",
            by=by,
            measures=["n_met", "to_move"],
            units=self.queues,
            n_boot=self.n_boot,
            seed=self.seed,
        )

    def _mean(self, measure: str) -> Formula:
        return lambda sums: sums[measure] / self.n_instants


def _places(shares: pl.DataFrame, n_instants: int) -> pl.DataFrame:
    met = shares.filter("met").group_by(PLACE)
    result = met.agg(
        n_instants=pl.len().cast(pl.Int64),
        met_share=pl.len() / n_instants,
        n_onsets=pl.col("onset").sum().cast(pl.Int64),
        onset_jobs=pl.col("to_move").filter("onset").sum(),
        mean_jobs=pl.col("to_move").mean(),
        max_jobs=pl.col("to_move").max(),
        dry_run=pl.col("dry_run").first(),
    )
    return result.sort("onset_jobs", *PLACE, descending=[True, False, False])


def _by_time(shares: pl.DataFrame, instants: pl.DataFrame) -> pl.DataFrame:
    sums = shares.group_by("snapshot").agg(
        n_places=pl.col("met").sum().cast(pl.Int64), to_move=pl.col("to_move").sum()
    )
    joined = instants.join(sums, on="snapshot", how="left", maintain_order="left")
    return joined.select("at", pl.col("n_places", "to_move").fill_null(0))


def _settings(
    config: Config, shares: pl.DataFrame, points: int
) -> list[tuple[str, float, float, Config]]:
    """Return key, value, current value and configuration of everything that is tried."""
    tried: list[tuple[str, float, float, Config]] = []
    for key in (RATIO, FRACTION):
        current = number(config, key)
        tried += [
            (key, value, current, config.with_values({key: value}))
            for value in _values(key, current, points)
        ]
    least = {
        name: share_threshold(config, name)[0]
        for name in shares["gshare"].unique().sort().to_list()
    }
    usual = sorted(least.values())[len(least) // 2]
    own_keys = {NQUEUE.replace("<gshare>", name): own for name, own in least.items()}
    for value in _values(NQUEUE, usual, points):
        given = {  # of a share whose name no key can hold the threshold stays
            key: max(1, round(value / usual * own)) for key, own in own_keys.items() if rows_of(key)
        }
        tried.append((NQUEUE, value, usual, config.with_values(given)))
    return tried


def _values(key: str, current: float, points: int) -> list[Any]:
    """Return the values to try; 0 means the default (docs/rules/waiting.md 1, "0/undef")."""
    return [value for value in grid(rows_of(key)[0], current, points) if value > 0]
