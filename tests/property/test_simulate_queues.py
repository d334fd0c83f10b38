"""The queue core: as its SimPy twin to the microsecond; slots hold, nothing waits at free slots, steps change nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation import QueueRules
from tests.examples import examples
from tests.queue_toys import LONG, Steps, attempts
from tests.queue_toys import world as world_of
from tests.twins import queue_core

T0 = datetime(2026, 3, 1)
FINAL = ("finished", "killed_walltime", "killed_memory")
JOBS = {
    "pandaid": pl.Int64, "computingsite": pl.String, "readytime": pl.Datetime("us"), "walltime_s": pl.Float64,
    "corecount": pl.Int64, "peak_memory_mb": pl.Float64, "memory_limit_mb": pl.Float64,
    "walltime_limit_s": pl.Float64, "currentpriority": pl.Int64,
}  # fmt: skip
QUEUES = {"panda_queue": pl.String, "slots": pl.Int64, "maxtime": pl.Int64, "maxrss": pl.Int64}
NAMES = ("A", "B", "C")
few = settings(derandomize=True, deadline=None, max_examples=examples(25))


def moments(hours: int = 12) -> st.SearchStrategy[datetime]:
    return st.integers(0, hours).map(lambda hour: T0 + timedelta(hours=hour))


one_job = st.fixed_dictionaries(
    {
        "computingsite": st.sampled_from(NAMES),
        "readytime": moments(),
        "walltime_s": st.sampled_from([0.0, 0.3, 3600.0, 5400.0, 7200.0, 20_000.0]),
        "corecount": st.sampled_from([None, 0, 1, 1, 2, 8]),
        "peak_memory_mb": st.sampled_from([None, 1000.0, 2000.0, 5000.0]),
        "memory_limit_mb": st.sampled_from([None, 1000.0, 2000.0]),
        "walltime_limit_s": st.sampled_from([None, 3600.0, 7200.0]),
        "currentpriority": st.sampled_from([None, 0, 5, 900]),
    }
)
one_queue = st.fixed_dictionaries(
    {
        "slots": st.integers(0, 9),
        "maxtime": st.sampled_from([None, 0, 3600, 9000]),
        "maxrss": st.sampled_from([None, 0, 2000]),
    }
)
changes_drawn = st.lists(
    st.tuples(st.sampled_from(NAMES), moments(40), st.integers(0, 9)),
    unique_by=lambda row: row[:2],
    max_size=6,
)
delays_drawn = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from([0.0, 60.0, 3600.0])), max_size=5
)
rules_drawn = st.builds(
    QueueRules,
    fit=st.sampled_from(["first", "strict"]),
    attempts=st.integers(1, 3),
    memory_ladder_mb=st.sampled_from([(), (1500.0, 4000.0, 8000.0)]),
)
worlds = st.fixed_dictionaries(
    {
        "jobs": st.lists(one_job, min_size=1, max_size=25),
        "queues": st.tuples(one_queue, one_queue, one_queue),
        "capacity": changes_drawn,
        "delays": delays_drawn,
        "rules": rules_drawn,
        "seed": st.integers(0, 5),
    }
)


def arguments(world: dict[str, Any]) -> dict[str, Any]:
    jobs = [row | {"pandaid": 10 + i} for i, row in enumerate(world["jobs"])]
    queues = [row | {"panda_queue": name} for name, row in zip(NAMES, world["queues"], strict=True)]
    stamp = {"panda_queue": pl.String, "ts": pl.Datetime("us"), "slots": pl.Int64}
    drawn = {"panda_queue": pl.String, "delay_s": pl.Float64}
    return {
        "jobs": pl.DataFrame(jobs, schema=JOBS),
        "queues": pl.DataFrame(queues, schema=QUEUES),
        "capacity": pl.DataFrame(world["capacity"], schema=stamp, orient="row"),
        "delays": pl.DataFrame(world["delays"], schema=drawn, orient="row"),
        "queueing": world["rules"],
        "seed": world["seed"],
    }


def micros(series: pl.Series) -> list[int]:
    return series.to_physical().to_list()


@few
@given(worlds)
def test_starts_and_ends_are_those_of_the_twin(world):
    given_ = arguments(world)
    done = attempts(**given_).filter(pl.col("outcome").is_in(FINAL))
    ours = zip(
        done["pandaid"], done["attempt"], micros(done["readytime"]), micros(done["starttime"]),
        micros(done["endtime"]), done["outcome"], strict=True,
    )  # fmt: skip
    jobs = given_["jobs"].with_columns(
        ready_us=pl.col("readytime").to_physical(),
        cores=pl.col("corecount").fill_null(1).replace(0, 1),
        priority=pl.col("currentpriority").fill_null(0),
    )
    queues = [
        row
        | {
            "delays_us": sorted(round(d * 1e6) for name, d in world["delays"] if name == row["panda_queue"]) or [0],
            "changes": sorted(
                (pl.Series([ts], dtype=pl.Datetime("us")).to_physical()[0], slots)
                for name, ts, slots in world["capacity"]
                if name == row["panda_queue"]
            ),
        }
        for row in given_["queues"].rows(named=True)
    ]  # fmt: skip
    twin = queue_core.simulate(jobs.rows(named=True), queues, world["rules"], world["seed"])
    assert list(ours) == twin


@settings(few, max_examples=examples(12))
@given(worlds, st.randoms(use_true_random=False))
def test_steps_placements_and_the_order_of_rows_change_nothing(world, random):
    given_ = arguments(world)
    first = T0 - timedelta(hours=1)
    whole = attempts(**given_, at=first)
    jobs, seed = given_.pop("jobs"), given_.pop("seed")
    later = jobs.filter(pl.col("pandaid") % 2 == 0)
    nowhere = pl.when(pl.col("pandaid") % 2 == 1)
    split = jobs.with_columns(
        nowhere.then("computingsite").alias("computingsite"),
        nowhere.then("readytime").alias("readytime"),
    ).sample(fraction=1.0, shuffle=True, seed=random.randint(0, 99))
    steps = Steps(world_of(split, **given_, at=first), seed)
    for hour in range(0, 13, 4):
        now = T0 + timedelta(hours=hour)
        steps.advance(now)
        placed = later.filter(pl.col("readytime").is_between(now, now + timedelta(hours=3)))
        steps.place(placed.select("pandaid", "computingsite", "readytime"), stay=True)
    steps.advance(first + LONG)
    assert_frame_equal(steps.attempts(), whole)


@settings(few, max_examples=examples(25))
@given(worlds, st.integers(0, 12), st.sampled_from(NAMES), st.randoms(use_true_random=False))
def test_a_job_taken_back_is_as_one_that_came_later(world, hour, elsewhere, random):
    world["rules"] = replace(world["rules"], fit="first")  # strict: who waits in vain holds up
    world["delays"] = []  # else the pilot that was sent for it may have taken another job
    given_ = arguments(world)
    jobs, seed = given_.pop("jobs"), given_.pop("seed")
    now = T0 + timedelta(hours=hour, minutes=30)
    steps = Steps(world_of(jobs, **given_, at=T0), seed)
    steps.advance(now)
    seen = steps.attempts().filter(pl.col("attempt") == 1)
    ready = jobs.join(seen.select("pandaid", "outcome"), on="pandaid", how="left")
    waits = (pl.col("outcome") == "waiting").fill_null(value=True)
    free = [job for job in ready.filter(waits)["pandaid"] if random.random() < 0.6]
    moved = pl.col("pandaid").is_in(free)
    steps.withdraw(free)
    placed = jobs.filter(moved).select(
        "pandaid", computingsite=pl.lit(elsewhere), readytime=pl.lit(now, pl.Datetime("us"))
    )
    steps.place(placed)
    steps.advance(T0 + LONG)
    late = jobs.with_columns(
        computingsite=pl.when(moved).then(pl.lit(elsewhere)).otherwise("computingsite"),
        readytime=pl.when(moved).then(pl.lit(now, pl.Datetime("us"))).otherwise("readytime"),
    )
    assert_frame_equal(steps.attempts(), attempts(late, **given_, seed=seed, at=T0))
    assert steps.state.attempt["moves"].sum() == len(free)


@settings(few, max_examples=examples(15))
@given(worlds)
def test_slots_hold_and_nothing_waits_beside_free_slots(world):
    world["delays"] = []
    given_ = arguments(world)
    done = attempts(**given_)
    known = {name: row["slots"] for name, row in zip(NAMES, world["queues"], strict=True)}
    for name in NAMES:
        here = done.filter(pl.col("computingsite") == name).rows(named=True)
        changes = sorted((ts, slots) for queue, ts, slots in world["capacity"] if queue == name)
        for now in sorted({row["starttime"] for row in here if row["starttime"]}):
            slots = ([known[name], *(s for ts, s in changes if ts <= now)])[-1]
            running = [row for row in here if row["starttime"] and row["starttime"] <= now
                       and (row["endtime"] is None or row["endtime"] > now)]  # fmt: skip
            if any(row["starttime"] == now for row in running):
                assert sum(row["corecount"] for row in running) <= slots
            if world["rules"].fit == "first":
                free = slots - sum(row["corecount"] for row in running)
                waiting = [row["corecount"] for row in here if row["readytime"] <= now
                           and (row["starttime"] is None or row["starttime"] > now)]  # fmt: skip
                assert not [cores for cores in waiting if cores <= free]
    ended = done.filter(pl.col("outcome").is_in(FINAL))
    assert ended.group_by("pandaid").len()["len"].max() in {None, 1, 2, 3}
    last = done.group_by("pandaid").agg(pl.col("attempt").max(), n=pl.len())
    assert last.height == len(world["jobs"])
    assert (last["attempt"] == last["n"]).all()
    seed = given_.pop("seed")
    queues = simulation.run(world_of(**given_), seeds=(seed,)).queues
    assert (queues["used_core_s"].sum() > 0) == bool((ended["endtime"] > ended["starttime"]).any())


@settings(few, max_examples=examples(12))
@given(worlds, st.sampled_from(NAMES), st.integers(1, 4))
def test_more_slots_delay_no_single_core_job(world, name, more):
    for row in world["jobs"]:
        row |= {
            "corecount": 1,
            "currentpriority": 0,
            "peak_memory_mb": None,
            "walltime_limit_s": None,
        }
    for row in world["queues"]:
        row["maxtime"] = 0
    world["capacity"], world["delays"] = [], []
    given_ = arguments(world)
    before = attempts(**given_)["starttime"]
    given_["queues"] = given_["queues"].with_columns(
        pl.col("slots") + pl.when(pl.col("panda_queue") == name).then(more).otherwise(0)
    )
    after = attempts(**given_)["starttime"]
    assert (after <= before).fill_null(before.is_null()).all()
