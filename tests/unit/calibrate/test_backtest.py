import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.calibrate.percentiles import Assumptions, LossWeights, Setting
from brokerlab.calibrate.percentiles.frames import STRATA, levels_of
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.scouts.rules import ScoutRules
from brokerlab.slots import Offers
from tests.examples import examples
from tests.unit.calibrate import slow_twin, toys
from tests.unit.calibrate.toys import backtest

AMOUNT = {"ramcount": "gbh", "cputime": "coreh", "outdiskcount": "gb"}
MARGINS = {"ramcount": (0, 7, 10), "cputime": (0, 50), "outdiskcount": (0,)}


def compare(result, expected, parameter):
    amount = AMOUNT[parameter]
    assert result.height == len(expected)
    for row, slow in zip(result.iter_rows(named=True), expected, strict=True):
        for name in (
            "jeditaskid",
            "rank",
            "margin_pct",
            "estimate",
            "n_scouts",
            "n_scored",
            "cores",
        ):
            assert row[name] == slow[name], (name, slow)
        assert (row["n_exceed"], row["n_lost"]) == (slow["n_exceed"], slow["n_lost"]), slow
        for name in ("used", "over", "waste"):
            assert math.isclose(row[f"{name}_{amount}"], slow[name], rel_tol=1e-9, abs_tol=1e-9), (
                name
            )
        assert math.isclose(row["killed_coreh"], slow["killed_coreh"], rel_tol=1e-9, abs_tol=1e-9)
        assert math.isclose(row["work_coreh"], slow["work"], rel_tol=1e-9)


@pytest.mark.parametrize("parameter", ["ramcount", "cputime", "outdiskcount"])
@given(
    seed=st.integers(0, 10_000),
    marked=st.booleans(),
    used=st.sampled_from(["half", "all"]),
    rules=st.sampled_from(["document", "production"]),
    per_core=st.booleans(),
    factors=st.sampled_from([(), (2.0,), (1.5, 3.0)]),
    compensation=st.sampled_from([1.0, 0.95, 0.9]),
)
@settings(max_examples=examples(25), deadline=None)
def test_equals_the_plain_loops(
    parameter, seed, marked, used, rules, per_core, factors, compensation
):
    jobs = toys.quantities(4, 35, seed=seed, marked=marked, per_core=per_core, spread=0.2)
    tasks = toys.tasks(4)
    pairs = [(r, m) for r in (50, 75, 99) for m in MARGINS[parameter]]
    made = Assumptions(
        rules=ScoutRules(rules),
        scouts_used=used,
        retry_factors=factors,
        compensation=compensation,
        killed_after=0.5,
    )
    result = backtest(
        jobs,
        tasks,
        parameter=parameter,
        ranks=[50, 75, 99],
        margins=MARGINS[parameter],
        current=(*pairs[0], 1500),
        assumptions=made,
    )
    expected = slow_twin.by_task(
        jobs,
        tasks,
        parameter,
        pairs,
        rules=rules,
        scouts_used=used,
        ram_min=1500,
        retry_factors=factors,
        compensation=compensation,
        killed_after=0.5,
    )
    rows = result.under(result.grid)
    compare(rows, expected, parameter)
    sums = rows.group_by("rank", "margin_pct").agg(
        pl.col("n_exceed", "n_scored", "killed_coreh", f"over_{AMOUNT[parameter]}").sum()
    )
    joined = result.by_setting.join(sums, on=["rank", "margin_pct"], suffix="_sum")
    assert joined.height == len(pairs)
    assert (joined["n_exceed"] == joined["n_exceed_sum"]).all()
    assert np.allclose(joined["killed_coreh"], joined["killed_coreh_sum"], rtol=1e-9)


def one_task(scout_mb, rest_mb, *, hours=1.0, cores=1.0):
    """One single-core task: scouts and rest of the given memory, each job one hour."""
    n = len(scout_mb) + len(rest_mb)
    frame = toys.quantities(1, n).with_columns(
        cores=pl.lit(cores),
        duration_s=pl.lit(int(3600 * hours)),
        is_scout=pl.Series([True] * len(scout_mb) + [False] * len(rest_mb)),
        maxpss_kb=pl.Series([1024.0 * mb for mb in [*scout_mb, *rest_mb]]),
    )
    base = pl.DataFrame({"jeditaskid": [100]})
    return frame.with_columns(ram_kb=(pl.col("maxpss_kb") / pl.col("cores")).ceil()), base


