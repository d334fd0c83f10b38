"""The manager's event loop: expiry, cancellation, resubmission, single tasks; worked examples of the chapter."""

import math

import pytest

from brokerlab.errors import ConfigError
from brokerlab.workflows import batch
from brokerlab.workflows.dag import RunFailed
from brokerlab.workflows.manager import best_partition, run
from brokerlab.workflows.queues import BatchQueue, WaitQueue, constant
from brokerlab.workflows.rules import PilotRules
from brokerlab.workflows.strategies import NAMES, strategy
from tests.unit.workflows.wf_toys import chain, dag, waits
from tests.wait_functions import stepped


def done(flow, name, queue=None, **options):
    return run(flow, queue or waits(), strategy(name), **options)


def outcomes(found):
    return [job.outcome for job in found.jobs]


def test_every_request_waits_50_s():
    """chain3_constant_wait: (50+100)+(50+200)+(50+300) = 750; one job 50+600 = 650."""
    flow = chain(100, 200, 300)
    turnaround = {n: done(flow, n).metrics["turnaround"] for n in ("pilot_levels:notes", "pilot_levels:paper", "one_job", "level")}  # fmt: skip
    assert turnaround == {"pilot_levels:notes": 750, "pilot_levels:paper": 650, "one_job": 650, "level": 750}  # fmt: skip


def test_a_pilot_that_is_done_is_released_at_once():
    flow = dag({"a": 100, "b": 400, "c": 300, "d": 50}, [("a", "c"), ("b", "d")])
    found = done(flow, "pilot_levels:paper", waits(10, hosts=8))
    assert found.jobs[-1].end == max(task.end for task in found.tasks.values())
    assert outcomes(found) == ["completed"] * len(found.jobs)


def test_tasks_that_end_with_the_walltime_are_done():
    found = done(chain(100), "one_job")
    assert (found.jobs[0].limit, outcomes(found)) == (150, ["completed"])


def test_an_expiry_puts_tasks_back_and_decides_anew():
    rules = PilotRules("paper", first_comparison="infinity", search_whole=True, skip_long_waits="no", hidden_exempt=False, padding="none", tie="stops")  # fmt: skip
    queue = WaitQueue(constant(0), hosts=4, actual={0: 900, 1: 10.0, 2: 5.0})
    found = run(chain(1000, 950, 800), queue, strategy("pilot_levels", rules=rules))
    assert "expired" in outcomes(found)
    assert len(found.tasks) == 3
    assert found.metrics["expirations"] >= 1
    assert found.metrics["wasted"] == pytest.approx(found.metrics["occupied"] - 2750)
    starts = [task.start for task in found.tasks.values()]
    assert starts == sorted(starts)


def test_a_last_task_that_takes_no_time_does_not_make_its_pilot_expire():
    found = done(chain(100, 0), "one_job")
    assert (outcomes(found), found.metrics["turnaround"]) == (["completed"], 150)


def test_a_pilot_without_walltime_that_waits_for_others_is_not_submitted_for_ever():
    found = done(chain(100, 0, 50), "pilot_levels:notes", waits(0))
    assert len(found.jobs) < 8
    assert len(found.tasks) == 3


def test_too_short_estimates_double_until_the_task_fits():
    flow = dag({"a": 350}, estimates={"a": 100.0})
    found = done(flow, "one_job_per_task")
    assert [job.request for job in found.jobs] == [100, 200, 400]
    assert outcomes(found) == ["expired", "expired", "completed"]
    grouped = done(flow, "one_job")
    assert [job.request for job in grouped.jobs] == [100, 200, 400]


def test_a_task_that_is_killed_too_often_fails_the_run_by_name():
    flow = dag({"slow": 5000}, estimates={"slow": 100.0})
    for name in ("one_job_per_task", "one_job", "pilot_levels"):
        with pytest.raises(RunFailed, match="task slow was killed at its walltime 4 times"):
            done(flow, name)


def test_single_tasks_go_when_their_last_parent_is_done_longest_first():
    flow = dag({"a": 10, "b": 20, "c": 30, "d": 5}, [("a", "d"), ("b", "d"), ("c", "d")])
    found = done(flow, "one_job_per_task")
    first = [flow.ids[next(iter(job.tasks))] for job in found.jobs]
    assert first == ["c", "b", "a", "d"]
    assert found.jobs[3].submit == found.tasks[2].end
    assert found.individual


def test_at_most_so_many_jobs_in_the_queue():
    flow = dag(dict.fromkeys("abcdef", 10))
    rules = PilotRules("paper", max_jobs=2)
    found = run(flow, waits(), strategy("one_job_per_task", rules=rules))
    for job in found.jobs:
        assert sum(j.submit <= job.submit < j.end for j in found.jobs) <= 2
    assert len(found.tasks) == 6


def test_individual_mode_need_not_be_for_ever():
    flow = chain(100, 200, 300)
    rules = PilotRules("paper", individual_permanent=False)
    found = run(flow, waits(1500), strategy("pilot_levels", rules=rules))
    assert len(found.decisions) == 3
    assert len(found.tasks) == 3


