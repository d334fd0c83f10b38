"""What the site classes report sums up, on a toy archive whose classes are known."""

from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from brokerlab.archive.writer import ArchiveWriter
from brokerlab.errors import ConfigError, DataError
from brokerlab.report.site_classes import check, load, pictures, study
from brokerlab.report.site_classes import sentences as say
from brokerlab.report.site_classes.assemble import assemble
from brokerlab.report.site_classes.inputs import Inputs
from brokerlab.report.site_classes.stability import by_queue, flags, overall, spells
from brokerlab.report.site_classes.tasks import slots_over_time
from brokerlab.report.site_classes.waits import STEERED, band, quantiles
from brokerlab.report.site_classes.words import setting, time
from brokerlab.units import HOUR_S
from brokerlab.words import THIN

START = datetime(2026, 3, 1)
HOURS = 8 * 24
WAITS = {"FAST": (60, 120, 180), "MID": (6000, 7200, 8400), "SLOW": (16_000, 18_000, 20_000)}
"""Waits at the queues [s]; jobs of each come three times an hour. At EMPTY nothing is merged."""
GRIDS = {
    "low_ranks": [0.33, 1.0],
    "high_ranks": [0.67],
    "hi_hours": [1, 4],
    "lo_hours": [0, 3, 12],
    "long_jobs": [0, 3],
}
DICE = {"n_boot": 50, "seed": 1}


def job(number, queue, made, wait_s, **values):
    start = made + timedelta(seconds=wait_s)
    end = start + timedelta(hours=1)
    row = {"pandaid": number, "jeditaskid": 1, "computingsite": queue, "prodsourcelabel": "user",
           "gshare": "User Analysis", "processingtype": "pmerge", "produsername": "ann", "vo": "atlas",
           "jobstatus": "finished", "corecount": 1, "hs06": 10, "creationtime": made, "activatedtime": made,
           "starttime": start, "endtime": end, "modificationtime": end, "statechangetime": end}  # fmt: skip
    return row | values


def jobs():
    """Merge jobs of three queues, and one analysis job an hour at each of four."""
    rows = []
    for hour in range(HOURS):
        for queue, waits in WAITS.items():
            for minute, wait in zip((5, 25, 45), waits, strict=True):
                made = START + timedelta(hours=hour, minutes=minute)
                rows.append(job(len(rows), queue, made, wait))
        for queue in (*WAITS, "EMPTY"):
            wait = WAITS.get(queue, (600, 600))[1]
            made = START + timedelta(hours=hour, minutes=50)
            rows.append(job(len(rows), queue, made, wait, processingtype="run", corecount=8))
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives") / "toy"
    names = [*WAITS, "EMPTY", "NEVER"]
    queues = pl.DataFrame(
        {
            "panda_queue": names,
            "resource_type_q": "GRID",
            "workflow": "pull",
            "type": "analysis",
            "status": "online",
        }
    )
    shares = {"name": ["User Analysis", "Rest"], "value": [1.0, 3.0], "parent": [None, None]}
    with ArchiveWriter(folder) as writer:
        writer.write("jobs", jobs())
        writer.write("queues", queues)
        writer.write("gshares", pl.DataFrame(shares, schema_overrides={"parent": pl.String}))
        writer.commit()
    return folder


@pytest.fixture(scope="module")
def inputs(archive) -> Inputs:
    return load(archive, every="2h")


@pytest.fixture(scope="module")
def found(inputs):
    return study(inputs, grids=GRIDS, queues_shown=4, **DICE)


def curve(found, key, value):
    row = pl.col("key") == key, pl.col("value") == value
    return found.what_if.curves.filter(*row).row(0, named=True)


def test_queues_keep_the_class_that_their_waits_give_them(found):
    usual = dict(found.rows.group_by("queue").agg(pl.col("class_name").unique()).iter_rows())
    assert usual == {
        "FAST": ["hi"],
        "MID": ["mid"],
        "SLOW": ["lo"],
        "EMPTY": ["none"],
        "NEVER": ["none"],
    }
    assert say.usually(found, "hi") == ["FAST"]
    shares = found.by_queue.filter(queue="SLOW")
    assert dict(shares.select("part", "share").iter_rows()) == {
        "hi": 0, "mid": 0, "lo": 1, "none": 0, "in_modal": 1, "per_day": 0}  # fmt: skip
    assert found.rows.filter(queue="EMPTY")["reason"].unique().to_list() == ["no_sample"]
    assert found.rows.filter(queue="EMPTY")["used"].unique().to_list() == ["mid"]


