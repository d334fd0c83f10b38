"""Users, their shares, and the jobs that analysis has beside its own: builds, merges, probes."""

from datetime import timedelta

import polars as pl

import brokerlab.archive
from brokerlab.worlds.small_jobs import PROBE_USER
from tests.unit.worlds.drawn.conftest import Made


def of_users(made: Made) -> pl.DataFrame:
    return made.tables["tasks"].filter(tasktype="anal")


def test_few_users_own_most_of_the_work(made: Made) -> None:
    truth = brokerlab.archive.open(made.path).truth("users")
    tasks = of_users(made).join(truth.select("username", "heavy"), on="username")
    assert len(tasks) == len(of_users(made))
    per_user = tasks.group_by("username").len().sort("len", descending=True)["len"]
    assert len(per_user) >= 8
    assert per_user[0] >= 3 * float(per_user.median() or 0)  # type: ignore[arg-type]
    jobs = made.tables["jobs"].filter(prodsourcelabel="user").join(truth, left_on="produsername", right_on="username")  # fmt: skip
    assert float(jobs["heavy"].mean() or 0) > 0.4  # type: ignore[arg-type]


def test_names_of_users_are_cleaned_ones(made: Made) -> None:
    tasks = made.tables["tasks"]
    assert tasks["origusername"].null_count() == 0
    changed = tasks.filter(pl.col("origusername") != pl.col("username"))
    assert (changed["username"] == changed["origusername"].str.split("@").list.first()).all()
    truth = brokerlab.archive.open(made.path).truth("users")
    assert truth.filter(pl.col("origusername") == "user58@synth.example").height == 2


def test_jobs_have_owner_group_and_share_of_their_task(made: Made) -> None:
    columns = {"produsername": "username", "workinggroup": "workinggroup", "gshare": "gshare"}
    tasks = of_users(made).select("jeditaskid", **{f"{a}_task": b for a, b in columns.items()})
    both = made.tables["jobs"].join(tasks, on="jeditaskid")
    for name in columns:
        assert both[name].equals(both[f"{name}_task"], check_names=False), name
    groups = of_users(made).drop_nulls("workinggroup")
    assert 0 < len(groups) < len(of_users(made)) / 2
    assert {"User Analysis", "Express Analysis"} == set(of_users(made)["gshare"])


def test_builds_come_before_the_scouts_of_their_task(made: Made) -> None:
    builds = made.tables["jobs"].filter(prodsourcelabel="panda")
    assert builds["transformation"].str.contains("build").all()
    assert (builds["ninputdatafiles"] == 0).all()
    assert len(builds) > 0.5 * len(made.tasks.filter(tasktype="anal"))
    done = builds.group_by("jeditaskid").agg(built=pl.col("modificationtime").max())
    scouts = made.jobs.filter(specialhandling="sj").join(done, on="jeditaskid")
    assert len(scouts) > 20
    assert (scouts["creationtime"] > scouts["built"]).all()
    assert made.tables["files"].join(builds, on="pandaid", how="semi").is_empty()


def test_outputs_of_some_user_tasks_are_merged(made: Made) -> None:
    merges = made.tables["jobs"].filter(processingtype="pmerge", prodsourcelabel="user")
    tasks = of_users(made)
    assert set(merges["jeditaskid"]) <= set(tasks.filter(mergeoutput=1)["jeditaskid"])
    assert len(merges) > 20


def test_probes_go_to_every_queue_in_use(made: Made) -> None:
    probes = made.tables["jobs"].filter(produsername=PROBE_USER)
    assert probes["jeditaskid"].null_count() == len(probes)
    assert 0.03 < len(probes) / len(made.tables["jobs"]) < 0.05
    queues = made.tables["queues"].rename({"panda_queue": "computingsite"})
    analysis = probes.filter(prodsourcelabel="user")
    where = analysis.join(queues, on="computingsite")
    assert set(where["type"]) == {"analysis", "unified"}
    online = queues.filter(pl.col("status") == "online", pl.col("type") != "production")
    used = online.join(made.tables["jobs"], on="computingsite", how="semi")
    assert set(used["computingsite"]) <= set(analysis["computingsite"])
    gap = analysis.sort("creationtime").with_columns(
        gap=pl.col("creationtime").diff().over("computingsite")
    )
    assert gap["gap"].max() < timedelta(days=7)  # type: ignore[operator]


def test_pilots_of_analysis_queues_are_counted_as_analysis(made: Made) -> None:
    data = made.tables["site_data"].select("site", "flag").unique()
    flags = data.with_columns(analysis=pl.col("site").str.starts_with("ANALY_"))
    assert flags["analysis"].any()
    assert ((flags["flag"] == "analysis") == flags["analysis"]).all()
