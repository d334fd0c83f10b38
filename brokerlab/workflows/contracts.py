"""The tables of a workflow: tasks and the edges between them."""

from __future__ import annotations

import dataframely as dy


class Tasks(dy.Schema):
    """One row per task (workflows.md 1.1)."""

    task_id = dy.String(nullable=False, metadata={"meaning": "unique in the workflow"})
    runtime = dy.Float64(
        nullable=True,
        metadata={"unit": "s", "meaning": "real run time on its hosts; null: not known"},
    )
    estimate = dy.Float64(
        nullable=True,
        metadata={"unit": "s", "meaning": "run time known to the scheduler; null: as runtime"},
    )
    hosts = dy.Int64(
        nullable=True, metadata={"unit": "hosts", "meaning": "hosts it takes; null: 1"}
    )
    name = dy.String(nullable=True, metadata={"meaning": "label"})
    type = dy.String(nullable=True, metadata={"meaning": "kind of task"})


class Edges(dy.Schema):
    """One row per dependency: the child starts when the parent is done."""

    parent = dy.String(nullable=False, metadata={"meaning": "task_id"})
    child = dy.String(nullable=False, metadata={"meaning": "task_id"})


TABLES: dict[str, type[dy.Schema]] = {"tasks": Tasks, "edges": Edges}
