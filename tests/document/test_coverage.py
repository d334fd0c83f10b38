"""The table of sentences: its parts name what there is, and the file in docs is the one that the cases make."""

from __future__ import annotations

from importlib import import_module

import pytest

from brokerlab.rulesets import CHAPTERS, differences
from tests.document.sentences import TABLE, Sentence, cases, sentences, table

LISTED = sentences()


def test_the_table_is_the_one_that_the_cases_make():
    """`python -m tests.document` writes it."""
    assert TABLE.read_text(encoding="utf-8") == table()


def test_every_case_quotes_one_listed_sentence():
    wrong = [
        (case.test, case.source, case.quote)
        for case in cases()
        if sum(one.holds(case.source, case.quote) for one in LISTED) != 1
    ]
    assert wrong == []


@pytest.mark.parametrize("rule", sorted({one.rule for one in LISTED}))
def test_rules_are_there(rule):
    module, _, name = rule.rpartition(".")
    assert callable(getattr(import_module(module), name))


def test_switches_quote_listed_sentences():
    """Of the sections that are listed."""
    sections = {f"{one.page}, {one.section}" for one in LISTED}
    wrong = [
        (row["chapter"], row["switch"])
        for row in differences().drop_nulls("sentence").iter_rows(named=True)
        if row["source"] in sections
        and not any(one.holds(row["source"], row["sentence"]) for one in LISTED)
    ]
    assert wrong == []


def test_every_switch_says_what_it_means():
    table = differences()
    assert table["chapter"].unique(maintain_order=True).to_list() == list(CHAPTERS)
    assert table.select("chapter", "switch").is_duplicated().sum() == 0
    assert table.filter(table["note"].is_null())["switch"].to_list() == []
    assert table.filter(table["source"] == "")["switch"].to_list() == []


def test_quotes_are_found_in_their_own_section_alone():
    one = Sentence("003", "cpuTime", "The m prefix means “milli”.", "brokerlab")
    assert one.holds("003, cpuTime", 'prefix means\n    "milli"')
    assert not one.holds("003, ramCount", "The m prefix")
    assert not one.holds("003, cpuTime", "The k prefix")
