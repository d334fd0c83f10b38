"""What the checks and weights read of a user task: one row per decision, prefix ``t_``, no nulls where none can be."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.inputs import units
from brokerlab.brokerage.inputs.frames import yes
from brokerlab.brokerage.production_jobs.task_facts import (
    PER_CORE_UNITS,
    memory,
    number,
    plain_facts,
    text,
    time_facts,
)
from brokerlab.brokerage.rules import AS_DEPLOYED, ProductionRules
from brokerlab.units import GB, MB

CLASS_A = 1
"""Class of tasks without one."""


def task_facts(tasks: pl.DataFrame, *, rules: AnalysisRules) -> pl.DataFrame:
    """Return one row per decision: ``t`` (number of the row, i64), ``jeditaskid``, ``snapshot``, ``at`` and columns ``t_*``.

    Source: analysis-jobs.md 1 and 4.
    """
    frame = tasks.with_row_index("t").with_columns(
        pl.col("t").cast(pl.Int64), t_merging=yes("is_merging"), ramcountunit="ramunit"
    )
    plain = frame.select(
        "t", "jeditaskid", "snapshot", "at", "t_merging",
        **_plain(), **_memory(rules), **_disk(rules), **_time(),
    )  # fmt: skip
    return _with_base_ram(plain, rules)


def _plain() -> dict[str, pl.Expr]:
    return plain_facts() | {
        "t_prio": pl.col("currentpriority"),
        "t_type": pl.col("processingtype"),
        "t_queue_name": pl.col("gshare"),
        "t_user": pl.col("username"),
        "t_unit": pl.coalesce("workinggroup", "origusername", "username"),
        "t_registered": pl.coalesce("origusername", "username"),
        "t_cores": number("corecount", 1),
        "t_first_class": pl.lit(value=False),
        "t_single": pl.lit(value=False),
        "t_io_known": pl.col("iointensity").is_not_null(),
        "t_taskprio": number("taskpriority"),
        "t_frozen_s": (pl.col("at") - pl.col("frozentime")).dt.total_seconds(),
        "t_one": pl.lit(1.0),  # a column, to be divided by: see pairs.solid
        "t_scout": yes("chunk_usescout"),
        "t_avoids_vp": yes("avoidvp"),
        "t_uses_vp": ~(yes("is_merging") | yes("avoidvp") | yes("usescout") | yes("uselocalio")),
        "t_incomplete_allowed": yes("allowincompleteinds"),
        "t_site": pl.when(text("site") != "").then("site"),
        "t_cloud": pl.when(~text("cloud").is_in(["", "any"])).then("cloud"),
        "t_limited": yes("limitedsites"),
        "t_included": pl.col("includedsite"),
        "t_excluded": pl.col("excludedsite"),
        "t_nsites": number("nsitesperjob", 1),
        "t_n_jobs": number("n_jobs_to_submit"),
        "t_transuses": pl.col("transuses"),
    }


def _memory(rules: AnalysisRules) -> dict[str, pl.Expr]:
    """Return the memory a job needs, that of merge jobs by the page or by the code (4.8)."""
    if rules.merge_memory == "deployed":
        return memory(AS_DEPLOYED)
    return memory(ProductionRules(memory_by_unit=False)) | {
        "t_ram_per_core": text("ramcountunit").is_in(PER_CORE_UNITS)
    }


def _with_base_ram(frame: pl.DataFrame, rules: AnalysisRules) -> pl.DataFrame:
    """Count ``baseramcount`` where memory scales with cores and where it does not, or never (4.8)."""
    if not rules.use_base_ram:
        return frame.with_columns(t_base_ram=pl.lit(0, dtype=pl.Int64))
    flat = ~pl.col("t_ram_per_core") & (pl.col("t_ram") != 0)
    return frame.with_columns(t_ram=pl.col("t_ram") + pl.when(flat).then("t_base_ram").otherwise(0))


def _disk(rules: AnalysisRules) -> dict[str, pl.Expr]:
    """Expected disk [MB] in copy mode and in direct mode (4.9).

    Source:
        002, ATLAS Analysis Job Brokerage: "(0 or inputDiskCount) + outDiskCount × inputDiskCount + workDiskCount",
        "inputDiskCount is the total size of job input files"; docs/rules/analysis-jobs.md 4 for the units.
    """
    shared = {"t_wdir_shared": number("corecount") <= 1}
    if rules.scratch_need != "sum":
        return shared | _disk_of_code()
    input_ = number("atom_size") / MB
    direct = (units.out_bytes() * input_ + units.work_count_bytes().fill_null(0)) / MB
    return shared | {"t_scratch_copy": input_ + direct, "t_scratch_direct": direct}


def _disk_of_code() -> dict[str, pl.Expr]:
    out = units.out_bytes() * number("atom_size_effective")
    work = units.work_bytes(adds=True)
    atom = number("atom_size")
    fixed_mb = number("ngbperjob") * (GB // MB)
    copied = pl.max_horizontal(((out + work + atom) / MB).floor(), fixed_mb)
    direct = ((out + work) / MB).floor()
    by_size = (units.out_bytes() * fixed_mb + work) / MB
    has_size = (number("ngbperjob") != 0) & ~yes("uselocalio")
    return {
        "t_scratch_copy": pl.when("t_merging").then((2 * atom / MB).floor()).otherwise(copied),
        "t_scratch_direct": pl.when(has_size)
        .then(pl.max_horizontal(direct, by_size))
        .otherwise(direct),
    }


def _time() -> dict[str, pl.Expr]:
    """The work of the largest sub-chunk (4.11), and whether wall time is undefined (4.12)."""
    facts = time_facts()
    other_unit = (text("cputimeunit") != "") & ~units.hs06()
    return facts | {"t_walltime_undefined": facts["t_walltime_undefined"] | other_unit}
