"""Core power from host benchmarks, where the tables are given (docs/rules/scouts.md 3.2)."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.errors import ConfigError
from brokerlab.scouts.formulas import benchmark_corepower, clean_host_name, host_benchmarks

NODE_COLUMNS = ("site", "host_name", "cpu_model_normalized", "threads_per_core", "n_logical_cpus")
BENCHMARK_COLUMNS = ("cpu_type_normalized", "smt_enabled", "ncores", "site", "score_per_core")


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
