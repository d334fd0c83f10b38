"""What is summed up of a comparison: which way is shorter, what became of runs, waits, one instant closely."""

from dataclasses import replace

import polars as pl
import pytest

from brokerlab.errors import InsufficientDataError
from brokerlab.workflows import shapes, synthetic
from brokerlab.workflows.compare import (
    BatchSystem,
    against_better,
    against_each,
    compare,
    costs,
    costs_by_queue,
    decisive,
    estimated_waits,
    example,
    hour_waits,
    longer_and_shorter,
    ratios,
    score_predictions,
    shape_checks,
    shapes_by_place,
    shapes_by_rules,
)
from brokerlab.workflows.compare.summaries import NOTES, ONE_JOB, PAPER, PER_TASK
from brokerlab.workflows.dag import workflow

DICE = {"n_boot": 200, "seed": 1}


def runs(turnarounds, shapes_of=None, n=12):
    """Return runs of one workflow at one machine: strategy -> turnaround [s], a little longer at every instant."""
    rows = [
        {
            "system": "S",
            "workflow": "w",
            "strategy": name,
            "instant": i,
            "turnaround": seconds * (1 + i / 100),
            "jobs_submitted": 2.0,
            "expirations": float(i % 2),
            "wasted": 10.0,
            "useful": 100.0,
            "shape": (shapes_of or {}).get(name, ["pilots"] * n)[i],
        }
        for name, seconds in turnarounds.items()
        for i in range(n)
    ]
    return pl.DataFrame(rows)


SECONDS = {NOTES: 400.0, PAPER: 50.0, ONE_JOB: 200.0, PER_TASK: 100.0}


def test_ratios_are_geometric_means_at_the_same_instants():
    found = ratios(runs(SECONDS), reference=PAPER, **DICE)
    row = found.filter(strategy=NOTES).row(0, named=True)
    assert row["ratio"] == pytest.approx(8)
    assert (row["ratio_lo"], row["ratio_hi"]) == pytest.approx((8, 8))
    assert (row["reference"], row["n"]) == (PAPER, 12)
    short = ratios(runs({PAPER: 0.5, ONE_JOB: 2.0}), reference=PAPER, **DICE)
    assert short["ratio"][0] < 2.2  # below a second counts as a second


def test_grouping_is_held_against_the_better_of_the_simple_ways():
    found = {row["rules"]: row for row in against_better(runs(SECONDS), **DICE).to_dicts()}
    assert {row["against"] for row in found.values()} == {PER_TASK}
    assert (found["paper"]["ratio"], found["notes"]["ratio"]) == pytest.approx((0.5, 4))
    assert (found["paper"]["outcome"], found["notes"]["outcome"]) == ("sooner", "later")
    equal = against_better(runs({**SECONDS, PAPER: 100.0}), **DICE).filter(rules="paper")
    assert equal["outcome"].to_list() == ["same"]
    single = against_better(runs(SECONDS, n=1), **DICE)
    assert single["ratio_lo"].null_count() == 2
    assert single["outcome"].unique().to_list() == ["same"]  # one instant has no interval
    each = against_each(runs(SECONDS), **DICE)
    assert dict(each.select("reference", "ratio").rows()) == pytest.approx({ONE_JOB: 0.25, PER_TASK: 0.5})  # fmt: skip


@pytest.mark.parametrize(
    ("one", "alone", "became"),
    [(7, 5, "one job"), (2, 8, "task by task"), (1, 1, "pilots"), (6, 5, "mixed")],
)
def test_a_place_is_called_after_most_of_its_runs(one, alone, became):
    ways = ["one job"] * one + ["task by task"] * alone + ["pilots"] * (12 - one - alone)
    found = against_better(runs(SECONDS, {PAPER: ways}), **DICE).filter(rules="paper")
    assert (found["became"][0], found["one_job"][0]) == (became, one / 12)
    shares = shapes_by_rules(runs(SECONDS, {PAPER: ways})).filter(strategy=PAPER).row(0, named=True)
    assert (shares["one_job"], shares["task_by_task"]) == (one / 12, alone / 12)
    assert shares["pilots"] + shares["one_job"] + shares["task_by_task"] == pytest.approx(1)
    places = shapes_by_place(runs(SECONDS, {PAPER: ways})).filter(strategy=PAPER)
    assert (places["n"].sum(), places["share"].sum()) == (12, pytest.approx(1))