def test_cells_count_jobs_and_slots(inputs, found):
    assert found.rows.height == 5 * inputs.instants.height
    last = found.rows.filter(pl.col("snapshot") < inputs.instants.height - 1)
    assert last.group_by("queue").agg(pl.col("jobs").unique()).filter(queue="FAST")[
        "jobs"
    ].to_list() == [[2]]  # two analysis jobs in two hours, merge jobs do not count
    assert found.rows.filter(queue="NEVER").select(pl.col("jobs", "slots").sum()).row(0) == (0, 0)
    total = slots_over_time(found.rows, "1d").group_by("time").agg(pl.col("slots").sum())
    assert total["slots"].max() == pytest.approx(4 * 8)  # each runs for an hour, eight cores


@pytest.mark.parametrize(
    ("key", "value", "share", "usual", "better", "worse"),
    [
        ("percentile_low", 0.33, 0, 0, 0, 0),
        ("percentile_low", 1.0, 0.2, 1, 0.2, 0),  # MID is below the largest limit
        ("hi_limit_hours", 4, 0.2, 1, 0.2, 0),
        ("lo_limit_hours", 12, 0.2, 1, 0.2, 0),  # SLOW is not that slow
        ("lo_limit_hours", 0, 0, 0, 0, 0),  # the percentile is the limit
        ("short_queue_jobs", 0, 0.2, 1, 0, 0.2),  # nobody has fewer than none
    ],
)
def test_other_numbers_of_the_rules_move_queues(found, key, value, share, usual, better, worse):
    row = curve(found, key, value)
    assert (row["share"], row["n_queues"]) == (pytest.approx(share), usual)
    assert (row["better"], row["worse"]) == (pytest.approx(better), pytest.approx(worse))
    # four queues get jobs, all of them as many
    assert row["jobs"] == pytest.approx(0.25 if share else 0)


def test_what_sets_the_limits(found):
    parts = dict(found.what_if.binding.select("part", "share").iter_rows())
    assert parts == {"percentile_hi": 1, "hours_hi": 0, "cut_hi": 0,
                     "percentile_lo": 1, "hours_lo": 0, "cut_lo": 0}  # fmt: skip
    assert 2 * HOUR_S > found.limits["p33"] > HOUR_S
    assert (
        "Another class would come to 20.0 % of the queues and instants"
        in say.verdict(found).sentence
    )


def test_jobs_waited_as_their_queue_is_rated(found):
    rows = {r["class_name"]: r for r in found.waits.by_class.filter(kind=STEERED).to_dicts()}
    assert {name: row["median_s"] for name, row in rows.items()} == {
        "hi": 120, "mid": 7200, "lo": 18_000, "none": 600}  # fmt: skip
    assert rows["hi"]["median_lo"] == rows["hi"]["median_hi"] == 120
    beyond = found.waits.beyond.filter(band="all")
    assert beyond["share"].to_list() == [0, 0]
    assert found.waits.bands["band"].to_list() == ["10 and more"]
    assert "cannot be told apart" not in say.waits(found).sentence


def test_classes_the_wrong_way_round_are_told(found):
    def told(**medians):
        rows = found.waits.by_class.filter(kind=STEERED)
        ends = [medians.get(name, (value, value)) for name, value in rows.select("class_name", "median_s").iter_rows()]  # fmt: skip
        changed = rows.with_columns(
            median_lo=pl.Series([low for low, _ in ends], dtype=pl.Float64),
            median_hi=pl.Series([high for _, high in ends], dtype=pl.Float64),
        )
        return say.waits(replace(found, waits=replace(found.waits, by_class=changed))).sentence

    assert "waited longer" not in told()
    assert "The medians of hi and mid cannot be told apart." in told(hi=(100, 8000))
    turned = told(hi=(9000, 9100))
    assert "At hi queues jobs waited longer than at mid ones." in turned
    assert "told apart" not in turned
    assert "told apart" not in told(hi=(None, None))  # of one day nothing is known


