"""Classes over a period, on a toy archive whose classes are known."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from brokerlab.archive.store import open_archive
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.errors import ConfigError, EmptyPeriodError, MissingTableError
from brokerlab.lifecycle import class_history as history
from brokerlab.lifecycle import classes
from brokerlab.lifecycle.class_history.waits import band
from brokerlab.lifecycle.classification import ClassRules
from brokerlab.units import HOUR_S
from tests.unit.lifecycle.class_history.toy import (
    DICE,
    HOURS,
    START,
    WAITS,
    jobs,
    write_archive,
    write_jobs,
)

VALUES = {
    "percentile_low": [0.33, 1.0],
    "percentile_high": [0.67],
    "hi_limit_hours": [1, 4],
    "lo_limit_hours": [0, 3, 12],
    "short_queue_jobs": [0, 3],
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return open_archive(write_archive(tmp_path_factory.mktemp("archives") / "toy"))


@pytest.fixture(scope="module")
def period(archive):
    return history.period.read_period(archive, every="2h")


@pytest.fixture(scope="module")
def ratings(period):
    return history.ratings.rate_queues(period)


@pytest.fixture(scope="module")
def moved(ratings):
    return history.alternatives.compare_values(ratings, VALUES, **DICE)


def test_waits_are_the_recorded_ones_without_a_log(period):
    assert period.n_logged is None
    assert period.rules == replace(ClassRules(), wait_time="recorded")
    assert period.n_sampled == len(WAITS) * HOURS * 3
    assert (period.states, period.lacking, period.share_problem) == (None, (), "")


def test_queues_keep_the_class_that_their_waits_give_them(ratings, period):
    usual = dict(ratings.cells.group_by("queue").agg(pl.col("class_name").unique()).iter_rows())
    assert usual == {
        "FAST": ["hi"],
        "MID": ["mid"],
        "SLOW": ["lo"],
        "EMPTY": ["none"],
        "NEVER": ["none"],
    }
    marked = history.ratings.mark_changes(ratings.cells)
    slow = history.ratings.stability(marked, period.step_days, by=["queue"], **DICE).filter(
        queue="SLOW"
    )
    parts = ["hi", "mid", "lo", "none", "in_modal", "per_day"]
    assert slow.select(parts).row(0) == (0, 0, 1, 0, 1, 0)
    each = history.waits.describe_queues(marked, period.step_days, **DICE)
    assert each["jobs"].is_sorted(descending=True)
    assert each.filter(queue="SLOW").select(*parts, "modal").row(0) == (0, 0, 1, 0, 1, 0, "lo")
    assert each.filter(queue="NEVER").select("jobs", "limit_s").row(0) == (0, None)
    counts = {"usually_hi": 1, "usually_mid": 1, "usually_lo": 1, "usually_none": 2}
    assert history.ratings.count_usual(each) == {"n_queues": 5, **counts, "changing": 0, "never": 2}
    empty = ratings.cells.filter(queue="EMPTY")
    assert empty["reason"].unique().to_list() == ["no_sample"]
    assert empty["used"].unique().to_list() == ["mid"]
    missing = history.ratings.missing_classes(ratings.cells).row(0, named=True)
    assert (missing["reason"], missing["share"], missing["queues"]) == ("no_sample", 0.4, 2)
    assert missing["jobs"] == empty["jobs"].sum() > 0


def test_cells_count_jobs_and_slots(period, ratings):
    assert ratings.cells.height == 5 * period.instants.height
    last = ratings.cells.filter(pl.col("snapshot") < period.instants.height - 1)
    # two analysis jobs in two hours, merge jobs do not count
    assert last.filter(queue="FAST")["jobs"].unique().to_list() == [2]
    never = ratings.cells.filter(queue="NEVER")
    assert never.select(pl.col("jobs", "slots").sum()).row(0) == (0, 0)
    total = (
        history.ratings.slots_over_time(ratings.cells, "1d")
        .group_by("time")
        .agg(pl.col("slots").sum())
    )
    assert total["slots"].max() == pytest.approx(4 * 8)  # each runs for an hour, eight cores


def test_shares_of_the_classes(ratings):
    shares = history.ratings.class_shares(history.ratings.mark_changes(ratings.cells), **DICE)
    assert shares["class_name"].to_list() == ["hi", "mid", "lo", "none"]
    assert shares["cells"].to_list() == pytest.approx([0.2, 0.2, 0.2, 0.4])
    assert shares["jobs"].to_list() == pytest.approx([0.25] * 4)
    assert shares["over_queues"].to_list() == pytest.approx([0.2, 0.2, 0.2, 0.4])
    # days are alike, queues are not
    assert shares.select("cells_lo", "cells_hi").row(0) == pytest.approx((0.2, 0.2))
    assert shares["over_queues_lo"][0] < 0.2 < shares["over_queues_hi"][0]


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
def test_other_numbers_of_the_rules_move_queues(moved, key, value, share, usual, better, worse):
    row = moved.filter(key=key, value=value).row(0, named=True)
    assert (row["differs"], row["n_queues"]) == (pytest.approx(share), usual)
    assert (row["better"], row["worse"]) == (pytest.approx(better), pytest.approx(worse))
    # four queues get jobs, all of them as many
    assert row["jobs"] == pytest.approx(0.25 if share else 0)


def test_values_are_in_order_and_hold_the_current_one(moved):
    assert moved["key"].unique(maintain_order=True).to_list() == list(VALUES)
    assert moved.filter("is_current").select("key", "value").rows() == [
        ("percentile_low", 0.33),
        ("percentile_high", 0.67),
        ("hi_limit_hours", 1.0),
        ("lo_limit_hours", 3.0),
        ("short_queue_jobs", 3.0),
    ]
    assert moved.filter(key="lo_limit_hours")["value"].is_sorted()


def test_values_next_to_the_current_ones(moved):
    near = history.alternatives.next_to_current(moved)
    assert near.select("key", "value").rows() == [
        ("percentile_low", 1.0),
        ("hi_limit_hours", 4.0),
        ("lo_limit_hours", 0.0),
        ("lo_limit_hours", 12.0),
        ("short_queue_jobs", 0.0),
    ]


def test_what_sets_the_limits(ratings):
    rows = history.alternatives.binding_limits(ratings, **DICE)
    columns = ["limit", "rank", "hours_s", "by_percentile", "cut"]
    assert rows.select(columns).rows() == [
        ("hi", 0.33, HOUR_S, 1, 0),
        ("lo", 0.67, 3 * HOUR_S, 1, 0),
    ]
    assert 2 * HOUR_S > rows["percentile_s"][0] > HOUR_S
    assert rows["in_class"].to_list() == pytest.approx([1 / 3, 1 / 3])


def test_jobs_waited_as_their_queue_is_rated(ratings):
    jobs = history.waits.jobs_at_classes(ratings)
    rows = history.waits.waits_by_class(jobs, **DICE).filter(kind="steered")
    assert dict(rows.select("class_name", "median_s").iter_rows()) == {
        "hi": 120, "mid": 7200, "lo": 18_000, "none": 600}  # fmt: skip
    hi = rows.row(0, named=True)
    assert hi["median_s_lo"] == hi["median_s_hi"] == 120
    weights = history.waits.limits_by_weight(ratings, jobs, **DICE)
    assert weights["band"].to_list() == ["10 and more", "all"]
    assert weights["steered"].to_list() == weights["sampled"].to_list() == [0, 0]
    still = history.waits.still_waiting(jobs, **DICE).filter(class_name="hi")
    assert still.filter(pl.col("time_s") < 119)["share"].unique().to_list() == [1]
    assert still.filter(pl.col("time_s") > 121)["share"].unique().to_list() == [0]


def test_classes_the_wrong_way_round_are_named(ratings):
    waits = history.waits.waits_by_class(history.waits.jobs_at_classes(ratings), **DICE)

    def order(**medians):
        name = pl.col("class_name")
        ends = {
            f"median_s_{end}": pl.coalesce(
                *(pl.when(name == n).then(pl.lit(v[i])) for n, v in medians.items()),
                pl.col(f"median_s_{end}"),
            )
            for i, end in enumerate(("lo", "hi"))
        }
        return history.waits.compare_medians(waits.with_columns(**ends)).rows()

    apart = ("mid", "lo", "right")
    assert order(hi=(100.0, 200.0)) == [("hi", "mid", "right"), apart]
    assert order(hi=(100.0, 8000.0)) == [("hi", "mid", "unclear"), apart]
    assert order(hi=(9000.0, 9100.0)) == [("hi", "mid", "wrong"), apart]
    of_one_day = waits.with_columns(pl.lit(None, pl.Float64).alias("median_s_lo"))
    assert history.waits.compare_medians(of_one_day).is_empty()


def test_rule_sets_agree_on_what_is_clear(ratings):
    compared = history.alternatives.compare_rule_sets(ratings, ClassRules("production"), **DICE)
    assert compared.there.rules.wait_time == "recorded"
    assert compared.matrix["here"].to_list() == ["hi", "mid", "lo", "none"]
    shares = compared.matrix.select("hi", "mid", "lo", "none").to_numpy()
    assert shares == pytest.approx(np.diag([0.2, 0.2, 0.2, 0.4]))
    assert compared.totals["differs"].item() == 0
    assert set(compared.switches["share"]) == {0}
    assert {"half_life_hours", "hi_test"} < set(compared.switches["switch"])
    assert "task_rules" not in compared.switches["switch"]


def test_the_difference_that_moves_queues_is_named(ratings):
    other = replace(ClassRules(), percentile_low=1.0, threshold_inclusive=False)
    compared = history.alternatives.compare_rule_sets(ratings, other, **DICE)
    assert compared.totals.select("differs", "better", "worse").row(0) == pytest.approx(
        (0.2, 0.2, 0)
    )
    (row,) = compared.switches.to_dicts()
    assert (row["switch"], row["here"], row["there"]) == ("percentile_low", "0.33", "1.0")
    assert (row["share"], row["explained"]) == (pytest.approx(0.2), 1)
    alike = history.alternatives.compare_rule_sets(ratings, ratings.rules, **DICE)
    assert alike.switches.is_empty()
    assert {"share", "share_lo", "share_hi"} < set(alike.switches.columns)


def test_shares_against_targets(period):
    leaves = history.tasks.shares_against_targets(period.share_usage, **DICE)
    # it runs alone, its target is a quarter
    assert leaves.select("gshare", "usage", "off_target").rows() == [
        ("User Analysis", pytest.approx(4), True),
        ("Rest", 0, True),
    ]
    assert history.tasks.shares_over_time(period.share_usage, "1d")["usage"].max() == pytest.approx(
        4
    )


def test_without_tasks_none_are_rated(ratings):
    assert history.tasks.rate_tasks(ratings) is None


def tasks(classes):
    """Two tasks of ann and one of bob at two instants; cid has slots and no task."""
    cells = pl.DataFrame(
        {
            "snapshot": [0, 0, 0, 1, 1],
            "at": [START, START, START, START + timedelta(days=1), START + timedelta(days=1)],
            "jeditaskid": [1, 2, 3, 1, 3],
            "user": ["ann", "ann", "bob", "ann", "bob"],
            "gshare": [
                "Express Analysis",
                *["User Analysis"] * 2,
                "Express Analysis",
                "User Analysis",
            ],
            "class_name": classes,
        }
    ).with_columns(day=pl.col("at").dt.date())
    usage = pl.DataFrame(
        {
            "snapshot": [0, 1, 0, 1],
            "produsername": ["ann", "ann", "_total", "cid"],
            "slots_hi": [4, 0, 99, 1],
            "slots_mid": [2, 7, 99, 0],
            "slots_lo": [0, 1, 99, 0],
            "threshold_a": [10.0, 20.0, 10.0, 20.0],
            "threshold_b": [30.0, 40.0, 30.0, 40.0],
        }
    )
    return history.tasks.TaskRatings(cells=cells, usage=usage)


def test_tasks_by_share_and_user():
    rated = tasks(["S", "A", "B", "S", "not_rated"])
    assert (rated.n_tasks, rated.thresholds) == (3, (20.0, 40.0))
    by_share = history.tasks.task_classes_by(rated, "gshare", **DICE)
    assert by_share.select("n_tasks", "S", "A", "B", "C", "not_rated").row(0) == (3, 0.4, 0.2, 0.2, 0, 0.2)  # fmt: skip
    assert by_share[1:].select("gshare", "n_tasks", "S", "n_units").rows() == [
        ("Express Analysis", 1, 1.0, 2),
        ("User Analysis", 2, 0.0, 2),
    ]
    users = history.tasks.slots_of_users(rated, **DICE)
    assert users.select(
        "user", "n_tasks", "slots_hi", "slots_mid", "peak_a", "peak_b", "S"
    ).rows() == [
        ("ann", 2, 2.0, 4.5, 4, 7, pytest.approx(2 / 3)),
        ("cid", 0, 1.0, 0.0, 1, 1, None),
        ("bob", 1, 0.0, 0.0, 0, 0, 0.0),
    ]


def test_tasks_over_time_and_under_other_rules():
    rated = tasks(["S", "A", "B", "S", "B"])
    other = tasks(["S", "A", "A", "S", "B"])
    changed = history.tasks.changed_tasks(rated, other, **DICE)
    assert changed.select("differs", "unrated").row(0) == pytest.approx((0.2, 0))
    bare = tasks(["not_rated", "not_rated", "A", "S", "B"])
    changed = history.tasks.changed_tasks(rated, bare, **DICE)
    assert changed.select("differs", "unrated").row(0) == pytest.approx((0.6, 0.4))
    instants = pl.DataFrame({"at": [START, START + timedelta(hours=1), START + timedelta(days=1)]})
    timed = history.tasks.tasks_over_time(rated, instants, "1d").filter(gshare="User Analysis")
    assert timed.select("class_name", "tasks").rows() == [
        ("A", 0.5),  # at one of two instants of the day
        ("B", 0.5),
        ("A", 0.0),
        ("B", 1.0),
    ]


def test_nothing_to_rate_by_gives_every_queue_none(tmp_path):
    plain = jobs().filter(pl.col("processingtype") == "run")
    period = history.period.read_period(
        open_archive(write_jobs(tmp_path / "bare", plain)), every="1d"
    )
    bare = history.ratings.rate_queues(period)
    assert (period.n_sampled, bare.n_rated) == (0, 0)
    assert set(bare.cells["class_name"]) == {"none"}
    assert history.alternatives.binding_limits(bare, **DICE).is_empty()
    assert (
        history.alternatives.compare_rule_sets(bare, ClassRules("production"), **DICE).totals[
            "differs"
        ][0]
        == 0
    )


def test_no_jobs_and_no_instant_are_refused(archive, tmp_path):
    managed = jobs().with_columns(prodsourcelabel=pl.lit("managed"))
    with pytest.raises(EmptyPeriodError, match="no analysis job"):
        history.period.read_period(open_archive(write_jobs(tmp_path / "managed", managed)))
    with pytest.raises(EmptyPeriodError, match="no instant from 2027-01-01"):
        history.period.read_period(archive, start=datetime(2027, 1, 1))


def test_an_archive_without_jobs_is_refused(tmp_path):
    with ArchiveWriter(tmp_path / "other") as writer:
        writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        writer.commit()
    with pytest.raises(MissingTableError, match="jobs"):
        history.period.read_period(open_archive(tmp_path / "other"))


def rated(classes, queue="Q"):
    names = {"hi": "hi", "mid": "mid", "lo": "lo", "none": "mid"}
    at = [START + timedelta(hours=hour) for hour in range(len(classes))]
    return pl.DataFrame(
        {"snapshot": range(len(classes)), "queue": queue, "at": at, "class_name": classes,
         "used": [names[name] for name in classes], "slots": 1, "jobs": 1}
    ).with_columns(day=pl.col("at").dt.date())  # fmt: skip


def test_changes_count_as_the_brokerage_sees_them():
    rows = pl.concat([rated(["hi", "lo", "mid", "none"] * 12), rated(["mid"] * 48, "R")])
    marked = history.ratings.mark_changes(rows)
    assert marked.filter(queue="Q", snapshot=0).select("change", "up").row(0) == (0, 0)
    per_queue = (
        marked.group_by("queue").agg(pl.col("change", "up", "down", "jump").sum()).sort("queue")
    )
    # hi to lo and lo to mid every time, none is mid; mid to hi between two rounds
    assert per_queue.rows() == [("Q", 35, 23, 12, 12), ("R", 0, 0, 0, 0)]
    assert history.ratings.usual_classes(marked)["modal"].to_list() == ["mid", "mid"]
    row = history.ratings.stability(marked, 1 / 24, **DICE).row(0, named=True)
    # two queues, 47 of 48 hours each: of the first instant nobody knows what was before
    assert row["per_day"] == pytest.approx(35 / (2 * 47 / 24))
    assert row["none"] == pytest.approx(12 / 96)
    assert row["jump"] == pytest.approx(12 / 35)
    assert row["n_units"] == 2  # days
    by_queue = history.ratings.stability(marked, 1 / 24, by=["queue"], **DICE)
    assert by_queue["per_day"].to_list() == pytest.approx([35 / (47 / 24), 0])


def test_the_busiest_queues_come_the_quickest_first():
    rows = pl.concat([rated(["lo"], "A"), rated(["hi"], "B"), rated(["mid"], "C")])
    marked = history.ratings.mark_changes(rows.with_columns(jobs=pl.Series([2, 3, 1])))
    assert history.ratings.busiest_queues(marked, 2) == ["B", "A"]


def test_spells_join_equal_classes_and_coarsen_where_there_are_many():
    rows = rated(["hi", "hi", "mid", "hi", "lo", "lo"])
    exact = history.ratings.class_spells(rows, ["Q"], most=10)
    assert exact.select("class_name", "start", "end").rows()[:2] == [
        ("hi", START, START + timedelta(hours=2)),
        ("mid", START + timedelta(hours=2), START + timedelta(hours=3)),
    ]
    coarse = history.ratings.class_spells(rows, ["Q"], most=2)
    assert coarse.select("class_name", "instants").rows() == [("hi", 2), ("lo", 2)]
    assert coarse["end"].max() == exact["end"].max() == START + timedelta(hours=6)


def test_quantiles_with_intervals_over_days():
    draw = np.random.default_rng(5)
    waits = draw.exponential(1000, 4000)
    days = [date(2026, 3, 1) + timedelta(days=int(day)) for day in draw.integers(0, 20, 4000)]
    row = history.waits.wait_quantiles(pl.DataFrame({"wait_s": waits, "day": days}), n_boot=300)
    assert row["median_s"] == pytest.approx(float(np.median(waits)))
    assert 600 < row["median_s_lo"] < row["median_s"] < row["median_s_hi"] < 800  # 693 in truth
    one_day = pl.DataFrame({"wait_s": [10.0, 30.0], "day": [date(2026, 3, 1)] * 2})
    assert history.waits.wait_quantiles(one_day)["median_s_lo"] is None
    empty = one_day.clear()
    assert set(history.waits.wait_quantiles(empty).values()) == {None}


def test_bands_hold_their_lower_end():
    frame = pl.DataFrame({"sum_of_weights": [0.0, 0.99, 1.0, 3.0, 10.0, None]})
    assert frame.select(band()).to_series().to_list() == [
        "below 1", "below 1", "1 to 3", "3 to 10", "10 and more", None]  # fmt: skip


def test_rules_by_name_and_times_as_text(archive):
    asked = {"start": "2026-03-06", "end": "2026-03-06T03:00", "every": "3h"}
    named = classes(archive, rules="production", **asked)
    given = classes(archive, rules=ClassRules("production"), **asked)
    assert named.rules == given.rules
    assert named.cells.equals(given.cells)
    assert named.cells["at"].unique().to_list() == [datetime(2026, 3, 6), datetime(2026, 3, 6, 3)]


def test_times_with_a_zone_are_refused(archive):
    with pytest.raises(ConfigError, match=r"end=.*has a zone; UTC without zone is needed"):
        classes(archive, end=datetime(2026, 3, 6, tzinfo=UTC))


def test_a_number_that_the_rules_do_not_have_is_refused(ratings):
    with pytest.raises(ConfigError, match="percentile_lo, did you mean 'percentile_low'"):
        history.alternatives.compare_values(ratings, {"percentile_lo": [0.1]}, **DICE)


@pytest.mark.parametrize("descending", [False, True])
def test_of_a_queue_with_a_history_the_latest_row_counts(tmp_path, descending):
    days = [START, START + timedelta(days=1), START + timedelta(days=2)]
    queues = pl.DataFrame(
        {
            "panda_queue": "FAST",
            "type": "unified",
            "status": "online",
            "ts": days,
            "resource_type_q": ["hpc", "cloud", "GRID"],
        }
    )
    with ArchiveWriter(tmp_path / "some") as writer:
        writer.write("jobs", jobs())
        writer.write("queues", queues.sort("ts", descending=descending))
        writer.commit()
    known = history.period.read_period(open_archive(tmp_path / "some"), every="12h").queues
    assert known.filter(panda_queue="FAST")["resource_type"].to_list() == ["GRID"]
