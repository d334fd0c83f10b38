"""What is summed up of user tasks, on toy worlds whose answers are known."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisRules, decide
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.studies import users, weights
from brokerlab.brokerage.studies.period import ANALYSIS
from brokerlab.brokerage.studies.users import FAMILIES, HELD, PASSED, RULES
from brokerlab.gdpconfig import Config
from tests.unit.brokerage.analysis_jobs.toys import AT, SHARE, TASK, WITH_CODE, World
from tests.unit.brokerage.studies.toys import DICE, replay_of, totals


def decided(world, rules="document", **keys):
    config = Config.empty().with_values({name.replace("__", "/"): v for name, v in keys.items()})
    chosen = AnalysisRules(rules) if isinstance(rules, str) else rules
    return decide(world.tables(), rules=chosen, config=config)


@pytest.fixture(scope="module")
def crowd():
    """Four users: one passes, one has too many jobs, a group is of class C, one lacks input."""
    made = World(n_jobs_to_submit=10).queue("Q1")
    made.add("tasks", **(TASK | {"jeditaskid": 2, "username": "bob", "n_jobs_to_submit": 5}))
    group = {"jeditaskid": 3, "username": "carol", "workinggroup": "phys", "n_jobs_to_submit": 7}
    made.add("tasks", **(TASK | group))
    made.add("tasks", **(TASK | {"jeditaskid": 4, "username": "dave", "n_jobs_to_submit": 1}))
    made.add("datasets", jeditaskid=4, datasetname="d4", type="input", is_master=True)
    made.add("files", jeditaskid=4, datasetname="d4", lfn="f", fsize=1)
    for user, jobs in (("alice", 10), ("bob", 60)):
        counts = {"nqueuedjobs": 0, "nruncores": 0, "nqueuedcores": 0}
        made.add("user_totals", origusername=user, nrunjobs=jobs, **counts)
    for number, cls in ((1, 1), (2, 1), (3, -1)):
        made.add("task_class", jeditaskid=number, **{"class": cls})
    made.add("gshare_usage", gshare=SHARE, usage_perc=0.93)
    return decided(made, "production", pandaserver__prio_mgr__CAP_RUNNING_USER_JOBS=50)


def test_brokerages_tell_whose_and_what(crowd):
    rows = users.outcomes(crowd)
    columns = ["unit", "task_class", "rule", "family", "route", "jobs"]
    assert rows.select(columns).rows() == [
        ("alice", "A", PASSED, PASSED, "first", 10),
        ("bob", "A", "cap_running_jobs", "caps", "held", 5),
        ("phys", "C", "gshare_class_c", "classes", "held", 7),
        ("dave", "unrated", "input_incomplete", "input", "held", 1),
    ]
    assert rows["user"].to_list() == ["alice", "bob", "carol", "dave"]


def test_rules_families_and_units(crowd):
    rows = users.outcomes(crowd)
    by_rule = users.held_by_rule(rows, **DICE)
    assert by_rule["part"].to_list() == [*RULES, HELD, PASSED]
    assert totals(by_rule) == {
        "cap_running_jobs": 1, "gshare_class_c": 1, "input_incomplete": 1, HELD: 3, PASSED: 1
    }  # fmt: skip
    assert dict(by_rule.select("part", "jobs").iter_rows())["gshare_class_c"] == 7
    assert by_rule["n_units"].unique().to_list() == [4]
    held = by_rule.filter(pl.col("part") == HELD).row(0, named=True)
    assert [held[name] for name in ("jobs", "tasks", "units")] == [13, 3, 3]
    classes = users.held_by_level(rows, **DICE)
    assert classes.select("column", "level").rows() == [
        ("task_class", "A"), ("task_class", "C"), ("task_class", "unrated"), ("gshare", SHARE)
    ]  # fmt: skip
    of_a = classes.row(0, named=True)
    assert [of_a[name] for name in ("brokerages", "jobs", "n_units")] == [2, 15, 2]
    assert [of_a[name] for name in (*FAMILIES, "held", PASSED)] == [0.5, 0, 0, 0, 0.5, 0.5]
    assert (of_a["caps_lo"], of_a["caps_hi"]) == (1 - of_a["passed_hi"], 1 - of_a["passed_lo"])
    days = users.held_over_time(rows, "1d", **DICE)
    assert days.select("time", "part", "share").rows() == [
        (datetime(2026, 6, 1), name, 0.25) for name in ("caps", "classes", "input")
    ]
    units = users.held_by_unit(rows)
    assert units.select("unit", "held", "jobs_held", "most_by").rows() == [
        ("phys", 1, 7, "gshare_class_c"), ("bob", 1, 5, "cap_running_jobs"),
        ("dave", 1, 1, "input_incomplete"), ("alice", 0, 0, None),
    ]  # fmt: skip


def test_how_near_the_limits_are(crowd):
    rows = {row["rule"]: row for row in users.limit_margins(crowd).to_dicts()}
    caps = rows["cap_running_jobs"]
    assert (caps["limited"], caps["median"], caps["largest"]) == (2, 0.7, 1.2)
    assert rows["gshare_class_c"]["largest"] == pytest.approx(93 / 90)
    assert rows["gshare_class_a"]["largest"] == pytest.approx(0.93 * 0.5)  # nothing known: half
    assert rows["cap_running_cores"]["largest"] is None


def test_merging_has_no_cap_to_come_near_in_production():
    world = World(is_merging=True).queue("A")
    counts = {"nqueuedjobs": 0, "nruncores": 0, "nqueuedcores": 0}
    world.add("user_totals", origusername="alice", nrunjobs=60, **counts)
    found = decided(world, "production", pandaserver__prio_mgr__CAP_RUNNING_USER_JOBS=50)
    assert found.tasks["throttle"].to_list() == [None]
    assert users.limit_margins(found)["largest"].to_list() == [None] * 7
    of_page = decided(world, "document", pandaserver__prio_mgr__CAP_RUNNING_USER_JOBS=50)
    assert of_page.tasks["throttle"].to_list() == ["cap_running_jobs"]
    assert users.limit_margins(of_page)["largest"].to_list() == [1.2, 0, *[None] * 5]


def test_a_target_of_nothing_has_no_parts():
    world = World().queue("A").add("task_class", jeditaskid=1, **{"class": -1})
    found = decided(world.add("gshare_usage", gshare=SHARE, usage_perc=999_999.0))
    assert found.tasks["throttle"].to_list() == ["gshare_class_c"]
    assert users.limit_margins(found)["limited"].to_list() == [0] * 7


@pytest.fixture(scope="module")
def two_loops():
    """Task 1 finds a queue at its data; that of task 2 has no memory; task 3 is urgent."""
    made = World(ramcount=1000)
    made.add("tasks", **(TASK | {"jeditaskid": 2, "ramcount": 3000}))
    made.add("tasks", **(TASK | {"jeditaskid": 3, "taskpriority": 2500}))
    made.queue("HERE", maxrss=2000.0).queue("THERE", maxrss=8000.0)
    for number in (1, 2, 3):
        own = {"jeditaskid": number, "datasetname": f"d{number}"}
        made.add("datasets", **own, type="input", is_master=True)
        made.add("files", **own, lfn="f", fsize=1)
        made.add("replicas", **own, ddm_endpoint_name="HERE_DISK", found=1, total=1)
    return decided(made)


def test_both_loops_and_the_way_through_them(two_loops):
    rows = users.outcomes(two_loops)
    assert rows["route"].to_list() == ["first", "then_second", "second_only"]
    table = users.removed_by_loop(two_loops, **DICE)
    first, second = (table.filter(pl.col("loop") == loop) for loop in (1, 2))
    assert totals(first) == {"data_locality": 2, "lowmemory": 1, "candidate": 1}
    assert totals(second) == {"lowmemory": 1, "candidate": 3}
    assert first["left"][-2] == pytest.approx(0.25)


def busy(**more):
    """A queue where 110 jobs wait and 65 of them are Alice's, and an idle one."""
    made = World(**more).queue("BUSY").queue("IDLE")
    made.jobs("BUSY", "activated", 110).jobs("BUSY", "running", 60).jobs("IDLE", "running", 10)
    for user, queued, running in (("alice", 65, 10), ("bob", 45, 50)):
        counts = {"nqueue": queued, "nrunning": running}
        made.add("user_job_stats", computingsite="BUSY", gshare=SHARE, produsername=user, **counts)
    return made