def test_the_limits_are_set_against_what_came_of_them(found):
    told = say.limits(found).sentence
    # one of three each
    assert "33.3 % are hi and 33.3 % lo; by the ranks alone it would be 33.0 % and 33.0 %." in told
    assert "at which limits are cut" not in told
    cut = found.what_if.binding.with_columns(
        share=pl.when(pl.col("part") == "cut_lo").then(0.5).otherwise("share")
    )
    some = replace(found, what_if=replace(found.what_if, binding=cut))
    assert "of the instants the upper percentile is the" in say.limits(some).sentence


def test_the_difference_that_brings_most_about_is_named(found):
    switches = pl.DataFrame(
        {"switch": ["moves_more", "brings_more"], "row": "", "here": "1", "there": "2",
         "share": [0.9, 0.5], "lo": None, "hi": None, "explained": [0.1, 0.4]}
    )  # fmt: skip
    totals = found.rule_sets.totals.with_columns(share=pl.lit(0.5))
    sets = replace(found.rule_sets, switches=switches, totals=totals)
    assert "One difference, brings_more (1 → 2), alone brings 40.0 %" in say.rules(
        replace(found, rule_sets=sets)
    ).sentence.replace(THIN, " ")


def test_rule_sets_agree_on_what_is_clear(found):
    sets = found.rule_sets
    assert (sets.current, sets.other) == ("document", "production")
    matrix = {(row["here"], row["there"]) for row in sets.matrix.to_dicts()}
    assert matrix == {("hi", "hi"), ("mid", "mid"), ("lo", "lo"), ("none", "none")}
    assert sets.switches["share"].to_list() == [0] * sets.switches.height
    assert (
        say.rules(found).sentence
        == "The production rules class every queue as the document rules do."
    )


def test_shares_against_targets(found):
    usage = dict(found.targets.leaves.select("gshare", "share").iter_rows())
    assert usage == {
        "User Analysis": pytest.approx(4),
        "Rest": 0,
    }  # it runs alone, its target is a quarter
    assert "2 of 2 leaf shares are off target" in say.shares(found).sentence


def test_without_tasks_a_part_has_no_answer(found):
    assert say.tasks(found).kind == "no_answer"
    assert pictures.tasks(found) is None
    assert any("there is no status log" in said for said in say.cannot_tell(found))


def test_nothing_to_rate_by_is_said(tmp_path):
    folder = tmp_path / "bare"
    plain = jobs().filter(pl.col("processingtype") == "run")
    with ArchiveWriter(folder) as writer:
        writer.write("jobs", plain)
        writer.commit()
    bare = study(load(folder, every="1d"), grids=GRIDS, **DICE)
    page = assemble(bare, tmp_path / "charts")
    assert page.verdict.kind == "no_answer"
    assert page.verdict.sentence.startswith(
        "No answer: the archive has no merge job of User Analysis"
    )
    assert {part.verdict.kind for part in page.parts} == {"no_answer"}


def test_no_analysis_job_and_no_instant_are_refused(archive, tmp_path):
    folder = tmp_path / "none"
    with ArchiveWriter(folder) as writer:
        writer.write("jobs", jobs().with_columns(prodsourcelabel=pl.lit("managed")))
        writer.commit()
    with pytest.raises(DataError, match="no analysis job"):
        load(folder)
    with pytest.raises(DataError, match="no instant from 2027-01-01"):
        load(archive, start="2027-01-01")


def rated(classes, queue="Q"):
    names = {"hi": "hi", "mid": "mid", "lo": "lo", "none": "mid"}
    at = [START + timedelta(hours=hour) for hour in range(len(classes))]
    return pl.DataFrame(
        {"snapshot": range(len(classes)), "queue": queue, "at": at, "class_name": classes,
         "used": [names[name] for name in classes], "slots": 1, "jobs": 1}
    ).with_columns(day=pl.col("at").dt.date())  # fmt: skip


