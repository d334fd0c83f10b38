"""The commands of the brokerage: list the brokerages and the tables, explain a decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from brokerlab.console import noted
from brokerlab.errors import ConfigError, DataError, SchemaError, nearest

if TYPE_CHECKING:
    import dataframely as dy

    from brokerlab.archive import Archive
    from brokerlab.brokerage.explanations import Explanation, TaskExplanation
    from brokerlab.brokerage.rules import ProductionRules


def brokerages() -> None:
    """Print the brokerages that are installed: ours, and those of other packages."""
    from rich.text import Text

    from brokerlab.brokerage.plugins import available

    rows = [
        (
            *(row[part] for part in ("name", "package", "version")),
            Text(row["problem"] or row["description"], style="red" if row["problem"] else ""),
        )
        for row in available().iter_rows(named=True)
    ]
    _print(rows, "name", "package", "version", "what")


def tables(
    name: Annotated[
        str, typer.Argument(help="A table, a brokerage, or BROKERAGE.TABLE; none lists all.")
    ] = "",
) -> None:
    """Print the tables of archives and the input tables of brokerages, or the columns of one with units and null meanings."""
    from brokerlab.archive import contracts
    from brokerlab.brokerage import plugins

    of, dot, table = name.partition(".")
    if not name:
        rows = [
            (key, len(kind.columns()), ", ".join(contracts.key_columns(key)), _first_line(kind))
            for key, kind in contracts.TABLES.items()
        ]
        _print(rows, "table", "columns", "key", "what")
        names = " or ".join(plugins.available()["name"])
        typer.echo(f"Input tables of a brokerage: brokerlab tables {names}")
    elif dot:
        result = plugins.get(of).tables
        if table not in result:
            raise SchemaError(f"{of} has no table '{table}': {nearest(table, result)}")
        _print_columns(result[table], f"{name}: {_first_line(result[table])}")
    elif name not in contracts.STORED and name in plugins.available()["name"]:
        brokerage = plugins.get(name)
        rows = [
            (key, len(kind.columns()), _first_line(kind), brokerage.absent.get(key, "-"))
            for key, kind in brokerage.tables.items()
        ]
        _print(rows, "table", "columns", "what", "absent means")
    else:
        _print_columns(contracts.contract(name), name)


def _first_line(kind: type[dy.Schema]) -> str:
    return (kind.__doc__ or "").split("\n", maxsplit=1)[0].replace("``", "")


def _print_columns(kind: type[dy.Schema], title: str) -> None:
    """Print the columns of a table, those of its key in bold."""
    from rich.text import Text

    from brokerlab.archive.contracts import describe_columns

    rows = []
    for row in describe_columns(kind).iter_rows(named=True):
        column = Text(row["column"], style="bold" if row["key"] else "")
        rows.append((column, *(row[part] for part in ("type", "null", "unit", "meaning"))))
    _print(rows, "column", "type", "null means", "unit", "meaning", title=title)


def _print(rows: Iterable[Sequence[object]], *names: str, title: str | None = None) -> None:
    from rich.table import Table
    from rich.text import Text

    shown = Table(*names, title=title)
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    Console(width=None if Console().is_terminal else 140).print(shown)


def explain(
    *,
    archive: Annotated[Path, typer.Option(help="Archive folder.")],
    task: Annotated[int, typer.Option(help="jeditaskid.")],
    queue: Annotated[str, typer.Option(help="Queue; none explains the task as a whole.")] = "",
    nucleus: Annotated[str, typer.Option(help="Nucleus, instead of a queue.")] = "",
    rules: Annotated[str, typer.Option(help="document or production.")] = "document",
    at: Annotated[str, typer.Option(help="Instant, UTC; none: the task's last brokerage.")] = "",
) -> None:
    """Explain why a task was, or was not, sent to a queue (or given to a nucleus), with the numbers compared.

    Tasks of production and of users alike; of the latter also which rule holds them back. The answer ends with where
    the task's jobs really ran.
    """
    from brokerlab.archive.store import open_archive
    from brokerlab.brokerage.rules import ProductionRules

    if queue and nucleus:
        raise ConfigError("--queue and --nucleus: give one of them")
    rule_set = ProductionRules(rules)
    opened = open_archive(archive)
    with noted():
        answer = _explain(opened, task, queue, nucleus, rule_set, at)
    if answer.outcome == "unknown":
        raise ConfigError(answer.text)
    typer.echo(answer.text)


def _explain(
    opened: Archive, task: int, queue: str, nucleus: str, rules: ProductionRules, at: str
) -> Explanation | TaskExplanation:
    """Replay the brokerage of one task and explain it: that of analysis for user tasks, else of production."""
    from brokerlab.brokerage import decide, explain_task, plugins
    from brokerlab.brokerage import explain as explained
    from brokerlab.brokerage.production_jobs.brokerage import hint_queues
    from brokerlab.brokerage.replaying import build
    from brokerlab.brokerage.studies.period import ANALYSIS, PRODUCTION, jobs_that_ran
    from brokerlab.times import time_of

    moment = time_of(at or None, "--at")
    label = _label(opened, task)
    kind = ANALYSIS if label == ANALYSIS.label and not nucleus else PRODUCTION
    stage = "tasks" if nucleus else kind.brokerage.stage
    try:
        replay = build(
            opened, tasks=[task], at=moment, stage=stage, every=None, rules=rules,
        )  # fmt: skip
    except DataError as problem:
        if label is None:
            raise
        raise DataError(
            f"{opened.path}: task {task} (prodsourcelabel {label}) is not known to have been brokered as {kind.name}: "
            f"{problem}"
        ) from None
    if nucleus:
        seen = replay.tables_of(PRODUCTION.brokerage.tables)
        asks = rules.hint_brokerage
        could = hint_queues(seen, rules=rules, config=replay.config) if asks else None
        of_nuclei = plugins.of_stage("tasks")
        tables = replay.tables_of(of_nuclei.tables)
        choice = of_nuclei.decide(tables, rules=rules, config=replay.config, hint_queues=could)
        return explained(choice, jeditaskid=task, nucleus=nucleus)
    decisions = decide(replay, rules=kind.brokerage.rule_set(rules.rules))
    ran = jobs_that_ran(opened, kind.label, replay.tasks)
    if queue:
        return explained(decisions, jeditaskid=task, panda_queue=queue, ran=ran)
    return explain_task(decisions, jeditaskid=task, ran=ran)


def _label(opened: Archive, task: int) -> str | None:
    """Return ``prodsourcelabel`` of a task; null where there is no table of tasks."""
    if not opened.has("tasks"):
        return None
    label = "select prodsourcelabel from tasks where jeditaskid = $task"
    known = opened.sql(label, {"task": task}).fetchall()
    if not known:
        raise DataError(f"{opened.path}: there is no task {task}")
    return str(known[0][0])
