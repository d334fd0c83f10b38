"""The weight of a queue told factor by factor, with the counts that made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.engine.world import World
from brokerlab.brokerage.network_weight import at_links
from brokerlab.brokerage.production_jobs.weights import MOST_WORKERS, QUEUE_OFFSET
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.words import counted, filled, number
from brokerlab.units import MB

FACTORS = {
    "work_factor": "work",
    "data_factor": "data",
    "t1_factor": "nucleus",
    "network_factor": "network",
    "preference_factor": "hardware preference",
}
"""Column of the ranking to the word for it."""
LINK = ("t_nucleus", "t_nucleus_id", "t_express", "p_storage", "p_storage_id")
"""Columns of a pair that say which link its outputs take."""
_WINDOWS = {"1h": "the last hour", "1d": "the last day", "1w": "the last week"}

Row = Mapping[str, Any]


def factors(row: Row, link: str, rules: ProductionRules) -> list[str]:
    """Return one line per factor of the rule set; ``link``: what is known of the link to the nucleus."""
    silent = "the network weight does not act on this task"
    why = {"work_factor": f": {_work(row)}", "data_factor": f": {_data(row)}"}
    if rules.nucleus_preferred:
        near, far = (
            "at the nucleus, or shares its storage",
            "neither at the nucleus nor shares its storage",
        )
        why["t1_factor"] = f": {near if row['x_near'] else far}"
    why["network_factor"] = f": {link if row['t_network'] else silent}"
    if rules.hardware_preferred:
        why["preference_factor"] = ""
    return [f"  {FACTORS[name]} {number(row[name])}{text}" for name, text in why.items()]


def _work(row: Row) -> str:
    counts = "{x_activated} activated, {x_starting} starting, {defined} defined"
    if not row["local"]:
        counts += ", {x_assigned} assigned"
    text = f"({running(row, 'x_running')} + 1) / ({filled(counts, row)}, + {QUEUE_OFFSET})"
    if row["local"]:
        return text
    many = "{many_assigned} ({x_assigned} assigned against {x_activated} activated)"
    return f"{text} / {filled(many, row)}"


def running(row: Row, really: str, starting: str = "x_starting") -> str:
    """Return the running jobs that count, and why they are more than ``really`` run."""
    text = counted(row["running"], "running job")
    if row["running"] == row[really]:
        return text
    why = []
    if row["x_numslots"] is not None:
        why.append(counted(row["x_numslots"], "slot") + " set")
    if row["s_workers"]:
        workers = counted(row["s_workers"], "batch worker")
        why.append(f"{workers}, at most {MOST_WORKERS} of which count")
    if row[starting]:
        why.append(f"{number(row[starting])} starting")
    return f"{text} ({number(row[really])} really run; {', '.join(why)})"


def _data(row: Row) -> str:
    if not row["t_total"]:
        return "the task has no input"
    total = f"{number(row['t_total'] // MB)} MB in {counted(row['t_nfiles'], 'file')}"
    if row["missing_files"] <= 0:
        return f"all {total} are there"
    missing = f"{number(row['missing_mb'])} MB in {counted(row['missing_files'], 'file')}"
    return f"{missing} of {total} are missing there"


def against(row: Row, best: Row, words: Mapping[str, str] = FACTORS) -> str:
    """Say in which factor another queue is ahead most, by the words for them."""
    ahead = {name: best[name] / row[name] for name in words if row[name] and best[name] > row[name]}
    if not ahead:
        return ""
    name = max(ahead, key=lambda each: ahead[each])
    return f", mostly by its {words[name]} ({number(best[name])} against {number(row[name])})"


def ranked(late: pl.DataFrame) -> pl.DataFrame:
    """Return the candidates that are ranked, in order."""
    return late.filter(pl.col("rank").is_not_null()).sort("rank")


def link(world: World, snapshot: int, pair: Row) -> str:
    """Say how fast outputs get to the nucleus; ``pair`` has :data:`LINK`."""
    if pair["t_nucleus"] is None:
        return "the task has no nucleus"
    if pair["p_storage_id"] == pair["t_nucleus_id"]:
        return "its storage is that of the nucleus"
    site = pair["p_storage"]
    if site is None:
        return "the site of its storage is not known"
    asked = pl.DataFrame(
        {
            "snapshot": [snapshot],
            "nucleus": [pair["t_nucleus"]],
            "express": [pair["t_express"]],
            "storage_site": [site],
        }
    )
    row = at_links(asked, world.base.made["links"], config=world.config, rules=world.rules).row(
        0, named=True
    )
    name = f"from {site} to {pair['t_nucleus']}"
    if not row["link_known"]:
        return f"nothing is known of the link {name}"
    speed = f"closeness {number(row['closeness'])}" if row["closeness"] is not None else "no metric"
    if row["mbps"] is not None:
        speed = f"{number(row['mbps'])} MB/s over {_WINDOWS[row['window']]}"
    weighs = f"weighs {{throughput_weight}} for its throughput ({speed}) and {{queued_weight}} for its queue"
    return f"the link {name} {filled(weighs, row)} ({number(row['n_queued'])} files)"