def test_costs_begin_with_the_shortest():
    found = costs(runs(SECONDS))
    assert found["strategy"].to_list() == [PAPER, PER_TASK, ONE_JOB, NOTES]
    assert found["waste"].unique().to_list() == [0.1]
    assert found["expirations"].unique().to_list() == [0.5]


def test_a_strategy_that_runs_at_the_quick_queue_alone_is_not_the_shortest():
    quick = runs({PAPER: 50.0, NOTES: 40.0, ONE_JOB: 60.0})
    slow = runs({PAPER: 5000.0, NOTES: 4000.0}).with_columns(system=pl.lit("R"))
    found = costs(pl.concat([quick, slow]))
    assert found["strategy"].to_list() == [NOTES, PAPER, ONE_JOB]
    assert found["ratio"].to_list() == pytest.approx([0.8, 1, 1.2])


def test_costs_stand_beside_the_ratios_of_every_queue():
    """The second queue has no run of one job."""
    both = pl.concat(
        [runs(SECONDS), runs({PAPER: 50.0, NOTES: 25.0}).with_columns(system=pl.lit("R"))]
    )
    by_queue = ratios(both, reference=PAPER, by=("system",), **DICE)
    frame, columns = costs_by_queue(both, by_queue)
    assert columns == {"S": "ratio_0", "R": "ratio_1"}
    assert frame.select(costs(both).columns).equals(costs(both))
    rows = {row["strategy"]: row for row in frame.to_dicts()}
    assert (rows[NOTES]["ratio_0"], rows[NOTES]["ratio_1"]) == pytest.approx((8, 0.5))
    assert (rows[PAPER]["ratio_0"], rows[ONE_JOB]["ratio_1"]) == (None, None)
    assert rows[ONE_JOB]["ratio_0_lo"] == pytest.approx(4)


@pytest.mark.parametrize(
    ("rows", "counts", "system"),
    [
        ([("A", 9.0, 0.5, 20.0), ("B", 5.0, 4.0, 6.0), ("C", 0.5, 0.4, 0.6)], (1, 1, 3), "B"),
        ([("A", 0.9, 0.6, 1.4), ("B", 0.5, 0.4, 0.6), ("C", 0.3, 0.2, 0.4)], (0, 2, 3), "C"),
        ([("A", 1.1, 0.9, 1.3), ("B", 1.0, None, None)], (0, 0, 2), "A"),
    ],
)
def test_the_row_that_decides_has_an_interval_beside_1(rows, counts, system):
    schema = {"system": pl.String, **dict.fromkeys(("ratio", "ratio_lo", "ratio_hi"), pl.Float64)}
    found = pl.DataFrame(rows, schema=schema, orient="row")
    assert tuple(longer_and_shorter(found).values()) == counts
    assert decisive(found)["system"].to_list() == [system]
    assert decisive(found.clear()).is_empty()


def test_waits_are_scored_on_later_jobs_of_every_load_once():
    """KTH under three policies is one load; of the later half of its jobs every one is told by the queue itself."""
    jobs = synthetic.background(days=4, hosts=8, seed=3)
    easy, fcfs = (BatchSystem(jobs, 8, policy, "toy") for policy in ("easy", "fcfs"))
    found = score_predictions({"easy": easy, "fcfs": fcfs})
    assert found["system"].unique().to_list() == ["easy"]
    assert found["method"].to_list() == ["bound_50", "bound_95", "carried forward", "nearest"]
    carried = found.row(2, named=True)
    later = jobs.filter(pl.col("submit_s") >= jobs["submit_s"].median()).height
    assert carried["n_jobs"] == carried["n_predicted"] == later
    assert 0 < carried["waited_n_predicted"] <= later
    assert found.filter(pl.col("method") == "bound_95")["coverage_pct"][0] > 50


def test_a_load_without_jobs_has_no_waits_to_predict():
    empty = BatchSystem(synthetic.background(days=1, hosts=8).head(0), 8)
    with pytest.raises(InsufficientDataError, match="idle: there is no job in its load"):
        score_predictions({"idle": empty})


