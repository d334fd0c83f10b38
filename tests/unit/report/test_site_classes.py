"""The page of the site classes, on a toy archive whose classes are known."""

import json
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from brokerlab.archive.store import open_archive
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.report import site_classes
from brokerlab.report.site_classes import Params, load, page, study
from brokerlab.words import THIN
from tests.notebooks import pages
from tests.unit.lifecycle.class_history.toy import START, job, jobs, write_archive, write_jobs

VALUES = {
    "low_ranks": [0.33, 1.0],
    "high_ranks": [0.67],
    "hi_hours": [1, 4],
    "lo_hours": [0, 3, 12],
    "long_jobs": [0, 3],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = write_archive(tmp_path_factory.mktemp("archives") / "toy")
    out = tmp_path_factory.mktemp("out")
    p = Params(
        archive=str(folder), every="2h", n_boot=50, queues_shown=4, out_dir=str(out), **VALUES
    )
    return p, load(p)


@pytest.fixture(scope="module")
def studied(made):
    return study(made[1], made[0])


def blocks(of, name):
    (block,) = (
        b
        for section in of.sections.values()
        for b in section
        if b and name in (getattr(b, "name", ""), getattr(b, "stem", ""))
    )
    return block


def plain(text):
    return text.replace(THIN, " ")


def test_the_first_screen(made, studied):
    shown = page(made[1], studied)
    assert (
        shown.verdict.sentence
        == "1 of 5 queues are usually hi; a queue changes class 0 times a day."
    )
    labels = [number.label for number in shown.numbers]
    assert labels[1].startswith("Get another class with ")
    assert shown.numbers[1].value == pytest.approx(0.2)
    assert (shown.numbers[2].label, shown.numbers[2].value) == (
        "Without class, taken for mid",
        pytest.approx(0.4),
    )
    assert shown.chart.finding == (
        "Of the 4 busiest queues 1 are usually hi, 1 mid, 1 lo and 1 without class"
    )


def test_findings_are_in_captions(made, studied):
    shown = page(made[1], studied)
    captions = {name: plain(blocks(shown, name).caption) for name in ("limits", "rule_switches", "waits")}  # fmt: skip
    assert captions == {
        "limits": "The percentile sets the limit of hi at 100.0 % of the instants, else the hours do",
        "rule_switches": "The production rules class every queue alike",
        "waits": "What jobs waited, by the class of their queue",
    }  # fmt: skip
    median = blocks(shown, "waits").frame.filter(class_name="hi", kind="steered")
    assert median["median_min"].item() == 2


def test_the_table_of_queues_says_what_its_caption_counts(made, studied):
    queues = blocks(page(made[1], studied), "queues")
    assert queues.caption == "Usually hi: 1 queue, mid 1, lo 1, without class 2; 0 change too often"
    assert sorted(queues.frame["usual"]) == ["hi", "lo", "mid", "none", "none"]


def test_classes_the_wrong_way_round_are_named(made, studied):
    def caption(**medians):
        waits = studied.frames["waits"]
        for name, (low, high) in medians.items():
            ends = {"median_s_lo": low, "median_s_hi": high}
            here = pl.col("class_name") == name
            waits = waits.with_columns(
                pl.when(here).then(pl.lit(value)).otherwise(end).alias(end)
                for end, value in ends.items()
            )
        changed = studied._replace(frames=studied.frames | {"waits": waits})
        return blocks(page(made[1], changed), "waits").caption

    assert (
        caption(hi=(100.0, 8000.0)) == "The median waits at hi and mid queues cannot be told apart"
    )
    assert caption(hi=(9000.0, 9100.0)) == "Analysis jobs waited longer at hi than at mid queues"


def test_one_instant_and_no_change_are_said_in_words(made):
    p, period = made
    at = period.instants["at"][0]
    once = p.model_copy(update={"start": at, "end": at})
    period = load(once)
    shown = page(period, study(period, once))
    assert shown.verdict.sentence == "1 of 5 queues are hi at the one instant."
    assert blocks(shown, "classes").caption == "No queue is seen to change class"
    texts = [
        shown.verdict.sentence,
        *(block_text(b) for s in shown.sections.values() for b in s if b),
    ]
    assert not [text for text in texts if "unknown" in text or "–" in text]


def block_text(block):
    return " ".join(getattr(block, name, "") for name in ("caption", "finding", "note"))


def test_values_that_move_nothing_are_not_called_the_most(made, studied):
    values = studied.frames["values"].with_columns(pl.lit(0.0).alias("differs"))
    shown = page(made[1], studied._replace(frames=studied.frames | {"values": values}))
    assert [number.label for number in shown.numbers] == [
        "Class changes per queue and day", "Without class, taken for mid"
    ]  # fmt: skip
    assert blocks(shown, "moved_queues").finding == (
        "No value next to the current ones moves a queue to another class"
    )


def test_without_tasks_their_section_is_left_out_and_that_is_said(made, studied):
    shown = page(made[1], studied)
    assert shown.sections["Classes of tasks"] == [None]
    told = [caveat.text for caveat in shown.caveats if caveat.n]
    assert told[0].startswith("Waits run from activation, else creation, to the start of a job")
    p, period = made
    absent = p.needs.caveats(period.archive)
    assert absent[0] == "No tasks are known: classes of tasks are left out."
    assert "No task of a user has a status that is rated." not in told


def test_everything_is_written(made):
    p, _ = made
    results = pages.run(site_classes, p)
    stored = json.loads(Path(p.out_dir, "results.json").read_text())
    assert stored["values"]["n_rated"] == results["values"]["n_rated"] > 0
    shares = {row["class_name"]: row["cells"] for row in stored["numbers"]["classes"]}
    assert shares == pytest.approx({"hi": 0.2, "mid": 0.2, "lo": 0.2, "none": 0.4})
    rated = pl.read_parquet(f"{p.out_dir}/tables/rated.parquet")
    assert (rated["class_name"] != "none").sum() == stored["values"]["n_rated"]


def test_nothing_to_rate_by_is_no_answer(tmp_path):
    plain_jobs = jobs().filter(pl.col("processingtype") == "run")
    folder = write_jobs(tmp_path / "bare", plain_jobs)
    p = Params(archive=str(folder), every="1d", n_boot=50, out_dir=str(tmp_path / "out"))
    with pytest.raises(InsufficientDataError, match="most often no sample"):
        pages.run(site_classes, p)
    stored = json.loads((tmp_path / "out" / "results.json").read_text())
    assert stored["page"]["verdict"] == {
        "kind": "no_answer",
        "subject": "",
        "sentence": "No queue has a class in this period.",
    }
    assert open_archive(folder).has("jobs")


DAY = timedelta(days=1)
PAIRS = {
    "unequal waits": ((600, "A", DAY), {}, True),
    "first one changed late": ((600, "A", 4.5 * DAY), {"modificationtime": START + 2 * DAY}, True),
    "failed": ((600, "A", DAY), {"jobstatus": "failed"}, False),
    "at two queues": ((600, "B", DAY), {}, False),
    "at no queue": ((600, None, DAY), {"computingsite": None}, False),
}
"""Wait [s], queue and place in time of a job beside one that waits 300 s at A, what is said of that one besides, and whether the two rate a queue."""


@pytest.mark.parametrize("name", PAIRS)
def test_what_the_check_says_beforehand_a_run_says_too(name, tmp_path):
    (wait_s, queue, later), values, is_rated = PAIRS[name]
    last = job(4, "C", START + 6 * DAY, 60)  # until then classes are asked for
    rows = [job(1, "A", START, 300, **values), job(2, queue, START + later, wait_s), last]
    folder = write_jobs(tmp_path / "few", pl.DataFrame(rows))
    lack = [] if is_rated else [f"1 finished {site_classes.RATED_BY} at one queue, 2 needed"]
    assert Params.needs.missing(open_archive(folder)) == lack
    p = Params(archive=str(folder), every="1h", n_boot=20, out_dir=str(tmp_path / "out"))
    period = load(p.model_copy(update={"start": START}))
    if is_rated:
        assert study(period, p).ratings.n_rated
    else:
        with pytest.raises(InsufficientDataError, match="and the archive has 3 such jobs"):
            study(period, p)


def test_wrong_parameters_all_at_once():
    wrong = {"low_ranks": [33], "hi_hours": [-1], "rules": "documents", "every": "soon", "queues_shown": 0,
             "n_boot": 1, "seed": -1, "start": "yesterday"}  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        Params.checked(wrong)
    message = str(caught.value)
    for part in (
        "low_ranks=[33]: value=33.0: allowed is a number of at least 0 and at most 1",
        "hi_hours=[-1]: value=-1.0: allowed is a number of at least 0",
        "rules='documents'",
        "every='soon': allowed is a whole number of s, m, h or d",
        "queues_shown=0",
        "n_boot=1",
        "seed=-1",
        "start='yesterday'",
    ):
        assert part in message
