"""What other limits and the other rule set would do: the same waits, judged rule by rule with each limit shorter and longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from brokerlab.errors import ConfigError
from brokerlab.intervals import Formula, clustered
from brokerlab.lifecycle.timeouts import TimeoutRules, decision_table
from brokerlab.lifecycle.waits.firings import (
    HOUR_US,
    MEASURES,
    QUANTITIES,
    RULE,
    usual_limits,
    with_names,
)
from brokerlab.lifecycle.waits.period import Waiting
from brokerlab.rulesets import switch_by_switch

SCALES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # scales of limits that are worth a look
HALVED_AND_DOUBLED = (0.5, 2.0)  # scales that every answer names
ALL_RULES = "all rules"  # name of the rows of all rules together, with every limit changed alike


def _more(measure: str, unit: float = 1.0) -> Formula:
    """Return the difference to the limits as set."""
    return lambda sums: (sums[measure] - sums[f"{measure}_now"]) / unit


DIFFERENCES: Mapping[str, Formula] = {
    "more_jobs": _more("jobs"),
    "more_after_h": _more("after_us", HOUR_US),
    "more_soon": _more("soon"),
}
SHOWN = ("jobs", "waited_h", "after_h", "soon", "soon_share", "ended")


def other_limits(
    by_scale: Mapping[float, pl.DataFrame],
    *,
    units: pl.Series | None = None,
    n_boot: int = 0,
    seed: int = 1,
) -> pl.DataFrame:
    """Say what every rule would have done with its own limit shorter and longer.

    Rules are judged one by one, whatever the others do before. Waits are those of the archive: one that reaches a longer
    limit after its end does not fire there, so the longer a limit, the fewer waits begin early enough; and where the
    system itself acted at its limit, waits end there.

    One row per rule and scale, and per scale of `ALL_RULES` (number 0; every job once, by its first rule), sorted:
    ``number, rule, action``, ``value`` (the scale), ``is_current``, ``limit_h`` (of most jobs; null for all rules); with
    ``_lo`` and ``_hi`` ``jobs``, ``waited_h``, ``after_h`` (waiting ended, at least), ``soon`` (interrupted needlessly),
    ``soon_share``, ``ended``, and differences to the limits as set, ``more_jobs, more_after_h, more_soon``;
    ``resampled``, ``n_units``.
    """
    if 1.0 not in by_scale or min(by_scale) <= 0:
        scales = list(by_scale)
        raise ConfigError(f"scales={scales}: allowed are numbers above 0, 1 among them")
    counted = {scale: _with_all_rules(rows) for scale, rows in by_scale.items()}
    now = counted[1.0].rename({name: f"{name}_now" for name in MEASURES})
    # a rule that fires at any scale has a row at every one
    every = pl.concat(counted.values()).unique(RULE, keep="first", maintain_order=True)
    rules = every.with_columns(pl.col(MEASURES) * 0)
    formulas = {name: QUANTITIES[name] for name in SHOWN} | dict(DIFFERENCES)
    measures = [*MEASURES, *(f"{name}_now" for name in MEASURES)]
    parts = []
    for scale, rows in counted.items():
        both = pl.concat([rows, now, rules], how="diagonal").with_columns(
            pl.col(measures).fill_null(0)
        )
        result = clustered(
            both, formulas, unit="unit", by=RULE, measures=measures, units=units, n_boot=n_boot, seed=seed
        )  # fmt: skip
        parts.append(result.with_columns(value=pl.lit(float(scale)), is_current=pl.lit(scale == 1)))
    limits = pl.concat(parts).join(_limits_as_set(by_scale), on=list(RULE), how="left")
    first = [*RULE, "value", "is_current", "limit_h"]
    scaled = limits.with_columns(limit_h=pl.col("limit_h") * pl.col("value"))
    return scaled.select(*first, pl.exclude(first)).sort(*RULE, "value")


def _with_all_rules(firings: pl.DataFrame) -> pl.DataFrame:
    """Return the measures of all firings, and once more those of first rules under the name of all."""
    together = firings.filter("first").with_columns(
        number=pl.lit(0, dtype=pl.Int64), rule=pl.lit(ALL_RULES), action=pl.lit("")
    )
    return pl.concat([together, firings]).select("unit", *RULE, *MEASURES)


def _limits_as_set(by_scale: Mapping[float, pl.DataFrame]) -> pl.DataFrame:
    """Return each rule's usual limit, from the longest scale at which it fires."""
    rows = [
        usual_limits(firings).with_columns(pl.col("limit_h") / scale, scale=pl.lit(float(scale)))
        for scale, firings in by_scale.items()
    ]
    ordered = pl.concat(rows).sort(*RULE, "scale")
    return ordered.unique(RULE, keep="last", maintain_order=True).drop("scale")


