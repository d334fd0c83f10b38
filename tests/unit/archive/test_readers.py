"""Every format is recognised, every broken file has a clear error."""

import gzip
import io
import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brokerlab import archive
from brokerlab.archive.conversion import settle_units
from brokerlab.archive.readers import detect, read
from brokerlab.archive.readers.delimited import _Utf8
from brokerlab.archive.readers.detect import table_of_name
from brokerlab.errors import DataError, SchemaError


def batches(path, table=None):
    return list(read(path, detect(path, table=table)))


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("jobs.csv", "jobs"),
        ("JOBSARCHIVED4.csv.gz", "jobs"),
        ("ATLAS_PANDA.JEDI_DATASET_CONTENTS_2026.parquet", "files"),
        ("jobs_files.csv", "jobs_files"),
        ("jedi_tasks-part1.csv", "tasks"),
        ("HARVESTER_WORKER_STATS.csv", "worker_stats"),
        ("TASKS_STATUSLOG.csv", "task_status_log"),
        ("myjobs2.csv", None),
        ("data.csv", None),
    ],
)
def test_tables_are_recognised_by_name(name, table):
    assert table_of_name(name) == table


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_csv_with_and_without_bom_and_gzip(tmp_path, packed, bom):
    raw = bom + b"RESOURCE_NAME,MINCORE\nSCORE,1\n"
    path = tmp_path / "resource_types.csv"
    path.write_bytes(gzip.compress(raw) if packed else raw)
    (batch,) = batches(path)
    assert batch.table == "resource_types"
    assert batch.frame.to_dicts() == [{"RESOURCE_NAME": "SCORE", "MINCORE": "1"}]


def test_utf16_with_its_mark_is_read(tmp_path):
    path = tmp_path / "resource_types.csv"
    path.write_bytes("resource_name,mincore\nSCORE,1\n".encode("utf-16"))
    assert batches(path)[0].frame.to_dicts() == [{"resource_name": "SCORE", "mincore": "1"}]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters(tmp_path, delimiter):
    path = tmp_path / "resource_types.csv"
    path.write_text(f"resource_name{delimiter}mincore\nSCORE{delimiter}1\n")
    assert batches(path)[0].frame["mincore"].to_list() == ["1"]


def test_rows_with_a_wrong_number_of_fields_are_refused_and_the_others_keep_their_number(tmp_path):
    path = tmp_path / "resource_types.csv"
    path.write_text("resource_name,mincore\nA,1\nB\nC,3,4\nD,4\nE\nF,6\n")
    (batch,) = batches(path)
    assert batch.frame["resource_name"].to_list() == ["A", "D", "F"]
    assert batch.rows.to_list() == [1, 4, 6]
    assert batch.refused.rows() == [
        (2, None, "1 fields, the header has 2 ('B')"),
        (3, None, "3 fields, the header has 2 ('C,3,4')"),
        (5, None, "1 fields, the header has 2 ('E')"),
    ]


def test_quoted_line_ends_stay_in_their_field(tmp_path):
    path = tmp_path / "task_status_log.csv"
    path.write_text(
        'jeditaskid,status,modificationtime,reason\n1,done,2026-01-01 00:00:00,"a\nb"\n'
    )
    assert batches(path)[0].frame["reason"].to_list() == ["a\nb"]


def test_a_header_alone_is_a_table_without_rows(tmp_path):
    path = tmp_path / "resource_types.csv"
    path.write_text("resource_name,mincore\n")
    (batch,) = batches(path)
    assert batch.frame.shape == (0, 2)


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.parquet", "jobs.json"])
def test_an_empty_file(tmp_path, name):
    path = tmp_path / name
    path.touch()
    with pytest.raises(DataError, match=rf"{name}: is empty \(0 bytes\); remove it or export it"):
        detect(path)


def test_an_empty_gzip_file_and_blank_lines(tmp_path):
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(DataError, match="is empty after unpacking"):
        detect(path)
    path.write_bytes(gzip.compress(b"\n\n"))
    with pytest.raises(DataError, match="is empty: no header line"):
        detect(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"jobs\.csv: no such file; check the path"):
        detect(tmp_path / "jobs.csv")


