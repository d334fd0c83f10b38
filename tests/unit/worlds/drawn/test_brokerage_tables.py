"""What a replay of the brokerage needs of every synthetic archive: places that exist, shares that are plausible."""

import json
import time
from datetime import timedelta

import polars as pl
import pytest

import brokerlab.archive
from brokerlab import gdpconfig, worlds
from brokerlab.archive.contracts.tasks import SPLIT_RULE_TAGS, split_rule_digits
from brokerlab.worlds.orders import UNKNOWN_NUCLEUS
from brokerlab.worlds.snapshots import network_matrix
from brokerlab.worlds.world import draw_world
from tests.unit.worlds.drawn.conftest import Made


def managed(made: Made) -> pl.DataFrame:
    return made.tables["tasks"].filter(prodsourcelabel="managed")


def share(column: pl.Series) -> float:
    return float(column.mean())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("queue_endpoints", "panda_queue"),
        ("queue_storage_site", "panda_queue"),
        ("worker_node_gpu", "panda_queue"),
        ("worker_node_cpu_level", "panda_queue"),
        ("site_data", "site"),
        ("worker_stats", "computingsite"),
        ("slots", "pandaqueuename"),
        ("job_status_log", "computingsite"),
    ],
)
def test_queues_exist(made: Made, table: str, column: str) -> None:
    assert set(made.tables[table][column]) <= set(made.tables["queues"]["panda_queue"])


@pytest.mark.parametrize("table", ["queue_endpoints", "replicas"])
def test_endpoints_exist(made: Made, table: str) -> None:
    known = set(made.tables["ddm_endpoints"]["ddm_endpoint_name"])
    assert set(made.tables[table]["ddm_endpoint_name"]) <= known


def test_sites_exist(made: Made) -> None:
    sites = set(made.tables["queues"]["atlas_site"])
    owners = set(made.tables["ddm_endpoints"]["site_name"])
    assert owners <= sites
    assert set(made.tables["queue_storage_site"]["site_name"]) <= owners
    links = made.tables["network_matrix"]
    assert set(links["src"]) <= owners
    assert set(links["dst"]) <= owners
    named = set(managed(made)["nucleus"].drop_nulls()) - {UNKNOWN_NUCLEUS}
    assert named <= owners


def test_inputs_and_logs_belong_to_tasks(made: Made) -> None:
    datasets = made.tables["datasets"].filter(pl.col("type").is_in(["input", "trn_output"]))
    assert set(made.tables["replicas"]["datasetname"]) <= set(datasets["datasetname"])
    logged, tasks = made.tables["task_status_log"], made.tables["tasks"]
    assert set(logged["jeditaskid"]) == set(tasks["jeditaskid"])
    parents = managed(made).filter(pl.col("parent_tid") != pl.col("jeditaskid"))
    assert set(parents["parent_tid"]) <= set(managed(made)["jeditaskid"])
    assert len(parents) > 0


def test_software_is_json_of_queues_that_say_auto(made: Made) -> None:
    tags = made.tables["software_tags"]
    auto = made.tables["queues"].filter(releases='["AUTO"]')["panda_queue"]
    assert set(tags["panda_queue"]) <= {"ALL", *auto}
    described = dict(tags.rows())
    assert all(isinstance(json.loads(text), dict) for text in described.values())
    everything = {tag["tag"] for tag in json.loads(described["ALL"])["tags"]}
    published = {t["tag"] for text in described.values() for t in json.loads(text)["tags"]}
    assert published == everything


def test_sites_are_nuclei_and_satellites(made: Made) -> None:
    queues = made.tables["queues"]
    sites = queues.group_by("atlas_site").agg(
        role=pl.col("role").first(),
        roles=pl.col("role").n_unique(),
        state=pl.col("pandasite_state").first(),
        bare=pl.col("catchall").str.extract(r"bareNucleus=(\w+)").drop_nulls().first(),
        secondary=pl.col("catchall").str.contains("secondaryNucleus=").any(),
    )
    assert (sites["roles"] == 1).all()
    nuclei = sites.filter(role="nucleus")
    assert len(nuclei) == 12
    assert nuclei["state"].to_list().count("INACTIVE") == 1
    assert {"allow", "only"} <= set(nuclei["bare"])
    assert {"allow", "only"} <= set(sites.filter(role="satellite")["bare"])
    assert nuclei["secondary"].sum() == 1


