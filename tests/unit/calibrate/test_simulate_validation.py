"""An archive that was made by queueing is reproduced; with other slots it is not, and the verdict says so."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.stats import binom

import brokerlab.archive
from brokerlab.archive import ArchiveWriter
from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation import Limits, QueueRules, validate
from brokerlab.calibrate.simulation.comparison import Sides, Steps, judged
from brokerlab.calibrate.simulation.validation import STATES, worst_first
from brokerlab.errors import ConfigError, InsufficientDataError
from tests.queue_toys import attempts

T0 = datetime(2026, 3, 1)
START, END = T0 + timedelta(days=6), T0 + timedelta(days=12)
SLOTS = {"BUSY": 40, "FREE": 300, "SHRINKS": 60, "TINY": 5}


def read(folder, jobs, queues, *, start=START, end=END, **more) -> simulation.World:
    """Write an archive and read a period of it, every job at its own queue."""
    with ArchiveWriter(folder, synthetic=True, mode="replace") as writer:
        also = {
            "prodsourcelabel": pl.lit("managed"),
            "modificationtime": pl.col("endtime").fill_null(END),
        }
        writer.write("jobs", jobs.with_columns(**also))
        constant = {"type": pl.lit("production"), "status": pl.lit("online")}
        writer.write("queues", queues.with_columns(**constant))
        writer.commit()
    archive = brokerlab.archive.open(folder)
    return simulation.of_archive(
        archive, start=start, end=end, brokerage="seen", drain="0h", **more
    )


@pytest.fixture(scope="module")
def truth() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Jobs of an archive whose waits come from slots, and its queues."""
    rng = np.random.default_rng(3)
    load = {"BUSY": 0.97, "FREE": 0.4, "SHRINKS": 0.6, "TINY": 0.3}
    days, parts = 13, []
    for name, slots in SLOTS.items():
        mean_s = 7200 * np.exp(0.18)
        n = int(load[name] * slots * days * 86_400 / mean_s / (1 + 3 / 5))
        parts.append(
            pl.DataFrame(
                {
                    "computingsite": [name] * n,
                    "readytime": np.datetime64(T0, "us") + (rng.random(n) * days * 86_400e6).astype("timedelta64[us]"),
                    "walltime_s": 7200 * rng.lognormal(0, 0.6, n),
                    "corecount": np.where(rng.random(n) < 0.2, 4, 1),
                    "jeditaskid": rng.integers(1, 80, n),
                    "gshare": rng.choice(["MC", "Data"], n),
                    "peak_memory_mb": np.where(rng.random(n) < 0.02, 9000.0, 1000.0),
                }
            )
        )  # fmt: skip
    jobs = pl.concat(parts).with_row_index("pandaid").with_columns(pl.col("pandaid").cast(pl.Int64))
    queues = pl.DataFrame(
        {
            "panda_queue": list(SLOTS),
            "slots": list(SLOTS.values()),
            "maxtime": 40_000,
            "maxrss": 8000,
        }
    )
    capacity = pl.DataFrame(
        {"panda_queue": "SHRINKS", "ts": [T0 + timedelta(days=8)], "slots": [35]}
    )
    delays = pl.DataFrame({"panda_queue": ["FREE"] * 3, "delay_s": [60.0, 300.0, 900.0]})
    queueing = QueueRules(attempts=1)
    made = attempts(jobs, queues, capacity=capacity, delays=delays, queueing=queueing, seed=11)
    killed = pl.col("outcome").str.starts_with("killed")
    about = jobs.select("pandaid", "peak_memory_mb", "gshare", "jeditaskid")
    archive = made.join(about, on="pandaid").select(
        "pandaid", "computingsite", "starttime", "endtime", "corecount", "gshare", "jeditaskid",
        creationtime=pl.col("readytime") - timedelta(minutes=5),
        activatedtime="readytime",
        jobstatus=pl.when(killed).then(pl.lit("failed")).otherwise(pl.lit("finished")),
        maxpss=(pl.col("peak_memory_mb") * 1024).cast(pl.Int64),
    )  # fmt: skip
    return archive, queues.drop("slots")


@pytest.fixture(scope="module")
def inputs(truth, tmp_path_factory) -> simulation.World:
    return read(tmp_path_factory.mktemp("seen"), *truth)


