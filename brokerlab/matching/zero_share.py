"""Zero share: does a queue's ``fairsharepolicy`` forbid a task? (docs/rules/zero-share.md).

A policy is a list of sub-policies; the first whose clauses all hold decides, and forbids when its value is exactly
``0`` or ``0%``. A clause looks at one attribute of the task, so a policy is decided for many tasks by asking each
clause about each distinct value of its attribute; one task is the same with one value each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.frames import chosen
from brokerlab.matching.fairshare_policy import PRIORITY, Clause, Policy, parse
from brokerlab.matching.notes import warn
from brokerlab.matching.patterns import PatternError
from brokerlab.matching.processing_groups import TEST, processing_group
from brokerlab.matching.rules import MatchingRules

REASONS = ("no_match", "no_policy", "test_exempt", "matched_zero", "matched_nonzero", "error")
NO_MATCH, NO_POLICY, TEST_EXEMPT, MATCHED_ZERO, MATCHED_NONZERO, ERROR = range(len(REASONS))

TASK_COLUMNS = ("processingtype", "workinggroup", "gshare", "currentpriority", "is_merging")
DOCUMENT = MatchingRules()

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy says about one task."""

    zero_share: bool  # the queue must not run the task
    # 0-based sub-policy that decided, or at which the evaluation stopped; None if none did
    rule_index: int | None
    # ``no_policy``, ``test_exempt``, ``matched_zero``, ``matched_nonzero``, ``no_match`` or ``error``
    reason: str
    priority_error: bool  # A priority clause could not be evaluated and was taken to hold


@dataclass(frozen=True)
class _Attribute:
    """One attribute of the tasks: its distinct values, and which of them each task has."""

    values: Sequence[Any]
    codes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, column: Sequence[Any], change: Callable[[Any], Any] | None = None) -> _Attribute:
        """Return the distinct values of a column, changed if need be."""
        changed = [change(value) for value in column] if change else list(column)
        numbers = {value: number for number, value in enumerate(dict.fromkeys(changed))}
        return cls(list(numbers), np.array([numbers[value] for value in changed], dtype=np.int64))

    def spread(self, per_value: Flags) -> Flags:
        """Return one flag per task from one per distinct value."""
        return per_value[self.codes]


@dataclass
class _Tasks:
    """Tasks as the policies see them, and the answers of clauses already asked."""

    attributes: dict[str, _Attribute]
    merging: Flags
    asked: dict[Clause, tuple[Flags, Flags, Flags]]

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any]], merging: Sequence[bool | None]) -> _Tasks:
        attributes = {
            "type": _Attribute.of(columns["processingtype"], processing_group),
            "group": _Attribute.of(columns["workinggroup"], lambda group: group or ""),
            "gshare": _Attribute.of(columns["gshare"]),
            "priority": _Attribute.of(columns["currentpriority"]),
        }
        return cls(attributes, np.array([bool(flag) for flag in merging], dtype=np.bool_), {})

    def ask(self, clause: Clause) -> tuple[Flags, Flags, Flags]:
        """Return where a clause holds, where it cannot be decided, and where it is in error."""
        key = clause.without_place()
        if key not in self.asked:
            attribute = self.attributes[clause.key]
            answers = np.array([_ask(clause, value) for value in attribute.values], dtype=np.bool_)
            holds, unreadable, error = answers.reshape(-1, 3).T
            spread = attribute.spread
            self.asked[key] = spread(holds), spread(unreadable), spread(error)
        return self.asked[key]


def _ask(clause: Clause, value: Any) -> tuple[bool, bool, bool]:
    """Return whether a clause holds for a value, cannot be evaluated, and is in error."""
    try:
        holds = clause.holds(value)
    except PatternError:
        return False, False, True
    return holds is None or holds, holds is None, False


@dataclass(frozen=True)
class _Answers:
    """What one policy says about each task."""

    reason: npt.NDArray[np.int8]
    rule_index: npt.NDArray[np.int64]
    priority_error: Flags


