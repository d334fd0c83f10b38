"""Fast rebrokerage: queues where a share waits in vain give jobs back (docs/rules/waiting.md 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.frames import latest, prepared
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts.facts import (
    AT_INSTANTS,
    FAST_TABLES,
    FRACTION,
    RATIO,
    number,
    queue_facts,
    share_threshold,
)
from brokerlab.lifecycle.timeouts.rule import QUEUED, TimeoutRules
from brokerlab.results import Result, Shows

KEY = ("computingsite", "gshare")


@dataclass(frozen=True, repr=False)
class FastRebrokerage(Result):
    """Which queues give jobs of which shares back.

    Attributes:
        shares: One row per queue and share: ``computingsite, gshare, nq, nr, nq_total, ratio, fraction, threshold,
            ratio_ok, fraction_ok, threshold_ok, triggered, dry_run, exempt, excess, n_moved``; sorted by them. ``excess``
            is null where the conditions do not all hold; ``triggered`` is false for a share without a threshold
            (``dry_run``: what 10 would do) and at an exempt queue.
        moved: The jobs that go: ``pandaid, computingsite, gshare, jobstatus``; sorted by job.
        rules: The rule set.
        config_digest: Digest of the configuration.
    """

    shows = Shows(
        about="queues that give jobs of shares back, one row per queue and share",
        columns="computingsite, gshare, nq, nr, ratio_ok, fraction_ok, threshold_ok, triggered, n_moved",
        keys=("computingsite", "gshare"),
        next=("lifecycle.waits.fast_rebrokerage_over(waiting, counts, instants)",),
    )

    shares: pl.DataFrame
    moved: pl.DataFrame
    rules: TimeoutRules
    config_digest: str


def fast_rebrokerage(
    tables: Mapping[str, Any],
    *,
    rules: TimeoutRules | str | None = None,
    config: Config | None = None,
) -> FastRebrokerage:
    """Find the queues whose backlog in a share triggers fast rebrokerage, and the jobs to move.

    ``excess = ceil(min(nq - RATIO nr, nq - L, nq - FRACTION N))``

    ``tables``: ``share_job_stats, jobs, queues, slots, resource_work_queues`` as in `brokerlab.lifecycle.timeouts.facts`, else
    a SchemaError; without ``jobs`` the numbers are told, and no job is named. The configuration has no history.

    Source: docs/rules/waiting.md 4; switches ``fr_row_limit_bug, fr_zero_running_triggers, exemption_mode``.
    """
    chosen = TimeoutRules.of(rules)
    settings = config if config is not None else Config.empty()
    held = prepared(tables, FAST_TABLES)
    judged = _judge(_counts(held["share_job_stats"], held), chosen, settings)
    known = _with_exemptions(judged, held["queues"], chosen)
    wanted = known.with_columns(wanted=_wanted(chosen))
    moved = _oldest(held["jobs"], wanted)
    counted = moved.group_by(KEY).agg(found=pl.len().cast(pl.Int64))
    shares = wanted.join(counted, on=KEY, how="left", maintain_order="left")
    # without a table of jobs the number is what would move; with one, what was there to move
    there = pl.col("found").fill_null(0) if "jobs" in tables else pl.col("wanted")
    return FastRebrokerage(
        shares.with_columns(n_moved=there).drop("found", "wanted"), moved, chosen, settings.digest
    )


def fast_rebrokerage_at(
    tables: Mapping[str, Any],
    *,
    rules: TimeoutRules | str | None = None,
    config: Config | None = None,
) -> pl.DataFrame:
    """Find the queues whose backlog in a share triggers fast rebrokerage at many instants, each by itself.

    ``snapshot`` and the columns of :attr:`FastRebrokerage.shares`; ``n_moved`` is what would move. Sorted by
    instant, queue and share.

    ``tables`` as for `fast_rebrokerage`, without ``jobs``; ``share_job_stats`` with ``snapshot``, the others hold for all instants.

    Source: docs/rules/waiting.md 4.
    """
    chosen = TimeoutRules.of(rules)
    settings = config if config is not None else Config.empty()
    held = prepared(tables, FAST_TABLES | AT_INSTANTS)
    known = _judge(_counts(held["share_job_stats"], held, "snapshot"), chosen, settings)
    exempted = _with_exemptions(known, held["queues"], chosen, "snapshot")
    return exempted.with_columns(n_moved=_wanted(chosen))


def _wanted(rules: TimeoutRules) -> pl.Expr:
    """Return how many jobs are to move."""
    bug = 1 if rules.fr_row_limit_bug else 0
    return pl.when("triggered").then(pl.max_horizontal(pl.col("excess") - bug, 0)).otherwise(0)


def _counts(stats: pl.DataFrame, held: Mapping[str, pl.DataFrame], *over: str) -> pl.DataFrame:
    """Return ``nq``, ``nr`` and the share's ``nq_total`` of each queue and share that counts."""
    slots, resources = held["slots"]["pandaqueuename"], held["resource_work_queues"]
    stats = stats.filter(
        ~pl.col("computingsite").is_in(slots.to_list()),
        ~pl.col("workqueue_id").is_in(resources["workqueue_id"].to_list()).fill_null(value=False),
    )
    status, njobs = pl.col("jobstatus"), pl.col("njobs")
    counts = stats.group_by(*over, *KEY).agg(
        nq=njobs.filter(status.is_in(QUEUED)).sum(), nr=njobs.filter(status == "running").sum()
    )
    total = pl.col("nq").sum().over(*over, "gshare")
    return counts.with_columns(nq_total=total).sort(*over, *KEY)


