"""The sentences of the brokerage replay report where there is little or nothing to say."""

from datetime import datetime
from types import SimpleNamespace

import polars as pl

from brokerlab.report.brokerage_replay import pictures
from brokerlab.report.brokerage_replay import sentences as say
from brokerlab.words import THIN

DAY = datetime(2026, 3, 1)
SHARE = {"lo": None, "hi": None, "n_tasks": 1}


def shares(**parts):
    rows = [
        {"part": name, "total": value * 10, "whole": 10.0, "share": value, **SHARE}
        for name, value in parts.items()
    ]
    schema = {
        "part": pl.String,
        **dict.fromkeys(("total", "whole", "share", "lo", "hi"), pl.Float64),
        "n_tasks": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema)


def keys(*rows):
    names = ("key", "decides", "unit")
    numbers = ("at", "shift", "lo", "hi")
    schema = {
        **dict.fromkeys(names, pl.String),
        **dict.fromkeys(numbers, pl.Float64),
        "worth": pl.Boolean,
    }
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return SimpleNamespace(keys=frame.with_columns(half=0.0, double=0.0), skipped={})


def study(**parts):
    tasks = pl.DataFrame(
        {"outcome": ["unknown_nucleus", "input_incomplete"], "stage": [None, None]}
    )
    base = {
        "n_pairs": 0, "n_brokerages": 2, "n_tasks": 2, "n_weighed": 0,
        "decisions": SimpleNamespace(tasks=tasks),
        "by_check": shares(), "composition": shares(), "agreement": shares(), "against": shares(), "stuck": shares(),
        "settings": keys(), "nuclei": None, "odd": (),
        "inputs": SimpleNamespace(
            no_nuclei="the archive knows no nucleus", sampled=False, every="", window=(DAY, DAY),
            archive=SimpleNamespace(synthetic=False), nuclei=None, jobs=SimpleNamespace(notes=("no slots are set",)),
        ),
    }  # fmt: skip
    return SimpleNamespace(**base | parts)


def test_no_pairs_no_answer():
    verdict = say.verdict(study())
    assert verdict.kind == "no_answer"
    assert verdict.sentence == (
        "No answer: none of the 2 brokerages came to look at a queue; they ended as input_incomplete and unknown_nucleus."
    )
    assert say.checks(study()).sentence == verdict.sentence
    for judge in (say.checks, say.weights, say.rules):
        assert judge(study(rule_sets=None)).kind == "no_answer"
    still = keys(("NW_THRESHOLD", "jobs", "weight", 4, None, None, None, False))
    assert say.settings(study(settings=still)).sentence == "None of the settings tried moves a job."
    assert say.settings(study()).kind == "no_answer"
    assert say.nuclei(study()).sentence == "No answer: the archive knows no nucleus."
    assert say.history(study()) == "No job that ran belongs to a brokerage of the replay."
    for draw in (
        pictures.funnel,
        pictures.history,
        pictures.composition,
        pictures.settings,
        pictures.nuclei,
    ):
        assert draw(study()) is None


def test_the_verdict_names_checks_weight_and_settings():
    found = study(
        n_pairs=12_345,
        by_check=shares(core_count=0.5, zero_share=0.2, rank=0.1, candidate=0.2),
        composition=shares(work=0.75, data=0.25),
        settings=keys(
            ("NQUEUED_SAT_CAP", "jobs", "files", 10, 0.3, 0.2, 0.4, True),
            ("DISK_THRESHOLD", "nuclei", "TB", 1000, 0.0, 0.0, 0.0, False),
        ),
    )
    assert say.verdict(found).sentence.replace(THIN, "") == (
        "Checks decide first: of 12345 pairs of task and queue they remove 70.0 %, most by core_count (50.0 %) and "
        "zero_share (20.0 %); 20.0 % become candidates. Among the queues left, running against waiting work makes 75.0 % "
        "of the spread of the weight. Worth calibrating, of 2 settings tried: NQUEUED_SAT_CAP; halved or doubled, each "
        "moves 1 % of the jobs or more beyond doubt."
    )
    told = say.settings(found).sentence
    assert "NQUEUED_SAT_CAP (30.0 % (20.0 to 40.0) of the jobs at 10 files)" in told
    assert told.endswith("DISK_THRESHOLD moves nothing.")


def test_without_a_key_worth_calibrating():
    found = study(settings=keys(("NW_THRESHOLD", "jobs", "weight", 4, 0.005, 0.0, 0.01, False)))
    told = say.settings(found).sentence
    assert (
        "None of 1 settings tried moves 1 % of the jobs beyond doubt when halved or doubled."
        in told
    )
    assert "NW_THRESHOLD (0.5 % (0.0 to 1.0) of the jobs at 4)" in told


def test_what_the_replay_cannot_tell_comes_from_what_it_found():
    told = say.cannot_tell(study(odd=("queues.x, 1 finding: odd",)))
    assert told[0] == "Approximated: no slots are set."
    assert "Odd input, taken as the rules say: queues.x, 1 finding: odd." in told
    assert not any("synthetic" in sentence or "A sample" in sentence for sentence in told)
