"""The weight of a queue told factor by factor, with the counts that made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.production_jobs.weights import MOST_WORKERS, QUEUE_OFFSET
from brokerlab.brokerage.words import counted, number
from brokerlab.units import MB

FACTORS = {
    "work_factor": "work",
    "data_factor": "data",
    "t1_factor": "nucleus",
    "network_factor": "network",
    "preference_factor": "hardware preference",
}
"""Column of the ranking to the word for it."""

Row = Mapping[str, Any]


def numbers(row: Row) -> dict[str, Any]:
    """Return what is told of a weight: rank, weight, factors and counts."""
    names = (
        *("rank", "weight", *FACTORS, "bootstrap", "jumbo", "running", "queued", "cap"),
        *("missing_mb", "missing_files", "l_weight"),
    )
    return {name.removesuffix("_factor"): row[name] for name in names}


def factors(row: Row, link: str) -> list[str]:
    """Return one line per factor.

    Args:
        row: Row of the ranking.
        link: What is known of the link to the nucleus.
    """
    return [
        f"  work {number(row['work_factor'])}: {_work(row)}",
        f"  data {number(row['data_factor'])}: {_data(row)}",
        f"  nucleus {number(row['t1_factor'])}: {_nucleus(row)}",
        f"  network {number(row['network_factor'])}: {_network(row, link)}",
        f"  hardware preference {number(row['preference_factor'])}",
    ]


def _work(row: Row) -> str:
    running = counted(row["running"], "running job")
    if row["running"] != row["x_running"]:
        running += f" ({number(row['x_running'])} really run; {_why_more(row)})"
    parts = [("activated", row["x_activated"]), ("starting", row["x_starting"])]
    parts.append(("defined", row["defined"]))
    if not row["local"]:
        parts.append(("assigned", row["x_assigned"]))
    waiting = ", ".join(f"{number(n)} {name}" for name, n in parts)
    text = f"({running} + 1) / ({waiting}, + {QUEUE_OFFSET})"
    if row["local"]:
        return text
    many = f"{number(row['x_assigned'])} assigned against {number(row['x_activated'])} activated"
    return f"{text} / {number(row['many_assigned'])} ({many})"


def _why_more(row: Row) -> str:
    said = []
    if row["x_numslots"] is not None:
        said.append(counted(row["x_numslots"], "slot") + " set")
    if row["s_workers"]:
        said.append(
            f"{counted(row['s_workers'], 'batch worker')}, at most {MOST_WORKERS} of which count"
        )
    if row["x_starting"]:
        said.append(f"{number(row['x_starting'])} starting")
    return ", ".join(said)


def _data(row: Row) -> str:
    if not row["t_total"]:
        return "the task has no input"
    total = f"{number(row['t_total'] // MB)} MB in {counted(row['t_nfiles'], 'file')}"
    if row["missing_files"] <= 0:
        return f"all {total} are there"
    missing = f"{number(row['missing_mb'])} MB in {counted(row['missing_files'], 'file')}"
    return f"{missing} of {total} are missing there"


def _nucleus(row: Row) -> str:
    near = "at the nucleus, or shares its storage"
    return near if row["x_near"] else f"neither {near.replace(', or', ' nor')}"


def _network(row: Row, link: str) -> str:
    if not row["t_network"]:
        return "the network weight does not act on this task"
    return link


def against(row: Row, other: Row) -> str:
    """Say in which factor another queue is ahead most."""
    ahead = {
        word: other[name] / row[name]
        for name, word in FACTORS.items()
        if row[name] and other[name] / row[name] > 1
    }
    if not ahead:
        return ""
    word = max(ahead, key=lambda name: ahead[name])
    column = next(name for name, each in FACTORS.items() if each == word)
    return f"mostly by its {word} ({number(other[column])} against {number(row[column])})"


def ranked(late: pl.DataFrame) -> pl.DataFrame:
    """Return the candidates that are ranked, in order."""
    return late.filter(pl.col("rank").is_not_null()).sort("rank")
