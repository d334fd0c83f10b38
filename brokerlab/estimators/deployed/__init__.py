"""The rules that systems deploy today, as estimators: what everything else is measured against."""

from __future__ import annotations

from dataclasses import replace

from brokerlab.errors import ConfigError, nearest
from brokerlab.estimators.deployed.given import (
    MeanWalltime,
    PercentileMemory,
    PercentileWalltime,
    ScoutMemory,
    ScoutWalltime,
)
from brokerlab.estimators.deployed.rule import Anew, Formula, Recorded, Rule
from brokerlab.estimators.deployed.seen import Seen
from brokerlab.estimators.records import UNITS, Quantity

SCOUT_JOBS = 10
SECOND_TRIGGER = 100
MOST_JOBS = 1000
SCOUTS_MEMORY = "PanDA scouts p75 x 1.1"
SCOUTS_WALLTIME = "PanDA scouts p95 x 1.5"
DEPLOYED: dict[Quantity, str] = {"memory": SCOUTS_MEMORY, "walltime": SCOUTS_WALLTIME}
"""The rule that PanDA applies to each quantity."""
_LAST_TWO = PercentileWalltime(Seen(50, least=2, most=2))


def rules(quantity: Quantity, *, scouts: int = SCOUT_JOBS) -> list[Rule]:
    """Return the deployed rules of a quantity, nothing seen yet; the one of PanDA first.

    Source: sizing.md, sections 4, 6 and 8; scouts.md, sections 5 and 7.
    """
    if quantity not in UNITS:
        raise ConfigError(f"quantity '{quantity}': {nearest(quantity, UNITS)}")
    return _memory(scouts) if quantity == "memory" else _walltime(scouts)


def _scouts(rank: float, scouts: int) -> tuple[Seen, Seen, Seen]:
    """Return what is seen by the first estimate, by the one at the second trigger, and by one made anew each time."""
    first = Seen(rank, least=(scouts + 1) // 2, most=scouts, latest=False)
    at_trigger = Seen(rank, least=SECOND_TRIGGER, most=SECOND_TRIGGER, latest=False)
    return first, at_trigger, replace(first, most=max(MOST_JOBS, scouts))


def _memory(scouts: int) -> list[Rule]:
    first, second, always = (ScoutMemory(seen) for seen in _scouts(75, scouts))
    return [
        Rule(SCOUTS_MEMORY, first),
        Rule("PanDA scouts, again at the 100th job", Anew(first, second)),
        Rule("PanDA scouts, re-estimated", always),
        Rule("requested", Recorded("requested")),
        Rule("as sent", Recorded("sent")),
        Rule("largest seen", PercentileMemory(Seen(100, most=None))),
        Rule("p95 seen", PercentileMemory(Seen(95))),
        Rule("Kubernetes p90 x 1.15", PercentileMemory(Seen(90), factor=1.15, minimum_mb=250.0)),
    ]


def _walltime(scouts: int) -> list[Rule]:
    first, second, always = (ScoutWalltime(seen) for seen in _scouts(95, scouts))
    return [
        Rule(SCOUTS_WALLTIME, first),
        Rule("PanDA scouts, again at the 100th job", Anew(first, second)),
        Rule("PanDA scouts, re-estimated", always),
        Rule("requested", Recorded("requested")),
        Rule("as sent", Recorded("sent")),
        Rule("last two", _LAST_TWO),
        *_of_users(),
    ]


def _of_users() -> list[Rule]:
    return [
        Rule("largest of last 10", PercentileWalltime(Seen(100, most=10))),
        Rule(
            "request x p95 of last 20",
            PercentileWalltime(Seen(95, least=5, most=20), of_request=True),
        ),
    ]


def log_rules() -> list[Rule]:
    """Return the simple rules of batch systems, that know a user's own finished jobs only, nothing seen yet.

    One that has not seen enough jobs of the user says the request.

    Source: sizing.md, section 8.
    """
    return [
        Rule("requested", Recorded("requested")),
        Rule("last one", PercentileWalltime(Seen(50, most=1))),
        Rule("mean of the user", MeanWalltime()),
        *_of_users(),
        Rule("p95 of last 200", PercentileWalltime(Seen(95, least=5, most=200))),
        Rule("last two", _LAST_TWO),
    ]


__all__ = [
    "DEPLOYED",
    "Anew",
    "Formula",
    "MeanWalltime",
    "PercentileMemory",
    "PercentileWalltime",
    "Recorded",
    "Rule",
    "ScoutMemory",
    "ScoutWalltime",
    "Seen",
    "log_rules",
    "rules",
]
