"""What is read of a period, and which of its rules fire."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage.replaying.counts import Counts
from brokerlab.errors import ConfigError, EmptyPeriodError, InsufficientDataError
from brokerlab.lifecycle.timeouts import TimeoutRules
from brokerlab.lifecycle.waits import (
    Waiting,
    by_level,
    by_rule,
    fired_before,
    firings_over_time,
    late_rules,
    numbers_of,
    other_limits,
    quiet_rules,
    read_waiting,
    study_waiting,
    wasted_waiting,
)
from brokerlab.lifecycle.waits.fast import PLACE
from brokerlab.lifecycle.waits.study import n_silent, waited_before_start_h
from brokerlab.times import instants_of
from tests.unit.lifecycle.waits.toys import JOBS, QUEUES, at, started, waiting, write


def test_what_fires_and_what_became_of_it(period: Waiting) -> None:
    fired = period.firings()
    by_rule = wasted_waiting(fired)
    names = ("rule", "jobs", "waited_h", "after_h", "soon", "later", "ended", "still", "undecided")
    assert by_rule.select(names).rows() == [
        ("activated", 6, 288, 0.5 + 12 + 2 + 0.25 + 52 + 1, 1, 1, 1, 1, 2),
        ("heartbeat", 1, 2, 3, 0, 0, 0, 1, 0),
    ]
    assert by_rule["soon_share"].to_list() == [1 / 4, 0]  # two of six are undecided
    total = wasted_waiting(fired.filter("first"), by=())
    assert total["jobs"].to_list() == [fired["pandaid"].n_unique()] == [7]
    by_queue = wasted_waiting(fired, by=["computingsite", "rule"])
    rows = by_queue.select("computingsite", "rule", "jobs").rows()
    assert rows == [("A", "activated", 2), ("B", "activated", 4), ("B", "heartbeat", 1)]
    assert set(fired["priority"]) == {"other"}
    days = firings_over_time(fired, every="1d", start=period.start, end=period.end)
    activated = days.filter(rule="activated")
    assert activated.filter(jobs=activated["jobs"].max())["time"].to_list() == [datetime(2026, 3, 3)]  # fmt: skip
    assert activated["jobs"].sum() == 6


def test_intervals_draw_every_unit_of_the_period(period: Waiting) -> None:
    assert period.units["unit"].to_list() == ["A", "B", "P"]
    found = wasted_waiting(period.firings(), units=period.units["unit"], n_boot=400)
    (activated, _) = found.to_dicts()
    assert activated["n_units"] == 3
    assert activated["jobs_lo"] == 0 < activated["jobs"] < activated["jobs_hi"]
    assert wasted_waiting(period.firings())["jobs_lo"].null_count() == 2


def test_exempt_queues_and_rules_that_never_fire(period: Waiting) -> None:
    fired = period.firings()
    spared = wasted_waiting(period.exempted(fired))
    assert spared.select("rule", "jobs", "after_h").rows() == [("activated", 1, 12)]
    assert period.n_exempt_queues == 1
    seen = dict(quiet_rules(period, fired).select("rule", "seen").iter_rows())
    assert seen["running"]
    assert not seen["holding_lo"]
    assert "activated" not in seen
    assert (period.n_live, period.n_beating, n_silent(period)) == (5, 1, 1)
    assert (period.total("n_ran"), period.total("n_lost")) == (5, 1)
    assert period.total("lost_us") == 3 * 3_600_000_000
    late = late_rules(period, other_limits({1.0: fired}))
    assert late["rule"].to_list() == ["throttled", "running", "transferring_lo"]  # of 16.7 days


def test_the_period_bounds_what_fires(archive: Archive) -> None:
    short = read_waiting(archive, start=at(48), end=at(49), unit="task")
    fired = short.firings()
    assert sorted(fired["pandaid"]) == [1, 2, 5]  # after 48 h, at midnight
    assert fired["unit"].to_list() == ["1", "0", "1"]
    assert short.total("n_jobs") == 3  # job 3 had started and finished by then
    assert short.units["unit"].to_list() == ["0", "1"]
    assert short.waited_h == pytest.approx(0.5 + 1 + 1)
    assert waited_before_start_h(short, fired) == 0  # they fire as the period begins
    with pytest.raises(ConfigError, match="the period is empty"):
        read_waiting(archive, start=at(96), end=at(96))
    with pytest.raises(EmptyPeriodError, match="no job in the period"):
        read_waiting(archive, start=datetime(2030, 1, 1), end=datetime(2030, 1, 2))


def test_a_period_ends_with_the_archive(archive: Archive, period: Waiting) -> None:
    wide = read_waiting(archive, start=datetime(2025, 1, 1), end=datetime(2027, 1, 1))
    assert (wide.start, wide.end) == (period.start, period.end)
    assert wide.waited_h == period.waited_h
    assert waited_before_start_h(wide, wide.firings()) == 288
    early = read_waiting(archive, end=at(396))  # job 11 has not failed yet
    assert (early.total("n_ran"), early.total("n_lost")) == (4, 0)
    late = read_waiting(archive, start=at(399.5))
    assert "heartbeat" not in late.firings()["rule"]
    assert n_silent(late) == 1  # it fell silent before the period
    with pytest.raises(EmptyPeriodError, match="no job in the period"):
        read_waiting(archive, start=datetime(2025, 1, 1), end=datetime(2025, 2, 1))


def test_no_day_is_left_out_at_the_end(tmp_path: Path) -> None:
    rows = [started(n, "A", 20, creationtime=5, activatedtime=5) for n in range(1, 31)]
    rows += [started(40, "B", 44), started(41, "B", 52.5, creationtime=4, activatedtime=4)]
    rows += [waiting(42, "B", 98, creationtime=49, activatedtime=49)]
    short = read_waiting(write(tmp_path / "short", rows, QUEUES), start=at(5))
    assert (short.start, short.until) == (at(5), at(98))
    fired = short.firings()
    assert fired.select("pandaid", "fires").rows() == [(41, at(52)), (42, at(97))]
    days = firings_over_time(fired, every="1d", start=short.start, end=short.end)
    assert days["time"].to_list() == [at(24 * day) for day in range(5)]
    assert days["jobs"].to_list() == [0, 0, 1, 0, 1]


def test_jobs_that_pass_half_a_limit_before_the_period_are_counted(tmp_path: Path) -> None:
    rows = [
        started(41, "B", 52.5, creationtime=4, activatedtime=4)
    ]  # due at 52 h, by half the limit at 28 h
    rows += [waiting(42, "B", 98, creationtime=49, activatedtime=49)]
    write(tmp_path / "short", rows, QUEUES)
    for start, n in ((5, 0), (40, 1)):
        short = read_waiting(open_archive(tmp_path / "short"), start=at(start), least=0.5)
        assert fired_before(short.firings(), short.firings(0.5)) == n


def test_an_archive_with_too_little(tmp_path: Path) -> None:
    with pytest.raises(InsufficientDataError, match="has no jobs"):
        read_waiting(write(tmp_path / "none", [], QUEUES))
    alone = read_waiting(write(tmp_path / "few", JOBS[:2]))
    assert (alone.n_live, alone.n_exempt_queues) == (0, 0)
    found = wasted_waiting(alone.firings(), by=["rule"], units=alone.units["unit"], n_boot=50)
    assert found.select("jobs", "jobs_lo").rows() == [(2, None)]
    undated = [{**JOBS[0], "creationtime": None}]
    with pytest.raises(InsufficientDataError, match="no job has a time of creation"):
        read_waiting(write(tmp_path / "undated", undated))


def test_where_no_rule_fires(period: Waiting) -> None:
    none = period.firings(1e6)
    units = period.units["unit"]
    assert wasted_waiting(none, units=units, n_boot=50).is_empty()
    (total,) = wasted_waiting(none, by=(), units=units, n_boot=50).to_dicts()
    assert (total["jobs"], total["jobs_hi"], total["soon_share"]) == (0, 0, None)
    assert firings_over_time(none, every="1d", start=period.start, end=period.end).is_empty()
    assert other_limits({1.0: none}, units=units, n_boot=50).is_empty()
    assert waited_before_start_h(period, none) == 0


def test_every_rule_of_the_set_at_a_glance(period: Waiting) -> None:
    rows = {row["rule"]: row for row in by_rule(period, period.firings(), n_boot=50).to_dicts()}
    assert len(rows) == 15
    assert (rows["activated"]["jobs"], rows["activated"]["limit_h"]) == (6, 48)
    assert (rows["activated"]["waited_median_h"], rows["activated"]["waited_max_h"]) == (48, 48)
    assert (rows["activated"]["spared"], rows["heartbeat"]["spared"]) == (1, None)
    assert rows["activated"]["name"] == "activated"
    assert (rows["running"]["jobs"], rows["running"]["limit_h"]) == (0, 504)  # never
    assert (rows["sent"]["jobs"], rows["sent"]["waited_h"]) == (None, None)  # no job was ever sent


def test_levels_of_several_columns(period: Waiting) -> None:
    strata = {"gshare": "share", "computingsite": "queue"}
    found = by_level(period, period.firings(), strata, n_boot=50)
    rows = found.select("stratum", "level", "rule", "jobs").rows()
    assert rows == [
        ("share", "MC", "activated", 6), ("share", "MC", "heartbeat", 1),
        ("queue", "B", "activated", 4), ("queue", "A", "activated", 2), ("queue", "B", "heartbeat", 1),
    ]  # fmt: skip
    drawn = dict(found.group_by("stratum").agg(pl.col("jobs_lo").is_not_null().all()).iter_rows())
    assert drawn == {
        "share": True,
        "queue": False,
    }  # whole queues are drawn: one alone has no interval


def test_single_numbers(period: Waiting) -> None:
    numbers = numbers_of(period, period.firings())
    assert (numbers["n_jobs"], numbers["n_fired"], numbers["n_units"]) == (11, 7, 3)
    assert (numbers["n_queues"], numbers["n_exempt_queues"], numbers["n_silent"]) == (3, 1, 1)
    assert (numbers["lost_h"], numbers["waited_before_start_h"]) == (3, 288)


def test_jobs_without_a_log_are_those_of_the_period(tmp_path: Path) -> None:
    archive = write(tmp_path / "toy", JOBS, QUEUES)
    early = read_waiting(archive, end=at(20))
    assert (early.total("n_jobs"), early.n_unlogged) == (5, 5)  # of eleven


def test_rules_by_name_or_as_a_set_and_times_as_text(archive: Archive) -> None:
    named = read_waiting(archive, rules="production", start="2026-03-02", end="2026-03-10T12:00")
    given = read_waiting(
        archive,
        rules=TimeoutRules("production"),
        start=datetime(2026, 3, 2),
        end=datetime(2026, 3, 10, 12),
    )
    assert named.rules == given.rules
    assert named.firings().equals(given.firings())
    assert named.firings(rules="document").equals(given.firings(rules=TimeoutRules()))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"unit": "site"}, r"unit='site': allowed: queue, task"),
        ({"unit": "taks"}, r"unit='taks': did you mean 'task'\?"),
        ({"start": datetime(2026, 3, 2, tzinfo=UTC)}, "start=.*has a zone"),
        ({"end": "soon"}, "end='soon': allowed is a time such as"),
        ({"rules": 3}, "rules of waiting: given is a int"),
        ({"least": 0}, "least=0"),
        ({"soon_h": -1}, "soon_h=-1"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    archive: Archive, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read_waiting(archive, **asked)


def test_parts_fit_together(period: Waiting) -> None:
    instants = instants_of(period.start, period.end, "12h")
    counts = Counts.of(period.archive.jobs, None, instants).table(*PLACE, "jobstatus")
    study = study_waiting(period, counts, instants, scales=[0.25], n_boot=50)
    fired = period.firings()
    assert study.total["jobs"] == study.numbers["n_fired"] == 7
    assert study.rules["jobs"].sum() == study.by_time["jobs"].sum() == fired.height
    assert sorted(study.limits["value"].unique()) == [0.25, 0.5, 1, 2]
    assert set(study.changes["value"]) == {0.5, 2}
    spared = wasted_waiting(period.exempted(fired))
    assert study.exempted["jobs"].to_list() == spared["jobs"].to_list() == [1]
    assert study.numbers["n_spared"] == 1
    assert study.numbers["n_instants"] == instants.height
    assert study.numbers.items() >= numbers_of(period, fired).items()
    assert study.rule_sets.n_any == study.numbers["n_any"] == 8
    assert study.fast is not None
    assert study.numbers["moved_as_set"] == 0