def test_special_queues_run_no_jobs(made: Made) -> None:
    queues = made.tables["queues"]
    special = queues.filter(
        pl.col("panda_queue").str.contains("TEST")
        | (pl.col("mintime") > 0)
        | pl.col("jobseed").is_in(["es", "eshigh"])
        | pl.col("catchall").str.contains("useJumboJobs")
    )
    assert len(special) == 5
    assert (special["status"] == "online").all()
    assert (
        len(made.jobs.filter(pl.col("computingsite").is_in(special["panda_queue"].implode()))) == 0
    )
    homeless = queues.join(made.tables["queue_endpoints"], on="panda_queue", how="anti")
    assert len(homeless) == 1


def test_ordinary_values_prevail(made: Made) -> None:
    queues, endpoints = made.tables["queues"], made.tables["ddm_endpoints"]
    assert share(queues["status"] == "online") > 0.8
    assert share(queues["releases"] == '["AUTO"]') > 0.8
    assert share(queues["fairsharepolicy"].is_null()) > 0.4
    assert share(queues["catchall"].is_null()) > 0.5
    for name in ("read_lan", "write_lan", "read_wan", "write_wan"):
        counts = dict(endpoints[name].fill_null("null").value_counts().rows())
        assert set(counts) == {"ON", "OFF", "TEST", "null"}
        assert counts["ON"] / len(endpoints) > 0.93


def test_storage_changes_over_the_period(made: Made) -> None:
    endpoints = made.tables["ddm_endpoints"]
    per_endpoint = endpoints.group_by("ddm_endpoint_name").agg(
        times=pl.col("ts").n_unique(),
        first=pl.col("ts").min(),
        space=pl.col("space_free").n_unique(),
    )
    assert (per_endpoint["times"] == 5).all()
    assert (per_endpoint["space"] > 1).all()
    assert (per_endpoint["first"] <= made.jobs["creationtime"].min()).all()
    usable = (
        pl.col("space_free") + pl.col("space_expired")
        - pl.col("space_min_free") - pl.col("space_unavailable")
    )  # fmt: skip
    disks = endpoints.filter(type="DATADISK").with_columns(usable=usable)
    assert (disks["space_free"] <= disks["space_total"]).all()
    assert 0 < share(disks["usable"] < 200) < 0.1
    nuclei = made.tables["queues"].filter(role="nucleus")["atlas_site"].unique()
    large = disks.filter(pl.col("site_name").is_in(nuclei.implode()))
    assert 0.01 < share(large["usable"] < 100 * 1024) < 0.7


def test_links_look_like_the_measured_ones(made: Made) -> None:
    matrix = made.tables["network_matrix"]
    links = matrix.select("src", "dst").unique()
    week = matrix.filter(key="dashb_mbps_1w")
    known = len(week.select("src", "dst").unique()) / len(links)
    assert known == pytest.approx(0.25, abs=0.06)
    assert 0.5 < float(week["value"].median() or 0) < 6  # type: ignore[arg-type]
    closeness = matrix.filter(key="AGIS_closeness").unique(["src", "dst"])["value"]
    assert closeness.is_between(-1, 11).all()
    assert (closeness == closeness.round()).all()
    assert share(closeness == 11) == pytest.approx(0.55, abs=0.1)
    queued = matrix.filter(key="Production Output_queued")
    assert (queued["value"] >= 1).all()
    assert 5 < float(queued["value"].median() or 0) < 60  # type: ignore[arg-type]
    per_nucleus = queued.group_by("dst", "ts").agg(pl.col("value").sum())["value"]
    assert 0 < share(per_nucleus >= 10_000) < 0.1


def test_every_brokerage_sees_fresh_links(made: Made) -> None:
    seen = made.tables["network_matrix"]["ts"].unique().sort()
    steps = seen.diff().drop_nulls()
    assert (steps == timedelta(hours=1)).all()
    production = made.jobs.filter(prodsourcelabel="managed")["creationtime"]
    assert seen[0] <= production.min()
    assert share(production < seen[-1] + timedelta(hours=1)) == 1


