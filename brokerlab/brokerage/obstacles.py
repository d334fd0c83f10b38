"""Which single checks stand between a task and its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from brokerlab.brokerage import origins
from brokerlab.brokerage.check import Reason
from brokerlab.brokerage.explaining.selection import subject
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.production_jobs.late import late_reasons
from brokerlab.brokerage.production_jobs.what_if import LAST, Trial
from brokerlab.brokerage.production_tasks.checks import checks as nucleus_checks
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.view import TASK, AnyDecisions

_SCHEMA: dict[str, Any] = {
    "check": pl.String,
    "kind": pl.String,
    **dict.fromkeys(("n_skipped", "n_alone", "n_gained", "n_candidates"), pl.Int64),
    "change": pl.String,
    **dict.fromkeys(("keys", "queue_fields", "task_fields"), pl.List(pl.String)),
}


def single_obstacles(
    decisions: Decisions, *, jeditaskid: int | None = None, snapshot: int | None = None
) -> pl.DataFrame:
    """Return the pairs that one single check keeps apart.

    Args:
        decisions: Of the job brokerage.
        jeditaskid: Only this task; null = all.
        snapshot: Only this instant; null = all.

    Returns:
        ``jeditaskid, snapshot, panda_queue, check``, sorted: the queue fails this check and no other of the checks of
        single queues; or it fails none of these and one of the rules that look at all queues together skips it,
        behind which others of those rules may wait.
    """
    pairs = decisions.queues.drop_nulls("check")
    if jeditaskid is not None:
        pairs = pairs.filter(pl.col("jeditaskid") == jeditaskid)
    if snapshot is not None:
        pairs = pairs.filter(pl.col("snapshot") == snapshot)
    failed = pl.col("failed")
    one = (failed & (failed - 1)) == 0
    names = {1 << bit: check.name for bit, check in enumerate(decisions.checks)}
    own = failed.replace_strict(names, default=None, return_dtype=pl.String)
    reason = pl.col("check").cast(pl.String)
    alone = pairs.filter(one & ((failed == 0) | (own == reason)))
    return alone.select(*TASK, "panda_queue", "check").sort(*TASK, "panda_queue")


def what_would_help(
    decisions: AnyDecisions, *, jeditaskid: int, snapshot: int | None = None
) -> pl.DataFrame:
    """Return which single checks keep queues (or nuclei) from a task, and what could change them.

    Args:
        decisions: Of the job or of the task brokerage.
        jeditaskid: The task.
        snapshot: The instant; null = the last one of the task.

    Returns:
        One row per check that skips a queue of the task, those that help most first: ``check``, ``kind``;
        ``n_skipped`` queues it was the reason for; ``n_alone`` of them that fail no other check of single queues, see
        :func:`single_obstacles`; ``n_gained`` candidates more if the check did not exist, and ``n_candidates`` then:
        caps, weights and ranks are computed again (``rank``: if more than ten were taken), while of nuclei nothing is
        (``n_gained`` is ``n_alone``, ``n_candidates`` null; that other nuclei passing may waive the check of locality
        is not followed); ``change``, what could change it in words, and as lists ``keys`` of gdpconfig,
        ``queue_fields``, ``task_fields``.

    Raises:
        DataError: There is no such task.

    Source: production-job-brokerage.md 8.
    """
    who = subject(decisions.tasks, jeditaskid, snapshot)
    if isinstance(decisions, TaskDecisions):
        rows = _of_nuclei(decisions, jeditaskid, who.snapshot)
    else:
        rows = _of_queues(decisions, jeditaskid, who.snapshot)
    table = pl.DataFrame(rows, schema=_SCHEMA, orient="row").with_row_index("order")
    table = table.sort("n_gained", "n_alone", "order", descending=[True, True, False])
    return table.drop("order")


def _of_queues(decisions: Decisions, jeditaskid: int, snapshot: int) -> list[tuple[object, ...]]:
    tasks = decisions.world.facts.tasks.filter(
        pl.col("jeditaskid") == jeditaskid, pl.col("snapshot") == snapshot
    )
    if not tasks.height:  # it ended before any queue was looked at
        return []
    trial = Trial.of(decisions, tasks["t"].item())
    pairs = decisions.queues.filter(
        pl.col("jeditaskid") == jeditaskid, pl.col("snapshot") == snapshot
    )
    skipped = _counts(pairs.drop_nulls("check"))
    alone = _counts(single_obstacles(decisions, jeditaskid=jeditaskid, snapshot=snapshot))
    before = pairs["check"].null_count()
    rows: list[tuple[object, ...]] = []
    reasons = (*decisions.checks, *late_reasons(decisions.world.rules, decisions.world.settings))
    for reason in reasons:
        if reason.name not in skipped:
            continue
        n_alone, after = alone.get(reason.name, 0), before
        if reason.name == LAST:
            after = before + n_alone
        elif n_alone:
            after = trial.without(reason.name).pairs["check"].null_count()
        told = (skipped[reason.name], n_alone, after - before, after)
        rows.append((reason.name, reason.kind, *told, *_changes(reason)))
    return rows


def _counts(pairs: pl.DataFrame) -> dict[str, int]:
    return dict(pairs.group_by(pl.col("check").cast(pl.String)).len().iter_rows())


def _changes(reason: Reason) -> tuple[str, Sequence[str], Sequence[str], Sequence[str]]:
    queue = origins.fields(reason.inputs, origins.QUEUE)
    task = origins.fields(reason.inputs, origins.TASK)
    return origins.in_words(reason.keys, queue, task), list(reason.keys), queue, task


def _of_nuclei(
    decisions: TaskDecisions, jeditaskid: int, snapshot: int
) -> list[tuple[object, ...]]:
    order = nucleus_checks(decisions.rules)
    names = [check.name for check in order]
    pairs = decisions.nuclei.filter(
        pl.col("jeditaskid") == jeditaskid, pl.col("snapshot") == snapshot, ~pl.col("passed")
    )
    fails = [pl.col(name).fill_null(value=False) for name in names]
    alone = pairs.filter(pl.sum_horizontal(each.cast(pl.Int64) for each in fails) == 1)
    rows: list[tuple[object, ...]] = []
    for check, each in zip(order, fails, strict=True):
        n_skipped = pairs.filter(pl.col("skip_reason") == check.name).height
        if n_skipped:
            n_alone = alone.filter(each).height
            told = (n_skipped, n_alone, n_alone, None)
            keys = list(check.keys)
            change = origins.in_words(keys, [], [])
            rows.append((check.name, check.kind, *told, change, keys, [], []))
    return rows
