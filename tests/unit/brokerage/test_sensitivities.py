"""What another setting would have decided: the same as deciding everything anew, for every key that is read."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage import compare, keys_read, what_if
from brokerlab.brokerage.engine.decide import in_parts, redecide
from brokerlab.brokerage.production_jobs.brokerage import decide
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.sensitivities import reachable, slots
from brokerlab.errors import BrokerlabWarning, ConfigError
from brokerlab.gdpconfig import Config
from tests.brokerage_toys import TASK_ROW, World
from tests.twins.compare import frames
from tests.twins.worlds import random_world
from tests.unit.brokerage.production_tasks.world import frames as nucleus_frames
from tests.unit.brokerage.production_tasks.world import replica, world

KEY = ["jeditaskid", "snapshot"]
GRIDS: dict[str, list[Any]] = {
    "NQUEUED_SAT_CAP": [1, 1000],
    "NQUEUED_NUC_CAP_FOR_JOBS": [1],
    "IO_INTENSITY_CUTOFF": [0],
    "SIZE_CUTOFF_TO_MOVE_INPUT": [0],
    "NUM_CUTOFF_TO_MOVE_INPUT": [3],
    "MAX_DISKIO_DEFAULT": [10],
    "STORAGE_MIN_FREE_SIZE": [100_000],
    "MAX_MISSING_INPUT_FILES": [0],
    "MIN_INPUT_COMPLETENESS": [0],
    "NW_ACTIVE": [True],
    "NW_QUEUE_IMPORTANCE": [0.9],
    "NW_THRESHOLD": [2.2],
    "NW_WEIGHT_MULTIPLIER": [2.0],
    "MAX_PRIO_TO_BOOTSTRAP": [1000],
    "NQUEUELIMITSITE_Data Derivations": [500],
    "MIN_WEIGHT_managed": [5.0],
    "WORK_SHORTAGE": [True],
}
OTHERWISE = ("NQUEUED_SAT_CAP", "NW_QUEUE_IMPORTANCE", "NW_THRESHOLD", "MIN_WEIGHT_managed")
"""Keys that act otherwise under the rules of the document, where the network always counts."""


@cache
def random_tables() -> dict[str, pl.DataFrame]:
    return frames(random_world(4, 40, 30))


@cache
def decided(rules: str, key: str | None = None, value: Any = None) -> Decisions:
    config = None if key is None else with_value(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        return decide(random_tables(), rules=ProductionRules(rules), config=config)


def with_value(key: str, value: Any) -> Config:
    component = "core" if key == "WORK_SHORTAGE" else "jobbroker"
    return Config.empty().with_values({f"jedi/{component}/{key}": value})


@pytest.mark.parametrize(
    ("key", "rules"),
    [(key, "production") for key in GRIDS] + [(key, "document") for key in OTHERWISE],
)
def test_deciding_again_what_a_key_touches_is_deciding_everything_anew(
    key: str, rules: str
) -> None:
    before = decided(rules)
    for value in GRIDS[key]:
        config = with_value(key, value)
        whole = decided(rules, key, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BrokerlabWarning)
            some = redecide(before, config)
        touched = some.tasks.select(KEY)
        for name in ("queues", "weighed", "tasks"):
            new, part, old = (getattr(each, name) for each in (whole, some, before))
            if name == "weighed":  # told even where it does not act
                new, part, old = (frame.drop("network_weight") for frame in (new, part, old))
            assert part.equals(new.join(touched, on=KEY, how="semi")), (name, value)
            same = [frame.join(touched, on=KEY, how="anti") for frame in (new, old)]
            assert same[0].equals(same[1]), (name, value)


def test_parts_of_a_month_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    config = with_value("NQUEUED_SAT_CAP", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        whole = redecide(decided("production"), config)
        monkeypatch.setattr(sys.modules[in_parts.__module__], "PAIRS_AT_ONCE", 70)
        parts = redecide(decided("production"), config)
    assert parts.queues.equals(whole.queues)
    assert parts.weighed.equals(whole.weighed)


def test_completeness_of_another_vo_is_asked_anew() -> None:
    made = World(vo="other").queue("A").data(here={"A": 10})
    made.change("replicas", found=9)
    key = {"component": "jobbroker", "vo": "other", "key": "MAX_MISSING_INPUT_FILES"}
    row = {"app": "jedi", **key, "value": "0", "type": "int"}
    config = Config.from_frame(pl.DataFrame([row, row | {"key": "MIN_INPUT_COMPLETENESS", "value": "100"}]))  # fmt: skip
    rules = ProductionRules("production")
    before, whole = made.decided(rules), decide(made.frames(), rules=rules, config=config)
    assert before.tasks["outcome"].to_list() == ["candidates"]
    assert whole.tasks["outcome"].to_list() == ["input_incomplete"]
    assert redecide(before, config).tasks.equals(whole.tasks)


def test_every_key_that_is_read_is_tried_above() -> None:
    plain = {key for key in GRIDS if key in keys_read(decided("production"))}
    patterns = {"NQUEUELIMITSITE_<gshare>", "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]"}
    assert plain | patterns == set(keys_read(decided("production")))
    assert set(keys_read(decided("document"))) == set(keys_read(decided("production"))) - {
        "NW_ACTIVE"
    }


@pytest.mark.parametrize("key", ["NQUEUED_SAT_CAP", "MAX_MISSING_INPUT_FILES"])
def test_the_numbers_are_those_of_a_comparison(key: str) -> None:
    value = GRIDS[key][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        row = what_if(decided("production"), key, [value]).row(0, named=True)
    whole = decided("production", key, value)
    found = compare(decided("production"), whole)
    assert row["n_pairs"] == found.n_changed()
    assert (row["n_gained"], row["n_lost"]) == (found.n_changed("gained"), found.n_changed("lost"))
    assert (row["n_tasks"], row["n_outcomes"]) == (found.n_tasks_changed, found.n_outcomes)
    assert row["weight_shift"] == pytest.approx(found.weight_shift)
    assert row["n_without"] == whole.tasks.filter(pl.col("outcome") != "candidates").height
    assert row["mean_candidates"] == pytest.approx(whole.tasks["n_candidates"].mean())
    assert row["slots_reachable"] == pytest.approx(reachable(whole)["reachable"].mean())


def links() -> World:
    made = World().queue("A", running=300).queue("B").queue("C")
    return made.link("A", queued=100).link("B", queued=120)


def test_a_curve_over_a_grid() -> None:
    table = what_if(links().decided(), "NQUEUED_SAT_CAP", [50, 110, 150, 1000])
    assert table["value"].to_list() == [50, 110, 150, 1000]
    assert table["is_current"].to_list() == [False, False, True, False]
    assert table["n_lost"].to_list() == [2, 1, 0, 0]
    assert table["mean_candidates"].to_list() == [1.0, 2.0, 3.0, 3.0]
    assert table["slots_reachable"].to_list() == pytest.approx([0.2, 0.8, 1.0, 1.0])
    shift = table["weight_shift"].to_list()
    assert shift[0] > shift[1] > shift[2] == 0
    assert shift[3] == 0  # the plot does not know the cap
    rules = ProductionRules(queued_line="cap")
    scaled = what_if(links().decided(rules), "NQUEUED_SAT_CAP", [1000])
    assert 0 < scaled["weight_shift"].item() < 0.05  # in the code it also scales the network weight


def test_a_task_left_without_a_queue_is_counted() -> None:
    made = World().queue("A").link("A", queued=100)
    row = what_if(made.decided(), "NQUEUED_SAT_CAP", [10]).row(0, named=True)
    assert (row["n_without"], row["n_outcomes"], row["weight_shift"]) == (1, 1, 1.0)


def test_a_required_placeholder_takes_every_value_or_the_one_given() -> None:
    made = World().queue("A", running=1, activated=500).task(2, gshare="Express")
    made.jobs("A", gshare="Express", running=1, activated=500)
    decisions = made.decided(ProductionRules(cap_mode="limit", counted_jobs="share"))

    def gained(key: str, **scope: str) -> int:
        return int(what_if(decisions, key, [600], **scope)["n_gained"][0])

    assert gained("NQUEUELIMITSITE_<gshare>") == 2
    assert gained("NQUEUELIMITSITE_<gshare>", gshare="Express") == 1
    assert gained("NQUEUELIMITSITE_Express") == 1


def test_keys_that_nothing_reads_are_refused() -> None:
    decisions = decided("production")
    with pytest.raises(ConfigError, match="is unknown: did you mean 'NQUEUED_SAT_CAP'"):
        what_if(decisions, "NQUEUED_SATCAP", [1])
    with pytest.raises(ConfigError, match="is read by nothing here; read are IO_INTENSITY_CUT"):
        what_if(decisions, "SCOUT_RAMCOUNT_RANK", [1])
    with pytest.raises(ConfigError, match="the grid is empty"):
        what_if(decisions, "NQUEUED_SAT_CAP", [])
    with pytest.raises(ConfigError, match="network weight divides by it"):
        what_if(decisions, "NQUEUED_SAT_CAP", [0])
    with pytest.raises(ConfigError, match="has no placeholder 'queue'"):
        what_if(decisions, "NQUEUED_SAT_CAP", [1], queue="A")
    with pytest.raises(ConfigError):
        what_if(decisions, "NQUEUED_SAT_CAP", ["many"])


def test_slots_are_cores_in_use_once_per_parent() -> None:
    made = World().queue("P", is_unified=True, running=10)
    made.queue("P/1", unified_name="P", site="P", running=0).queue(
        "P/8", unified_name="P", site="P"
    )
    made.queue("A", running=5).queue("OFF", status="offline", running=100)
    made.change("job_stats", {"computingsite": "P/8"}, njobs=0)
    made.add("core_stats", computingsite="A", jobstatus="running", ncores=36)
    decisions = made.decided()
    sizes = dict(slots(decisions.world).select("parent", "slots").iter_rows())
    assert sizes == {"A": 36, "OFF": 800, "P": 80}
    assert reachable(decisions)["reachable"].to_list() == [116 / 916]


def replay(tables: dict[str, pl.DataFrame], stage: str) -> Replay:
    return Replay(
        tables=tables,
        instants=pl.DataFrame(),
        stage=stage,
        config=Config.empty(),
        notes=(),
        archive_digest="",
        synthetic=True,
    )


def test_a_replay_of_jobs_is_decided_first() -> None:
    made = replay(links().frames(), "jobs")
    table = what_if(made, "NQUEUED_SAT_CAP", [50], rules=ProductionRules("production"))
    assert table["n_lost"].to_list() == [2]


def test_a_replay_of_nuclei_is_decided_in_full() -> None:
    tables = world("A", "B", datasets=[{"jeditaskid": 7, "datasetname": "in", "is_master": True}])
    tables["replicas"] = [replica("A", 10), replica("B", 3)]
    tables["tasks"][0] |= {"iointensity": 1000}
    made = replay(nucleus_frames(tables), "tasks")
    table = what_if(made, "INPUT_SIZE_FRACTION", [10, 50, 100])
    assert table["n_pairs"].to_list() == [0, 1, 2]
    assert table["is_current"].to_list() == [True, False, False]
    assert table["slots_reachable"].null_count() == 3
    assert "DISK_THRESHOLD[_<gshare>]" in keys_read(made)
    nothing_left = what_if(made, "DISK_THRESHOLD", [10**6])
    assert nothing_left["n_without"].to_list() == [1]


def test_hint_mode_has_no_shift() -> None:
    made = World(nucleus=None).queue("A")
    table = what_if(made.decided(hint=True), "STORAGE_MIN_FREE_SIZE", [10**6])
    assert table["weight_shift"].to_list() == [None]
    assert table["n_lost"].to_list() == [1]


def test_no_task_has_the_placeholder() -> None:
    made = World(**{**TASK_ROW, "gshare": None}).queue("A")
    with pytest.raises(ConfigError, match="no task has a value for gshare"):
        what_if(made.decided(), "NQUEUELIMITSITE_<gshare>", [1])
