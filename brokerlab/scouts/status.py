"""What becomes of a task after its scouts were read, and after it was exhausted (docs/rules/exhausted.md 1 and 3)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.scouts.estimate import ScoutResult
from brokerlab.scouts.exhausted import STOPPABLE, ExhaustedResult
from brokerlab.scouts.settings import AFTER_AVALANCHE, splitrule_after_scouts
from brokerlab.scouts.split_rule import tag_column
from brokerlab.scouts.tables import small
from brokerlab.scouts.write import set_splitrule
from brokerlab.times import time_of

SCOUTING = ("scouting", "ready")
NONE_SUCCEEDED = "no scout jobs succeeded"
TOO_FEW_SUCCEEDED = "not enough scout jobs succeeded"
EXHAUSTED_H = 48  # static setting: an exhausted task is finished after this time [h]

_S = nw.String()
_TASKS = {"jeditaskid": nw.Int64(), "status": _S, "oldstatus": _S, "splitrule": _S}

Tasks = bool | Collection[int]


def next_status(
    tasks: Any,
    scouts: ScoutResult,
    exhausted: ExhaustedResult,
    *,
    forced_avalanche: Tasks = False,
    tolerated: Tasks = False,
) -> pl.DataFrame:
    """Say which status a task has after its scouts were read.

    One row per task of ``scouts``, sorted by ``jeditaskid``: ``status``; ``oldstatus``, the status before
    where the task became exhausted, else as it was; ``splitrule`` with what the checks changed, and with
    ``US=3`` where the scouts succeeded in scouting; ``message``: the reason code, or why it is broken.

    An operator forces the avalanche (``forced_avalanche``), or failed scouts are tolerated for the source (``tolerated``): of
    all tasks, or of those with these ids.

    Source: docs/rules/exhausted.md 1, table of the resulting status.
    """
    frame = _before(tasks, scouts, exhausted)
    scouting = pl.col("status").is_in(SCOUTING)
    passed, fired = pl.col("succeeded"), pl.col("rule").is_not_null()
    excused = _choose(forced_avalanche) | _choose(tolerated)
    stopped = fired & pl.col("status").is_in(STOPPABLE)
    broken = scouting & ~passed & ~excused
    why_broken = pl.when(pl.col("SS").is_null()).then(pl.lit(NONE_SUCCEEDED))
    status = (
        pl.when(stopped)
        .then(pl.lit("exhausted"))
        .when(broken)
        .then(pl.lit("tobroken"))
        .when(scouting)
        .then(pl.lit("scouted"))
        .otherwise("status")
    )
    flagged = splitrule_after_scouts(frame.filter(scouting & passed))
    return (
        set_splitrule(frame, flagged)
        .select(
            "jeditaskid",
            status=status,
            oldstatus=pl.when(stopped).then("status").otherwise("oldstatus"),
            splitrule="splitrule",
            message=pl.when(broken)
            .then(why_broken.otherwise(pl.lit(TOO_FEW_SUCCEEDED)))
            .when(passed)
            .then("message_code"),
        )
        .sort("jeditaskid")
    )


def _before(tasks: Any, scouts: ScoutResult, exhausted: ExhaustedResult) -> pl.DataFrame:
    """Join to every task what its scouts said and the checks decided, its split rule edited."""
    succeeded = scouts.parameters.select("jeditaskid", "succeeded")
    verdicts = exhausted.verdicts.select("jeditaskid", "rule", "message_code", edited="splitrule")
    return (
        small(tasks, "tasks", _TASKS)
        .with_columns(tag_column("SS"))
        .join(succeeded, on="jeditaskid", how="inner")
        .join(verdicts, on="jeditaskid", how="left")
        .with_columns(splitrule=pl.coalesce("edited", "splitrule"))
    )


def _choose(tasks: Tasks) -> pl.Expr:
    """Tell whether a setting holds for a task."""
    if isinstance(tasks, bool):
        return pl.lit(tasks)
    return pl.col("jeditaskid").is_in(list(tasks))


def is_overdue(at: datetime | str, *, hours: float = EXHAUSTED_H) -> pl.Expr:
    """Tell whether an exhausted task goes to ``finishing`` by itself.

    Expression over ``status, statechangetime, splitrule`` of ``tasks``; False where the rule ``DF`` forbids it,
    or the time of the change is null.

    ``at`` [UTC] is the instant of the look, ``hours`` [h] how long a task may stay exhausted.

    Source: docs/rules/exhausted.md 3, last paragraph.
    """
    waited = pl.lit(time_of(at, "at"), dtype=pl.Datetime("us")) - pl.col("statechangetime")
    allowed = tag_column("DF").is_null()
    overdue = (pl.col("status") == "exhausted") & (waited > timedelta(hours=hours)) & allowed
    return overdue.fill_null(value=False)


def status_of_retry() -> pl.Expr:
    """Return the status that a retry gives back to an exhausted task.

    Expression over ``oldstatus, splitrule``: ``running``, or ``scouting`` unless the scouts had passed
    (``US=3``), then ``running`` too; null where the task was exhausted from anything else.

    Source: docs/rules/exhausted.md 3, last paragraph.
    """
    spoken = (tag_column("US") == AFTER_AVALANCHE).fill_null(value=False)
    old = pl.col("oldstatus")
    return (
        pl.when((old == "running") | ((old == "scouting") & spoken))
        .then(pl.lit("running"))
        .when(old == "scouting")
        .then(pl.lit("scouting"))
    )
