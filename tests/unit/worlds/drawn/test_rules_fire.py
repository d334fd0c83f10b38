"""Every rule of timeouts, classes and analysis brokerage finds something in an archive of moderate size.

What no archive of this schema can show: quotas (no table), lists of excluded queues (no column).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl
import pytest

import brokerlab.archive
from brokerlab.archive import Archive
from brokerlab.brokerage import analysis_jobs, funnel, replaying
from brokerlab.brokerage.analysis_jobs.brokerage import BROKERAGE as ANALYSIS
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import classification, timeouts
from brokerlab.worlds import synthesise
from brokerlab.worlds.stories import STORY_SHARE

START, DAYS = datetime(2026, 3, 1), 28
END = START + timedelta(days=DAYS)
OVER = ("finished", "failed", "cancelled", "closed")
NEVER_IN_HISTORIES = {"x_holding_user"}
"""The last change and the last change of status of a past holding job are one: only a live one shows it."""

THROTTLES = {
    *("cap_running_jobs", "cap_queued_jobs", "cap_running_cores", "cap_queued_cores"),
    *("gshare_class_a", "input_incomplete"),
}
NO_TABLE = {"excluded", "local_quota"}
LARGE_ARCHIVES = {
    *("diskio", "max_cpucore", "longwalltime", "scout_walltime"),
    *("remoteio", "below_min_weight"),
}
"""Checks that the demo archive of 200,000 jobs shows; here too few tasks are drawn."""


@dataclass(frozen=True)
class Told:
    archive: Archive
    config: Config
    jobs: pl.DataFrame
    log: pl.DataFrame
    queues: pl.DataFrame

    @property
    def live(self) -> pl.DataFrame:
        return self.jobs.filter(~pl.col("jobstatus").is_in(OVER))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    path = tmp_path_factory.mktemp("told") / "archive"
    synthesise(path, jobs=25_000, days=DAYS, seed=1, network_every_h=48, pilots_every_h=2)
    archive = brokerlab.archive.open(path)
    tables = [archive.scan(name).collect() for name in ("jobs", "job_status_log", "queues")]
    config = Config.from_frame(archive.scan("gdpconfig").collect())
    return Told(archive, config, *tables)


@pytest.mark.parametrize("rules", ["document", "production"])
def test_every_timeout_fires(told: Told, rules: str) -> None:
    chosen = timeouts.TimeoutRules(rules)
    known = set(timeouts.decision_table(rules=chosen, config=told.config)["rule"])
    found = timeouts.would_fire(
        told.jobs, told.log, at=END, queues=told.queues, rules=chosen, config=told.config
    )
    assert known - set(found["rule"]) == NEVER_IN_HISTORIES & known
    for label in ("user", "managed"):
        assert found.filter(pl.col("prodsourcelabel") == label)["rule"].n_unique() >= 9


@pytest.mark.parametrize("rules", ["document", "production"])
def test_every_timeout_fires_at_the_end(told: Told, rules: str) -> None:
    chosen = timeouts.TimeoutRules(rules)
    started = told.archive.scan("site_data").collect().filter(pl.col("ts") <= END).sort("ts")
    latest = started.unique("site", keep="last").select("flag", "hours", "laststart", computingsite="site")  # fmt: skip
    tables = {"jobs": told.live, "queues": told.queues, "site_data": latest, "status_log": told.log}
    found = timeouts.decide(tables, at=END, rules=chosen, config=told.config).fired
    known = set(timeouts.decision_table(rules=chosen, config=told.config)["rule"])
    assert known | {"analysis_rebrokerage"} == set(found["rule"]) | {"analysis_rebrokerage"}
    again = found.filter(rule="analysis_rebrokerage")
    assert again.is_empty() == (rules == "document")  # of the code alone
    assert rules == "document" or {6.0, 12.0} <= set(again["limit_h"])


def test_queues_that_are_paused_or_keep_their_jobs_are_spared(told: Told) -> None:
    found = timeouts.would_fire(told.jobs, told.log, at=END, queues=told.queues, config=told.config)
    spared = told.archive.truth("planted").filter(pl.col("story").str.starts_with("spared"))
    assert len(spared) == 12
    assert found.join(spared, on="pandaid", how="semi").is_empty()
    without = told.queues.with_columns(catchall=None, status=pl.lit("online"))
    found = timeouts.would_fire(told.jobs, told.log, at=END, queues=without, config=told.config)
    assert found.join(spared, on="pandaid", how="semi")["pandaid"].n_unique() == 12


def test_fast_rebrokerage_is_triggered_and_prevented(told: Told) -> None:
    stats = told.live.group_by("computingsite", "gshare", "jobstatus").agg(
        njobs=pl.len().cast(pl.Int64)
    )
    tables = {"share_job_stats": stats, "jobs": told.live, "queues": told.queues}
    shares = timeouts.fast_rebrokerage(tables, config=told.config).shares
    assert shares["triggered"].any()
    assert shares.filter("exempt", pl.col("nq") > 30).height == 1


def test_queues_and_tasks_are_of_every_class(told: Told) -> None:
    at = [START + timedelta(hours=6 * i) for i in range(1, 4 * DAYS)]
    rated = classification.site_classes_at(told.jobs, told.queues, status_log=told.log, at=at)
    counts = dict(rated.classes.drop_nulls("class").group_by("class").len().rows())
    assert set(counts) == {-1, 0, 1}
    slots = classification.user_slots(told.jobs, at=at)
    used = classification.user_usage(slots, rated.classes, config=told.config)
    scan = told.archive.scan
    states = classification.task_states(scan("tasks"), status_log=scan("task_status_log"), at=at)
    assert {"running", "scouting", "pending", "throttled"} <= set(states["status"])
    progress = classification.task_progress(states, scan("files"), scan("datasets"), scan("jobs"))
    found = classification.task_classes(
        states, progress, used.users, at=at, config=told.config
    ).classes
    assert {"S", "A"} <= set(found["class_name"])


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_users_are_stopped_and_queues_left_out(told: Told) -> None:
    seen = replaying.build(told.archive, stage="analysis")
    nothing: dict[str, set[str]] = {}
    for name in ("document", "production"):
        rules = analysis_jobs.AnalysisRules(name)
        made = analysis_jobs.decide(
            seen.tables_of(ANALYSIS.tables), rules=rules, config=seen.config
        )
        of_code = set() if rules.code_only_checks else {"input_incomplete"}
        assert set(made.tasks["throttle"]) >= THROTTLES - of_code
        assert {"candidates", "temporary_error"} <= set(made.tasks["outcome"])
        unused = funnel(made).filter(pl.col("n_pairs") == 0)["check"].cast(pl.String)
        nothing[name] = set(unused) - set(made.first_loop["check"].cast(pl.String))
        marks = made.weighed.filter(check="badsite")
        assert marks["user_queue"].any()
    assert nothing["document"] <= NO_TABLE | LARGE_ARCHIVES | {"closed", "tmp_user_problem"}
    assert nothing["production"] <= NO_TABLE | LARGE_ARCHIVES | {"cap_rt", "fileunavailable"}


def test_stories_are_a_small_part(told: Told) -> None:
    planted = told.archive.truth("planted").filter(pl.col("story") != "light")
    assert len(planted) < STORY_SHARE * len(told.jobs)
