"""Read WfFormat, the JSON of recorded workflow executions (WfCommons), versions 1.4 and 1.5."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from brokerlab.errors import DataError
from brokerlab.schemas import jsonschema
from brokerlab.workflows.checks import named
from brokerlab.workflows.readers.parts import Parts, parts

VERSIONS = ("1.4", "1.5")
PROBLEMS_SHOWN = 10


def read_wfformat(content: bytes, source: str, *, cores_per_host: int = 1) -> Parts:
    """Read a WfFormat document (workflows.md 1.3)."""
    if cores_per_host < 1:
        raise DataError(f"cores_per_host={cores_per_host}: must be at least 1")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise DataError(f"{source}: no JSON: {problem}") from None
    version = document.get("schemaVersion")
    if version not in VERSIONS:
        raise DataError(
            f"{source}: schemaVersion is {version!r}; read are {', '.join(VERSIONS)}; "
            "the format's own tools turn older files into newer ones"
        )
    _check_shape(document, version, source)
    if version == "1.4":
        return _old(document["workflow"]["tasks"], cores_per_host)
    return _new(document["workflow"], source, cores_per_host)


@cache
def _schema(version: str) -> dict[str, Any]:
    folder = resources.files("brokerlab.workflows.readers")
    text = folder.joinpath(f"wfformat-{version}.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _check_shape(document: Mapping[str, Any], version: str, source: str) -> None:
    validator = jsonschema().Draft202012Validator(_schema(version))
    result = [
        f"{'.'.join(map(str, problem.absolute_path)) or 'document'}: {problem.message[:200]}"
        for problem in validator.iter_errors(document)
    ]
    if result:
        more = "" if len(result) <= PROBLEMS_SHOWN else f"; {len(result) - PROBLEMS_SHOWN} more"
        raise DataError(
            f"{source}: no WfFormat {version}: {'; '.join(sorted(result)[:PROBLEMS_SHOWN])}{more}"
        )


def _new(flow: Mapping[str, Any], source: str, cores_per_host: int) -> Parts:
    """Read version 1.5: what is to be done and what was done stand apart."""
    tasks = flow["specification"]["tasks"]
    execution = flow.get("execution", {}).get("tasks", [])
    done = {record["id"]: record for record in execution}
    ids = {task["id"] for task in tasks}
    stray = [name for name in done if name not in ids]
    if stray or len(done) < len(execution):
        raise DataError(
            f"{source}: workflow.execution.tasks: {len(execution) - len(done)} ids stand more than once, "
            f"{len(stray)} are no tasks of the workflow: {named(stray)}"
        )
    rows = [_row(task, done.get(task["id"], {}), "coreCount", cores_per_host) for task in tasks]
    above = {(parent, task["id"]) for task in tasks for parent in task["parents"]}
    below = {(task["id"], child) for task in tasks for child in task["children"]}
    return parts(rows, sorted(above | below), _one_sided(above, below))


def _old(tasks: list[Mapping[str, Any]], cores_per_host: int) -> Parts:
    """Read version 1.4: tasks refer to each other by name, and edges stand on either side."""
    by_name = {task["name"]: task.get("id", task["name"]) for task in tasks}
    ids = {task.get("id", task["name"]) for task in tasks}

    def known(reference: str) -> str:
        return reference if reference in ids else by_name.get(reference, reference)

    rows = [
        _row({"id": task.get("id", task["name"]), **task}, task, "cores", cores_per_host)
        for task in tasks
    ]
    pairs = {(known(p), row["task_id"]) for row, task in zip(rows, tasks, strict=True) for p in task.get("parents", [])}  # fmt: skip
    pairs |= {(row["task_id"], known(c)) for row, task in zip(rows, tasks, strict=True) for c in task.get("children", [])}  # fmt: skip
    return parts(rows, sorted(pairs))


def _row(
    task: Mapping[str, Any], record: Mapping[str, Any], cores: str, cores_per_host: int
) -> dict[str, Any]:
    runtime = record.get("runtimeInSeconds")
    return {
        "task_id": task["id"],
        "runtime": None if runtime is None else float(runtime),
        "estimate": None,
        "hosts": math.ceil(record.get(cores, 1) / cores_per_host),
        "name": task["name"],
        "type": task.get("category"),
    }


def _one_sided(above: set[tuple[str, str]], below: set[tuple[str, str]]) -> list[str]:
    """Say which edges only one of the two tasks tells."""
    result = []
    for pairs, side in ((above - below, "child"), (below - above, "parent")):
        if pairs:
            shown = named(f"{parent} -> {child}" for parent, child in sorted(pairs))
            result.append(f"{len(pairs)} edges are told by the {side} alone, and taken: {shown}")
    return result
