"""Regular expressions from outside: matched in linear time, refused with a reason and a position.

Policies, platforms and hardware requests hold regular expressions that users and sites write, and the real system
hands them to Python's ``re``, whose matching can take exponential time. Here Python only says whether an expression
is well formed; matching is done by RE2, whose time is linear in the text. What RE2 cannot express is refused.

The real system is written in Python and its patterns mean what Python's ``re`` says. RE2 differs in details
(``$`` and a trailing line break, Unicode classes, ``{,n}``, octal escapes, sets such as ``[[:alpha:]]``), so each
construct is written out anew; what no linear-time engine has (look-around, back-references) is refused with its
position.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2

from brokerlab.errors import DataError

MAX_REPEAT = 1000  # RE2's own limit of a counted repetition

DOLLAR = "\x00$"
"""Stands for ``$`` in the translation: what it becomes depends on the text that is matched."""

WORD = r"\p{L}\p{N}_"
SPACE = r"\t-\r\x{1c}-\x{20}\x{85}\p{Z}"
SETS = {"d": r"\p{Nd}", "D": r"\P{Nd}", "w": WORD, "s": SPACE}
COMPLEMENTS = {"W": f"[^{WORD}]", "S": f"[^{SPACE}]"}
CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
HEX_DIGITS = {"x": 2, "u": 4, "U": 8}

_REPEAT = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([):])")
_OUTSIDE = (
    ("(?=", "look-ahead"),
    ("(?!", "look-ahead"),
    ("(?<=", "look-behind"),
    ("(?<!", "look-behind"),
    ("(?>", "atomic group"),
    ("(?(", "conditional group"),
    ("(?P=", "back-reference"),
)


class Outside(Exception):  # noqa: N818 - never leaves the package
    """Raised for a construct that the linear-time engine does not have.

    Attributes:
        position: Where it stands in the expression.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position