def test_the_next_pilot_waits_while_the_one_before_it_runs():
    found = done(chain(4000, 4000, 4000), "level_overlap", waits(500))
    for one, other in zip(found.jobs, found.jobs[1:], strict=False):
        assert other.submit == one.start
    assert outcomes(found) == ["completed"] * 3


def test_without_overlap_it_is_submitted_at_the_end():
    found = done(chain(4000, 4000, 4000), "pilot_levels:paper_serial", waits(500))
    for one, other in zip(found.jobs, found.jobs[1:], strict=False):
        assert other.submit == one.end


def test_the_best_partition_is_no_worse_than_any_strategy_of_whole_levels():
    flow = chain(400, 300, 200, 100)
    best = best_partition(flow, lambda: waits(250))
    assert best.strategy.startswith("partition:")
    for name in ("one_job", "level_overlap"):
        assert best.metrics["turnaround"] <= done(flow, name, waits(250)).metrics["turnaround"]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "best_partition"])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_on_an_empty_machine_nothing_waits(name, policy):
    flow = dag({"a": 60, "b": 120, "c": 30, "d": 45}, [("a", "c"), ("b", "d")])
    sim = batch.start(hosts=8, policy=policy)
    batch.advance(sim, 100.0)
    found = run(flow, BatchQueue(sim), strategy(name), submit_time=100.0)
    assert found.metrics["queue_wait_sum"] == 0
    assert found.metrics["wait_seen"] >= 0
    assert len(found.tasks) == 4


def test_tables_of_a_run():
    found = done(chain(100, 200), "pilot_levels:notes")
    jobs, tasks, decisions = found.jobs_frame(), found.tasks_frame(), found.decisions_frame()
    assert jobs["n_tasks"].sum() == 2
    assert tasks["task_id"].to_list() == ["A", "B"]
    assert decisions["mode"].to_list() == ["individual"]
    assert (tasks["end"] - tasks["start"]).to_list() == [100.0, 200.0]


def test_waits_may_be_estimated_by_anything():
    asked = []

    def estimate(now, hosts, request):
        asked.append((now, hosts, request))
        return 3 * request

    sim = batch.start(hosts=8, policy="easy")
    batch.advance(sim, 50.0)
    found = run(chain(100, 200), BatchQueue(sim, estimate), strategy("pilot_levels:paper"), submit_time=50.0)  # fmt: skip
    assert {now for now, _, _ in asked} == {50.0}
    assert found.individual
    assert found.metrics["turnaround"] == 300


def test_a_run_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr("brokerlab.workflows.manager.MOST_JOBS", 10)
    monkeypatch.setattr("brokerlab.workflows.manager.MOST_PER_TASK", 1)
    steps = {
        1: 0,
        9_999: 50,
        10_000: 0,
        math.inf: 1e6,
    }  # B alone never waits, and expires while A runs
    queue = WaitQueue(stepped(steps, of=lambda n, w: w), hosts=4)  # noqa: ARG005
    with pytest.raises(RunFailed, match="no end in sight"):
        run(chain(10_000, 1, 1), queue, strategy("pilot_levels", rules=PilotRules("notes", whole_dag="long_wait_individual")))  # fmt: skip


def test_walltimes_do_not_grow_by_the_noise_of_decimals():
    """0.1 + 2.7 + 0.2 s are 3 s, though their sum in floating point is a little more."""
    assert 0.1 + 2.7 + 0.2 > 3
    assert [job.request for job in done(chain(0.1, 2.7, 0.2), "one_job").jobs] == [3]
    stretched = dag({"a": 0.1}, stretch=30)
    assert [job.request for job in done(stretched, "one_job_per_task").jobs] == [3]


def test_what_ends_together_is_seen_to_end_together():
    """a then b end when c ends: the longer child of both starts first, in the estimate as in the pilot."""
    flow = dag(
        {"a": 0.1, "b": 0.2, "c": 0.3, "d": 5, "e": 9, "f": 9},
        [("a", "b"), ("b", "d"), ("c", "e"), ("c", "f"), ("a", "e"), ("a", "f"), ("b", "e")],
    )
    found = done(flow, "one_job", waits(50, hosts=2))
    assert found.metrics["turnaround"] - 50 == pytest.approx(found.jobs[0].exec, abs=1e-6)
    queue = WaitQueue(constant(0.2), hosts=1, now=0.1)
    queue.submit(1, 10)
    assert queue.advance(math.inf) == 0.3


@pytest.mark.parametrize("at", [math.nan, math.inf])
def test_an_instant_that_is_none_is_refused(at):
    with pytest.raises(ConfigError, match="submit_time"):
        done(chain(1), "one_job", submit_time=at)


def test_a_strategy_is_what_its_label_says():
    with pytest.raises(ConfigError, match=r"pilot_levels:paper.*rules=peer"):
        strategy("pilot_levels:paper", rules=PilotRules("peer"))
    with pytest.raises(ConfigError, match="waste_bound"):
        strategy("pilot_levels", waste_bound=0.1)
