"""Tables and arguments that make no sense: refused in words, or kept out of the other tasks' results."""

from __future__ import annotations

import math
import re
from datetime import UTC
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab import scouts
from brokerlab.errors import BrokerlabError, ConfigError, DataError, SchemaError
from brokerlab.gdpconfig import Config
from brokerlab.numerics import SortedGroups
from tests.scout_toys import Toy, at, by_name


def healthy() -> Toy:
    """Two tasks; tests spoil the first."""
    toy = Toy().task(2)
    return toy.job(1, memory_leak_x2=2.0).job(2, task=2, memory_leak_x2=2.0)


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf],
)
def test_nan_and_infinity_in_a_job_are_not_known(value: float) -> None:
    toy = healthy()
    toy.jobs[0]["memory_leak_x2"] = value
    assert toy.result().parameters["memory_leak_x2"].to_list() == [None, 2]


@pytest.mark.parametrize("power", [math.nan, math.inf])
def test_a_power_that_is_no_number(power: float) -> None:
    toy = healthy().queue("ODD", power)
    toy.jobs[0]["computingsite"] = "ODD"
    assert toy.result().parameters["cputime"].to_list()[1] == 540


def test_negative_times_do_not_touch_other_tasks() -> None:
    toy = healthy()
    before = toy.result().parameters
    toy.jobs[0]["endtime"] = at(-50)
    after = toy.result().parameters
    assert after.filter(pl.col("jeditaskid") == 2).equals(before.filter(pl.col("jeditaskid") == 2))
    assert (after["cputime"][0], after["exec_time"][0]) == (0, -50)


def test_long_texts() -> None:
    toy = healthy()
    toy.jobs[0]["jobmetrics"] = "x" * 10_000_000 + " workDirSize=99999999"
    assert toy.result().parameters["workdiskcount"].to_list() == [95, 0]


def test_numbers_as_text_are_read() -> None:
    jobs, *others = healthy().tables()
    found = scouts.estimate(
        by_name(
            (
                jobs.with_columns(
                    pl.col("pandaid").cast(pl.String), jeditaskid=pl.Series(["1.0", " 2"])
                ),
                *others,
            )
        )
    )
    assert found.parameters["cputime"].to_list() == [540, 540]


