"""A small world of nuclei for the tests: two or three nuclei with room, one task with one output."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.brokerage import what_would_help
from brokerlab.brokerage.production_tasks import TaskDecisions, decide
from brokerlab.brokerage.production_tasks.contracts import TABLES
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config

AT = datetime(2026, 6, 1, 12)
TASK = 7
TB = 1024  # GB
GB = 1024**3  # B
EMPTY = {name: contract.create_empty() for name, contract in TABLES.items()}
HINTS = {"jeditaskid": pl.Int64, "snapshot": pl.Int64, "panda_queue": pl.String}

Row = dict[str, Any]


def task(**columns: Any) -> Row:
    base = {
        "jeditaskid": TASK,
        "snapshot": 1,
        "at": AT,
        "gshare": "MC",
        "taskpriority": 500,
        "currentpriority": 500,
    }
    return base | columns


def nucleus(name: str, **columns: Any) -> Row:
    disk = f"{name}_DATADISK"
    base = {
        "nucleus": name,
        "role": "nucleus",
        "state": "ACTIVE",
        "queues": [f"{name}_Q"],
        "input_endpoints": [disk],
        "output_endpoints": [disk],
        "default_endpoint_out": disk,
    }
    return base | columns


def endpoint(name: str, **columns: Any) -> Row:
    base = {
        "ddm_endpoint_name": name,
        "type": "DATADISK",
        "is_tape": False,
        "read_wan": "ON",
        "write_wan": "ON",
        "space_free": 500.0 * TB,
        "space_total": 1000.0 * TB,
    }
    return base | columns


def replica(site: str, found: int, total: int = 10, *, dataset: str = "in", **columns: Any) -> Row:
    base = {
        "datasetname": dataset,
        "ddm_endpoint_name": f"{site}_DATADISK",
        "found": found,
        "total": total,
        "asize": found * GB,
        "tsize": total * GB,
    }
    return base | columns


def world(*names: str, **tables: list[Row]) -> dict[str, list[Row]]:
    """Return a world of nuclei with a disk each; a table given replaces that of the world."""
    base: dict[str, list[Row]] = {
        "tasks": [task()],
        "nuclei": [nucleus(name) for name in names],
        "storage_endpoints": [endpoint(f"{name}_DATADISK") for name in names],
        "output_datasets": [{"datasetname": "out", "storagetoken": "ATLASDATADISK"}],
    }
    return base | tables


def frames(tables: dict[str, list[Row]]) -> dict[str, pl.DataFrame]:
    """Return the tables, all of them known."""
    result = dict(EMPTY)
    for name, rows in tables.items():
        given = {key for row in rows for key in row}
        schema = {key: dtype for key, dtype in EMPTY[name].schema.items() if key in given}
        result[name] = pl.DataFrame(rows, schema=schema)
    return result


def decided(
    tables: dict[str, list[Row]],
    rules: str | ProductionRules = "document",
    settings: dict[str, Any] | None = None,
    *,
    hints: list[str] | None = None,
    draw: float | None = None,
    **options: Any,
) -> TaskDecisions:
    """Decide a world; ``hints`` are the queues that could run its one task."""
    key = {"jeditaskid": TASK, "snapshot": 1}
    given = None if hints is None else [key | {"panda_queue": queue} for queue in hints]
    if given is not None:
        options["hint_queues"] = pl.DataFrame(given, schema=HINTS)
    if draw is not None:
        options["draws"] = pl.DataFrame([key | {"draw": draw}])
    return decide(
        frames(tables),
        rules=ProductionRules(rules) if isinstance(rules, str) else rules,
        config=Config.empty().with_values(settings or {}),
        **options,
    )


class Found:
    """What is decided on a world, together with all that were asked about under the same rules and settings."""

    def __init__(self, tables: dict[str, list[Row]], rules: str | ProductionRules, settings: Row):
        self.tables, self.rules, self.settings = tables, rules, settings
        self.waiting = WAITING.setdefault(repr((rules, sorted(settings.items()))), [])
        self.waiting.append(self)
        self.decided: dict[str, pl.DataFrame] = {}

    @property
    def nuclei(self) -> pl.DataFrame:
        return self._decided("nuclei")

    @property
    def tasks(self) -> pl.DataFrame:
        return self._decided("tasks")

    def _decided(self, name: str) -> pl.DataFrame:
        if self in self.waiting:
            asked = [*self.waiting]
            self.waiting.clear()  # what cannot be decided fails once
            together: dict[str, list[Row]] = {}
            for number, found in enumerate(asked):
                for table, rows in found.tables.items():
                    together.setdefault(table, []).extend(
                        row | {"snapshot": number} for row in rows
                    )
            result = decided(together, self.rules, self.settings)
            for number, found in enumerate(asked):
                found.decided = {
                    "nuclei": result.nuclei.filter(snapshot=number),
                    "tasks": result.tasks.filter(snapshot=number),
                }
        return self.decided[name]


WAITING: dict[str, list[Found]] = {}


def ask(
    tables: dict[str, list[Row]], rules: str | ProductionRules = "document", **settings: Any
) -> Found:
    """Ask what is decided on a world, each at an instant of its own; leave it as it is from now on.

    Nothing is decided before the first answer is looked at. Ask while the module is imported (in the arguments of
    ``parametrize``), and a module costs one decision per rule set and settings.
    """
    return Found(tables, rules, settings)


def reasons(result: TaskDecisions | Found) -> dict[str, str | None]:
    """Return the first failed check of every nucleus of the one task."""
    return dict(result.nuclei.select("nucleus", pl.col("check").cast(pl.String)).iter_rows())


def the_task(result: TaskDecisions | Found) -> Row:
    return result.tasks.row(0, named=True)


def would_help(result: TaskDecisions) -> list[str]:
    """Return the rules without which alone the one task would have a nucleus, in their order."""
    table = what_would_help(result, jeditaskid=the_task(result)["jeditaskid"])
    helps = table.filter(pl.col("n_gained") > 0)["check"].to_list()
    return [name for name in result.order["check"] if name in helps]


def at(result: TaskDecisions | Found, name: str) -> Row:
    """Return the row of a nucleus of the one task."""
    return result.nuclei.filter(pl.col("nucleus") == name).row(0, named=True)
