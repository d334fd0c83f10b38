"""Run in an environment of its own: find a brokerage by name, decide the tables of a folder, tell it as JSON.

python decide_with.py NAME FOLDER
"""

import json
import sys
from pathlib import Path

import polars as pl

from brokerlab.brokerage import plugins
from brokerlab.brokerage.rules import ProductionRules


def main(name: str, folder: str) -> None:
    loaded_early = "lighthouse_brokerage" in sys.modules
    ours = plugins.get("production-jobs")
    loaded_for_ours = "lighthouse_brokerage" in sys.modules
    tables = {file.stem: pl.read_parquet(file) for file in Path(folder).glob("*.parquet")}
    found = plugins.get(name)
    decided = found.decide(tables, rules=ProductionRules("production"))
    told = {
        "loaded": [loaded_early, loaded_for_ours],
        "available": plugins.available().drop("description").rows(),
        "organisation": found.organisation,
        "tables": sorted(set(found.tables) - set(ours.tables)),
        "queues": decided.queues.select("panda_queue", "check", "weight", "rank").rows(),
        "brokerage": decided.to_dict()["brokerage"],
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