def test_state_of_the_stabilizer():
    made = decided(busy(), jedi__anal_jobbroker__OVERLOAD_RATIO_OFFSET=100.0)
    seen = users.stabilizer_state(made, users.outcomes(made))
    row = seen.row(0, named=True)
    assert row["queue"] == "BUSY"
    shown = ("nq", "nr", "nq_max", "user_share", "max_q_len", "u_queued", "looked_at", "user_queue")
    assert [row[name] for name in shown] == [110, 60, 120, 0.5, 60, 65, 1, 1]
    assert (row["base"], row["running"], row["percentage"]) == (0, 1, 1)
    found = users.stabilizer_shares(seen, **DICE)
    assert totals(found) == {
        "looked_at": 1, "user_queue": 1, "base": 1, "running": 1, "percentage": 2
    }  # fmt: skip
    queues = users.stabilizer_by_queue(seen)
    assert queues.select("queue", "marked", "throttled").rows() == [("BUSY", 1, 1), ("IDLE", 0, 0)]
    crowded = decided(busy().jobs("BUSY", "activated", 900))
    left = users.stabilizer_state(crowded, users.outcomes(crowded))
    assert left["queue"].to_list() == ["IDLE"]  # removed by cap_rt before
    long = {"jedi__anal_jobbroker__STATIC_MAX_QUEUE_RUNNING_RATIO": 5.0}
    longer = decided(busy(), jedi__anal_jobbroker__OVERLOAD_RATIO_OFFSET=100.0, **long)
    again = users.stabilizer_state(longer, users.outcomes(longer)).row(0, named=True)
    assert (again["nq_max"], again["running"], again["user_queue"]) == (300, 1, 0)