def test_changes_count_as_the_brokerage_sees_them():
    rows = pl.concat([rated(["hi", "lo", "mid", "none"] * 12), rated(["mid"] * 48, "R")])
    marked = flags(rows)
    assert marked.filter(queue="Q", snapshot=0).select("change", "up").row(0) == (0, 0)
    per_queue = (
        marked.group_by("queue").agg(pl.col("change", "up", "down", "jump").sum()).sort("queue")
    )
    # hi to lo and lo to mid every time, none is mid; mid to hi between two rounds
    assert per_queue.rows() == [("Q", 35, 23, 12, 12), ("R", 0, 0, 0, 0)]
    assert marked.filter(queue="Q")["modal"].unique().to_list() == ["mid"]
    parts = overall(marked, 1 / 24, **DICE)
    shares = dict(parts.filter(over="day").select("part", "share").iter_rows())
    # two queues, 47 of 48 hours each: of the first instant nobody knows what was before
    assert shares["per_day"] == pytest.approx(35 / (2 * 47 / 24))
    one = dict(by_queue(marked, 1 / 24, **DICE).filter(part="per_day").select("queue", "share").iter_rows())  # fmt: skip
    assert one == {"Q": pytest.approx(35 / (47 / 24)), "R": 0}
    assert shares["none"] == pytest.approx(12 / 96)
    assert shares["jump"] == pytest.approx(12 / 35)
    assert set(parts.filter(over="queue")["n"]) == {2}


def test_spells_join_equal_classes_and_coarsen_where_there_are_many():
    rows = rated(["hi", "hi", "mid", "hi", "lo", "lo"])
    exact = spells(rows, ["Q"], most=10)
    assert exact.select("class_name", "start", "end").rows()[:2] == [
        ("hi", START, START + timedelta(hours=2)),
        ("mid", START + timedelta(hours=2), START + timedelta(hours=3)),
    ]
    coarse = spells(rows, ["Q"], most=2)
    assert coarse.select("class_name", "instants").rows() == [("hi", 2), ("lo", 2)]
    assert coarse["end"].max() == exact["end"].max() == START + timedelta(hours=6)


def test_quantiles_with_intervals_over_days():
    draw = np.random.default_rng(5)
    waits = draw.exponential(1000, 4000)
    days = [date(2026, 3, 1) + timedelta(days=int(day)) for day in draw.integers(0, 20, 4000)]
    (median, low, high), _ = quantiles(
        pl.DataFrame({"wait_s": waits, "day": days}), n_boot=300, seed=1
    )
    assert median == pytest.approx(float(np.median(waits)))
    assert 600 < low < median < high < 800  # 693 in truth
    assert quantiles(pl.DataFrame({"wait_s": [], "day": []}), n_boot=50, seed=1)[0] == (
        None,
        None,
        None,
    )


def test_bands_hold_their_lower_end():
    frame = pl.DataFrame({"sum_of_weights": [0.0, 0.99, 1.0, 3.0, 10.0, None]})
    assert frame.select(band()).to_series().to_list() == [
        "below 1", "below 1", "1 to 3", "3 to 10", "10 and more", None]  # fmt: skip


def test_words():
    assert [time(s) for s in (30, 5399, 5400, None)] == ["0.5 min", "90 min", "1.5 h", "unknown"]
    assert [setting(0.33, "fraction"), setting(3, "jobs")] == ["0.33", "3 jobs"]


def test_wrong_parameters_all_at_once():
    with pytest.raises(ConfigError) as caught:
        check(grids={**GRIDS, "low_ranks": [33], "hi_hours": [-1]}, rules="documents", every="soon", queues_shown=0,
              n_boot=1, seed=-1, start="yesterday")  # fmt: skip
    message = str(caught.value)
    for part in ("low_ranks: 33: allowed is a number of at least 0 and at most 1", "hi_hours: -1: allowed",
                 "rules='documents'", "every='soon'", "queues_shown=0: must be 1", "n_boot=1: must be 20",
                 "seed=-1", "start='yesterday'"):  # fmt: skip
        assert part in message
