"""The same values give the same archive, whichever format they came in by, and every row is accounted for."""

import json
import sqlite3
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from brokerlab.archive import ingest
from brokerlab.archive.mapping import Mapping
from tests.examples import examples

START = datetime(2026, 3, 1)
SAID = Mapping.of_options(
    map=["Task=jeditaskid", "made=creationtime", "MaxPSS_MB=maxpss", "cpu_min=cpuconsumptiontime"],
    default=["prodsourcelabel=managed"],
    unit=["maxpss=MB", "cpuconsumptiontime=min"],
)
SCHEMA = {
    "Job_ID": pl.Int64,
    "Task": pl.Int64,
    "status_of_job": pl.String,
    "made": pl.Datetime("us"),
    "EndTime": pl.Datetime("us"),
    "MaxPSS_MB": pl.Float64,
    "cpu_min": pl.Int64,
    "site": pl.String,
}
NAMED = SAID.joined(Mapping.of_options(map=["status_of_job=jobstatus", "site=computingsite"]))

ROWS = st.lists(
    st.tuples(
        st.integers(1, 9) | st.integers(2**53, 2**62),
        st.sampled_from([7, 8, None]),
        st.sampled_from(["finished", "failed", None]),
        st.integers(0, 50).map(lambda h: START + timedelta(hours=h)),
        st.none() | st.integers(40, 99).map(lambda h: START + timedelta(hours=h)),
        st.none() | st.floats(-10, 5000, allow_nan=False).map(lambda x: round(x, 3)),
        st.none() | st.integers(-2, 10_000) | st.just(2**60),
        st.sampled_from(["Q1", "queue, 'two'", 'three "3"', "vier €", None]),
    ),
    max_size=8,
)


def texts(frame):
    """Times as texts, as formats without types have them."""
    return frame.with_columns(pl.col("made", "EndTime").dt.strftime("%Y-%m-%d %H:%M:%S"))


def csv(frame, folder):
    texts(frame).write_csv(folder / "x.csv")
    return folder / "x.csv"


def tsv(frame, folder):
    texts(frame).write_csv(folder / "x.tsv.gz", separator="\t", compression="gzip")
    return folder / "x.tsv.gz"


def lines(frame, folder):
    first, *others = texts(frame).to_dicts()  # exports leave nulls out
    others = [{name: value for name, value in row.items() if value is not None} for row in others]
    rows = map(json.dumps, [first, *others])
    (folder / "x.ndjson").write_text("\n".join(rows) + "\n")
    return folder / "x.ndjson"


def records(frame, folder):
    (folder / "x.json").write_text(json.dumps(texts(frame).to_dicts()))
    return folder / "x.json"


def search_hits(frame, folder):
    hits = [{"_index": "jobs", "_id": "1", "_source": row} for row in texts(frame).to_dicts()]
    (folder / "x.json").write_text(json.dumps({"took": 3, "hits": {"hits": hits}}))
    return folder / "x.json"


def lines_of_hits(frame, folder):
    hits = [{"_index": "jobs", "_id": "1", "_source": row} for row in texts(frame).to_dicts()]
    (folder / "x.jsonl").write_text("\n".join(map(json.dumps, hits)) + "\n")
    return folder / "x.jsonl"


def parquet(frame, folder):
    frame.write_parquet(folder / "x.parquet")
    return folder / "x.parquet"


def hive(frame, folder):
    for number, (task, rows) in enumerate(
        frame.partition_by("Task", as_dict=True, include_key=False).items()
    ):
        name = "__HIVE_DEFAULT_PARTITION__" if task[0] is None else task[0]
        (folder / "h" / f"Task={name}").mkdir(parents=True)
        rows.write_parquet(folder / "h" / f"Task={name}" / f"part-{number}.parquet")
    return folder / "h"


def duckdb_file(frame, folder):
    with duckdb.connect(folder / "x.duckdb") as connection:
        connection.register("v", frame.to_arrow())
        connection.execute("create table export as from v")
    return folder / "x.duckdb"


def sqlite_file(frame, folder):
    connection = sqlite3.connect(folder / "x.sqlite")
    connection.execute(f"create table export ({', '.join(SCHEMA)})")
    marks = ", ".join("?" * len(SCHEMA))
    connection.executemany(f"insert into export values ({marks})", texts(frame).rows())  # noqa: S608
    connection.commit()
    connection.close()
    return folder / "x.sqlite"


def polars_frame(frame, folder):
    return frame


def polars_lazy(frame, folder):
    return frame.lazy()


def arrow(frame, folder):
    return frame.to_arrow()


def pandas_frame(frame, folder):
    whole = {"Job_ID": "int64", "Task": "Int64", "cpu_min": "Int64"}
    return pd.DataFrame(frame.to_dict(as_series=False)).astype(whole)


def relation(frame, folder):
    connection = duckdb.connect()
    return connection.from_arrow(frame.to_arrow())


FORMATS = [
    tsv, lines, records, search_hits, lines_of_hits, parquet, hive, duckdb_file, sqlite_file,
    polars_frame, polars_lazy, arrow, pandas_frame, relation,
]  # fmt: skip


def fate(source, folder):
    report = ingest(source, folder / "a", table="jobs", mapping=NAMED)
    counts = report.frame().select(pl.exclude("source", "table")).sum().row(0)
    jobs = report.manifest.tables.get("jobs", ())
    return counts, sorted((file.path, file.sha256) for file in jobs)


@settings(max_examples=examples(4), derandomize=True, deadline=None, phases=[Phase.generate])
@given(rows=ROWS.filter(lambda rows: len(rows) > 2))
def test_every_format_gives_the_same_archive(rows):
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    with tempfile.TemporaryDirectory() as one:
        counts, files = fate(csv(frame, Path(one)), Path(one))
    assert counts[0] == len(rows) == sum(counts[1:])
    for form in FORMATS:
        with tempfile.TemporaryDirectory() as two:
            assert (form.__name__, *fate(form(frame, Path(two)), Path(two))) == (
                form.__name__,
                counts,
                files,
            )


def test_a_mapping_says_the_same_in_python_and_in_a_document(tmp_path):
    frame = pa.table({"Job_ID": [1], "made": [START], "status_of_job": ["failed"]})
    fields = {
        "columns": {"made": "creationtime", "status_of_job": "jobstatus"},
        "defaults": {"prodsourcelabel": "user"},
    }
    Mapping.of(fields).write(tmp_path / "m.json")
    one = ingest(frame, tmp_path / "a", table="jobs", mapping=fields)
    two = ingest({"jobs": frame}, tmp_path / "b", mapping=tmp_path / "m.json")
    assert one.manifest.digest == two.manifest.digest
    assert ingest({"jobs": frame}, tmp_path / "b").skipped == ("pyarrow.Table",)
