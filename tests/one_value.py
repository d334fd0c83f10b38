"""Functions of frames asked about one value or one row, as recorded vectors and cases of the page do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from brokerlab.brokerage.analysis_jobs.brokerage import BROKERAGE as ANALYSIS
from brokerlab.brokerage.analysis_jobs.throttle import INCOMPLETE
from brokerlab.brokerage.engine.world import World
from brokerlab.brokerage.inputs import data
from brokerlab.brokerage.inputs.data import completeness
from brokerlab.brokerage.inputs.frames import KEY
from brokerlab.brokerage.inputs.queues import UNIFIED_CAPABILITY, pseudo_queues, slot_counts
from brokerlab.brokerage.network_weight import at_links, links
from brokerlab.brokerage.production_tasks import storage
from brokerlab.brokerage.production_tasks.contracts import TABLES
from brokerlab.brokerage.replaying import changes
from brokerlab.brokerage.replaying.counts import Counts
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config

Rows = Iterable[Mapping[str, Any]]

_DISK: dict[str, Any] = {
    "outdiskcount": pl.Int64,
    "outdiskunit": pl.String,
    "workdiskcount": pl.Int64,
    "workdiskunit": pl.String,
}
_CPU: dict[str, Any] = {"cputime": pl.Float64, "cputimeunit": pl.String}
_FILE: dict[str, Any] = dict.fromkeys(("fsize", "nevents", "startevent", "endevent"), pl.Int64)
_REPLICAS: dict[str, Any] = {
    **dict.fromkeys(("datasetname", "ddm_endpoint_name"), pl.String),
    **dict.fromkeys(("found", "total"), pl.Int64),
    **dict.fromkeys(("vp", "is_tape", "readable_lan", "readable_wan"), pl.Boolean),
}
_ENDPOINTS: dict[str, Any] = {
    "ddm_endpoint_name": pl.String,
    "is_tape": pl.Boolean,
    "read_lan": pl.String,
    "read_wan": pl.String,
}
_SLOTS: dict[str, Any] = {
    **dict.fromkeys(("panda_queue", "gshare", "resourcetype"), pl.String),
    "numslots": pl.Int64,
}
_TYPES: dict[str, Any] = {
    "resource_name": pl.String,
    **dict.fromkeys(("mincore", "maxcore"), pl.Int64),
    **dict.fromkeys(("minrampercore", "maxrampercore"), pl.Float64),
}
_MATRIX: dict[str, Any] = {
    **dict.fromkeys(("src", "dst", "key"), pl.String),
    "value": pl.Float64,
    "ts": pl.Datetime("us"),
}


def _frame(rows: Rows, schema: Mapping[str, Any]) -> pl.DataFrame:
    given = [*rows]
    return pl.DataFrame(
        {name: [row.get(name) for row in given] for name in schema}, schema=dict(schema)
    )


def disk_sizes(*, adds: bool = True, **task: Any) -> dict[str, Any]:
    """Return ``out_bytes, work_bytes, scales_with_events`` of one task."""
    sizes = _frame([task], _DISK).select(
        out_bytes=data.out_bytes(),
        work_bytes=data.work_bytes(adds=adds),
        scales_with_events=data.scales_with_events(),
    )
    return sizes.row(0, named=True)


def cputime_seconds(**task: Any) -> dict[str, Any]:
    """Return ``hs06, cputime_s`` of one task."""
    row = _frame([task], _CPU).select(hs06=data.hs06(), cputime_s=data.cputime_s())
    return row.row(0, named=True)


def file_measures(**file: Any) -> dict[str, Any]:
    """Return ``effective_mb, nevents`` of one file."""
    row = _frame([file], _FILE).select(effective_mb=data.effective_mb(), nevents=data.nevents())
    return row.row(0, named=True)


def slots_lookup(slots: Rows, *, tag: str | None, resource_type: str | None) -> int | None:
    """Return the slots of one queue for one share and resource type, or null without an entry."""
    rows = [{"panda_queue": "", **row} for row in slots]
    wanted = {"panda_queue": "", "tag": tag, "resource_type": resource_type}
    asked = _frame([wanted], dict.fromkeys(wanted, pl.String))
    number: int | None = slot_counts(_frame(rows, _SLOTS) if rows else None, asked)[
        "numslots"
    ].item()
    return number


def derived_rows(queue: Mapping[str, Any], resource_types: Rows) -> list[dict[str, Any]]:
    """Return ``panda_queue, corecount, maxrss, minrss`` of the pseudo-queues of one unified queue."""
    parent = pl.DataFrame(
        [dict(queue) | {"capability": UNIFIED_CAPABILITY}], infer_schema_length=None
    )
    table = pseudo_queues(parent, _frame(resource_types, _TYPES)).filter(~pl.col("is_unified"))
    return table.select("panda_queue", "corecount", "maxrss", "minrss").to_dicts()


def dataset_completeness(
    replicas: Rows,
    endpoints: Rows,
    *,
    max_missing_input_files: float,
    min_input_completeness: float,
    rules: ProductionRules | None = None,
) -> dict[str, Any]:
    """Return the facts of one dataset: a row of ``Completeness.datasets`` without its key."""
    limits = {
        "jedi/jobbroker/MAX_MISSING_INPUT_FILES": max_missing_input_files,
        "jedi/jobbroker/MIN_INPUT_COMPLETENESS": min_input_completeness,
    }
    copies = [dict(row) for row in replicas]
    names = sorted({row["datasetname"] for row in copies}) or ["D"]
    found = completeness(
        pl.DataFrame({"jeditaskid": [0]}),
        pl.DataFrame({"datasetname": names}),
        _frame(copies, _REPLICAS) if copies else None,
        _frame(endpoints, _ENDPOINTS),
        config=Config.empty().with_values(limits),
        rules=rules,
    ).datasets
    keys = ("jeditaskid", "snapshot", "datasetname", "inputprestaging")
    return found.drop(keys).row(0, named=True)


def nucleus_availability(
    replicas: Sequence[Mapping[str, Any]],
    endpoints: Sequence[Mapping[str, Any]],
    nucleus_input_endpoints: Sequence[Mapping[str, Any]],
    rules: ProductionRules,
) -> dict[str, Any]:
    """Return what of one dataset each nucleus has (``nuclei``, by name), and ``remote_source_available``."""
    rows = {
        "replicas": replicas,
        "storage_endpoints": endpoints,
        "nucleus_endpoints": [{**row, "direction": "input"} for row in nucleus_input_endpoints],
    }
    frames = {
        name: pl.DataFrame(list(given), infer_schema_length=None)
        for name, given in rows.items()
        if given
    }
    tables = prepared(frames, {name: TABLES[name] for name in rows})
    key = {name: pl.lit(0, pl.Int64) for name in KEY}
    wanted = tables["replicas"].select(**key, datasetname="datasetname").unique()
    listed = storage.listed_replicas(wanted, tables["replicas"], tables["storage_endpoints"], rules)
    inputs = tables["nucleus_endpoints"].select("snapshot", "nucleus", "ddm_endpoint_name")
    nuclei = inputs.select("nucleus").unique().sort("nucleus").with_columns(**key)
    found = nuclei.join(storage.totals(listed, rules), on=KEY, how="left").join(
        storage.at_nuclei(listed, inputs),
        on=[*KEY, "nucleus"],
        how="left",
        maintain_order="left",
    )
    counts = (*storage.TOTALS, *storage.AVAILABLE)
    source = pl.col("remote_source").fill_null(value=False).alias("can_be_remote_source")
    return {
        "nuclei": found.select("nucleus", pl.col(counts).fill_null(0), source).to_dicts(),
        "remote_source_available": wanted.height > 0
        and storage.unreadable(wanted, listed).is_empty(),
    }


def token_endpoint(
    storagetoken: str | None, endpoints: Sequence[tuple[str, str | None]]
) -> str | None:
    """Return the endpoint of a token among those of a nucleus (name and type, in stored order); null if there is none."""
    pattern = pl.select(storage.pattern_of(pl.lit(storagetoken, pl.String))).item()
    return storage.match(pattern, endpoints)


def network_weight(
    network_matrix: Rows,
    *,
    nucleus: str | None,
    storage_site: str | None,
    express: bool = False,
    at: datetime | None = None,
    config: Config | None = None,
    rules: ProductionRules | None = None,
) -> float | None:
    """Return the weight of one link; null for a task without nucleus."""
    rows = [dict(row) for row in network_matrix]
    snapshot = pl.DataFrame({"snapshot": [0]})
    known = links(
        _frame(rows, _MATRIX) if rows else None,
        instants=snapshot.with_columns(at=pl.lit(at, pl.Datetime("us"))),
        rules=rules,
    )
    pair = snapshot.with_columns(
        nucleus=pl.lit(nucleus, pl.String),
        express=pl.lit(express),
        storage_site=pl.lit(storage_site, pl.String),
    )
    weighed = at_links(pair, known, config=config, rules=rules)
    value: float | None = weighed["network_weight"].item()
    return value


def job_counts(jobs: Any, status_log: Any, instants: pl.DataFrame) -> pl.DataFrame:
    """Return the number of jobs at every instant by everything that they are counted by."""
    return Counts.of(jobs, status_log, instants).table(*changes.GROUP, "jobstatus")


def throttle(
    tables: Mapping[str, Any], *, rules: AnalysisRules | None = None, config: Config | None = None
) -> pl.DataFrame:
    """Return one row per task: which rule of the throttle holds it back, its outcome, and what was compared."""
    return throttled(ANALYSIS.prepare(tables, rules=rules, config=config))


def throttled(world: World) -> pl.DataFrame:
    """Return the same of the tasks of a world."""
    held = world.outcomes.filter(pl.col("throttle") != INCOMPLETE)
    tasks = world.tasks.join(held, on="t", how="left")
    return tasks.sort(KEY).with_columns(unit="t_unit", outcome=pl.col("outcome").fill_null("pass"))