@dataclass
class Translation:
    """An expression under translation."""

    source: str  # the Python expression
    parts: list[str] = field(default_factory=list)  # RE2 syntax so far
    position: int = 0  # where the reading stands
    word_boundary: bool = False  # whether ``\b`` or ``\B`` occurs, which RE2 knows for ASCII only

    def run(self) -> str:
        """Return the expression in RE2 syntax, with :data:`DOLLAR` for each ``$``."""
        readers = {"\\": self._escape, "[": self._class, "(": self._group, "{": self._repeat}
        while self.position < len(self.source):
            character = self.source[self.position]
            reader = readers.get(character)
            if reader is not None:
                reader()
                continue
            if character in "*+?":
                self._quantifier(1, character)
                continue
            if character == "$":
                self.parts.append(DOLLAR)
            else:
                self.parts.append(character if character in ".^|)" else self._literal(character))
            self.position += 1
        return "".join(self.parts)

    def _literal(self, character: str) -> str:
        """Return a character as RE2 writes it, whatever it would mean there."""
        if character.isascii() and character.isalnum():
            return character
        if "\ud800" <= character <= "\udfff":
            raise Outside(self.position, "half of a surrogate pair")
        return f"\\x{{{ord(character):x}}}"

    def _quantifier(self, length: int, text: str) -> None:
        """Read ``*``, ``+``, ``?`` or a counted repetition, lazy or not; possessive ones do not exist in RE2."""
        end = self.position + length
        if self.source.startswith("+", end):
            raise Outside(self.position, "possessive repetition")
        lazy = self.source.startswith("?", end)
        self.parts.append(text + "?" * lazy)
        self.position = end + lazy

    def _repeat(self) -> None:
        """Read ``{n}``, ``{n,}``, ``{,m}``, ``{n,m}``; anything else that starts with a brace is literal."""
        result = _REPEAT.match(self.source, self.position)
        if result is None or not any(result.groups()):
            self.parts.append(self._literal("{"))
            self.position += 1
            return
        least, comma, most = result.groups()
        if any(len(count) > 4 or int(count or 0) > MAX_REPEAT for count in (least, most)):
            raise Outside(self.position, f"more than {MAX_REPEAT} repetitions")
        text = f"{{{int(least or 0)}{comma}{int(most) if most else ''}}}"
        self._quantifier(len(result[0]), text)

    def _group(self) -> None:
        """Read the opening of a group; captures are dropped, nothing here asks for them."""
        rest = self.source[self.position : self.position + 4]
        for opening, reason in _OUTSIDE:
            if rest.startswith(opening):
                raise Outside(self.position, reason)
        if rest.startswith("(?#"):
            self.position = self.source.index(")", self.position) + 1
        elif rest.startswith("(?P<"):
            self.parts.append("(?:")
            self.position = self.source.index(">", self.position) + 1
        elif rest.startswith("(?"):
            self._flags()
        else:
            self.parts.append("(?:")
            self.position += 1

    def _flags(self) -> None:
        """Read ``(?i)``, ``(?i:``, ``(?s-i:`` and the like."""
        result = _FLAGS.match(self.source, self.position)
        if result is None:
            raise Outside(self.position, "unknown kind of group")
        on, off, end = result[1].replace("u", ""), result[2] or "", result[3]
        strange = set(on + off) - {"i", "s"}
        if strange:
            raise Outside(self.position, f"flag {min(strange)}")
        minus = f"-{off}" if off else ""
        if on or minus or end == ":":
            self.parts.append(f"(?{on}{minus}{end}")
        self.position = result.end()

    def _escape(self) -> None:
        """Read an escape outside of a class."""
        start, letter = self.position, self.source[self.position + 1]
        if letter in "bB":
            self.word_boundary = True
            self.parts.append(f"\\{letter}")
            self.position += 2
        elif letter in "AZz":
            self.parts.append(r"\A" if letter == "A" else r"\z")
            self.position += 2
        elif letter in COMPLEMENTS or letter in SETS:
            self.parts.append(COMPLEMENTS.get(letter) or f"[{SETS[letter]}]")
            self.position += 2
        else:
            octal = re.compile(r"\\(?:0[0-7]{0,2}|[0-3][0-7]{2})").match(self.source, start)
            if octal is None and letter in "123456789":
                raise Outside(start, "back-reference")
            self.parts.append(self._literal(self._escaped_character(octal)))

    def _escaped_character(self, octal: re.Match[str] | None) -> str:
        """Read an escape that stands for one character, and step over it."""
        start, letter = self.position, self.source[self.position + 1]
        if octal is not None:
            self.position = octal.end()
            return chr(int(octal[0][1:], 8))
        if letter in HEX_DIGITS:
            self.position += 2 + HEX_DIGITS[letter]
            return chr(int(self.source[start + 2 : self.position], 16))
        if letter == "N":
            self.position = self.source.index("}", start) + 1
            return unicodedata.lookup(self.source[start + 3 : self.position - 1])
        self.position += 2
        return chr(CONTROL[letter]) if letter in CONTROL else letter

    def _class(self) -> None:
        """Read a character class, each member written as a code point so that nothing has a second meaning."""
        start = self.position
        negated = self.source.startswith("^", start + 1)
        self.position = first = start + 1 + negated
        members: list[str] = []
        outside: list[str] = []
        while self.position == first or self.source[self.position] != "]":
            member = self._member(outside)
            if member is not None and self._range_follows():
                self.position += 1
                member = f"{member}-{self._member(outside)}"
            members.append(member or "")
        self.position += 1
        inside = "".join(members)
        if outside and negated:
            raise Outside(start, "\\W or \\S in a negated class")
        if not outside:
            self.parts.append(f"[{'^' * negated}{inside}]")
        else:
            alternatives = [*outside, f"[{inside}]"] if inside else outside
            self.parts.append(f"(?:{'|'.join(alternatives)})")

    def _range_follows(self) -> bool:
        """Tell whether a ``-`` stands here that is not the last member of its class."""
        rest = self.source[self.position : self.position + 2]
        return rest.startswith("-") and rest != "-]"

    def _member(self, outside: list[str]) -> str | None:
        """Read one member of a class; sets that RE2 cannot hold in a class go to ``outside``."""
        character = self.source[self.position]
        if character != "\\":
            code = self._code(character)
            self.position += 1
            return code
        letter = self.source[self.position + 1]
        if letter in COMPLEMENTS or letter in SETS:
            self.position += 2
            if letter in SETS:
                return SETS[letter]
            outside.append(COMPLEMENTS[letter])
            return None
        if letter == "b":
            self.position += 2
            return self._code("\b")
        octal = re.compile(r"\\[0-7]{1,3}").match(self.source, self.position)
        return self._code(self._escaped_character(octal))

    def _code(self, character: str) -> str:
        """Return a member of a class by its code point."""
        if "\ud800" <= character <= "\udfff":
            raise Outside(self.position, "half of a surrogate pair")
        return f"\\x{{{ord(character):x}}}"


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
