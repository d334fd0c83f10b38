"""A replay of a small synthetic archive: complete, right, and the same whatever is replayed with it."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import brokerlab.archive
from brokerlab import brokerage, carry
from brokerlab.archive import Archive, ArchiveWriter
from brokerlab.brokerage import contracts as job_contracts
from brokerlab.brokerage import replaying
from brokerlab.brokerage.production_tasks import contracts as task_contracts
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.studies.period import ANALYSIS, PRODUCTION, Kind
from brokerlab.errors import ConfigError, DataError, EmptyPeriodError, SchemaError
from brokerlab.frames import prepared
from brokerlab.worlds import synthesise
from tests.unit.brokerage.replaying.toys import counted

STATES = (
    *(
        "job_stats",
        "job_stats_rt",
        "site_activity",
        "worker_stats",
        "slots",
        "core_stats",
        "diskio_usage",
    ),
    *("transferring_by_nucleus", "storage_endpoints", "task_resource_types"),
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("replay") / "archive"
    synthesise(folder, jobs=4000, days=2, seed=3)
    return brokerlab.archive.open(folder)


@pytest.fixture(scope="module")
def jobs_replay(archive: Archive) -> Replay:
    return replaying.build(archive)


@pytest.fixture(scope="module")
def tasks_replay(archive: Archive) -> Replay:
    return replaying.build(archive, stage="tasks")


def test_both_brokerages_take_their_tables(jobs_replay: Replay, tasks_replay: Replay) -> None:
    for_jobs = prepared(jobs_replay.tables_of(job_contracts.TABLES), job_contracts.TABLES)
    for_tasks = prepared(tasks_replay.tables_of(task_contracts.TABLES), task_contracts.TABLES)
    filled = {name for name, frame in for_jobs.items() if frame.height}
    optional = {
        "job_stats_workqueue",
        "job_stats_gshare_only",
        "resource_work_queues",
        "locks",
        "live",
    }
    assert filled | optional == set(job_contracts.TABLES)
    assert {"remaining_work", "output_datasets", "parent_tasks", "nuclei"} <= {
        name for name, frame in for_tasks.items() if frame.height
    }


def test_a_replay_is_decided_by_a_brokerage_of_its_stage(jobs_replay: Replay) -> None:
    for name in ("production-tasks", "analysis-jobs"):
        with pytest.raises(ConfigError, match=f"brokerage={name}: .* the replay of jobs"):
            brokerage.decide(jobs_replay, brokerage=name)


def test_a_replay_says_what_it_is(archive: Archive, jobs_replay: Replay) -> None:
    said = jobs_replay.to_dict()
    assert (said["archive"], said["synthetic"], said["stage"]) == (archive.digest, True, "jobs")
    assert said["rows"]["tasks"] == jobs_replay.tasks.height > 20
    assert any("no status log" in note for note in jobs_replay.notes)
    assert jobs_replay.tasks.select("jeditaskid", "snapshot").is_unique().all()
    sizes = jobs_replay.frame().filter(pl.col("table") == "job_stats")
    assert sizes.row(0) == ("job_stats", said["rows"]["job_stats"], True)
    assert "synthetic archive" in jobs_replay._repr_html_()
    assert jobs_replay.tasks["prodsourcelabel"].unique().to_list() == ["managed"]
    assert jobs_replay.with_config(jobs_replay.config).tables == dict(jobs_replay.tables)
    late = jobs_replay.tasks["brokerage_time"] - jobs_replay.tasks["at"]
    assert late.min() >= timedelta(0)
    assert late.max() < timedelta(minutes=10)
    assert jobs_replay.tasks["atom_size"].null_count() == 0


def test_counts_are_those_of_a_loop(archive: Archive, jobs_replay: Replay) -> None:
    jobs, log = archive.scan("jobs").collect(), archive.scan("job_status_log").collect()
    some = jobs_replay.instants.filter(pl.col("snapshot") % 25 == 7)
    stats = jobs_replay.tables["job_stats"].join(some, on="snapshot", how="semi")
    expected: Counter[Any] = Counter()
    for row in counted(jobs, log, some):
        snapshot, queue, share, status, n = row[0], row[1], row[2], row[6], row[7]
        expected[(snapshot, queue, share, status)] += n
    assert dict(zip(stats.drop("njobs").rows(), stats["njobs"], strict=True)) == dict(expected)
    assert len(expected) > 50


def test_instants_of_which_the_archive_tells_nothing_are_refused(archive: Archive) -> None:
    jobs = archive.scan("jobs").filter(prodsourcelabel="managed").collect()
    task, last = jobs["jeditaskid"][0], archive.scan("jobs").collect()["modificationtime"].max()
    assert replaying.build(archive, at=last, tasks=[task]).instants["at"].to_list() == [last]
    for moment in (last - timedelta(days=99), last + timedelta(days=99)):
        with pytest.raises(EmptyPeriodError, match=f"at={moment}: the archive tells of .* to"):
            replaying.build(archive, at=moment, tasks=[task])
        with pytest.raises(EmptyPeriodError, match=f"at={moment}: "):
            replaying.build(archive, tasks={"jeditaskid": [task], "at": [moment]})


def test_one_instant_is_as_in_the_whole_replay(archive: Archive, jobs_replay: Replay) -> None:
    at = jobs_replay.instants.row(jobs_replay.instants.height // 2, named=True)
    own = jobs_replay.tasks.filter(pl.col("snapshot") == at["snapshot"])
    alone = replaying.build(archive, at=at["at"], tasks=own["jeditaskid"].to_list())
    assert alone.tasks["jeditaskid"].to_list() == own["jeditaskid"].to_list()
    for name in STATES:
        whole = (
            jobs_replay.tables[name].filter(pl.col("snapshot") == at["snapshot"]).drop("snapshot")
        )
        part = alone.tables[name]
        part = part.drop("snapshot", strict=False).select(whole.columns)
        assert part.sort(whole.columns).equals(whole.sort(whole.columns)), name


def test_a_period_is_a_part_of_the_whole(archive: Archive, jobs_replay: Replay) -> None:
    start, end = "2026-03-01T12:00", "2026-03-02"
    part = replaying.build(archive, start=start, end=end, every=None)
    whole = replaying.build(archive, every=None)
    inside = pl.col("at").is_between(pl.lit(start).str.to_datetime(), pl.lit("2026-03-02 00:00").str.to_datetime(), closed="left")  # fmt: skip
    keys = ["jeditaskid", "at"]
    assert part.tasks.select(keys).equals(whole.tasks.filter(inside).select(keys))
    assert part.tasks.height < whole.tasks.height


def test_given_tasks_and_times(archive: Archive, jobs_replay: Replay) -> None:
    row = jobs_replay.tasks.row(3, named=True)
    asked = pl.DataFrame(
        {"jeditaskid": [row["jeditaskid"]], "at": [row["at"]], "use_scout": [True]}
    )
    found = replaying.build(archive, tasks=asked)
    assert found.tasks.select("jeditaskid", "at", "use_scout").rows() == asked.rows()
    texts = {name: [str(value) for value in asked[name]] for name in ("jeditaskid", "at")}
    again = replaying.build(archive, tasks=asked.to_pandas().assign(**texts))
    assert again.tasks.equals(found.tasks)


def test_merge_chunks_are_replayed_apart(archive: Archive) -> None:
    merging = replaying.build(archive, merging=True)
    assert merging.tasks["is_merging"].all()
    assert set(merging.tables["datasets"]["type"]) == {"trn_output"}


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"stage": "job"}, ConfigError, "did you mean 'jobs'"),
        ({"start": "2030-01-01"}, EmptyPeriodError, "no task is brokered"),
        ({"at": "2026-03-01T12:00", "stage": "tasks"}, ConfigError, "which tasks"),
        ({"tasks": pl.DataFrame({"task": [1]})}, SchemaError, "jeditaskid"),
        ({"tasks": {"jeditaskid": [1], "att": ["2026-03-01"]}}, SchemaError, "did you mean 'at'"),
        (
            {"tasks": {"jeditaskid": [1], "at": [1772323200]}},
            SchemaError,
            "tasks.at: is Int64, a time",
        ),
        ({"tasks": {"jeditaskid": [1, 2], "at": ["2026-03-01", None]}}, ConfigError, "1 of 2 null"),
        ({"tasks": {"jeditaskid": [1], "is_merging": [True]}}, ConfigError, "1 of 1 null"),
        ({"every": "ten"}, ConfigError, "every='ten'"),
        ({"cycle": "0h"}, ConfigError, "cycle='0h'"),
        ({"rules": "prodution"}, ConfigError, "did you mean 'production'"),
    ],
)
def test_what_cannot_be_replayed(
    archive: Archive, arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        replaying.build(archive, **arguments)


def test_an_archive_with_little_in_it(archive: Archive, tmp_path: Path) -> None:
    with ArchiveWriter(tmp_path / "a") as writer:
        for name in ("jobs", "tasks", "queues"):
            writer.write(name, archive.scan(name).collect())
        writer.commit()
    found = replaying.build(brokerlab.archive.open(tmp_path / "a"))
    assert any("no job_status_log" in note for note in found.notes)
    assert found.tables["job_stats"].height
    prepared(found.tables_of(job_contracts.TABLES), job_contracts.TABLES)
    prepared(replaying.build(brokerlab.archive.open(tmp_path / "a"), stage="tasks").tables_of(task_contracts.TABLES), task_contracts.TABLES)  # fmt: skip


def test_tasks_without_nucleus_are_told_of(archive: Archive) -> None:
    tables = {name: archive.scan(name).collect() for name in ("jobs", "tasks", "queues")}
    nowhere = tables["tasks"].with_columns(nucleus=pl.lit(None, pl.String))
    found = replaying.build(tables | {"tasks": nowhere})
    told = f"{found.tasks.height} of {found.tasks.height} brokerages are of tasks without nucleus: "
    assert any(note.startswith(told) for note in found.notes)


def test_queues_of_jobs_that_nobody_knows_are_told_of(
    archive: Archive, jobs_replay: Replay
) -> None:
    tables = {name: archive.scan(name).collect() for name in ("jobs", "tasks", "queues")}
    gone = sorted(tables["jobs"]["computingsite"].unique())[0]
    found = replaying.build(tables | {"queues": tables["queues"].filter(panda_queue=gone)})
    others = tables["jobs"]["computingsite"].n_unique() - 1
    told = f"{others} of {others + 1} queues with jobs, such as "
    assert any(note.startswith(told) for note in found.notes)
    assert not any("queues with jobs" in note for note in jobs_replay.notes)


def test_an_archive_without_queues_is_refused(archive: Archive, tmp_path: Path) -> None:
    with ArchiveWriter(tmp_path / "a") as writer:
        writer.write("jobs", archive.scan("jobs").collect())
        writer.commit()
    with pytest.raises(DataError, match="needs tasks, queues"):
        replaying.build(brokerlab.archive.open(tmp_path / "a"))


def test_recorded_numbers_take_the_place_of_rebuilt_ones(
    archive: Archive, jobs_replay: Replay, tmp_path: Path
) -> None:
    alone = jobs_replay
    at = alone.instants["at"][40]
    stats = pl.DataFrame(
        {
            "ts": [at],
            "computingsite": ["Q"],
            "gshare": ["A"],
            "jobstatus": ["running"],
            "njobs": [5],
        }
    )
    with ArchiveWriter(tmp_path / "a") as writer:
        for name in archive.tables:
            writer.write(name, archive.scan(name).collect())
        writer.write("job_stats", stats)
        writer.commit()
    found = replaying.build(brokerlab.archive.open(tmp_path / "a"))
    within = pl.col("at").is_between(at, at + timedelta(hours=1), closed="left")
    covered = alone.instants.filter(within).select("snapshot")
    recorded = found.tables["job_stats"].join(covered, on="snapshot", how="semi")
    assert recorded.drop("snapshot").unique().rows() == [("Q", "A", "running", 5)]
    assert recorded.height == covered.height >= 1
    others = [
        r.tables["job_stats"].join(covered, on="snapshot", how="anti") for r in (found, alone)
    ]
    assert others[0].equals(others[1])
    assert found.tables["core_stats"].equals(alone.tables["core_stats"])
    assert any(f"at {covered.height} of" in note for note in found.notes)


Pair = Callable[[str], tuple[Replay, Replay]]


@pytest.fixture(scope="module")
def whole_and_in_chunks(archive: Archive) -> Pair:
    """Return what replays a stage every six hours: with its files, and with files to be read by the chunk."""

    @cache
    def replay(stage: str) -> tuple[Replay, Replay]:
        whole = replaying.build(archive, stage=stage, every="6h")
        return whole, replaying.build(archive, stage=stage, every="6h", files=False)

    return replay


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
@pytest.mark.parametrize("stage", ["jobs", "tasks", "analysis"])
def test_chunks_of_tasks_are_the_whole_replay(
    whole_and_in_chunks: Pair, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carry, "CHUNK_ROWS", 2000)
    whole, in_chunks = whole_and_in_chunks(stage)
    chunks = in_chunks.map(lambda seen: seen)
    assert len(chunks) > 2
    other = whole.config.with_values({"jedi/anal_jobbroker/OVERLOAD_MIN_QUEUE": 3})
    assert chunks[0].with_config(other).config == other
    if stage == "analysis":  # jobs are not at hand there
        with pytest.raises(ConfigError, match="TW_DONE_JOB_STAT"):
            chunks[0].with_config(other.with_values({"jedi/anal_jobbroker/TW_DONE_JOB_STAT": 1}))
    for name, frame in whole.tables.items():
        parts = [chunk.tables[name] for chunk in chunks]
        if "jeditaskid" not in frame.columns or name == "parent_tasks":
            for part, chunk in zip(parts, chunks, strict=True):
                at = pl.col("snapshot").is_in(chunk.tasks["snapshot"].implode())
                dated = "snapshot" in frame.columns
                assert part.equals(frame.filter(pl.col("snapshot").is_null() | at) if dated else frame)  # fmt: skip
            continue
        keys = [key for key in ("jeditaskid", "snapshot") if key in frame.columns]
        together = pl.concat(part.select(frame.columns) for part in parts if part.height)
        assert together.sort(keys, maintain_order=True).equals(
            frame.sort(keys, maintain_order=True)
        )


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_a_chunk_is_freed_once_it_is_decided(
    whole_and_in_chunks: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a cycle of references, which may wait for long while chunk after chunk is held."""

    def read(seen: Replay) -> weakref.ref[Replay]:
        assert "files" in seen.tables_of(PRODUCTION.brokerage.tables)
        return weakref.ref(seen)

    monkeypatch.setattr(carry, "CHUNK_ROWS", 2000)
    _, replay = whole_and_in_chunks("jobs")
    gc.disable()
    try:
        assert [chunk() for chunk in replay.map(read)] == [None] * 4
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
@pytest.mark.parametrize("kind", [PRODUCTION, ANALYSIS])
def test_decisions_by_chunk_are_those_on_the_whole(
    whole_and_in_chunks: Pair, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carry, "CHUNK_ROWS", 2000)

    def decide(seen: Replay) -> pl.DataFrame:
        tables = seen.tables_of(kind.brokerage.tables)
        return kind.brokerage.decide(tables, config=seen.config).tasks

    whole, in_chunks = whole_and_in_chunks(kind.brokerage.stage)
    parts = in_chunks.map(decide)
    keys = ["jeditaskid", "snapshot"]
    assert pl.concat(parts).sort(keys).equals(decide(whole).sort(keys))