def test_by_hand_memory():
    # all four scouts: rank 50 of 1000..1300 is 1150, times 1.10 is 1265 MB
    jobs, tasks = one_task([1000, 1100, 1200, 1300], [1265, 1265.1, 2530, 2531])
    result = backtest(
        jobs,
        tasks,
        ranks=[50],
        margins=[10],
        current=(50, 10),
        assumptions=Assumptions(scouts_used="all", min_scored=1),
    )
    row = toys.by_task(result).row(0, named=True)
    assert (row["estimate"], row["n_exceed"], row["n_lost"]) == (1265, 3, 1)
    gb = 1 / 1024
    assert math.isclose(row["used_gbh"], (1265 + 1265.1 + 2530) * gb)
    assert math.isclose(row["over_gbh"], (2530 - 1265.1) * gb)
    assert math.isclose(
        row["waste_gbh"], (3 * 1265 + 2530) * gb
    )  # three first attempts, one second
    assert row["killed_coreh"] == 4.0
    assert row["work_coreh"] == 4.0
    weights = LossWeights.default("ramcount")
    loss = (0.5 * row["over_gbh"] + 4.0 + 0.5 * 3 + 10 * 1) / 4
    assert math.isclose(toys.row_of(result, 50, 10)["loss"], loss)
    assert result.weights == weights


def test_by_hand_first_trigger():
    # ten scouts: the fifth to finish decides; a tie at that time counts as finished
    jobs, _ = one_task([1000] * 10, [900] * 20)
    seconds = [10, 20, 30, 40, 50, 50, 70, 80, 90, 100, *range(200, 220)]
    at = [toys.T0 + toys.timedelta(seconds=s) for s in seconds]
    jobs = jobs.with_columns(finish_time=pl.Series(at))
    result = backtest(jobs, pl.DataFrame({"jeditaskid": [100]}), ranks=[75], margins=[10])
    assert toys.by_task(result)["n_scouts"].to_list() == [6]


def test_failed_scouts_delay_the_trigger():
    quantities, tasks = one_task([1000] * 6, [900] * 20)
    ids = {
        "jeditaskid": 100,
        "jobstatus": "failed",
        "specialhandling": "sj",
        "creationtime": toys.T0,
    }
    times = {"starttime": toys.T0, "endtime": toys.T0}
    jobs = pl.DataFrame([{**ids, **times, "pandaid": 9000 + i, "parentid": None} for i in range(4)])
    run = lambda jobs: backtest(quantities, tasks, None, jobs, ranks=[75], margins=[10])  # noqa: E731
    assert toys.by_task(run(None))["n_scouts"].item() == 3
    assert toys.by_task(run(jobs))["n_scouts"].item() == 5  # half of ten
    # a failed scout that was retried is its retry: here the retries are four of the six
    retries = pl.DataFrame(
        [
            {**ids, **times, "jobstatus": "finished", "pandaid": i + 1, "parentid": 9000 + i}
            for i in range(4)
        ]
    )
    known = run(pl.concat([jobs, retries], how="diagonal_relaxed"))
    assert toys.by_task(known)["n_scouts"].item() == 3


def test_killed_jobs_are_lower_bounds():
    quantities, tasks = one_task([1000] * 4, [1000] * 20)
    killed = {
        "jeditaskid": 100,
        "jobstatus": "failed",
        "piloterrorcode": 1212,
        "actualcorecount": 1,
        "creationtime": toys.T0,
        "starttime": toys.T0,
        "endtime": toys.T0 + toys.timedelta(hours=2),
    }
    jobs = pl.DataFrame(
        [
            {**killed, "pandaid": 501, "maxpss": 1100 * 1024},
            {**killed, "pandaid": 502, "maxpss": None},
        ]
    )
    how = {"ranks": [75], "margins": [9, 10, 11], "current": (75, 10)}
    result = backtest(quantities, tasks, None, jobs, **how)
    assert dict(result.by_setting.select("margin_pct", "n_exceed").iter_rows()) == {
        9: 1,
        10: 1,
        11: 0,
    }
    assert (result.counts["n_killed_memory"], result.counts["n_censored"]) == (2, 1)
    assert any("2 jobs killed at a limit (memory)" in line for line in result.caveats)
    left_out = backtest(
        quantities, tasks, None, jobs, **how, assumptions=Assumptions(killed_as="exclude")
    )
    assert toys.row_of(left_out, 75, 10)["n_exceed"] == 0
    assert any("left out" in line for line in left_out.caveats)


