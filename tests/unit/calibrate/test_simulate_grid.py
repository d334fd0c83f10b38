"""The grid simulator on small grids: nothing is lost, draws are common, links are first come first served."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation import QueueRules, kernel
from brokerlab.calibrate.simulation.loop import Loop, choose, queue_up
from brokerlab.calibrate.simulation.outcome import user_classes
from brokerlab.calibrate.simulation.state import micros
from brokerlab.errors import ConfigError, DataError, SchemaError
from brokerlab.gdpconfig import Config
from brokerlab.units import GB
from tests.brokerage_toys import AT, NUCLEUS, SHARE, config
from tests.unit.calibrate.grid_toys import HOUR, SLOTS, jobs, tables, world


@pytest.fixture(scope="module")
def usual():
    return world(transfers=simulation.Transfers(mode="none"))


@pytest.fixture(scope="module")
def outcome(usual):
    return simulation.run(usual, seeds=(1, 2))


def crowded(**more):
    """Half a day of long jobs, so that some wait."""
    still = simulation.Transfers(mode="none")
    frame = jobs(200, hours=8, walltime_s=pl.lit(40_000.0))
    return world(frame, hours=12, cycle=2 * HOUR, transfers=still, **more)


def test_every_job_ends_once_or_waits(usual, outcome):
    assert outcome.jobs.group_by("seed").len()["len"].to_list() == [usual.jobs.height] * 2
    assert outcome.jobs.select("seed", "pandaid").is_unique().all()
    states = outcome.jobs["state"].value_counts()
    assert states["count"].sum() == 2 * usual.jobs.height
    done = outcome.jobs.filter(pl.col("state") == "finished")
    assert done.height > 0.9 * outcome.jobs.height
    wall = done.join(usual.jobs.select("pandaid", "walltime_s"), on="pandaid")
    assert_frame_equal(
        wall.select(running_s="running_s"), wall.select(running_s="walltime_s"), check_exact=False
    )
    assert (done["starttime"] >= done["readytime"]).all()
    assert (done["readytime"] >= done["creationtime"]).all()
    tasks = outcome.tasks
    assert tasks["n_jobs"].sum() == outcome.jobs.height
    assert tasks.filter(~pl.col("censored"))["n_finished"].sum() <= done.height


def test_cores_in_use_never_exceed_slots(outcome):
    ran = outcome.jobs.filter(pl.col("starttime").is_not_null())
    ends = pl.col("endtime").fill_null(outcome.world.until)
    for (_, queue), part in ran.group_by("seed", "computingsite"):
        changes = pl.concat(
            [part.select(time="starttime", cores="corecount"),
             part.select(time=ends, cores=-pl.col("corecount"))]
        )  # fmt: skip
        use = changes.group_by("time").agg(pl.col("cores").sum()).sort("time")["cores"].cum_sum()
        assert use.max() <= SLOTS[queue]
    there = outcome.queues.filter(pl.col("seed") == 1)
    assert dict(there.select("panda_queue", "capacity_core_s").rows()) == {
        name: slots * 86_400 for name, slots in SLOTS.items()
    }
    used = (ran["running_s"] * ran["corecount"]).sum()
    assert outcome.queues["used_core_s"].sum() == pytest.approx(used)


def test_seeds_are_worlds_of_their_own_and_repeat(usual, outcome):
    for seed in (2, 1):
        alone = simulation.run(usual, seeds=(seed,))
        assert_frame_equal(alone.jobs, outcome.jobs.filter(pl.col("seed") == seed))
        assert_frame_equal(alone.tasks, outcome.tasks.filter(pl.col("seed") == seed))
    one, other = (outcome.jobs.filter(pl.col("seed") == s)["computingsite"] for s in (1, 2))
    assert (one != other).any()


def test_settings_side_by_side_are_as_each_alone():
    """A cap, a weight, timeouts, fast rebrokerage for some of them alone; one that changes nothing."""
    grid = crowded(rules="production")
    limit = {f"NQUEUELIMITSITE_{SHARE}": 1}
    fast = {f"FAST_REBRO_THRESHOLD_NQUEUE_{SHARE}": 3, "FAST_REBRO_THRESHOLD_NQNR_RATIO": 1,
            "FAST_REBRO_THRESHOLD_NQUEUE_FRAC": 0.1}  # fmt: skip
    settings = [
        None,
        config(**limit),
        Config.empty().with_values({"TIMEOUT_defined": 60}),
        Config.empty().with_values(fast),
        config(IO_INTENSITY_CUTOFF=400),
        config(**limit, NW_QUEUE_IMPORTANCE=0.9),
    ]
    together = list(simulation.run_each(grid, settings, seeds=(1, 2)))
    alone = [simulation.run(grid, config=one, seeds=(1, 2)) for one in settings]
    for one, other in zip(together, alone, strict=True):
        assert one.config.digest == other.config.digest
        assert_frame_equal(one.jobs, other.jobs)
        assert_frame_equal(one.queues, other.queues)
        assert_frame_equal(one.tasks, other.tasks)
    assert len({done.jobs.hash_rows().sum() for done in together}) >= 3


def test_settings_share_a_world_until_they_place_jobs_otherwise():
    """Of three settings one, a cap, places jobs otherwise; the two others stay together."""
    grid = crowded(rules="production")
    settings = [None, config(IO_INTENSITY_CUTOFF=400), config(**{f"NQUEUELIMITSITE_{SHARE}": 1})]
    loop = Loop(grid, settings, (1, 2))
    assert [copy.settings for copy in loop.copies] == [(0, 1, 2)] * 2
    loop.run()
    assert [copy.settings for copy in loop.copies] == [(0, 1)] * 2 + [(2,)] * 2
    first, second, third = (loop.of_setting(number) for number in range(3))
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, True]
    assert [copy.state.settings.seed for copy in third] == [1, 2]
    assert not np.shares_memory(first[0].state.attempt, third[0].state.attempt)


def test_a_setting_that_touches_no_decision_changes_nothing(usual, outcome):
    same = simulation.run(usual, config=config(IO_INTENSITY_CUTOFF=400), seeds=(1, 2))
    assert same.config.digest != outcome.config.digest
    assert_frame_equal(same.jobs, outcome.jobs)


def test_the_rule_set_decides_which_settings_count():
    """NQUEUELIMITSITE is read by the deployed code alone; the page does not name it."""
    few, many = (config(**{f"NQUEUELIMITSITE_{SHARE}": limit}) for limit in (1, 10**6))

    def sent(rules: str, settings: Config) -> list[str | None]:
        outcome = simulation.run(crowded(rules=rules), config=settings)
        return outcome.jobs["computingsite"].to_list()

    assert sent("document", few) == sent("document", many)
    assert sent("production", few) != sent("production", many)


def test_jobs_go_where_the_shares_send_them(usual, outcome):
    """Of the first cycle all shares are known: the queues are empty and alike."""
    first = outcome.jobs.filter(pl.col("creationtime") < AT + HOUR)
    wanted = pl.DataFrame({"jeditaskid": range(1, 7), "snapshot": 0, "world": 0})
    empty = {"job_stats": usual.tables["job_stats"].clear().drop("snapshot")}
    nothing = {name: frame.with_columns(world=pl.lit(0)) for name, frame in empty.items()}
    share = usual.standing.decide(wanted, nothing).queues
    expected = dict(share.group_by("panda_queue").agg(pl.col("share").mean()).iter_rows())
    drawn = kernel.placements(1, np.arange(4000), np.ones(4000, np.int64))
    part = share.filter(pl.col("jeditaskid") == 1).sort(pl.col("panda_queue").cast(pl.String))
    chosen = choose(
        drawn, np.zeros(4000, np.int64), np.full(4000, part.height), part["share"].to_numpy()
    )
    found = np.bincount(chosen) / 4000
    for name, seen in zip(part["panda_queue"].cast(pl.String), found, strict=True):
        assert seen == pytest.approx(expected[name], abs=0.03)
    assert set(first["computingsite"]) == set(SLOTS)


def test_the_first_candidates_part_of_the_draw_is_the_first_queues():
    share, zero = np.array([0.25, 0.0, 0.75]), np.zeros(4, np.int64)
    drawn = np.array([0.0, 0.2499, 0.25, 0.9999999])
    assert choose(drawn, zero, zero + 3, share).tolist() == [0, 0, 2, 2]
    assert choose(drawn, zero, zero, share).tolist() == [-1] * 4


def test_a_link_serves_one_after_the_other():
    """The end of each is the largest over all before of asked + what came since: Lindley's recursion."""
    rng = np.random.default_rng(2)
    asked, lasts = np.sort(rng.integers(0, 1000, 50)), rng.integers(1, 60, 50)
    free = np.full(3, -(2**62))
    found = queue_up(np.ones(50, np.int64), asked, lasts, free)
    done = np.cumsum(lasts)
    closed = done + np.maximum.accumulate(asked - (done - lasts))
    assert found.tolist() == closed.tolist()
    assert free.tolist() == [-(2**62), closed[-1], -(2**62)]


