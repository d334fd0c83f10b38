"""The decision table as a table, for pages and notebooks."""

from __future__ import annotations

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts.catalogue import timeout_rules
from brokerlab.lifecycle.timeouts.facts import TRANSFERRING_DAYS
from brokerlab.lifecycle.timeouts.rule import TimeoutRule
from brokerlab.lifecycle.timeouts.rules import TimeoutRules
from brokerlab.lifecycle.timeouts.settings import ANALYSIS, PRODUCTION, Limits
from brokerlab.units import DAY_S, HOUR_S


def decision_table(
    *, rules: TimeoutRules | None = None, config: Config | None = None, workflow: str = PRODUCTION
) -> pl.DataFrame:
    """Return the rules of a rule set in order, with the limits that a configuration sets.

    Args:
        rules: The rule set; ``document`` by default.
        config: The configuration at an instant; defaults only by default.
        workflow: Whose heartbeat limit to tell; one without a limit has that of ``production``.

    Returns:
        ``number, rule, action, statuses`` (list), ``reference``, ``limit_h`` (of a queue that sets none itself),
        ``keys`` (list of gdpconfig keys), ``second_look`` (whether the job is looked at again), ``source``.

    Source: docs/rules/waiting.md 2.

    Example:
        >>> decision_table().select("rule", "action", "limit_h").head(3).rows()
        [('pending', 'kill', 1.0), ('defined', 'reassign', 4.0), ('assigned', 'reassign', 12.0)]
    """
    chosen = rules if rules is not None else TimeoutRules()
    settings = config if config is not None else Config.empty()
    limits = Limits.of(settings, {workflow} - {PRODUCTION, ANALYSIS})
    silence = limits.heartbeat_s.get(workflow, limits.heartbeat_s[PRODUCTION])
    days = {f"{name}_s": int(value * DAY_S) for name, value in TRANSFERRING_DAYS.items()}
    queue = nw.from_native(pl.DataFrame({"heartbeat_s": silence, **days}))

    def row(rule: TimeoutRule) -> dict[str, object]:
        limit = queue.select(limit=rule.limit_s)["limit"].item()
        return {
            "number": rule.number,
            "rule": rule.name,
            "action": rule.action,
            "statuses": list(rule.statuses),
            "reference": rule.reference,
            "limit_h": limit / HOUR_S,
            "keys": list(rule.keys),
            "second_look": rule.second_s is not None,
            "source": rule.source,
        }

    schema = {"keys": pl.List(pl.String)}
    return pl.DataFrame(
        [row(rule) for rule in timeout_rules(chosen, limits)], schema_overrides=schema
    )