@pytest.mark.parametrize("seed", range(5))
def test_a_job_killed_at_its_walltime_limit_is_killed_at_that_limit(seed):
    """It needed just more than was seen, in whole seconds, however small a part of one the estimate counts in."""
    quantities, tasks = toys.quantities(1, 60, seed=seed), toys.tasks(1)
    how = {"parameter": "cputime", "ranks": [50], "current": (50, 50)}
    row = toys.by_task(backtest(quantities, tasks, **how)).row(0, named=True)
    usual = quantities.filter(~pl.col("is_scout")).select("n_events", "corepower", "cores").median()
    events, power, cores = usual.row(0)
    limit = int(row["estimate"] / 1000 * events / cores / power / 0.9 + 600)
    killed = {
        "jeditaskid": 100,
        "pandaid": 501,
        "jobstatus": "failed",
        "piloterrorcode": 1213,
        "actualcorecount": int(cores),
        "creationtime": toys.T0,
        "starttime": toys.T0,
        "endtime": toys.T0 + toys.timedelta(seconds=limit),
    }
    result = backtest(quantities, tasks, None, pl.DataFrame([killed]), **how)
    assert result.counts["n_censored"] == 1
    assert toys.by_task(result)["n_exceed"].item() == row["n_exceed"] + 1


def test_killed_scouts_are_not_scored():
    """A scout's limit was the one from before scouting: what kills it says nothing about the estimate."""
    quantities, tasks = one_task([1000] * 4, [1000] * 20)
    killed = {
        "jeditaskid": 100,
        "jobstatus": "failed",
        "piloterrorcode": 1212,
        "actualcorecount": 1,
        "maxpss": 1200 * 1024,
        "creationtime": toys.T0,
        "starttime": toys.T0,
        "endtime": toys.T0,
    }
    jobs = pl.DataFrame(
        [
            {**killed, "pandaid": 501, "specialhandling": "sj"},
            {**killed, "pandaid": 502, "specialhandling": None},
        ]
    )
    result = backtest(quantities, tasks, None, jobs, ranks=[75], margins=[10])
    assert (result.counts["n_scored"], result.counts["n_censored"]) == (21, 1)
    assert toys.row_of(result, 75, 10)["n_exceed"] == 1


def test_jobs_that_outgrew_their_limit_and_finished_are_told():
    quantities, tasks = one_task([1000] * 4, [1000] * 20)
    scouts = {100: 900, 101: None}  # recorded requests [MB]; null and 0 are none
    given = [999, 1000, 0, *[2000] * 17]
    rest = quantities.filter(~pl.col("is_scout"))["pandaid"].to_list()
    common = {
        "jeditaskid": 100,
        "creationtime": toys.T0,
        "starttime": toys.T0,
        "endtime": toys.T0,
    }
    rows = [
        {**common, "pandaid": p, "jobstatus": "finished", "minramcount": mb}
        for p, mb in zip([*scouts, *rest], [*scouts.values(), *given], strict=True)
    ]
    kill = {**common, "jobstatus": "failed", "piloterrorcode": 1212}
    jobs = pl.DataFrame(
        [
            *({**r, "parentid": 700 if r["pandaid"] == rest[-1] else None} for r in rows),
            {**kill, "pandaid": 700},  # retried with success, and still a kill
        ],
        infer_schema_length=None,
    )
    result = backtest(quantities, tasks, None, jobs, ranks=[75], margins=[10])
    assert (result.counts["n_outgrown"], result.counts["n_kills"]) == (1, 1)
    told = next(line for line in result.caveats if line.startswith("Every job above its request"))
    assert "1 of 20 used more than given" in told


