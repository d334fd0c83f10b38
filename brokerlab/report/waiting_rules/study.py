"""Judge the waiting of a period: which rules fire, what it costs, other limits, fast rebrokerage, both rule sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.lifecycle.timeouts import decision_table
from brokerlab.report.replays.period import grain
from brokerlab.report.waiting_rules import fast, firing, limits, rulesets
from brokerlab.report.waiting_rules.fast import Fast
from brokerlab.report.waiting_rules.inputs import Inputs
from brokerlab.report.waiting_rules.rulesets import RuleSets
from brokerlab.report.waiting_rules.sums import Draws

N_BOOT = 1000
"""Bootstrap replicates."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is found about the waiting of a period.

    Attributes:
        inputs: What it was made from.
        fired: One row per firing of the period, see :func:`firing.prepared`.
        total: All firings, every job once by its first rule, quantities of `firing.HOURS`.
        by_rule: The quantities by rule, with intervals, and what single jobs waited.
        by_time: Jobs by rule and day or week.
        by_queue, by_gshare, by_label, by_priority: The quantities by rule and level.
        exempted: Firings that only the exemption of queues prevents, by rule.
        n_spared: Jobs that it spares from some rule.
        n_silent: Live jobs that had been silent for longer than their limit at the end of the archive, whatever the period.
        quiet: Rules of the set that never fire: ``number, rule, statuses, limit_h``, ``seen`` (whether the archive
            tells of any of their statuses).
        limits: From `limits.studied`.
        cut_off: From `limits.cut_off`.
        fast: Fast rebrokerage; null where the archive cannot tell.
        rule_sets: From `rulesets.studied`.
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
    fast: Fast | None
    rule_sets: RuleSets

    @property
    def n_units(self) -> int:
        """Units that the bootstrap draws from."""
        return self.inputs.units.height

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
    draws = Draws(inputs.units["unit"], n_boot, seed)
    by_scale = limits.judged(inputs)
    fired = by_scale[1.0]
    own = None if inputs.unit == "queue" else draws
    rule = list(firing.RULE)
    by_rule = firing.by(fired, rule, draws).join(firing.medians(fired), on=rule, how="left")
    spared = firing.exempted(inputs, fired)
    queues = fired.with_columns(pl.col("computingsite").fill_null("none"))
    named = fired.with_columns(pl.col("gshare", "prodsourcelabel").fill_null("none"))
    return Study(
        inputs=inputs,
        fired=fired,
        total=firing.total(fired, draws),
        by_rule=by_rule.sort(rule),
        by_time=firing.over_time(fired, inputs, grain(inputs.window), draws),
        by_queue=firing.by(queues, ["computingsite", *rule], own),
        by_gshare=firing.by(named, ["gshare", *rule], draws),
        by_label=firing.by(named, ["prodsourcelabel", *rule], draws),
        by_priority=firing.by(named, ["priority", *rule], draws),
        exempted=firing.by(spared, rule, draws),
        n_spared=spared["pandaid"].n_unique(),
        n_silent=firing.silent(inputs),
        quiet=_quiet(inputs, fired),
        limits=limits.studied(by_scale, draws),
        cut_off=limits.cut_off(by_scale),
        fast=fast.studied(inputs, every=every, draws=draws),
        rule_sets=rulesets.studied(inputs, fired, draws),
    )


def _quiet(inputs: Inputs, fired: pl.DataFrame) -> pl.DataFrame:
    """Return the rules that never fire, and whether the archive has any job in their statuses."""
    table = decision_table(rules=inputs.rules, config=inputs.config)
    rest = table.join(fired.select("rule", "action").unique(), on=["rule", "action"], how="anti")
    seen = [bool(inputs.seen.intersection(statuses)) for statuses in rest["statuses"]]
    return rest.select("number", "rule", "action", "statuses", "limit_h", seen=pl.Series(seen, dtype=pl.Boolean))  # fmt: skip