def test_counts_of_site_data_are_those_of_the_jobs(made: Made) -> None:
    data = made.tables["site_data"]
    moment = data["ts"].unique().sort()[200]
    at, jobs = data.filter(ts=moment), made.tables["jobs"].rename({"computingsite": "site"})
    begun = pl.col("starttime") < moment
    want = jobs.group_by("site").agg(
        running=(begun & (pl.col("endtime") >= moment)).sum(),
        activated=((pl.col("activatedtime") < moment) & ~begun).sum(),
        assigned=((pl.col("creationtime") < moment) & (pl.col("activatedtime") >= moment)).sum(),
        transferring=((pl.col("endtime") < moment) & (pl.col("modificationtime") >= moment)).sum(),
        last=pl.col("starttime").filter(begun).max(),
    )
    both = at.join(want, on="site", suffix="_jobs")
    assert both["running"].sum() > 20
    for name in ("running", "activated", "assigned", "transferring"):
        assert (both[name] == both[f"{name}_jobs"]).all(), name
    started = both.drop_nulls("last")
    assert (started["laststart"] >= started["last"]).all()
    assert (started["laststart"] <= moment).all()


def test_pilots_are_silent_now_and_then(made: Made) -> None:
    data = made.tables["site_data"].join(
        made.tables["queues"].select(site="panda_queue", status="status"), on="site"
    )
    online = data.filter(status="online")
    silent = online["getjob"] + online["updatejob"] == 0
    assert 0.001 < share(silent) < 0.05
    stale = online["ts"] - online["laststart"] > timedelta(hours=2)
    assert 0.005 < share(stale) < 0.08


def test_log_follows_the_times_of_the_jobs(made: Made) -> None:
    log = made.tables["job_status_log"]
    push = made.tables["queues"].filter(workflow="push")["panda_queue"]
    everything = made.tables["jobs"]
    jobs = everything.filter(pl.col("computingsite").is_in(push.implode()))
    planted = made.planted.select("pandaid")
    assert set(log["pandaid"]) == set(jobs["pandaid"]) | set(planted["pandaid"])
    jobs = jobs.join(planted, on="pandaid", how="anti")
    assert 0.05 < len(jobs) / len(made.tables["jobs"]) < 0.6
    states = {
        "defined": "creationtime", "activated": "activatedtime", "running": "starttime",
    }  # fmt: skip
    for status, column in states.items():
        both = log.filter(jobstatus=status).join(jobs.select("pandaid", column), on="pandaid")
        assert len(both) == len(jobs)
        assert (both["modificationtime"] == both[column]).all()
    step = log.select(pl.col("modificationtime").diff().over("pandaid")).to_series()
    assert (step.drop_nulls() >= timedelta(0)).all()
    last = log.group_by("pandaid", maintain_order=True).agg(pl.col("jobstatus").last())
    both = last.join(everything.select("pandaid", final="jobstatus"), on="pandaid")
    assert len(both) == len(last)
    assert (both["jobstatus"] == both["final"]).all()


def test_some_outputs_travel_for_hours(made: Made) -> None:
    travel = (made.jobs["modificationtime"] - made.jobs["endtime"]).dt.total_seconds()
    slow = made.jobs.filter(travel > 600)
    assert 0.005 < len(slow) / len(made.jobs) < 0.1
    assert slow["specialhandling"].is_null().all()
    assert (slow["jobstatus"] == "finished").all()
    assert (slow["prodsourcelabel"] == "managed").all()
    limits = made.tables["queues"].select(computingsite="panda_queue", limit="transferringlimit")
    assert (slow.join(limits, on="computingsite")["limit"] == 2).all()


def test_jobs_gather_their_outputs_at_the_nucleus_of_their_task(made: Made) -> None:
    both = made.jobs.join(made.tables["tasks"].select("jeditaskid", n="nucleus"), on="jeditaskid")
    assert both["nucleus"].equals(both["n"])
    production = both.filter(prodsourcelabel="managed")
    assert share(production["nucleus"].is_not_null()) > 0.9
    assert both.filter(prodsourcelabel="user")["nucleus"].is_null().all()


def test_task_parameters_stand_in_the_split_rule_too(made: Made) -> None:
    tasks = made.tables["tasks"]
    for column, tag in SPLIT_RULE_TAGS.items():
        read = tasks.select(split_rule_digits(pl.col("splitrule"), tag).cast(pl.Int64)).to_series()
        assert read.equals(tasks[column], check_names=False), column


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("fullchain", {1, 3}),
        ("allowinputlan", {1, 2}),
        ("t1weight", {-1}),
        ("ipconnectivity", {1, 2}),
        ("inputprestaging", {1}),
        ("nucleus", {None, UNKNOWN_NUCLEUS}),
        ("transhome", {None, "AtlasProduction-rel_3"}),
    ],
)
def test_production_tasks_ask_for_special_things(
    made: Made, column: str, values: set[object]
) -> None:
    assert values <= set(managed(made)[column])


