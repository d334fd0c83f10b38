"""The real PanDA tasks: the table of percentile choice against overshoot must come out (calibration.md 3)."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from brokerlab.calibrate.judge import judge
from brokerlab.calibrate.percentiles import (
    Assumptions,
    Setting,
    compare,
    kills,
    scored_tasks,
)
from brokerlab.scouts.rules import ScoutRules
from tests.unit.calibrate import toys
from tests.unit.calibrate.toys import backtest

HERE = Path(__file__).parents[3]
FOLDER = HERE / os.environ.get("BROKERLAB_DATA", "../shared/data") / "panda-invex-jobs"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared real data are not here"),
]

SETTINGS = [(50, 10), (75, 0), (75, 10), (75, 20), (90, 10), (95, 10), (100, 10)]
# task: base [MB], scout priority, production jobs, (exceed %, mean head-room %) in the order of SETTINGS
EXPECTED = {
    13332803: (0, 901, 324, [(8.3, 21), (12.7, 19), (0, 31), (0, 43), (0, 33), (0, 33), (0, 34)]),
    13776794: (2000, 901, 470, [(4.9, 13), (17.0, 8), (1.1, 17), (0.2, 27), (0.6, 22), (0.2, 24), (0.2, 26)]),
    14287024: (0, 901, 239, [(1.3, 21), (46.0, 11), (0.8, 22), (0, 33), (0, 22), (0, 22), (0, 22)]),
    15350577: (0, 1101, 10_558, [(0.1, 20), (2.1, 12), (0, 23), (0, 34), (0, 24), (0, 24), (0, 25)]),
}  # fmt: skip
T0 = datetime(2018, 1, 1)


def quantities(taskid: int, base_mb: int, scout_priority: int) -> pl.DataFrame:
    frame = pl.read_csv(FOLDER / f"job_records_{taskid}.csv.gz", infer_schema_length=None)
    status = (
        pl.col("jobstatus") == "finished" if "jobstatus" in frame.columns else pl.lit(value=True)
    )
    cores = pl.col("actualcorecount").cast(pl.Float64)
    end = (pl.col("queue_time") + pl.col("wall_time")) * timedelta(seconds=1) + T0
    return frame.filter(status & (pl.col("assignedpriority") != 5000)).select(
        pl.lit(taskid).alias("jeditaskid"),
        "pandaid",
        "computingsite",
        cores=cores,
        duration_s=pl.col("wall_time").cast(pl.Int64),
        is_scout=pl.col("assignedpriority") == scout_priority,
        creationtime=pl.lit(T0),
        endtime=end,
        finish_time=end,
        ram_kb=((pl.col("maxpss") - base_mb * 1024) / cores).ceil(),
        ram_per_core=pl.lit(value=True),
        maxpss_kb=pl.col("maxpss").cast(pl.Float64),
    )


@pytest.fixture(scope="module")
def history():
    jobs = pl.concat([quantities(t, e[0], e[1]) for t, e in EXPECTED.items()])
    bases = [e[0] for e in EXPECTED.values()]
    return jobs, pl.DataFrame({"jeditaskid": list(EXPECTED), "baseramcount": bases})


def run(history, **assumptions):
    made = Assumptions(rules=ScoutRules("production"), **assumptions)
    return backtest(*history, ranks=range(50, 101), assumptions=made)


@pytest.fixture(scope="module")
def all_ten(history):
    return run(history, scouts_used="all")


@pytest.mark.parametrize("taskid", EXPECTED)
def test_shares_and_head_room_of_the_table(all_ten, taskid):
    _, _, n_jobs, expected = EXPECTED[taskid]
    for setting, (exceed_pct, headroom_pct) in zip(SETTINGS, expected, strict=True):
        rows = all_ten.under([Setting(*setting)])
        row = rows.row(by_predicate=pl.col("jeditaskid") == taskid, named=True)
        assert (row["n_scouts"], row["n_scored"]) == (10, n_jobs)
        digits = 0 if exceed_pct == 0 else 1
        assert round(100 * row["exceed_rate"], digits) == exceed_pct, setting
        assert round(100 * row["headroom_mean"]) == headroom_pct, setting


def test_recorded_requests_follow_from_the_first_trigger(history):
    """13776794 used five scouts and compensation 0.95: 2381 MB per core; the others fit k = 6 to 10."""
    made = run(history, compensation=0.95)
    row = toys.by_task(made).row(by_predicate=pl.col("jeditaskid") == 13776794, named=True)
    assert (row["n_scouts"], row["estimate"]) == (5, 2381)
    assert round(100 * row["exceed_rate"], 1) == 15.1  # "recorded request" of the table


def test_four_tasks_prove_nothing_about_others(all_ten):
    """What happened in each is told without an interval, and nothing is proposed."""
    judgement = judge(all_ten.outcomes(), kills(0.02))
    assert (judgement.kind, judgement.case, judgement.units_missing) == ("no_answer", "few", 16)
    before, after = scored_tasks(all_ten, judgement)
    made = compare(judgement.table, before, after, all_ten.parameter, judgement.question)
    reserved = made.quantity("reserved_gbh")
    assert reserved["before"] > 0
    assert made.table["diff_lo"].is_null().all()
    assert any(line.startswith("Only 4 tasks can be scored") for line in all_ten.caveats)