def _judge(counts: pl.DataFrame, rules: TimeoutRules, config: Config) -> pl.DataFrame:
    """Add the thresholds, the conditions 4.1 to 4.3 and the excess."""
    shares = counts["gshare"].unique().sort().to_list()
    least = {share: share_threshold(config, share) for share in shares}
    known = counts.with_columns(
        ratio=pl.lit(number(config, RATIO), dtype=pl.Float64),
        fraction=pl.lit(number(config, FRACTION), dtype=pl.Float64),
        threshold=_of_share({name: float(value) for name, (value, _) in least.items()}, pl.Float64),
        dry_run=_of_share({name: dry for name, (_, dry) in least.items()}, pl.Boolean),
    )
    nq, running = pl.col("nq"), pl.col("ratio") * pl.col("nr")
    over_ratio = nq > running
    if not rules.fr_zero_running_triggers:
        over_ratio &= pl.col("nr") > 0
    share = pl.col("fraction") * pl.col("nq_total")
    judged = known.with_columns(
        ratio_ok=over_ratio, fraction_ok=nq > share, threshold_ok=nq > pl.col("threshold")
    )
    over = pl.min_horizontal(nq - running, nq - pl.col("threshold"), nq - share)
    met = pl.col("ratio_ok") & pl.col("fraction_ok") & pl.col("threshold_ok")
    return judged.with_columns(excess=pl.when(met).then(over.ceil()).cast(pl.Int64))


def _of_share(values: Mapping[str, Any], dtype: Any) -> pl.Expr:
    return pl.col("gshare").replace_strict(values, default=None, return_dtype=dtype)


def _with_exemptions(
    judged: pl.DataFrame, queues: pl.DataFrame, rules: TimeoutRules, *over: str
) -> pl.DataFrame:
    """Add ``exempt`` and ``triggered``."""
    flags = queue_facts(latest(queues)).select(
        "computingsite", exempt=pl.col("queue_paused") | pl.col("queue_stays")
    )
    known = judged.join(flags, on="computingsite", how="left", maintain_order="left")
    applies = pl.lit(rules.exemption_mode == "document")
    known = known.with_columns(exempt=pl.col("exempt").fill_null(value=False) & applies)
    names = ("ratio_ok", "fraction_ok", "threshold_ok")
    triggered = pl.col("excess").is_not_null() & ~pl.col("dry_run") & ~pl.col("exempt")
    return known.with_columns(triggered=triggered).select(
        *over, *KEY, "nq", "nr", "nq_total", "ratio", "fraction", "threshold",
        *names, "triggered", "dry_run", "exempt", "excess",
    )  # fmt: skip


def _oldest(jobs: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """Return the oldest waiting jobs of each queue and share, as many as wanted."""
    waiting = jobs.filter(pl.col("jobstatus").is_in(QUEUED))
    chosen = waiting.join(wanted.select(*KEY, "wanted"), on=KEY).sort("pandaid")
    place = pl.int_range(pl.len()).over(KEY)
    kept = chosen.filter(place < pl.col("wanted"))
    return kept.select("pandaid", *KEY, "jobstatus")
