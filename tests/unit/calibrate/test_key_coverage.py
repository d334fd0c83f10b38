"""Every key of the catalogue stands in the coverage once, and what it is said to be tried by tries it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import polars as pl
import pytest

import brokerlab
from brokerlab.brokerage.studies.key_effects import check_keys
from brokerlab.brokerage.studies.period import ANALYSIS, PRODUCTION
from brokerlab.calibrate.key_coverage import (
    NO_TRIAL,
    RULE_SETS,
    coverage,
    coverage_of,
    mechanisms,
    read_by,
    screen_keys,
    screened_keys,
)
from brokerlab.calibrate.percentiles.parameters import PARAMETERS
from brokerlab.calibrate.thresholds.settings import threshold_of
from brokerlab.gdpconfig import catalogue
from brokerlab.gdpconfig.keys import rows
from brokerlab.lifecycle.timeouts import TimeoutRules, decision_table

ROOMS = ("scouts", "brokerage", "lifecycle")
"""Rooms whose rules read keys."""


@pytest.fixture(scope="module")
def covered() -> pl.DataFrame:
    return coverage()


def of(covered: pl.DataFrame, key: str) -> dict[str, object]:
    return covered.row(by_predicate=pl.col("key") == key, named=True)


def test_every_row_of_the_catalogue_stands_in_it_once(covered):
    place = ["key", "component"]
    assert covered.select(place).rows() == catalogue().select(place).rows()
    assert covered.select(place).is_duplicated().sum() == 0


def test_a_key_is_tried_by_something_or_a_reason_is_given(covered):
    tried = pl.col("how") != "not"
    assert covered.filter(tried == pl.col("reason").is_not_null()).is_empty()
    assert covered.filter(tried == (pl.col("by").list.len() == 0)).is_empty()
    assert covered.filter(tried == (pl.col("reports").list.len() == 0)).is_empty()
    # nothing can be tried that no rule reads
    assert covered.filter(tried & (pl.col("read_by").list.len() == 0)).is_empty()


def test_calibrated_is_said_where_a_calibration_is_among_what_tries_it(covered):
    calibrating = {one.name for one in mechanisms() if one.how == "calibrated"}
    for row in covered.iter_rows(named=True):
        assert (row["how"] == "calibrated") == bool(calibrating & set(row["by"])), row["key"]


def test_what_the_source_reads_is_what_is_said_to_be_read():
    home = Path(brokerlab.__file__).parent
    texts = [path.read_text() for room in ROOMS for path in sorted((home / room).rglob("*.py"))]
    source = "\n".join(texts)
    said = {key for _, key in read_by()}
    for row in rows():
        literal = re.search(rf'"{re.escape(row.key)}"', source) is not None
        assert literal == (row.key in said), row.key


@pytest.mark.parametrize("name", sorted({one.name for one in mechanisms()}))
def test_the_calls_that_are_named_exist(name):
    module, _, call = f"brokerlab.{name}".rpartition(".")
    assert callable(
        getattr(importlib.import_module(module), call, None)
    ) or importlib.import_module(f"brokerlab.{name}")


def accepts(report: str, key: str) -> bool:
    """Ask what a report asks whether it can try a key."""
    if report == "scout-percentiles":
        return key in {k for p in PARAMETERS.values() for k in (p.rank_key, p.margin_key)}
    if report == "thresholds":
        tried = {row.key for name in RULE_SETS for row in screened_keys(name)}
        return key in tried or threshold_of(key).key == key
    if report == "network-curve":
        return key == "NW_QUEUE_IMPORTANCE"
    if report == "waiting-rules":
        tables = [decision_table(rules=TimeoutRules(name)) for name in ("document", "production")]
        return any(key in keys for table in tables for keys in table["keys"])
    check_keys([key], {"brokerage-replay": PRODUCTION, "analysis-replay": ANALYSIS}[report])
    return True


def test_a_key_is_really_in_what_it_is_said_to_be_tried_by(covered):
    for key, reports in covered.select("key", "reports").iter_rows():
        for report in reports:
            assert accepts(report, key), (key, report)


def test_known_keys(covered):
    rank = of(covered, "SCOUT_CPUTIME_RANK")
    assert (rank["how"], rank["reports"]) == ("calibrated", ["scout-percentiles"])
    cap = of(covered, "NQUEUED_SAT_CAP")
    assert cap["how"] == "calibrated"
    assert "production jobs: link_backlog" in cap["read_by"]
    beat = of(covered, "HEARTBEAT_TIMEOUT_<workflow>")
    assert (beat["how"], beat["reports"]) == ("screened", ["waiting-rules", "thresholds"])
    # gdpconfig.md: the documented name of a key that the code reads under another name
    gone = of(covered, "MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE_<prodsourcelabel>")
    assert (gone["how"], gone["reason"]) == ("not", "documented, but no code reads it")


def test_no_key_that_a_rule_reads_is_left_out(covered):
    assert covered.filter(reason=NO_TRIAL).is_empty()
    assert covered.filter(pl.col("read_by").list.len() > 0, how="not").is_empty()


def test_keys_that_reports_try_only_if_they_are_named_are_marked(covered):
    marked = covered.filter("if_named")
    assert set(marked["reports"].explode()) == {"brokerage-replay", "analysis-replay"}
    for row in marked.iter_rows(named=True):
        for report, kind in {"brokerage-replay": PRODUCTION, "analysis-replay": ANALYSIS}.items():
            assert report not in row["reports"] or row["key"] not in kind.usual_keys
    assert of(covered, "MAX_PRIO_TO_BOOTSTRAP")["if_named"]
    for key in (
        "STORAGE_MIN_FREE_SIZE",
        "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]",
        "NQUEUED_SAT_CAP",
    ):
        assert not of(covered, key)["if_named"]


def test_group_caps_are_thresholds(covered):
    # 002, "User analysis brokerage": groups have caps of their own
    for key in ("CAP_RUNNING_GROUP_JOBS", "CAP_RUNNING_GROUP_CORES"):
        assert "thresholds" in of(covered, key)["reports"]


def test_what_screens_say_of_an_archive_stands_beside(covered):
    row = {"stage": "jobs", "state": "changes decisions", "at": 10.0, "n_tasks": 3, "n_jobs": None}
    types = {"n_tasks": pl.Int64, "n_jobs": pl.Int64}
    brokerage = pl.DataFrame(
        [
            {"key": "NQUEUELIMITSITE_Express", **row},
            {"key": "NQUEUELIMITSITE_MC", **row, "n_tasks": 5},
        ],
        schema_overrides=types,
    )
    found = coverage_of(brokerage, screen_keys({}, ["SCOUT_RAMCOUNT_MIN"]))
    assert found.select(covered.columns).equals(covered)
    limit = of(found, "NQUEUELIMITSITE_<gshare>")
    assert (limit["state"], limit["n_changed"], limit["counts"]) == (
        "changes decisions",
        5,
        "tasks",
    )
    assert of(found, "SCOUT_RAMCOUNT_MIN")["state"] == "not told"
    assert of(found, "NQUEUED_SAT_CAP")["state"] is None
