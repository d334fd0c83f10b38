"""Jobs that no brokerage has made yet are in the files that were never used."""

from datetime import datetime, timedelta

import polars as pl

from brokerlab.calibrate.simulation.history import UNMADE, unmade_jobs

NOON = datetime(2026, 3, 1, 12)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Tables:
    """An archive of a few frames."""

    def __init__(self, **frames):
        self.frames = frames

    def has(self, name):
        return name in self.frames

    def scan(self, name):
        return self.frames[name].lazy()


def job(pandaid, task, *, scout=False, made=NOON, ran=HOUR, status="finished", **more):
    row = {
        "pandaid": pandaid, "jeditaskid": task, "parentid": None, "prodsourcelabel": "managed", "processingtype": "simul",
        "specialhandling": "sj" if scout else None, "jobstatus": status, "creationtime": made, "readytime": made,
        "activatedtime": made, "starttime": made, "endtime": None if ran is None else made + ran, "currentpriority": 900,
        "maxpss": 1000 * pandaid, "reason": None,
    }  # fmt: skip
    return row | more


def frame(rows):
    strings = ["reason", "specialhandling"]
    return pl.DataFrame(
        rows, schema_overrides=dict.fromkeys(strings, pl.String) | {"parentid": pl.Int64}
    )


def archive(jobs, *, status="running", used=4, files=12, **more):
    tasks = pl.DataFrame({"jeditaskid": [1], "status": [status], "currentpriority": [500]})
    datasets = pl.DataFrame(
        {
            "jeditaskid": [1, 1, 1], "masterid": [None, 7, None], "type": ["input", "input", "output"],
            "nfiles": [files, 99, 50], "nfilesused": [used, 1, 2],
        },
        schema_overrides={"masterid": pl.Int64},
    )  # fmt: skip
    return Tables(jobs=jobs, **{"tasks": tasks, "datasets": datasets} | more)


SCOUTS = frame([job(1, 1, scout=True), job(2, 1, scout=True, ran=3 * HOUR)])


def test_a_starved_task_asks_from_when_its_scouts_are_over():
    """Two scouts used four of twelve files: four more jobs wait, as long and large as the scouts in turn."""
    found = unmade_jobs(archive(SCOUTS), SCOUTS, "managed", NOON, NOON + DAY)
    assert found["pandaid"].to_list() == [3, 4, 5, 6]
    assert set(found["creationtime"]) == set(found["readytime"]) == {NOON + 3 * HOUR}
    assert found["maxpss"].to_list() == [1000, 2000, 1000, 2000]
    assert (found["endtime"] - found["starttime"]).to_list() == [HOUR, 3 * HOUR] * 2
    assert found["reason"].unique().to_list() == [UNMADE]
    assert found["specialhandling"].null_count() == 4
    assert found["currentpriority"].unique().to_list() == [500]
    assert found.columns == SCOUTS.columns


def test_files_that_are_not_to_be_used_make_no_job():
    tables = archive(SCOUTS)
    asked = [pl.Series("nfilestobeused", values) for values in ([6, 99, 50], [None, 99, 50])]
    for column, n in zip(asked, (1, 4), strict=True):
        frames = tables.frames | {"datasets": tables.frames["datasets"].with_columns(column)}
        assert unmade_jobs(Tables(**frames), SCOUTS, "managed", NOON, NOON + DAY).height == n


def test_a_task_that_had_its_turn_asks_from_its_last_job_on():
    late = NOON + 9 * HOUR
    jobs = pl.concat([SCOUTS, frame([job(3, 1, made=late)])])
    again = pl.concat([jobs, frame([job(4, 1, made=late + HOUR, parentid=3)])])
    for every in (jobs, again):  # a retry is no turn of its own
        found = unmade_jobs(archive(every, used=6), every, "managed", NOON, NOON + DAY)
        assert set(found["creationtime"]) == {late}
        assert found.height == 3


def test_scouts_are_over_with_their_last_retry():
    """A scout that failed is tried again: until that is over the task may not ask, and it uses no file of its own."""
    late = NOON + 4 * HOUR
    over, runs = (
        pl.concat([SCOUTS, frame([job(3, 1, scout=True, made=late, parentid=1, **more)])])
        for more in ({}, {"ran": None, "status": "running"})
    )
    found = unmade_jobs(archive(over), over, "managed", NOON, NOON + DAY)
    assert set(found["creationtime"]) == {late + HOUR}
    assert found.height == 4
    assert unmade_jobs(archive(runs), runs, "managed", NOON, NOON + DAY).is_empty()


def test_nothing_waits_where_all_is_used_or_over_or_not_yet_scouted():
    runs = pl.concat([SCOUTS, frame([job(3, 1, scout=True, ran=None, status="running")])])
    failed = SCOUTS.with_columns(jobstatus=pl.lit("failed"))
    for tables, jobs in (
        (archive(SCOUTS, used=12), SCOUTS),
        (archive(SCOUTS, used=0), SCOUTS),
        (archive(SCOUTS, status="done"), SCOUTS),
        (archive(SCOUTS, status="paused"), SCOUTS),
        (archive(runs), runs),
        (archive(failed), failed),
        (Tables(jobs=SCOUTS), SCOUTS),
    ):
        assert unmade_jobs(tables, jobs, "managed", NOON, NOON + DAY).is_empty()
    assert unmade_jobs(archive(SCOUTS), SCOUTS, "user", NOON, NOON + DAY).is_empty()


def test_what_asked_before_the_beginning_or_after_the_end_is_left_out():
    for begin, end in ((NOON + 4 * HOUR, NOON + DAY), (NOON, NOON + 3 * HOUR)):
        assert unmade_jobs(archive(SCOUTS), SCOUTS, "managed", begin, end).is_empty()