def undecided_by_end(by_scale: Mapping[float, pl.DataFrame]) -> pl.DataFrame:
    """Count the waits that last to the end of the archive, and what they hide of longer limits.

    ``number, rule, value`` (the scale), ``n_waiting``: jobs for which the rule has fired at the shortest limit, which
    still wait at the end of the archive and are not due at this scale yet: nobody knows whether they would be.
    """
    waiting = by_scale[min(by_scale)].filter(pl.col("outcome") == "waiting")
    key = ["pandaid", *RULE]
    parts = []
    for scale, firings in by_scale.items():
        left = waiting.join(firings, on=key, how="anti")
        counted = left.group_by("number", "rule").agg(n_waiting=pl.len().cast(pl.Int64))
        parts.append(counted.select("number", "rule", pl.lit(float(scale)).alias("value"), "n_waiting"))  # fmt: skip
    return pl.concat(parts).sort("number", "rule", "value")


def fired_before(fired: pl.DataFrame, shorter: pl.DataFrame) -> int:
    """Count the jobs that reach a limit in the period, but its shorter form before: they are missed at that limit."""
    return fired.join(shorter, on=["pandaid", *RULE], how="anti")["pandaid"].n_unique()


def limit_changes(waiting: Waiting, limits: pl.DataFrame) -> pl.DataFrame:
    """Return the rules whose own limits, halved or doubled, would change something.

    The rows of these rules at these scales, the rule with the largest change of ``after_h`` first; ``name``, ``set_by``
    (gdpconfig keys of the limit, null without).
    """
    tried = limits.filter(pl.col("value").is_in(HALVED_AND_DOUBLED), pl.col("rule") != ALL_RULES)
    changing = with_names(tried.filter((pl.col("more_jobs") != 0).any().over(RULE)))
    table = decision_table(rules=waiting.rules, config=waiting.config)
    keys = table.select(*RULE, set_by=pl.col("keys").list.join(", ").replace("", None))
    largest = pl.col("more_after_h").abs().max().over(RULE)
    ordered = changing.sort(largest, *RULE, "value", descending=[True, *[False] * 4])
    return ordered.join(keys, on=list(RULE), how="left", maintain_order="left")


def all_limits_changed(limits: pl.DataFrame) -> pl.DataFrame:
    """Return what all limits together would do, changed alike.

    One row per scale: the columns of :func:`other_limits`, ``setting`` (current, other limits), ``label`` (of the current one,
    of halved and doubled limits and of the shortest ones).
    """
    every = limits.filter(rule=ALL_RULES)
    current, scale = pl.col("is_current"), pl.col("value")
    labelled = scale.is_in(HALVED_AND_DOUBLED) | (scale == scale.min())
    times = pl.format("× {}", scale.cast(pl.String).str.strip_suffix(".0"))
    return every.with_columns(
        setting=pl.when(current).then(pl.lit("current")).otherwise(pl.lit("other limits")),
        label=pl.when(current).then(pl.lit("current")).when(labelled).then(times),
    )


KINDS = ("same", "other_time", "other_rule", "only_current", "only_other")
"""How a job fares under both rule sets."""
FATE = ("rule", "action", "fires")  # what a rule set does to a job, by its first rule


