"""Workflows on batch queues: what holds of every workflow, queue and strategy."""

from __future__ import annotations

import networkx as nx
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.workflows import batch
from brokerlab.workflows.dag import workflow
from brokerlab.workflows.manager import run
from brokerlab.workflows.queues import BatchQueue, WaitQueue
from brokerlab.workflows.rules import PilotRules
from brokerlab.workflows.schedule import makespan
from brokerlab.workflows.strategies import NAMES, strategy
from tests.wait_functions import linear

SIMPLE = [name for name in NAMES if name != "best_partition"]


@st.composite
def dags(draw, most=9, widest=1, inexact=False):
    n = draw(st.integers(1, most))
    ids = [f"t{i}" for i in range(n)]
    pairs = [(ids[a], ids[b]) for b in range(n) for a in range(b) if draw(st.integers(0, 3)) == 0]
    runs = [draw(st.integers(0, 2000)) / 4 for _ in ids]
    known = [run * (draw(st.sampled_from([0.5, 1, 2])) if inexact else 1) for run in runs]
    rows = {"task_id": ids, "runtime": runs, "estimate": known, "hosts": [draw(st.integers(1, widest)) for _ in ids]}  # fmt: skip
    order = draw(st.permutations(range(n)))
    schema = {"parent": pl.String, "child": pl.String}
    return workflow(pl.DataFrame(rows)[order], pl.DataFrame(pairs, schema=schema, orient="row"))


@st.composite
def rulesets(draw):
    chosen = draw(st.sets(st.sampled_from(sorted(PilotRules.SWITCHES)), max_size=4))
    switches = {}
    for name in sorted(chosen):
        choice = PilotRules.SWITCHES[name]
        kind = choice.values[0]
        values = choice.allowed or ((True, False) if isinstance(kind, bool) else (type(kind)(3),))
        switches[name] = draw(st.sampled_from(list(values)))
    return PilotRules(draw(st.sampled_from(PilotRules.NAMES)), **switches)


@st.composite
def loads(draw):
    rows = [
        {"job_id": f"J{i}", "submit_s": float(draw(st.integers(0, 600))), "run_s": float(draw(st.integers(0, 400))),
         "requested_s": float(draw(st.integers(0, 800))), "hosts": draw(st.integers(1, 4))}
        for i in range(draw(st.integers(0, 8)))
    ]  # fmt: skip
    return rows, draw(st.sampled_from(["fcfs", "easy", "conservative"]))


def queue_of(load):
    rows, policy = load
    sim = batch.start(pl.DataFrame(rows) if rows else None, hosts=4, policy=policy)
    batch.advance(sim, 100.0)
    return BatchQueue(sim)


@settings(max_examples=40)
@given(dags())
def test_levels_are_those_of_the_graph_library_and_cover_every_task_once(dag):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(dag)))
    graph.add_edges_from((p, t) for t, parents in enumerate(dag.parents) for p in parents)
    assert [set(level) for level in dag.levels] == [set(g) for g in nx.topological_generations(graph)]  # fmt: skip
    assert sorted(task for level in dag.levels for task in level) == list(range(len(dag)))


@settings(max_examples=40)
@given(dags(widest=3))
def test_a_makespan_lies_between_its_bounds(dag):
    widest = max(3, *dag.widths)
    for n in (3, widest, sum(dag.hosts) + 3):
        span = makespan(dag, dag.levels, n)
        assert max(dag.longest_path, dag.work / n) - 1e-6 <= span <= sum(dag.runtime) + 1e-6
    assert makespan(dag, dag.levels, sum(dag.hosts) + 3) == dag.longest_path


@settings(max_examples=40)
@given(dags())
def test_one_host_takes_all_the_work_and_enough_hosts_the_longest_path(dag):
    spans = [makespan(dag, dag.levels, n) for n in range(1, len(dag) + 1)]
    assert spans[0] == dag.work
    assert spans[-1] == dag.longest_path
    assert all(spans[0] >= span >= spans[-1] for span in spans)


