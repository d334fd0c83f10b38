"""The brokerage of the Lighthouse Observatory, an organisation that does not exist: production's, but with the sun.

It starts its workers itself, so it does not ask for pilots; queues on solar power get no work at night, and more
than others by day. What it knows of its queues is a table of its own.
"""

from __future__ import annotations

from dataclasses import replace

import dataframely as dy
import polars as pl

from brokerlab.brokerage.engine.lookup import Known, Lookup
from brokerlab.brokerage.engine.own import inserted, without
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE as PRODUCTION
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_jobs.ranking import product
from brokerlab.brokerage.rules import ProductionRules

MOSTLY = 0.5
"""Queues with a larger part of solar power stop at night."""


class PowerSources(dy.Schema):
    """What feeds a queue; a queue without a row has no solar power."""

    panda_queue = dy.String(nullable=False)
    solar = dy.Float64(nullable=False, min=0, max=1)
    longitude = dy.Float64(nullable=False, min=-180, max=180)


def lookups(rules: ProductionRules) -> tuple[Lookup, ...]:
    """Return production's, and ``q_solar`` (part of the power) and ``q_longitude`` (degrees east) of queues."""
    facts = {"q_solar": 0.0, "q_longitude": 0.0}
    return (*PRODUCTION.lookups(rules), Lookup(place=("panda_queue",), facts=facts, rows=power))


def power(known: Known) -> pl.LazyFrame:
    """Return the power sources of queues, with the names of their facts."""
    return known.tables["power_sources"].rename({"solar": "q_solar", "longitude": "q_longitude"})


def solar_night() -> Rule:
    """Return the check that spares queues on solar power between 18 and 6 o'clock, mean solar time."""
    hour = (pl.col("t_at_s") / 3600 + pl.col("q_longitude") / 15) % 24
    return Rule(
        name="solar_night",
        source="Lighthouse handbook 4.2",
        says="{q_solar} of its power is solar, and it is {hour} o'clock there",
        when=(pl.col("q_solar") > MOSTLY) & ((hour < 6) | (hour >= 18)),
        kind="temporary",
        numbers={"hour": hour},
    )


def checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return production's checks without the pilots, and with the night after the status."""
    ours = without(queue_checks(rules), "no_pilot")
    return inserted(ours, solar_night(), after="status_offline")


def weight(rules: ProductionRules) -> pl.Expr:
    """Return production's weight, three times as much under full sun."""
    return product(rules) * (1 + 2 * pl.col("q_solar"))


BROKERAGE = replace(
    PRODUCTION,
    name="lighthouse",
    organisation="Lighthouse Observatory",
    description="production brokerage that follows the sun",
    documentation="Lighthouse handbook 4",
    checks=checks,
    own_weight=weight,
    tables={**PRODUCTION.tables, "power_sources": PowerSources},
    lookups=lookups,
)
