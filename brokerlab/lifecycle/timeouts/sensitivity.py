"""What timeouts cost: waiting that was in vain before they fire, and what other limits would do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts.histories import histories
from brokerlab.lifecycle.timeouts.rules import TimeoutRules

SCALES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
RULE = ("number", "rule", "action")


def wasted_waiting(
    fired: pl.DataFrame, *, by: Sequence[str] = (), soon_h: float = 1.0
) -> pl.DataFrame:
    """Add up what jobs waited in vain before a rule fired, and what came after.

    Args:
        fired: Result of :func:`brokerlab.lifecycle.timeouts.would_fire`.
        by: Columns of it to group by, besides the rule: ``computingsite``, ``gshare``...
        soon_h: A job that went on by itself within this was interrupted for nothing [h].

    Returns:
        One row per rule, action and group: ``number, rule, action``, ``by``, ``jobs``, ``waited_h`` (until the rule
        fires, all jobs), ``waited_median_h``, ``waited_max_h``, ``after_h`` (from then until the wait ended or the
        history did, all jobs: what the rule spares, at least), ``soon`` (jobs that went on by themselves within
        ``soon_h``), ``ended`` (jobs that came to nothing: in an archive of a system that has the rule, its own doing
        among them), ``stuck`` (jobs that still waited when the history ended), ``undecided`` (those of them for which
        that was within ``soon_h``: they may have gone on soon). Sorted by rule and group. Of the jobs but
        ``undecided`` the part ``soon`` is known.

    Example:
        >>> fired = pl.DataFrame(
        ...     {"number": [8, 8], "rule": "sent", "action": "fail", "waited_h": [0.5, 0.5], "spared_h": [0.2, 9.0],
        ...      "outcome": ["went_on", "waiting"]}
        ... )
        >>> wasted_waiting(fired).select("rule", "jobs", "waited_h", "after_h", "soon", "stuck").rows()
        [('sent', 2, 1.0, 9.2, 1, 1)]
    """
    outcome, near = pl.col("outcome"), pl.col("spared_h") <= soon_h
    keys = [*RULE, *by]
    # in order of the rows: sums of floats come out the same every time
    return (
        fired.group_by(keys, maintain_order=True)
        .agg(
            jobs=pl.len().cast(pl.Int64),
            waited_h=pl.col("waited_h").sum(),
            waited_median_h=pl.col("waited_h").median(),
            waited_max_h=pl.col("waited_h").max(),
            after_h=pl.col("spared_h").sum(),
            soon=((outcome == "went_on") & near).sum().cast(pl.Int64),
            ended=(outcome == "came_to_nothing").sum().cast(pl.Int64),
            stuck=(outcome == "waiting").sum().cast(pl.Int64),
            undecided=((outcome == "waiting") & near).sum().cast(pl.Int64),
        )
        .sort(keys)
    )


def other_limits(
    jobs: Any,
    status_log: Any = None,
    *,
    at: datetime,
    scales: Sequence[float] = SCALES,
    queues: Any = None,
    heartbeats: Any = None,
    rules: TimeoutRules | None = None,
    config: Config | None = None,
    by: Sequence[str] = (),
    soon_h: float = 1.0,
) -> pl.DataFrame:
    """Say what every rule would have done with its own limit shorter and longer.

    Rules are judged one by one: a row tells what a rule does at a limit, whatever the others do before. The archive is
    read once, for the shortest limits. For a single key compare results of ``would_fire`` under ``config.with_values``.

    Waits are those of the archive. One that reaches a longer limit after ``at`` does not fire there, so the longer a
    limit, the fewer waits begin early enough; and where the system itself acted at its limit, waits end there.

    Args:
        jobs: Table ``jobs``; this and the following as in :func:`brokerlab.lifecycle.timeouts.would_fire`.
        status_log: Table ``job_status_log``.
        at: End of the history, UTC without zone.
        scales: How many times as long each limit is made; 1 is what is set.
        queues: Table ``queues``.
        heartbeats: Signs of life.
        rules: The rule set.
        config: The configuration.
        by: Columns to group by; see :func:`wasted_waiting`.
        soon_h: See :func:`wasted_waiting`.

    Returns:
        ``scale`` and the columns of :func:`wasted_waiting`; a rule that does not fire at a scale has no row there.
        Sorted by rule, group and scale.

    Raises:
        ConfigError: A scale is not above 0, or there is none.
        SchemaError: Required columns are missing.
        DataError: The tables live in different engines.
    """
    bad = [scale for scale in scales if not scale > 0]
    if bad or not scales:
        raise ConfigError(f"scales={list(scales)}: allowed are numbers above 0, at least one")
    read = histories(
        jobs, status_log, at=at, queues=queues, heartbeats=heartbeats, rules=rules, config=config,
        least=min(scales),
    )  # fmt: skip
    parts = [
        wasted_waiting(read.fired(scale), by=by, soon_h=soon_h).select(
            pl.lit(float(scale)).alias("scale"), pl.all()
        )
        for scale in sorted(set(scales))
    ]
    return pl.concat(parts).sort(*RULE, *by, "scale")
