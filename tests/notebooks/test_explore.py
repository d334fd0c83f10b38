"""The explore report on a small synthetic archive, with odd names, and on real jobs alone."""

import polars as pl
import pytest

from brokerlab import archive as archives
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.errors import ConfigError, EmptyPeriodError
from brokerlab.report import check, kit, run
from brokerlab.report import explore as report
from brokerlab.worlds import synthesise
from tests.notebooks import pages
from tests.notebooks.pages import check_page

JOBS = 3_000


@pytest.fixture(scope="module", autouse=True)
def without_kernels():
    """Let this notebook have a kernel of its own, as for a reader."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A week of a few jobs."""
    folder = tmp_path_factory.mktemp("archives") / "few"
    synthesise(folder, jobs=JOBS, days=7, seed=3)
    return folder


@pytest.fixture(scope="module")
def done(archive, tmp_path_factory):
    given = {"archive": str(archive), "n_boot": 100}
    return run("explore", given, out_root=tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def stored(done):
    return check_page(done.folder)


@pytest.fixture(scope="module")
def numbers(stored):
    return stored["numbers"]


def test_the_page_has_an_answer(stored):
    page = stored["page"]
    assert page["verdict"]["kind"] == "finding"
    assert "tasks at" in page["verdict"]["sentence"]
    assert page["synthetic"] is True
    assert len(page["numbers"]) == 3
    assert page["chart"]["chart"] == "statuses_over_time"
    assert [section["title"] for section in page["sections"]] == [
        "Over time",
        "What jobs need",
        "What failed",
        "Where jobs waited, and why",
        "What the tables hold",
    ]


def test_every_job_is_counted_once(stored, numbers):
    values = stored["values"]
    assert values["jobs"] == JOBS
    for name in ("statuses", "shares", "queues"):
        assert sum(row["jobs"] for row in numbers[name]) == JOBS
    for name in ("waits", "waits_by_share"):
        assert sum(row["jobs"] for row in numbers[name]) == JOBS
    for row in numbers["needs"]:
        assert row["jobs"] + row["unknown"] == JOBS
        assert row["p05"] <= row["median"] <= row["p95"] <= row["p99"] <= row["largest"]
        bins = sum(each["jobs"] for each in numbers["bins"] if each["quantity"] == row["quantity"])
        assert bins <= row["jobs"]
    counts = [values[name] for name in ("n_ended", "stopped", "alive")]
    assert sum(counts) == JOBS


def test_failures_add_up(stored, numbers):
    values = stored["values"]
    for name in ("errors", "failed_queues", "failed_tasks"):
        assert sum(row["failed"] for row in numbers[name]) == values["n_failed"]
        assert sum(row["part"] for row in numbers[name]) == pytest.approx(1)
    assert values["failed_share"] == values["n_failed"] / values["n_ended"]
    assert values["failed_share_lo"] < values["failed_share"] < values["failed_share_hi"]


def test_the_profile_is_on_the_page(numbers):
    tables = {row["table"]: row["rows"] for row in numbers["tables"]}
    assert tables["jobs"] == JOBS
    assert {row["table"] for row in numbers["columns"]} == set(tables)
    by_task = next(row for row in numbers["joins"] if row["other"] == "tasks.jeditaskid")
    assert by_task["matched_share"] == 1.0
    assert {row["column"] for row in numbers["measured"]} >= {"maxpss", "cpuconsumptiontime"}


def test_the_command_repeats_the_run(stored):
    assert stored["page"]["made"]["command"].startswith("brokerlab report explore -p archive=")


ODD = {"Q1": "A<b>&", "Q2": "line\nbreak", "Q3": "💥", "Q4": "=1+1"}


@pytest.mark.parametrize("task", [None, 1])
def test_jobs_alone_at_queues_with_odd_names(task, tmp_path):
    """Of no task or of one, of which nothing more is known."""
    n = 40
    number = pl.int_range(n, eager=True)
    created = pl.datetime(2026, 3, 1) + number * pl.duration(hours=1)
    jobs = pl.select(
        pandaid=number + 1,
        jeditaskid=pl.lit(task, pl.Int64),
        jobstatus=pl.when(number % 5 == 0).then(pl.lit("failed")).otherwise(pl.lit("finished")),
        prodsourcelabel=pl.lit("user"),
        computingsite=("Q" + (number % 4 + 1).cast(pl.String)).replace(ODD),
        creationtime=created,
        starttime=created + pl.duration(minutes=30),
        endtime=created + pl.duration(minutes=50),
        modificationtime=created + pl.duration(minutes=50),
    )
    with ArchiveWriter(tmp_path / "jobs") as writer:
        writer.write("jobs", jobs)
        writer.commit()
    out = tmp_path / "out"
    pages.run(report, report.Params(archive=str(tmp_path / "jobs"), out_dir=str(out)))
    page = check_page(out)["page"]
    assert page["synthetic"] is False
    assert dict(check(tmp_path / "jobs").select("report", "can_run").iter_rows())["explore"]
    jobs = "40 jobs" if task is None else "40 jobs of 1 task"
    assert page["verdict"]["sentence"] == (
        f"{jobs} at 4 queues; 20.0 % failed; nothing odd in the tables."
    )
    html = (out / "index.html").read_text(encoding="utf-8")
    assert "A&lt;b&gt;&amp;" in html
    assert "<b>" not in html
    assert "💥" in html
    waited = next(s for s in page["sections"] if s["title"] == "Where jobs waited, and why")
    assert "Why is not known" in waited["blocks"][0]["text"]
    (absent,) = [text for text in page["cannot_tell"] if text.startswith("Not in the archive")]
    tables = "queues" if task is None else "tasks and queues"
    assert absent == f"Not in the archive: {tables}. Keys into them are not checked."


@pytest.mark.real_data
def test_real_jobs_alone(tmp_path):
    folder = kit.data_folder()
    if folder is None or not (folder / "panda-invex-jobs").is_dir():
        pytest.skip("real data 'panda-invex-jobs' is not here; set BROKERLAB_DATA")
    files = sorted((folder / "panda-invex-jobs").glob("*.csv.gz"))
    archives.ingest(files, tmp_path / "all")
    with ArchiveWriter(tmp_path / "jobs") as writer:
        writer.write("jobs", archives.open(tmp_path / "all").scan("jobs").collect())
        writer.commit()
    out = tmp_path / "out"
    pages.run(report, report.Params(archive=str(tmp_path / "jobs"), out_dir=str(out), n_boot=50))
    stored = check_page(out)
    values = stored["values"]
    assert (values["jobs"], values["tasks"], values["n_failed"]) == (12_283, 4, 317)
    (fault,) = stored["numbers"]["faults"]  # one job says that it used 7 MB
    assert (fault["column"], fault["rows"]) == ("maxpss", 1)


def test_wrong_parameters(archive, tmp_path):
    with pytest.raises(ConfigError, match="unknown parameter 'level': did you mean 'levels'"):
        run("explore", {"level": "1"}, out_root=tmp_path)
    asked = report.Params(archive=str(archive), start="2031-01-01T00:00", out_dir=str(tmp_path))
    with pytest.raises(EmptyPeriodError, match=r"no job was created in this period; .* 2026-03"):
        report.load(asked)
