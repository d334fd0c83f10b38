"""Slots of queues: what is stated, what is seen when a queue is full, and what is only a lower bound."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.calibrate.simulation.archive import cycle_of, cycle_seen
from brokerlab.calibrate.simulation.capacity import (
    capacity_of,
    full_windows,
    in_use,
    read_capacity,
    stalls,
    stated_slots,
    upper_slots,
    with_given,
    with_sources,
    without_stalls,
)
from brokerlab.errors import ConfigError, DataError, SchemaError

T0 = datetime(2026, 3, 1)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
TWO_DAYS = {"begin": T0, "end": T0 + 2 * DAY, "window": DAY}


def jobs_of(queue, starts, wait, cores=1):
    """Jobs of two hours that begin at these hours after having waited so long."""
    begun = [T0 + hour * HOUR for hour in starts]
    return pl.DataFrame(
        {
            "computingsite": queue,
            "readytime": [at - wait for at in begun],
            "starttime": begun,
            "endtime": [at + 2 * HOUR for at in begun],
            "corecount": cores,
        }
    )


@pytest.fixture(scope="module")
def jobs():
    """Four slots that are never free on the first day; one where jobs start at once; one where they wait beside free slots."""
    busy = [hour for hour in range(0, 24, 2) for _ in range(4)]
    return pl.concat(
        [
            jobs_of("FULL", busy, 3 * HOUR),
            jobs_of("FULL", [30, 31], timedelta(minutes=2)),
            jobs_of("FREE", [*busy, 30], timedelta(minutes=2)),
            jobs_of("SLOW", [2, 2, 2, 2, 9, 14, 19], 4 * HOUR),
        ]
    )


@pytest.fixture(scope="module")
def capacity(jobs):
    return capacity_of(in_use(jobs), **TWO_DAYS, quantile=1.0)


def test_a_queue_was_full_where_jobs_waited_while_its_slots_were_in_use(jobs, capacity):
    """calibration.md, section 4: the busiest time shows the capacity only where jobs waited for slots."""
    full = full_windows(jobs, capacity, window=DAY)
    assert full.rows() == [("FULL", T0)]


def test_slots_come_from_the_surest_source(jobs, capacity):
    queues = pl.DataFrame({"panda_queue": ["FULL", "FREE", "SLOW", "IDLE"], "pledgedcpu": [9, 9, -1, 7]})  # fmt: skip
    slots = pl.DataFrame(
        {
            "pandaqueuename": ["SLOW", "SLOW", "FREE", "FULL"],
            "resourcetype": ["SCORE", "MCORE", None, None],
            "numslots": [3, 8, -1, 50],
            "gshare": pl.Series([None] * 4, dtype=pl.String),
            "ts": [T0] * 4,
            "expirationtime": [None, None, None, T0 + HOUR],
        }
    )
    stated = stated_slots(slots, queues, **TWO_DAYS)
    assert stated.filter(pl.col("ts") == T0).rows() == [
        ("FREE", T0, 9, "pledge"),
        ("FULL", T0, 9, "pledge"),  # what was set for it is over at noon
        ("IDLE", T0, 7, "pledge"),
        ("SLOW", T0, 11, "slots"),  # of all types together
    ]
    found = with_sources(capacity, full_windows(jobs, capacity, window=DAY), stated)
    first = {row[0]: row[2:] for row in found.filter(pl.col("ts") == T0).rows()}
    assert first == {
        "FREE": (9, "pledge"),
        "FULL": (4, "full"),
        "IDLE": (7, "pledge"),
        "SLOW": (11, "slots"),
    }
    later = {row[0]: row[2:] for row in found.filter(pl.col("ts") == T0 + DAY).rows()}
    assert later["FULL"] == (4, "full")  # as on the day on which it was


def test_before_the_first_slots_of_all_those_first_ones_hold():
    """Days before the archive begins belong to what is simulated before a period."""
    queues = pl.DataFrame({"panda_queue": ["SLOW", "FREE"], "pledgedcpu": [9, 9]})
    slots = pl.DataFrame(
        {
            "pandaqueuename": ["SLOW", "FREE"],
            "gshare": pl.Series([None] * 2, dtype=pl.String),
            "numslots": [3, 5],
            "modificationtime": [T0 + 1.6 * DAY, T0 + 3.6 * DAY],
        }
    )

    def stated(days, table=slots):
        found = stated_slots(table, queues, begin=T0, end=T0 + days * DAY, window=DAY)
        return [found.filter(panda_queue=name)["slots"].to_list() for name in ("SLOW", "FREE")]

    assert stated(5) == [[3] * 5, [9, 9, 9, 9, 5]]
    assert stated(1.7) == [[3] * 2, [9, 9]]
    # what was set after the end is not looked at, also where the middle of the last window lies behind it
    assert stated(1.55) == [[9] * 2, [9] * 2]
    none = slots.with_columns(
        numslots=pl.lit(-1, pl.Int64), modificationtime=T0 + 0.1 * DAY
    )  # negative: nothing is set
    assert stated(5, pl.concat([none, slots])) == stated(5)
    cut = slots.with_columns(ts=pl.Series([None, T0 + 3.6 * DAY], dtype=pl.Datetime("us")))
    assert stated(5, cut) == stated(5)  # without a time of its own a row holds from its change


def test_what_is_never_full_is_a_lower_bound_that_may_be_swept(jobs, capacity):
    nothing = stated_slots(None, pl.DataFrame({"panda_queue": ["FULL"]}), **TWO_DAYS)
    found = with_sources(capacity, full_windows(jobs, capacity, window=DAY), nothing)
    idle = pl.DataFrame({"panda_queue": ["IDLE"]})
    low = {row[0]: row[2:] for row in upper_slots(found, idle, 1).filter(pl.col("ts") == T0).rows()}
    assert low == {
        "FREE": (4, "busiest"),
        "FULL": (4, "full"),
        "IDLE": (0, "nothing"),
        "SLOW": (4, "busiest"),
    }
    top = {row[0]: row[2] for row in upper_slots(found, idle, 2.5).rows()}
    assert top == {
        "FREE": 10,
        "FULL": 4,
        "IDLE": 4,
        "SLOW": 10,
    }  # the idle one: as the median queue


def test_what_is_given_goes_before_everything(jobs, capacity):
    nothing = stated_slots(None, pl.DataFrame({"panda_queue": ["FREE"]}), **TWO_DAYS)
    found = with_sources(capacity, full_windows(jobs, capacity, window=DAY), nothing)
    given = read_capacity(pl.DataFrame({"panda_queue": ["FREE"], "slots": [12]}))
    rows = with_given(found, given).filter(pl.col("panda_queue") == "FREE")
    assert rows.select("slots", "source").rows() == [(12, "given")]
    assert with_given(found, None) is found


def test_a_file_of_slots_is_read_or_refused_with_what_is_wrong(tmp_path):
    good = tmp_path / "slots.csv"
    good.write_text("panda_queue,slots,ts\nA,3,\nA,5,2026-03-02 00:00:00\n")
    assert read_capacity(good)["slots"].to_list() == [3, 5]
    assert read_capacity(good)["ts"].to_list()[1] == T0 + DAY
    with pytest.raises(ConfigError, match=r"none\.csv: there is no such file"):
        read_capacity(tmp_path / "none.csv")
    bad = tmp_path / "bad.csv"
    bad.write_text("panda_queue,slots\nA,many\nB,3\n")
    with pytest.raises(SchemaError, match=r"bad\.csv\.slots: 1 values are no Int64 \('many'\)"):
        read_capacity(bad)
    with pytest.raises(DataError, match="slots -2 in 1 rows"):
        read_capacity(pl.DataFrame({"panda_queue": ["A"], "slots": [-2]}))
    with pytest.raises(SchemaError, match=r"capacity\.slots is missing: add it"):
        read_capacity(pl.DataFrame({"panda_queue": ["A"], "cores": [2]}))


def batches(every, spread=timedelta(seconds=1), of=30, task=1):
    """Return jobs of a task, eight at a time."""
    made = [T0 + k * every + n * spread for k in range(of) for n in range(8)]
    return pl.DataFrame({"jeditaskid": task, "creationtime": made})


def test_the_cycle_is_read_where_batches_of_jobs_show_it():
    assert cycle_of(batches(2 * HOUR)) == timedelta(minutes=120)
    assert cycle_of(batches(timedelta(minutes=5))) == timedelta(minutes=30)  # at least
    assert cycle_of(batches(2 * HOUR, 200 * timedelta(seconds=1))) is None  # spread evenly
    assert cycle_of(batches(2 * HOUR, of=1)) is None
    assert cycle_of(batches(timedelta(minutes=61))) is None  # no part of a day


def test_how_long_tasks_wait_for_their_next_batch_is_not_the_cycle():
    """Each task has two batches, one to eleven cycles apart: the brokerage is asked every hour all the same."""
    parts = [batches((1 + t * 7 % 11) * HOUR, of=2, task=t) for t in range(15)]
    shifted = [
        part.with_columns(pl.col("creationtime") + t * t * HOUR) for t, part in enumerate(parts)
    ]
    assert cycle_of(pl.concat(shifted)) == HOUR


@pytest.mark.parametrize(
    "made", [{"specialhandling": "sj"}, {"processingtype": "pmerge"}, {"parentid": 1}]
)
def test_jobs_that_no_brokerage_places_do_not_show_its_cycle(made):
    """Scouts, merges and retries come by themselves, here every 50 minutes; more of them than of the others."""
    none = {"specialhandling": None, "processingtype": None, "parentid": None}
    kinds = {"specialhandling": pl.String, "processingtype": pl.String, "parentid": pl.Int64}
    rows = [
        frame.with_columns(
            pl.lit("managed").alias("prodsourcelabel"),
            *(pl.lit(value, kinds[name]).alias(name) for name, value in {**none, **values}.items()),
        )
        for frame, values in ((batches(HOUR), {}), (batches(timedelta(minutes=50), of=90), made))
    ]

    archive = SimpleNamespace(scan={"jobs": pl.concat(rows).lazy()}.get)
    assert cycle_seen(archive) == "60m"


def slots_of(queue, slots):
    return pl.DataFrame({"panda_queue": [queue], "ts": [T0], "slots": [slots], "source": ["slots"]})


def test_a_queue_that_starts_nothing_though_jobs_wait_and_slots_are_free_takes_no_jobs_then():
    ready = [T0, T0 + HOUR, T0 + HOUR]
    begun = [T0, T0 + 9 * HOUR, T0 + 9 * HOUR]
    jobs = jobs_of("Q", [0, 9, 9], HOUR).with_columns(
        readytime=pl.Series(ready), starttime=pl.Series(begun)
    )
    found = stalls(jobs, slots_of("Q", 4))
    assert found.rows() == [("Q", T0 + HOUR, T0 + 9 * HOUR)]
    held = without_stalls(slots_of("Q", 4), found)
    assert held.select("ts", "slots").rows() == [(T0, 4), (T0 + HOUR, 0), (T0 + 9 * HOUR, 4)]


def test_a_full_queue_and_one_without_work_take_jobs():
    late = jobs_of("Q", [0, 9], HOUR).with_columns(
        readytime=pl.Series([T0, T0 + HOUR]), endtime=pl.Series([T0 + 9 * HOUR, T0 + 10 * HOUR])
    )
    assert stalls(late, slots_of("Q", 1)).is_empty()  # one slot, which is taken
    assert stalls(jobs_of("Q", [0, 9], timedelta(0)), slots_of("Q", 4)).is_empty()  # nobody waits
    assert stalls(jobs_of("Q", [9], 2 * HOUR), slots_of("Q", 4)).is_empty()  # not for long
    same = slots_of("Q", 4)
    assert without_stalls(same, stalls(late, slots_of("Q", 1))).equals(same)


def test_slots_that_change_while_a_queue_takes_no_jobs_hold_from_its_end_on():
    two = pl.concat([slots_of("Q", 4), slots_of("Q", 6).with_columns(ts=T0 + 2 * HOUR)])
    spell = pl.DataFrame({"panda_queue": ["Q"], "begin": [T0 + HOUR], "end": [T0 + 5 * HOUR]})
    rows = without_stalls(two, spell).select("ts", "slots").rows()
    assert rows == [(T0, 4), (T0 + HOUR, 0), (T0 + 2 * HOUR, 0), (T0 + 5 * HOUR, 6)]
