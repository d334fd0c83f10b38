"""Zero share: does a queue's ``fairsharepolicy`` forbid a task? (docs/rules/zero-share.md).

A policy is a list of sub-policies; the first whose clauses all hold decides, and forbids when its value is exactly
``0`` or ``0%``. A clause looks at one attribute of the task, so a policy is decided for many tasks by asking each
clause about each distinct value of its attribute; one task is the same with one value each.

The grammar, sub-policies, clauses, values, and what is odd about them, is that of docs/rules/zero-share.md 3.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.frames import chosen
from brokerlab.matching.notes import Note, warn
from brokerlab.matching.patterns import PatternError, compile_pattern, matches_anchored
from brokerlab.matching.rules import MatchingRules

TEST = "test"
OTHERS = "others"
_OF_THEIR_OWN = ("evgen", "simul", "reprocessing", "mcore", "group", "deriv", "pile", "merge")
_TESTS = ("prod_test", "validation", "ptest", "rc_test", "rc_test2", "rc_alrb")
_GROUPS = {name: name for name in _OF_THEIR_OWN} | dict.fromkeys(_TESTS, TEST)

PROCESSING_GROUPS = (*_OF_THEIR_OWN, TEST, OTHERS)


def processing_group(processingtype: str | None) -> str:
    """Return the processing group of a processing type (docs/rules/zero-share.md 2)."""
    return _GROUPS.get(processingtype or "", OTHERS)


PATTERN_KEYS = ("type", "group", "gshare")
PRIORITY = "priority"
ANY = "any"
ZERO_VALUES = ("0", "0%")

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
# the numbers that Python's own grammar takes: no leading zeros, except in decimals
_COMPARISON = re.compile(
    r"[ \t]*(>=|<=|==|!=|>|<)[ \t]*([+-]?)[ \t]*((?:0+|[1-9][0-9]{0,18})|[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})[ \t]*"
)
_VALUE = re.compile(r"[0-9]+%?")
_MEANS_ZERO = re.compile(r"[ \t]*[+-]?0+(\.0*)?[ \t]*%*[ \t]*")


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition of a sub-policy on one attribute of the task."""

    key: str  # ``type``, ``group``, ``gshare`` or ``priority``
    text: str  # the expression, or the comparison with its operator
    position: int  # where the text starts in the policy

    def without_place(self) -> Clause:
        """Return the clause as it is anywhere: to find it again."""
        return replace(self, position=0)

    @property
    def expression(self) -> str:
        """The expression with each ``*`` replaced by ``.*`` (2.5, 3.8)."""
        return self.text.replace("*", ".*")

    def holds(self, value: Any) -> bool | None:
        """Tell whether the clause holds for a value of its attribute; None when it cannot be evaluated."""
        if self.key == PRIORITY:
            return compare_priority(value, self.text)
        if self.text == ANY or (self.key == "gshare" and value is None):
            return True
        return matches_anchored(self.expression, value or "")

    def notes(self) -> list[Note]:
        """Return what is wrong with the clause."""
        if self.key == PRIORITY:
            if _COMPARISON.fullmatch(self.text) is not None:
                return []
            reason = "not a comparison with a number: cannot be evaluated, so the clause holds"
            return [Note(self.position, self.text, reason)]
        if self.text == ANY:
            return []
        try:
            pattern = compile_pattern(f"^{self.expression}$")
            fits = [
                group for group in PROCESSING_GROUPS if self.key == "type" and pattern.search(group)
            ]
        except PatternError as error:
            place = self.position + self._place(error.position - 1)
            what = "malformed" if error.malformed else "outside of the linear-time engine"
            message = f"{what}: {error.reason}; reaching it ends the evaluation and accepts"
            return [Note(place, self.text, message)]
        if self.key == "type" and not fits:
            return [Note(self.position, self.text, "no processing group matches", serious=False)]
        if fits == [TEST]:
            return [
                Note(self.position, self.text, "production accepts tests always", serious=False)
            ]
        return []

    def _place(self, position: int) -> int:
        """Return the place in the text of a place in the expression, in which each ``*`` is two characters."""
        place = 0
        while place < len(self.text) and position > 0:
            position -= 2 if self.text[place] == "*" else 1
            place += position >= 0
        return place


