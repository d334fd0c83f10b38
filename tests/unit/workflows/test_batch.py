"""The batch queue in steps: order inside an instant, early ends, reservations, wrong use."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import ConfigError, DataError, SchemaError
from brokerlab.workflows import batch, load, swf

REAL = Path(os.environ.get("BROKERLAB_DATA", "../shared/data")) / "swf-logs"


def jobs(*rows):
    names = ["job_id", "submit_s", "hosts", "requested_s", "run_s"]
    return pl.DataFrame(rows, schema=names, orient="row")


def at(now, policy="easy", hosts=4, background=None):
    sim = batch.start(background, hosts=hosts, policy=policy)
    batch.advance(sim, now)
    return sim


def test_an_end_frees_its_hosts_for_a_submission_of_the_same_instant():
    sim = at(10, background=jobs(("A", 0, 4, 10, 10)))
    number = batch.submit(sim, 4, 5)
    batch.settle(sim)
    assert (batch.status(sim, number), batch.started(sim, number)) == ("running", 10.0)


def test_the_background_of_an_instant_stands_before_what_is_submitted_then():
    sim = at(10, background=jobs(("A", 10, 3, 10, 10)))
    number = batch.submit(sim, 2, 5)
    assert batch.estimate_start(sim, 3, 5) == 25.0
    batch.advance(sim)
    assert batch.results(sim)["start_s"].to_list() == [10.0]
    assert batch.started(sim, number) == 20.0


def test_equal_submissions_keep_the_order_of_their_rows():
    done = batch.run(jobs(("B", 0, 4, 5, 5), ("A", 0, 4, 5, 5)), hosts=4, policy="fcfs")
    assert done["job_id", "start_s"].rows() == [("B", 0.0), ("A", 5.0)]


def test_a_job_is_killed_at_its_request():
    done = batch.run(jobs(("A", 0, 1, 7, 9), ("B", 0, 1, 7, 7)), hosts=4)
    assert done["end_s", "killed"].rows() == [(7.0, True), (7.0, False)]


def test_decimal_seconds_that_add_up_are_the_same_instant():
    done = batch.run(jobs(("A", 0.1, 4, 0.2, 0.2), ("B", 0.3, 4, 1, 1)), hosts=4, policy="fcfs")
    assert done["wait_s"].to_list() == [0.0, 0.0]


def test_a_released_job_ends_now_and_compression_moves_who_waits():
    sim = at(0, "conservative")
    first, second = batch.submit(sim, 4, 100), batch.submit(sim, 4, 50)
    third = batch.submit(sim, 2, 20)
    batch.settle(sim)
    batch.advance(sim, 30)
    batch.release(sim, first)
    batch.arrive(sim)
    assert batch.estimate_start(sim, 2, 10) == 80.0  # beside the third
    batch.advance(sim)
    assert [batch.started(sim, n) for n in (first, second, third)] == [0.0, 30.0, 80.0]
    assert (batch.status(sim, first), batch.ended(sim, first)) == ("released", 30.0)


def test_a_reservation_never_moves_back_when_others_could_pass():
    """C was promised 100; when B is cancelled D moves forward, but never at the cost of C."""
    sim = at(0, "conservative")
    numbers = [batch.submit(sim, *ask) for ask in ((3, 100), (4, 10), (3, 50), (1, 120))]
    batch.settle(sim)
    assert batch.estimate_start(sim, 4, 1) == 230.0
    batch.cancel(sim, numbers[1])
    batch.advance(sim)
    assert [batch.started(sim, n) for n in numbers] == [0.0, None, 100.0, 0.0]
    assert batch.ended(sim, numbers[1]) == 0.0


def test_a_job_of_length_0_ends_at_once_and_brings_a_further_round():
    for policy in batch.POLICIES:
        done = batch.run(jobs(("A", 5, 4, 0, 0), ("B", 5, 4, 3, 3)), hosts=4, policy=policy)
        assert done["start_s", "end_s"].rows() == [(5.0, 5.0), (5.0, 8.0)], policy


def test_watching_stops_after_a_start_and_before_the_submissions_of_an_end():
    background = jobs(("A", 0, 4, 10, 10), ("B", 30, 4, 10, 10))
    sim = at(1, background=background)
    number = batch.submit(sim, 4, 20)
    assert batch.advance(sim, watch=True) == 10.0
    assert batch.changes(sim) == [(number, "started")]
    assert batch.advance(sim, watch=True) == 30.0
    assert batch.changes(sim) == [(number, "ended")]
    again = batch.submit(sim, 4, 1)  # behind B, which comes now
    assert batch.advance(sim, watch=True) == 40.0
    assert batch.changes(sim) == [(again, "started")]
    assert batch.advance(sim) == 41.0
    assert batch.next_event(sim) == math.inf


def test_more_jobs_than_there_was_room_for():
    sim = at(0, "conservative", hosts=2)
    numbers = [batch.submit(sim, 1, 10) for _ in range(1200)]
    batch.advance(sim)
    assert numbers == list(range(1200))
    assert [batch.started(sim, n) for n in numbers] == [10.0 * (n // 2) for n in numbers]


def test_results_in_the_middle_know_no_times_to_come():
    sim = at(5, "fcfs", background=jobs(("A", 0, 4, 10, 10), ("B", 1, 1, 1, 1), ("C", 9, 1, 1, 1)))
    done = batch.results(sim)
    assert done["start_s"].to_list() == [0.0, None, None]
    assert done["end_s"].to_list() == [None, None, None]
    assert (batch.status(sim, 1), batch.status(sim, 2), sim.free_hosts, sim.now_s) == ("waiting", "future", 0, 5.0)  # fmt: skip


def test_priorities_change_the_order_of_the_line_and_what_is_asked():
    rows = jobs(
        ("A", 0, 4, 100, 100), ("B", 1, 1, 10, 10), ("C", 2, 4, 10, 10), ("D", 3, 2, 10, 10)
    )
    order = {}
    for policy in ("easy", "large_first", "small_first"):
        done = batch.run(rows, hosts=4, policy=policy)
        order[policy] = done["start_s"].to_list()
    assert order["easy"] == [0, 100, 110, 100]
    assert order["large_first"] == [0, 110, 100, 110]
    assert order["small_first"] == [0, 100, 110, 100]
    little = batch.Priority(
        "large", worth_s=1.0
    )  # less than a second's wait: B and C keep their places
    assert batch.run(rows, hosts=4, policy="large_first", priority=little)["start_s"].to_list() == [
        0,
        100,
        110,
        100,
    ]
    sim = at(3, "large_first", background=rows)
    batch.arrive(sim)
    assert [batch.estimate_start(sim, n, 10) for n in (4, 3, 1)] == [110.0, 110.0, 110.0]
    with pytest.raises(ConfigError, match=r"favour: unknown 'wide'.*worth_s: -1.*cap_hosts: 0"):
        batch.Priority("wide", -1, 0)
    with pytest.raises(ConfigError, match="policy 'easy' has none that favours large jobs"):
        batch.start(None, hosts=4, policy="easy", priority=little)


def test_a_replayed_log_starts_its_jobs_when_it_did():
    rows = jobs(("A", 0, 3, 50, 20), ("B", 1, 2, 50, 30)).with_columns(
        start_s=pl.Series([0.0, 40.0])
    )
    for policy in ("fcfs", "easy", "conservative"):
        sim = batch.start(rows, hosts=4, policy=policy, replay=True)
        batch.advance(sim, 5)
        first, second = batch.submit(sim, 2, 100), batch.submit(sim, 4, 5)
        assert batch.estimate_start(sim, 2, 10) >= 50.0
        batch.advance(sim)
        assert batch.results(sim)["start_s", "end_s"].rows() == [(0.0, 20.0), (40.0, 70.0)]
        assert (batch.started(sim, first), batch.started(sim, second)) == (20.0, 120.0), policy
    tight = batch.start(rows, hosts=3, policy="easy", replay=True)
    batch.advance(tight, 5)
    batch.submit(tight, 2, 100)
    with pytest.raises(DataError, match=r"4 hosts at 40\.0 s, the machine has 3"):
        batch.advance(tight)


def test_wrong_jobs_are_told_all_at_once():
    wrong = jobs(("A", 0.0, 5, 1.0, 1.0), ("A", math.nan, 0, -1.0, math.inf))
    with pytest.raises(DataError) as caught:
        batch.run(wrong, hosts=4)
    told = str(caught.value)
    assert all(f"jobs.{column}" in told for column in wrong.columns)
    assert "1 to the 4 of the machine" in told
    with pytest.raises(SchemaError, match=r"jobs\.hosts is missing.*jobs\.run_s is missing"):
        batch.run(pl.DataFrame({"job_id": ["A"], "submit_s": [0.0], "requested_s": [1.0]}), hosts=4)


def test_wrong_settings_and_wrong_use():
    with pytest.raises(ConfigError, match="did you mean 'conservative'"):
        batch.start(None, hosts=4, policy="conservativ")
    for machine in (0, 2.5, 4.0, math.nan):
        with pytest.raises(ConfigError, match=f"hosts: {machine}, .*whole number.*at least 1"):
            batch.start(None, hosts=machine)
    assert batch.start(None, hosts=np.int64(4)).hosts == 4
    idle = batch.start(None, hosts=4)
    with pytest.raises(ConfigError, match=r"hosts: 5.*requested_s: -1.*no present instant"):
        batch.submit(idle, 5, -1)
    sim = at(10)
    with pytest.raises(ConfigError, match="before the present instant"):
        batch.advance(sim, 9)
    with pytest.raises(ConfigError, match="run_s: nan"):
        batch.submit(sim, 1, 1, math.nan)
    for instant in (math.nan, math.inf, 1e15):
        with pytest.raises(ConfigError, match="None: to the end"):
            batch.advance(sim, instant)
    for hosts in (1.5, math.nan, 5):
        with pytest.raises(ConfigError, match="whole numbers from 1 to 4"):
            batch.estimate_start(sim, hosts, 1)
    with pytest.raises(SchemaError, match=r"jobs\.start_s is missing"):
        batch.start(jobs(("A", 0, 3, 50, 20)), hosts=4, replay=True)
    unstarted = jobs(("A", 0, 3, 50, 20)).with_columns(start_s=pl.lit(None, pl.Float64))
    for rows in (unstarted, unstarted.to_dicts(), unstarted.lazy()):
        with pytest.raises(SchemaError, match=r"jobs\.start_s: 1 nulls"):
            batch.start(rows, hosts=4, replay=True)
    number = batch.submit(sim, 1, 1)
    with pytest.raises(ConfigError, match="is waiting, not running"):
        batch.release(sim, number)
    batch.settle(sim)
    with pytest.raises(ConfigError, match="is running, not waiting"):
        batch.cancel(sim, number)
    with pytest.raises(ConfigError, match="no job 7"):
        batch.status(sim, 7)


@pytest.fixture(scope="module")
def kth():
    path = REAL / "kth_sp2.swf.gz"
    if not path.is_file():
        pytest.skip("real data 'swf-logs' is not here; set BROKERLAB_DATA")
    log = swf.read(path)
    assert (log.rows, log.hosts, len(log.quarantine)) == (28476, 100, 0)
    return log


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("overrun", "policy", "mean", "longest", "at_once", "slowdown"),
    [
        ("extend", "fcfs", 16634.528, 123228, 364, 447.482186),
        ("extend", "easy", 2935.761, 93988, 697, 48.237231),
        ("extend", "conservative", 2689.576, 92983, 691, 42.488364),
        ("kill", "fcfs", 16618.588, 123228, 366, 447.187467),
        ("kill", "easy", 2925.059, 93988, 698, 48.067120),
        ("kill", "conservative", 2683.474, 92983, 692, 42.485995),
    ],
)
def test_the_public_replay_of_the_chapter(kth, overrun, policy, mean, longest, at_once, slowdown):
    first = swf.SwfLog(kth.jobs.head(1000), kth.header, kth.quarantine, 1000, ())
    cleaned = load.of_swf(first, overrun=overrun)
    done = batch.run(cleaned.jobs, hosts=cleaned.hosts, policy=policy)
    wait, run = done["wait_s"], done["end_s"] - done["start_s"]
    bounded = ((wait + run) / run.clip(lower_bound=10)).clip(lower_bound=1)
    assert round(wait.mean(), 3) == mean
    assert (wait.max(), (wait == 0).sum()) == (longest, at_once)
    assert round(bounded.mean(), 6) == slowdown