def test_queues_are_estimated_from_what_ran(inputs):
    slots = inputs.capacity.group_by("panda_queue").agg(pl.col("slots").max())
    found = dict(slots.iter_rows())
    assert (found["BUSY"], found["SHRINKS"]) == (40, 60)
    assert found["FREE"] < 300
    late = inputs.capacity.filter(
        (pl.col("panda_queue") == "SHRINKS") & (pl.col("ts") >= T0 + timedelta(days=9))
    )
    assert late["slots"].max() <= 35
    own = inputs.delays.filter(pl.col("own") & (pl.col("panda_queue") == "FREE"))["delay_s"]
    # of 60, 300 and 900 s; a pilot may take another job than that it was sent for
    assert own.mean() == pytest.approx(420, rel=0.1)
    assert 0 < own.min() <= own.max() <= 900


def test_a_queueing_archive_is_reproduced(inputs):
    found = validate(inputs, repeats=20, limits=Limits(least_jobs=100))
    assert found.ok, found.queues.glimpse(return_type="string")
    assert found.sentence.startswith("The simulation reproduces")
    busy = found.queues.filter(pl.col("panda_queue") == "BUSY").row(0, named=True)
    assert busy["mean_observed_h"] > 0.3
    assert busy["correlation"] > 0.9
    assert busy["wasserstein_h_lo"] <= busy["wasserstein_h"] * 1.5
    assert 0 < busy["kills_observed"] == pytest.approx(busy["kills_simulated"], abs=0.01)
    assert busy["utilisation_observed"] == pytest.approx(busy["utilisation_simulated"], abs=0.02)
    assert found.quantiles.columns == ["panda_queue", "n", "rank", "observed_s", "simulated_s"]
    assert found.to_dict()["queues_judged"] == found.queues["judged"].sum()


def test_every_job_stays_at_its_own_queue(inputs):
    done = simulation.run(inputs, seeds=(1, 2)).jobs
    both = done.join(inputs.seen, on="pandaid")
    assert both.height == done.height > 1000
    assert (both["computingsite"] == both["observed_site"]).all()
    assert done["n_moves"].sum() == 0
    assert done["n_attempts"].max() == 1  # a retry is a job of its own


@pytest.mark.parametrize("factor", [0.85, 2.0])
def test_wrong_slots_are_seen(inputs, factor):
    slots = (pl.col("slots") * factor).cast(pl.Int64)
    wrong = replace(inputs, capacity=inputs.capacity.with_columns(slots))
    found = validate(wrong, repeats=2, limits=Limits(least_jobs=100))
    assert not found.ok
    assert found.sentence.startswith("No answer: ")
    busy = found.queues.filter(pl.col("panda_queue") == "BUSY").row(0, named=True)
    assert "waiting" in busy["fails"]


def test_waits_that_are_not_queueing_are_not_reproduced(truth, tmp_path):
    """As in the synthetic archive, waits are drawn, however many slots are free."""
    jobs, queues = truth
    rng = np.random.default_rng(1)
    drawn = pl.Series((rng.lognormal(9, 1, jobs.height) * 1e6).astype(np.int64))
    shift = pl.col("activatedtime") + pl.duration(microseconds=drawn)
    lasts = pl.col("endtime") - pl.col("starttime")
    other = jobs.with_columns(starttime=shift, endtime=shift + lasts)
    found = validate(read(tmp_path, other, queues), repeats=2)
    assert not found.ok
    judged = found.queues.filter(pl.col("judged"))
    assert judged["fails"].str.contains("timing, unexplained").all()


def test_without_a_time_before_there_are_no_delays(truth, tmp_path):
    cold = read(tmp_path, *truth, start=T0, warm_up="0h")
    assert cold.delays.is_empty()
    assert validate(cold, repeats=1).queues["mean_delay_h"].null_count() == len(SLOTS)