def test_input_travels_over_the_best_link_and_output_to_the_nucleus():
    """One queue, half of the input there: bytes / throughput after the job was made; outputs the other way."""
    own = tables({"A_Q": 0}, data={1: {"A_Q": 5}})
    links = pl.DataFrame(
        {"src": ["NUC", "FAR", "A"], "dst": ["A", "A", "NUC"], "mbps": [2.0, 1.0, 4.0]}
    )
    data = {
        "links": links,
        "sources": pl.DataFrame({"jeditaskid": [1, 1], "site": ["FAR", "NUC"]}),
        "present": pl.DataFrame({"jeditaskid": [1], "panda_queue": ["A_Q"], "part": [0.5]}),
    }
    made = [AT, AT + timedelta(minutes=1), AT + 2 * HOUR]
    frame = jobs(3).with_columns(
        jeditaskid=pl.lit(1), creationtime=pl.Series(made), walltime_s=3600.0,
        input_bytes=pl.Series([GB, 2 * GB, GB]), output_bytes=pl.Series([GB, 0, GB]),
    )  # fmt: skip
    done = simulation.run(world(frame, queues={"A_Q": 80}, tables=own, data=data)).jobs
    half = [256, 256 + 512, 256]  # [s]: half of the input at 2 MB/s; the second waits for the first
    ready = (done["readytime"] - pl.Series(made)).dt.total_seconds().to_list()
    assert ready == [half[0], half[1] - 60, half[2]]
    assert done["transfer_s"].to_list() == ready
    assert done["transferred_bytes"].to_list() == [GB // 2 + GB, GB, GB // 2 + GB]
    travel = (done["overtime"] - done["endtime"]).dt.total_seconds().to_list()
    assert travel == [256, 0, 256]


def test_killed_jobs_are_brokered_again_and_lose_their_time():
    frame = jobs(40, hours=2).with_columns(walltime_s=7200.0, walltime_limit_s=3600.0)
    queueing = QueueRules(attempts=3)
    done = simulation.run(
        world(frame, queueing=queueing, transfers=simulation.Transfers(mode="none"))
    ).jobs
    assert done["state"].unique().to_list() == ["failed"]
    assert done["n_attempts"].to_list() == [3] * 40
    assert done["lost_core_s"].to_list() == [3 * 3600.0 * 8] * 40


def test_jobs_that_came_with_a_queue_stay_there():
    frame = jobs(60, hours=2)
    fixed = pl.col("pandaid") % 2 == 0
    frame = frame.with_columns(
        brokered=~fixed,
        computingsite=pl.when(fixed).then(pl.lit("B_Q")),
        readytime=pl.when(fixed).then(pl.col("creationtime") + HOUR),
    )
    done = simulation.run(world(frame, transfers=simulation.Transfers(mode="none"))).jobs
    own = done.filter(~pl.col("brokered"))
    assert set(own["computingsite"]) == {"B_Q"}
    assert (own["readytime"] - own["creationtime"]).unique().to_list() == [HOUR]
    assert len(set(done.filter("brokered")["computingsite"])) > 1


def test_a_stuck_job_is_moved_by_the_timeout():
    """Jobs of a queue that has no slots wait for two days; then the brokerage finds them another place."""
    capacity = pl.DataFrame(
        {"panda_queue": ["A_Q", "B_Q"], "ts": [AT, AT + 30 * HOUR], "slots": [0, 80]}
    )
    own = tables({"A_Q": 0, "B_Q": 0})
    late = own["queues"].with_columns(
        status=pl.when(pl.col("panda_queue") == "B_Q").then(pl.lit("offline")).otherwise("status")
    )
    both = pl.concat([late.with_columns(snapshot=pl.lit(0, pl.Int64)),
                      own["queues"].with_columns(snapshot=pl.lit(1, pl.Int64),
                          status=pl.when(pl.col("panda_queue") == "A_Q").then(pl.lit("offline")).otherwise("status"))])  # fmt: skip
    tasks = pl.concat([own["tasks"].with_columns(snapshot=pl.lit(i, pl.Int64)) for i in (0, 1)])
    given = own | {"queues": both, "tasks": tasks}
    epochs = pl.DataFrame({"snapshot": [0, 1], "at": [AT, AT + 24 * HOUR]})
    queues = pl.DataFrame({"panda_queue": ["A_Q", "B_Q"], "slots": [0, 0]})
    world_ = simulation.of_tables(
        jobs(20, hours=1), queues, given, epochs, start=AT, end=AT + 60 * HOUR, capacity=capacity,
        transfers=simulation.Transfers(mode="none"),
    )  # fmt: skip
    done = simulation.run(world_, seeds=(1, 2)).jobs
    assert done["n_moves"].to_list() == [1] * 40
    assert done["computingsite"].unique().to_list() == ["B_Q"]
    assert done["waiting_s"].min() > 48 * 3600
    assert (done["state"] == "finished").all()


def test_fast_rebrokerage_takes_back_what_is_too_much():
    frame = jobs(120, hours=1, walltime_s=pl.lit(36_000.0))
    settings = {f"FAST_REBRO_THRESHOLD_NQUEUE_{SHARE}": 10, "FAST_REBRO_THRESHOLD_NQNR_RATIO": 2,
                "FAST_REBRO_THRESHOLD_NQUEUE_FRAC": 0.1}  # fmt: skip
    given = Config.empty().with_values(settings)
    calm = world(frame, transfers=simulation.Transfers(mode="none"), hours=8)
    before, after = simulation.run(calm).jobs, simulation.run(calm, config=given).jobs
    assert before["n_moves"].sum() == 0
    assert after["n_moves"].sum() > 0


def test_jobs_that_stay_count_for_fast_rebrokerage():
    """A threshold that only all waiting jobs of the share pass, those placed by the brokerage and those that stay.

    Those that stay come later: twice the running jobs is all that the brokerage lets wait.
    """
    frame = jobs(120, hours=0.5, walltime_s=pl.lit(36_000.0))
    stays = pl.col("pandaid") >= 130
    later = pl.col("creationtime") + 2 * HOUR
    fixed = frame.with_columns(
        brokered=~stays,
        computingsite=pl.when(stays).then(pl.lit("A_Q")),
        creationtime=pl.when(stays).then(later).otherwise("creationtime"),
        readytime=pl.when(stays).then(later),
    )
    settings = {f"FAST_REBRO_THRESHOLD_NQUEUE_{SHARE}": 60, "FAST_REBRO_THRESHOLD_NQNR_RATIO": 1,
                "FAST_REBRO_THRESHOLD_NQUEUE_FRAC": 0.1}  # fmt: skip
    mixed = world(fixed, transfers=simulation.Transfers(mode="none"), hours=4, queues={"A_Q": 8})
    done = simulation.run(mixed, config=Config.empty().with_values(settings)).jobs
    assert done.filter("brokered")["n_moves"].sum() > 0
    assert done.filter(~pl.col("brokered"))["n_moves"].sum() == 0


def test_users_are_of_groups_or_have_many_jobs_or_few():
    frame = pl.DataFrame(
        {
            "produsername": ["ann"] * 5 + ["bob"] * 3 + ["cat"] * 2 + ["dan", "eve", None],
            "workinggroup": [None] * 10 + ["perf", None, None],
            "prodsourcelabel": ["user"] * 11 + ["managed", "user"],
        }
    )
    found = user_classes(frame).to_list()
    assert found == ["large"] * 5 + ["small"] * 5 + ["group", None, None]


def test_what_cannot_be_is_refused(usual):
    with pytest.raises(ConfigError, match="seeds are"):
        simulation.run(usual, seeds=(1, 1))
    with pytest.raises(ConfigError, match="seeds are"):
        simulation.run(usual, seeds=())
    with pytest.raises(ConfigError) as caught:
        world(stage="tasks", rules="deployed", end=AT - HOUR, cycle=timedelta(seconds=1))
    for said in ("stage is 'tasks'", "rules='deployed'", "are not in order", "cycle is 0:00:01"):
        assert said in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        simulation.Transfers(mode="air", default_mbps=0)  # type: ignore[arg-type]
    assert str(caught.value).count(";") == 1
    with pytest.raises(SchemaError, match=r"jobs\.creationtime is missing"):
        world(jobs().drop("creationtime"))
    lost = jobs().with_columns(jeditaskid=pl.lit(99), brokered=pl.col("pandaid") > 110)
    with pytest.raises(DataError) as caught:
        world(lost)
    assert "the task is not among the brokerage's tasks of any epoch in 289 rows" in str(
        caught.value
    )
    assert "not to be brokered, but without a queue in 11 rows" in str(caught.value)
    assert micros(usual.begin) == usual.arrays.epoch_at[0]
    assert NUCLEUS in usual.arrays.sites.to_list()


def test_fairness_is_jains_index_over_shares_users_and_classes():
    made = world(
        jobs(60, prodsourcelabel=pl.lit("user")), transfers=simulation.Transfers(mode="none")
    )
    found = simulation.run(made, seeds=(3,))
    assert found.fairness["by"].to_list() == ["gshare", "produsername", "user_class"]
    for row in found.fairness.to_dicts():
        part_run = pl.col("running_s") / (pl.col("waiting_s") + pl.col("running_s"))
        known = found.jobs.drop_nulls(row["by"])
        speed = known.group_by(row["by"]).agg(s=part_run.mean())["s"]
        assert row["n"] == len(speed)
        assert row["jain"] == pytest.approx(speed.sum() ** 2 / (len(speed) * (speed**2).sum()))
        assert (row["lowest"], row["highest"]) == pytest.approx((speed.min(), speed.max()))
    assert found.fairness.filter(pl.col("by") == "user_class")["n"].to_list() == [2]
    # who never runs is slow, and nobody is fair who lets a share starve
    odd = pl.col("pandaid") % 2 == 1
    starving = found.jobs.with_columns(
        gshare=pl.when(odd).then(pl.lit("starves")).otherwise(pl.lit("runs")),
        running_s=pl.when(odd).then(0.0).otherwise("running_s"),
        waiting_s=pl.when(odd).then(3600.0).otherwise("waiting_s"),
    )
    unfair = replace(found, jobs=starving).fairness.filter(by="gshare")
    assert (unfair["n"][0], unfair["lowest"][0]) == (2, 0)
    assert unfair["jain"][0] == pytest.approx(0.5)
    nobody = simulation.run(world(transfers=simulation.Transfers(mode="none")), seeds=(3,))
    assert "user_class" not in nobody.fairness["by"].to_list()
