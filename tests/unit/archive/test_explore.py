"""The first questions to a table of jobs, on tables by hand: counts, shares and hours that can be added up on paper."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from brokerlab import archive
from brokerlab.archive import explore
from brokerlab.errors import ConfigError, MissingTableError

START = datetime(2026, 3, 1)
ODD = 'A<b>&\n"💥"'


@pytest.fixture
def made(tmp_path, make_jobs):
    """Eight jobs: nine hours apart, five finished, two failed, one closed before its start."""
    status = ["finished"] * 5 + ["failed", "failed", "closed"]
    starts = [START + timedelta(hours=9 * i + 1) for i in range(7)] + [None]
    ends = [None if at is None else at + timedelta(hours=2) for at in starts]
    frame = make_jobs(
        8,
        jobstatus=status,
        jeditaskid=[1, 1, 1, 2, 2, 2, 2, None],
        computingsite=[ODD, ODD, ODD, "Q2", "Q2", ODD, "Q2", None],
        starttime=starts,
        endtime=ends,
        maxpss=[1024 * mb for mb in (10, 20, 30, 40, 50, 60, 0)] + [None],
        cpuconsumptiontime=[3600] * 5 + [7200, 0, None],
        piloterrorcode=[None, 0, 0, 0, 0, 1305, 0, None],
        exeerrorcode=[0, 0, 0, 0, 0, 65, 0, None],
        transexitcode=["0", "0", "0", "0", "0", "1", " 137 ", "1"],
    )
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.write("jobs", frame)
        writer.commit()
    return archive.open(tmp_path)


def test_what_is_asked_of_a_job(made):
    frame = explore.jobs(made).select("error", *explore.QUANTITIES).collect()
    assert frame["memory_mb"].to_list() == [10, 20, 30, 40, 50, 60, None, None]
    assert frame["cpu_s"].to_list() == [3600.0] * 5 + [7200.0, None, None]
    assert frame["wait_s"].to_list() == [3600.0] * 7 + [None]
    assert frame["run_s"].to_list() == [7200.0] * 7 + [None]
    assert frame["error"].to_list() == [None] * 5 + ["pilot 1305", "payload exit 137", None]


def test_a_start_before_creation_is_no_wait(tmp_path, make_jobs):
    frame = make_jobs(2).with_columns(starttime=pl.col("creationtime") - timedelta(hours=1))
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.write("jobs", frame)
        writer.commit()
    opened = archive.open(tmp_path)
    assert explore.jobs(opened).collect()["wait_s"].to_list() == [None, None]
    assert explore.totals(opened)["no_start"].item() == 2


def test_where_one_time_stands_for_both_no_wait_is_known(tmp_path, make_jobs):
    """As of an export without creation times, read with ``--default creationtime=starttime``: a median of 0 says nothing."""
    frame = make_jobs(4).with_columns(starttime=pl.col("creationtime"))
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.write("jobs", frame)
        writer.commit()
    opened = archive.open(tmp_path)
    row = explore.totals(opened, n_boot=2).row(0, named=True)
    assert (row["no_start"], row["median_wait_min"], row["p95_wait_min"]) == (4, None, None)
    waits = explore.distributions(opened).filter(quantity="wait_s")
    assert waits["median"].to_list() == [None]
    assert explore.waits(opened)["not_started"].to_list() == [4]


def test_a_period_counts_by_creation(made):
    some = explore.jobs(made, start=START + timedelta(hours=9), end=START + timedelta(hours=27))
    assert some.collect()["pandaid"].to_list() == [2, 3]
    typed = explore.jobs(made, start="2026-03-01T09:00", end="2026-03-02 03:00")
    assert typed.collect()["pandaid"].to_list() == [2, 3]


def test_totals(made):
    row = explore.totals(made, n_boot=50).row(0, named=True)
    expected = {"jobs": 8, "tasks": 2, "queues": 2, "n_ended": 7, "n_failed": 2}
    expected |= {"stopped": 1, "alive": 0, "no_task": 1, "no_start": 1}
    assert {name: row[name] for name in expected} == expected
    assert (row["median_wait_min"], row["p95_wait_min"]) == (60.0, 60.0)
    assert row["failed_share"] == 2 / 7
    assert row["lost_share"] == 2 / 7  # 2 of 7 CPU hours
    assert row["failed_share_lo"] <= row["failed_share"] <= row["failed_share_hi"]


def test_over_time_counts_every_job_in_every_step(made):
    found = explore.over_time(made, every="1d")
    assert found.filter(level="finished")["jobs"].to_list() == [3, 2, 0]
    assert found.filter(level="failed")["jobs"].to_list() == [0, 1, 1]
    assert found.filter(level="closed")["jobs"].to_list() == [0, 0, 1]
    assert found["at"].unique().sort().to_list() == [START + timedelta(days=i) for i in range(3)]
    assert found["level"].unique(maintain_order=True).to_list() == ["finished", "failed", "closed"]


def test_rare_levels_are_together_and_null_has_a_name(made):
    found = explore.over_time(made, "computingsite", every="7d", most=1)
    counts = found.group_by("level", maintain_order=True).agg(pl.col("jobs").sum())
    assert counts.rows() == [(ODD, 4), (explore.OTHER, 4)]
    every = explore.over_time(made, "computingsite", every="7d")
    assert (explore.UNKNOWN, 1) in every.group_by("level").agg(pl.col("jobs").sum()).rows()


@pytest.mark.parametrize(
    ("hours", "step"),
    [(1, 1), (60, 1), (28 * 24, 12), (400 * 24, 7 * 24), (40 * 365 * 24, 236 * 24)],
)
def test_the_step_fits_any_span(tmp_path, make_jobs, hours, step):
    times = [START, START + timedelta(hours=hours)]
    frame = make_jobs(2, creationtime=times, starttime=times, endtime=times, modificationtime=times)
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.write("jobs", frame)
        writer.commit()
    found = explore.over_time(archive.open(tmp_path))
    steps = found["at"].unique().sort()
    assert len(steps) <= explore.MOST_STEPS + 2
    assert steps[1] - steps[0] == timedelta(hours=step)
    assert found["jobs"].sum() == 2


def test_distributions(made):
    found = explore.distributions(made)
    memory = found.row(by_predicate=pl.col("quantity") == "memory_mb", named=True)
    assert (memory["jobs"], memory["unknown"]) == (6, 2)
    assert (memory["median"], memory["largest"]) == (35.0, 60.0)
    assert memory["what"].endswith("[MB]")
    by_queue = explore.distributions(made, "computingsite", most=1).filter(quantity="memory_mb")
    assert by_queue["level"].to_list() == [ODD, explore.OTHER]
    assert by_queue["jobs"].to_list() == [4, 2]


def test_histograms_hold_every_value_once(made):
    bins = explore.histograms(made)
    counts = dict(bins.group_by("quantity").agg(pl.col("jobs").sum()).rows())
    assert counts == {"memory_mb": 6, "cpu_s": 6, "run_s": 7, "wait_s": 7}
    for name, value in (("memory_mb", 10.0), ("run_s", 7200.0)):
        held = bins.filter(pl.col("lower") <= value, pl.col("upper") > value, quantity=name)
        assert held.height == 1


def test_failures(made):
    errors = explore.failures(made)
    assert errors.select("level", "ended", "failed", "tasks", "cpu_h").rows() == [
        ("payload exit 137", 7, 1, 1, 0.0),
        ("pilot 1305", 7, 1, 1, 2.0),
    ]
    assert errors["part"].to_list() == [0.5, 0.5]
    queues = explore.failures(made, "computingsite")
    assert queues.select("level", "ended", "failed").rows() == [(ODD, 4, 1), ("Q2", 3, 1)]
    assert queues["failed_share"].to_list() == [1 / 4, 1 / 3]
    tasks = explore.failures(made, "jeditaskid")
    assert tasks.select("level", "ended", "failed").rows() == [("2", 4, 2)]


def test_waits(made):
    found = explore.waits(made)
    assert found.select("level", "jobs", "not_started", "waited_h").rows() == [
        (ODD, 4, 0, 4.0),
        ("Q2", 3, 0, 3.0),
        (explore.UNKNOWN, 1, 1, 0.0),
    ]
    assert found["median_h"].to_list() == [1.0, 1.0, None]
    assert found["part"].to_list() == [4 / 7, 3 / 7, 0.0]
    unstarted = explore.jobs(made).filter(pl.col("starttime").is_null())
    assert explore.waits(unstarted)["part"].to_list() == [None]


def test_filters_of_ones_own(made):
    mine = explore.jobs(made).filter(pl.col("jeditaskid") == 1)
    assert explore.totals(mine, n_boot=20)["jobs"].item() == 3
    assert explore.failures(mine).is_empty()


def test_no_jobs_left(made):
    none = explore.jobs(made).filter(pl.lit(value=False))
    assert explore.over_time(none).is_empty()
    assert explore.histograms(none).is_empty()
    assert explore.waits(none).is_empty()
    assert explore.distributions(none).is_empty()


def test_what_is_refused(made, tmp_path):
    with pytest.raises(ConfigError, match="no column 'computingsit': did you mean 'computingsite'"):
        explore.over_time(made, "computingsit")
    with pytest.raises(ConfigError, match=r"begin with explore.jobs\(archive\)"):
        explore.waits(made.scan("jobs"))
    with pytest.raises(ConfigError, match="every='1 day'"):
        explore.over_time(made, every="1 day")
    with pytest.raises(ConfigError, match="at='pandaid': the column is Int64, a time is needed"):
        explore.over_time(made, at="pandaid")
    with pytest.raises(ConfigError, match="it has a zone; UTC without zone is needed"):
        explore.jobs(made, start=START.replace(tzinfo=UTC))
    with archive.ArchiveWriter(tmp_path / "none") as writer:
        writer.commit()
    with pytest.raises(MissingTableError, match="no table 'jobs'"):
        explore.jobs(archive.open(tmp_path / "none"))


def test_failed_jobs_without_a_task_are_of_none(made):
    none = explore.jobs(made).with_columns(jeditaskid=pl.lit(None, dtype=pl.Int64))
    assert explore.failures(none)["tasks"].to_list() == [0, 0]
    assert explore.failures(made, "jobstatus")["tasks"].to_list() == [1]
