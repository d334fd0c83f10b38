"""What the reports of replayed brokerages share, asked of user tasks."""

from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisRules, decide
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.report.analysis_replay.check import USUAL_KEYS
from brokerlab.report.replays import removal, rulesets, settings
from brokerlab.report.replays.kinds import ANALYSIS, PRODUCTION, kind_of
from tests.brokerage_toys import World as ProductionWorld
from tests.unit.brokerage.analysis_jobs.toys import SHARE, TASK, World

DICE = {"n_boot": 50, "seed": 1}


def frames(world):
    return {name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in world.rows.items()}


def decided(world, rules="document", **keys):
    config = Config.empty().with_values({name.replace("__", "/"): v for name, v in keys.items()})
    return decide(frames(world), rules=AnalysisRules(rules), config=config)


def replay_of(decisions):
    """Stand in for a replay: the tables that were decided on."""
    tables = decisions.world.tables
    tasks = tables["tasks"].with_columns(
        pl.col("snapshot").fill_null(0), brokerage_time=pl.col("at")
    )
    return SimpleNamespace(
        tables=tables, tasks=tasks, for_analysis=lambda: tables, config=decisions.world.config
    )


def totals(frame, *where):
    return {row["part"]: row["total"] for row in frame.filter(*where).to_dicts() if row["total"]}


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


def test_checks_that_removed_are_counted_as_for_production(two_loops):
    replay = replay_of(two_loops)
    counts = removal.counted(two_loops, replay.tasks)
    order = removal.order(two_loops)
    assert totals(removal.by_check(counts, order, **DICE)) == {
        "data_locality": 1, "lowmemory": 1, "candidate": 4
    }  # fmt: skip
    best = removal.best_of_queue(two_loops, replay.tables["queues"])
    assert best.filter(pl.col("check") == "candidate").height == 4
    stuck = removal.stuck(two_loops, replay.tasks, [], **DICE)
    assert stuck["part"].to_list() == ["throttled_waiting", "temporary_error", "fatal", "stuck"]
    assert totals(stuck) == {}


def busy(**more):
    """A queue where 110 jobs wait and 65 of them are Alice's, and an idle one."""
    made = World(**more).queue("BUSY").queue("IDLE")
    made.jobs("BUSY", "activated", 110).jobs("BUSY", "running", 60).jobs("IDLE", "running", 10)
    for user, queued, running in (("alice", 65, 10), ("bob", 45, 50)):
        counts = {"nqueue": queued, "nrunning": running}
        made.add("user_job_stats", computingsite="BUSY", gshare=SHARE, produsername=user, **counts)
    return made


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


def test_rule_sets_of_either_brokerage(monkeypatch):
    few = {name: ANALYSIS.switches[name] for name in ("basic_weight", "use_base_ram")}
    monkeypatch.setattr(rulesets, "kind_of", lambda _: replace(ANALYSIS, switches=few))
    made = decided(two_classes())
    found = rulesets.studied(replay_of(made), made, sample=12, **DICE)
    assert (found.current, found.other) == ("document", "production")
    kinds = totals(found.totals)
    parts = sum(kinds.get(name, 0) for name in ("gained", "lost", "other_reason"))
    assert kinds.get("pairs", 0) == parts
    assert set(found.switches["switch"]) == {*few, rulesets.TEXT_RULES}
    shifts = dict(found.switches.select("switch", "shift").iter_rows())
    assert shifts["basic_weight"] > 0 == shifts["use_base_ram"]
    assert found.n_sample == 1
    assert kind_of(made) is ANALYSIS
    assert kind_of(ProductionWorld().queue("A_X").decided()) is PRODUCTION


def test_keys_of_user_tasks():
    made = decided(busy(), jedi__anal_jobbroker__OVERLOAD_RATIO_OFFSET=100.0)
    keys = ["BASE_QUEUE_LENGTH_PER_PQ", "MIN_BAD_JOBS_TO_SKIP_PQ", "CAP_RUNNING_USER_JOBS"]
    found = settings.studied(made, None, keys, points=3, **DICE)
    rows = {row["key"]: row for row in found.keys.to_dicts()}
    assert set(rows) == set(keys)
    assert found.keys["key"][0] == "BASE_QUEUE_LENGTH_PER_PQ"  # twice as long, Alice may wait
    assert rows["BASE_QUEUE_LENGTH_PER_PQ"]["double"] > 0
    assert rows["MIN_BAD_JOBS_TO_SKIP_PQ"]["current"] == 5
    assert rows["CAP_RUNNING_USER_JOBS"]["current"] is None
    settings.check_keys(USUAL_KEYS, ANALYSIS)
    with pytest.raises(ConfigError, match="is no key of the analysis brokerage"):
        settings.check_keys(["NQUEUED_SAT_CAP"], ANALYSIS)
