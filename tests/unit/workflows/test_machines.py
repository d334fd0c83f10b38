"""Machines with the load of logs, of an archive, generated; recorded workflows by name."""

import gzip
import json
from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab.archive.store import open_archive
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.workflows import shapes
from brokerlab.workflows.machines import (
    KTH,
    LCG,
    archived_machine,
    generated_machines,
    hosts_for,
    recorded_machines,
)
from brokerlab.workflows.readers import describe_workflows, read_workflows

POLICIES = ["easy", "fcfs"]


def swf(path, rows, header):
    """Write a log: (submission, run time, hosts, requested time, partition)."""
    lines = [
        f"{n} {at} 0 {run} {hosts} -1 -1 {hosts} {asked} -1 1 7 8 9 1 {part} -1 -1"
        for n, (at, run, hosts, asked, part) in enumerate(rows, 1)
    ]
    path.write_bytes(gzip.compress("\n".join([*header, *lines, ""]).encode()))


@pytest.fixture
def logs(tmp_path):
    swf(
        tmp_path / KTH,
        [(1000 * i, 400, 2, 300 if i == 3 else 600, 1) for i in range(20)],
        ["; MaxNodes: 8", "; MaxProcs: 8", "; UnixStartTime: 843480031"],
    )
    swf(
        tmp_path / LCG,
        [(100 * i, 900, 1, 2000, 40 if i % 2 else 7) for i in range(60)],
        ["; UnixStartTime: 1132444805", "; Partition: 40 lxgate13.cern.ch"],
    )
    return tmp_path


def test_logs_give_one_load_under_every_policy_and_a_site_on_as_many_hosts_as_make_the_load(logs):
    found = recorded_machines(logs, POLICIES, load=0.5)
    assert list(found.systems) == ["KTH, easy", "KTH, fcfs", "LCG cern.ch, easy"]
    machines = {row["system"]: row for row in found.describe().to_dicts()}
    kth, lcg = machines["KTH, easy"], machines["LCG cern.ch, easy"]
    assert (kth["hosts"], kth["hosts_known"], kth["rows"], kth["jobs"]) == (8, True, 20, 20)
    assert kth["cluster"] == machines["KTH, fcfs"]["cluster"] == "KTH"
    assert (lcg["jobs"], lcg["hosts_known"], lcg["widest"]) == (30, False, 1)
    assert lcg["load"] == pytest.approx(0.5, abs=0.1)
    assert lcg["hosts"] == round(30 * 900 / (58 * 100) / 0.5)
    assert not found.synthetic
    assert found.changes["cluster"].unique().to_list() == [
        "KTH"
    ]  # one job ran longer than it asked
    assert found.changes["n_rows"].to_list() == [1]


def test_one_log_is_enough_and_none_is_refused(logs):
    (logs / KTH).unlink()
    assert list(recorded_machines(logs, POLICIES, load=0.5).systems) == ["LCG cern.ch, easy"]
    (logs / LCG).unlink()
    with pytest.raises(DataError, match="neither kth_sp2"):
        recorded_machines(logs, POLICIES, load=0.5)


def archive(folder, *, ran):
    """Write an archive of 40 jobs, three quarters of them at one queue."""
    begin = datetime(2026, 3, 1)
    submitted = [begin + timedelta(minutes=10 * i) for i in range(40)]
    jobs = pl.DataFrame(
        {
            "pandaid": range(40),
            "jobstatus": "finished" if ran else "failed",
            "prodsourcelabel": "managed",
            "computingsite": ["FEW" if i % 4 == 0 else "MANY" for i in range(40)],
            "creationtime": submitted,
            "actualcorecount": 1,
        }
    ).with_columns(
        starttime=pl.col("creationtime") + timedelta(minutes=1)
        if ran
        else pl.lit(None, pl.Datetime("us")),
        endtime=pl.col("creationtime") + timedelta(minutes=61),
        modificationtime=pl.col("creationtime") + timedelta(minutes=61),
    )
    with ArchiveWriter(folder) as writer:
        writer.write("jobs", jobs)
        writer.commit()
    return open_archive(folder)


def test_the_busiest_queue_of_an_archive_is_a_machine(tmp_path):
    found = archived_machine(archive(tmp_path / "some", ran=True), "easy", load=0.7)
    (row,) = found.describe().to_dicts()
    assert (row["system"], row["origin"], row["jobs"], row["hosts_known"]) == ("MANY, easy", "archive", 30, False)  # fmt: skip
    with pytest.raises(InsufficientDataError, match="no job ran"):
        archived_machine(archive(tmp_path / "none", ran=False), "easy", load=0.7)


def test_jobs_of_one_instant_make_no_load():
    """A thousand jobs of an hour asked for 5 million hosts: as if they were work of one second."""
    jobs = pl.DataFrame({"submit_s": [5.0] * 1000, "run_s": [3600.0] * 1000, "hosts": [1] * 1000})
    with pytest.raises(InsufficientDataError, match="all 1000 jobs were submitted at one instant"):
        hosts_for(jobs, 0.7)


def test_generated_machines_say_so_and_join_others(logs):
    made = generated_machines(["easy"], seed=3)
    assert made.synthetic
    assert made.sources["origin"].to_list() == ["generated"]
    both = recorded_machines(logs, ["easy"], load=0.5).join(made)
    assert list(both.systems) == ["KTH, easy", "LCG cern.ch, easy", "generated, easy"]
    assert both.describe()["synthetic"].to_list() == [False, False, True]


def written(folder, name):
    """Write a recorded workflow of two tasks."""
    tasks = [
        {"name": n, "id": n, "parents": p, "children": c}
        for n, p, c in (("a", [], ["b"]), ("b", ["a"], []))
    ]
    done = [{"id": n, "runtimeInSeconds": 60.0} for n in ("a", "b")]
    text = {"name": name, "schemaVersion": "1.5", "workflow": {"specification": {"tasks": tasks}, "execution": {"tasks": done}}}  # fmt: skip
    path = folder / f"{name}.json"
    path.write_text(json.dumps(text))
    return path


def test_workflows_have_short_names_and_a_description(tmp_path):
    first = written(tmp_path, "blast-chameleon-large-001")
    found = read_workflows(tmp_path, [first.name], stretch=2)
    (row,) = describe_workflows(found).to_dicts()
    assert row == {"workflow": "blast large", "tasks": 2, "levels": 2, "width": 1, "work": 240.0, "longest_path": 240.0}  # fmt: skip
    assert list(read_workflows(None, [str(first)])) == ["blast large"]
    written(tmp_path, "blast-large")
    with pytest.raises(DataError, match="two have the short name 'blast large'"):
        read_workflows(tmp_path, [first.name, "blast-large.json"])


def test_usual_shapes_are_stretched():
    usual, longer = shapes.usual(), shapes.usual(2.0)
    assert list(usual) == list(longer)
    assert all(longer[name].work == 2 * usual[name].work for name in usual)
