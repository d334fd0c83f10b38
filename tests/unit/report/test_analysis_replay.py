"""The page on user tasks made from toy worlds: what it says where there is much, little or nothing to say."""

from datetime import timedelta
from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.brokerage.studies.alternatives import compare_rule_sets, which_keys_matter
from brokerlab.brokerage.studies.period import ANALYSIS
from brokerlab.brokerage.studies.tasks import study_user_tasks
from brokerlab.errors import InsufficientDataError
from brokerlab.report import analysis_replay as report
from brokerlab.report.kit import HEADLINE_WORDS, Chart, Table
from tests.unit.brokerage.analysis_jobs.toys import AT, TASK, World
from tests.unit.brokerage.studies.toys import DICE, replay_of

RAN = {"jeditaskid": pl.Int64, "computingsite": pl.String, "made": pl.Datetime("us")}
RAN |= dict.fromkeys(("n_jobs", "wait_h", "core_h"), pl.Float64)


def period_of(world, *, ran=()):
    decisions = world.decided()
    replay = replay_of(decisions)
    return SimpleNamespace(
        archive=SimpleNamespace(synthetic=False),
        kind=ANALYSIS,
        rules=decisions.world.rules,
        replay=replay,
        ran=pl.DataFrame(ran, schema=RAN, orient="row"),
        every="1h",
        n_tasks=replay.tasks.height,
        n_replayed=replay.tasks.height,
        window=(AT, AT),
    )


def page_of(period):
    tasks = study_user_tasks(period, **DICE)
    rule_sets = compare_rule_sets(period.replay, tasks.decisions, sample=0, **DICE)
    keys = which_keys_matter(tasks.decisions, ["MIN_BAD_JOBS_TO_SKIP_PQ"], points=3, **DICE)
    return report.page(period, report.Study(tasks, rule_sets, keys, []))


def blocks(page, kind):
    return [b for section in page.sections.values() for b in section if isinstance(b, kind)]


@pytest.fixture
def crowd():
    """Alice passes, Bob's group is of class C where the share uses too much."""
    made = World(n_jobs_to_submit=10).queue("Q1")
    made.add("tasks", **(TASK | {"jeditaskid": 2, "username": "bob", "n_jobs_to_submit": 5}))
    made.add("task_class", jeditaskid=2, **{"class": -1})
    return made.add("gshare_usage", gshare=TASK["gshare"], usage_perc=0.93)


def test_who_is_held_back(crowd):
    page = page_of(period_of(crowd, ran=[(1, "Q1", AT + timedelta(hours=1), 4.0, 8.0, 2.0)]))
    assert page.verdict.sentence.startswith("50.0")
    assert page.verdict.sentence.endswith("are held back, most by gshare_class_c.")
    assert len(page.verdict.sentence.split()) <= HEADLINE_WORDS
    assert page.chart.frame["part"].to_list() == ["gshare_class_c"]
    assert page.chart.finding.startswith("1 of 2 users and groups are held back, with 33.3")
    assert [round(number.value, 2) for number in page.numbers] == [0.5, 0.5, 0.5]
    units = next(table for table in blocks(page, Table) if table.name == "held_units")
    assert units.cells()[0] == ["bob", "1", "100", "5", "5", "gshare_class_c"]
    for chart in [page.chart, *blocks(page, Chart)]:
        chart.drawn().to_dict()
    for table in blocks(page, Table):
        assert all(len(row) == len(table.columns) for row in table.cells())


def test_nobody_is_held_back():
    page = page_of(period_of(World().queue("Q1")))
    assert page.verdict.sentence == (
        "Of 1 brokerage of user tasks none is held back; no limit is known."
    )
    assert page.chart is None
    assert page.sections["Against what really ran"] == [
        "No job that ran belongs to a brokerage of the replay."
    ]


def test_no_queue_passes_the_checks():
    page = page_of(period_of(World(ramcount=3000).queue("Q1", maxrss=1000.0)))
    assert page.sections["What removes queues"][1].startswith("No queue reaches")
    assert page.sections["Original against new basic weight"][0].startswith("No brokerage")


def test_all_are_held_back():
    world = World().queue("A").add("task_class", jeditaskid=1, **{"class": -1})
    world.add("gshare_usage", gshare=TASK["gshare"], usage_perc=0.99)
    with pytest.raises(InsufficientDataError, match="held back by gshare_class_c; one that passes"):
        page_of(period_of(world))