def test_what_is_missing_is_counted_or_refused(truth, inputs, tmp_path):
    jobs, queues = truth
    holes = jobs.with_columns(
        starttime=pl.when(pl.col("pandaid") % 10 > 0).then("starttime"),
        endtime=pl.when(pl.col("pandaid") % 10 != 1).then("endtime"),
    )
    left = dict(read(tmp_path, holes, queues).left_out.iter_rows())
    assert set(left) == {"never started", "no end recorded"}
    with pytest.raises(InsufficientDataError, match="choose a period of the archive"):
        read(tmp_path, *truth, start=END + timedelta(days=9), end=END + timedelta(days=10))
    with pytest.raises(ConfigError, match="is empty"):
        read(tmp_path, *truth, start=END, end=START)
    with pytest.raises(ConfigError, match="repeats is 0"):
        validate(inputs, repeats=0)
    with pytest.raises(ConfigError, match="ks is -1"):
        Limits(ks=-1)
    with pytest.raises(ConfigError, match="quantile is 2"):
        read(tmp_path, *truth, quantile=2)
    with pytest.raises(ConfigError, match="brokerage is 'mine', allowed: seen, replayed"):
        simulation.of_archive(None, brokerage="mine")
    none = validate(inputs, repeats=1, limits=Limits(least_jobs=10**6))
    assert not none.ok
    assert "nothing can be judged" in none.sentence


def test_broken_limits_add_up(inputs):
    strict = Limits(least_jobs=100, ks=0.001, wasserstein_h=0.0, relative=0.0)
    found = validate(inputs, repeats=2, limits=strict)
    broken = found.broken_limits()
    assert set(broken["limit"]) == {"placement", "waiting", "shape", "timing", "unexplained", "utilisation", "kills"}  # fmt: skip
    assert broken["n_queues"].is_sorted(descending=True)
    rows = {row["limit"]: row for row in broken.to_dicts()}
    judged = found.queues.filter("judged")
    assert rows["shape"] == {
        "limit": "shape",
        "value": 0.001,
        "n_queues": judged.height,
        "n_jobs": judged["n_jobs"].sum(),
    }
    assert rows["placement"]["n_queues"] == 0  # asked only where the brokerage is replayed
    assert (found.n_judged, found.n_passed) == (judged.height, 0)
    assert (
        found.n_undecided == 0
    )  # a distance above 0 is beyond a limit of 0 with its whole interval
    wide = float(judged["wasserstein_h_hi"].max()) - 1e-9
    between = validate(inputs, repeats=2, limits=replace(strict, wasserstein_h=wide))
    assert between.n_undecided >= 1


def test_waits_by_queue_are_in_hours_and_know_the_verdict(inputs):
    found = validate(inputs, repeats=2, limits=Limits(least_jobs=1000))
    waits = found.waits()
    assert waits.columns == ["rank", "panda_queue", "observed_h", "simulated_h", "state"]
    assert waits["rank"].unique().sort().to_list() == [50.0, 90.0]
    states = dict(waits.select("panda_queue", "state").rows())
    assert set(states.values()) <= set(STATES)
    none = Limits(least_jobs=100, ks=0.0, correlation=2.0, wasserstein_h=0.0)
    strict = set(validate(inputs, repeats=2, limits=none).waits()["state"])
    assert strict <= {"waits differ", "too few jobs"}  # though other limits are broken, too
    short = validate(inputs, repeats=2, limits=Limits(least_jobs=100, ks=0.0))
    assert "shape" not in short.queues.filter(panda_queue="FREE")["fails"].item()  # minutes
    timing = validate(inputs, repeats=2, limits=Limits(least_jobs=100, correlation=2.0, wasserstein_h=0.1))  # fmt: skip
    assert timing.waits().filter(panda_queue="BUSY")["state"][0] == "waits agree, not by slots"
    assert "BUSY" in timing.fitted["panda_queue"].to_list()
    few = found.queues.filter(~pl.col("judged"))["panda_queue"].to_list()
    assert few
    assert {states[name] for name in few} == {"too few jobs"}
    seconds = found.quantiles.filter(rank=90.0, panda_queue="BUSY")["observed_s"].item()
    assert waits.filter(rank=90.0, panda_queue="BUSY")["observed_h"].item() == seconds / 3600


