"""The worked examples of workflows.md 13: every strategy, job, task, decision and candidate."""

from __future__ import annotations

from brokerlab.workflows.manager import run
from brokerlab.workflows.schedule import makespan
from tests.oracle import vectors
from tests.oracle.workflow_cases import (
    dag_of,
    differences,
    examples,
    queue_of,
    strategy_of,
    told,
)


def test_every_strategy_of_every_worked_example():
    wrong, n = {}, 0
    for case in examples("workflow"):
        given = case["input"]
        for name, wanted in case["expected"].items():
            n += 1
            found = run(dag_of(given), queue_of(given), strategy_of(name), submit_time=given["submit_time"])  # fmt: skip
            wanted["jobs"] = [{**job, "tasks": sorted(job["tasks"])} for job in wanted["jobs"]]
            differs = differences(told(found), wanted)
            if differs:
                wrong[f"{case['name']}, {name}"] = differs
    vectors.report("workflow_examples: workflow", n, n - len(wrong))
    assert not wrong


def test_levels_widths_and_makespans():
    cases = examples("list_schedule")
    wrong = {}
    for case in cases:
        dag, wanted = dag_of(case["input"]), case["expected"]
        got = {
            "levels": dict(zip(dag.ids, dag.level, strict=True)),
            "widths": list(dag.widths),
            "makespan": {n: makespan(dag, dag.levels, int(n)) for n in wanted["makespan"]},
        }
        if differs := differences(got, wanted):
            wrong[case["name"]] = differs
    vectors.report("workflow_examples: list_schedule", len(cases), len(cases) - len(wrong))
    assert not wrong