def test_jobs_created_after_the_second_trigger_are_counted():
    quantities, tasks = one_task([1000] * 4, [1000] * 150)
    last = pl.col("finish_time").max()
    late = pl.col("pandaid") > 151
    moved = quantities.with_columns(
        creationtime=pl.when(late).then(last).otherwise("creationtime"),
        finish_time=pl.when(late).then(last + pl.duration(hours=1)).otherwise("finish_time"),
    )
    result = backtest(moved, tasks, ranks=[75], margins=[10])
    assert result.counts["n_after_second"] == 3
    assert any("3 of 150 scored jobs were created after" in line for line in result.caveats)


def test_the_period_of_the_first_trigger_lets_more_scouts_in():
    quantities, tasks = one_task([1000] * 10, [1000] * 20)
    hour = [toys.T0 + toys.timedelta(minutes=3 * i) for i in range(30)]
    timed = quantities.with_columns(finish_time=pl.Series(hour))
    used = {
        period: toys.by_task(
            backtest(timed, tasks, ranks=[75], assumptions=Assumptions(trigger_period_s=period))
        )["n_scouts"].item()
        for period in (0, 600)
    }
    assert used == {0: 5, 600: 7}  # 12 minutes; looked at after 20, when the seventh is in


def test_the_size_of_queues_is_that_of_the_given_tasks():
    """Jobs of tasks outside the period must not weigh its queues: they would be known only later."""
    jobs, tasks = one_task([1000] * 4, [1000] * 20)
    jobs = jobs.with_columns(computingsite=pl.Series(["A"] * 4 + ["B"] * 20))
    other = jobs.with_columns(
        computingsite=pl.lit("A"), jeditaskid=pl.lit(999), pandaid=pl.col("pandaid") + 1000
    )
    queues = pl.DataFrame({"panda_queue": ["A", "B"], "corecount": [1, 1], "maxrss": [2000, 500]})
    row = backtest(pl.concat([jobs, other], how="vertical_relaxed"), tasks, queues, ranks=[75])
    assert math.isclose(toys.row_of(row, 75, 10)["slots_share"], 4 / 24)


@pytest.mark.parametrize(("rules", "estimate"), [("document", 20_480), ("production", 10_240)])
def test_output_has_a_cap_in_production_alone(rules, estimate):
    events, size = 100, 20 * 2**20
    jobs = toys.quantities(1, 35).with_columns(
        n_events=pl.lit(events),
        outdisk_bytes=pl.lit(float(size)),
        outputfilebytes=pl.lit(events * size),
    )
    made = Assumptions(rules=ScoutRules(rules))
    row = backtest(jobs, toys.tasks(1), parameter="outdiskcount", ranks=[75], assumptions=made)
    assert toys.by_task(row)["estimate"].to_list() == [estimate]
    assert toys.row_of(row, 75, 0)["exceed_rate"] == (0 if rules == "document" else 1)


def test_tasks_that_are_told_0_are_counted():
    jobs = toys.quantities(3, 35)
    little = pl.when(pl.col("jeditaskid") == jobs["jeditaskid"][0]).then(100.0).otherwise(5000.0)
    row = backtest(
        jobs.with_columns(outdisk_bytes=little), toys.tasks(3), parameter="outdiskcount", ranks=[75]
    )
    assert sorted(toys.by_task(row)["estimate"]) == [0, 4, 4]
    assert row.counts["n_zero_estimates"] == 1


def test_shares_of_queues_that_are_not_known_are_null():
    jobs, tasks = one_task([1000] * 4, [1000] * 20)
    row = toys.row_of(backtest(jobs, tasks, ranks=[75], margins=[10]), 75, 10)
    assert (row["queues_share"], row["slots_share"]) == (None, None)


