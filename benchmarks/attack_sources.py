"""Sound files of every kind that is read, made from a synthetic archive."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from brokerlab.archive import Archive
from brokerlab.archive import open as open_archive
from brokerlab.gdpconfig import Config, proposal

ROWS = 60
"""Rows of a file that is mutated."""
MODEL = "model"
"""Folder of a saved model, beside the files."""
TIME = "2026-03-01T12:00:00"
TABLES = ("jobs", "tasks", "files", "queues", "job_status_log", "gdpconfig")


@dataclass(frozen=True)
class Sound:
    """A file that can be read.

    Attributes:
        reader: What reads it, of `attack_files.READERS`.
        name: Of the file; its ending tells the kind.
        data: Its bytes.
        rows: The table that is in it, where it is one.
    """

    reader: str
    name: str
    data: bytes
    rows: pl.DataFrame | None = None


LINKS = pl.DataFrame(
    {"src": ["A", "B"], "dst": ["B", "A"], "closeness": [1, 2], "mbps_1h": [1.5, None],
     "files_queued": [3, 4], "mbps_timestamp": [TIME, TIME]}
)  # fmt: skip
INVEX = pl.DataFrame(
    {"pandaid": range(1, 9), "wall_time": [100.0] * 8, "queue_time": [5.0] * 8, "actualcorecount": [8] * 8,
     "assignedpriority": [901] * 3 + [800] * 5, "hs06sec": [8000] * 8, "computingsite": ["A"] * 8, "maxpss": [2e6] * 8}
)  # fmt: skip
DOCUMENTS: dict[str, Any] = {
    "queues.json": {
        "A": {"nickname": "A", "status": "online", "type": "unified", "corecount": 8, "maxrss": "16000", "maxwdir": "x",
              "corepower": 10.0, "catchall": "per_core_attr", "releases": ["AUTO"], "params": {"max_io_intensity": 1},
              "astorages": {"read_lan": ["X"], "write_lan_analysis": ["Y"]}, "is_cvmfs": True, "last_modified": TIME},
        "B": {"siteid": "B", "status": "test", "type": "analysis"},
    },
    "network.json": {
        "A:B": {"closeness": {"latest": 1, "timestamp": TIME}, "mbps": {"dashb": {"1h": 1, "timestamp": TIME}},
                "files": {"queued": {"Express": {"latest": 1, "timestamp": TIME}}, "queued-total": 1}},
    },
    "site_info.json": {"A": {"RSE": {"A_DATADISK": "1.5", "A_DATATAPE": 0}, "GFLOPS": 7}, "B": {"RSE": {"A_DATADISK": "1.5"}}},
    "12hours_sites.json": {
        "transfers": {"key": {"src_site": 0, "dst_site": 1, "bytes_xs": 2, "files_xs": 3, "errors_xs": 4},
                      "rows": [["A", "B", 1, 2, 3], ["B", "A", 0, 0, 1]]},
        "params": {"interval": 1440, "from_date": TIME, "to_date": "2026-03-02T12:00:00"},
    },
    "software.json": {"A": {"cmtconfigs": ["x86_64-el9-gcc13-opt"], "tags": [{"tag": "t"}]}, "ALL": {"tags": [], "cvmfs": []}},
    "answers.json": {"http://x/jobs/": {"jobs": [
        {"pandaid": 1, "jobstatus": "finished", "creationtime": TIME, "starttime": TIME, "modificationtime": TIME,
         "prodsourcelabel": "user", "maxpss": "2000.5", "durationsec": 60, "eventservice": "ordinary"}]}},
    "tasks.json": [{"jeditaskid": 1, "taskname": "x", "status": "done", "creationdate": TIME, "modificationtime": TIME,
                    "datasets": [{"jeditaskid": 1, "datasetid": 2, "type": "input"}]}],
}  # fmt: skip
WORKFLOW = {
    "name": "w",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"name": "a", "id": "a", "children": ["b"], "parents": []},
                {"name": "b", "id": "b", "children": [], "parents": ["a"]},
            ]
        },
        "execution": {
            "makespanInSeconds": 3,
            "executedAt": "2026-01-01T00:00:00Z",
            "tasks": [{"id": "a", "runtimeInSeconds": 1}, {"id": "b", "runtimeInSeconds": 2}],
            "machines": [{"nodeName": "n"}],
        },
    },
}
MAPPING = {
    "table": "jobs",
    "columns": {"TaskID": "jeditaskid"},
    "defaults": {"prodsourcelabel": "managed"},
    "units": {"maxpss": "MB"},
    "dates": "day-first",
}


def sources(archive: Path, folder: Path) -> list[Sound]:
    """Return sound files of every kind; a saved model is written into the folder.

    Args:
        archive: Where the tables come from.
        folder: Where the files are going to be.
    """
    opened = open_archive(archive)
    return [*_tables(opened), *_databases(opened, folder), *_documents(), *_others(opened, folder)]


def _tables(archive: Archive) -> list[Sound]:
    """Return tables in every form that holds one."""
    made = []
    for table in TABLES:
        frame = archive.scan(table).head(ROWS).collect()
        made += [
            Sound("ingest", f"{table}{ending}", written(frame, ending), frame)
            for ending in (".csv", ".json", ".ndjson", ".parquet")
        ]
    jobs = archive.scan("jobs").head(ROWS).collect()
    later = jobs.select(
        "pandaid", "jeditaskid", cores=pl.lit(8), used=pl.lit(2000.0), ended_s=pl.lit(9e9)
    )
    slots = pl.DataFrame({"panda_queue": ["A", "B"], "slots": [10, 20]})
    others = (
        ("ingest", "jobs.csv.gz", jobs), ("ingest", "links.csv", LINKS), ("ingest", "links.parquet", LINKS),
        ("ingest", "job_records_15350577.csv", INVEX), ("records", "records.csv", later),
        ("records", "records.parquet", later), ("slots", "slots.csv", slots), ("slots", "slots.parquet", slots),
    )  # fmt: skip
    return made + [
        Sound(reader, name, written(frame, name[name.index(".") :]), frame)
        for reader, name, frame in others
    ]


def written(frame: pl.DataFrame, ending: str) -> bytes:
    """Return a table as the bytes of a file."""
    if ending == ".parquet":
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        return buffer.getvalue()
    text = plain(frame)
    if ending == ".json":
        return json.dumps(text.to_dicts()).encode()
    if ending == ".ndjson":
        return text.write_ndjson().encode()
    data = text.write_csv().encode()
    return gzip.compress(data, mtime=0) if ending.endswith(".gz") else data


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame whose values stand in text."""
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    times = pl.col(pl.Datetime).dt.to_string("%Y-%m-%d %H:%M:%S")
    return frame.drop(nested).with_columns(times)