def _decide(policy: Policy, tasks: _Tasks, rules: MatchingRules) -> _Answers:
    """Evaluate a policy for all tasks: sub-policies in order, the first that holds decides (2.1 to 2.9)."""
    n = len(tasks.merging)
    answers = _Answers(np.zeros(n, np.int8), np.full(n, -1), np.zeros(n, np.bool_))
    if not policy.text:
        answers.reason[:] = NO_POLICY
        return answers
    groups = tasks.attributes["type"]
    tests = [rules.tests_exempt and group == TEST for group in groups.values]
    exempt = groups.spread(np.array(tests, dtype=np.bool_))
    answers.reason[exempt] = TEST_EXEMPT
    undecided = ~exempt
    for index, subpolicy in enumerate(policy.subpolicies):
        here, failed = undecided.copy(), np.zeros(n, np.bool_)
        for clause in subpolicy.clauses:
            holds, unreadable, error = tasks.ask(clause)
            if clause.key == PRIORITY:
                answers.priority_error[here & unreadable & ~tasks.merging] = True
                holds = np.where(tasks.merging, rules.merge_priority == "match", holds)
            failed |= here & error
            here &= holds & ~error
        answers.reason[failed] = ERROR
        answers.reason[here] = MATCHED_ZERO if subpolicy.is_zero else MATCHED_NONZERO
        answers.rule_index[here | failed] = index
        undecided &= ~(here | failed)
        if not undecided.any():
            break
    return answers


def zero_share(
    policy: str | None,
    processingtype: str | None = None,
    workinggroup: str | None = None,
    gshare: str | None = None,
    currentpriority: int | None = None,
    *,
    merging: bool = False,
    rules: MatchingRules = DOCUMENT,
) -> Decision:
    """Decide whether a policy forbids one task.

    An expression that is malformed, or outside of the linear-time engine, ends the evaluation and accepts (reason ``error``).

    A policy that is null or empty accepts everything. Of the task a null ``processingtype`` is of group ``others``, a null
    ``workinggroup`` an empty text; a null ``gshare`` satisfies every ``gshare=``, a null ``currentpriority`` every order
    comparison; of a merging chunk the priority is not looked at.

    Source: docs/rules/zero-share.md 2.
    """
    columns: dict[str, Sequence[Any]] = {
        "processingtype": [processingtype],
        "workinggroup": [workinggroup],
        "gshare": [gshare],
        "currentpriority": [currentpriority],
    }
    answers = _decide(parse(policy), _Tasks.of(columns, [merging]), rules)
    reason, index = int(answers.reason[0]), int(answers.rule_index[0])
    return Decision(
        zero_share=reason == MATCHED_ZERO,
        rule_index=None if index < 0 else index,
        reason=REASONS[reason],
        priority_error=bool(answers.priority_error[0]),
    )


def decide_pairs(
    policies: Sequence[str | None], tasks: pl.DataFrame, *, rules: MatchingRules = DOCUMENT
) -> pl.DataFrame:
    """Decide every distinct policy for every distinct kind of task; warns of policies with findings that change their meaning.

    ``policy``, the five task columns, ``zero_share`` (bool), ``rule_index`` (i64, null if no sub-policy
    decided), ``reason``, ``priority_error`` (bool); one row per distinct policy and distinct task row, policies
    and task rows in the order of their first appearance. Join with ``nulls_equal=True``. Columns that are missing are a SchemaError.

    Source: docs/rules/zero-share.md 2.
    """
    kinds = chosen("tasks", tasks, TASK_COLUMNS).unique(maintain_order=True)
    columns = {name: kinds[name].to_list() for name in TASK_COLUMNS}
    seen = _Tasks.of(columns, columns["is_merging"])
    parsed = [parse(text) for text in dict.fromkeys(policies)]
    warn(
        "queues.fairsharepolicy",
        (
            f"{policy.text[:60]!r} {note}"
            for policy in parsed
            for note in policy.notes
            if note.serious
        ),
    )
    n, m = len(parsed), kinds.height
    answers = [_decide(policy, seen, rules) for policy in parsed]
    reason = np.concatenate([np.zeros(0, np.int8), *(answer.reason for answer in answers)])
    index = np.concatenate([np.zeros(0, np.int64), *(answer.rule_index for answer in answers)])
    unreadable = np.concatenate(
        [np.zeros(0, np.bool_), *(answer.priority_error for answer in answers)]
    )
    texts = pl.Series("policy", [policy.given for policy in parsed], dtype=pl.String)
    rule_index = pl.Series("rule_index", index)
    return (
        kinds[np.tile(np.arange(m), n)]
        .insert_column(0, texts.gather(np.repeat(np.arange(n), m)))
        .with_columns(
            zero_share=pl.Series(reason == MATCHED_ZERO),
            rule_index=pl.when(rule_index >= 0).then(rule_index),
            reason=pl.Series(REASONS).gather(reason.astype(np.uint32)),
            priority_error=pl.Series(unreadable),
        )
    )