def test_queues_and_slots():
    jobs, tasks = one_task([1000] * 4, [1000] * 20)
    sites = ["A"] * 4 + ["B"] * 20  # 4 and 20 core-hours
    jobs = jobs.with_columns(computingsite=pl.Series(sites))
    queues = pl.DataFrame(
        {
            "panda_queue": ["A", "B", "C", "D"],
            "corecount": [1, 2, 1, 8],
            "maxrss": [1100, 2198, 500, None],
        }
    )
    row = toys.row_of(backtest(jobs, tasks, queues, ranks=[75], margins=[10]), 75, 10)
    assert row["queues_share"] == 0.5  # A has exactly 1100 MB per core, B 1099, C 500, D no limit
    assert math.isclose(row["slots_share"], 4 / 24)


def test_walltime_reach_counts_core_power():
    jobs, tasks = one_task([1000] * 4, [1000] * 20)
    jobs = jobs.with_columns(
        n_events=pl.lit(100), cputime_hs06s=pl.lit(90.0), cputime_eligible=pl.lit(value=True)
    )
    queues = pl.DataFrame(
        {
            "panda_queue": ["A", "B", "C"],
            "maxtime": [1350, 1349, 675],
            "corepower": [10.0, 10.0, 20.0],
        }
    )
    # 90 x 1.5 = 135 HS06 s per event: 135 * 100 / (10 * 0.9) = 1500 s at power 10; 90 % of it at eff 100
    facts = tasks.with_columns(cpuefficiency=pl.lit(100))
    tried = backtest(jobs, facts, queues, parameter="cputime", ranks=[95], margins=[50])
    row = toys.row_of(tried, 95, 50)
    assert math.isclose(row["queues_share"], 2 / 3)


@given(seed=st.integers(0, 1000))
@settings(max_examples=examples(15), deadline=None)
def test_a_higher_rank_or_margin_never_kills_more(seed):
    jobs, tasks = toys.quantities(4, 40, seed=seed, spread=0.3), toys.tasks(4)
    frame = backtest(jobs, tasks, ranks=range(50, 100, 3), margins=range(0, 31, 3)).by_setting
    frame = frame.filter(~((pl.col("rank") == 75) & (pl.col("margin_pct") == 10)))
    table = frame.pivot("margin_pct", index="rank", values="n_exceed").sort("rank")
    counts = table.drop("rank").select(sorted(table.columns[1:], key=int)).to_numpy()
    # interpolation in floats may move an estimate by its last bit, never by a whole MB here
    assert (np.diff(counts, axis=0) <= 0).all()
    assert (np.diff(counts, axis=1) <= 0).all()


def test_order_of_rows_and_added_tasks_change_no_task():
    jobs, tasks = toys.quantities(6, 40, seed=4), toys.tasks(6)
    full = backtest(jobs, tasks)
    shuffled = backtest(jobs.sample(fraction=1.0, shuffle=True, seed=1), tasks.reverse())
    assert full.by_setting.equals(shuffled.by_setting)
    half = backtest(jobs, tasks.head(3))
    settings = [full.current, Setting(75, 0)]
    expected = full.under(settings).filter(pl.col("jeditaskid") < 103)
    assert half.under(settings).equals(expected)


def test_scaling_memory_scales_requests():
    jobs, tasks = toys.quantities(4, 40, seed=4), toys.tasks(4).with_columns(baseramcount=pl.lit(0))
    jobs = jobs.with_columns(ram_kb=(pl.col("maxpss_kb") / pl.col("cores")).ceil())
    doubled = jobs.with_columns(pl.col("maxpss_kb", "ram_kb") * 2)
    one, two = (toys.by_task(backtest(frame, tasks)) for frame in (jobs, doubled))
    assert ((two["estimate"] - 2 * one["estimate"]).abs() <= 1).all()


def test_strata_add_up():
    result = backtest(toys.quantities(40, 40, seed=2, spread=0.2), toys.tasks(40))
    tasks = toys.by_task(result)
    levels = levels_of(tasks)
    assert levels["stratum"].unique().sort().to_list() == sorted(STRATA)
    for (stratum,), rows in levels.group_by("stratum"):
        assert sorted(rows["place"].explode()) == list(range(40)), stratum
    mine = levels.filter(stratum="gshare", level="(none)")["place"].explode()
    assert tasks["gshare"].gather(mine).null_count() == len(mine) == tasks["gshare"].null_count()


