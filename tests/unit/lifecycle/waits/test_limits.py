"""What other limits would do."""

from __future__ import annotations

import math

import polars as pl
import pytest

from brokerlab.archive.store import Archive
from brokerlab.errors import ConfigError
from brokerlab.lifecycle.timeouts import TimeoutRules, decision_table, histories, would_fire
from brokerlab.lifecycle.waits import (
    Waiting,
    all_limits_changed,
    compare_rule_sets,
    label_outcomes,
    limit_changes,
    other_limits,
    read_waiting,
    undecided_by_end,
    wasted_waiting,
)
from brokerlab.lifecycle.waits.limits import pair_fates
from tests.unit.lifecycle.timeouts.test_history import END, SCHEMA, TIMES, at, job, table


def limits_of(jobs: pl.DataFrame, scales: list[float], rules: str = "document") -> pl.DataFrame:
    """Judge jobs at scales of the limits."""
    read = histories(jobs, at=END, rules=TimeoutRules(rules), least=min(scales))
    return other_limits({s: label_outcomes(read.fired(s), until=END) for s in scales})


def test_shorter_and_longer_limits() -> None:
    found = limits_of(table(), [2.0, 0.5, 1.0]).filter(rule="activated")
    assert found.select("value", "is_current", "jobs", "waited_h", "soon").rows() == [
        (0.5, False, 4, 96.0, 0),
        (1.0, True, 3, 144.0, 1),
        (2.0, False, 2, 192.0, 0),
    ]
    assert found["after_h"].to_list() == [6 + 25 + 76 + 936, 1 + 52 + 912, 4 + 864]


def test_scaled_heartbeats_wait_for_the_second_look_along() -> None:
    live = job(status="running", starttime=1, statechangetime=1, modificationtime=9)
    jobs = pl.DataFrame([{name: live.get(name) for name in SCHEMA}], schema=SCHEMA)
    beats = limits_of(jobs, [0.5, 1, 3], "production").filter(rule="heartbeat")
    assert beats["waited_h"].to_list() == [1.0, 2.0, 6.0]


def test_bad_scales_are_refused(period: Waiting) -> None:
    fired = period.firings()
    for scales in ((0.5,), (1.0, 0.0), (1.0, -1.0)):
        with pytest.raises(ConfigError, match="scales="):
            other_limits(dict.fromkeys(scales, fired))


def test_jobs_that_still_wait_at_the_end_of_the_history_are_undecided_for_a_while() -> None:
    live = [
        job(n, "activated", **dict.fromkeys(TIMES[1:2] + TIMES[4:], start))
        for n, start in enumerate((40 * 24 - 48.5, 40 * 24 - 60))
    ]
    jobs = pl.DataFrame([{n: row.get(n) for n in SCHEMA} for row in live], schema=SCHEMA)
    fired = would_fire(jobs, at=END).filter(rule="activated")
    found = wasted_waiting(label_outcomes(fired, until=END))
    columns = ("rule", "jobs", "soon", "ended", "still", "undecided", "after_h", "soon_share")
    assert found.select(columns).rows() == [("activated", 2, 0, 0, 1, 1, 12.5, 0)]


def test_the_first_rule_of_a_job_is_the_one_that_fires_first() -> None:
    rows = [
        (1, 5, "b", "kill", 2), (1, 4, "a", "fail", 2), (1, 3, "c", "reassign", 2), (1, 9, "d", "kill", 1),
        (2, 5, "b", "kill", 2), (2, 6, "c", "kill", 2),
    ]  # fmt: skip
    columns = ["pandaid", "number", "rule", "action", "hour"]
    fired = pl.DataFrame(rows, schema=columns, orient="row").select(
        pl.exclude("hour"),
        fires=pl.lit(at(0)) + pl.duration(hours="hour"),
        since=pl.lit(at(0)),
        left=pl.lit(at(3)),
        outcome=pl.lit("went_on"),
        computingsite=pl.lit(None, dtype=pl.String),
        currentpriority=pl.lit(800),
    )
    labelled = label_outcomes(fired, until=END)
    assert labelled.filter("first").select("pandaid", "rule").rows() == [(1, "d"), (2, "b")]
    assert labelled.filter(pandaid=1)["rule"].to_list() == ["d", "a", "b", "c"]
    assert set(labelled["unit"]) == {"none"}
    assert set(labelled["priority"]) == {"urgent"}


def test_other_limits_rule_by_rule(period: Waiting) -> None:
    by_scale = {scale: period.firings(scale) for scale in (0.5, 1.0, 2.0)}
    found = other_limits(by_scale, units=period.units["unit"], n_boot=50)
    names = ("value", "limit_h", "jobs", "soon", "after_h", "more_jobs", "more_after_h", "more_soon")  # fmt: skip
    assert found.filter(rule="activated").select(names).rows() == [
        (0.5, 24, 7, 0, 24.5 + 36 + 6 + 26 + 24.25 + 76 + 25, 1, 217.75 - 67.75, -1),
        (1, 48, 6, 1, 67.75, 0, 0, 0),
        (2, 96, 1, 0, 4, -5, 4 - 67.75, -1),
    ]
    assert found.filter(rule="all rules")["jobs"].to_list() == [8, 7, 2]
    assert found.filter(rule="all rules")["limit_h"].null_count() == 3
    for row in found.to_dicts():
        assert row["after_h_lo"] <= row["after_h"] <= row["after_h_hi"]
    now = found.filter("is_current")
    assert set(now["more_soon_lo"]) == set(now["more_after_h_hi"]) == {0}
    left = dict(undecided_by_end(by_scale).filter(rule="activated").select("value", "n_waiting").iter_rows())  # fmt: skip
    assert left == {2.0: 2}  # jobs 6 and 9 may or may not come to wait for four days


