"""Users, tasks and shares: the chapter's sentences under both rule sets, boundaries and nulls."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from brokerlab.errors import DataError, SchemaError
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import classification
from brokerlab.lifecycle.classification import ClassRules, ShareUsage, share_usage
from tests.unit.lifecycle.classification.toys import NOW, ago, job, jobs

PRODUCTION = ClassRules("production")
RATED = pl.DataFrame(
    {
        "computingsite": ["HI", "MID", "LO", "HPC", "NEW"],
        "resource_type": ["GRID", "GRID", "GRID", "hpc", "GRID"],
        "class": [1, 0, -1, 1, None],
    }
)


def slots(*rows: tuple[str, str, int]) -> pl.DataFrame:
    """Give slots that users run: queue, user, slots."""
    return pl.DataFrame(
        [(*row, "User Analysis") for row in rows],
        schema=["computingsite", "produsername", "slotsrunning", "gshare"],
        orient="row",
    )


def test_only_classified_grid_queues_and_two_shares_count() -> None:
    every = slots(*[(name, "ann", 10**n) for n, name in enumerate(RATED["computingsite"])])
    group = every.with_columns(gshare=pl.lit("Group Higgs"))
    express = slots(("HI", "ann", 7)).with_columns(gshare=pl.lit("Express Analysis"))
    found = classification.user_usage(pl.concat([every, group, express]), RATED).users
    ann = found.filter(pl.col("produsername") == "ann").row(0, named=True)
    assert (ann["slots_hi"], ann["slots_mid"], ann["slots_lo"]) == (8, 10, 100)
    assert (ann["rem_slots_a"], ann["rem_slots_b"]) == (992, 7982)
    assert found["produsername"].to_list() == ["_total", "ann"]


def test_thresholds_leave_nothing_below_zero_and_no_ratio_of_zero() -> None:
    config = Config.empty().with_values({"USER_USAGE_THRESHOLD_A": 5})
    found = classification.user_usage(slots(("HI", "ann", 8)), RATED, config=config).users
    row = found.filter(pl.col("produsername") == "ann").row(0, named=True)
    assert (row["rem_slots_a"], row["rem_slot_ratio_a"], row["rem_slots_b"]) == (0, 0, 7992)
    none = ClassRules(default_threshold_b=0)
    zero = classification.user_usage(slots(("HI", "ann", 8)), RATED, rules=none).users
    assert zero["rem_slot_ratio_b"].to_list() == [None, None]


def test_user_slots_leave_out_merging_and_probes() -> None:
    rows = [
        job(1, processingtype="run", jobstatus="running", corecount=8),
        job(2, processingtype="run", jobstatus="activated", corecount=None),
        job(3, processingtype="run", jobstatus="sent"),
        job(4, jobstatus="running"),
        job(5, processingtype="run", produsername="gangarbt", jobstatus="running"),
        job(6, processingtype="run", jobstatus="finished"),
        job(7, processingtype="run", prodsourcelabel="managed", jobstatus="running"),
    ]
    found = classification.user_slots(jobs(*rows), at=NOW)
    assert found.select("nrunning", "slotsrunning", "nqueue", "slotsqueue").rows() == [(1, 8, 1, 0)]


def task(number: int = 1, **values: Any) -> dict[str, Any]:
    row = {"jeditaskid": number, "username": "ann", "gshare": "User Analysis", "tasktype": "anal"}
    row |= {"prodsourcelabel": "user", "status": "running", "modificationtime": NOW}
    return row | values


def rated(
    *tasks: dict[str, Any],
    done: tuple[int, int, int, int] | None = None,
    hi: int | None = None,
    mid: int = 0,
    rules: ClassRules | None = None,
) -> pl.DataFrame:
    """Rate tasks: files, finished, failed, jobs; slots of ann at hi and mid queues."""
    numbers = ["nfiles", "nfilesfinished", "nfilesfailed", "njobs"]
    progress = None
    if done:
        given = [(row["jeditaskid"], *done) for row in tasks]
        progress = pl.DataFrame(given, schema=["jeditaskid", *numbers], orient="row")
    usage = None
    if hi is not None:
        used = slots(("HI", "ann", hi), ("MID", "ann", mid))
        usage = classification.user_usage(used, RATED, rules=rules).users
    table = pl.DataFrame(list(tasks))
    return classification.task_classes(table, progress, usage, at=NOW, rules=rules).classes


def name_of(*tasks: dict[str, Any], **named: Any) -> str | None:
    name: str | None = rated(*tasks, **named)["class_name"][0]
    return name


@pytest.mark.parametrize(
    ("hi", "mid", "page", "production"),
    [
        (0, 0, "A", "A"),
        (999, 0, "A", "A"),
        (1000, 0, "A", "B"),
        (1001, 0, "B", "B"),
        (1001, 6998, "B", "B"),
        (1001, 6999, "B", "C"),
        (1001, 7000, "C", "C"),
        (5, 9000, "A", "A"),  # few slots at hi queues: A even above the second threshold
    ],
)
def test_classes_by_slots(hi: int, mid: int, page: str, production: str) -> None:
    assert name_of(task(), hi=hi, mid=mid) == page
    assert name_of(task(), hi=hi, mid=mid, rules=PRODUCTION) == production


@pytest.mark.parametrize(
    ("done", "hi", "mid", "page", "production"),
    [
        ((10, 9, 0, 10), 0, 0, "S", "S"),
        ((1000, 899, 0, 1000), 0, 0, "A", "A"),
        ((10, 9, 1, 10), 0, 0, "S", "A"),  # nothing remains
        ((1000, 900, 0, 5000), 0, 0, "S", "S"),  # 500 jobs remain
        ((1000, 900, 0, 5010), 0, 0, "S", "A"),  # 501
        ((100, 90, 0, 100), 2000, 0, "S", "B"),
        ((100, 95, 0, 4000), 2000, 0, "S", "S"),
        ((100, 95, 0, 4020), 2000, 0, "S", "B"),
        ((100, 99, 0, 100), 2000, 9000, "S", "C"),  # never boosted by the code
        ((0, 0, 0, 5), 0, 0, "A", "A"),
        ((100, 99, 0, 50), 0, 0, "S", "A"),  # half a job remains: none
    ],
)
def test_progress_boosts(
    done: tuple[int, int, int, int], hi: int, mid: int, page: str, production: str
) -> None:
    assert name_of(task(), done=done, hi=hi, mid=mid) == page
    assert name_of(task(), done=done, hi=hi, mid=mid, rules=PRODUCTION) == production


def test_express_tasks_are_s_and_other_shares_are_not_boosted_by_the_page() -> None:
    for rules in (ClassRules(), PRODUCTION):
        assert name_of(task(gshare="Express Analysis"), hi=2000, mid=9000, rules=rules) == "S"
    plain = ClassRules(express_is_s=False)
    assert name_of(task(gshare="Express Analysis"), hi=2000, mid=9000, rules=plain) == "C"
    assert name_of(task(gshare="Group Higgs"), done=(10, 10, 0, 1), hi=0) == "A"
    moved = rated(
        task(), task(2, gshare="Group Higgs"), done=(10, 9, 0, 10), hi=0, rules=PRODUCTION
    )
    assert moved.select("class_name", "to_express").rows() == [("S", True), ("S", False)]


def test_users_without_usage() -> None:
    assert name_of(task()) == "A"
    found = rated(task(), task(2, gshare="Express Analysis"), rules=PRODUCTION)
    assert found.select("class_name", "reason").rows() == [(None, "no_usage"), ("S", "express")]


@pytest.mark.parametrize(
    ("changes", "n"),
    [
        ({"tasktype": "prod"}, 0),
        ({"prodsourcelabel": "managed"}, 0),
        ({"username": "gangarbt"}, 0),
        ({"username": None}, 0),
        ({"status": "done"}, 0),
        ({"modificationtime": ago(days=30)}, 0),
        ({"modificationtime": ago(days=30) + timedelta(seconds=1)}, 1),
        *[({"status": name}, 1) for name in ("scouting", "scouted", "pending", "throttled")],
    ],
)
def test_which_tasks_are_rated(changes: dict[str, Any], n: int) -> None:
    assert rated(task(), task(2, **changes)).height == 1 + n


def test_the_page_needs_slots_to_rate() -> None:
    usage = pl.DataFrame({"produsername": ["ann"], "rem_slots_a": [1.0], "rem_slots_b": [1.0]})
    with pytest.raises(SchemaError, match="slots_hi"):
        classification.task_classes(pl.DataFrame([task()]), None, usage, at=NOW)


def test_keys_are_those_of_the_instant() -> None:
    key = {"app": "pandaserver", "component": "analy_eval", "key": "USER_USAGE_THRESHOLD_A"}
    rows = [
        {**key, "value": "5", "type": "int", "valid_from": ago(days=9), "valid_to": ago(hours=1)},
        {**key, "value": "50", "type": "int", "valid_from": ago(hours=1), "valid_to": None},
    ]
    times = pl.DataFrame({"snapshot": [0, 1], "at": [ago(hours=2), NOW]})
    used = times.join(slots(("HI", "ann", 8)), how="cross")
    found = classification.user_usage(used, RATED, config=Config.from_rows(rows)).users
    ann = found.filter(pl.col("produsername") == "ann")
    assert ann["rem_slots_a"].to_list() == [0, 42]


def test_an_archive_tells_tasks_and_progress_then() -> None:
    row = task(creationdate=ago(hours=9), starttime=ago(hours=8), status="done")
    tasks = pl.DataFrame([row]).with_columns(modificationtime=ago(hours=2))
    at = [ago(hours=hours) for hours in (9, 8, 5, 2)]
    states = classification.task_states(tasks, at=at)
    assert states.select("snapshot", "status").rows() == [(1, "running"), (2, "running")]
    files = pl.DataFrame({"jeditaskid": 1, "datasetid": [1, 1, 1, 2], "pandaid": [1, 2, None, 1], "status": ["finished", "failed", "ready", "finished"]})  # fmt: skip
    datasets = pl.DataFrame({"jeditaskid": 1, "datasetid": [1, 2], "masterid": [None, 1], "type": "input", "nfiles": [3, 3]})  # fmt: skip
    table = jobs(
        job(1, creationtime=ago(hours=8), modificationtime=ago(hours=6)),
        job(2, creationtime=ago(hours=5), modificationtime=ago(hours=4)),
    )
    found = classification.task_progress(states, files, datasets, table)
    assert found.drop("jeditaskid").rows() == [(1, 3, 0, 0, 1), (2, 3, 1, 0, 2)]
    again = files.with_columns(fileid=pl.Series([7, 7, 8, 9]), attemptnr=pl.Series([2, 1, 0, 1]))
    found = classification.task_progress(states, again, datasets, table)  # job 2 was before job 1
    assert found.drop("jeditaskid").rows() == [(1, 3, 0, 0, 1), (2, 3, 1, 0, 1)]


def shares(
    stats: list[tuple[str, str, float]], *nodes: tuple[str, float, str | None]
) -> ShareUsage:
    tree = pl.DataFrame(list(nodes), schema={"name": pl.String, "value": pl.Float64, "parent": pl.String}, orient="row")  # fmt: skip
    given = pl.DataFrame(stats, schema={"gshare": pl.String, "jobstatus": pl.String, "hs": pl.Float64}, orient="row")  # fmt: skip
    return share_usage(tree, given)


def test_targets_follow_what_runs_and_leaves_rank_by_what_they_lack() -> None:
    stats = [("A1", "running", 60.0), ("A2", "sent", 20.0), ("B", "running", 20.0)]
    stats += [("B", "activated", 50.0), ("B", "starting", 1e6)]
    found = shares(stats, ("A", 1, None), ("A1", 1, "A"), ("A2", 1, "A"), ("B", 1, None))
    leaves = found.ranked_leaves()
    assert leaves["gshare"].to_list() == ["B", "A2", "A1"]
    assert leaves["target_hs"].to_list() == [50, 25, 25]
    b = leaves.row(0, named=True)
    assert (b["usage_perc"], b["queue_perc"], b["norm_queue_perc"]) == (0.4, 1.0, 0.5)


def test_the_order_of_the_shares_moves_no_digit() -> None:
    nodes = [("A", 0.1, None), ("B", 0.2, None), ("C", 0.3, None)]  # 0.1 + 0.2 + 0.3 > 0.6
    stats = [("A", "running", 0.3), ("B", "running", 0.2), ("C", "running", 0.1)]
    assert shares(stats, *nodes).usage.equals(shares(stats[::-1], *nodes[::-1]).usage)


def test_idle_shares_lend_their_targets() -> None:
    stats = [("A", "running", 90.0), ("B", "running", 10.0)]
    found = shares(stats, ("A", 1, None), ("B", 1, None)).usage
    a, b = (found.filter(pl.col("gshare") == f"L1 {name}").row(0, named=True) for name in "AB")
    assert (b["proj_target_hs"], b["eqiv_target_hs"], b["eqiv_usage_perc"]) == (10, 50, 0.2)
    assert a["eqiv_target_hs"] == 50 + 40 * 50 / 51
    assert a["eqiv_usage_perc"] == 90 / (50 + 40 * 50 / 51)


def test_nothing_runs() -> None:
    found = shares([("A", "activated", 5.0)], ("A", 1, None), ("B", 1, None)).usage
    top = found.filter(pl.col("gshare") == "L1 A").row(0, named=True)
    assert (top["usage_perc"], top["norm_usage_perc"], top["eqiv_usage_perc"]) == (
        999_999,
        999_999,
        None,
    )
    assert shares([], ("A", 1, None)).usage.height == 2


def test_what_runs_outside_the_tree_raises_the_targets() -> None:
    found = shares([("A", "running", 30.0), ("?", "running", 70.0)], ("A", 1, None))
    assert found.ranked_leaves()["target_hs"].to_list() == [100]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([("A", 1, None), ("A", 2, None)], "'A' comes twice"),
        ([("A", 1, "B")], "parent 'B' of 'A' is unknown"),
        ([("A", 1, "B"), ("B", 1, "A")], "their own ancestors: A, B"),
    ],
)
def test_shares_that_are_no_tree(nodes: list[tuple[str, float, str | None]], said: str) -> None:
    with pytest.raises(DataError, match=said):
        shares([], *nodes)


def test_classes_of_any_frame_and_without_their_columns():
    asked = slots(("HI", "ann", 8))
    expected = classification.user_usage(asked, RATED).users
    assert classification.user_usage(asked, RATED.to_pandas()).users.equals(expected)
    with pytest.raises(SchemaError, match="classes: column missing: resource_type, class"):
        classification.user_usage(asked, RATED.select("computingsite"))
