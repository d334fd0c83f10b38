"""What each check removes, and whether jobs ran where the replay would send them, on toy worlds."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage.engine.decisions import NOT_LOOKED_AT
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.studies import removal
from brokerlab.brokerage.studies.period import PRODUCTION
from brokerlab.brokerage.studies.removal import explain_stranded
from brokerlab.brokerage.studies.tasks import study_production_tasks
from brokerlab.errors import InsufficientDataError
from tests.brokerage_toys import AT, SHARE, TASK, World
from tests.unit.brokerage.studies.toys import DICE, replay_of


@pytest.fixture(scope="module")
def decisions() -> Decisions:
    """Two tasks; of three queues one is offline, one has too few cores for task 1, one takes everything."""
    made = World().task(2, corecount=1, gshare="Express", currentpriority=1200)
    made.queue("GOOD_X").queue("OFF_Y", status="offline").queue("SMALL_Z", corecount=1)
    return made.decided()


def test_every_pair_is_counted_once(decisions: Decisions) -> None:
    counts = removal.count_removals(decisions, replay_of(decisions).tasks)
    order = removal.removal_order(decisions)
    table = removal.removal_shares(counts, order, **DICE)
    totals = dict(table.select("part", "total").iter_rows())
    assert sum(totals.values()) == decisions.queues.height == 6
    assert totals["status_offline"] == 2
    assert totals["core_count"] == 2
    assert totals["candidate"] == 2
    assert table["left"].to_list()[-2:] == pytest.approx([1 / 3, 0])
    by_share = removal.removal_shares(counts, order, by=["gshare"], **DICE)
    assert set(by_share["gshare"]) == {SHARE, "Express"}
    last = by_share.group_by("gshare").agg(pl.col("left").last())
    assert last["left"].to_list() == pytest.approx([0, 0])
    timed = counts.with_columns(time=pl.col("at").dt.truncate("1d"))
    day = removal.removal_shares(timed, ["core_count"], by=["time"], **DICE)
    assert day.select("time", "share").rows() == [(datetime(2026, 6, 1), pytest.approx(1 / 3))]


def test_levels_are_summed_up(decisions: Decisions) -> None:
    tasks = replay_of(decisions).tasks
    counts, order = removal.count_removals(decisions, tasks), removal.removal_order(decisions)
    removed = removal.removal_shares(counts, order, **DICE)
    assert removal.rank_checks(removed)["part"].to_list() == ["core_count", "status_offline"]
    described = removal.describe_checks(removed, decisions.world.rules, "jobs")
    assert described.height == removed.height
    assert described.filter(part="core_count")["kind"].item() == "persistent"
    assert described.filter(part="link_backlog")["keys"].item().startswith("NQUEUED_")
    by_gshare = removal.removal_shares(counts, order, by=["gshare"], **DICE)
    stuck = removal.shares_without_queue(decisions.tasks, tasks, PRODUCTION, by=["gshare"], **DICE)
    levels = removal.sum_up_levels(by_gshare, "gshare", without_queue=stuck, most=1)
    row = levels.filter(gshare="Express").row(0, named=True)
    assert [row[name] for name in ("whole", "n_tasks", "n_brokerages", "stuck")] == [3, 1, 1, 0]
    assert (row["candidates"], row["reasons"]) == (pytest.approx(1 / 3), "core_count")


RAN = pl.DataFrame(
    schema={
        "jeditaskid": pl.Int64,
        "computingsite": pl.String,
        "made": pl.Datetime("us"),
        "n_jobs": pl.Int64,
    }
)


def test_nothing_to_look_at_is_too_little() -> None:
    decisions = World(nucleus="NOWHERE").queue("A").decided()
    rules = decisions.world.rules
    period: Any = SimpleNamespace(
        kind=PRODUCTION, replay=replay_of(decisions), rules=rules, ran=RAN
    )
    with pytest.raises(InsufficientDataError, match="None of 1 brokerages looks at a queue; they"):
        study_production_tasks(period)


def test_tasks_without_a_queue() -> None:
    none = World().queue("OFF_Y", status="offline").task(2, nucleus="NOWHERE").decided()
    table = removal.shares_without_queue(none.tasks, replay_of(none).tasks, PRODUCTION, **DICE)
    assert dict(table.select("part", "share").iter_rows()) == {
        "no_candidates": 0.5,
        "input_incomplete": 0,
        "unknown_nucleus": 0.5,
        "stuck": 1,
    }


def unified(resource_type: str = "SCORE", cores: int = 1) -> World:
    """A unified queue with a slot of one core and one of eight."""
    made = World(corecount=cores, resource_type=resource_type)
    made.queue("SITE_U/SCORE", site="SITE", corecount=1, unified_name="SITE_U")
    made.queue("SITE_U/MCORE", site="SITE", unified_name="SITE_U")
    made.activity("SITE_U").jobs("SITE_U", running=10)
    for direction in ("input", "output"):
        disk = {"ddm_endpoint_name": "SITE_DATADISK", "is_default": True}
        made.add("queue_endpoints", panda_queue="SITE_U", direction=direction, **disk)
    return made.add("queue_storage_site", panda_queue="SITE_U", site_name="SITE")


def test_a_unified_queue_counts_by_its_best_pseudo_queue() -> None:
    decisions = unified().decided()
    best = removal.best_pseudo_queues(decisions)
    assert best.select("queue", "place", "check", "rank", "n").rows() == [
        ("SITE_U", "SITE_U/SCORE", "candidate", 1, 1)
    ]
    order = removal.removal_order(decisions)
    by_queue = removal.removal_shares(best, order, by=["queue"], **DICE)
    assert by_queue.filter(part="candidate")["share"].to_list() == [1.0]


def test_jobs_belong_to_the_brokerage_before_them(decisions: Decisions) -> None:
    replay = replay_of(decisions)
    best = removal.best_pseudo_queues(decisions)
    ran = pl.DataFrame(
        {
            "jeditaskid": [TASK, TASK, TASK, 2],
            "computingsite": ["GOOD_X", "OFF_Y", "ELSEWHERE", "SMALL_Z"],
            "made": [AT + timedelta(minutes=1)] * 3 + [AT - timedelta(hours=1)],
            "n_jobs": [10, 5, 1, 100],
        }
    )
    # task 2 ran before it was brokered: left out
    matched = removal.match_jobs(ran, replay.tasks, best)
    assert matched.select("queue", "check", "n_jobs").rows() == [
        ("ELSEWHERE", NOT_LOOKED_AT, 1),
        ("GOOD_X", "candidate", 10),
        ("OFF_Y", "status_offline", 5),
    ]
    agreement = removal.agreement_shares(matched, **DICE)
    assert dict(agreement.select("part", "share").iter_rows()) == {
        "candidate": 10 / 16,
        "best_three": 10 / 16,
        "first": 10 / 16,
        "by_chance": pytest.approx(1 / 3),
    }
    against = removal.disagreement_shares(matched, **DICE)
    assert against.select("part", "total").rows() == [("status_offline", 5), ("not looked at", 1)]


def test_tasks_left_without_a_queue_are_explained_by_what_ran() -> None:
    decisions = World(corecount=8).queue("BUSY_X", corecount=1).decided()
    replay = replay_of(decisions)
    best = removal.best_pseudo_queues(decisions)
    ran = pl.DataFrame(
        {
            "jeditaskid": [TASK],
            "computingsite": ["BUSY_X"],
            "made": [AT + timedelta(minutes=1)],
            "n_jobs": [7],
        }
    )
    matched = removal.match_jobs(ran, replay.tasks, best)
    row = explain_stranded(replay, decisions.tasks, matched, decisions.world.rules).row(
        0, named=True
    )
    assert (row["jeditaskid"], row["queue"], row["n_jobs"]) == (TASK, "BUSY_X", 7)
    assert "(check core_count)" in row["why"]
    assert row["help"] == "without core_count, 1 queue"
