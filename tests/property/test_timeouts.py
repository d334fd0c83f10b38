"""Timeouts: rows have no order, a batch says what single jobs say, histories say what instants say."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRules, decide, fast_rebrokerage, would_fire
from brokerlab.lifecycle.timeouts.facts import TABLES
from brokerlab.lifecycle.timeouts.rule import LIVE
from tests.examples import examples

NOW = datetime(2026, 3, 30)
CONFIG = Config.empty().with_values(
    {"HEARTBEAT_TIMEOUT_push": 6, "FAST_REBRO_THRESHOLD_NQUEUE_A": 5, "TIMEOUT_holding": 24}
)
RULES = [TimeoutRules("document"), TimeoutRules("production")]
QUEUES = pl.DataFrame(
    {
        "panda_queue": ["Q", "P", "O", "S"],
        "status": ["online", "paused", "offline", "online"],
        "catchall": [None, None, None, "disableReassign"],
        "workflow": ["push", None, "production", None],
    }
)
few = settings(derandomize=True, deadline=None, max_examples=examples(12))

ages = st.none() | st.sampled_from(
    [timedelta(hours=h) for h in (-1, 0, 0.5, 1, 2, 3, 4, 12, 24, 48, 168, 600)]
)
jobs_drawn = st.lists(
    st.fixed_dictionaries(
        {
            "jobstatus": st.sampled_from([*LIVE, "finished"]),
            "jeditaskid": st.sampled_from([None, 1, 2]),
            "jobdefinitionid": st.sampled_from([3, 4]),
            "currentpriority": st.sampled_from([None, 799, 800, 801, 900]),
            "prodsourcelabel": st.sampled_from(["managed", "user", "panda", "test"]),
            "processingtype": st.sampled_from(["simul", "pmerge"]),
            "computingsite": st.sampled_from(["Q", "P", "O", "S", "unknown"]),
            "lockedby": st.sampled_from([None, "jedi"]),
            "relocationflag": st.sampled_from([None, 0, 2]),
            "jobsubstatus": st.sampled_from([None, "s3"]),
            "eventservice": st.sampled_from([None, 1, 2, 5]),
            **dict.fromkeys(("creationtime", "modificationtime", "statechangetime", "starttime", "endtime"), ages),
        }
    ),
    max_size=12,
)  # fmt: skip


def jobs_of(drawn: list[dict[str, Any]]) -> pl.DataFrame:
    schema = {name: column.dtype for name, column in TABLES["jobs"].columns().items()}
    rows = [
        {n: NOW - v if isinstance(v, timedelta) else v for n, v in row.items()} | {"pandaid": i}
        for i, row in enumerate(drawn)
    ]
    return pl.DataFrame([{n: row.get(n) for n in schema} for row in rows], schema=schema)


def tables(jobs: pl.DataFrame) -> dict[str, pl.DataFrame]:
    starts = [NOW - timedelta(hours=3), NOW - timedelta(hours=1), None, None]
    log = jobs.select("pandaid", jobstatus=pl.lit("activated"), modificationtime="creationtime")
    return {
        "jobs": jobs,
        "queues": QUEUES,
        "site_data": pl.DataFrame({"computingsite": QUEUES["panda_queue"], "laststart": starts}),
        "status_log": log.drop_nulls(),
    }


@few
@given(drawn=jobs_drawn, rules=st.sampled_from(RULES), random=st.randoms(use_true_random=False))
def test_rows_have_no_order(drawn: Any, rules: TimeoutRules, random: Any) -> None:
    jobs = jobs_of(drawn)
    order = list(range(len(jobs)))
    random.shuffle(order)
    found = decide(tables(jobs), at=NOW, rules=rules, config=CONFIG)
    turned = {name: frame.reverse() for name, frame in tables(jobs[order]).items()}
    other = decide(turned, at=NOW, rules=rules, config=CONFIG)
    assert_frame_equal(found.fired, other.fired)
    assert_frame_equal(found.spared, other.spared)


@few
@given(drawn=jobs_drawn, name=st.sampled_from(["document", "production"]))
def test_a_batch_says_what_single_jobs_say(drawn: Any, name: str) -> None:
    # what looks at other jobs by its nature is left out
    rules = TimeoutRules(name, analysis_rebrokerage=False, inactive_queue_two_steps=False)
    jobs = jobs_of(drawn)
    whole = decide(tables(jobs), at=NOW, rules=rules, config=CONFIG)
    singles = [
        decide(tables(jobs[i]), at=NOW, rules=rules, config=CONFIG) for i in range(len(jobs))
    ]
    assert_frame_equal(whole.fired, pl.concat([whole.fired[:0], *(one.fired for one in singles)]))
    assert_frame_equal(whole.spared, pl.concat([whole.spared[:0], *(one.spared for one in singles)]))  # fmt: skip


@few
@given(drawn=jobs_drawn)
def test_what_fires_is_older_than_its_limit_and_stays_so(drawn: Any) -> None:
    given_tables = tables(jobs_of(drawn))
    for rules in RULES:
        found = decide(given_tables, at=NOW, rules=rules, config=CONFIG).fired
        assert (found["age_h"] >= found["limit_h"]).all()
        strict = found.filter(pl.col("rule") != "analysis_rebrokerage")
        assert (strict["age_h"] > strict["limit_h"]).all()
        later = decide(given_tables, at=NOW + timedelta(hours=1), rules=rules, config=CONFIG).fired
        key = ["pandaid", "rule", "action"]
        assert found.join(later, on=key, how="anti").is_empty()


STEPS = st.lists(
    st.tuples(st.sampled_from([s for s in LIVE if s not in ("running", "starting", "stagein", "stageout", "transferring")]),
              st.sampled_from([0.25, 1, 3, 5, 13, 50, 200])),
    min_size=1, max_size=5,
)  # fmt: skip


@few
@given(history=st.lists(STEPS, min_size=1, max_size=3), priority=st.sampled_from([100, 799]))
def test_histories_say_what_instants_say(history: Any, priority: int) -> None:
    """Look at every quarter of an hour; a rule fires right after an instant, seen at the next look."""
    begin, look = NOW - timedelta(days=50), timedelta(minutes=15)
    log, rows = [], []
    for pandaid, steps in enumerate(history):
        time = begin
        for status, hours in steps:
            log.append((pandaid, status, time))
            time += timedelta(hours=hours)
        log.append((pandaid, "closed", time))
        plain = {"prodsourcelabel": "managed", "computingsite": "Q", "currentpriority": priority}
        rows.append({"pandaid": pandaid, "jobstatus": "closed", "creationtime": begin,
                     "modificationtime": time, **plain})  # fmt: skip
    entries = pl.DataFrame(log, orient="row", schema=["pandaid", "jobstatus", "modificationtime"])
    entries = entries.with_columns(pl.col("modificationtime").cast(pl.Datetime("us")))
    jobs = pl.DataFrame(rows).with_columns(pl.col("creationtime", "modificationtime").cast(pl.Datetime("us")))  # fmt: skip
    found = would_fire(jobs, entries, at=NOW, queues=QUEUES, config=CONFIG)
    for row in found.iter_rows(named=True):
        expected = []
        for instant, fires in ((row["fires"], False), (row["fires"] + look / 100, True)):
            at_it = entries.filter(pl.col("modificationtime") <= instant)
            last = at_it.sort("modificationtime", maintain_order=True).unique(
                "pandaid", keep="last"
            )
            held = jobs.drop("jobstatus", "modificationtime").join(last, on="pandaid")
            held = held.with_columns(statechangetime="modificationtime")
            fired = decide({"jobs": held, "queues": QUEUES}, at=instant, config=CONFIG).fired
            hit = fired.filter(pandaid=row["pandaid"], rule=row["rule"])
            if fires or row["entered"] < row["fires"]:
                expected.append((instant, hit.is_empty() != fires))
        assert all(agrees for _, agrees in expected), (row, expected)


@few
@given(
    counts=st.lists(
        st.tuples(st.sampled_from("QPOS"), st.sampled_from("AB"), st.sampled_from(["activated", "defined", "running"]), st.integers(0, 60)),
        max_size=15,
    ),
    rules=st.sampled_from(RULES),
)  # fmt: skip
def test_fast_rebrokerage_has_no_order_and_moves_what_it_says(
    counts: Any, rules: TimeoutRules
) -> None:
    stats = pl.DataFrame(counts, orient="row", schema={"computingsite": pl.String, "gshare": pl.String, "jobstatus": pl.String, "njobs": pl.Int64})  # fmt: skip
    waiting = stats.filter(pl.col("jobstatus") != "running")
    jobs = waiting.select(pl.exclude("njobs").repeat_by("njobs")).explode(pl.all()).drop_nulls()
    jobs = jobs.with_row_index("pandaid").with_columns(pl.col("pandaid").cast(pl.Int64))
    given_tables = {"share_job_stats": stats, "jobs": jobs, "queues": QUEUES}
    found = fast_rebrokerage(given_tables, rules=rules, config=CONFIG)
    turned = {name: frame.reverse() for name, frame in given_tables.items()}
    other = fast_rebrokerage(turned, rules=rules, config=CONFIG)
    assert_frame_equal(found.shares, other.shares)
    assert_frame_equal(found.moved, other.moved)
    told = fast_rebrokerage({**given_tables, "jobs": jobs[:0]}, rules=rules, config=CONFIG).shares
    assert told.drop("n_moved").equals(found.shares.drop("n_moved"))
    assert found.shares["n_moved"].sum() == len(found.moved)
    assert (found.shares["n_moved"] <= found.shares["excess"].fill_null(0)).all()