@dataclass(frozen=True, kw_only=True)
class RuleSetComparison:
    """How the rule sets compare."""

    # jobs by ``kind`` (of `KINDS`): ``jobs, jobs_lo, jobs_hi``, ``share`` of the jobs that any of the two times
    # out
    kinds: pl.DataFrame
    # the same by ``current`` and ``other`` rule (null: none) and ``kind``, differing jobs only, most first
    pairs: pl.DataFrame
    switches: pl.DataFrame  # see `brokerlab.rulesets.switch_by_switch`; rows are jobs
    # ``number, rule``, ``current, other``: jobs that it times out under either set
    by_rule: pl.DataFrame

    @property
    def n_any(self) -> int:
        """Jobs that any of the two sets times out."""
        return int(self.kinds["jobs"].sum())

    @property
    def n_different(self) -> int:
        """Jobs that fare differently."""
        return int(self.kinds.filter(pl.col("kind") != "same")["jobs"].sum())


def compare_rule_sets(
    waiting: Waiting, firings: pl.DataFrame, *, n_boot: int = 0, seed: int = 1
) -> RuleSetComparison:
    """Compare the rule set of a period with the other one, job by job, each by its first rule."""
    others = waiting.firings(rules=waiting.other)
    counted = pair_fates(_fates(firings), _fates(others)).with_columns(jobs=pl.lit(1))
    different = counted.filter(pl.col("kind") != "same").rename({"rule": "current", "rule_other": "other"})  # fmt: skip

    def count(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
        units = waiting.units["unit"]
        return clustered(rows, {"jobs": "jobs"}, unit="unit", by=by, units=units, n_boot=n_boot, seed=seed)  # fmt: skip

    def outcomes(rules: TimeoutRules) -> pl.DataFrame:
        return _fates(waiting.firings(rules=rules)).select("pandaid", *FATE)

    kinds = count(counted, "kind").with_columns(share=pl.col("jobs") / pl.col("jobs").sum())
    pairs = count(different, "current", "other", "kind")
    order = pl.col("kind").cast(pl.Enum(KINDS))
    return RuleSetComparison(
        kinds=kinds.sort(order),
        pairs=pairs.sort("jobs", "current", "other", descending=[True, False, False]),
        switches=switch_by_switch(outcomes, waiting.rules, waiting.other, keys=["pandaid"]),
        by_rule=_by_rule(firings, others),
    )


def pair_fates(here: pl.DataFrame, there: pl.DataFrame) -> pl.DataFrame:
    """Put what two rule sets do to every job side by side.

    The columns, those of the other set with ``_other``, and ``kind``, of `KINDS`; sorted by job.
    """
    both = here.join(there, on="pandaid", how="full", suffix="_other", coalesce=True)
    rule, other = pl.struct("rule", "action"), pl.struct(rule="rule_other", action="action_other")
    kind = (
        pl.when(pl.col("rule_other").is_null())
        .then(pl.lit("only_current"))
        .when(pl.col("rule").is_null())
        .then(pl.lit("only_other"))
        .when(rule != other)
        .then(pl.lit("other_rule"))
        .when(pl.col("fires") != pl.col("fires_other"))
        .then(pl.lit("other_time"))
        .otherwise(pl.lit("same"))
    )
    return both.with_columns(kind=kind, unit=pl.coalesce("unit", "unit_other")).sort("pandaid")


def _fates(firings: pl.DataFrame) -> pl.DataFrame:
    return firings.filter("first").select("pandaid", "unit", *FATE)


def _by_rule(here: pl.DataFrame, there: pl.DataFrame) -> pl.DataFrame:
    """Count the jobs of each rule under both sets."""
    sides = [
        firings.group_by("number", "rule").agg(pl.col("pandaid").n_unique().cast(pl.Int64).alias(name))
        for name, firings in (("current", here), ("other", there))
    ]  # fmt: skip
    both = sides[0].join(sides[1], on=["number", "rule"], how="full", coalesce=True)
    return both.with_columns(pl.col("current", "other").fill_null(0)).sort("number", "rule")