@pytest.mark.parametrize(("n", "keep"), [(1_000, 12), (1_000, 200), (400_000, -9)])
def test_a_truncated_gzip_file(tmp_path, n, keep):
    rows = "".join(f"R{i * i % 9973},{i}\n" for i in range(n))
    packed = gzip.compress(b"resource_name,mincore\n" + rows.encode(), mtime=0)
    path = tmp_path / "resource_types.csv.gz"
    path.write_bytes(packed[:keep])
    with pytest.raises(DataError, match=r"truncated or damaged gzip .* copy or export it again"):
        batches(path)


@pytest.mark.parametrize("keep", [8, 300, -1])
def test_a_truncated_parquet_file(tmp_path, keep):
    path = tmp_path / "resource_types.parquet"
    pl.DataFrame({"resource_name": [str(i) for i in range(1000)]}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match="truncated or damaged Parquet"):
        batches(path)


@pytest.mark.parametrize("keep", [1, 20, -1])
def test_a_truncated_json_file(tmp_path, keep):
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"jobs": [{"pandaid": 1, "jobstatus": "finished"}]})[:keep])
    with pytest.raises(DataError, match="truncated or damaged JSON"):
        batches(path)


def test_deeply_nested_json_does_not_crash(tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text("[" * 200_000)
    with pytest.raises(DataError, match="truncated or damaged JSON"):
        batches(path)


@pytest.mark.parametrize("name", ["task_status_log.csv", "jobs.json"])
def test_a_wrong_encoding(tmp_path, name):
    rows = "jeditaskid,status,modificationtime,reason\n1,done,2026-01-01 00:00:00,é\n"
    text = rows if name.endswith("csv") else '{"jobs": [{"jobstatus": "é and more text"}]}'
    path = tmp_path / name
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(DataError, match=r"wrong encoding: not UTF-8; convert it, e.g. 'iconv"):
        batches(path)


def test_a_wrong_encoding_far_inside_the_file(tmp_path):
    path = tmp_path / "resource_types.csv"
    path.write_bytes(b"resource_name,mincore\n" + b"A,1\n" * 400_000 + b"\xe9,1\n")
    with pytest.raises(DataError, match="wrong encoding"):
        batches(path)


@pytest.mark.parametrize("after", [b"", b"plain\n", "é".encode()])
def test_half_a_letter_at_the_end_of_a_block(after):
    text = _Utf8(io.BytesIO("é\n".encode() * 2 + b"ok\xc3" + after))
    assert text.read(6) == "é\n".encode() * 2
    assert text.read(3) == b"ok\xc3"
    with pytest.raises(UnicodeDecodeError):
        text.read(20)


def test_a_letter_in_two_blocks():
    text = _Utf8(io.BytesIO("aé".encode()))
    assert [text.read(2), text.read(20), text.read(20)] == [b"a\xc3", b"\xa9", b""]


def test_a_wrong_encoding_in_parquet(tmp_path):
    path = tmp_path / "resource_types.parquet"
    latin = pa.array([b"fine", b"\xe9", None], pa.binary())
    text = pa.StringArray.from_buffers(
        3, latin.buffers()[1], latin.buffers()[2], latin.buffers()[0]
    )
    pq.write_table(pa.table({"resource_name": text, "mincore": [1, 2, 3]}), path)
    with pytest.raises(DataError, match=r"parquet: resource_name of row 2: not UTF-8"):
        batches(path)


def test_something_else_altogether(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"\x00\x01\x02\x03")
    with pytest.raises(DataError, match="not text, not Parquet, not gzip"):
        detect(path)


def test_a_table_that_cannot_be_told(tmp_path):
    path = tmp_path / "dump.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"cannot tell its table .* or say --table; tables: jobs, "):
        detect(path)
    with pytest.raises(SchemaError, match="unknown table 'job'"):
        detect(path, table="job")
    assert detect(path, table="jobs").table == "jobs"


def test_a_column_that_occurs_twice(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("pandaid,maxpss,PANDAID\n1,2,3\n")
    with pytest.raises(SchemaError, match="columns occur twice: pandaid; keep one of each"):
        detect(path)


def test_json_that_is_not_the_monitors(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}')
    with pytest.raises(DataError, match=r"neither jobs .* nor tasks"):
        batches(path)


def monitor_job(**values):
    base = {
        "pandaid": 5,
        "jeditaskid": 3,
        "jobstatus": "finished",
        "prodsourcelabel": "managed",
        "creationtime": "2026-03-01T00:00:00",
        "modificationtime": "2026-03-01T02:00:00",
        "starttime": "2026-03-01T00:10:00",
        "endtime": "2026-03-01T01:10:00",
        "maxpss": "51.18",
        "avgpss": 52382,
        "eventservice": "ordinary",
        "specialhandling": "NULL,sj",
        "resourcetype": "SCORE",
        "memoryleak": None,
        "duration": "0:1:00:00",
        "durationsec": 3600,
        "waittime": "0:0:10:00",
        "maxdiskunit": "MB  ",
    }
    return {**base, **values}


def test_monitor_jobs(tmp_path):
    jobs = [
        monitor_job(),
        monitor_job(pandaid=6, maxpss=60000, eventservice="esmerge", specialhandling="NULL"),
        monitor_job(pandaid=7, endtime=None, durationsec=60, eventservice="jumbo"),
        monitor_job(pandaid=8, endtime=None, jobstatus="running"),
    ]
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"jobs": jobs, "selectionsummary": []}), encoding="utf-8-sig")
    (batch,) = batches(path)
    rows = archive.validate("jobs", batch.frame)
    assert rows["maxpss"].to_list() == [52408, 60000, 52408, 52408]
    assert rows["eventservice"].to_list() == [None, 2, 4, None]
    assert rows["specialhandling"].to_list() == ["sj", None, "sj", "sj"]
    assert rows["resource_type"].to_list() == ["SCORE"] * 4
    ends = [None if t is None else str(t) for t in rows["endtime"]]
    assert ends == ["2026-03-01 01:10:00", "2026-03-01 01:10:00", "2026-03-01 00:11:00", None]
    assert not {"duration", "durationsec", "waittime"} & set(rows.columns)
    assert "maxpss: 3 text value(s) with a decimal point read as MB" in batch.notes
    assert "endtime: 1 value(s) made from starttime + durationsec" in batch.notes