@dataclass(frozen=True, slots=True)
class SubPolicy:
    """One sub-policy."""

    text: str  # as written
    position: int  # where it starts in the policy
    clauses: tuple[Clause, ...]  # at most one per key, in the order in which they are evaluated
    value: str  # text of its last field
    notes: tuple[Note, ...]  # what is odd about it

    @property
    def is_zero(self) -> bool:
        """Whether the value forbids: exactly ``0`` or ``0%`` (2.7)."""
        return self.value in ZERO_VALUES

    @property
    def always_holds(self) -> bool:
        """Whether it decides for every task, so that nothing after it is read."""
        return all(clause.key != PRIORITY and clause.text == ANY for clause in self.clauses)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy as read."""

    given: str | None  # as given
    subpolicies: tuple[SubPolicy, ...]  # in order; none for a null or empty policy
    notes: tuple[Note, ...]  # everything odd about the text, by position

    @property
    def text(self) -> str:
        """The text; '' for null."""
        return self.given or ""


@lru_cache(maxsize=4096)
def parse(policy: str | None) -> Policy:
    """Read a policy; never raises, whatever the text (docs/rules/zero-share.md 3)."""
    if not policy:
        return Policy(policy, (), ())
    position, subpolicies = 0, []
    for text in policy.split(","):
        subpolicies.append(_subpolicy(text, position))
        position += len(text) + 1
    notes = [note for subpolicy in subpolicies for note in subpolicy.notes]
    deciding = [number for number, one in enumerate(subpolicies) if one.always_holds]
    if deciding and deciding[0] + 1 < len(subpolicies):
        first = subpolicies[deciding[0] + 1]
        message = "never reached: the sub-policy before it decides for every task"
        notes.append(Note(first.position, first.text, message, serious=False))
    return Policy(policy, tuple(subpolicies), tuple(sorted(notes, key=lambda note: note.position)))


def _subpolicy(text: str, position: int) -> SubPolicy:
    """Read one sub-policy (3.1 to 3.6)."""
    if not text:
        note = Note(position, text, "empty sub-policy: it decides for every task and accepts")
        return SubPolicy(text, position, (), "", (note,))
    fields = text.split(":")
    clauses: dict[str, Clause] = {}
    notes: list[Note] = []
    start = position
    for number, field in enumerate(fields):
        clause = _clause(field, start)
        if clause is None:
            if number < len(fields) - 1:
                notes.append(_unknown(field, start))
        else:
            if clause.key in clauses:
                message = f"{clause.key} occurs again: only the last one counts"
                notes.append(Note(start, field, message))
            clauses[clause.key] = clause
            notes += clause.notes()
            if clause.key != PRIORITY and field.count("=") > 1:
                notes.append(Note(start, field, "only what follows the last = counts"))
        start += len(field) + 1
    notes += _value_notes(fields, start - len(fields[-1]) - 1)
    ordered = tuple(clauses[key] for key in (*PATTERN_KEYS, PRIORITY) if key in clauses)
    return SubPolicy(text, position, ordered, fields[-1], tuple(notes))


def _clause(field: str, start: int) -> Clause | None:
    """Return the clause that a field holds, by its exact beginning; None for an unknown field."""
    for key in PATTERN_KEYS:
        if field.startswith(f"{key}="):
            text = field.rsplit("=", 1)[1]
            return Clause(key, text, start + len(field) - len(text))
    if field.startswith(PRIORITY):
        return Clause(PRIORITY, field.replace(PRIORITY, ""), start + len(PRIORITY))
    return None


def _unknown(field: str, start: int) -> Note:
    """Say why a field is unknown."""
    if field != field.lstrip() and _clause(field.lstrip(), 0) is not None:
        return Note(start, field, "blanks before the key: an unknown field, it restricts nothing")
    return Note(start, field, "unknown field: it restricts nothing")


def _value_notes(fields: list[str], start: int) -> list[Note]:
    """Say what is odd about the value, the last field."""
    value = fields[-1]
    if len(fields) == 1:
        return [Note(start, value, "no value: matching it accepts")]
    if value in ZERO_VALUES or (_VALUE.fullmatch(value) and not _MEANS_ZERO.fullmatch(value)):
        return []
    if _MEANS_ZERO.fullmatch(value):
        return [Note(start, value, "only the texts 0 and 0% forbid: this one accepts")]
    return [Note(start, value, "not a number with or without %: it accepts")]


def compare_priority(currentpriority: int | None, text: str) -> bool | None:
    """Evaluate ``currentpriority`` against a comparison such as ``>=500``; None when it cannot be evaluated.

    Source: docs/rules/zero-share.md 2.6, 3.10.
    """
    result = _COMPARISON.fullmatch(text)
    if result is None:
        return None
    compare = _OPERATORS[result[1]]
    if currentpriority is None and result[1] not in ("==", "!="):
        return None
    number = float(result[3]) if "." in result[3] else int(result[3])
    return compare(currentpriority, -number if result[2] == "-" else number)


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
