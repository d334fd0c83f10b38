"""How the two rule sets time jobs out, job by job."""

from __future__ import annotations

import polars as pl

from brokerlab.lifecycle.waits import Waiting, compare_rule_sets
from brokerlab.lifecycle.waits.rule_sets import pair_fates
from tests.unit.lifecycle.waits.toys import at


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
