"""Which single checks stand between a task and its candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, TypeAlias

import polars as pl

from brokerlab.brokerage import origins
from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.ranking import MARKS
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.what_if import Trial
from brokerlab.brokerage.explaining.subject import subject
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.view import TASK, AnyDecisions
from brokerlab.errors import ConfigError

OnQueues: TypeAlias = Decisions | AnalysisDecisions
_SCHEMA: dict[str, Any] = {
    "check": pl.String,
    "kind": pl.String,
    **dict.fromkeys(("n_skipped", "n_alone", "n_gained", "n_candidates"), pl.Int64),
    "change": pl.String,
    **dict.fromkeys(("keys", "queue_fields", "task_fields"), pl.List(pl.String)),
}


def single_obstacles(
    decisions: OnQueues, *, jeditaskid: int | None = None, snapshot: int | None = None
) -> pl.DataFrame:
    """Return the pairs that one single check keeps apart.

    Args:
        decisions: Of the job brokerage or of the analysis brokerage.
        jeditaskid: Only this task; null = all.
        snapshot: Only this instant; null = all.

    Returns:
        ``jeditaskid, snapshot, panda_queue, check``, sorted: the queue fails this check and no other of the checks of
        single queues; or it fails none of these and one of the rules that look at all queues together skips it,
        behind which others of those rules may wait. Of user tasks the locality loop that decided is looked at.
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
        decisions: Of any brokerage.
        jeditaskid: The task.
        snapshot: The instant; null = the last one of the task.

    Returns:
        One row per check that skips a queue of the task, those that help most first: ``check``, ``kind``;
        ``n_skipped`` queues it was the reason for; ``n_alone`` of them that fail no other check of single queues, see
        :func:`single_obstacles`; ``n_gained`` candidates more if the check did not exist, and ``n_candidates`` then:
        caps, weights and ranks are computed again (``rank``: if more than ten were taken), while of nuclei nothing is
        (``n_gained`` is ``n_alone``, ``n_candidates`` null; that other nuclei passing may waive the check of locality
        is not followed). User tasks are decided again in both locality loops, and ``badsite`` stands as the marks that
        make a queue problematic (``user_queue, bad_jobs, no_running``; a queue may have several); ``change``, what could change it in words, and as lists ``keys`` of gdpconfig,
        ``queue_fields``, ``task_fields``.

    Raises:
        DataError: There is no such task.

    Source: production-job-brokerage.md 8.
    """
    who = subject(decisions.tasks, jeditaskid, snapshot)
    rows = _rows(decisions, jeditaskid, who.snapshot)
    table = pl.DataFrame(rows, schema=_SCHEMA, orient="row").with_row_index("order")
    table = table.sort("n_gained", "n_alone", "order", descending=[True, True, False])
    return table.drop("order")


@singledispatch
def _rows(
    decisions: AnyDecisions,
    jeditaskid: int,  # noqa: ARG001
    snapshot: int,  # noqa: ARG001
) -> list[tuple[object, ...]]:
    """Return the lines of :func:`what_would_help`."""
    raise ConfigError(f"these are no decisions of a brokerage: {type(decisions).__name__}")


@_rows.register
def _of_jobs(decisions: Decisions, jeditaskid: int, snapshot: int) -> list[tuple[object, ...]]:
    one = _One.of(decisions, jeditaskid, snapshot)
    if one is None:
        return []
    trial = Trial.of(decisions, one.t)
    alone = single_obstacles(decisions, jeditaskid=jeditaskid, snapshot=snapshot)
    return _lines(
        one, decisions.reasons, _counts(one.skipped), _counts(alone),
        lambda name: trial.without(name).pairs, last=decisions.world.LAST,
    )  # fmt: skip


@_rows.register
def _of_analysis(
    decisions: AnalysisDecisions, jeditaskid: int, snapshot: int
) -> list[tuple[object, ...]]:
    one = _One.of(decisions, jeditaskid, snapshot)
    if one is None:
        return []
    trial = Trial.of(decisions, one.t)
    alone = single_obstacles(decisions, jeditaskid=jeditaskid, snapshot=snapshot)
    reasons = [
        reason
        for reason in (*decisions.reasons, *decisions.marks)
        if reason.name != decisions.world.MARKED
    ]
    return _lines(
        one, reasons,
        _counts(one.skipped) | _marks(decisions, one.skipped, most=len(MARKS)),
        _counts(alone) | _marks(decisions, alone, most=1),
        lambda name: trial.without(name).pairs, last=decisions.world.LAST,
    )  # fmt: skip


@dataclass(frozen=True)
class _One:
    """A task that queues were looked at for.

    Attributes:
        t: Number of the task.
        skipped: Its queues that are no candidates.
        candidates: Number of the others.
    """

    t: int
    skipped: pl.DataFrame
    candidates: int

    @classmethod
    def of(cls, decisions: OnQueues, jeditaskid: int, snapshot: int) -> _One | None:
        """Return the task; null: it ended before any queue was looked at."""
        same = (pl.col("jeditaskid") == jeditaskid, pl.col("snapshot") == snapshot)
        tasks = decisions.world.facts.tasks.filter(*same)
        if not tasks.height:
            return None
        pairs = decisions.queues.filter(*same)
        return cls(tasks["t"].item(), pairs.drop_nulls("check"), pairs["check"].null_count())


def _lines(
    one: _One, reasons: Sequence[Rule], skipped: dict[str, int], alone: dict[str, int],
    without: Callable[[str], pl.DataFrame], *, last: str,
) -> list[tuple[object, ...]]:  # fmt: skip
    """Return a line for each reason that skips a queue.

    Args:
        one: The task.
        reasons: The reasons, in order; of two with one name the last is told.
        skipped: Queues by reason.
        alone: Queues by reason that fail no other check of single queues.
        without: Decides the task without a reason, returns its pairs.
        last: Reason of candidates that are too many: without it they all are.
    """
    rows: list[tuple[object, ...]] = []
    for reason in {reason.name: reason for reason in reasons}.values():
        if reason.name not in skipped:
            continue
        n_alone, after = alone.get(reason.name, 0), one.candidates
        if reason.name == last:
            after = one.candidates + n_alone
        elif n_alone:
            after = without(reason.name)["check"].null_count()
        told = (skipped[reason.name], n_alone, after - one.candidates, after)
        rows.append((reason.name, reason.kind, *told, *_changes(reason)))
    return rows


def _marks(decisions: AnalysisDecisions, pairs: pl.DataFrame, *, most: int) -> dict[str, int]:
    """Return how many of the problematic queues have each mark, of queues with so many marks at most."""
    marked = decisions.weighed.filter(pl.col("check") == decisions.world.MARKED)
    marks = marked.join(pairs, on=[*TASK, "panda_queue"], how="semi").select(MARKS)
    marks = marks.filter(pl.sum_horizontal(pl.all().cast(pl.Int64)) <= most)
    found = {name: int(marks[name].sum()) for name in MARKS}
    return {name: n for name, n in found.items() if n}


def _counts(pairs: pl.DataFrame) -> dict[str, int]:
    return dict(pairs.group_by(pl.col("check").cast(pl.String)).len().iter_rows())


def _changes(reason: Rule) -> tuple[str, Sequence[str], Sequence[str], Sequence[str]]:
    queue = origins.fields(reason.inputs, origins.QUEUE)
    task = origins.fields(reason.inputs, origins.TASK)
    return origins.in_words(reason.keys, queue, task), list(reason.keys), queue, task


@_rows.register
def _of_nuclei(
    decisions: TaskDecisions, jeditaskid: int, snapshot: int
) -> list[tuple[object, ...]]:
    order = decisions.checks
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
