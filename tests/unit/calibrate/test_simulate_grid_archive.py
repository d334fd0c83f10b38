"""A world read from an archive; an archive made by the simulator is reproduced, with other slots it is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import brokerlab.archive
from brokerlab.archive import ArchiveWriter
from brokerlab.brokerage.network_weight import THROUGHPUT_KEYS
from brokerlab.brokerage.replaying import build
from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation import Limits
from brokerlab.calibrate.simulation.archive import links
from brokerlab.calibrate.simulation.capacity import read_capacity
from brokerlab.calibrate.simulation.loop import Loop
from brokerlab.calibrate.simulation.state import instants
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.sources.panda import of_archive as of_records
from brokerlab.worlds import synthesise
from tests.recorded import record

PERIOD = {
    "start": "2026-03-01",
    "end": "2026-03-03",
    "cycle": "3h",
    "warm_up": "0h",
    "drain": "0h",
}
SHRUNK = 0.25
"""So much of the slots seen makes queues wait."""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid") / "base"
    synthesise(folder, jobs=5000, days=2.5, seed=5, queues=20)
    return brokerlab.archive.open(folder)


@pytest.fixture(scope="module")
def plain(base):
    """The world of the base archive."""
    return simulation.of_archive(base, **PERIOD)


@pytest.fixture(scope="module")
def truth(plain):
    """The same with constant slots, few enough that jobs wait."""
    most = plain.capacity.group_by("panda_queue", maintain_order=True).agg(
        pl.col("ts").min(),
        slots=(pl.col("slots").max() * SHRUNK).ceil().cast(pl.Int64).clip(16),
    )
    return replace(plain, capacity=most)


class Spy:
    """Stands before a brokerage and keeps what it is told."""

    def __init__(self, inner, seen, clock):
        self.inner, self.seen, self.clock = inner, seen, clock

    def with_config(self, config):
        return Spy(self.inner.with_config(config), self.seen, self.clock)

    def decide(self, wanted, state, **how):
        self.seen.append((self.clock[-1], wanted, state))
        return self.inner.decide(wanted, state, **how)


def recorded(world, base, folder):
    """Write what a world does as an archive; return it, when its brokerage was asked, and what it was told."""
    seen = []
    twin = replace(world)  # with a brokerage of its own
    clock, broker = [], Loop._broker
    twin.__dict__["standing"] = Spy(world.standing, seen, clock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_broker", lambda loop, now: clock.append(now) or broker(loop, now))
        record(twin, base, folder, seed=7)
    return brokerlab.archive.open(folder), seen


@pytest.fixture(scope="module")
def watched(truth, base, tmp_path_factory):
    return recorded(truth, base, tmp_path_factory.mktemp("grid") / "made")


@pytest.fixture(scope="module")
def made(watched):
    return watched[0]


@pytest.fixture(scope="module")
def users(base):
    """A day of a world in which the brokerage of users is simulated."""
    period = {**PERIOD, "start": "2026-03-02", "cycle": "6h"}
    return simulation.of_archive(base, **period, stage="analysis")


@pytest.fixture(scope="module")
def again(made):
    return simulation.of_archive(made, **PERIOD, capacity=made.truth("capacity"))


@pytest.fixture(scope="module")
def ran(again):
    return simulation.run(again, seeds=(1, 2))


def test_a_world_is_read_from_an_archive(truth, base):
    jobs = truth.jobs
    ours = jobs.filter("brokered")
    assert ours["prodsourcelabel"].unique().to_list() == ["managed"]
    assert ours["computingsite"].null_count() == ours.height > 0.6 * jobs.height
    others = jobs.filter(~pl.col("brokered"))
    assert others["computingsite"].null_count() == 0
    assert truth.seen.height == jobs.height
    known = base.scan("jobs").select("pandaid", "inputfilebytes").collect()
    both = jobs.join(known, on="pandaid")
    assert both.height == jobs.height
    assert_frame_equal(
        both.select(input_bytes="input_bytes"), both.select(input_bytes="inputfilebytes")
    )
    part = truth.data["present"]["part"]
    assert 0 < part.min() <= part.max() <= 1
    assert truth.data["sources"].height > 0
    assert truth.transfers.mode == "links"


def test_a_queue_that_ran_nothing_may_be_given_no_slots(base):
    hour = {**PERIOD, "end": "2026-03-01T01:00:00", "brokerage": "seen"}
    world = simulation.of_archive(base, **hour)
    idle = sorted(set(world.unknown) - set(world.queues["panda_queue"]))[:1]
    assert idle
    given = read_capacity(pl.DataFrame({"panda_queue": idle, "slots": [0]}))
    other = simulation.of_archive(base, **hour, capacity=given)
    assert_frame_equal(other.queues, world.queues)
    assert set(world.unknown) - set(other.unknown) == set(idle)


def test_the_latest_row_of_a_queue_is_read_whatever_its_place(base, plain, tmp_path):
    """Earlier rows, which stand last, name other limits, other parents and no core power."""
    queues = base.scan("queues").collect()
    late, early = datetime(2026, 2, 20), datetime(2026, 2, 1)
    older = queues.with_columns(
        ts=early, maxtime=10**9, maxrss=10**9, status=pl.lit("offline"), unified_name=pl.lit("X"),
        pledgedcpu=10**6, corepower=0.5,
    )  # fmt: skip
    with ArchiveWriter(tmp_path / "both", synthetic=True) as writer:
        for name in base.tables:
            writer.write(
                name, base.scan(name).collect(), trusted=True
            ) if name != "queues" else None
        writer.write(
            "queues",
            pl.concat(
                [queues.with_columns(ts=late), older.select(queues.columns)], how="vertical_relaxed"
            ),
        )
        writer.commit()
    both = brokerlab.archive.open(tmp_path / "both")
    found = simulation.of_archive(both, **PERIOD)
    for name in ("jobs", "queues", "capacity", "sources"):
        assert_frame_equal(getattr(found, name), getattr(plain, name))
    powers = [of_records(one, "memory").records["corepower"] for one in (base, both)]
    assert powers[0].equals(powers[1])


def test_how_data_move_may_be_named_alone(base):
    hour = {**PERIOD, "end": "2026-03-01T01:00:00", "brokerage": "seen"}
    named, whole = (
        simulation.of_archive(base, **hour, transfers=how)
        for how in ("observed", simulation.Transfers(mode="observed"))
    )
    assert named.transfers == whole.transfers
    with pytest.raises(ConfigError, match="mode is 'link', allowed: links"):
        simulation.of_archive(base, **PERIOD, transfers="link")


def test_jobs_made_before_the_end_are_there_though_they_were_ready_after_it(base):
    end = pl.lit(datetime(2026, 3, 2))
    late = base.scan("jobs").filter(
        pl.col("creationtime") < end,
        pl.col("activatedtime") >= end,
        pl.col("starttime").is_not_null(),
    )
    world = simulation.of_archive(base, **{**PERIOD, "end": "2026-03-02"})
    ids = late.select("pandaid").collect()["pandaid"]
    assert len(ids) > 0
    assert ids.is_in(world.jobs["pandaid"].implode()).all()


def test_what_a_simulation_did_is_an_archive_like_any_other(truth, made):
    jobs = made.scan("jobs").collect()
    assert made.synthetic
    assert jobs["pandaid"].is_unique().all()
    retries = jobs.filter(pl.col("parentid").is_not_null())
    assert set(retries["parentid"]) <= set(jobs["pandaid"])
    failed = jobs.filter(pl.col("jobstatus") == "failed")
    assert set(retries["parentid"]) <= set(failed["pandaid"])
    done = simulation.run(truth, seeds=(7,)).jobs
    ended = done.filter((pl.col("state") == "finished") & (pl.col("n_attempts") == 1))
    both = ended.join(jobs, on="pandaid", suffix="_made")
    assert both.height == ended.height
    for name in ("computingsite", "starttime", "endtime"):
        assert both[name].equals(both[f"{name}_made"])
    assert made.truth("settings").height == made.scan("gdpconfig").collect().height


def test_the_archive_of_the_simulator_is_reproduced(again):
    found = simulation.validate(again, seeds=(1, 2, 3), repeats=10)
    assert found.ok, found.queues.glimpse(return_type="string")
    assert found.sentence.startswith("The simulation reproduces placement, waiting times")
    judged = found.queues.filter(pl.col("judged"))
    assert judged["mean_observed_h"].max() > 1
    assert judged["n_most"].min() >= 0


def test_what_was_seen_ends_with_the_simulation(again, ran):
    """Waits and kills after the end, which a longer archive knows, do not count: the simulation has none."""

    def told(hours, ending):
        late = pl.lit(again.until, pl.Datetime("us")) + timedelta(hours=hours)
        other = pl.col("pandaid") % 5 == 0
        seen = again.seen.with_columns(
            observed_start=pl.when(other).then(late).otherwise("observed_start"),
            observed_end=pl.when(other).then(late).otherwise("observed_end"),
            observed_outcome=pl.when(other).then(pl.lit(ending)).otherwise("observed_outcome"),
        )
        return simulation.compare(replace(ran, world=replace(again, seen=seen)), repeats=1).queues

    assert_frame_equal(told(1, "finished"), told(100, "killed_memory"))


def test_the_use_that_was_seen_holds_retries(again, made, ran):
    assert made.scan("jobs").filter(pl.col("parentid").is_not_null()).collect().height > 0
    found = simulation.compare(ran, repeats=1).queues
    jobs = made.scan("jobs").collect().filter(pl.col("starttime").is_not_null())
    over = pl.lit(again.end, pl.Datetime("us"))
    lasts = pl.min_horizontal("endtime", over) - pl.min_horizontal("starttime", over)
    used = jobs.group_by(panda_queue="computingsite").agg(
        used=(lasts.dt.total_seconds(fractional=True) * pl.col("corecount")).sum()
    )
    there = ran.queues.filter(seed=1).select("panda_queue", "capacity_core_s")
    both = found.join(used, on="panda_queue").join(there, on="panda_queue")
    part = both["used"] / both["capacity_core_s"]
    assert (both["utilisation_observed"] - part).abs().max() < 1e-6


class Measured:
    """An archive of links alone: one measured once, and one only after the jobs."""

    def has(self, name):
        return name == "network_matrix"

    def scan(self, _name):
        days = [datetime(2026, 3, day) for day in (1, 2, 9, 9)]
        pairs = {"src": ["A", "A", "A", "B"], "dst": ["C"] * 4, "key": THROUGHPUT_KEYS["1d"]}
        return pl.LazyFrame({**pairs, "value": [10.0, 30.0, 500.0, 500.0], "ts": days})


@pytest.mark.parametrize("first", [1, 4])
def test_links_are_not_known_from_later(first):
    jobs = pl.DataFrame({"creationtime": [datetime(2026, 3, first), datetime(2026, 3, 5)]})
    assert links(Measured(), jobs).rows() == [("A", "C", 20.0)]


@pytest.mark.parametrize("factor", [0.6, 2.0])
def test_wrong_slots_are_seen(again, factor):
    slots = (pl.col("slots") * factor).cast(pl.Int64)
    wrong = replace(again, capacity=again.capacity.with_columns(slots))
    found = simulation.validate(wrong, seeds=(1, 2, 3), repeats=2)
    assert not found.ok
    assert found.sentence.startswith("No answer: ")
    assert found.queues["fails"].str.contains("waiting").sum() >= 2


def test_what_cannot_be_is_refused(base):
    with pytest.raises(ConfigError, match="stage is 'tasks'"):
        simulation.of_archive(base, **PERIOD, stage="tasks")
    with pytest.raises(ConfigError, match="is empty"):
        simulation.of_archive(base, start="2026-03-02", end="2026-03-01")
    with pytest.raises(InsufficientDataError, match="choose a period"):
        simulation.of_archive(base, start="2027-03-01", end="2027-03-02")
    with pytest.raises(ConfigError, match="cycle"):
        simulation.of_archive(base, **(PERIOD | {"cycle": "soon"}))
    with pytest.raises(ConfigError, match="placement is -1"):
        Limits(placement=-1)


@pytest.mark.parametrize("stage", ["jobs", "analysis"])
def test_the_brokerage_is_told_what_a_replay_of_the_record_tells(
    base, watched, users, stage, tmp_path
):
    """Running jobs, cores, traffic, outputs on their way: as rebuilt from the archive that the simulation makes."""
    archive, told = watched if stage == "jobs" else recorded(users, base, tmp_path / "users")
    now, wanted, state = told[10 if stage == "jobs" else 3]
    at = instants([now])[0]
    ids = wanted["jeditaskid"].unique().sort()
    asked = pl.DataFrame({"jeditaskid": ids, "at": at})
    replay = build(archive, tasks=asked, stage=stage, every=None, label=None)
    compared = {
        "jobs": [
            ("job_stats", "running", ["computingsite", "gshare"], "njobs"),
            ("job_stats_rt", "running", ["computingsite", "gshare", "resource_type"], "njobs"),
            ("core_stats", "running", ["computingsite"], "ncores"),
            ("transferring_by_nucleus", None, ["computingsite", "nucleus"], "njobs"),
            ("diskio_usage", None, ["computingsite"], "diskio_per_core"),
        ],
        "analysis": [
            ("job_stats", "running", ["computingsite", "gshare", "resource_type"], "njobs"),
            ("diskio_usage", None, ["computingsite"], "diskio_per_core"),
            ("user_totals", None, ["origusername", "workinggroup"], "nrunjobs"),
            ("user_totals", None, ["origusername", "workinggroup"], "nruncores"),
            ("to_run_rate", None, ["computingsite"], "jobs_per_hour"),
            ("failure_counts", "finished", ["jeditaskid", "computingsite"], "njobs"),
        ],
    }[stage]
    found = 0
    for table, status, keys, measure in compared:
        ours, theirs = state[table], replay.tables[table]
        if table == "job_stats_rt":
            shares = replay.tables["tasks"]["gshare"].unique()
            ours = ours.filter(pl.col("gshare").is_in(shares.implode()))
        frames = []
        for frame in (ours, theirs):
            kept = frame.filter(pl.col("jobstatus") == status) if status else frame
            frames.append(kept.select(*keys, measure).filter(pl.col(measure) > 0).sort(keys))
        assert_frame_equal(frames[0], frames[1], check_dtypes=False)
        found += frames[0].height
    assert found > 10


def test_users_have_caps(users):
    """Each run is the same beside one of other chance and one of another setting."""
    none = users.config.with_values({"CAP_RUNNING_USER_JOBS": 1})
    both = list(simulation.run_each(users, [None, none], seeds=(1, 2)))
    parts = [simulation.run(users, config=one, seeds=(2,)).jobs for one in (None, none)]
    for together, alone in zip(both, parts, strict=True):
        assert_frame_equal(together.jobs.filter(pl.col("seed") == 2), alone)
    running = [part.filter("brokered")["starttime"].count() for part in parts]
    assert 0 < running[1] < running[0]


def test_users_of_two_names_are_one_user_side_by_side_and_alone(users):
    """What the brokerage is told in one world knows nothing of the tasks that wait in another."""
    tasks = users.tables["tasks"].with_columns(
        origusername=pl.concat_str(pl.lit("Ann "), pl.col("jeditaskid") % 2)
    )
    assert tasks["username"].n_unique() > 2
    two = replace(users, tables={**users.tables, "tasks": tasks})
    settings = [two.config.with_values({"CAP_RUNNING_USER_JOBS": cap}) for cap in (1, 20, 60)]
    together = list(simulation.run_each(two, settings))
    for config, one in zip(settings, together, strict=True):
        assert_frame_equal(one.jobs, simulation.run(two, config=config).jobs)
    held, some, more = (done.jobs["starttime"].count() for done in together)
    assert held < some < more


def test_no_settings_are_refused(users):
    with pytest.raises(ConfigError, match="no settings: name one or more"):
        list(simulation.run_each(users, []))