def test_limits_that_change_something_and_their_keys(period: Waiting) -> None:
    by_scale = {scale: period.firings(scale) for scale in (0.25, 0.5, 1.0, 1.5, 2.0)}
    limits = other_limits(by_scale)
    found = limit_changes(period, limits)
    assert found.select("name", "value", "more_after_h", "set_by").rows()[:2] == [
        ("activated", 0.5, 150, None), ("activated", 2, -63.75, None)
    ]  # fmt: skip
    together = all_limits_changed(limits).select("value", "jobs", "setting", "label").rows()
    assert [row[:1] + row[2:] for row in together] == [
        (0.25, "other limits", "× 0.25"),
        (0.5, "other limits", "× 0.5"),
        (1, "current", "current"),
        (1.5, "other limits", None),
        (2, "other limits", "× 2"),
    ]
    assert [row[1] for row in together][2] == 7
    assert all_limits_changed(other_limits({1.0: period.firings(1e6)})).is_empty()


def test_a_limit_that_a_key_sets_names_it(period: Waiting) -> None:
    rules = decision_table(rules=period.rules, config=period.config)
    limits = rules.select("number", "rule", "action", value=0.5, more_jobs=1.0, more_after_h=1.0)
    set_by = dict(limit_changes(period, limits).select("name", "set_by").iter_rows())
    assert set_by["holding_lo"] == "TIMEOUT_holding"
    assert set_by["activated"] is None


def test_a_rule_that_fires_at_one_scale_alone_has_a_row_at_every_one(period: Waiting) -> None:
    by_scale = {1.0: period.firings(1e6), 0.5: period.firings()}
    found = other_limits(by_scale).filter(rule="heartbeat")
    assert found.select("value", "jobs", "more_jobs", "limit_h").rows() == [
        (0.5, 1, 1, 2), (1, 0, 0, 4)
    ]  # fmt: skip


def test_limits_shorter_than_waits_were_read_for_are_refused_not_counted_in_part(
    archive: Archive,
) -> None:
    as_set, half = read_waiting(archive), read_waiting(archive, least=0.5)
    assert half.firings(0.5).height > half.firings().height == as_set.firings().height
    for scale in (0.5, 0, -1, math.nan):
        with pytest.raises(ConfigError, match=r"read for limits of 1 times .* again with least="):
            as_set.firings(scale)
    with pytest.raises(ConfigError, match=r"read them again with least=0\.25"):
        half.firings(0.25)


def test_rule_sets_job_by_job(period: Waiting) -> None:
    found = compare_rule_sets(period, period.firings(), n_boot=50)
    kinds = dict(found.kinds.select("kind", "jobs").iter_rows())
    # paused spares no activated job in production; a job that must stay is spared there
    assert kinds == {"only_current": 1, "only_other": 1, "same": 6}
    assert found.kinds["kind"].to_list() == ["same", "only_current", "only_other"]
    assert (found.n_any, found.n_different) == (8, 2)
    changed = found.switches.filter(pl.col("n_changed") > 0)
    assert changed.select("switch", "n_changed", "explained").rows() == [
        ("exemption_mode", 1, 0.5), ("label_limits", 1, 0.5)
    ]  # fmt: skip
    by_rule = found.by_rule.select("rule", "current", "other").rows()
    assert by_rule == [("activated", 6, 6), ("heartbeat", 1, 1)]
    assert found.pairs.select("current", "other", "jobs").rows() == [
        (None, "activated", 1), ("activated", None, 1)
    ]  # fmt: skip


def test_fates_side_by_side() -> None:
    def fates(*rows: tuple[int, str, int]) -> pl.DataFrame:
        told = [(n, "u", rule, "fail", at(hour)) for n, rule, hour in rows]
        return pl.DataFrame(told, schema=["pandaid", "unit", "rule", "action", "fires"], orient="row")  # fmt: skip

    mine = fates((1, "sent", 1), (2, "sent", 1), (3, "sent", 1), (4, "sent", 1))
    theirs = fates((1, "sent", 1), (2, "running", 1), (3, "sent", 2), (5, "sent", 1))
    kinds = pair_fates(mine, theirs).select("pandaid", "kind").rows()
    assert kinds == [(1, "same"), (2, "other_rule"), (3, "other_time"), (4, "only_current"), (5, "only_other")]  # fmt: skip
    killed = mine.with_columns(action=pl.lit("kill"))
    assert set(pair_fates(mine, killed)["kind"]) == {"other_rule"}