@pytest.mark.parametrize("ties", [False, True])
def test_distances_are_those_of_scipy(ties):
    rng = np.random.default_rng(ties)
    one, other = rng.exponential(1, 60), rng.exponential(2, 60)
    if ties:
        one, other = one.round(), other.round()
    task = rng.integers(0, 7, 60)
    steps = Steps.of(one, other, task, task)
    weight = np.array([0, 1, 3, 1, 2, 0, 1])
    expected = stats.wasserstein_distance(one, other, weight[task], weight[task])
    assert steps.wasserstein(weight) == pytest.approx(expected, rel=1e-12)
    assert steps.kolmogorov_smirnov() == pytest.approx(stats.ks_2samp(one, other).statistic)
    low, high = steps.interval(200, 1)
    assert low <= stats.wasserstein_distance(one, other) <= high
    assert Steps.of(one, one, task, task).interval(5, 1) == (0, 0)


def test_states_count_the_queues(inputs):
    done = validate(inputs, repeats=2)
    assert list(done.states) == list(STATES)
    assert sum(done.states.values()) == done.waits([50.0]).height
    assert done.states["within limits"] == done.n_passed


def test_the_worst_come_first():
    frame = pl.DataFrame({"panda_queue": ["a", "c", "b"], "wasserstein_h": [1.0, 2.0, None]})
    made = worst_first(frame)
    assert made["panda_queue"].to_list() == ["b", "c", "a"]
    assert made["role"].to_list() == ["worst", None, None]


def test_limits_are_given_by_name():
    assert Limits.of({"least_jobs": 40.0, "ks": 1}) == Limits(least_jobs=40, ks=1)
    assert isinstance(Limits.of({"least_jobs": 40.0}).least_jobs, int)
    with pytest.raises(ConfigError, match="did you mean 'kills'"):
        Limits.of({"kill": 1})


def sides_of(rng, *, queues, runs, jobs=120, shift=0.0):
    """Runs of a world in which chance moves the waits, the kills and the numbers of jobs of a queue; one of them is seen."""

    def one(queue, run):
        n = int(rng.integers(jobs // 2, 2 * jobs))
        wait = rng.lognormal(rng.normal(0.0, 0.6), 0.5, n) * 3600.0
        return pl.DataFrame(
            {
                "panda_queue": queue,
                "wait_s": wait * (1 + shift * (run == runs)),
                "killed": rng.random(n) < rng.uniform(0.0, 0.2),
                "when": np.datetime64(T0, "us") + np.arange(n) * np.timedelta64(1, "m"),
                "task": np.arange(n) % 7,
                "run": run,
            }
        )

    every = pl.concat(
        one(f"q{queue:03}", run) for queue in range(queues) for run in range(runs + 1)
    )
    seen = pl.col("run") == runs
    return Sides(every.filter(seen), every.filter(~seen), paired=False, runs=runs)


def failing(sides):
    none = {
        "mean_delay_h": 0.0,
        "utilisation_observed": 0.5,
        "utilisation_simulated": 0.5,
        "utilisation_most": 0.0,
        "utilisation_usual": 0.0,
    }
    rows = sides.distances(1, 0)
    found = judged(rows.with_columns(**{n: pl.lit(v) for n, v in none.items()}), Limits(), placed=True)  # fmt: skip
    return (found["fails"] != "").mean()


def test_a_simulation_that_is_right_fails_at_one_queue_in_as_many_as_there_are_runs_and_one():
    """Five distances are asked together: one by one, a queue in five would fail by chance.

    Were it a queue in five, 200 queues would show it with a probability of 96 %.
    """
    rng = np.random.default_rng(5)
    share = failing(sides_of(rng, queues=200, runs=9))
    assert binom.cdf(round(200 * share), 200, 1 / 10) > 0.01
    assert binom.sf(round(200 * share) - 1, 200, 1 / 10) > 0.01


def test_a_simulation_that_is_wrong_fails_whatever_chance_does():
    assert failing(sides_of(np.random.default_rng(6), queues=60, runs=9, shift=19.0)) > 0.95


def test_runs_without_jobs_at_a_queue_do_not_excuse_it():
    sides = sides_of(np.random.default_rng(7), queues=60, runs=9)
    few = sides.simulated.filter(pl.col("run") == 0).group_by("panda_queue").head(1)
    assert failing(Sides(sides.observed, few, paired=False, runs=9)) == 1.0
