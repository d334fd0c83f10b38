"""What became of jobs after a rule would have fired, and histories asked otherwise."""

from __future__ import annotations

import polars as pl
from polars.testing import assert_frame_equal

from brokerlab.lifecycle.timeouts import TimeoutRules, histories, would_fire
from tests.unit.lifecycle.timeouts.test_history import END, SCHEMA, at, job


def table() -> pl.DataFrame:
    """Return jobs that were activated for 10, 30, 49 and 100 hours, and one that still is."""
    ended = [
        job(n, activatedtime=0, starttime=h, endtime=h + 1, modificationtime=h + 1)
        for n, h in enumerate((10, 30, 49, 100))
    ]
    live = job(9, status="activated", activatedtime=0, statechangetime=0, modificationtime=0)
    rows = [*ended, {**live, "computingsite": "P"}]
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)


def outcomes(jobs: list[dict[str, object]], **context: object) -> list[tuple[object, ...]]:
    """Return (job, outcome, hours after the rule fires) of rule ``activated`` or the one named."""
    table = pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in jobs], schema=SCHEMA)
    rule = context.pop("rule", "activated")
    found = would_fire(table, at=END, **context).filter(rule=rule)  # type: ignore[arg-type]
    return found.select("pandaid", "outcome", "spared_h").rows()


def test_what_became_of_a_wait() -> None:
    plain = {"activatedtime": 0}
    killed = {"statechangetime": 49, "modificationtime": 49, **plain}
    ran = {"starttime": 60, "endtime": 70, "modificationtime": 71, **plain}
    jobs = [
        job(1, "closed", **killed),  # ended by whatever closed it, not by itself
        job(2, "finished", **ran),
        job(3, "failed", **ran),  # it did start: the wait went on, the payload failed
        job(4, "activated", activatedtime=0, statechangetime=0, modificationtime=0),
    ]
    assert outcomes(jobs) == [
        (1, "came_to_nothing", 1), (2, "went_on", 12), (3, "went_on", 12), (4, "waiting", 912)
    ]  # fmt: skip
    long = {"activatedtime": 0, "starttime": 1, "endtime": 521, "modificationtime": 522}
    both = [job(1, "failed", **long), job(2, "finished", **long)]
    told = [(1, "came_to_nothing", 16), (2, "went_on", 16)]
    assert outcomes(both, rule="running") == told


def test_silence_ends_with_the_next_sign_of_life() -> None:
    done = job(1, activatedtime=0, starttime=1, endtime=50, modificationtime=50)
    signs = pl.DataFrame({"pandaid": [1, 1], "modificationtime": [at(2), at(6)]})
    silent = outcomes([done], rule="heartbeat", heartbeats=signs)
    assert silent == [(1, "went_on", 2)]  # from 4 to 6, though it ran for 44 hours more


def test_histories_are_asked_for_other_rule_sets_and_without_exemptions() -> None:
    places = pl.DataFrame({"panda_queue": ["Q"], "status": ["paused"]})
    production = TimeoutRules("production")
    read = histories(table(), at=END, queues=places, also=[production])
    assert read.fired()["pandaid"].to_list() == [9]  # queue P is not known, hence not exempt
    assert_frame_equal(
        read.fired(rules=production), would_fire(table(), at=END, queues=places, rules=production)
    )
    assert_frame_equal(read.fired(exempt=False), would_fire(table(), at=END))
