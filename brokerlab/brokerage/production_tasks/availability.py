"""How much of a task's input each nucleus has, and whether the grid can send it (production-tasks.md 2)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs.endpoints import up
from brokerlab.brokerage.inputs.valid import KEY, first_valid_for, valid_for, with_positions
from brokerlab.brokerage.rules import ProductionRules

AVAILABLE = ("ava_num_disk", "ava_num_any", "ava_size_disk", "ava_size_any")
TOTALS = ("tot_num", "tot_size")

_DATASET = (*KEY, "datasetname")
_UNIT = (*_DATASET, "constituent")
_LOG_FIELD = 4  # of the dataset's name, parted at dots


def counted_datasets(
    tasks: pl.DataFrame, datasets: pl.DataFrame, rules: ProductionRules
) -> pl.DataFrame:
    """Return the input datasets that count for the choice of the nucleus, ``jeditaskid, snapshot, datasetname``, each once.

    Left out: pseudo datasets, which have no files, with ``taskbrokeronmaster`` all but the master, and without
    ``conditions_and_logs_count`` conditions data (``ddo...``) and logs.

    Source: production-tasks.md 2.
    """
    name = pl.col("datasetname")
    field = name.str.split(".").list.get(_LOG_FIELD, null_on_oob=True)
    ignored = [
        pl.col("pseudo"),
        *(() if rules.conditions_and_logs_count else (name.str.starts_with("ddo"), field == "log")),
        pl.col("taskbrokeronmaster") & ~pl.col("is_master").fill_null(value=False),
    ]
    inputs = valid_for(tasks.select(*KEY, "taskbrokeronmaster"), datasets)
    counts = ~pl.any_horizontal(condition.fill_null(value=False) for condition in ignored)
    return inputs.filter(counts).select(_DATASET).unique(_DATASET).sort(_DATASET)


def listed_replicas(
    wanted: pl.DataFrame, replicas: pl.DataFrame, endpoints: pl.DataFrame, rules: ProductionRules
) -> pl.DataFrame:
    """Return the replicas of wanted datasets with what their endpoints are; one that is not listed is a disk, and up.

    Added are ``tape``, ``up`` (readable over WAN) and ``whole`` (found = total > 0).
    """
    counts = ("found", "total", "asize", "tsize")
    listed = valid_for(wanted, with_positions(replicas), ["datasetname"])
    listed = listed.with_columns(pl.col(counts).fill_null(0))
    status = endpoints.select("snapshot", "ddm_endpoint_name", "is_tape", "read_wan")
    return first_valid_for(listed, status, ["ddm_endpoint_name"], ["snapshot"]).with_columns(
        tape=pl.col("is_tape").fill_null(value=False),
        up=up("read_wan", rules=rules),
        whole=(pl.col("found") == pl.col("total")) & (pl.col("total") > 0),
    )


def unreadable(wanted: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Return the wanted datasets without any complete copy that is readable over WAN.

    For a container a complete copy of one constituent is enough, as deployed.
    """
    readable = listed.filter(pl.col("whole") & pl.col("up"))
    return wanted.join(readable, on=_DATASET, how="anti")


def totals(listed: pl.DataFrame, rules: ProductionRules) -> pl.DataFrame:
    """Return ``tot_num`` and ``tot_size`` [B] of every task's input; 0 for datasets without replicas.

    The total of a dataset is that of the first replica listed with a non-zero one. A container has the sum of
    its constituents, or in ``container_totals="last"`` what the last one listed has.
    """
    last_of = [*_DATASET, "constituent"]
    units = listed.sort(*_DATASET, "position").group_by(last_of, maintain_order=True)
    known = pl.col("total") > 0
    sized = units.agg(
        tot_num=pl.col("total").filter(known).first().fill_null(0),
        tot_size=pl.col("tsize").filter(known).first().fill_null(0),
    )
    if rules.container_totals == "last":
        sized = sized.group_by(_DATASET, maintain_order=True).agg(pl.col(TOTALS).last())
    return sized.group_by(KEY).agg(pl.col(TOTALS).sum())


def at_nuclei(listed: pl.DataFrame, inputs: pl.DataFrame) -> pl.DataFrame:
    """Return what of every task's input each nucleus has at its input endpoints.

    Per dataset (or constituent), over the replicas at the nucleus's input endpoints in the order in which they
    are listed: a complete copy on disk is all there is to say; else the copy with most files counts, on disk
    and on disk or tape, the first one on ties.

    ``jeditaskid, snapshot, nucleus`` with ``ava_num_*`` [files], ``ava_size_*`` [B] and ``remote_source``: some replica
    looked at is readable over WAN. Nuclei without any replica fall out.
    """
    unit = [*_UNIT, "nucleus"]
    there = valid_for(listed, inputs.unique(), ["ddm_endpoint_name"], ["snapshot"])
    there = there.with_columns(done=pl.col("whole") & ~pl.col("tape"))
    done = there.filter("done").group_by(unit).agg(end=pl.col("position").min())
    there = there.join(done, on=unit, how="left", nulls_equal=True)
    seen = there.filter(pl.col("end").is_null() | (pl.col("position") <= pl.col("end")))
    ended = (pl.col("position") == pl.col("end")).fill_null(value=False)
    best = [pl.col("ended"), pl.col("found"), -pl.col("position")]
    first = seen.with_columns(ended=ended).sort(best, descending=True)
    disk = first.filter(~pl.col("tape"))
    result = seen.group_by(unit).agg(remote_source=pl.col("up").any())
    for rows, kind in ((disk, "disk"), (first, "any")):
        most = rows.unique(unit, keep="first", maintain_order=True).select(
            *unit,
            pl.col("found").alias(f"ava_num_{kind}"),
            pl.when(pl.col("found") > 0).then("asize").otherwise(0).alias(f"ava_size_{kind}"),
        )
        result = result.join(most, on=unit, how="left", nulls_equal=True)
    summed = result.group_by(*KEY, "nucleus").agg(
        pl.col("remote_source").any(), pl.col(AVAILABLE).sum()
    )
    return summed.sort(*KEY, "nucleus")