def two_classes():
    """Two queues, one hi and one mid; the first is slower by the old weight."""
    made = World(n_jobs_to_submit=8).queue("FAST").queue("SLOW")
    made.jobs("FAST", "running", 10).jobs("FAST", "activated", 20)
    made.jobs("SLOW", "running", 40).jobs("SLOW", "activated", 10)
    made.add("site_class", computingsite="FAST", **{"class": 1})
    made.add("site_class", computingsite="SLOW", **{"class": 0})
    made.add("task_class", jeditaskid=1, **{"class": 1})
    for name, rate in (("FAST", 40.0), ("SLOW", 1.0)):
        made.add("to_run_rate", computingsite=name, jobs_per_hour=rate)
    return made


def test_both_weights_have_the_rules_of_ones_own():
    rule = Rule(name="shut_out", source="ours", says="", when=pl.col("panda_queue") == "SLOW")
    made = ANALYSIS.brokerage.with_rule(rule, after="status").decide(two_classes().tables())
    for side in weights.decide_both_weights(made):
        assert side.queues.filter(check="shut_out")["panda_queue"].to_list() == ["SLOW"]


def test_both_weights_know_the_same_tables():
    tables = two_classes().tables()
    del tables["replicas"]
    made = ANALYSIS.brokerage.decide(tables)
    for side in weights.decide_both_weights(made):
        assert "replicas" in side.world.unasked
        assert side.world.unasked == made.world.unasked


@pytest.mark.parametrize("rules", ["document", "production"])
def test_old_and_new_weight(rules):
    world = two_classes()
    made = decided(world, rules)
    old, new = weights.decide_both_weights(made)
    assert (old.world.rules.basic_weight, new.world.rules.basic_weight) == ("original", "new")
    assert old.world.rules.new_weight == new.world.rules.new_weight
    rows = users.outcomes(made)
    found = weights.compare_basic_weights(made, rows, **DICE)
    before = {r["panda_queue"]: r["weight"] for r in old.weighed.to_dicts()}
    after = {r["panda_queue"]: r["weight"] for r in new.weighed.to_dicts()}
    share = [side["FAST"] / (side["FAST"] + side["SLOW"]) for side in (before, after)]
    assert share[1] > share[0]
    every = found.by_class.row(0, named=True)
    assert (every["task_class"], every["n_brokerages"], every["jobs"]) == ("all", 1, 8)
    assert every["moved"] == pytest.approx(share[1] - share[0])
    assert every["change_hi"] == pytest.approx(share[1] - share[0])
    assert found.places.filter(pl.col("task_class") == "A").group_by("weight").agg(
        pl.col("share").sum()
    )["share"].to_list() == pytest.approx([1, 1])
    assert found.places.select("weight", "task_class").unique(maintain_order=True).rows() == [
        (weight, level) for weight in ("original", "new") for level in ("all", "A")
    ]
    assert found.queues["queue"].to_list() == ["FAST", "SLOW"]
    assert found.queues["original"].sum() == pytest.approx(8)
    assert found.queues["change"].sum() == pytest.approx(0)
    assert found.queues["queue_class"].to_list() == ["hi", "mid"]
    user = found.users.row(0, named=True)
    assert user["original_h"] == pytest.approx(share[0] * 20 / 40 + (1 - share[0]) * 10)
    assert user["new_h"] < user["original_h"]
    assert (user["noticed"], found.noticed["sooner"][0], found.noticed["later"][0]) == (
        "sooner",
        1,
        0,
    )
    assert found.wait["change_h"][0] == pytest.approx(user["change_h"])
    assert found.known == pytest.approx(1)


def test_a_wait_that_nobody_knows_is_left_out():
    world = two_classes()
    world.rows["to_run_rate"] = [{"computingsite": "FAST", "jobs_per_hour": 40.0}]
    found = weights.compare_basic_weights(decided(world), users.outcomes(decided(world)), **DICE)
    assert 0 < found.known < 1
    assert found.users.row(0, named=True)["new_h"] == pytest.approx(0.5)  # 20 jobs, 40 an hour


