"""What must hold of every synthetic archive, row by row."""

import itertools

import polars as pl
import pytest

from brokerlab.archive import schema
from brokerlab.archive.contracts import key_columns
from tests.unit.worlds.drawn.conftest import Made

TABLES = [
    *("jobs", "tasks", "files", "datasets", "queues", "resource_types", "gshares", "gdpconfig"),
    *("ddm_endpoints", "queue_endpoints", "queue_storage_site", "replicas", "network_matrix"),
    *("software_tags", "worker_node_gpu", "worker_node_cpu_level"),
    *("site_data", "worker_stats", "slots", "job_status_log", "task_status_log"),
]


def test_every_table_is_tested(made: Made) -> None:
    assert sorted(made.tables) == sorted(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_contract_holds_and_keys_are_unique(made: Made, table: str) -> None:
    frame = made.tables[table]
    assert schema.validate(table, frame).shape == frame.shape
    assert frame.select(key_columns(table)).is_duplicated().sum() == 0
    assert made.manifest.counts[table] == len(frame)


def test_times_are_ordered(made: Made) -> None:
    order = ["creationtime", "activatedtime", "starttime", "endtime", "modificationtime"]
    for first, second in itertools.pairwise(order):
        assert (made.jobs[first] <= made.jobs[second]).all(), (first, second)
    by_id = made.jobs.sort("pandaid")
    assert by_id["creationtime"].is_sorted()


def test_every_task_starts_with_scouts(made: Made) -> None:
    roots = made.jobs.filter(attemptnr=1).filter(pl.col("processingtype") != "pmerge")
    scout = pl.col("specialhandling").eq_missing("sj")
    by_task = roots.group_by("jeditaskid").agg(
        n=pl.len(),
        scouts=scout.sum(),
        queues=pl.col("computingsite").filter(scout).n_unique(),
        last_scout=pl.col("creationtime").filter(scout).max(),
        first_other=pl.col("creationtime").filter(~scout).min(),
        half_done=pl.col("modificationtime").filter(scout).min(),
        priority=pl.col("assignedpriority").filter(scout).min(),
        others=pl.col("assignedpriority").filter(~scout).max(),
    )
    assert (by_task["scouts"] == by_task["n"].clip(upper_bound=10)).all()
    assert by_task["queues"].is_between(1, 2).all()
    assert (by_task["queues"] == 2).any()
    late = by_task.drop_nulls("first_other")
    assert (late["last_scout"] < late["first_other"]).all()
    assert (late["half_done"] < late["first_other"]).all()
    assert (by_task["priority"] >= 901).all()
    assert (late["priority"] > late["others"]).all()


def test_bulk_comes_within_minutes_of_the_decision(made: Made) -> None:
    created = (
        made.jobs.filter(pl.col("specialhandling").is_null(), pl.col("attemptnr") == 1)
        .filter(pl.col("processingtype") != "pmerge")
        .join(made.truth.select("jeditaskid", "decided_at"), on="jeditaskid")
    )
    delay = (created["creationtime"] - created["decided_at"]).dt.total_seconds()
    assert delay.min() >= 0
    assert delay.max() <= 1600


def test_scouts_have_requests_from_before_scouting(made: Made) -> None:
    jobs = made.jobs.join(
        made.tables["tasks"].select("jeditaskid", "orig_ramcount", "ramunit", "corecount"),
        on="jeditaskid",
        suffix="_task",
    ).filter(pl.col("specialhandling") == "sj")
    per_core = jobs.filter(ramunit="MBPerCore")
    asked = (per_core["orig_ramcount"] * per_core["corecount"] * 0.95).cast(pl.Int64)
    assert (per_core["minramcount"] == asked).all()
    assert (jobs["maxcpucount"] == 86_400).all()


def test_later_jobs_have_the_request_of_the_rule(made: Made) -> None:
    tasks = made.tables["tasks"].select("jeditaskid", "ramcount", "baseramcount", "ramunit")
    jobs = (
        made.jobs.filter(pl.col("specialhandling").is_null(), pl.col("attemptnr") == 1)
        .filter(pl.col("processingtype") != "pmerge")
        .join(tasks, on="jeditaskid")
    )
    whole = pl.when(pl.col("ramunit") == "MB").then(1).otherwise("corecount")
    asked = (pl.col("ramcount") * whole + pl.col("baseramcount")) * 0.95
    wrong = jobs.filter(pl.col("minramcount") != asked.cast(pl.Int64))
    assert len(jobs) > 30_000
    assert len(wrong) == 0


def test_retries_point_back_and_ask_for_more_after_a_kill(made: Made) -> None:
    jobs = made.jobs
    retries = jobs.filter(pl.col("attemptnr") > 1)
    assert (retries["parentid"].is_not_null()).all()
    assert jobs.filter(attemptnr=1)["parentid"].is_null().all()
    pairs = retries.join(jobs, left_on="parentid", right_on="pandaid", suffix="_before")
    assert len(pairs) == len(retries)
    assert (pairs["attemptnr"] == pairs["attemptnr_before"] + 1).all()
    assert (pairs["jobstatus_before"] == "failed").all()
    assert (pairs["creationtime"] > pairs["modificationtime_before"]).all()
    assert (pairs["jeditaskid"] == pairs["jeditaskid_before"]).all()
    ram = pairs.filter(piloterrorcode_before=1212)
    assert len(ram) > 5
    assert (ram["minramcount"] >= (ram["minramcount_before"] * 1.49).cast(pl.Int64)).all()
    wall = pairs.filter(piloterrorcode_before=1213)
    assert len(wall) > 5
    assert (wall["maxwalltime"] > wall["maxwalltime_before"] * 1.9).all()


def test_kills_happen_above_the_request_only(made: Made) -> None:
    tasks = made.tables["tasks"].select("jeditaskid", "ramcount", "baseramcount", "ramunit")
    whole = pl.when(pl.col("ramunit") == "MB").then(1).otherwise("corecount")
    killed = (
        made.jobs.filter(piloterrorcode=1212, attemptnr=1)
        .join(tasks, on="jeditaskid")
        .with_columns(limit=pl.col("ramcount") * whole + pl.col("baseramcount"))
    )
    assert (killed["maxpss"] / 1024 >= killed["limit"] - 1).all()
    slow = made.jobs.filter(piloterrorcode=1213).with_columns(
        wall=(pl.col("endtime") - pl.col("starttime")).dt.total_seconds()
    )
    assert (slow["wall"] >= slow["maxwalltime"]).all()


def test_files_have_a_dataset_and_their_last_job(made: Made) -> None:
    files, datasets = made.tables["files"], made.tables["datasets"]
    jobs = made.tables["jobs"].filter(pl.col("prodsourcelabel") != "panda")
    jobs = jobs.drop_nulls("jeditaskid")
    assert len(files.join(datasets, on=["jeditaskid", "datasetid"], how="anti")) == 0
    inputs = files.filter(pl.col("type").is_in(["input", "pseudo_input"]))
    assert len(inputs.join(jobs, on=["pandaid", "jeditaskid"], how="anti")) == 0
    retried = jobs.select(pandaid="parentid").drop_nulls()
    assert len(inputs.join(retried, on="pandaid")) == 0
    plain = jobs.filter(pl.col("processingtype") != "pmerge")
    last = plain.join(retried, on="pandaid", how="anti")
    per_job = inputs.group_by("pandaid").len().join(last, on="pandaid", how="full")
    assert len(per_job) == len(last)
    assert (per_job["len"] == per_job["ninputdatafiles"]).all()
    joined = inputs.join(jobs.select("pandaid", "jobstatus"), on="pandaid")
    assert ((joined["status"] == "finished") == (joined["jobstatus"] == "finished")).all()
    merged = files.filter(type="trn_output").drop_nulls("pandaid")
    by = merged.join(jobs, on=["pandaid", "jeditaskid"])
    assert len(by) == len(merged) > 0
    assert (by["processingtype"] == "pmerge").all()


def test_dataset_counts_fit_the_files(made: Made) -> None:
    inputs = made.tables["files"].filter(pl.col("type").is_in(["input", "pseudo_input"]))
    counted = inputs.group_by("jeditaskid", "datasetid").agg(
        used=pl.len(), ok=(pl.col("status") == "finished").sum()
    )
    both = counted.join(made.tables["datasets"], on=["jeditaskid", "datasetid"])
    assert len(both) == len(counted) == len(made.tables["tasks"])
    assert (both["used"] == both["nfilesused"]).all()
    assert (both["ok"] == both["nfilesfinished"]).all()
    assert (both["nfilesused"] <= both["nfiles"]).all()
    assert both["masterid"].is_null().all()


def test_merge_jobs_follow_what_they_merge(made: Made) -> None:
    retried = made.jobs.select(pandaid="parentid").drop_nulls()
    merges = made.jobs.filter(processingtype="pmerge").join(retried, on="pandaid", how="anti")
    assert len(merges) > 500
    assert (merges["minramcount"] == 0).all()
    assert (merges["corecount"] == 1).all()
    assert (merges["maxcpucount"] == 0).all()
    assert (merges["assignedpriority"] == 5000).all()
    unmerged = made.tables["files"].filter(type="trn_output").select("pandaid")
    assert len(merges.join(unmerged, on="pandaid", how="anti")) == 0


def test_queues_take_what_runs_there(made: Made) -> None:
    both = made.jobs.join(made.tables["queues"], left_on="computingsite", right_on="panda_queue")
    assert len(both) == len(made.jobs)
    assert (both["corecount"] <= both["corecount_right"]).all()
    assert both["status"].is_in(["online", "brokeroff", "standby", "paused"]).all()


def test_config_holds_the_current_ranks(made: Made) -> None:
    values = dict(made.tables["gdpconfig"].select("key", "value").rows())
    assert values["SCOUT_RAMCOUNT_RANK"] == "75"
    assert values["SCOUT_RAMCOUNT_MARGIN"] == "10"
    assert values["SCOUT_CPUTIME_RANK"] == "95"


def test_shares_are_a_tree_and_jobs_are_at_its_leaves(made: Made) -> None:
    shares = made.tables["gshares"]
    names, parents = set(shares["name"]), set(shares["parent"].drop_nulls())
    assert parents <= names
    assert set(made.jobs["gshare"]) <= names - parents
    for _, group in shares.group_by("parent"):
        assert group["value"].sum() == 100


def test_status_of_tasks_fits_their_jobs(made: Made) -> None:
    tasks = made.tasks
    assert set(tasks["status"]) <= {"done", "finished", "running", "scouting", "broken"}
    ended = tasks.filter(pl.col("status").is_in(["done", "finished"]))
    assert ended["endtime"].null_count() == 0
    assert (tasks["status"] == "done").mean() > 0.6