def test_monitor_tasks_and_their_datasets(tmp_path):
    task = {
        "jeditaskid": 3,
        "taskname": "t",
        "status": "done",
        "vo": "atlas",
        "prodsourcelabel": "managed",
        "creationdate": "2026-03-01 00:00:00",
        "modificationtime": "2026-03-01T02:00:00",
        "eventservice": "ordinary",
        "resquetime": None,
        "totev": 5,
        "splitrule": "US=3,NF=1,AN=1,2,3",
        "dsinfo": {"nfiles": 1},
        "datasets": [{"jeditaskid": 3, "datasetid": 9, "type": "input", "nfiles": 1}],
    }
    path = tmp_path / "tasks.json.gz"
    path.write_bytes(gzip.compress(json.dumps([task]).encode()))
    first, second = batches(path)
    tasks = archive.validate("tasks", first.frame)
    assert (first.table, second.table) == ("tasks", "datasets")
    assert "rescuetime" in tasks.columns
    assert tasks.select("usescout", "nfilesperjob", "neventsperjob").rows() == [(3, 1, None)]
    assert not {"totev", "dsinfo", "datasets", "resquetime"} & set(tasks.columns)
    assert archive.validate("datasets", second.frame)["nfiles"].to_list() == [1]


def test_values_of_changing_type_become_text(tmp_path):
    path = tmp_path / "gdpconfig.json"
    rows = [
        {"app": "jedi", "component": "c", "key": "a", "type": "int", "value": 5},
        {"app": "jedi", "component": "c", "key": "b", "type": "str", "value": "x"},
        {"app": "jedi", "component": "c", "key": "d", "type": "json", "value": {"x": [1]}},
    ]
    path.write_text(json.dumps(rows))
    (batch,) = batches(path)
    assert batch.frame["value"].to_list() == ["5", "x", '{"x": [1]}']


def test_peak_memory_in_mb_is_told_by_the_average():
    rows = pl.DataFrame({"MAXPSS": [51.18, 60000.0, None, 0.0], "AVGPSS": [52382] * 4})
    settled, notes = settle_units("jobs", rows)
    assert settled["MAXPSS"].to_list() == [52408.0, 60000.0, None, 0.0]
    assert notes == ("maxpss: 1 value(s) below avgpss/100 read as MB, converted to kB",)


