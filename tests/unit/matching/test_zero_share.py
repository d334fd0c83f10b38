"""Zero share: the worked examples of zero-share.md 2, the notes of the parser, and the batch form."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab.errors import BrokerlabWarning
from brokerlab.matching import MatchingRules, decide_pairs, parse_policy, zero_share
from brokerlab.matching.zero_share import compare_priority

Task = tuple[str | None, str | None, str | None, int | None]

EVGEN_SIMUL = "type=evgen:100%,type=simul:100%,type=any:0%"
PRIORITY_FIRST = "priority>500:0,type=simul:100%,type=any:0%"
ANY_BEFORE_EXPRESS = "type=evgen:100%,type=any:0%,gshare=Express:100%,gshare=any:100%"
EXPRESS_BEFORE_ANY = "type=evgen:100%,gshare=Express:100%,type=any:0%,gshare=any:100%"
SIMUL = ("simul", None, "S", 1)

# number, policy, (processingtype, workinggroup, gshare, currentpriority), zero share, sub-policy, reason
ROWS: list[tuple[int, str | None, Task, bool, int | None, str]] = [
    (1, None, ("simul", None, "S", 500), False, None, "no_policy"),
    (2, EVGEN_SIMUL, ("evgen", None, "E", 500), False, 0, "matched_nonzero"),
    (3, EVGEN_SIMUL, ("simul", None, "S", 500), False, 1, "matched_nonzero"),
    (4, EVGEN_SIMUL, ("pile", None, "P", 500), True, 2, "matched_zero"),
    (5, EVGEN_SIMUL, ("reco", None, "R", 500), True, 2, "matched_zero"),
    (6, EVGEN_SIMUL, ("validation", None, "V", 500), False, None, "test_exempt"),
    (7, EVGEN_SIMUL, ("prod_test", None, "V", 5000), False, None, "test_exempt"),
    (8, EVGEN_SIMUL, ("test", None, "V", 500), True, 2, "matched_zero"),
    (9, "type=test:0%,type=any:0%", ("ptest", None, "T", 1), False, None, "test_exempt"),
    (10, PRIORITY_FIRST, ("simul", None, "S", 501), True, 0, "matched_zero"),
    (11, PRIORITY_FIRST, ("simul", None, "S", 500), False, 1, "matched_nonzero"),
    (12, PRIORITY_FIRST, ("evgen", None, "E", 500), True, 2, "matched_zero"),
    (13, PRIORITY_FIRST, ("simul", None, "S", 900), True, 0, "matched_zero"),
    (14, "type=evgen:100%,type=simul:100%", ("pile", None, "P", 500), False, None, "no_match"),
    (15, f"{EVGEN_SIMUL},priority>500:0%", ("simul", None, "S", 900), False, 1, "matched_nonzero"),
    (16, ANY_BEFORE_EXPRESS, ("simul", None, "Express", 1), True, 1, "matched_zero"),
    (17, EXPRESS_BEFORE_ANY, ("simul", None, "Express", 1), False, 1, "matched_nonzero"),
    (18, EXPRESS_BEFORE_ANY, ("simul", None, "Other", 1), True, 2, "matched_zero"),
    (
        19,
        "gshare=Express*:100%,gshare=any:0%",
        (None, None, "Express Analysis", 1),
        False,
        0,
        "matched_nonzero",
    ),
    (
        20,
        "gshare=Express*:100%,gshare=any:0%",
        (None, None, "User Analysis", 1),
        True,
        1,
        "matched_zero",
    ),
    (
        21,
        "gshare=Express:100%,gshare=any:0%",
        (None, None, "Express Analysis", 1),
        True,
        1,
        "matched_zero",
    ),
    (22, "gshare=Express:0%", (None, None, None, 1), True, 0, "matched_zero"),
    (23, "group=(AP_Higgs|AP_Susy):0%", ("group", "AP_Susy", "G", 1), True, 0, "matched_zero"),
    (24, "group=(AP_Higgs|AP_Susy):0%", ("group", None, "G", 1), False, None, "no_match"),
    (25, "group=AP_Higgs|AP_Susy:0%", ("group", "AP_HiggsX", "G", 1), True, 0, "matched_zero"),
    (26, "group=.*:0%", ("group", None, "G", 1), False, None, "no_match"),
    (27, "group=*:0%", ("group", None, "G", 1), True, 0, "matched_zero"),
    (28, "type=simul:priority>=800:0%", ("simul", None, "S", 800), True, 0, "matched_zero"),
    (29, "type=simul:priority>=800:0%", ("simul", None, "S", 799), False, None, "no_match"),
    (30, "type=simul:priority>=800:0%", ("evgen", None, "E", 900), False, None, "no_match"),
    (31, "type=simul:00%,type=any:0", SIMUL, False, 0, "matched_nonzero"),
    (32, "type=any:0 %", SIMUL, False, 0, "matched_nonzero"),
    (33, "type=evgen:100%, type=any:0%", ("evgen", None, "E", 1), False, 0, "matched_nonzero"),
    (34, "type=evgen:100%, type=any:0%", SIMUL, True, 1, "matched_zero"),
    (35, "type=evgen:100%, type=simul:0%", ("pile", None, "P", 1), True, 1, "matched_zero"),
    (36, "type=simul", SIMUL, False, 0, "matched_nonzero"),
    (37, "type=(simul:0%", SIMUL, False, 0, "error"),
    (38, "priority==1000:0%", ("simul", None, "S", 1000), True, 0, "matched_zero"),
    (39, "priority=1000:0%", ("simul", None, "S", 5), True, 0, "matched_zero"),
    (40, "type=Simul:0%", SIMUL, False, None, "no_match"),
    (41, "type=evgensimul:100%,type=any:0%", SIMUL, True, 1, "matched_zero"),
    (42, "type=s*:0%", SIMUL, True, 0, "matched_zero"),
    (43, "type=any:0%,type=simul:100%", SIMUL, True, 0, "matched_zero"),
    (44, ",type=any:0%", SIMUL, False, 0, "matched_nonzero"),
]
MERGING = (13,)
DOCUMENT = {
    6: (True, 2, "matched_zero"),
    7: (True, 2, "matched_zero"),
    9: (True, 0, "matched_zero"),
    13: (False, 1, "matched_nonzero"),
}
"""Where the pages say something else than the deployed code: tests are not exempt, merging skips priorities."""


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize(("number", "policy", "task", "zero", "index", "reason"), ROWS)
def test_worked_example(
    number: int,
    policy: str | None,
    task: Task,
    zero: bool,
    index: int | None,
    reason: str,
    rules: str,
) -> None:
    decision = zero_share(policy, *task, merging=number in MERGING, rules=MatchingRules(rules))
    deployed = (zero, index, reason)
    expected = DOCUMENT.get(number, deployed) if rules == "document" else deployed
    assert (decision.zero_share, decision.rule_index, decision.reason) == expected


def test_every_row_of_the_chapter_is_here() -> None:
    assert [row[0] for row in ROWS] == list(range(1, 45))


def test_priority_clauses_of_merging_chunks_can_be_switched_to_no_match() -> None:
    rules = MatchingRules("production", merge_priority="no_match")
    decision = zero_share(PRIORITY_FIRST, "simul", None, "S", 900, merging=True, rules=rules)
    assert (decision.rule_index, decision.zero_share) == (1, False)


@pytest.mark.parametrize(
    ("priority", "text", "holds"),
    [
        (500, ">499", True),
        (500, ">500", False),
        (500, ">= 500", True),
        (500, " <= 499", False),
        (500, "==500 ", True),
        (500, "!=500", False),
        (500, "<500.5", True),
        (-5, "<-1", True),
        (5, "> - 1", True),
        (None, "==500", False),
        (None, "!=500", True),
        (None, ">500", None),
        (500, "=500", None),
        (500, "", None),
        (500, "=>500", None),
        (500, "<>500", None),
        (500, ">>1", None),
        (500, ">abc", None),
        (500, "> 0500", None),
        (500, ">1e3", None),
        (500, ">500 or 1", None),
        (500, ">" + "9" * 50, None),
        (500, ">٣", None),
    ],
)
def test_priority_is_compared_with_a_whitelist_of_operators(
    priority: int | None, text: str, holds: bool | None
) -> None:
    assert compare_priority(priority, text) is holds


def test_an_unreadable_priority_is_told() -> None:
    assert zero_share("priority=5:0%", "simul", currentpriority=1).priority_error
    assert not zero_share("priority>5:0%", "simul", currentpriority=1).priority_error
    assert not zero_share("priority=5:0%", "simul", currentpriority=1, merging=True).priority_error


def test_a_line_break_at_the_end_of_a_value_is_no_part_of_it() -> None:
    assert zero_share("group=Higgs:0%", "simul", "Higgs\n").zero_share
    assert zero_share("group=Higgs:0%", "simul", "Higgs\n\n").reason == "error", "refused"


def test_an_error_stops_only_the_tasks_that_reach_it() -> None:
    policy = "type=evgen:0%,type=simul:group=(x:0%,type=any:0%"
    assert zero_share(policy, "evgen").reason == "matched_zero"
    assert zero_share(policy, "simul").reason == "error"
    assert zero_share(policy, "pile").rule_index == 2


@pytest.mark.parametrize(
    ("policy", "position", "text", "message"),
    [
        ("type=evgen:100%, type=any:0%", 16, " type=any", "blanks before the key"),
        ("foo=bar:0%", 0, "foo=bar", "unknown field"),
        ("Type=simul:0%", 0, "Type=simul", "unknown field"),
        ("type=simul:priority=5:0%", 19, "=5", "not a comparison"),
        ("type=simul:", 11, "", "not a number"),
        ("type=simul:00%", 11, "00%", "only the texts 0 and 0%"),
        ("type=simul:0 %", 11, "0 %", "only the texts 0 and 0%"),
        ("type=simul:x", 11, "x", "not a number"),
        ("type=simul", 0, "type=simul", "no value"),
        ("type=any:0%,", 12, "", "empty sub-policy"),
        ("type=(simul:0%", 5, "(simul", "malformed: missing )"),
        ("group=a*(b:0%", 8, "a*(b", "malformed: missing )"),
        ("group=(?!b):0%", 6, "(?!b)", "look-ahead"),
        ("type=simul:type=evgen:0%", 11, "type=evgen", "type occurs again"),
        ("type=a=simul:0%", 0, "type=a=simul", "only what follows the last ="),
        ("type=Simul:0%", 5, "Simul", "no processing group"),
        ("type=test:0%", 5, "test", "production accepts tests always"),
        ("type=any:0%,type=simul:100%", 12, "type=simul:100%", "never reached"),
    ],
)
def test_notes_say_where_and_what(policy: str, position: int, text: str, message: str) -> None:
    notes = [note for note in parse_policy(policy).notes if message in note.message]
    assert [(note.position, note.text) for note in notes] == [(position, text)]


@pytest.mark.parametrize(
    "policy",
    [
        None,
        "",
        EVGEN_SIMUL,
        "gshare=Express*:100%,gshare=any:0%",
        "type=simul:priority>=800:group=(AP_Higgs|AP_Susy):0",
    ],
)
def test_good_policies_have_no_notes(policy: str | None) -> None:
    assert parse_policy(policy).notes == ()


def tasks(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    schema = {
        "processingtype": pl.String,
        "workinggroup": pl.String,
        "gshare": pl.String,
        "currentpriority": pl.Int64,
        "is_merging": pl.Boolean,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


@pytest.mark.filterwarnings(f"ignore::{BrokerlabWarning.__module__}.BrokerlabWarning")
def test_the_worked_examples_in_one_batch() -> None:
    frame = decide_pairs(
        [row[1] for row in ROWS],
        tasks([(*row[2], row[0] in MERGING) for row in ROWS]),
        rules=MatchingRules("production"),
    )
    keys = ["policy", "processingtype", "workinggroup", "gshare", "currentpriority", "is_merging"]
    assert frame.height == frame.unique(keys).height
    rows = [
        {
            "policy": policy,
            **dict(zip(keys[1:], (*task, number in MERGING), strict=True)),
            "expected": (zero, index, reason),
        }
        for number, policy, task, zero, index, reason in ROWS
    ]
    wanted = pl.DataFrame(
        [{key: row[key] for key in keys} for row in rows],
        schema_overrides={"workinggroup": pl.String},
    )
    found = wanted.join(frame, on=keys, how="left", nulls_equal=True, maintain_order="left")
    got = found.select("zero_share", "rule_index", "reason").rows()
    assert got == [row["expected"] for row in rows]


def test_one_warning_for_all_policies() -> None:
    policies = ["type=(a:0%", "priority=5:0%", EVGEN_SIMUL, None]
    with pytest.warns(BrokerlabWarning, match=r"fairsharepolicy, 2 findings: 'type=\(a:0%' at 5"):
        frame = decide_pairs(policies, tasks([("simul", None, None, 7, False)] * 3))
    assert frame["reason"].to_list() == ["error", "matched_zero", "matched_nonzero", "no_policy"]


def test_nothing_in_nothing_out() -> None:
    assert decide_pairs([], tasks([])).height == 0
    assert decide_pairs([EVGEN_SIMUL], tasks([])).height == 0
    empty = decide_pairs([], tasks([("simul", None, None, 7, False)]))
    assert empty.height == 0
    assert empty.schema["rule_index"] == pl.Int64
    assert empty.schema["reason"] == pl.String
