"""Which tasks of a period are replayed, and which of their jobs ran."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import brokerlab.archive
from brokerlab import rulesets
from brokerlab.archive import Archive, ArchiveWriter
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.studies import alternatives
from brokerlab.brokerage.studies.period import (
    ANALYSIS,
    PRODUCTION,
    Kind,
    Period,
    draw_tasks,
    replay_nuclei,
    replay_period,
)
from brokerlab.brokerage.studies.tasks import ProductionTasks, study_production_tasks
from brokerlab.errors import EmptyPeriodError
from brokerlab.rulesets import single_switches
from brokerlab.worlds import synthesise


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder: Path = tmp_path_factory.mktemp("archives") / "days"
    synthesise(folder, jobs=2_000, days=3, seed=3)
    return brokerlab.archive.open(folder)


@pytest.fixture(scope="module")
def of_two_tasks(archive: Archive) -> Period:
    return replay_period(archive, PRODUCTION, max_tasks=2)


def test_tasks_are_drawn_from_those_brokered_in_the_period(archive: Archive) -> None:
    def draw(most: int, seed: int = 1) -> tuple[list[int] | None, int]:
        return draw_tasks(archive, None, None, label="managed", most=most, seed=seed)

    assert draw(0) == (None, 0)
    n_tasks = draw(10**6)[1]
    assert draw(10**6) == (None, n_tasks)
    tasks = draw(3)[0]
    assert tasks == sorted(tasks or [])
    assert draw(3) == (tasks, n_tasks)
    assert draw(3, seed=2)[0] != tasks
    late = draw_tasks(archive, datetime(2100, 1, 1), None, label="managed", most=3, seed=1)
    assert late == (None, 0)


@pytest.mark.parametrize("kind", [PRODUCTION, ANALYSIS], ids=lambda kind: kind.name)
def test_a_period_holds_a_sample_and_its_jobs(
    archive: Archive, of_two_tasks: Period, kind: Kind
) -> None:
    period = of_two_tasks if kind is PRODUCTION else replay_period(archive, kind, max_tasks=2)
    assert (period.n_replayed, period.is_sample) == (2, True)
    assert period.replay.stage == kind.brokerage.stage
    assert period.window[0] <= period.window[1]
    ids = period.replay.tasks["jeditaskid"].unique().sort().to_list()
    mine = pl.col("jeditaskid").is_in(ids), pl.col("prodsourcelabel") == kind.label
    jobs = archive.scan("jobs").filter(*mine, pl.col("starttime").is_not_null()).collect()
    ordinary = jobs.filter(pl.col("processingtype").ne_missing("pmerge"))
    assert period.ran["n_jobs"].sum() == ordinary.height
    cores = pl.coalesce(pl.col("actualcorecount", "corecount").replace(0, None), 1)
    ran = (pl.coalesce("endtime", "starttime") - pl.col("starttime")).dt.total_microseconds()
    core_us = ordinary.select((ran * cores).sum()).item()
    assert period.ran["core_h"].sum() == pytest.approx(core_us / 3.6e9)


def test_jobs_at_pseudo_queues_ran_at_their_parents(archive: Archive, tmp_path: Path) -> None:
    site = pl.col("computingsite")
    pseudo = pl.when(site.str.contains("UCORE")).then(site + "/SCORE").otherwise(site)
    with ArchiveWriter(tmp_path / "a", synthetic=True) as writer:
        for name in archive.tables:
            frame = archive.scan(name).collect()
            writer.write(name, frame.with_columns(pseudo) if name == "jobs" else frame)
        writer.commit()
    renamed = brokerlab.archive.open(tmp_path / "a")
    assert renamed.scan("jobs").filter(site.str.contains("/")).collect().height > 0
    ran = [replay_period(each, PRODUCTION).ran for each in (archive, renamed)]
    assert_frame_equal(*ran, check_row_order=False)


def test_jobs_made_after_a_period_are_not_of_its_last_brokerage(archive: Archive) -> None:
    brokerages = replay_period(archive, PRODUCTION, every=None).replay.tasks
    later = brokerages.filter(pl.col("snapshot") > pl.col("snapshot").min().over("jeditaskid"))
    end = later["brokerage_time"].min()
    assert isinstance(end, datetime)
    period = replay_period(archive, PRODUCTION, end=end)
    ids = period.replay.tasks["jeditaskid"].unique().implode()
    own = archive.scan("jobs").filter(
        pl.col("jeditaskid").is_in(ids),
        pl.col("prodsourcelabel") == "managed",
        pl.col("processingtype").ne_missing("pmerge"),
        pl.col("starttime").is_not_null(),
    )
    late = pl.col("creationtime") >= end
    counts = own.select(before=(~late).sum(), after=late.sum()).collect()
    assert counts["after"].item() > 0
    assert period.ran["n_jobs"].sum() == counts["before"].item()


def test_the_choice_of_nuclei_is_of_the_same_tasks(of_two_tasks: Period) -> None:
    nuclei, why = replay_nuclei(of_two_tasks)
    assert why == ""
    assert nuclei is not None
    assert set(nuclei.tasks["jeditaskid"]) == set(of_two_tasks.replay.tasks["jeditaskid"])


def test_a_period_without_brokerages_is_named(archive: Archive) -> None:
    with pytest.raises(EmptyPeriodError, match="no task is brokered in the period"):
        replay_period(archive, PRODUCTION, end=datetime(2000, 1, 1))


def test_a_chunk_takes_what_holds_at_its_instants(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held in memory goes by the chunk, not by the period."""
    monkeypatch.setattr(sys.modules[Replay.__module__], "CHUNK_PAIRS", 500)

    def strange(some: Replay) -> list[str]:
        histories = {n: t["snapshot"] for n, t in some.tables.items() if "snapshot" in t.columns}
        own = some.tasks["snapshot"].implode()
        return [n for n, at in histories.items() if not at.drop_nulls().is_in(own).all()]

    assert not any(replay_period(archive, PRODUCTION).replay.map(strange))


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_chunks_of_tasks_add_up_to_the_whole_study(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def two_switches(rules: Any, other: Any) -> dict[str, Any]:  # which one is all the same
        return dict(list(single_switches(rules, other).items())[:2])

    for module in (rulesets, alternatives):
        monkeypatch.setattr(module, "single_switches", two_switches)
    period = replay_period(archive, PRODUCTION, max_tasks=4)
    keys = ["NQUEUED_SAT_CAP", "MIN_WEIGHT_managed"]
    asked: dict[str, Any] = {"keys": keys, "points": 3, "switch_sample": 1, "n_boot": 20}
    whole = study_production_tasks(period, **asked)
    monkeypatch.setattr(sys.modules[Replay.__module__], "CHUNK_PAIRS", 250)
    parts = study_production_tasks(period, **asked)
    files = [len(list(each.pairs.path.glob("*.parquet"))) for each in (parts, whole)]
    assert files[0] > 3 > files[1]
    assert whole.rule_sets.switches.height == 4  # two of the brokerage, two of the text rules
    for each, name in ((parts, "parts"), (whole, "whole")):
        each.write_pairs(tmp_path / name)
    order = ["jeditaskid", "snapshot", "panda_queue"]
    decided = [pl.read_parquet(tmp_path / name).cast({"panda_queue": pl.String}).sort(order) for name in ("parts", "whole")]  # fmt: skip
    assert_frame_equal(*decided, rel_tol=1e-12)
    for one, other in (
        (parts, whole),
        (parts.rule_sets, whole.rule_sets),
        (parts.keys, whole.keys),
    ):
        for name, value in vars(one).items():
            if isinstance(value, pl.DataFrame):
                assert_frame_equal(value, getattr(other, name), rel_tol=1e-12)


def test_pairs_of_chunks_that_know_other_queues_are_written_together(tmp_path: Path) -> None:
    """A queue that came later is not known to a chunk of earlier tasks."""
    for name, queues in (("1", ["A", "B"]), ("2", ["A", "C"])):
        rows = pl.DataFrame({"panda_queue": pl.Series(queues[1:], dtype=pl.Enum(queues))})
        rows.write_parquet(tmp_path / f"{name}.parquet")
    parts: Any = SimpleNamespace(pairs=SimpleNamespace(path=tmp_path))
    ProductionTasks.write_pairs(parts, tmp_path / "whole")
    written = pl.read_parquet(tmp_path / "whole")["panda_queue"]
    assert written.to_list() == ["B", "C"]
    assert written.dtype == pl.Enum(["A", "B", "C"])