@pytest.mark.parametrize("unit", ["ms", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_of_other_precision_or_with_a_zone(unit: Any, zone: str | None) -> None:
    jobs, *others = healthy().tables()
    times = pl.col("starttime", "endtime").cast(pl.Datetime(unit)).dt.replace_time_zone(zone)
    found = scouts.estimate(by_name((jobs.with_columns(times), *others)))
    assert found.parameters["cputime"].to_list() == [540, 540]


def test_null_keys_are_nobodys() -> None:
    toy = healthy()
    toy.job(3, 9 * 3600)
    toy.jobs[-1]["jeditaskid"] = None
    toy.files[-1]["jeditaskid"] = None
    toy.file(None)
    assert toy.result().parameters["n_jobs_used"].to_list() == [1, 1]


def two_sessions(tables: tuple[pl.DataFrame, ...]) -> list[Any]:
    return [duckdb.connect().from_arrow(table.to_arrow()) for table in tables]


def two_engines(tables: tuple[pl.DataFrame, ...]) -> list[Any]:
    return [duckdb.connect().from_arrow(tables[0].to_arrow()), *tables[1:]]


@pytest.mark.parametrize("mixed", [two_sessions, two_engines])
def test_tables_of_different_engines_on_this_machine(mixed: Any) -> None:
    tables = healthy().tables()
    expected = scouts.estimate(by_name(tables)).parameters
    assert_frame_equal(scouts.estimate(by_name(mixed(tables))).parameters, expected)


def test_two_instants_of_one_task() -> None:
    instants = pl.DataFrame({"jeditaskid": [1, 1], "at": [at(1), at(9999)]})
    with pytest.raises(DataError, match=r"at\.jeditaskid.*more than once"):
        healthy().result(at=instants)


@pytest.mark.parametrize(
    "options",
    [
        {"max_scouts": -1},
        {"worker_nodes": pl.DataFrame({"site": ["S"]})},
        {"at": "2026-03-02"},
        {"at": pl.DataFrame({"task": [1]})},
    ],
    ids=["max_scouts", "worker_nodes alone", "at as text", "at without jeditaskid"],
)
def test_impossible_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(BrokerlabError):
        healthy().result(**options)


def test_the_rule_set_by_name() -> None:
    tables = by_name(healthy().tables())
    named = scouts.estimate(tables, rules="production")
    assert named.rules == scouts.ScoutRules("production")
    assert scouts.exhausted(tables, scouts=named, rules="production").rules == named.rules
    with pytest.raises(ConfigError, match="rules='produktion': did you mean"):
        scouts.estimate(tables, rules="produktion")


@pytest.mark.parametrize("table", ["jobs", "tasks", "datasets"])
def test_a_key_that_occurs_twice_is_refused_not_counted_twice(table: str) -> None:
    tables = by_name(healthy().tables())
    tables[table] = pl.concat([tables[table], tables[table]])
    with pytest.raises(
        DataError, match=rf"{table}\.\w+id: .* more than once.*allowed is one row per"
    ):
        scouts.estimate(tables)


def to_pandas(table: pl.DataFrame) -> Any:
    return table.to_pandas()


def in_duckdb(table: pl.DataFrame) -> Any:
    return duckdb.connect().from_arrow(table.to_arrow())


def to_rows(table: pl.DataFrame) -> Any:
    return table.to_dicts()


def to_columns(table: pl.DataFrame) -> Any:
    return table.to_dict(as_series=False)


@pytest.mark.parametrize("convert", [to_pandas, pl.DataFrame.to_arrow, to_rows, to_columns])
def test_tables_of_other_kinds_with_whole_numbers_missing(convert: Any) -> None:
    toy = healthy().job(3, maxpss=None, nevents=None)
    tables = by_name(toy.tables())
    expected = scouts.estimate(tables).parameters
    found = scouts.estimate({name: convert(table) for name, table in tables.items()}).parameters
    assert_frame_equal(found, expected)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_whole_numbers_that_are_none_are_not_known(value: float) -> None:
    tables = by_name(healthy().tables())
    tables["jobs"] = tables["jobs"].with_columns(maxpss=pl.Series([value, 2e6]))
    assert scouts.estimate(tables).parameters["ramcount"].null_count() == 1


@pytest.mark.parametrize("engine", [pl.DataFrame.lazy, pl.DataFrame.to_pandas, in_duckdb])
@pytest.mark.parametrize(
    ("table", "column", "value", "message"),
    [
        ("files", "fsize", pl.lit("12 GB"), "'12 GB' cannot be read as a whole number; mend"),
        ("jobs", "jobstatus", pl.lit("FINISHED"), "'FINISHED' is no value, did you mean 'finished'"),
        ("files", "status", pl.lit("Finished").cast(pl.Categorical), "'Finished' is no value, did you mean 'finished'"),
    ],
)  # fmt: skip
def test_texts_that_the_tables_do_not_have_are_told(
    table: str, column: str, value: Any, message: str, engine: Any
) -> None:
    tables = by_name(healthy().tables())
    tables[table] = tables[table].with_columns(value.alias(column))
    with pytest.raises(SchemaError, match=rf"{table}\.{column} {re.escape(message)}"):
        scouts.estimate({name: engine(frame) for name, frame in tables.items()})


@pytest.mark.parametrize("convert", [pl.DataFrame.clone, to_pandas])
def test_numbers_of_tables_in_memory_that_are_too_large_are_told(convert: Any) -> None:
    tables = by_name(healthy().tables())
    most = 10**15
    jobs = [tables["jobs"].with_columns(maxpss=pl.lit(most + more)) for more in (0, 1)]
    assert scouts.estimate({**tables, "jobs": convert(jobs[0])}).parameters.height == 2
    with pytest.raises(SchemaError, match=rf"jobs\.maxpss {most + 1} is more than .*{most}; mend"):
        scouts.estimate({**tables, "jobs": convert(jobs[1])})


def test_times_as_text_and_what_is_no_table_are_told() -> None:
    tables = by_name(healthy().tables())
    texts = tables["jobs"].with_columns(pl.col("starttime").cast(pl.String))
    with pytest.raises(SchemaError, match=r"jobs\.starttime: is text, a time is needed"):
        scouts.estimate({**tables, "jobs": texts})
    with pytest.raises(SchemaError, match="jobs is a int; allowed are frames"):
        scouts.estimate({**tables, "jobs": 3})


@pytest.mark.parametrize(
    "engine", [pl.DataFrame.lazy, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow]
)
def test_numbers_for_times_and_times_for_numbers_are_refused(engine: Any) -> None:
    """Seconds would count as microseconds, and microseconds as seconds: CPU times per event were 0, wall times of 163 days."""
    tables = by_name(healthy().tables())
    seconds = tables["jobs"].with_columns(pl.col("starttime").dt.epoch("s"))
    lengths = tables["jobs"].with_columns(cpuconsumptiontime=pl.duration(seconds=9))
    for jobs, message in (
        (seconds, r"jobs\.starttime: is Int64, a time is needed: numbers may count seconds"),
        (lengths, r"jobs\.cpuconsumptiontime: is Duration.*, a number is needed"),
    ):
        with pytest.raises(SchemaError, match=message):
            scouts.estimate({**tables, "jobs": engine(jobs)})
    unknown = tables["jobs"].with_columns(starttime=pl.lit(None, pl.Int64))
    assert scouts.estimate({**tables, "jobs": unknown}).parameters["walltime"].null_count()


def test_instants_with_a_zone_or_of_another_type() -> None:
    moment = at(9999).replace(tzinfo=UTC)
    with pytest.raises(ConfigError, match="it has a zone; UTC without zone is needed"):
        healthy().result(at=moment)
    for wrong in (moment, "2026-03-02"):
        with pytest.raises(
            ConfigError, match=r"at\.at: is .*, needed are times in UTC without zone"
        ):
            healthy().result(at=pl.DataFrame({"jeditaskid": [1], "at": [wrong]}))
    narrow = pl.DataFrame({"jeditaskid": [1], "at": [at(9999)]}).cast({"jeditaskid": pl.Int32})
    assert healthy().result(at=narrow).parameters["jeditaskid"].to_list() == [1]
    with pytest.raises(ConfigError, match="needed are jeditaskid, trigger, at"):
        scouts.replay(by_name(healthy().tables()), at=narrow)


@pytest.mark.parametrize("rank", [-5.0, 100.5, 150.0])
def test_a_rank_beyond_all_jobs_is_refused_not_taken_of_other_tasks(rank: float) -> None:
    """The 75th percentile "can be defined as SCOUT_RAMCOUNT_RANK in gdpconfig": one of 150 read the jobs of the next task."""
    key = {"app": "jedi", "component": "dbproxy", "key": "SCOUT_RAMCOUNT_RANK", "type": "float"}
    config = Config.from_rows([{**key, "value": str(rank)}])
    with pytest.raises(
        ConfigError, match=rf"SCOUT_RAMCOUNT_RANK={rank}: a percentile rank is from"
    ):
        scouts.estimate(by_name(healthy().tables()), config=config)
    with pytest.raises(ValueError, match=r"outside 0\.\.100"):
        SortedGroups.of(np.array([0, 1]), np.array([1.0, 9.0]), 2).percentile(rank)


def test_retries_of_a_task_that_occurs_twice_and_at_an_instant_with_a_zone() -> None:
    tables = by_name(healthy().tables())
    tasks, jobs = tables["tasks"], tables["jobs"]
    with pytest.raises(DataError, match=r"tasks\.jeditaskid: 2 ids occur more than once"):
        scouts.retry_checks(pl.concat([tasks, tasks]), jobs)
    with pytest.raises(ConfigError, match="it has a zone; UTC without zone is needed"):
        scouts.retry_checks(tasks, jobs, at=at(1).replace(tzinfo=UTC))
    with pytest.raises(ConfigError, match="it has a zone; UTC without zone is needed"):
        scouts.is_overdue(at(1).replace(tzinfo=UTC))


@pytest.mark.parametrize("descending", [False, True])
def test_of_a_queue_with_a_history_the_latest_row_counts_wherever_it_stands(
    descending: bool,
) -> None:
    tables = by_name(healthy().tables())
    plain = scouts.estimate(tables).parameters["cputime"].to_list()
    rows = [
        tables["queues"].with_columns(ts=pl.lit(when, pl.Datetime("us")), corepower=pl.lit(power))
        for when, power in ((None, 1.0), (at(0), 20.0), (at(-9), 40.0))
    ]
    queues = pl.concat(rows).sort("corepower", descending=descending)
    found = scouts.estimate({**tables, "queues": queues}).parameters["cputime"].to_list()
    assert found == [2 * value for value in plain]
