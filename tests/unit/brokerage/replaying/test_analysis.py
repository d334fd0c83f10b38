"""A replay of user tasks of a small synthetic archive: complete, right, the same at one instant as at many."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import brokerlab.archive
from brokerlab import brokerage
from brokerlab.archive import Archive, ArchiveWriter
from brokerlab.brokerage import replaying
from brokerlab.brokerage.analysis_jobs import AnalysisRules, contracts, decide
from brokerlab.brokerage.replaying import Replay, plan
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from brokerlab.frames import prepared
from brokerlab.lifecycle.classification import ClassRules
from brokerlab.worlds import synthesise
from tests.unit.brokerage.replaying.toys import counted

AT_INSTANTS = (
    *("site_activity", "job_stats", "user_job_stats", "user_totals", "to_run_rate"),
    *("failure_counts", "worker_stats", "slots", "diskio_usage", "sites_used", "site_class"),
    *("task_class", "gshare_usage", "user_eval", "storage_endpoints"),
)
NOT_RECORDED = {"quota"}
quietly = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("replay") / "archive"
    synthesise(folder, jobs=4000, days=2, seed=3)
    return brokerlab.archive.open(folder)


@pytest.fixture(scope="module")
def whole(archive: Archive) -> Replay:
    return replaying.build(archive, stage="analysis")


def test_the_brokerage_takes_its_tables(whole: Replay) -> None:
    tables = prepared(whole.tables_of(contracts.TABLES), contracts.TABLES)
    assert set(whole.tables_of(contracts.TABLES)) >= set(contracts.TABLES) - NOT_RECORDED - {
        "file_locations"
    }
    state = {name for name in AT_INSTANTS if tables[name].height}
    assert state == set(AT_INSTANTS)
    tasks = tables["tasks"]
    assert tasks["prodsourcelabel"].unique().to_list() == ["user"]
    assert tasks.select("jeditaskid", "snapshot").is_unique().all()
    assert tasks["n_jobs_to_submit"].min() > 0  # type: ignore[operator]
    assert tasks["atom_size"].null_count() == 0
    assert tables["queues"]["cloud"].null_count() < tables["queues"].height


def test_a_replay_says_what_it_is(archive: Archive, whole: Replay) -> None:
    said = whole.to_dict()
    assert (said["stage"], said["archive"]) == ("analysis", archive.digest)
    assert any("every 30m" in note for note in whole.notes)
    assert any("quota" in note for note in whole.notes)


def test_rule_sets_are_given_by_name_or_as_they_are(archive: Archive) -> None:
    tasks = (
        archive.scan("tasks").filter(prodsourcelabel="user").select("jeditaskid").collect().head(3)
    )
    named, given = (
        replaying.build(
            archive, stage="analysis", tasks=tasks, files=False, rules=rules, class_rules=classes
        )
        for rules, classes in (
            ("production", "production"),
            (ProductionRules("production"), ClassRules("production")),
        )
    )
    assert any("rule set production" in note for note in named.notes)
    assert named.notes == given.notes
    for name, frame in named.tables.items():
        assert_frame_equal(frame, given.tables[name])


def test_users_of_tasks_who_are_called_otherwise_in_jobs_are_told_of(
    archive: Archive, whole: Replay
) -> None:
    tables = {name: archive.scan(name).collect() for name in ("jobs", "tasks", "queues")}
    renamed = tables["tasks"].with_columns(username="CN=" + pl.col("username"))
    found = replaying.build(tables | {"tasks": renamed}, stage="analysis")
    n = found.tasks["username"].n_unique()
    assert any(note.startswith(f"{n} of {n} users of tasks have no") for note in found.notes)
    totals = found.tables["user_totals"].filter(pl.col("workinggroup").is_null())
    assert totals["nrunjobs"].sum() == 0
    assert not any("users of tasks have no job" in note for note in whole.notes)


@quietly
def test_an_archive_is_replayed_under_the_rule_set_that_decides(
    archive: Archive, whole: Replay
) -> None:
    decided = brokerage.decide(archive, brokerage="analysis-jobs", rules="production")
    replay = replaying.build(archive, stage="analysis", class_rules="production")
    rated = replay.tables["site_class"]
    assert not rated.equals(whole.tables["site_class"])  # of the document
    assert_frame_equal(decided.world.tables["site_class"], rated)


def test_numbers_of_jobs_are_those_of_a_loop(archive: Archive, whole: Replay) -> None:
    jobs, log = archive.scan("jobs").collect(), archive.scan("job_status_log").collect()
    some = whole.instants.filter(pl.col("snapshot") == whole.instants.height // 2)
    stats = whole.tables["job_stats"].join(some, on="snapshot", how="semi")
    expected: Counter[Any] = Counter()
    for snapshot, queue, share, _, kind, _, status, n in counted(jobs, log, some):
        expected[(snapshot, queue, share, kind, status)] += n
    assert dict(zip(stats.drop("njobs").rows(), stats["njobs"], strict=True)) == dict(expected)
    mine = jobs.filter(
        (pl.col("prodsourcelabel") == "user")
        & (pl.col("processingtype").fill_null("") != "pmerge")
        & (pl.col("gshare") == "User Analysis")
    )
    running = sum(row[-1] for row in counted(mine, log, some) if row[-2] == "running")
    users = whole.tables["user_job_stats"].join(some, on="snapshot", how="semi")
    assert users.filter(pl.col("gshare") == "User Analysis")["nrunning"].sum() == running > 0


def test_one_instant_is_as_in_the_whole_replay(archive: Archive, whole: Replay) -> None:
    at = whole.instants.row(whole.instants.height // 2, named=True)
    own = whole.tasks.filter(pl.col("snapshot") == at["snapshot"])
    chosen = own.select("jeditaskid", "is_merging", "use_scout", at=pl.lit(at["at"]))
    alone = replaying.build(archive, stage="analysis", tasks=chosen)
    for name in AT_INSTANTS:
        many = whole.tables[name].filter(pl.col("snapshot") == at["snapshot"]).drop("snapshot")
        one = alone.tables[name].drop("snapshot", strict=False).select(many.columns)
        assert one.sort(many.columns).equals(many.sort(many.columns)), name


def test_evaluations_are_no_older_than_their_grid(whole: Replay) -> None:
    for name in ("task_class", "gshare_usage", "user_eval"):
        seen = whole.tables[name].join(whole.instants, on="snapshot")
        age = seen["at"] - seen["timestamp"]
        assert age.min() >= timedelta(0)  # type: ignore[operator]
        assert age.max() < timedelta(minutes=10)  # type: ignore[operator]


@quietly
@pytest.mark.parametrize("name", ["document", "production"])
def test_decide_runs_on_the_tables(whole: Replay, name: str) -> None:
    tables = whole.tables_of(contracts.TABLES)
    readers = tables["queue_endpoints"].filter(pl.col("direction") == "input")
    places = readers.select("ddm_endpoint_name").unique().sort("ddm_endpoint_name").head(200)
    names = tables["datasets"].select("datasetname").unique()
    copies = names.join(places, how="cross").with_columns(found=pl.lit(1), total=pl.lit(1))
    decisions = decide(
        tables | {"replicas": copies}, rules=AnalysisRules(name), config=whole.config
    )
    assert decisions.tasks.select("jeditaskid", "snapshot").equals(
        whole.tasks.select("jeditaskid", "snapshot")
    )
    outcomes = decisions.tasks["outcome"].unique().to_list()
    assert "candidates" in outcomes
    assert decisions.queues["check"].n_unique() > 5


def test_other_settings_make_their_tables_anew(whole: Replay) -> None:
    values = {
        "jedi/anal_jobbroker/TW_DONE_JOB_STAT": 1,
        "pandaserver/analy_eval/USER_USAGE_THRESHOLD_A": 1500,
    }
    config = whole.config.with_values(values)
    other = whole.with_config(config)
    assert other.config.digest == config.digest != whole.config.digest
    few, many = (r.tables["failure_counts"]["njobs"].sum() for r in (other, whole))
    assert 0 < few < many
    threshold = whole.config.get("USER_USAGE_THRESHOLD_A", component="analy_eval")
    slots = 1500.0 - other.tables["user_eval"]["rem_slots_a"]
    left = (threshold - slots).clip(lower_bound=0.0)
    assert left.to_list() == whole.tables["user_eval"]["rem_slots_a"].to_list()
    assert threshold != 1500
    assert other.tables["user_eval"].height > 0
    same = [name for name in whole.tables if other.tables[name] is whole.tables[name]]
    assert set(whole.tables) - set(same) == {"failure_counts", "user_eval", "task_class"}


@pytest.mark.parametrize("stage", ["analysis", "tasks"])
def test_a_kept_replay_is_the_one_that_was_made(
    archive: Archive, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = replaying.build_once(archive, stage=stage, every="1h")
    monkeypatch.setattr(plan, "planned", None)
    again = replaying.build_once(archive, stage=stage, every="1h")
    monkeypatch.undo()
    made = replaying.build(archive, stage=stage, every="1h")
    for found in (first, again):
        assert (found.notes, found.config) == (made.notes, made.config)
        assert_frame_equal(found.instants, made.instants)
        other = made.config.with_values({"jedi/anal_jobbroker/TW_DONE_JOB_STAT": 1})
        for one, two in ((found, made), (found.with_config(other), made.with_config(other))):
            assert one.tables.keys() == two.tables.keys()
            for name, frame in one.tables.items():
                assert_frame_equal(frame, two.tables[name])


def test_a_label_can_be_asked_for(archive: Archive) -> None:
    with pytest.raises(brokerlab.errors.DataError, match="label=nobody"):
        replaying.build(archive, stage="analysis", label="nobody")
    with pytest.raises(ConfigError, match="analysis"):
        replaying.build(archive, stage="analysi")


@quietly
def test_an_archive_with_little_in_it(archive: Archive, tmp_path: Path) -> None:
    with ArchiveWriter(tmp_path / "a") as writer:
        for name in ("jobs", "tasks", "queues"):
            writer.write(name, archive.scan(name).collect())
        writer.commit()
    found = replaying.build(brokerlab.archive.open(tmp_path / "a"), stage="analysis")
    assert any("no gshares" in note for note in found.notes)
    assert not any("network_matrix" in note for note in found.notes)
    decisions = decide(found.tables_of(contracts.TABLES), config=found.config)
    assert decisions.tasks.height == found.tasks.height
