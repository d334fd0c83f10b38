"""Tables that an archive lacks are made from its jobs, never confused with given ones, and say only what jobs can."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab import archive
from brokerlab.archive.contracts import polars_schema
from brokerlab.errors import ConfigError, MissingTableError

EPOCH = datetime(2026, 3, 1)


@pytest.fixture
def written(tmp_path):
    """Return a writer of an archive with some tables."""

    def write(**tables):
        with archive.ArchiveWriter(tmp_path / "a") as writer:
            for name, frame in tables.items():
                writer.write(name, frame)
            writer.commit()
        return archive.open(tmp_path / "a")

    return write


def rows(opened, table, *columns):
    return opened.derive().scan(table).select(columns).collect().rows()


def test_nothing_is_derived_unless_asked_for(written, make_jobs):
    opened = written(jobs=make_jobs())
    assert (opened.derived, opened.tables) == ((), ["jobs"])
    with pytest.raises(MissingTableError, match=r"has no table 'tasks'; .* use archive.derive\(\)"):
        opened.scan("tasks")
    with pytest.raises(MissingTableError, match=r"ingest a source that holds it$"):
        opened.scan("slots")


def test_derived_tables_are_marked_named_and_not_written(written, make_jobs):
    given = written(jobs=make_jobs())
    files = sorted(given.path.rglob("*"))
    whole = given.derive()
    assert whole.derived == ("tasks", "datasets", "files", "queues")
    assert whole.has("tasks")
    assert not given.has("tasks")
    for table in whole.derived:
        view = whole.sql(f"from {table} select count(*), bool_and(approximate)").fetchall()
        assert view == [(whole.scan(table).select(pl.len()).collect().item(), True)]
        names = whole.scan(table).collect_schema().names()
        assert list(getattr(whole, table).columns) == names
        assert len(getattr(whole, table)) == whole.scan(table).collect().height > 0
        assert {*names} - {"approximate"} == {*polars_schema(table)} - {"approximate"}
    assert "derived from jobs: tasks, datasets, files, queues" in repr(whole)
    whole.verify()
    assert sorted(given.path.rglob("*")) == files


def test_digests_tell_derived_tables(written, make_jobs):
    given = written(jobs=make_jobs())
    digests = {given.digest, given.derive().digest, given.derive("tasks").digest}
    assert len(digests) == 3
    assert given.derive("tasks").digest == given.derive("tasks").digest


def test_given_tables_stay(written, make_jobs):
    queues = pl.DataFrame({"panda_queue": ["Q9"], "type": ["special"], "status": ["test"]})
    opened = written(jobs=make_jobs(), queues=queues).derive()
    assert opened.derived == ("tasks", "datasets", "files")
    assert opened.scan("queues").collect()["panda_queue"].to_list() == ["Q9"]


def test_files_are_not_made_beside_given_datasets(written, make_jobs):
    datasets = pl.DataFrame({"jeditaskid": [7], "datasetid": [3], "type": ["input"]})
    assert written(jobs=make_jobs(), datasets=datasets).derive().derived == ("tasks", "queues")


def test_a_table_without_rows_is_absent(written, make_jobs):
    queues = pl.DataFrame({"panda_queue": ["Q9"], "type": ["special"], "status": ["test"]})
    opened = written(jobs=make_jobs(), queues=queues.clear()).derive()
    assert "queues" in opened.derived
    assert opened.sql("select panda_queue from queues").fetchall() == [("Q1",)]


def test_without_jobs_nothing_is_made(written):
    queues = pl.DataFrame({"panda_queue": ["Q9"], "type": ["special"], "status": ["test"]})
    assert written(queues=queues).derive().derived == ()


def test_one_table_at_a_time_adds_up(written, make_jobs):
    opened = written(jobs=make_jobs())
    assert opened.derive("queues").derived == ("queues",)
    assert opened.derive("queues").derive("tasks").derived == ("tasks", "queues")
    with pytest.raises(ConfigError, match=r"derive: task: did you mean 'tasks'\?"):
        opened.derive("task")


def test_requests_of_a_task_are_those_of_its_jobs(written, make_jobs):
    jobs = make_jobs(
        5,
        minramcount=[16_000, 8_000, 8_000, 0, 100],
        corecount=[8, 8, 8, 8, 1],
        processingtype=[*["simul"] * 4, "pmerge"],
    )
    task = written(jobs=jobs)
    columns = ("ramcount", "orig_ramcount", "ramunit", "corecount", "processingtype", "tasktype")
    assert rows(task, "tasks", *columns) == [(1_000, 2_000, "MBPerCore", 8, "simul", "prod")]


def test_a_user_task_asks_for_memory_as_a_whole_and_build_jobs_do_not_speak(written, make_jobs):
    jobs = make_jobs(
        3,
        minramcount=[500, 4_000, 4_000],
        corecount=[1, 4, 4],
        prodsourcelabel=["panda", "user", "user"],
    )
    columns = ("ramcount", "orig_ramcount", "ramunit", "prodsourcelabel", "tasktype")
    assert rows(written(jobs=jobs), "tasks", *columns) == [(4_000, 4_000, "MB", "user", "anal")]


def test_production_has_usual_units_efficiency_and_base_time_and_users_have_none(
    written, make_jobs
):
    labels = ["managed", "managed", "user"]
    opened = written(
        jobs=make_jobs(3, jeditaskid=[7, 8, 9], prodsourcelabel=labels, nevents=[5, 0, 5])
    )
    columns = ("outdiskunit", "cputimeunit", "cpuefficiency", "basewalltime")
    assert rows(opened, "tasks", *columns) == [
        ("kBPerEvent", "HS06sPerEvent", 90, 600),
        (None, "HS06sPerEvent", 90, 600),
        (None, None, None, None),
    ]


def test_merge_jobs_speak_for_a_task_of_merge_jobs_only(written, make_jobs):
    jobs = make_jobs(3, jeditaskid=[7, 7, 8], processingtype=[None, "pmerge", "pmerge"])
    assert rows(written(jobs=jobs), "tasks", "processingtype") == [(None,), ("pmerge",)]


def test_cores_are_those_used_where_none_are_asked_for(written, make_jobs):
    opened = written(
        jobs=make_jobs(2, corecount=[None, 0], actualcorecount=[8, 8], minramcount=[800, 800])
    )
    assert rows(opened, "tasks", "corecount", "ramcount") == [(8, 100)]
    assert rows(opened, "queues", "corecount") == [(8,)]


def test_cores_that_differ_may_vary(written, make_jobs):
    jobs = make_jobs(3, corecount=[1, 8, None])
    assert rows(written(jobs=jobs), "tasks", "corecount") == [(0,)]


def test_a_task_ends_when_all_its_jobs_have(written, make_jobs):
    jobs = make_jobs(
        4, jeditaskid=[7, 7, 8, 8], jobstatus=["finished", "failed", "finished", "running"]
    )
    ended = EPOCH + timedelta(hours=9, minutes=11)
    assert rows(written(jobs=jobs), "tasks", "jeditaskid", "creationdate", "endtime") == [
        (7, EPOCH, ended),
        (8, EPOCH + timedelta(hours=18), None),
    ]


def test_what_jobs_cannot_say_is_null(written, make_jobs):
    unknown = ("status", "cputime", "baseramcount", "walltime", "ramcount", "usescout", "splitrule")  # fmt: skip
    assert set(rows(written(jobs=make_jobs()), "tasks", *unknown)[0]) == {None}
    unknown = ("maxrss", "corecount", "maxtime", "corepower", "workflow", "atlas_site")
    assert set(rows(written(jobs=make_jobs()), "queues", *unknown)[0]) == {None}


def test_marked_scouts_are_known(written, make_jobs):
    jobs = make_jobs(3, jeditaskid=[7, 7, 8], specialhandling=["ddm,sj", None, "sjx"])
    assert rows(written(jobs=jobs), "tasks", "usescout", "splitrule") == [(3, "US=3"), (None, None)]


def test_jobs_outside_tasks_and_queues_make_none(written, make_jobs):
    opened = written(jobs=make_jobs(2, jeditaskid=[None, 7], computingsite=[None, "Q1"]))
    assert rows(opened, "tasks", "jeditaskid") == [(7,)]
    assert rows(opened, "queues", "panda_queue") == [("Q1",)]


def test_a_queue_takes_what_started_there(written, make_jobs):
    start = make_jobs(3)["starttime"].to_list()
    jobs = make_jobs(
        3,
        minramcount=[2_000, 4_000, 64_000],
        maxwalltime=[3_600, 7_200, 99_999],
        corecount=[1, 8, 64],
        starttime=[*start[:2], None],
        endtime=[*make_jobs(3)["endtime"].to_list()[:2], None],
        prodsourcelabel=["managed", "user", "user"],
    )
    columns = ("maxrss", "maxtime", "corecount", "status", "type", "resource_type_q")
    assert rows(written(jobs=jobs), "queues", *columns) == [
        (4_000, 7_200, 8, "online", "unified", "GRID")
    ]


def test_core_power_is_what_hs06sec_implies(written, make_jobs):
    # 600 s on 2 and 1 cores of 12.3 HS06, rounded down
    jobs = make_jobs(3, hs06sec=[14_760, 7_380, None], actualcorecount=[2, 1, 1])
    assert rows(written(jobs=jobs), "queues", "corepower") == [(12.3,)]


def test_work_that_was_cut_off_says_nothing_of_core_power(written, make_jobs):
    """hs06sec is at most 999999999, whatever the job did."""
    cut = make_jobs(
        3, hs06sec=[7_380, 999_999_999, 999_999_999], actualcorecount=[1, 500_000, 900_000]
    )
    assert rows(written(jobs=cut), "queues", "corepower") == [(12.3,)]


def test_files_and_datasets_are_those_of_an_ingest(written, make_jobs):
    opened = written(
        jobs=make_jobs(3, jobstatus=["finished", "failed", "running"], nevents=[5, 0, 5])
    )
    files = rows(
        opened, "files", "jeditaskid", "datasetid", "pandaid", "status", "fsize", "nevents"
    )
    assert files == [
        (7, 0, 1, "finished", 1_000, 5),
        (7, 0, 2, "failed", 1_000, None),
        (7, 0, 3, "running", 1_000, 5),
    ]
    assert rows(opened, "datasets", "nfiles", "nfilesfinished", "nfilesfailed", "masterid") == [
        (3, 1, 1, None)
    ]
