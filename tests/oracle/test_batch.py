"""The worked examples of workflows.md 13 that are about the queue alone."""

from __future__ import annotations

from brokerlab.workflows import batch
from tests.oracle import vectors
from tests.oracle.workflow_cases import differences, examples, jobs_of


def test_starts_ends_and_waits_under_every_policy():
    wrong, n = {}, 0
    for case in examples("batch"):
        for policy, wanted in case["expected"].items():
            n += 1
            done = batch.run(jobs_of(case["input"]["jobs"]), hosts=case["input"]["hosts"], policy=policy)  # fmt: skip
            got = {
                row["job_id"]: {"start": row["start_s"], "end": row["end_s"], "wait": row["wait_s"]}
                for row in done.rows(named=True)
            }
            if differs := differences(got, wanted):
                wrong[f"{case['name']}, {policy}"] = differs
    vectors.report("workflow_examples: batch", n, n - len(wrong))
    assert not wrong


def test_estimated_starts_under_every_policy():
    wrong, n = {}, 0
    for case in examples("estimate"):
        given = case["input"]
        for policy, wanted in case["expected_wait"].items():
            n += 1
            sim = batch.start(None, hosts=given["hosts"], policy=policy)
            batch.advance(sim, given["now"])
            for job in given["running"]:
                batch.submit(sim, job["hosts"], job["requested_end"] - given["now"])
            batch.settle(sim)
            for job in given["queued"]:
                batch.submit(sim, job["hosts"], job["request"])
            asked = [(ask["hosts"], ask["request"]) for ask in given["ask"]]
            got = [batch.estimate_start(sim, *ask) - given["now"] for ask in asked]
            if differs := differences({"waits": got}, {"waits": wanted}):
                wrong[f"{case['name']}, {policy}"] = differs
    vectors.report("workflow_examples: estimate", n, n - len(wrong))
    assert not wrong
