"""Judge the waiting of a period: which rules fire, what it costs, other limits, fast rebrokerage, both rule sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.lifecycle import waiting as judge
from brokerlab.lifecycle.waiting.fast import FastOver, instants_of
from brokerlab.lifecycle.waiting.firings import RULE, wait_of_jobs
from brokerlab.lifecycle.waiting.rule_sets import RuleSetComparison
from brokerlab.report.replays.period import grain
from brokerlab.report.waiting_rules.inputs import Inputs

N_BOOT = 1000
"""Bootstrap replicates."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is found about the waiting of a period.

    Attributes:
        inputs: What it was made from.
        fired: One row per firing of the period.
        total: All firings, every job once by its first rule.
        by_rule: The quantities by rule, with intervals, and what single jobs waited.
        by_time: Jobs by rule and day or week.
        by_queue, by_gshare, by_label, by_priority: The quantities by rule and level.
        exempted: Firings that only the exemption of queues prevents, by rule.
        n_spared: Jobs that it spares from some rule.
        n_silent: Live jobs that had been silent for longer than their limit at the end of the archive, whatever the period.
        quiet: Rules of the set that never fire: ``number, rule, statuses, limit_h``, ``seen`` (whether the archive
            tells of any of their statuses).
        limits: See `other_limits`.
        cut_off: See `undecided_by_end`.
        fast: Fast rebrokerage; null where the archive cannot tell.
        rule_sets: The other rule set.
    """

    inputs: Inputs
    fired: pl.DataFrame
    total: dict[str, Any]
    by_rule: pl.DataFrame
    by_time: pl.DataFrame
    by_queue: pl.DataFrame
    by_gshare: pl.DataFrame
    by_label: pl.DataFrame
    by_priority: pl.DataFrame
    exempted: pl.DataFrame
    n_spared: int
    n_silent: int
    quiet: pl.DataFrame
    limits: pl.DataFrame
    cut_off: pl.DataFrame
    fast: FastOver | None
    rule_sets: RuleSetComparison

    @property
    def n_units(self) -> int:
        """Units that the bootstrap draws from."""
        return self.inputs.waiting.units.height

    @property
    def n_fired(self) -> int:
        """Jobs that any rule times out."""
        return int(self.fired["pandaid"].n_unique())


def study(inputs: Inputs, *, every: str = "6h", n_boot: int = N_BOOT, seed: int = 1) -> Study:
    """Judge the waiting of a period.

    Args:
        inputs: From `load`.
        every: Step of the instants at which fast rebrokerage is looked at.
        n_boot: Bootstrap replicates.
        seed: Of every draw.

    Returns:
        The study.
    """
    waiting = inputs.waiting
    again: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    draws: dict[str, Any] = {"units": waiting.units["unit"], **again}
    by_scale = {scale: waiting.firings(scale) for scale in inputs.scales}
    fired = by_scale[1.0]

    def by(column: str, **how: Any) -> pl.DataFrame:
        named = fired.with_columns(pl.col(column).fill_null("none"))
        return judge.wasted_waiting(named, by=[column, *RULE], **how)

    spared = waiting.exempted(fired)
    instants = instants_of(waiting.start, waiting.end, every)
    by_rule = judge.wasted_waiting(fired, **draws)
    return Study(
        inputs=inputs,
        fired=fired,
        total=judge.wasted_waiting(fired.filter("first"), by=(), **draws).row(0, named=True),
        by_rule=by_rule.join(wait_of_jobs(fired), on=list(RULE), how="left").sort(RULE),
        by_time=judge.firings_over_time(
            fired, every=grain(inputs.window), start=waiting.start, end=waiting.end, **draws
        ),
        by_queue=by("computingsite", **({} if waiting.unit == "queue" else draws)),
        by_gshare=by("gshare", **draws),
        by_label=by("prodsourcelabel", **draws),
        by_priority=by("priority", **draws),
        exempted=judge.wasted_waiting(spared, **draws),
        n_spared=spared["pandaid"].n_unique(),
        n_silent=waiting.n_silent(),
        quiet=waiting.quiet_rules(fired),
        limits=judge.other_limits(by_scale, **draws).rename({"value": "scale"}),
        cut_off=judge.undecided_by_end(by_scale).rename({"value": "scale"}),
        fast=judge.fast_rebrokerage_over(waiting, inputs.counts(instants), instants, **again),
        rule_sets=judge.compare_rule_sets(waiting, fired, **again),
    )
