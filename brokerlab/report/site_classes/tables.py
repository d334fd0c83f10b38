"""The tables of the site classes report: queues, limits and waits."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.replays.cells import count, pct, row_pct
from brokerlab.report.replays.shares import DAY, QUEUE
from brokerlab.report.site_classes.rating import CLASSES, NONE
from brokerlab.report.site_classes.study import Study
from brokerlab.report.site_classes.words import INTERVALS, NAMES, REASONS, minutes, setting
from brokerlab.words import number

QUEUES_SHOWN = 20
"""Queues in the table of the page; all are in the files."""


def classes(study: Study) -> Table:
    """Lay out the shares of the classes, of the slots and of the jobs, with intervals over days and over queues."""
    days, queues = (_parts(study, unit) for unit in (DAY, QUEUE))
    rows = [
        Row(
            cells={
                "class": "none (counts as mid)" if name == NONE else name,
                "days": row_pct(days[name]),
                "queues": row_pct(queues[name]),
                "slots": row_pct(days[f"slots_{name}"]),
                "jobs": row_pct(days[f"jobs_{name}"]),
            }
        )
        for name in (*CLASSES, NONE)
    ]
    return Table(
        name="classes",
        caption=f"Classes of {number(study.n_queues)} queues at {number(study.n_instants)} instants",
        columns=(
            Column(key="class", label="Class"),
            Column(key="days", label="Queues and instants, over days", unit="%"),
            Column(key="queues", label="the same, over queues", unit="%"),
            Column(key="slots", label="Analysis slots that run there", unit="%"),
            Column(key="jobs", label="Analysis jobs made for it", unit="%"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} Second column: from resampling queues instead; it tells what other queues might do.",
    )


def _parts(study: Study, unit: str) -> dict[str, dict[str, Any]]:
    found = study.overall.filter(pl.col("over") == unit).to_dicts()
    return {row["part"]: row for row in found}


def queues(study: Study) -> Table:
    """Lay out the queues that most analysis jobs were made for, the quickest first."""
    jobs = study.rows.group_by("queue").agg(pl.col("jobs").sum())
    waits = study.waits.queues.select("queue", "w_mean", "w_cl95upp")
    parts = study.by_queue.pivot("part", index="queue", values=["share", "lo", "hi"])
    modal = study.marked.group_by("queue").agg(pl.col("modal").first())
    joined = parts.join(jobs, on="queue").join(modal, on="queue")
    table = joined.join(waits, on="queue", how="left")
    busy = table.sort("jobs", "queue", descending=[True, False]).head(QUEUES_SHOWN)
    score = pl.col("share_hi") - pl.col("share_lo")
    rows = []
    for row in busy.sort(score, "queue", descending=[True, False]).iter_rows(named=True):
        ends = [row[f"{end}_in_modal"] for end in ("share", "lo", "hi")]
        rate = [row[f"{end}_per_day"] for end in ("share", "lo", "hi")]
        rows.append(
            Row(
                cells={
                    "queue": row["queue"],
                    "usual": row["modal"],
                    "modal": pct(*ends),
                    **{name: pct(row[f"share_{name}"]) for name in (*CLASSES, NONE)},
                    "rate": Num(value=rate[0], lo=rate[1], hi=rate[2], decimals=1),
                    "mean": minutes(row["w_mean"]),
                    "limit": minutes(row["w_cl95upp"]),
                    "jobs": count(row["jobs"]),
                }
            )
        )
    return Table(
        name="queues",
        caption=f"The {len(rows)} queues that most analysis jobs were made for, the quickest first",
        columns=(
            Column(key="queue", label="Queue"),
            Column(key="usual", label="Usual class"),
            Column(key="modal", label="in it", unit="% of instants"),
            *(Column(key=name, label=name, unit="%") for name in (*CLASSES, NONE)),
            Column(key="rate", label="Changes", unit="per day"),
            Column(key="mean", label="Weighted mean wait", unit="min"),
            Column(key="limit", label="Upper limit", unit="min"),
            Column(key="jobs", label="Analysis jobs"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} Usual class and changes take a queue without class for mid, as the brokerage does. Waits: medians over the instants.",
    )


def missing(study: Study) -> Table | None:
    """Lay out why queues have no class; none where all have one."""
    lacking = study.rows.filter(pl.col("class_name") == NONE)
    if lacking.is_empty():
        return None
    found = lacking.group_by("reason").agg(
        cells=pl.len(), queues=pl.col("queue").n_unique(), jobs=pl.col("jobs").sum()
    )
    every = max(study.rows.height, 1)
    rows = [
        Row(
            cells={
                "reason": REASONS.get(row["reason"], row["reason"]),
                "cells": pct(row["cells"] / every),
                "queues": count(row["queues"]),
                "jobs": count(row["jobs"]),
            }
        )
        for row in found.sort("cells", "reason", descending=[True, False]).iter_rows(named=True)
    ]
    return Table(
        name="missing",
        caption="Why queues have no class, and count as mid",
        columns=(
            Column(key="reason", label="Why"),
            Column(key="cells", label="Queues and instants", unit="%"),
            Column(key="queues", label="Queues, at some instant"),
            Column(key="jobs", label="Analysis jobs made then"),
        ),
        rows=tuple(rows),
    )


def what_if(study: Study) -> Table:
    """Lay out what every value of every number would move."""
    rows = [_tried(row) for row in study.what_if.curves.iter_rows(named=True)]
    return Table(
        name="what_if",
        caption="What other numbers of the rules would do, one at a time",
        columns=(
            Column(key="what", label="Number of the rules"),
            Column(key="moved", label="Queues and instants in another class", unit="%"),
            Column(key="slots", label="Analysis slots there", unit="%"),
            Column(key="jobs", label="Analysis jobs there", unit="%"),
            Column(key="queues", label="Queues whose usual class changes"),
            Column(key="hi", label="hi then", unit="%"),
            Column(key="lo", label="lo then", unit="%"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{INTERVALS} A queue without class counts as mid. Percentiles: ranks. Least limits: a percentile below counts as this. "
            "Long queue: from so many jobs that queue for longer than the mean wait on, a queue is not hi."
        ),
    )


def _tried(row: dict[str, Any]) -> Row:
    """Lay out one value; of the current one there is nothing to move."""
    cells: dict[str, Num | str | None] = {
        "what": f"{NAMES[row['key']]} {setting(row['value'], row['unit'])}",
        "hi": pct(row["hi_share"]),
        "lo": pct(row["lo_share"]),
    }
    if row["is_current"]:
        return Row(
            cells={**dict.fromkeys(["moved", "slots", "jobs", "queues"]), **cells}, note="current"
        )
    moved = {
        "moved": pct(row["share"], row["lo"], row["hi"]),
        "slots": pct(row["slots"], row["slots_lo"], row["slots_hi"]),
        "jobs": pct(row["jobs"], row["jobs_lo"], row["jobs_hi"]),
        "queues": count(row["n_queues"]),
    }
    return Row(cells={**cells, **moved})


def binding(study: Study) -> Table:
    """Lay out what sets either limit."""
    found = {row["part"]: row for row in study.what_if.binding.iter_rows(named=True)}
    rules = study.inputs.rules
    rows = [
        Row(
            cells={
                "limit": name,
                "rank": setting(rank, "fraction"),
                "percentile": minutes(study.limits[column]),
                "hours": minutes(hours * 3600),
                "by_rank": row_pct(found[f"percentile_{name}"]),
                "by_hours": row_pct(found[f"hours_{name}"]),
            }
        )
        for name, rank, column, hours in (
            ("hi", rules.percentile_low, "p33", rules.hi_limit_hours),
            ("lo", rules.percentile_high, "p67", rules.lo_limit_hours),
        )
        if f"percentile_{name}" in found
    ]
    return Table(
        name="binding",
        caption="What sets the limits of the classes",
        columns=(
            Column(key="limit", label="Limit of"),
            Column(key="rank", label="Rank"),
            Column(key="percentile", label="Percentile, median", unit="min"),
            Column(key="hours", label="Least limit", unit="min"),
            Column(key="by_rank", label="Set by the percentile", unit="% of instants"),
            Column(key="by_hours", label="Set by the least limit", unit="% of instants"),
        ),
        rows=tuple(rows),
        footnote=INTERVALS,
    )


def waits(study: Study) -> Table:
    """Lay out what jobs waited, by the class of their queue."""
    rows = [
        Row(
            cells={
                "class": f"{row['kind']}, {row['class_name']}",
                "n": count(row["n"]),
                "median": minutes(row["median_s"], row["median_lo"], row["median_hi"]),
                "p90": minutes(row["p90_s"], row["p90_lo"], row["p90_hi"]),
                "mean": minutes(row["mean_s"]),
            }
        )
        for row in study.waits.by_class.iter_rows(named=True)
        if row["n"]
    ]
    return Table(
        name="waits",
        caption="What jobs waited that were made at queues of a class",
        columns=(
            Column(key="class", label="Jobs, class of their queue"),
            Column(key="n", label="Jobs that started"),
            Column(key="median", label="Median wait", unit="min"),
            Column(key="p90", label="90th percentile", unit="min"),
            Column(key="mean", label="Mean", unit="min"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} The class is that of the last instant before the job was made. Merge jobs and probes make the classes, the others are steered by them.",
    )


def bands(study: Study) -> Table:
    """Lay out the upper limit against the mean, and how well it holds, by how many jobs count."""
    beyond = {(row["kind"], row["band"]): row for row in study.waits.beyond.iter_rows(named=True)}
    kinds = study.waits.beyond["kind"].unique().sort().to_list()
    rows = [
        Row(
            cells={
                "band": row["band"],
                "share": pct(row["share"]),
                "ratio": Num(value=row["ratio"], decimals=1),
                "cut": pct(row["cut"]),
                **{
                    kind: row_pct(beyond[kind, row["band"]])
                    if (kind, row["band"]) in beyond
                    else None
                    for kind in kinds
                },
            }
        )
        for row in study.waits.bands.iter_rows(named=True)
    ]
    return Table(
        name="bands",
        caption="The upper limit of one wait, by how many jobs count (sum of weights)",
        columns=(
            Column(key="band", label="Jobs that count"),
            Column(key="share", label="Rated queues and instants", unit="%"),
            Column(key="ratio", label="Limit over mean, median"),
            Column(key="cut", label="Limit cut at 999 999 s", unit="%"),
            *(Column(key=kind, label=f"Beyond the limit, {kind}", unit="%") for kind in kinds),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} The limit is to be exceeded by 5 % of the jobs.",
    )
