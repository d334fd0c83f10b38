"""What the brokerage replay report sums up, on toy worlds whose answers are known."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import ConfigError
from brokerlab.report.brokerage_replay import composition, worst
from brokerlab.report.replays import history, removal, rulesets, settings
from brokerlab.report.replays.period import grain
from brokerlab.report.replays.shares import shares, summed
from tests.brokerage_toys import AT, SHARE, TASK, World

DICE = {"n_boot": 50, "seed": 1}


def replay_of(decisions):
    """Stand in for a replay: the tables that were decided on."""
    tables = decisions.world.tables
    tasks = tables["tasks"].with_columns(brokerage_time=pl.col("at"))
    return SimpleNamespace(
        tables=tables, tasks=tasks, for_jobs=lambda: tables, config=decisions.world.config
    )


@pytest.fixture(scope="module")
def world():
    """Two tasks; of three queues one is offline, one has too few cores for task 1, one takes everything."""
    made = World().task(2, corecount=1, gshare="Express", currentpriority=1200)
    made.queue("GOOD_X").queue("OFF_Y", status="offline").queue("SMALL_Z", corecount=1)
    return made


@pytest.fixture(scope="module")
def decisions(world):
    return world.decided()


@pytest.fixture(scope="module")
def replay(decisions):
    return replay_of(decisions)


def test_shares_of_sums_with_intervals_over_tasks():
    frame = pl.DataFrame({"jeditaskid": [1, 1, 2, 3], "hit": [1, 0, 1, 0], "all": [1, 1, 1, 1]})
    row = shares(frame, ["hit"], "all", n_boot=200).row(0, named=True)
    assert (row["total"], row["whole"], row["share"], row["n_tasks"]) == (2, 4, 0.5, 3)
    assert 0 <= row["lo"] < 0.5 < row["hi"] <= 1
    single = shares(frame.head(2), ["hit"], "all", n_boot=50).row(0, named=True)
    assert (single["share"], single["lo"], single["hi"]) == (0.5, None, None)
    nothing = shares(frame.with_columns(all=pl.lit(0)), ["hit"], "all", n_boot=50)
    assert nothing.select("share", "lo", "hi").row(0) == (None, None, None)
    assert shares(frame.clear(), ["hit"], "all").is_empty()
    assert shares(frame.clear().with_columns(g=1), ["hit"], "all", by=["g"]).is_empty()


def test_sums_are_the_same_in_any_order():
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"g": rng.integers(0, 5, 2000), "x": rng.lognormal(0, 20, 2000)})
    mixed = frame.sample(fraction=1, shuffle=True, seed=4)
    assert summed(frame, ["g"], ["x"]).equals(summed(mixed, ["g"], ["x"]))
    assert summed(frame, ["g"], ["x"])["x"].sum() == pytest.approx(frame["x"].sum())


def test_every_pair_is_counted_once(decisions, replay):
    counts = removal.counted(decisions, replay.tasks)
    order = removal.order(decisions)
    table = removal.by_check(counts, order, **DICE)
    totals = dict(table.select("part", "total").iter_rows())
    assert sum(totals.values()) == decisions.queues.height == 6
    assert totals["status_offline"] == 2
    assert totals["core_count"] == 2
    assert totals["candidate"] == 2
    assert table["left"].to_list()[-2:] == pytest.approx([1 / 3, 0])
    by_share = removal.by_gshare(counts, order, **DICE)
    assert set(by_share["gshare"]) == {SHARE, "Express"}
    day = removal.over_time(counts, ["core_count"], "1d", **DICE)
    assert day.select("time", "share").rows() == [(datetime(2026, 6, 1), pytest.approx(1 / 3))]


def test_tasks_without_a_queue(world):
    none = World().queue("OFF_Y", status="offline").task(2, nucleus="NOWHERE").decided()
    found = removal.stuck(none, replay_of(none).tasks, [], **DICE)
    shown = dict(found.select("part", "share").iter_rows())
    assert shown == {
        "no_candidates": 0.5,
        "input_incomplete": 0,
        "unknown_nucleus": 0.5,
        "stuck": 1,
    }


def test_a_unified_queue_counts_by_its_best_pseudo_queue():
    made = World(corecount=1, resource_type="SCORE")
    made.queue("SITE_U/SCORE", site="SITE", corecount=1, unified_name="SITE_U")
    made.queue("SITE_U/MCORE", site="SITE", unified_name="SITE_U")
    made.activity("SITE_U").jobs("SITE_U", running=10)
    for direction in ("input", "output"):
        disk = {"ddm_endpoint_name": "SITE_DATADISK", "is_default": True}
        made.add("queue_endpoints", panda_queue="SITE_U", direction=direction, **disk)
    made.add("queue_storage_site", panda_queue="SITE_U", site_name="SITE")
    decisions = made.decided()
    best = removal.best_of_queue(decisions, replay_of(decisions).tables["queues"])
    assert best.select("queue", "place", "check", "rank").rows() == [
        ("SITE_U", "SITE_U/SCORE", "candidate", 1)
    ]
    assert removal.by_queue(best, removal.order(decisions), ["SITE_U"], **DICE).filter(
        pl.col("part") == "candidate"
    )["share"].to_list() == [1.0]


def test_factors_divide_the_spread_of_the_weight():
    made = World().queue("A_X", running=400).queue("B_X", running=50).queue("C_X", running=100)
    made.link("B", mbps=1.0)
    decisions = made.decided(NW_ACTIVE=True)
    found = composition.composition(decisions, replay_of(decisions), by=[], **DICE)
    parts = dict(found.select("part", "share").iter_rows())
    assert sum(parts.values()) == pytest.approx(1)
    assert parts["work"] > parts["network"] > 0
    assert parts["data"] == parts["t1"] == 0
    logs = np.log(composition.weighed(decisions)["weight"].to_numpy())
    spread = composition.spread(decisions, replay_of(decisions))["spread"][0]
    assert spread == pytest.approx(((logs - logs.mean()) ** 2).sum())
    single = World().queue("A_X").decided()
    assert composition.composition(single, replay_of(single), by=["gshare"], **DICE).is_empty()


def test_jobs_belong_to_the_brokerage_before_them(decisions, replay):
    best = removal.best_of_queue(decisions, replay.tables["queues"])
    ran = pl.DataFrame(
        {
            "jeditaskid": [TASK, TASK, TASK, 2],
            "computingsite": ["GOOD_X", "OFF_Y", "ELSEWHERE", "SMALL_Z"],
            "resource_type": [""] * 4,
            "made": [AT + timedelta(minutes=1)] * 3 + [AT - timedelta(hours=1)],
            "n_jobs": [10, 5, 1, 100],
        }
    )
    found = history.placed(ran, replay.tasks, best)  # task 2 ran before it was brokered: left out
    assert found.select("queue", "check", "n_jobs").rows() == [
        ("ELSEWHERE", history.NOT_LOOKED_AT, 1),
        ("GOOD_X", "candidate", 10),
        ("OFF_Y", "status_offline", 5),
    ]
    parts = dict(history.agreement(found, **DICE).select("part", "share").iter_rows())
    assert parts == {"candidate": 10 / 16, "best_three": 10 / 16, "first": 10 / 16,
                     "by_chance": pytest.approx(1 / 3)}  # fmt: skip
    against = history.against(found, **DICE)
    assert against.select("part", "total").rows() == [("status_offline", 5), ("not looked at", 1)]


def test_tasks_left_without_a_queue_are_explained_by_what_ran():
    made = World(corecount=8).queue("BUSY_X", corecount=1)
    decisions = made.decided()
    best = removal.best_of_queue(decisions, replay_of(decisions).tables["queues"])
    ran = pl.DataFrame(
        {"jeditaskid": [TASK], "computingsite": ["BUSY_X"], "resource_type": [""],
         "made": [AT + timedelta(minutes=1)], "n_jobs": [7]}
    )  # fmt: skip
    found = history.placed(ran, replay_of(decisions).tasks, best)
    row = worst.explained(decisions, found, most=5).row(0, named=True)
    assert (row["jeditaskid"], row["queue"], row["n_jobs"]) == (TASK, "BUSY_X", 7)
    assert "(check core_count)" in row["why"]
    assert row["help"] == "without core_count, 1 queue"


def test_keys_of_other_components_are_refused_all_at_once():
    with pytest.raises(ConfigError) as caught:
        settings.check_keys(["NQUEUED_SAT_CAP", "SCOUT_RAMCOUNT_RANK", "NW_ACTVE"])
    message = str(caught.value)
    assert "'SCOUT_RAMCOUNT_RANK' is no key of the production brokerage" in message
    assert "did you mean 'NW_ACTIVE'?" in message
    assert "NQUEUED_SAT_CAP'" not in message


def test_settings_say_what_matters():
    made = World().queue("A_X", running=400).queue("B_X", running=50)
    made.link("B", queued=120)
    decisions = made.decided(NQUEUED_SAT_CAP=150)
    keys = ["NQUEUED_SAT_CAP", "MAX_PRIO_TO_BOOTSTRAP", "DISK_THRESHOLD", "NW_ACTIVE"]
    found = settings.studied(decisions, None, keys, points=3, **DICE)
    rows = {row["key"]: row for row in found.keys.to_dicts()}
    assert list(rows) == ["NQUEUED_SAT_CAP", "MAX_PRIO_TO_BOOTSTRAP"]
    assert rows["NQUEUED_SAT_CAP"]["half"] > 0  # 75 blocks the link with 120 files
    assert rows["MAX_PRIO_TO_BOOTSTRAP"]["shift"] == 0
    assert set(found.skipped) == {"DISK_THRESHOLD", "NW_ACTIVE"}
    assert "no check and no weight reads it" in found.skipped["NW_ACTIVE"]
    current = found.curves.filter("is_current")
    assert current.select("shift", "pairs", "without").unique().rows() == [(0, 0, 0)]


def test_rule_sets_and_the_switch_between_them():
    made = World().queue("TEST_X").queue("IDLE_Y", status="standby").queue("GOOD_X")
    made.change("queues", {"panda_queue": "TEST_X"}, panda_queue="A_test_X")
    for table in ("queue_endpoints", "queue_storage_site"):
        made.change(table, {"panda_queue": "TEST_X"}, panda_queue="A_test_X")
    decisions = made.decided()
    found = rulesets.studied(replay_of(decisions), decisions, sample=5, **DICE)
    assert (found.current, found.other) == ("document", "production")
    totals = dict(found.totals.select("part", "total").iter_rows())
    assert totals["pairs"] == totals["gained"] + totals["lost"] + totals["other_reason"]
    switches = dict(found.switches.select("switch", "n_changed").iter_rows())
    assert switches["drop_test_queues"] > 0
    assert switches["standby_online"] > 0
    assert (found.n_sample, found.n_sample_pairs) == (1, int(totals["pairs"]))
    again = made.decided("production")
    back = rulesets.studied(replay_of(again), again, sample=0, **DICE)
    assert back.comparison.n_changed("lost") == found.comparison.n_changed("gained")
    assert back.switches.is_empty()


def test_weeks_beyond_two_months():
    first = datetime(2026, 1, 1)
    assert grain((first, first + timedelta(days=61))) == "1d"
    assert grain((first, first + timedelta(days=63))) == "1w"