def test_a_least_weight_may_leave_nothing():
    made = decided(two_classes(), WITH_CODE, jedi__jobbroker__MIN_WEIGHT_user=0.6)
    found = weights.compare_basic_weights(made, users.outcomes(made), **DICE)
    assert found.ends.select("kept", "n_lost", "n_won").row(0) == (1, 0, 0)
    assert found.lost_by == ""
    slow = two_classes()  # a task of class C, and no queue for it
    slow.rows["task_class"][0]["class"] = -1
    strict = decided(slow, WITH_CODE, jedi__jobbroker__MIN_WEIGHT_user=1.0)
    found = weights.compare_basic_weights(strict, users.outcomes(strict), **DICE)
    assert found.ends.select("lost", "n_lost", "n_kept").row(0) == (1, 1, 0)
    assert found.lost_by == "below_min_weight"


def test_nothing_to_weigh():
    made = decided(World())
    rows = users.outcomes(made)
    found = weights.compare_basic_weights(made, rows, **DICE)
    assert (found.n_brokerages, found.known) == (0, None)
    for name in ("by_class", "places", "queues", "users"):
        assert getattr(found, name).is_empty(), name
    assert found.ends.select("kept", "n_kept").row(0) == (None, 0)
    assert found.wait["change_h"][0] is found.noticed["sooner"][0] is None
    assert users.stabilizer_shares(users.stabilizer_state(made, rows), **DICE).is_empty()


def test_what_users_asked_for_and_got(crowd):
    rows = users.outcomes(crowd)
    ran = pl.DataFrame(
        {"jeditaskid": [1, 1, 2], "computingsite": ["Q1"] * 3, "resource_type": [""] * 3,
         "made": [AT + timedelta(minutes=1), AT - timedelta(minutes=1), AT + timedelta(hours=2)],
         "n_jobs": [10, 3, 5], "core_h": [5.0, 1.0, 15.0]}
    )  # fmt: skip
    # made before the brokerage: left out
    rated = users.jobs_with_users(ran, replay_of(crowd).tasks, rows)
    assert rated.select("user", "n_jobs").rows() == [("alice", 10), ("bob", 5)]
    totals_of = users.totals_by_user(rows, rated)
    assert totals_of.rows() == [
        ("alice", 10, 10, 10, 5), ("bob", 5, 0, 0, 15), ("carol", 7, 0, 0, 0), ("dave", 1, 0, 0, 0)
    ]  # fmt: skip
    found = {row["quantity"]: row for row in users.jain_indices(totals_of, **DICE).to_dicts()}
    assert found["asked"]["index"] == pytest.approx(23**2 / (4 * 175))
    assert found["placed"]["index"] == pytest.approx(0.25)
    assert found["checks"]["index"] == 0
    assert found["throttle"]["index"] == pytest.approx(0.25 - 23**2 / 700)
    assert found["asked"]["index_lo"] < found["asked"]["index"] < found["asked"]["index_hi"]


def test_jain_of_nothing_and_of_one():
    nobody = pl.DataFrame(schema={"user": pl.String, **dict.fromkeys(users.QUANTITIES, pl.Float64)})  # fmt: skip
    assert users.jain_indices(nobody, **DICE)["index"].to_list() == [None] * 6
    one = pl.DataFrame({"user": ["a"], **dict.fromkeys(users.QUANTITIES, 3.0)})
    assert users.jain_indices(one, **DICE).row(0) == ("asked", 1.0, None, None, "user", 1)
    same = pl.DataFrame({"user": ["a", "b"], **{name: [2.0, 2.0] for name in users.QUANTITIES}})
    ends = users.jain_indices(same, **DICE).row(0, named=True)
    assert (ends["index_lo"], ends["index_hi"]) == (1, 1)


def test_lorenz_curve():
    totals_of = pl.DataFrame({"asked": [3.0, 1.0], "placed": [0.0, 0.0], "core_h": [1.0, 1.0]})
    curves = users.lorenz_curves(totals_of)
    assert curves.filter(pl.col("quantity") == "asked")["part"].to_list() == [0, 0.25, 1]
    assert curves["quantity"].unique().sort().to_list() == ["asked", "core_h", "equal"]
    assert users.lorenz_curves(totals_of.clear())["quantity"].unique().to_list() == ["equal"]


def test_indices_are_drawn_together():
    rng = np.random.default_rng(1)
    asked = rng.lognormal(0, 1, 30)
    totals_of = pl.DataFrame({"user": [f"u{n:02}" for n in range(30)], **dict.fromkeys(users.QUANTITIES, asked)})  # fmt: skip
    found = {row["quantity"]: row for row in users.jain_indices(totals_of, **DICE).to_dicts()}
    assert (found["throttle"]["index_lo"], found["throttle"]["index_hi"]) == (
        0,
        0,
    )  # the same users in both
