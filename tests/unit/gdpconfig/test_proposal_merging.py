"""Proposals of several reports: merged into one that is as good as any, or every conflict told."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.errors import ProposalError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import (
    Affected,
    Effect,
    Evidence,
    Filed,
    Proposal,
    Window,
    conflicts,
    dumps,
    in_words,
    loads,
    merge,
    render,
)

NOW = datetime.fromisoformat("2026-11-21T09:00")
LATER = datetime.fromisoformat("2026-11-22T09:00")
BASE = Config.empty().with_values({"SCOUT_CPUTIME_RANK": 90, "NW_ACTIVE": True})
RANK = {"SCOUT_RAMCOUNT_RANK": 80}
CAP = {"NQUEUED_SAT_CAP": 200}


def evidence(text: str = "better", **others: Any) -> Evidence:
    return Evidence(
        verdict=text,
        effects=(
            Effect("z first", "%", 7.5, 4.5, -3.0, -3.5, -2.5, 0.95),
            Effect("a", "", 1, 2, 1),
        ),
        windows=(Window("proof", NOW, LATER),),
        helps=(Affected("gshare Express", "sooner"),),
        hurts=(Affected("queue SMALL", "fewer"),),
        numbers={"n_tasks": 120},
        **others,
    )


def filed(name: str, values: dict[str, Any], base: Config = BASE, **others: Any) -> Filed:
    arguments = {"title": f"Title {name}", "created_at": NOW, "evidence": evidence(), **others}
    proposal = Proposal.to_change(base, values, **arguments)
    return Filed(name, proposal, "report", f"run {name}")


def kept(name: str, *keys: str, base: Config = BASE) -> Filed:
    made = Proposal.to_keep(base, keys, title=f"Keep {name}", created_at=NOW, evidence=evidence())
    return Filed(name, made)


def told(*parts: Filed, **others: Any) -> list[tuple[str, str, str, str]]:
    return [(c.place, c.kind, c.first, c.second) for c in conflicts(parts, **others)]


def test_two_become_one() -> None:
    parts = [
        filed("a", RANK, archive_digest="x", rules_digest="document"),
        filed("b", CAP, archive_digest="y", rules_digest="document"),
    ]
    merged = loads(dumps(merge(parts, created_at=LATER)))
    assert (merged.kind, merged.created_at) == ("change", LATER)
    assert merged.title == "Together: Title a; Title b"
    assert [(change.key, change.new) for change in merged.changes] == [
        ("SCOUT_RAMCOUNT_RANK", 80),
        ("NQUEUED_SAT_CAP", 200),
    ]
    assert [(one.digest, one.report, one.run, one.archive) for one in merged.sources] == [
        (parts[0].proposal.digest, "report", "run a", "x"),
        (parts[1].proposal.digest, "report", "run b", "y"),
    ]
    assert merged.sources[0].keys == ("jedi/dbproxy/SCOUT_RAMCOUNT_RANK",)
    assert (merged.digests.archive, merged.digests.rules) == (None, "document")
    assert merged.digests.config == BASE.digest


def test_every_piece_of_evidence_says_whose_it_is() -> None:
    merged = merge([filed("a", RANK), filed("b", CAP)], created_at=NOW)
    found = merged.evidence
    assert found.verdict.startswith(
        "2 proposals, each measured with its own keys alone; what they do together was not measured."
    )
    assert [effect.quantity for effect in found.effects] == [
        *("NQUEUED_SAT_CAP: z first", "NQUEUED_SAT_CAP: a"),
        *("SCOUT_RAMCOUNT_RANK: z first", "SCOUT_RAMCOUNT_RANK: a"),
    ]
    assert [window.name for window in found.windows] == [
        "NQUEUED_SAT_CAP: proof",
        "SCOUT_RAMCOUNT_RANK: proof",
    ]
    assert found.helps[1] == Affected("gshare Express", "SCOUT_RAMCOUNT_RANK: sooner")
    assert found.numbers == {"NQUEUED_SAT_CAP: n_tasks": 120, "SCOUT_RAMCOUNT_RANK: n_tasks": 120}
    text = in_words(Filed("m", merged))
    assert "Title a: report report, run run a, page not there" in text


def test_one_made_from_a_synthetic_archive_makes_all_of_it_so() -> None:
    made_up = filed("a", RANK, evidence=evidence(synthetic=True))
    assert merge([made_up, filed("b", CAP)], created_at=NOW).evidence.synthetic


def test_merged_is_verified_applied_and_taken_back_as_any_other() -> None:
    values = {"NW_THRESHOLD": 2.0, "SCOUT_CPUTIME_RANK": None}
    merged = merge([filed("a", RANK), filed("b", values), filed("c", CAP)], created_at=NOW)
    merged.verify(BASE)
    applied = merged.applied_to(BASE)
    assert applied.digest == BASE.with_values({**RANK, **values, **CAP}).digest
    back = loads(dumps(merged.revert(applied, created_at=LATER)))
    assert back.applied_to(applied).digest == BASE.digest
    assert back.sources == merged.sources
    assert render(merged, BASE).count("INSERT") == 3 + 1  # the deleted one is put back
    with pytest.raises(ProposalError, match="not the base"):
        merged.verify(BASE.with_values({"NW_ACTIVE": False}))


def test_merging_in_steps_is_merging_at_once() -> None:
    a, b, c = filed("a", RANK), filed("b", CAP), kept("c", "NW_THRESHOLD")
    at_once = merge([a, b, c], created_at=NOW)
    for one, two, three in permutations([a, b, c]):
        step = Filed("step", merge([one, two], created_at=NOW))
        assert merge([step, three], created_at=NOW) == at_once


def test_keeps() -> None:
    rank = "SCOUT_RAMCOUNT_RANK"
    both = merge([kept("a", rank), kept("b", "NW_THRESHOLD")], created_at=NOW)
    assert both.kind == "keep"
    mixed = merge([kept("a", rank), filed("b", CAP)], created_at=NOW)
    assert (mixed.kind, [change.action for change in mixed.changes]) == (
        "change",
        ["none", "insert"],
    )
    assert told(kept("a", rank), filed("b", RANK)) == [
        (f"jedi/dbproxy/{rank}", "value", "a", "b"),
    ]
    assert "all VOs: keep 75 and set 80" in str(conflicts([kept("a", rank), filed("b", RANK)])[0])


def test_two_that_say_the_same_agree() -> None:
    one = filed("a", RANK, evidence=evidence("one"))
    two = filed("b", RANK, evidence=replace(evidence("two"), numbers={"n_tasks": 7}))
    merged = merge([one, two], created_at=NOW)
    assert len(merged.changes) == 1
    assert sorted(source.verdict for source in merged.sources) == ["one", "two"]
    assert sorted(str(n) for n in (merged.evidence.numbers or {}).values()) == ["120", "7"]
    assert merge([two, one], created_at=NOW) == merged


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_two(count: int) -> None:
    with pytest.raises(ProposalError, match="two different proposals are needed"):
        merge([filed("a", RANK)] * count, created_at=NOW)


def test_what_takes_back_is_not_merged() -> None:
    one = filed("a", RANK)
    applied = one.proposal.applied_to(BASE)
    back = Filed("back", one.proposal.revert(applied, created_at=NOW))
    with pytest.raises(ProposalError, match="back takes another proposal back: apply it alone"):
        merge([back, filed("b", CAP, applied)], created_at=NOW)


def test_all_conflicts_at_once_each_with_both_names() -> None:
    parts = [
        filed("a", {**RANK, "DISK_THRESHOLD": 50, "USER_USAGE_THRESHOLD_A": 9000}),
        filed("b", {"SCOUT_RAMCOUNT_RANK": 85, "DISK_THRESHOLD_Express": 60}),
        filed("c", {"USER_USAGE_THRESHOLD_B": 8500}),
    ]
    with pytest.raises(ProposalError) as error:
        merge(parts, created_at=NOW)
    first, *lines = str(error.value).splitlines()
    assert first == "the 3 proposals cannot be merged, 3 conflict(s):"
    assert [line.strip() for line in lines] == [
        "jedi/dbproxy/SCOUT_RAMCOUNT_RANK (value): a and b: all VOs: set 80 and set 85",
        (
            "jedi/taskbrokerage/DISK_THRESHOLD_Express (base): a and b: where DISK_THRESHOLD_Express "
            "is set, DISK_THRESHOLD is not asked: each was measured without the other"
        ),
        (
            "pandaserver/analy_eval/USER_USAGE_THRESHOLD_A (guard rails): a and c: 9000 is above "
            "USER_USAGE_THRESHOLD_B = 8500"
        ),
    ]


@pytest.mark.parametrize(
    ("one", "two", "kinds"),
    [
        ({"NQUEUELIMIT_Express": 50}, {"NQUEUECAP_Express": 40}, ["guard rails"]),
        ({"NQUEUELIMIT_Express": 50}, {"NQUEUECAP_Express": 50}, []),
        ({"NQUEUELIMIT_Express": 50}, {"NQUEUECAP_Other": 40}, []),
        ({"NQUEUECAP_Express_MCORE*": 50}, {"NQUEUECAP_Express": 40}, ["base"]),
        ({"NQUEUECAP_Express_MCORE_HIMEM": 50}, {"NQUEUECAP_Express_MCORE*": 40}, ["base"]),
        ({"NQUEUECAP_Express_MCORE": 50}, {"NQUEUECAP_Express_SCORE*": 40}, []),
        ({"DISK_THRESHOLD_A": 50}, {"DISK_THRESHOLD_B": 60}, []),
    ],
)
def test_keys_that_belong_together(
    one: dict[str, Any], two: dict[str, Any], kinds: list[str]
) -> None:
    place = {key: f"jedi/prod_job_throttler/{key}" for key in (*one, *two) if key[0] == "N"}
    first, second = (
        filed(name, {place.get(key, key): value for key, value in values.items()})
        for name, values in (("a", one), ("b", two))
    )
    assert [conflict.kind for conflict in conflicts([first, second])] == kinds
    assert conflicts([first, second]) == conflicts([second, first])


def test_a_key_for_all_and_the_same_for_one_vo() -> None:
    row = {"app": "jedi", "component": "taskbrokerage", "key": "FREE_DISK_CUTOFF", "type": "int"}
    own = Config.from_rows([{**row, "value": "500", "vo": "atlas"}])
    one = filed("a", {"FREE_DISK_CUTOFF": 600}, own)
    change = replace(one.proposal.changes[0], vo=None, before=None)
    two = Filed("b", replace(one.proposal, changes=(change,)))
    (conflict,) = conflicts([one, two])
    assert conflict.kind == "base"
    assert "one is for VO atlas, the other for all VOs" in str(conflict)


def test_guard_rails_of_another_catalogue() -> None:
    one, two = filed("a", RANK), filed("b", RANK, title="Other")
    narrow = replace(two.proposal.changes[0], maximum=78.0)
    assert told(one, Filed("b", replace(two.proposal, changes=(narrow,)))) == [
        ("jedi/dbproxy/SCOUT_RAMCOUNT_RANK", "guard rails", "a", "b")
    ]


def test_different_bases() -> None:
    one = filed("a", RANK)
    after = one.proposal.applied_to(BASE)
    (conflict,) = conflicts([one, filed("b", CAP, after)])
    assert "differ in jedi/dbproxy/SCOUT_RAMCOUNT_RANK" in conflict.why
    assert "b may have been made after it was applied" in conflict.why
    other = BASE.with_values({f"DISK_THRESHOLD_{n}": 50 for n in range(8)})
    (conflict,) = conflicts([one, filed("b", CAP, other)])
    assert "and 3 more; give the present configuration" in conflict.why
    changed = filed("b", {"SCOUT_RAMCOUNT_RANK": 85}, BASE.with_values({"SCOUT_RAMCOUNT_RANK": 70}))
    kinds = {conflict.kind for conflict in conflicts([one, changed])}
    assert kinds == {"base", "value"}


def test_the_present_configuration_decides_which_fit() -> None:
    one = filed("a", RANK)
    other = BASE.with_values({"NW_ACTIVE": False})
    two = filed("b", CAP, other)
    assert told(one, two, config=other) == [("the configuration", "base", "a", "the configuration")]
    with pytest.raises(ProposalError, match="NW_ACTIVE: changed since"):
        merge([one, two], created_at=NOW, config=other)
    merged = merge([one, two], created_at=NOW, config=other, touched_only=True)
    merged.verify(other)
    assert merged.applied_to(other).digest == other.with_values({**RANK, **CAP}).digest
    applied = one.proposal.applied_to(BASE)
    assert "applied already" in str(conflicts([one, filed("b", CAP, applied)], config=applied)[0])
    moved = BASE.with_values({"SCOUT_RAMCOUNT_RANK": 70})
    (conflict,) = conflicts([one, filed("b", CAP, moved)], config=moved)
    assert "made for 75 (insert), found 70" in conflict.why


def test_a_default_that_is_made_from_another_key() -> None:
    one = filed("a", {"JUMBO_MIN_EVENTS_DISABLE": 5000})
    two = filed("b", {"JUMBO_MIN_EVENTS_ENABLE": 200_000})
    assert told(one, two) == []
    assert told(one, two, config=BASE) == [
        ("jedi/JumboWatchDog/JUMBO_MIN_EVENTS_ENABLE", "base", "a", "b")
    ]


def test_a_long_title_is_cut() -> None:
    parts = [filed(name, values, title=name * 400) for name, values in (("a", RANK), ("b", CAP))]
    assert len(merge(parts, created_at=NOW).title) == 500


KEYS = {
    "SCOUT_RAMCOUNT_RANK": st.integers(50, 100),
    "SCOUT_CPUTIME_RANK": st.none() | st.integers(50, 100),
    "NW_THRESHOLD": st.integers(0, 4),
    "NQUEUED_SAT_CAP": st.integers(10, 10000),
    "NQUEUED_NUC_CAP_FOR_JOBS": st.integers(100, 10000),
    "DISK_THRESHOLD": st.integers(1, 99),
    "DISK_THRESHOLD_Express": st.integers(1, 99),
}
VALUES = st.fixed_dictionaries({}, optional=KEYS)  # type: ignore[arg-type]


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.lists(VALUES, min_size=2, max_size=3))
def test_for_any_values(wanted: list[dict[str, Any]]) -> None:
    """Either order conflicts alike, or gives the same document, which applies and is taken back."""
    parts = [
        filed(f"p{number}", values)
        for number, values in enumerate(wanted)
        if BASE.with_values(values).digest != BASE.digest
    ]
    if len({part.proposal.digest for part in parts}) < 2:
        return
    found = conflicts(parts)
    assert found == conflicts(parts[::-1])
    if found:
        with pytest.raises(ProposalError, match=f"{len(found)} conflict"):
            merge(parts, created_at=NOW)
        return
    merged = merge(parts, created_at=NOW)
    assert dumps(merge(parts[::-1], created_at=NOW)) == dumps(merged)
    applied = merged.applied_to(BASE)
    one_by_one = BASE
    for change in (change for part in parts for change in part.proposal.changes):
        value = None if change.after is None else change.new
        one_by_one = one_by_one.with_values({change.place: value})
    assert content(applied) == content(one_by_one)
    back = loads(dumps(merged.revert(applied, created_at=LATER)))
    assert content(back.applied_to(applied)) == content(BASE)


def content(config: Config) -> str:
    """Return every entry, byte for byte, without the order of places."""
    return config.frame().sort("app", "component", "key", "vo").write_csv()


def test_filters_say_whose_they_are() -> None:
    some = evidence(filters={"gshare": "Express"})
    every = evidence(filters={})
    limit = filed("a", {"NQUEUELIMITSITE_Express": 60}, evidence=some)
    merged = loads(dumps(merge([limit, filed("b", CAP, evidence=every)], created_at=NOW)))
    assert merged.evidence.filters == {"NQUEUELIMITSITE_Express: gshare": "Express"}
    both = merge(
        [filed("a", RANK, evidence=every), filed("b", CAP, evidence=every)], created_at=NOW
    )
    assert both.evidence.filters == {}
    mixed = merge([filed("a", RANK, evidence=every), filed("b", CAP)], created_at=NOW)
    assert mixed.evidence.filters is None  # one of them does not state it