def test_queue_settings_that_are_no_number():
    rows = pl.DataFrame(
        {
            "maxwdir": ["x", "500", "", "y"],
            "maxinputsize": ["100", "1", "1", ""],
            "cloud": ["US,DE"] * 4,
        }
    )
    settled, _ = settle_units("queues", rows)
    assert settled["maxwdir"].to_list() == ["2100", "500", "", "0"]
    assert settled["cloud"].to_list() == ["US"] * 4


def invex(tmp_path, rows, name="job_records_12345678.csv"):
    path = tmp_path / name
    pl.DataFrame(rows).write_csv(path)
    return path


def invex_rows(n=6, **columns):
    priority = [901, 901] + [500] * (n - 3) + [5000]
    base = {
        "pandaid": list(range(n)),
        "wall_time": [100] * n,
        "queue_time": [10] * n,
        "actualcorecount": [2] * n,
        "assignedpriority": priority,
        "hs06sec": [2466] * n,
        "computingsite": ["Q"] * n,
        "IObytesRead": [5] * n,
        "IObytesWriteRate": [6] * n,
        "workDirSize": [7] * n,
        "maxpss": ["2202532.0"] * n,
        "cpu_eff": [1.5] * n,
    }
    return {**base, **columns}


def test_invex_jobs_get_times_whose_differences_are_true(tmp_path):
    jobs, tasks, queues = batches(invex(tmp_path, invex_rows()))
    rows = archive.validate("jobs", jobs.frame)
    assert rows["jeditaskid"].to_list() == [12345678] * 6
    assert (rows["endtime"] - rows["starttime"]).dt.total_seconds().to_list() == [100] * 6
    assert (rows["starttime"] - rows["creationtime"]).dt.total_seconds().to_list() == [10] * 6
    created = rows["creationtime"].dt.epoch("s")
    assert (created - created[0]).to_list() == [0, 0, 113, 114, 115, 116]
    assert rows["specialhandling"].to_list() == ["sj", "sj", None, None, None, None]
    assert rows["processingtype"].to_list() == [None] * 5 + ["pmerge"]
    assert rows["totrbytes"].to_list() == [5] * 6
    assert rows["ratewbytes"].to_list() == [6] * 6
    assert rows["maxpss"].to_list() == [2202532] * 6
    assert rows["jobmetrics"].to_list() == ["workDirSize=7"] * 6
    assert not {"cpu_eff", "wall_time", "queue_time"} & set(rows.columns)
    task = archive.validate("tasks", tasks.frame).row(0, named=True)
    assert (task["ramunit"], task["basewalltime"], task["cpuefficiency"]) == ("MBPerCore", 600, 90)
    assert (task["taskpriority"], task["baseramcount"]) == (500, None)
    assert queues.frame.select("panda_queue", "corepower").rows() == [("Q", 12.33)]


def test_invex_scouts_above_priority_900_are_one_above_the_task(tmp_path):
    path = invex(tmp_path, invex_rows(assignedpriority=[1101, 1101, 1100, 1100, 1100, 1100]))
    assert batches(path)[0].frame["specialhandling"].to_list() == ["sj", "sj"] + [None] * 4


def test_invex_rows_with_impossible_durations_are_refused(tmp_path):
    walls = ["100", "-5", "nan", "x", "", "100"]
    jobs = batches(invex(tmp_path, invex_rows(wall_time=walls)))[0]
    assert jobs.frame["pandaid"].to_list() == ["0", "4", "5"]
    assert jobs.rows.to_list() == [1, 5, 6]
    assert jobs.refused.rows() == [
        (2, "pandaid=1", "wall_time '-5' is no duration, allowed: 0 to 1e9 s"),
        (3, "pandaid=2", "wall_time 'nan' is no duration, allowed: 0 to 1e9 s"),
        (4, "pandaid=3", "wall_time 'x' is no duration, allowed: 0 to 1e9 s"),
    ]


def test_invex_without_a_task_in_the_name(tmp_path):
    with pytest.raises(DataError, match=r"no task number in the file name; name it like"):
        batches(invex(tmp_path, invex_rows(), "records.csv"))


def test_split_rules_are_read_as_the_scouts_read_them() -> None:
    rules = pl.DataFrame({"splitrule": ["TW=-3,NF=2", f"NF={10**18}", "AN=1,NF=5,NF=7"]})
    read, _ = settle_units("tasks", rules)
    assert read["t1weight"].to_list() == ["-3", None, None]
    assert read["nfilesperjob"].to_list() == ["2", None, "5"]
