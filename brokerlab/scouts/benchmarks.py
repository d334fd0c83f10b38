"""Core power from host benchmarks, where the tables are given (docs/rules/scouts.md 3.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.errors import ConfigError

NODE_COLUMNS = ("site", "host_name", "cpu_model_normalized", "threads_per_core", "n_logical_cpus")
BENCHMARK_COLUMNS = ("cpu_type_normalized", "smt_enabled", "ncores", "site", "score_per_core")
_SLOT = re.compile(r"@(.+)")
_CERN_SLOT = re.compile(r"atlprd[0-9]+-[A-Za-z0-9_]+-(.+\.cern\.ch)")


def bench_corepower(
    jobs: pl.DataFrame, queues: pl.DataFrame, hosts: tuple[pl.DataFrame, pl.DataFrame] | None
) -> pl.Series:
    """Return the benchmarked core power of each job's host [HS06/core]; null where unknown.

    Hosts are matched once per distinct (site, host), not per job.

    Source: docs/rules/scouts.md 3.2.
    """
    if hosts is None:
        return pl.repeat(None, jobs.height, dtype=pl.Float64, eager=True)
    by_host = hosts[0].partition_by("site", "host_name", as_dict=True)
    scores = hosts[1].rows(named=True)
    placed = jobs.select("computingsite", "modificationhost").join(
        queues.select("panda_queue", "atlas_site"),
        left_on="computingsite",
        right_on="panda_queue",
        how="left",
        maintain_order="left",
    )
    distinct = placed.select("atlas_site", "modificationhost").unique().drop_nulls()
    powers = []
    for site, host in distinct.iter_rows():
        node = by_host.get((site, clean_host_name(host)))
        pairs = [] if node is None else host_benchmarks(site, host, node.rows(named=True), scores)
        powers.append(benchmark_corepower(site, pairs))
    matched = distinct.with_columns(bench=pl.Series(powers, dtype=pl.Float64))
    keys = ["atlas_site", "modificationhost"]
    return placed.join(matched, on=keys, how="left", maintain_order="left")["bench"]


def host_tables(worker_nodes: Any, cpu_benchmarks: Any) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Collect the tables of host benchmarks, of any engine; None where neither is given."""
    given = [table is not None for table in (worker_nodes, cpu_benchmarks)]
    if not any(given):
        return None
    if not all(given):
        raise ConfigError("worker_nodes and cpu_benchmarks: give both, or neither")
    return _collect(worker_nodes, NODE_COLUMNS), _collect(cpu_benchmarks, BENCHMARK_COLUMNS)


def _collect(frame: Any, columns: tuple[str, ...]) -> pl.DataFrame:
    """Collect a small table; an absent column becomes null."""
    table: pl.DataFrame = nw.from_native(frame).lazy().collect("polars").to_native()
    return table.select(
        pl.col(name) if name in table.columns else pl.lit(None).alias(name) for name in columns
    )


def clean_host_name(modificationhost: str) -> str:
    """Return the name of the node from the name that a job reports.

    Everything up to the first ``@`` goes (unless nothing would be left), and
    ``atlprd<digits>-<word>-<rest>.cern.ch`` becomes ``<rest>.cern.ch``.

    Source: docs/rules/scouts.md 3.2.
    """
    slot = _SLOT.search(modificationhost)
    host = slot[1] if slot else modificationhost
    cern = _CERN_SLOT.fullmatch(host)
    return cern[1] if cern else host


def host_benchmarks(
    site: str | None,
    modificationhost: str | None,
    worker_nodes: Iterable[Mapping[str, Any]],
    cpu_benchmarks: Iterable[Mapping[str, Any]],
) -> list[tuple[str | None, float]]:
    """Return the benchmarks measured on processors like that of a job's host (docs/rules/scouts.md 3.2)."""
    if site is None or modificationhost is None:
        return []
    host = clean_host_name(modificationhost)
    nodes = [
        (row.get("cpu_model_normalized"), row.get("threads_per_core"), row.get("n_logical_cpus"))
        for row in worker_nodes
        if row.get("site") == site and row.get("host_name") == host
    ]
    pairs = []
    for row in cpu_benchmarks:
        smt = row.get("smt_enabled")
        processor = (
            row.get("cpu_type_normalized"),
            None if smt is None else smt + 1,
            row.get("ncores"),
        )
        known = None not in processor and row.get("score_per_core") is not None
        if known:
            pairs += [(row.get("site"), row["score_per_core"])] * nodes.count(processor)
    return pairs


def benchmark_corepower(site: str, benchmarks: Iterable[tuple[str | None, float]]) -> float | None:
    """Choose the core power among the benchmarks of :func:`host_benchmarks` (docs/rules/scouts.md 3.2)."""
    pairs = list(benchmarks)
    node = site.lower()
    for name, score in pairs:
        if name is not None and (name.lower() in node or node in name.lower()):
            return score
    return sum(score for _, score in pairs) / len(pairs) if pairs else None
