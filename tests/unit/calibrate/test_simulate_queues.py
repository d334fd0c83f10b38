"""The queue core, worked by hand: order, limits, retries, capacity, steps, summaries, bad input."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation import QueueRules
from brokerlab.calibrate.simulation.comparison import quantiles
from brokerlab.calibrate.simulation.kernel import mix, uniform
from brokerlab.errors import ConfigError, DataError, SchemaError
from tests.queue_toys import Steps, attempts, world

T0 = datetime(2026, 3, 1)
HOUR = 3600.0
QUEUE = pl.DataFrame({"panda_queue": ["Q"], "slots": [8]})


def at(hours: float) -> datetime:
    return T0 + timedelta(hours=hours)


def jobs_of(*rows: dict[str, object]) -> pl.DataFrame:
    plain = {"computingsite": "Q", "readytime": T0, "walltime_s": HOUR, "corecount": 1}
    return pl.DataFrame([plain | {"pandaid": i + 1} | row for i, row in enumerate(rows)])


def starts(done) -> list[float | None]:
    started = (done["starttime"] - T0).dt.total_microseconds() / (HOUR * 1e6)
    return started.to_list()


def test_draws_are_those_of_the_published_generator():
    """The first outputs of SplitMix64 for seed 1234567 are 6457827717110365317, 3203168211198807973."""
    golden, state = 0x9E3779B97F4A7C15, 1234567
    seen = []
    for _ in range(2):
        state = (state + golden) % 2**64
        seen.append(int(mix(np.uint64(state))))
    assert seen == [6457827717110365317, 3203168211198807973]
    values = [uniform(1, job, attempt, 1) for job in range(500) for attempt in (1, 2)]
    assert len(set(values)) == 1000
    assert 0 <= min(values) < 0.01 < 0.99 < max(values) < 1
    assert sum(values) / 1000 == pytest.approx(0.5, abs=0.03)


def test_priority_goes_before_time_and_time_before_pandaid():
    rows = [
        {"corecount": 8},
        {"corecount": 8, "readytime": at(0.2), "currentpriority": 0},
        {"corecount": 8, "readytime": at(0.1)},
        {"corecount": 8, "readytime": at(0.1)},
        {"corecount": 8, "readytime": at(0.5), "currentpriority": 900},
    ]
    assert starts(attempts(jobs_of(*rows), QUEUE)) == [0, 4, 2, 3, 1]


def test_a_job_that_does_not_fit_holds_others_up_only_if_strict():
    rows = [{"corecount": 6}, {"corecount": 8}, {"corecount": 2}, {"corecount": 20}]
    assert starts(attempts(jobs_of(*rows), QUEUE)) == [0, 1, 0, None]
    assert starts(attempts(jobs_of(*rows), QUEUE, queueing=QueueRules(fit="strict"))) == [
        0,
        1,
        2,
        None,
    ]


def test_what_ends_makes_room_for_what_is_ready_at_the_same_instant():
    rows = [{"corecount": 8}, {"corecount": 8, "readytime": at(1)}, {"walltime_s": 0.0}]
    done = attempts(jobs_of(*rows), QUEUE)
    assert starts(done) == [0, 1, 1]  # the third was ready first, and took no time
    assert done["waiting_s"].to_list() == [0, 0, HOUR]


def test_kills_take_the_smaller_limit_and_end_the_retries():
    rows = [
        {"walltime_s": 3 * HOUR, "walltime_limit_s": 2 * HOUR},
        {"walltime_s": 3 * HOUR, "walltime_limit_s": 3 * HOUR},
        {"walltime_s": HOUR, "walltime_limit_s": None},
    ]
    queue = QUEUE.with_columns(maxtime=pl.Series([10800]))
    done = attempts(jobs_of(*rows), queue, queueing=QueueRules(attempts=2))
    assert done["outcome"].to_list() == ["killed_walltime"] * 2 + ["finished"] * 2
    assert starts(done) == [0, 2, 0, 0]
    shorter = attempts(
        jobs_of(*rows), queue.with_columns(maxtime=3600), queueing=QueueRules(attempts=1)
    )
    assert shorter["outcome"].to_list() == ["killed_walltime"] * 2 + ["finished"]


def test_memory_climbs_the_ladder():
    rows = [{"peak_memory_mb": 3000.0, "memory_limit_mb": 1000.0}, {"peak_memory_mb": 900.0}]
    ladder = QueueRules(attempts=4, memory_ladder_mb=(1000, 2000, 4000))
    done = attempts(jobs_of(*rows), QUEUE, queueing=ladder, seed=3)
    assert done["outcome"].to_list() == ["killed_memory"] * 2 + ["finished"] * 2
    lasted = (done["endtime"] - done["starttime"]).dt.total_seconds()
    assert [int(uniform(3, 1, k, 2) * HOUR) for k in (1, 2)] == lasted[:2].to_list()
    without = attempts(jobs_of(*rows), QUEUE, queueing=QueueRules(attempts=3), seed=3)
    assert without["outcome"].to_list() == ["killed_memory"] * 3 + ["finished"]
    capped = attempts(jobs_of(*rows), QUEUE.with_columns(maxrss=1500), queueing=ladder, seed=3)
    assert capped["outcome"].to_list() == ["killed_memory"] * 4 + ["finished"]


def test_slots_over_time_count_in_starts_and_in_utilisation():
    capacity = pl.DataFrame(
        {"panda_queue": "Q", "ts": [at(-5), at(0.5), at(3)], "slots": [1, 0, 2]}
    )
    made = world(jobs_of({}, {}, {}), QUEUE, capacity=capacity, end=at(4))
    done = simulation.run(made)
    assert starts(done.jobs) == [0, 3, 3]
    row = done.queues.row(0, named=True)
    assert row["used_core_s"] == 3 * HOUR
    assert row["capacity_core_s"] == 0.5 * HOUR + 0 + 2 * HOUR
    assert row["utilisation"] == 3 / 2.5
    early = world(jobs_of({}, {}, {}), QUEUE, capacity=capacity, end=at(0.75))
    done = simulation.run(early)
    assert done.jobs["state"].to_list() == ["running", "waiting", "waiting"]
    assert done.jobs["waiting_s"].to_list() == [0, 0.75 * HOUR, 0.75 * HOUR]
    assert done.queues["used_core_s"].item() == 0.75 * HOUR
    open_ = attempts(jobs_of({}, {}, {}), QUEUE, capacity=capacity, end=at(0.75))
    assert open_["outcome"].to_list() == ["running", "waiting", "waiting"]
    assert open_["waiting_s"].to_list() == [0, 0.75 * HOUR, 0.75 * HOUR]


def test_pilots_take_jobs_in_their_turn():
    delays = pl.DataFrame({"panda_queue": "Q", "delay_s": [60.0 * i for i in range(60)]})
    batch = [{"corecount": 8, "readytime": at(i / 1000)} for i in range(12)]
    urgent = {"corecount": 8, "readytime": at(1.5), "currentpriority": 9}
    for seed in range(5):
        done = attempts(jobs_of(*batch, urgent), QUEUE, delays=delays, seed=seed)
        order = done.sort("starttime")["pandaid"].to_list()
        assert [job for job in order if job != 13] == list(range(1, 13))
        assert order.index(13) < 4  # the pilot of another one may take it before its own comes
        pilots = [i / 1000 + int(uniform(seed, i + 1, 1, 1) * 60) / 60 for i in range(12)]
        assert starts(done)[0] == pytest.approx(min(pilots))


def test_start_up_delays_run_while_a_job_waits_and_hold_no_slot():
    delays = pl.DataFrame({"panda_queue": ["Q"], "delay_s": [HOUR / 2]})
    rows = [{"corecount": 8}, {"corecount": 8}, {"corecount": 8, "readytime": at(5)}]
    assert starts(attempts(jobs_of(*rows), QUEUE, delays=delays)) == [0.5, 1.5, 5.5]
    constant = QUEUE.with_columns(startup_s=pl.lit(900.0))
    assert starts(attempts(jobs_of(*rows), constant)) == [0.25, 1.25, 5.25]
    many = pl.DataFrame({"panda_queue": "Q", "delay_s": [0.0, HOUR]})
    drawn = starts(attempts(jobs_of(*[{}] * 8), QUEUE, delays=many, seed=1))
    assert set(drawn) == {0.0, 1.0}
    assert drawn == starts(attempts(jobs_of(*[{}] * 8), QUEUE, delays=many, seed=1))


def test_killed_jobs_that_were_placed_wait_for_a_new_place():
    rows = [{"walltime_s": 3 * HOUR, "walltime_limit_s": 2 * HOUR}, {"corecount": 8}]
    queues = pl.DataFrame({"panda_queue": ["Q", "R"], "slots": [8, 8]})
    queueing = QueueRules(attempts=2)
    jobs = jobs_of(*rows)
    names = ("computingsite", "readytime")
    free = pl.when(pl.col("pandaid") > 1)  # the other one comes without a queue
    steps = Steps(
        world(jobs.with_columns(free.then(n).alias(n) for n in names), queues, queueing=queueing)
    )
    steps.place(jobs.head(1).select("pandaid", *names))
    steps.advance(at(2.2))
    assert steps.state.attempt["queue"][0] == -1
    again = pl.DataFrame({"pandaid": [1], "computingsite": "R", "readytime": at(2.5)})
    steps.place(again)
    steps.advance(at(99))
    done = steps.attempts()
    assert done["computingsite"].to_list() == ["Q", "R", "Q"]
    assert starts(done) == [0, 2.5, 2]


def test_waiting_is_summed_up():
    frame = pl.DataFrame(
        {"panda_queue": ["MC", "MC", "MC", "X"], "wait_s": [0.0, HOUR, 2 * HOUR, 9.0]}
    )
    found = quantiles(frame, "seen_s")
    expected = [np.percentile([0, HOUR, 2 * HOUR], rank) for rank in (25, 50, 75, 90, 95)]
    assert found.columns == ["panda_queue", "n", "rank", "seen_s"]
    assert found.filter(panda_queue="MC")["seen_s"].to_list() == pytest.approx(expected)
    assert found.filter(panda_queue="X")["n"].to_list() == [1] * 5
    assert quantiles(frame.clear(), "seen_s").is_empty()


def test_a_world_without_jobs_has_queues_all_the_same():
    empty = jobs_of({}).clear()
    done = simulation.run(world(empty, QUEUE, at=T0, end=at(1)))
    assert done.jobs.is_empty()
    assert done.queues["utilisation"].to_list() == [0.0]


def test_all_that_is_wrong_is_said_at_once():
    jobs = jobs_of(
        {}, {"pandaid": 1}, {"computingsite": "P"}, {"walltime_s": -1.0}, {"readytime": None}
    )
    queues = pl.DataFrame({"panda_queue": ["Q", "Q"], "slots": [8, -8]})
    capacity = pl.DataFrame({"panda_queue": ["R"], "ts": [T0], "slots": [1]})
    with pytest.raises(DataError) as caught:
        world(jobs, queues, capacity=capacity)
    said = str(caught.value)
    for part in (
        "jobs: pandaid repeats in 1 rows",
        "queues: panda_queue repeats",
        "computingsite P",
        "capacity: queue is not in queues in 1 rows (panda_queue R)",
        "jobs: walltime_s is out of range in 1 rows (pandaid 4)",
        "queues: slots is out of range",
        "only one of computingsite and readytime",
    ):
        assert part in said
    with pytest.raises(SchemaError, match=r"jobs\.walltime_s is missing"):
        world(jobs_of({}).drop("walltime_s"), QUEUE)
    with pytest.raises(ConfigError, match=r"seeds are \[-1\]"):
        simulation.run(world(jobs_of({}), QUEUE), seeds=(-1,))
    with pytest.raises(ConfigError) as refused:
        QueueRules(fit="best", attempts=0, memory_ladder_mb=(2, 1))  # type: ignore[arg-type]
    assert str(refused.value).count(";") == 2