def test_full_chains_are_at_bare_nuclei(made: Made) -> None:
    queues = made.tables["queues"]
    bare = queues.filter(pl.col("catchall").str.contains("bareNucleus="))["atlas_site"]
    chained = managed(made).drop_nulls("fullchain")
    assert set(chained["nucleus"]) <= set(bare)
    assert 0.02 < len(chained) / len(managed(made)) < 0.15
    pairs = chained.join(
        managed(made).select(parent_tid="jeditaskid", at="nucleus"), on="parent_tid"
    )
    assert (pairs["nucleus"] == pairs["at"]).all()


def test_most_inputs_have_a_complete_copy(made: Made) -> None:
    copies = made.tables["replicas"].filter(pl.col("datasetname").str.ends_with(".input"))
    assert (copies["found"] <= copies["total"]).all()
    best = copies.group_by("datasetname").agg(
        complete=(pl.col("found") == pl.col("total")).any(), tape=pl.col("is_tape").all()
    )
    read = made.tables["tasks"].filter(pl.col("processingtype") != "evgen")
    assert len(best) == len(read)
    assert 0.9 < share(best["complete"]) <= 1
    assert 0 < share(best["tape"]) < 0.1
    names = pl.format("synth.{}.input", "jeditaskid").alias("datasetname")
    files = made.tables["files"].filter(type="input").with_columns(names)
    total = files.group_by("datasetname").agg(n=pl.col("lfn").n_unique())
    both = copies.join(total, on="datasetname")
    assert (both["total"] == both["n"]).all()


def test_keys_of_the_brokerage_are_known_and_readable(made: Made) -> None:
    config = gdpconfig.Config.from_frame(made.tables["gdpconfig"])
    assert config.get("NQUEUED_SAT_CAP") == 150
    assert config.get("NW_ACTIVE") is True
    assert [
        f for f in gdpconfig.validate(config) if "NQUEUED" in str(f) or "unknown" in str(f)
    ] == []


def test_links_are_written_as_often_as_asked(tmp_path_factory: pytest.TempPathFactory) -> None:
    sizes = []
    for every in (1.0, 6.0):
        folder = tmp_path_factory.mktemp("every") / "a"
        made = worlds.synthesise(
            folder, jobs=200, days=3.0, seed=1, network_every_h=every, pilots_every_h=every
        )
        sizes.append((made.counts["network_matrix"], made.counts["site_data"], made.counts["jobs"]))
    assert sizes[0][0] / sizes[1][0] == pytest.approx(6, rel=0.05)
    assert sizes[0][1] / sizes[1][1] == pytest.approx(6, rel=0.05)
    assert sizes[0][2] == sizes[1][2]


def test_starts_of_pilots_are_those_of_three_hours(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever the time between snapshots: column ``hours`` says 3."""
    folder = tmp_path_factory.mktemp("hours") / "a"
    worlds.synthesise(folder, jobs=600, days=2, seed=1, queues=20, pilots_every_h=5)
    scan = brokerlab.archive.open(folder).scan
    asked = scan("site_data").select("site", "ts", "nstart", "hours").collect()
    assert (asked["hours"] == 3).all()
    starts = scan("jobs").select(site="computingsite", at="starttime").drop_nulls().collect()
    inside = pl.col("at").is_between(pl.col("ts") - pl.duration(hours=3), "ts", closed="right")
    seen = asked.join(starts, on="site").filter(inside).group_by("site", "ts").len()
    both = asked.join(seen, on=["site", "ts"], how="left").with_columns(pl.col("len").fill_null(0))
    assert (both["nstart"] == both["len"]).all()


@pytest.mark.parametrize("settings", [{"queues": 20}, {"queues": 21, "seed": 3}, {"days": 0.05}])
def test_small_archives_have_every_table(
    tmp_path_factory: pytest.TempPathFactory, made: Made, settings: dict[str, object]
) -> None:
    asked: dict[str, object] = {"jobs": 600, "days": 2.0, "seed": 1} | settings
    small = worlds.synthesise(tmp_path_factory.mktemp("small") / "a", **asked)  # type: ignore[arg-type]
    rare = {"worker_node_gpu"}
    assert set(small.counts) >= set(made.manifest.counts) - rare


def test_a_month_of_links_takes_a_moment() -> None:
    asked = worlds.make_settings(jobs=1, days=28.0, seed=1)
    world = draw_world(asked)
    begun = time.perf_counter()
    rows = sum(len(part) for part in network_matrix(world))
    assert rows > 1_000_000
    assert time.perf_counter() - begun < 8  # 0.3 s on an idle core