def holds(dag, found):
    """What is true of every run."""
    assert len(found.tasks) == len(dag)
    ended = [job for job in found.jobs if job.outcome != "cancelled" or job.start == job.start]
    for task, one in found.tasks.items():
        job = found.jobs[one.job]
        assert job.start <= one.start <= one.end <= job.end
        assert abs(one.end - one.start - dag.runtime[task]) < 1e-5
        assert all(found.tasks[parent].end <= one.start for parent in dag.parents[task])
    for place, job in enumerate(found.jobs):
        assert job.submit >= found.submit_time
        mine = [one for one in found.tasks.values() if one.job == place]
        for one in mine:
            used = sum(dag.hosts[t] for t, o in found.tasks.items() if o.job == place and o.start <= one.start < o.end)  # fmt: skip
            assert used <= job.hosts
        if mine and job.outcome == "completed":
            assert job.end == max(one.end for one in mine)
    assert all(job.end - job.start <= job.request + 1e-6 for job in ended)
    assert found.metrics["wasted"] >= -1e-3


@settings(max_examples=50)
@given(dags(inexact=True), st.sampled_from(SIMPLE), loads())
def test_every_strategy_brings_every_task_to_its_end(dag, name, load):
    first = run(dag, queue_of(load), strategy(name), submit_time=100.0)
    holds(dag, first)
    again = run(dag, queue_of(load), strategy(name), submit_time=100.0)
    assert first.jobs_frame().equals(again.jobs_frame())


class Prompt(BatchQueue):
    """A batch queue whose simulator is never behind."""

    def advance(self, until):
        reached = super().advance(until)
        self._catch_up()
        return reached


@settings(max_examples=60)
@given(dags(inexact=True), st.sampled_from(SIMPLE), loads())
def test_a_simulator_that_stays_behind_while_nothing_of_ours_waits_changes_nothing(dag, name, load):
    found, prompt = (
        run(dag, kind(queue_of(load)._sim), strategy(name), submit_time=100.0)
        for kind in (BatchQueue, Prompt)
    )
    assert found.jobs_frame().equals(prompt.jobs_frame())
    assert found.tasks_frame().equals(prompt.tasks_frame())


@settings(max_examples=60)
@given(dags(inexact=True), loads(), st.permutations(SIMPLE))
def test_runs_in_which_all_tasks_go_one_by_one_are_told_of_all_strategies_alike(dag, load, names):
    alone = {}
    for name in names:
        how = strategy(name)
        told = run(dag, queue_of(load), how, submit_time=100.0, alone=alone)
        found = run(dag, queue_of(load), how, submit_time=100.0)
        assert (told.strategy, told.decisions) == (found.strategy, found.decisions)
        assert (told.metrics, told.shape) == (found.metrics, found.shape)
        assert told.tasks_frame().equals(found.tasks_frame())


@settings(max_examples=60)
@given(dags(), rulesets(), loads())
def test_every_switch_brings_every_task_to_its_end(dag, rules, load):
    holds(dag, run(dag, queue_of(load), strategy("pilot_levels", rules=rules), submit_time=100.0))


@settings(max_examples=40)
@given(dags(), st.integers(0, 500), st.integers(0, 3))
def test_groups_are_prefixes_of_the_levels_that_are_left(dag, base, slope):
    queue = WaitQueue(linear(base=base, per_second=slope / 4), hosts=6)
    found = run(dag, queue, strategy("pilot_levels:paper"))
    gone: set[int] = set()
    for decision in found.decisions:
        if decision.mode == "individual":
            break
        left = dag.levels_of(set(range(len(dag))) - gone)
        assert decision.levels == left[: len(decision.levels)]
        gone |= set(decision.tasks)


@settings(max_examples=40)
@given(dags(), st.integers(1, 400))
def test_waits_that_do_not_depend_on_size_make_one_job_the_best(dag, base):
    spans = {name: run(dag, WaitQueue(linear(base=base), hosts=20), strategy(name)) for name in ("one_job", "level", "one_job_per_task")}  # fmt: skip
    least = spans["one_job"].metrics["turnaround"]
    assert least <= min(found.metrics["turnaround"] for found in spans.values()) + 1e-6
