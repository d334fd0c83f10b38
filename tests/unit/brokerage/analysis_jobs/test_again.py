"""What another setting would have decided for user tasks: the same as deciding everything anew, for every key."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage import compare, funnel, keys_read, what_if
from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules, decide
from brokerlab.brokerage.analysis_jobs.settings import place_of
from brokerlab.brokerage.engine.decide import redecide
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from tests.unit.brokerage.analysis_jobs.toys import World
from tests.unit.brokerage.analysis_jobs.worlds import random_world

KEY = ["jeditaskid", "snapshot"]
RULES = ["document", "production"]
VALUES: dict[str, Any] = {
    "CAP_RUNNING_USER_JOBS": 400,
    "CAP_RUNNING_USER_CORES": 100,
    "CAP_RUNNING_GROUP_JOBS": 1,
    "CAP_RUNNING_GROUP_CORES": 1,
    "USER_USAGE_THRESHOLD_A": 20,
    "MAX_MISSING_INPUT_FILES": 70,
    "MIN_INPUT_COMPLETENESS": 30,
    "IO_INTENSITY_CUTOFF_USER": 100,
    "DATA_CHECK_TIMEOUT_USER": 4,
    "STORAGE_MIN_FREE_SIZE_OUTPUT": 400,
    "STORAGE_MIN_FREE_SIZE": 400,
    "MAX_DISKIO_DEFAULT": 500,
    "OVERLOAD_MIN_QUEUE": 100,
    "OVERLOAD_RATIO_OFFSET": 0.5,
    "BASE_QUEUE_LENGTH_PER_PQ": 10,
    "BASE_EXPECTED_WAIT_HOUR_ON_PQ": 200.0,
    "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER": 1000,
    "BASE_QUEUE_RATIO_ON_PQ": 1.5,
    "STATIC_MAX_QUEUE_RUNNING_RATIO": 0.2,
    "MAX_EXPECTED_WAIT_HOUR": 100.0,
    "MIN_BAD_JOBS_TO_SKIP_PQ": 1,
    "MIN_WEIGHT_user": 0.5,
}
OTHERWISE = (
    "IO_INTENSITY_CUTOFF_USER",
    "DATA_CHECK_TIMEOUT_USER",
    "BASE_EXPECTED_WAIT_HOUR_ON_PQ",
)
"""Keys that act otherwise under the rules of the document."""
SILENT = (
    *OTHERWISE,
    "STORAGE_MIN_FREE_SIZE",
    "OVERLOAD_RATIO_OFFSET",
    "MIN_BAD_JOBS_TO_SKIP_PQ",
)
"""Keys that change nothing here under the rules of production."""


@cache
def tables() -> dict[str, pl.DataFrame]:
    rows = random_world(3).rows
    return {name: pl.DataFrame(each, infer_schema_length=None) for name, each in rows.items()}


def rule_set(name: str) -> AnalysisRules:
    """Return a rule set whose cap on waiting jobs leaves queues for the stabilizer to look at."""
    return AnalysisRules(name, counted_jobs="share")


@cache
def base(rules: str) -> AnalysisDecisions:
    return decide(tables(), rules=rule_set(rules))


@cache
def whole(rules: str, key: str) -> AnalysisDecisions:
    """Decide everything anew with the other value of a key."""
    config = Config.empty().with_values({f"{place(key)}/{key}": VALUES[key]})
    return decide(tables(), rules=rule_set(rules), config=config)


def place(key: str) -> str:
    return "jedi/jobbroker" if key == "MIN_WEIGHT_user" else place_of(key)


@pytest.mark.parametrize(
    ("key", "rules"),
    [(key, "production") for key in VALUES] + [(key, "document") for key in OTHERWISE],
)
def test_deciding_again_what_a_key_touches_is_deciding_everything_anew(
    key: str, rules: str
) -> None:
    before, anew = base(rules), whole(rules, key)
    some = redecide(before, anew.world.config)
    touched = some.tasks.select(KEY)
    for name in ("queues", "first_loop", "weighed", "tasks"):
        new, part, old = (getattr(each, name) for each in (anew, some, before))
        assert part.equals(new.join(touched, on=KEY, how="semi")), name
        same = [frame.join(touched, on=KEY, how="anti") for frame in (new, old)]
        assert same[0].equals(same[1]), name
    tasks = anew.world.tasks.join(touched, on=KEY, how="semi", maintain_order="left")
    assert some.world.tasks.equals(tasks)
    acts = not anew.queues.equals(before.queues) or not anew.weighed.equals(before.weighed)
    assert acts or (rules == "production" and key in SILENT)


def test_every_key_that_is_read_is_tried_above() -> None:
    read = set(keys_read(base("production"))) | set(keys_read(base("document")))
    assert read - {"MIN_WEIGHT_<prodsourcelabel>[_<gshare>]"} == set(VALUES) - {"MIN_WEIGHT_user"}


@pytest.mark.parametrize("rules", RULES)
def test_the_numbers_are_those_of_a_comparison(rules: str) -> None:
    seen = 0
    for key in ("MAX_EXPECTED_WAIT_HOUR", "MIN_WEIGHT_user", "CAP_RUNNING_USER_JOBS"):
        row = what_if(base(rules), key, [VALUES[key]]).row(0, named=True)
        anew = whole(rules, key)
        found = compare(base(rules), anew)
        assert row["n_pairs"] == found.n_changed()
        assert (row["n_gained"], row["n_lost"]) == (
            found.n_changed("gained"),
            found.n_changed("lost"),
        )
        assert (row["n_tasks"], row["n_outcomes"]) == (found.n_tasks_changed, found.n_outcomes)
        assert row["weight_shift"] == pytest.approx(found.weight_shift)
        assert row["n_without"] == anew.tasks.filter(pl.col("outcome") != "candidates").height
        assert row["mean_candidates"] == pytest.approx(anew.tasks["n_candidates"].mean())
        seen += row["n_tasks"]
    assert seen > 5


@pytest.mark.parametrize("rules", RULES)
def test_a_funnel_sums_to_the_pairs(rules: str) -> None:
    decisions = base(rules)
    table = funnel(decisions)
    assert table["n_pairs"].sum() + table["n_left"][-1] == decisions.queues.height
    assert table["n_left"][-1] == decisions.queues["check"].null_count()
    loops = funnel(decisions, ["loop", "task_class"])
    assert loops["n_pairs"].sum() == table["n_pairs"].sum()
    assert table.filter(pl.col("check") == "badsite")["kind"].to_list() == ["temporary"]


def test_shares_follow_the_weights() -> None:
    world = World().queue("A").queue("B").jobs("A", "running", 9).jobs("B", "running", 29)
    shares = dict(world.decided().weighed.select("panda_queue", "share").iter_rows())
    assert shares == {"A": 0.25, "B": 0.75}


def test_a_replay_makes_the_tables_again_that_a_key_decides() -> None:
    made = World().queue("A")
    tables = {name: pl.DataFrame(rows) for name, rows in made.rows.items()}

    def remade(config: Config) -> dict[str, pl.DataFrame]:
        hours = config.get("TW_DONE_JOB_STAT", app="jedi", component="anal_jobbroker", vo="atlas")
        row = {"jeditaskid": 1, "computingsite": "A", "jobstatus": "failed", "njobs": int(hours)}
        return {"failure_counts": pl.DataFrame([row])}

    replay = Replay(
        tables={**tables, **remade(Config.empty())}, instants=pl.DataFrame(), stage="analysis",
        config=Config.empty(), notes=(), archive_digest="", synthetic=True,
        remake=remade,
    )  # fmt: skip
    assert "TW_DONE_JOB_STAT" in keys_read(replay)
    table = what_if(replay, "TW_DONE_JOB_STAT", [4, 6, 24])
    assert table["n_gained"].to_list() == [1, 0, 0]
    assert table["is_current"].to_list() == [False, True, False]
    rules = AnalysisRules("production")
    assert what_if(replay, "TW_DONE_JOB_STAT", [24], rules=rules)["n_pairs"].to_list() == [0]
    assert what_if(replay, "BASE_QUEUE_LENGTH_PER_PQ", [1])["n_pairs"].to_list() == [0]
    with pytest.raises(ConfigError, match="are AnalysisRules, given are ProductionRules"):
        what_if(replay, "TW_DONE_JOB_STAT", [4], rules=ProductionRules())


def test_keys_that_nothing_reads_are_refused() -> None:
    with pytest.raises(ConfigError, match="is read by nothing here; read are BASE_DEFAULT"):
        what_if(base("document"), "NQUEUED_SAT_CAP", [1])
