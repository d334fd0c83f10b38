"""Patterns from outside: what Python says of them is what they mean, in linear time, or they are refused."""

from __future__ import annotations

import re

import pytest
import re2

from brokerlab.matching import patterns
from brokerlab.matching.patterns import PatternError, compile_pattern, matches_anchored

TEXTS = [
    "",
    "a",
    "ab",
    "aab",
    "b",
    "a\n",
    "ab\n",
    "A",
    "a.b",
    "a-b_c",
    "0",
    " ",
    "é",
    "aé",
    "[",
    "]",
    "\\",
    "{",
    "a{,x}",
    "^",
    "$",
    "\x1c",
    "\x0b",
    "\x85",
    "٣",
    "a:]",
]

EXPRESSIONS = [
    "",
    "a",
    "^a$",
    "a$",
    "^a|b$",
    "(a|b)*",
    "a{,2}b",
    "a{,}",
    "a{1}",
    "a{,x}",
    "a{}",
    "a{1,2}?",
    "a*?b",
    r"\d",
    r"\D",
    r"\w+",
    r"\W",
    r"\s",
    r"\S+",
    r"[\d_]",
    r"[^\d]",
    r"[\w-]",
    r"[\W_]",
    r"[\s\S]*",
    r"[^\s]",
    "[]a]",
    "[^]a]",
    "[a-]",
    "[[:a:]]",
    r"[\]\\^-]",
    r"[\x41-\x43]",
    r"\x61\u0062",
    r"\141",
    r"\0",
    r"[\141]",
    r"[\b]",
    r"\Aa\Z",
    r"\.",
    r"\N{LATIN SMALL LETTER A}",
    "(?i:A)b",
    "(?i)A",
    "(?s).",
    "(?s-i:.)",
    "(?u)a",
    "(?:a)(?P<name>b)",
    "a(?#no)b",
    ".",
    ".*\\.b",
    "é",
    "]",
    "}",
]


@pytest.mark.parametrize("ignore_case", [False, True])
@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
def test_means_what_python_says(expression: str, ignore_case: bool) -> None:
    pattern = compile_pattern(expression, ignore_case=ignore_case)
    python = re.compile(expression, re.IGNORECASE if ignore_case else 0)
    for text in TEXTS:
        for question in ("search", "match", "fullmatch"):
            wanted = getattr(python, question)(text) is not None
            assert getattr(pattern, question)(text) is wanted, (text, question)


@pytest.mark.parametrize(
    ("expression", "position", "reason"),
    [
        ("a(?=b)", 1, "look-ahead"),
        ("a(?!b)", 1, "look-ahead"),
        ("(?<=a)b", 0, "look-behind"),
        ("(?<!a)b", 0, "look-behind"),
        (r"(a)\1", 3, "back-reference"),
        ("(?P<n>a)(?P=n)", 8, "back-reference"),
        ("(a)?(?(1)b|c)", 4, "conditional group"),
        ("a(?>b)", 1, "atomic group"),
        ("a*+b", 1, "possessive"),
        ("a{2}+", 1, "possessive"),
        ("ab{1001}", 2, "more than 1000 repetitions"),
        ("a{1,99999}", 1, "more than 1000 repetitions"),
        ("(a{100}){100}", 0, "repetition"),
        ("(?m)a", 0, "flag m"),
        ("(?x: a )", 0, "flag x"),
        (r"x[^\W_]", 1, "negated class"),
        ("a" * 1001, 1000, "longer than 1000"),
        ("b" + "(" * 101 + ")" * 101, 1, "more than 100 groups"),
        ("a\ud800", 1, "surrogate"),
        ("[\ud800]", 1, "surrogate"),
    ],
)
def test_refuses_what_the_engine_does_not_have(expression: str, position: int, reason: str) -> None:
    with pytest.raises(PatternError, match="outside of the linear-time engine") as caught:
        compile_pattern(expression)
    assert not caught.value.malformed
    assert reason in caught.value.reason
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("expression", "position"),
    [
        ("(a", 0),
        ("a)", 1),
        ("[x86", 0),
        ("*a", 0),
        ("a**", 2),
        ("a{2,1}", 2),
        ("\\", 0),
        ("(?P<1>a)", 4),
    ],
)
def test_tells_malformed_from_refused(expression: str, position: int) -> None:
    with pytest.raises(PatternError, match="malformed expression") as caught:
        compile_pattern(expression)
    assert caught.value.malformed
    assert caught.value.position == position


def test_a_count_too_large_for_python_is_malformed() -> None:
    with pytest.raises(PatternError, match="malformed"):
        compile_pattern("a{" + "9" * 30 + "}")


HOSTILE = ["(a+)+$", "(a|a)*$", "(a*)*b", "(a|aa)+$", "(.*a){20}", "^(([a-z])+.)+[A-Z]([a-z])+$"]


@pytest.mark.parametrize("expression", HOSTILE)
def test_hostile_patterns_never_reach_a_backtracking_engine(expression: str) -> None:
    pattern = compile_pattern(expression)
    assert type(pattern.plain) is type(pattern.before_break) is type(re2.compile("a"))
    pattern.search("a" * 100_000 + "!")  # a backtracking engine would not come back from here


def test_python_only_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refuses:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"a compiled Python pattern was asked for {name}")

    real = patterns.re.compile
    monkeypatch.setattr(patterns.re, "compile", lambda text: real(text) and Refuses())
    monkeypatch.setattr("brokerlab.matching.patterns.re.compile", real)
    patterns._compile.cache_clear()
    assert matches_anchored("only|here(x+)+", "only there")


def test_the_dollar_before_a_line_break_at_the_end() -> None:
    assert matches_anchored("abc", "abc\n")
    assert compile_pattern(r"a$\n").match("a\n")
    assert not compile_pattern(r"a\Z").match("a\n")
    assert not compile_pattern("a$").fullmatch("a\n")
    with pytest.raises(PatternError, match="several line breaks"):
        compile_pattern("a$").search("b\na\n")
    assert compile_pattern("a").search("b\na\n")


def test_word_boundaries_are_decided_for_ascii_texts_only() -> None:
    assert compile_pattern(r"\bb\b").search("a b c")
    assert not compile_pattern(r"a\B").search("a")
    with pytest.raises(PatternError, match="word boundary"):
        compile_pattern(r"\bb").search("é b")


def test_halves_of_surrogate_pairs_in_a_text_match_as_one_character() -> None:
    assert compile_pattern("^a.b$").search("a\ud800b")


def test_the_cache_is_bounded_and_keeps_refusals() -> None:
    assert patterns._compile.cache_info().maxsize == patterns.CACHE_SIZE
    for _ in range(2):
        with pytest.raises(PatternError):
            compile_pattern("(?!seen twice)")


def test_anchors_bind_to_the_first_and_last_alternative() -> None:
    assert matches_anchored("A|B", "AX")
    assert matches_anchored("A|B", "XB")
    assert not matches_anchored("(A|B)", "AX")
