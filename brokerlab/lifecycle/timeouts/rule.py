"""A timeout rule as a value: whom it looks at, since when they wait, how long they may, what happens then."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, TypedDict

import narwhals.stable.v2 as nw

from brokerlab.archive.contracts.jobs import NOT_ACTIVATED
from brokerlab.rulesets import RuleSet
from brokerlab.units import SECOND_US

ACTIVE_TABLE = (
    *("activated", "sent", "starting", "running", "holding", "merging"),
    *("transferring", "throttled", "stagein", "stageout"),
)
"""Every other live status."""
LIVE = NOT_ACTIVATED + ACTIVE_TABLE
QUEUED = ("defined", "assigned", "activated", "starting")
"""Jobs that fast and analysis rebrokerage can move."""

Action = Literal["fail", "kill", "reassign"]
PRECEDENCE: tuple[Action, ...] = ("fail", "kill", "reassign")
"""Which action counts where several rules fire (docs/rules/waiting.md 5)."""


def col(name: str) -> nw.Expr:
    """Return a column of the facts about jobs."""
    return nw.col(name)


def true(value: bool = True) -> nw.Expr:  # noqa: FBT001, FBT002
    """Return a constant condition."""
    return nw.lit(value=value)


@dataclass(frozen=True, kw_only=True, eq=False)
class TimeoutRule:
    """One row of the decision table.

    A rule fires at an instant later than ``since + limit`` while the job has one of ``statuses`` and ``condition``
    holds. A null on the way is no.
    """

    number: int  # place in the chapter's table; the rules of the code alone come after it
    name: str  # the chapter's name, ``x_`` in front of those that only the code has
    action: Action  # what happens to the job
    statuses: tuple[str, ...]  # job statuses it looks at
    reference: str  # what the age is counted from, in words
    since: nw.Expr  # that time [us since 1970]
    limit_s: nw.Expr  # how old it may be [s]
    least_s: int  # lower bound of the limit over all jobs [s]
    condition: nw.Expr  # what else must hold, of the job alone
    exempt: nw.Expr  # where the job's queue is exempt from it
    # what else must hold, of its queue, its workflow or its output reports
    where: nw.Expr = field(default_factory=lambda: nw.lit(value=True))
    source: str = "docs/rules/waiting.md 2"  # section of the chapter
    keys: tuple[str, ...] = ()  # gdpconfig keys it reads
    # what fails the job looks again and wants it silent for this long [s]; null: no second look
    second_s: nw.Expr | None = None
    # the job opens the rule for its queue; null: the rule needs no opening
    opens: nw.Expr | None = None

    def scaled(self, scale: float) -> TimeoutRule:
        """Return the rule with limits so many times as long, in whole seconds; the second look waits along."""
        if scale == 1:
            return self
        second = None if self.second_s is None else _times(self.second_s, scale)
        least = math.floor(self.least_s * scale)
        return replace(self, limit_s=_times(self.limit_s, scale), least_s=least, second_s=second)

    @property
    def selects(self) -> nw.Expr:
        """Return where the rule looks at a job at all, whatever its age."""
        return self.of_job & (self.where & ~self.exempt).fill_null(value=False)

    @property
    def of_job(self) -> nw.Expr:
        """Return where the rule looks at a job for what the job is, whatever its queue."""
        return (col("jobstatus").is_in(self.statuses) & self.condition).fill_null(value=False)

    @property
    def due_us(self) -> nw.Expr:
        """Return the instant after which a job is too old [us since 1970], null where that is never."""
        return self.since + self.limit_s * SECOND_US

    @property
    def agrees_us(self) -> nw.Expr:
        """Return the instant after which the second look agrees [us since 1970]; null is never, without one always."""
        if self.second_s is None:
            return nw.lit(0)
        silent = nw.min_horizontal(col("modificationtime_us"), col("endtime_us"))
        return silent + self.second_s * SECOND_US

    @property
    def spares(self) -> nw.Expr:
        """Return where the second look spares a job whatever its age, for its status."""
        if self.second_s is None:
            return true(value=False)
        returns = col("prodsourcelabel").is_in(USERS) | (col("jobsubstatus") != "")
        left = (col("jobstatus") == "transferring") & returns.fill_null(value=False)
        return ~(col("jobstatus").is_in(FAILING) | left)


USERS = ("user", "panda")  # labels of user analysis and its build jobs
FAILING = ("running", "sent", "starting", "holding", "stagein", "stageout")
"""Statuses in which a job can still be failed when it is looked at again; transferring has conditions."""


def _times(seconds: nw.Expr, scale: float) -> nw.Expr:
    return (seconds * scale).floor().cast(nw.Int64)


TIMES = ("creationtime", "modificationtime", "statechangetime", "starttime", "endtime")
"""Times of a job; facts have each as whole microseconds since 1970, ``<name>_us``."""


class Wait(TypedDict):
    """The part of a rule that says how long a job may wait since when."""

    reference: str
    since: nw.Expr
    limit_s: nw.Expr
    least_s: int


@cache
def _references() -> Mapping[str, nw.Expr]:
    result = {name: col(f"{name}_us") for name in TIMES}
    modified, ended = result["modificationtime"], result["endtime"]
    return {
        **result,
        "modificationtime or endtime": nw.min_horizontal(modified, ended),
        "endtime, else starttime": nw.coalesce(ended, result["starttime"]),
    }


def fixed(reference: str, limit_s: int) -> Wait:
    """Return a wait since a reference time for so many seconds."""
    since = _references()[reference]
    return {"reference": reference, "since": since, "limit_s": nw.lit(limit_s), "least_s": limit_s}


@dataclass(frozen=True, init=False)
class TimeoutRules(RuleSet, chapter="waiting"):
    """One rule set of the timeouts with its switches; part of every result's provenance.

    Both sets follow the code where the page gives no number: see docs/rules/waiting.md.

    Example:
        >>> TimeoutRules().holding_hi_from_800, TimeoutRules("production").holding_hi_from_800
        (True, False)
    """

    exemption_mode: str
    holding_lo_any_priority: bool
    holding_hi_from_800: bool
    running_since_creation: bool
    transferring_fixed_limits: bool
    transferring_heartbeat_users: bool
    heartbeat_stages: bool
    assigned_whole_table: bool
    label_limits: bool
    fr_row_limit_bug: bool
    fr_zero_running_triggers: bool
    analysis_rebrokerage: bool
    heartbeat_two_checks: bool
    inactive_queue_two_steps: bool
    code_only_rules: bool
    second_look: bool