def _databases(archive: Archive, folder: Path) -> list[Sound]:
    """Return jobs in DuckDB and SQLite."""
    jobs = plain(archive.scan("jobs").head(ROWS).collect())
    one, other = folder / "sound.duckdb", folder / "sound.sqlite"
    with duckdb.connect(str(one)) as connection:
        connection.execute("create table jobs as from jobs")
    marks = ",".join("?" * jobs.width)
    database = sqlite3.connect(other)
    database.execute(f"create table jobs ({','.join(jobs.columns)})")
    database.executemany(f"insert into jobs values ({marks})", jobs.rows())
    database.commit()
    database.close()
    made = [
        Sound("ingest", f"export{path.suffix}", path.read_bytes(), jobs) for path in (one, other)
    ]
    for path in (one, other):
        path.unlink()
    return made


def _documents() -> list[Sound]:
    """Return documents that are no tables."""
    hits = {"hits": {"hits": [{"_id": "a", "_source": DOCUMENTS["answers.json"]["http://x/jobs/"]["jobs"][0]}]}}  # fmt: skip
    documents = DOCUMENTS | {"hits.json": hits}
    read = [
        Sound("ingest", name, json.dumps(document).encode()) for name, document in documents.items()
    ]
    effect = proposal.Effect("jobs over their request", "%", 7.5, 4.5, -3.0, -3.5, -2.5, 0.95)
    proposed = proposal.Proposal.to_change(
        Config.empty(),
        {"SCOUT_RAMCOUNT_RANK": 80},
        title="Raise the rank",
        created_at=datetime(2026, 10, 1),  # noqa: DTZ001 - naive UTC throughout
        evidence=proposal.Evidence(verdict="80 meets the limit", effects=(effect,)),
    )
    rows = "\n".join(" ".join(["1", *[str(10 * n + k) for k in range(17)]]) for n in range(ROWS))
    return [
        *read,
        Sound("swf", "log.swf", f"; UnixStartTime: 1000000000\n; MaxProcs: 8\n{rows}".encode()),
        Sound("workflow", "workflow.json", json.dumps(WORKFLOW).encode()),
        Sound("proposal", "proposal.json", proposal.dumps(proposed).encode()),
        Sound("mapping", "mapping.json", json.dumps(MAPPING).encode()),
        Sound("mapping", "mapping.toml", b'table = "jobs"\n[columns]\nTaskID = "jeditaskid"\n'),
    ]


def _others(archive: Archive, folder: Path) -> list[Sound]:
    """Return the files of a saved model."""
    from brokerlab.estimators import saving
    from brokerlab.estimators.hierarchy import Hierarchy

    jobs = archive.scan("jobs").drop_nulls("jeditaskid").head(ROWS).collect()
    seen = jobs.select(
        "pandaid", "jeditaskid", is_scout=False, cores=pl.lit(8, pl.Int64), used=pl.lit(2000.0),
        censored=False, decided_s=pl.lit(0.0), ended_s=pl.lit(9e9), wall_s=pl.lit(60.0),
    )  # fmt: skip
    about = saving.About(
        levels=(0.5, 0.95), features=("jeditaskid",), trained=saving.Trained.of(seen)
    )
    model = saving.save(Hierarchy("memory").fit(seen), folder / MODEL, about=about)
    return [
        Sound("model", f"manifest{saved.suffix}", saved.read_bytes())
        for saved in (model / saving.MODEL, model / saving.MANIFEST)
    ]
