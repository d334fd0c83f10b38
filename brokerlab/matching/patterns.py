"""Regular expressions from outside: matched in linear time, refused with a reason and a position.

Policies, platforms and hardware requests hold regular expressions that users and sites write, and the real system
hands them to Python's ``re``, whose matching can take exponential time. Here Python only says whether an expression
is well formed; matching is done by RE2, whose time is linear in the text. What RE2 cannot express is refused.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from brokerlab.errors import DataError
from brokerlab.matching.dialect import DOLLAR, Outside, Translation

MAX_LENGTH = 1000
"""Longest expression taken [characters]; the policies and platforms seen have fewer than 200."""
MAX_GROUPS = 100  # most opening brackets taken: bounds the recursion of Python's own parser
CACHE_SIZE = 4096

_TOO_MANY_BREAKS = "a text with several line breaks, the last at its end, against $"
_NOT_ASCII = "a word boundary in a text with other than ASCII characters"


class PatternError(DataError):
    """Raised for an expression that is malformed, or that the linear-time engine cannot decide.

    Attributes:
        pattern: The expression.
        position: 0-based position in it.
        reason: What is wrong there.
        malformed: True where the real system (Python) refuses it too; False where only this library does.
    """

    def __init__(self, pattern: str, position: int, reason: str, *, malformed: bool) -> None:
        kind = (
            "malformed expression" if malformed else "expression outside of the linear-time engine"
        )
        super().__init__(f"{kind} {pattern[:80]!r}: {reason} at position {position}")
        self.pattern, self.position, self.reason = pattern, position, reason
        self.malformed = malformed


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled expression; every question takes time linear in the text."""

    expression: str  # as Python would read it
    plain: Any  # compiled for texts that do not end in a line break, where ``$`` is the end
    # compiled for texts whose only line break is at their end, where ``$`` is also before it
    before_break: Any
    has_dollar: bool  # whether ``$`` occurs, so that the two differ
    ascii_only: bool  # whether it can be decided for ASCII texts only

    def search(self, text: str) -> bool:
        """Tell whether the expression is found anywhere in the text."""
        return self._engine(text).search(_bytes(text)) is not None

    def match(self, text: str) -> bool:
        """Tell whether the expression matches at the start of the text."""
        return self._engine(text).match(_bytes(text)) is not None

    def fullmatch(self, text: str) -> bool:
        """Tell whether the expression matches the whole text."""
        return self._engine(text).fullmatch(_bytes(text)) is not None

    def _engine(self, text: str) -> Any:
        if self.ascii_only and not text.isascii():
            raise PatternError(self.expression, 0, _NOT_ASCII, malformed=False)
        if not self.has_dollar or not text.endswith("\n"):
            return self.plain
        if "\n" in text[:-1]:
            raise PatternError(self.expression, 0, _TOO_MANY_BREAKS, malformed=False)
        return self.before_break


def _bytes(text: str) -> bytes:
    """Return UTF-8; halves of surrogate pairs, which only broken JSON holds, become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def compile_pattern(expression: str, *, ignore_case: bool = False) -> Pattern:
    r"""Compile an expression from outside.

    Python's syntax, at most `MAX_LENGTH` characters; malformed for Python (``malformed``), or outside of what RE2 can decide, it
    is a PatternError that says where.
    """
    result = _compile(expression, ignore_case)
    if isinstance(result, Pattern):
        return result
    position, reason, malformed = result
    raise PatternError(expression, position, reason, malformed=malformed)


@lru_cache(maxsize=CACHE_SIZE)
def _compile(expression: str, ignore_case: bool) -> Pattern | tuple[int, str, bool]:  # noqa: FBT001
    """Return the compiled expression, or position, reason and whether Python refuses it too."""
    if len(expression) > MAX_LENGTH:
        return MAX_LENGTH, f"longer than {MAX_LENGTH} characters", False
    if expression.count("(") > MAX_GROUPS:
        return expression.index("("), f"more than {MAX_GROUPS} groups", False
    wrong = _malformed(expression)
    if wrong is not None:
        return (*wrong, True)
    translation = Translation(expression)
    try:
        text = translation.run()
    except Outside as outside:
        return outside.position, str(outside), False
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        plain, before_break = (
            re2.compile(text.replace(DOLLAR, dollar), options) for dollar in (r"\z", "(?m:$)")
        )
    except re2.error as error:
        return 0, str(error.args[0]), False
    has_dollar = DOLLAR in text
    return Pattern(expression, plain, before_break, has_dollar, translation.word_boundary)


def _malformed(expression: str) -> tuple[int, str] | None:
    """Return where and why Python refuses an expression."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sets that a later Python may read differently
            re.compile(expression)
    except re.error as error:
        return error.pos or 0, error.msg
    except (OverflowError, RecursionError) as error:
        return 0, str(error)
    return None


def matches_anchored(expression: str, text: str) -> bool:
    """Tell whether ``^expression$`` is found in the text, as the real system anchors its patterns.

    The anchors bind to the first and the last alternative only: ``A|B`` finds what starts with A or ends with B.

    Source: docs/rules/zero-share.md 3.4, docs/rules/matching.md 4.
    """
    return compile_pattern(f"^{expression}$").search(text)
