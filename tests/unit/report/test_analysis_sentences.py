"""The sentences of the report on user tasks where there is little or nothing to say."""

from types import SimpleNamespace

import polars as pl

from brokerlab.report.analysis_replay import sentences as say
from brokerlab.report.replays import sentences as shared


def study(**parts):
    empty = pl.DataFrame(schema={"part": pl.String, "share": pl.Float64})
    base = {
        "n_pairs": 0, "n_brokerages": 2, "n_users": 0, "n_tasks": 2, "odd": ("queues.x: odd",), "users": empty,
        "rows": pl.DataFrame({"rule": ["cap_running_jobs", "input_incomplete"]}), "limits": empty,
        "weights": SimpleNamespace(moved=empty, known=0.75), "rule_sets": None,
        "settings": SimpleNamespace(skipped={}, keys=pl.DataFrame()),
        "inputs": SimpleNamespace(
            sampled=True, n_tasks=9, every="1h", archive=SimpleNamespace(synthetic=False),
            replay=SimpleNamespace(notes=("no quotas",)),
        ),
    }  # fmt: skip
    return SimpleNamespace(**base | parts)


def test_no_pairs_no_answer():
    verdict = say.verdict(study())
    assert verdict.kind == "no_answer"
    assert verdict.sentence == (
        "No answer: none of the 2 brokerages came to look at a queue; they were held back by cap_running_jobs and "
        "input_incomplete."
    )
    for judge in (say.checks, say.stabilizer, say.weights, say.fairness, say.rules):
        assert judge(study()).kind == "no_answer", judge.__name__
    assert say.settings(study()).kind == "no_answer"


def test_what_the_replay_cannot_tell_comes_from_what_it_found():
    told = say.cannot_tell(study())
    assert told[0] == "A sample: 2 of 9 tasks, drawn at random, are replayed."
    assert "Approximated: no quotas." in told
    assert "Odd input, taken as the rules say: queues.x: odd." in told
    assert any(sentence.startswith("Expected waits: 25.0 %") for sentence in told)
    assert not any("synthetic" in sentence for sentence in told)


def test_keys_without_a_value_are_told_apart():
    rows = [("CAP", 0.3, None, None, True), ("BASE", 0.2, 0.1, 0.0, True), ("BAD", 0.0, 0.0, 0.0, False)]  # fmt: skip
    names = ["key", "shift", "half", "double", "worth"]
    found = SimpleNamespace(keys=pl.DataFrame(rows, schema=names, orient="row"))
    assert shared.keys_in_short(found) == (
        "Worth calibrating, of 3 settings tried: BASE; halved or doubled, each moves 1 % of the jobs or more beyond doubt. "
        "Without a value to halve or double, CAP can move as much."
    )