def test_gap_shows_heavier_scouts():
    jobs, tasks = one_task([1200] * 10, [1000, 1000.5] * 15)
    gap = backtest(jobs, tasks).gap.row(0, named=True)
    assert 1.19 < gap["ratio_median"] < 1.21


def test_scouts_that_are_heavier_are_a_caveat():
    heavier = toys.quantities(30, 40, seed=2).with_columns(
        pl.col("ram_kb") * pl.when("is_scout").then(1.3).otherwise(1.0)
    )
    (told,) = (
        each for each in backtest(heavier, toys.tasks(30)).caveats if "no random sample" in each
    )
    part = float(told.split("median lies ")[1].split()[0])
    assert 20 < part < 40
    assert "% above that of the rest" in told.replace("\u202f", " ")


def test_an_absurd_estimate_of_a_task_leaves_the_others_alone():
    """Petabytes per event, as a damaged record has them, serve all jobs of their task and no other."""
    quantities, tasks = toys.quantities(3, 40, seed=1), toys.tasks(3)
    absurd = pl.when(pl.col("jeditaskid") == 100).then(2.0**52).otherwise("outdisk_bytes")
    damaged, sound = (
        toys.by_task(backtest(jobs, tasks, parameter="outdiskcount", ranks=[75]))
        for jobs in (quantities.with_columns(outdisk_bytes=absurd), quantities)
    )
    assert damaged["n_exceed"].to_list() == [0, *sound["n_exceed"].to_list()[1:]]
    assert damaged["used_gb"].to_list() == pytest.approx(sound["used_gb"].to_list())


def test_the_order_of_queues_changes_no_bit():
    offers = np.full(40, 2000.0)
    slots = np.random.default_rng(1).random(40)
    order = np.random.default_rng(2).permutation(40)
    one, other = (Offers.of(offers, each) for each in (slots, slots[order]))
    assert np.array_equal(one.slots_above, other.slots_above)


def test_identity_of_amounts():
    frame = backtest(toys.quantities(8, 40, seed=5, spread=0.3), toys.tasks(8)).by_setting
    assert np.allclose(
        frame["reserved_gbh"], frame["used_gbh"] + frame["over_gbh"] + frame["waste_gbh"]
    )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"parameter": "ramcont"}, ConfigError, "did you mean 'ramcount'"),
        ({"ranks": [101]}, ConfigError, "rank 101: allowed are whole numbers 0 to 100"),
        ({"current": (150, 10)}, ConfigError, "rank 150: allowed are whole numbers 0 to 100"),
        (
            {"minima": [500.5]},
            ConfigError,
            "minimum 500.5: allowed are whole numbers of at least 0",
        ),
        (
            {"minima": [None, -5]},
            ConfigError,
            "minimum -5: allowed are whole numbers of at least 0",
        ),
        ({"ranks": []}, ConfigError, "must not be empty"),
        ({"parameter": "outdiskcount", "margins": [5]}, ConfigError, "outdiskcount has no margin"),
        (
            {"assumptions": Assumptions(min_scored=500)},
            InsufficientDataError,
            "none of 3 tasks has",
        ),
        *(
            ({"assumptions": Assumptions(retry_factors=one)}, ConfigError, "rising factors above 1")
            for one in ((0.5,), (math.nan,), (2.0, math.inf))
        ),
    ],
)
def test_impossible_requests(change, error, words):
    with pytest.raises(error, match=words):
        backtest(toys.quantities(3), toys.tasks(3), **change)


def test_impossible_assumptions_are_reported_together():
    with pytest.raises(ConfigError, match=r"scouts_used='third'.*; compensation=0"):
        Assumptions(scouts_used="third", compensation=0)


def test_fixed_units_and_unscaled_tasks_are_not_calibrated():
    tasks = toys.tasks(4).with_columns(
        cputimeunit=pl.Series(["HS06sPerEventFixed", "HS06sPerEvent", None, None]),
        cpuefficiency=pl.Series([90, 90, 0, None]),
    )
    result = backtest(toys.quantities(4, 60, seed=1), tasks, parameter="cputime")
    assert toys.by_task(result)["jeditaskid"].to_list() == [101, 103]
