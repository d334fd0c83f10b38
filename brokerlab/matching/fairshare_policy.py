"""The grammar of ``fairsharepolicy``: sub-policies, clauses, values, and what is odd about them (docs/rules/zero-share.md 3)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from brokerlab.matching.notes import Note
from brokerlab.matching.patterns import PatternError, compile_pattern, matches_anchored
from brokerlab.matching.processing_groups import PROCESSING_GROUPS, TEST

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
