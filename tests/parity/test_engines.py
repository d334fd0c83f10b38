"""Polars, DuckDB and Spark say the same about the same archive, to the last bit (design idea 2)."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import brokerlab.archive
from brokerlab import carry, scouts
from brokerlab.errors import DataError
from brokerlab.scouts.per_job import deal
from brokerlab.units import KB, MB
from brokerlab.worlds import synthesise
from tests import scout_toys
from tests.scout_toys import Toy, by_name

NAMES = ("jobs", "files", "tasks", "datasets", "queues")
Tables = tuple[Any, ...]
Engine = Callable[[Tables], Tables]


def odd() -> Toy:
    """Tasks with everything that is rare: nulls, zeros, ranges, event service, merging, ties, strangers."""
    toy = Toy(splitrule="US=2,NF=2,TN=2,MO=1", nfiles=90, nfilesused=9, baseramcount=100)
    toy.queue("POWER", 12.7).queue("NULL", None, maxinputsize=-1)
    toy.queue("LAN", 0.0, direct_access_lan=True)
    draw = random.Random(7)  # noqa: S311 - not a secret
    toy.task(2, ramunit="MB", outdiskunit="kB", cpuefficiency=None, splitrule="US=2,IL=1,SS=7,TN=1")
    toy.task(
        3, splitrule=None, ramunit=None, outdiskunit=None, cputimeunit=None, prodsourcelabel=None
    )
    toy.task(4).task(5, ramunit="MBPerCoreFixed", orig_cputime=3.5, basewalltime=600)
    maybe = lambda *values: draw.choice([None, *values])  # noqa: E731
    for number in range(1, 161):
        toy.job(
            number,
            draw.choice([None, 0, 1, 599.5, 3600, 21_600, 90_000]),
            draw.choice([None, 0, 3, 10, 100, 12_345]),
            task=draw.choice([1, 1, 2, 3, 5]),
            start=draw.randrange(100_000),
            jobstatus=draw.choice(["finished"] * 4 + ["failed", "running"]),
            computingsite=maybe("Q", "POWER", "NULL", "LAN", "ELSEWHERE"),
            actualcorecount=maybe(0, 1, 4, 8),
            corecount=maybe(0, 1, 8),
            eventservice=maybe(None, None, None, 1, 1, 2, 4),
            jobsetid=maybe(70, 71, 72),
            specialhandling=maybe("sj", "sj,sc:a", "sc", "scx,ej"),
            maxpss=maybe(0, -1, 1_234_567, 2_000_000, 2_000_000),
            nevents=maybe(0, 9, 100),
            outputfilebytes=maybe(0, 7_654_321, 10**10),
            inputfilebytes=maybe(10**9),
            totrbytes=maybe(0, 10**7),
            totwbytes=maybe(0, 12_345),
            memory_leak=maybe(-3, 0, 10),
            memory_leak_x2=maybe(-0.5, 0.3, 12.75),
            cpuconsumptiontime=maybe(0, 3599, 3600, 80_000),
            jobmetrics=maybe("", "coreCount=2 vmPeakMax=900000", f"workDirSize={70 * MB} dbTime=1"),
            file={
                "fsize": draw.choice([None, 0, 1, MB, 3 * 10**9 + 1]),
                "startevent": draw.choice([None, 0, 5]),
                "endevent": draw.choice([None, 2, 99]),
                "type": draw.choice(["input"] * 4 + ["pseudo_input", "log"]),
                "status": draw.choice(["finished"] * 5 + ["ready"]),
                **{k: maybe(1, 3) for k in ("attemptnr", "maxattempt")},
                **{k: maybe(1, 3) for k in ("failedattempt", "maxfailure")},
            },
        )
        job = toy.jobs[-1]
        if draw.random() < 0.3:
            toy.file(number, task=job["jeditaskid"], fsize=draw.randrange(10**10), nevents=7)
        if draw.random() < 0.2:
            toy.file(number, task=job["jeditaskid"], dataset=2, fsize=10**9, nevents=50)
        if draw.random() < 0.2:
            toy.file(number, task=job["jeditaskid"], dataset=4, type="trn_log", fsize=5 * MB)
        if draw.random() < 0.1:
            job["jeditaskid"] = 99
        toy.output(number, draw.choice("AB"), 5 * KB * number).output(number, "L", 9, type="log")
    toy.file(None, task=1, status="ready", nevents=1000).file(None, task=2, status="finished")
    return toy.file(900, task=1, dataset=3, type="lib", fsize=80 * MB + 1)


def toy_tables(toy: Toy) -> Tables:
    return (*toy.tables(), scout_toys.frame(toy.outputs, scout_toys.OUTPUTS))


@pytest.fixture(scope="session")
def synthetic_tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder = tmp_path_factory.mktemp("archive")
    synthesise(folder, jobs=2000, days=3, seed=5)
    archive = brokerlab.archive.open(folder)
    outputs = scout_toys.frame([], scout_toys.OUTPUTS)
    return (*(archive.scan(name).collect() for name in NAMES), outputs)


@pytest.fixture(scope="session", params=["odd", "synthetic"])
def tables(request: pytest.FixtureRequest) -> Tables:
    if request.param == "odd":
        return toy_tables(odd())
    return request.getfixturevalue("synthetic_tables")


def lazy(tables: Tables) -> Tables:
    return tuple(table.lazy() for table in tables)


def relations(tables: Tables) -> Tables:
    session = duckdb.connect()
    return tuple(session.from_arrow(table.to_arrow()) for table in tables)


def parquet(tables: Tables, folder: Path) -> Tables:
    session = duckdb.connect()
    for number, table in enumerate(tables):
        table.write_parquet(folder / f"{number}.parquet")
    return tuple(session.read_parquet(str(folder / f"{n}.parquet")) for n in range(len(tables)))


def everything(tables: Tables) -> dict[str, pl.DataFrame]:
    """Ask every question that reads job-sized tables."""
    *frames, _ = tables
    found = {}
    for rules in ("document", "production"):
        rule_set = scouts.ScoutRules(rules)
        result = scouts.estimate(by_name(tables), rules=rule_set)
        found |= {f"parameters, {rules}": result.parameters, f"tags, {rules}": result.tags}
        found[f"triggers, {rules}"] = scouts.triggers(*frames[:4], rules=rule_set)
    found["job quantities"] = scouts.job_quantities(by_name(frames))
    merge = scouts.estimate(by_name(frames), merge=True)
    found |= {"merge": merge.parameters, "merge tags": merge.tags}
    middle = scout_toys.T0.replace(day=2)
    found["at"] = scouts.estimate(by_name(frames), at=middle, max_scouts=7).parameters
    found["verdicts"] = scouts.exhausted({"tasks": frames[2]}, scouts=result).verdicts
    found["failures"] = scouts.failure_metrics(frames[0])
    found["retries"] = scouts.retry_checks(frames[2], frames[0], files=frames[1]).verdicts
    found["written"] = scouts.write_tasks(frames[2], result)
    return found


@pytest.fixture(scope="session")
def polars_says(tables: Tables) -> dict[str, pl.DataFrame]:
    return everything(tables)


def same(ours: dict[str, pl.DataFrame], expected: dict[str, pl.DataFrame]) -> None:
    assert ours.keys() == expected.keys()
    for name, frame in expected.items():
        try:
            assert_frame_equal(ours[name], frame, check_exact=True)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def test_the_toy_is_odd_enough() -> None:
    found = everything(toy_tables(odd()))
    result = found["parameters, document"]
    assert result.height == 5
    rare = ["newng", "cputime", "ramcount", "workdiskcount", "diskio", "walltime"]
    assert all(result[name].null_count() < result.height for name in rare)
    assert found["triggers, production"].height > 0
    assert found["merge"]["n_jobs_used"].max() > 1
    assert found["job quantities"]["eventservice"].n_unique() > 3


def test_lazy_polars(tables: Tables, polars_says: dict[str, pl.DataFrame]) -> None:
    same(everything(lazy(tables)), polars_says)


def test_duckdb_relations(tables: Tables, polars_says: dict[str, pl.DataFrame]) -> None:
    same(everything(relations(tables)), polars_says)


def test_duckdb_on_parquet(
    tables: Tables, polars_says: dict[str, pl.DataFrame], tmp_path: Path
) -> None:
    same(everything(parquet(tables, tmp_path)), polars_says)


@pytest.fixture(scope="session")
def of_tasks_with_files(tables: Tables) -> tuple[Tables, dict[str, pl.DataFrame]]:
    """Return the tables without tasks that have no file, and what Polars says of them."""
    with_files = tables[2].join(tables[1], on="jeditaskid", how="semi")
    known = (*tables[:2], with_files, *tables[3:])
    return known, everything(known)


@pytest.mark.parametrize("engine", [lambda tables: tables, relations], ids=["polars", "duckdb"])
def test_chunks_of_tasks_have_each_task_once(
    engine: Engine,
    tables: Tables,
    of_tasks_with_files: tuple[Tables, dict[str, pl.DataFrame]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, whole = of_tasks_with_files
    monkeypatch.setattr(carry, "CHUNK_ROWS", tables[1].height // 4)
    jobs, files, _, datasets, _, _ = engine(known)
    chunks = deal(jobs, files, datasets, {}).map(lambda chunk: set(chunk["files"]["jeditaskid"]))
    assert len(chunks) >= 4
    assert sum(map(len, chunks)) == len(set.union(*chunks))
    same(everything(engine(known)), whole)


def test_chunks_keep_tasks_without_files(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Toy().task(2).task(3).task(4).job(1, task=1).job(2, task=3)
    whole = toy.result().parameters
    monkeypatch.setattr(carry, "CHUNK_ROWS", 1)
    assert whole["jeditaskid"].to_list() == [1, 2, 3, 4]
    assert_frame_equal(toy.result().parameters, whole)


@pytest.mark.parametrize("engine", [lambda tables: tables, relations], ids=["polars", "duckdb"])
@pytest.mark.parametrize(
    ("fsize", "span", "nevents"),
    [(18_439_675_399, 997_118, 997_118), (807_311_914_850, 50_138, 50_138), (10**13, 10**7, 10**6)],
)
def test_products_beyond_53_bits(engine: Engine, fsize: int, span: int, nevents: int) -> None:
    """int(fsize * (endevent - startevent + 1) / nevents), as Python reads it (scouts.md 3.3)"""
    file = {"fsize": fsize, "startevent": 0, "endevent": span - 1, "nevents": nevents}
    toy = Toy().job(1, 3600, file=file)
    found = scouts.job_quantities(by_name(engine(toy.tables())))
    assert found["input_mb"].item() == int(fsize * span / nevents) / MB


# ---- Spark: what `everything` asks is asked of DuckDB and Polars above


def dataframes(spark: Any, tables: Tables, folder: Path) -> Tables:
    for number, table in enumerate(tables):
        table.write_parquet(folder / f"{number}.parquet")
    return tuple(spark.read.parquet(str(folder / f"{n}.parquet")) for n in range(len(tables)))


@pytest.mark.long
@pytest.mark.spark
def test_spark_of_odd_values(spark: Any, tmp_path: Path) -> None:
    tables = toy_tables(odd())
    same(everything(dataframes(spark, tables, tmp_path)), everything(tables))


@pytest.mark.long
@pytest.mark.spark
def test_spark_with_times_of_a_zone(spark: Any, synthetic_tables: Tables, tmp_path: Path) -> None:
    """Spark's own type of time has a zone; in a session of UTC it is the same."""
    jobs, *others = dataframes(spark, synthetic_tables, tmp_path)
    for name in ("creationtime", "starttime", "endtime", "modificationtime"):
        jobs = jobs.withColumn(name, jobs[name].cast("timestamp"))
    same(everything((jobs, *others)), everything(synthetic_tables))


@pytest.mark.long
@pytest.mark.spark
def test_spark_beside_another_engine(spark: Any, synthetic_tables: Tables, tmp_path: Path) -> None:
    jobs, *_ = dataframes(spark, synthetic_tables, tmp_path)
    with pytest.raises(
        DataError, match=r"one Spark session.*jobs: pyspark, files: polars.*convert them"
    ):
        scouts.estimate(by_name((jobs, *synthetic_tables[1:5])))