def test_estimated_waits_grow_with_hosts():
    jobs = synthetic.background(days=4, hosts=8, seed=3)
    systems = {name: BatchSystem(jobs, 8, name, "toy") for name in ("easy", "fcfs")}
    found = estimated_waits(systems, {"easy": (1e5, 2e5), "fcfs": (1e5, 2e5)})
    assert found["size"].unique(maintain_order=True).to_list() == ["1 host", "half", "all"]
    assert found.group_by("system").len()["len"].to_list() == [18, 18]
    assert (found["p25"] <= found["p75"]).all()
    hour = hour_waits(found)
    assert hour["system"].to_list() == ["easy", "fcfs"]
    assert (hour["one_host_h"] <= hour["all_hosts_h"]).all()
    asked = found.filter(system="easy", run_s=3600.0, size="all")["p50"][0]
    assert hour["all_hosts_h"][0] == asked / 3600


@pytest.fixture(scope="module")
def comparison():
    system = BatchSystem(synthetic.background(days=3, hosts=16, seed=2), 16, "easy", "toy")
    flows = {"fork": shapes.fork_join(12, runtime=600)}
    names = (PAPER, NOTES, ONE_JOB, PER_TASK)
    return compare(flows, {"easy": system}, strategies=names, times=3, workers=1)


def test_the_example_runs_every_strategy_at_one_instant(comparison):
    found = example(comparison)
    ends = found.summary()["turnaround"]
    assert ends.is_sorted()
    assert found.summary()["strategy"].to_list() == list(found.runs)
    done = comparison.done.filter(submit_time=found.submit_time, strategy=PAPER)["turnaround"]
    assert found.runs[PAPER].metrics["turnaround"] in done.to_list()
    lines = found.timelines()
    assert set(lines) == {"jobs", "tasks", "decisions"}
    assert lines["tasks"].group_by("strategy").len()["len"].unique().to_list() == [27]


def test_bars_cover_every_job_from_submission_to_end(comparison):
    found = example(comparison)
    bars = found.bars()
    assert set(bars["phase"]) <= {"waits", "runs", "expires", "cancelled"}
    assert (bars["begin_s"] <= bars["end_s"]).all()
    last = bars.group_by("strategy").agg(pl.col("end_s").max())
    for name, end in last.rows():
        assert end == pytest.approx(found.runs[name].metrics["turnaround"])
    single = bars.filter(strategy=PER_TASK, phase="runs")
    assert single["job"].null_count() == single.height == 5  # a line per level
    assert single["n_jobs"].to_list() == [1, 12, 1, 12, 1]
    assert single["line"][1] == "level 2, single tasks: 12"
    (pilot,) = bars.filter(strategy=ONE_JOB, phase="runs")["line"]
    assert pilot.endswith(": levels 1 to 5, hosts: 12")


@pytest.fixture(scope="module")
def partly_failed():
    """A task of 100 s that is thought to take 10 s: one job holds it beside a longer one, a job of its own is killed each time."""
    tasks = pl.DataFrame({"task_id": ["a", "b"], "runtime": 100.0, "estimate": [10.0, 200.0]})
    system = BatchSystem(synthetic.background(days=1, hosts=16, seed=3), 16, "easy", "toy")
    flows = {"under": workflow(tasks, []), "fork": shapes.fork_join(12, runtime=600)}
    return compare(flows, {"easy": system}, strategies=(PAPER, ONE_JOB, PER_TASK), times=2, workers=1)  # fmt: skip


def test_the_example_leaves_out_what_came_to_no_end(partly_failed):
    runs = partly_failed.runs.filter(workflow="under")
    alone = replace(partly_failed, runs=runs)
    done = runs.filter(pl.col("problem").is_null())["strategy"].unique().to_list()
    assert PER_TASK not in done
    assert set(example(alone).runs) <= set(done)


def test_published_shapes_are_asked_where_all_three_came_to_an_end(partly_failed):
    fork = replace(partly_failed, runs=partly_failed.runs.filter(workflow="fork"))
    assert shape_checks(partly_failed).equals(shape_checks(fork))
    under = replace(partly_failed, runs=partly_failed.runs.filter(workflow="under"))
    with pytest.raises(InsufficientDataError, match="no workflow came to its end under each of"):
        shape_checks(under)
