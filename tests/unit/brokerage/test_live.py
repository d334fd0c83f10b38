"""What a standing brokerage refuses, and what it does at the edges; see ``tests/property/test_live.py`` for the rest."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage import live
from brokerlab.brokerage.analysis_jobs.brokerage import BROKERAGE as ANALYSIS
from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules
from brokerlab.brokerage.production_tasks.brokerage import BROKERAGE as NUCLEI
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, DataError, SchemaError
from brokerlab.gdpconfig import Config
from tests.brokerage_toys import AT, SHARE, TASK, World

TOY = World().queue("CERN_X").queue("BNL_Y")
STANDING = live.prepare(TOY.frames())
ASKED = {"jeditaskid": [TASK], "snapshot": [0], "world": [0]}
COUNTS = pl.DataFrame(
    {"world": [0, 1], "computingsite": "CERN_X", "gshare": SHARE, "jobstatus": "running", "njobs": [50, 0]}
)  # fmt: skip


def wanted(**columns: Any) -> pl.DataFrame:
    """Return what is asked for, some columns changed; null columns are left out."""
    changed = {name: values for name, values in (ASKED | columns).items() if values is not None}
    return pl.DataFrame(changed)


def weights(ranked: live.Ranked) -> dict[tuple[int, str], float]:
    rows = ranked.queues.select("world", pl.col("panda_queue").cast(pl.String), "weight").rows()
    return {(world, queue): weight for world, queue, weight in rows}


def test_each_world_has_its_own_counts() -> None:
    both = wanted(jeditaskid=[TASK, TASK], snapshot=[0, 0], world=[1, 0])
    found = weights(STANDING.decide(both, {"job_stats": COUNTS}))
    assert found[0, "CERN_X"] > found[1, "CERN_X"]
    assert found[0, "BNL_Y"] == found[1, "BNL_Y"]


def test_several_worlds_may_see_one_state() -> None:
    three = wanted(jeditaskid=[TASK] * 3, snapshot=[0] * 3, world=[1, 7, 8], state=[None, 1, 0])
    found = weights(STANDING.decide(three, {"job_stats": COUNTS}))
    assert found[8, "CERN_X"] > found[7, "CERN_X"] == found[1, "CERN_X"]
    at_two = wanted(jeditaskid=[TASK] * 2, snapshot=[0, 0], world=[7, 8], state=[0, 0])
    assert len({*weights(STANDING.decide(at_two, {"job_stats": COUNTS})).values()}) == 2


def test_rows_without_world_hold_for_every_world() -> None:
    both = wanted(jeditaskid=[TASK, TASK], snapshot=[0, 0], world=[1, 0])
    everywhere = COUNTS.head(1).with_columns(world=pl.lit(None, pl.Int64))
    found = weights(STANDING.decide(both, {"job_stats": everywhere}))
    assert found[0, "CERN_X"] == found[1, "CERN_X"] > found[0, "BNL_Y"]


def test_settings_that_there_are_not() -> None:
    two = STANDING.with_config(Config.empty(), Config.empty())
    assert two.decide(wanted(setting=[1]), {}).outcomes["n_candidates"].to_list() == [2]
    for number in (-1, 2):
        with pytest.raises(DataError, match="settings that were not prepared"):
            two.decide(wanted(setting=[number]), {})
    with pytest.raises(DataError, match="settings that were not prepared"):
        STANDING.decide(wanted(setting=[1]), {})


def test_nobody_asks() -> None:
    found = STANDING.decide(wanted().clear(), {"job_stats": COUNTS})
    assert found.queues.is_empty()
    assert found.outcomes.is_empty()


def test_nothing_changes() -> None:
    found = STANDING.decide(wanted(), {})
    assert found.outcomes["n_candidates"].to_list() == [2]
    assert found.queues["share"].sum() == pytest.approx(1)


def test_states_of_another_engine() -> None:
    one = weights(STANDING.decide(wanted(), {"job_stats": COUNTS}))
    other = weights(STANDING.decide(wanted(), {"job_stats": COUNTS.lazy()}))
    assert one == other


def test_the_time_of_the_cycle_is_that_of_what_the_state_tells() -> None:
    frames = World(currentpriority=850).queue("CERN_X").frames()
    standing = live.prepare(frames, rules=ProductionRules("production"))
    state = {
        "job_stats": COUNTS.head(1).with_columns(jobstatus=pl.lit("activated"), njobs=5),
        "site_activity": pl.DataFrame(
            {"world": [0], "computingsite": "CERN_X", "getjob": 1, "updatejob": 1, "laststart": AT}
        ),
    }
    at_once = standing.decide(wanted(at=[AT]), state)
    late = standing.decide(wanted(at=[AT + timedelta(hours=3)]), state)
    assert at_once.outcomes["outcome"].to_list() == ["candidates"]
    assert late.outcomes.select("outcome", "check").row(0) == ("no_candidates", "inactive")


def test_a_world_at_several_snapshots() -> None:
    frames = TOY.frames()
    tasks = pl.concat([frames["tasks"].with_columns(snapshot=pl.lit(at)) for at in (0, 1)])
    endpoints = frames["storage_endpoints"].drop("snapshot", strict=False)
    closed = [
        endpoints.with_columns(snapshot=pl.lit(at), write_wan=pl.lit("OFF" if at else "ON"))
        for at in (0, 1)
    ]
    standing = live.prepare(frames | {"tasks": tasks, "storage_endpoints": pl.concat(closed)})
    moving = pl.DataFrame({"world": [0], "computingsite": "CERN_X", "nucleus": "NUC", "njobs": 10})
    found = standing.decide(
        wanted(jeditaskid=[TASK, TASK], snapshot=[0, 1], world=[0, 0]),
        {"job_stats": COUNTS, "transferring_by_nucleus": moving},
    )
    assert found.outcomes["n_candidates"].to_list()[0] == 2
    assert found.outcomes["snapshot"].to_list() == [0, 1]


@pytest.mark.parametrize(
    ("columns", "error", "says"),
    [
        ({"jeditaskid": [99]}, DataError, "1 rows .* not prepared, such as .*'jeditaskid': 99"),
        ({"snapshot": [5]}, DataError, "'snapshot': 5"),
        ({"jeditaskid": [TASK] * 2, "snapshot": [0, None], "world": [3, 3]}, DataError, "2 rows repeat"),
        ({"world": None}, SchemaError, "wanted.world is missing"),
        ({"world": [None]}, SchemaError, "wanted.world: 1 nulls"),
        ({"world": ["x"]}, SchemaError, "wanted.world"),
    ],
)  # fmt: skip
def test_what_cannot_be_wanted(columns: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        STANDING.decide(wanted(**columns), {"job_stats": COUNTS})


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"queues": COUNTS}, "'queues' may not change"),
        ({"job_stat": COUNTS}, "did you mean 'job_stats'"),
        ({"job_stats": COUNTS.drop("world")}, "job_stats must have a world, a whole number"),
        (
            {"job_stats": COUNTS.with_columns(snapshot=0)},
            "in the place of snapshot; found .*snapshot Int",
        ),
        (
            {"job_stats": COUNTS.with_columns(world=pl.lit("a"))},
            "job_stats must have a world.*world String",
        ),
        ({"job_stats": COUNTS.with_columns(njobs=0.5)}, "job_stats.njobs"),
    ],
)
def test_what_no_state_may_say(state: dict[str, pl.DataFrame], says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        STANDING.decide(wanted(), state)


def test_brokerages_rules_and_settings_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="stage 'tasks' cannot stand; allowed are"):
        live.prepare({}, brokerage=NUCLEI)
    with pytest.raises(
        ConfigError, match="brokerage='analysis-jobs': allowed are values of Broker"
    ):
        live.prepare({}, brokerage="analysis-jobs")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="production-jobs are ProductionRules, given are Analysi"):
        live.prepare({}, rules=AnalysisRules())
    with pytest.raises(ConfigError, match="NQUEUED_SAT_CAP=0"):
        STANDING.with_config(Config.empty().with_values({"jedi/jobbroker/NQUEUED_SAT_CAP": 0}))


def test_settings_leave_the_first_brokerage_as_it_is() -> None:
    before = weights(STANDING.decide(wanted(), {"job_stats": COUNTS}))
    shut = STANDING.with_config(
        Config.empty().with_values({"jedi/jobbroker/STORAGE_MIN_FREE_SIZE": 10**9})
    )
    assert not weights(shut.decide(wanted(), {"job_stats": COUNTS}))
    assert weights(STANDING.decide(wanted(), {"job_stats": COUNTS})) == before


def test_another_process_is_told_the_same() -> None:
    state = {"job_stats": COUNTS}
    for standing in (STANDING, STANDING.with_config(Config.empty())):
        here = standing.decide(wanted(), state)
        there = pickle.loads(pickle.dumps(standing)).decide(wanted(), state)  # noqa: S301 - our own
        assert here.queues.equals(there.queues)


def test_user_tasks_of_nobody() -> None:
    standing = live.prepare({}, brokerage=ANALYSIS)
    assert standing.decide(wanted().clear(), {}).outcomes.is_empty()


def test_the_throttle_sees_the_time_of_the_cycle() -> None:
    tasks = pl.DataFrame({"jeditaskid": [TASK], "at": [AT], "gshare": ["User Analysis"]})
    state = {
        "task_class": pl.DataFrame({"world": [0], "jeditaskid": [TASK], "class": [-1]}),
        "gshare_usage": pl.DataFrame(
            {"world": [0], "gshare": ["User Analysis"], "usage_perc": [0.95], "timestamp": [AT]}
        ),
    }
    standing = live.prepare({"tasks": tasks}, brokerage=ANALYSIS)
    at_once = standing.decide(wanted(at=[AT]), state).outcomes
    late = standing.decide(wanted(at=[AT + timedelta(minutes=16)]), state).outcomes
    assert at_once.select("outcome", "throttle").row(0) == ("throttled_waiting", "gshare_class_c")
    assert late.select("outcome", "throttle").row(0) == ("temporary_error", None)
