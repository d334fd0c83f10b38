"""Proposals: made for one base, refused by others, applied and taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.errors import ConfigError, ProposalError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import (
    Affected,
    Effect,
    Evidence,
    Proposal,
    Window,
    dumps,
    loads,
    read,
    render,
    write,
)

NOW = datetime.fromisoformat("2026-11-21T09:00")
EVIDENCE = Evidence(
    verdict="80 meets the limit of 5 % and costs 3 % more memory",
    effects=(Effect("jobs over their request", "%", 7.5, 4.5, -3.0, -3.5, -2.5, 0.95),),
    windows=(
        Window("proof", datetime.fromisoformat("2026-10-01"), datetime.fromisoformat("2026-11-01")),
    ),
    helps=(Affected("tasks of MC 16 simul", "3 % fewer retries"),),
    hurts=(Affected("queues below 2 GB per core", "1 % fewer jobs"),),
    numbers={"n_tasks": 120, "note": "é", "unknown": None, "ratio": 2.0},
)
BASE = Config.from_rows(
    [
        {
            "app": "jedi",
            "component": "dbproxy",
            "key": "SCOUT_CPUTIME_RANK",
            "value": "90",
            "type": "int",
            "vo": "atlas",
        },
        {
            "app": "jedi",
            "component": "jobbroker",
            "key": "NW_ACTIVE",
            "value": "true",
            "type": "bool",
        },
    ]
)


def change(config: Config = BASE, values: dict[str, Any] | None = None, **others: Any) -> Proposal:
    wanted = {"SCOUT_RAMCOUNT_RANK": 80, "SCOUT_CPUTIME_RANK": 95} if values is None else values
    arguments = {"title": "Ranks of the scouts", "created_at": NOW, "evidence": EVIDENCE, **others}
    return Proposal.to_change(config, wanted, **arguments)


def keep(config: Config = BASE) -> Proposal:
    return Proposal.to_keep(
        config, ["SCOUT_RAMCOUNT_RANK"], title="Keep 75", created_at=NOW, evidence=EVIDENCE
    )


def test_a_change_knows_what_acts_now() -> None:
    ram, cpu = change().changes
    assert (ram.old, ram.new, ram.action, ram.vo, ram.unit) == (
        75,
        80,
        "insert",
        None,
        "percentile",
    )
    assert (cpu.old, cpu.new, cpu.action, cpu.vo) == (90, 95, "update", "atlas")
    assert (ram.minimum, ram.maximum) == (50, 100)


def test_apply_and_take_back() -> None:
    proposal = change()
    applied = proposal.applied_to(BASE)
    assert applied.get("SCOUT_RAMCOUNT_RANK") == 80
    assert applied.get("SCOUT_CPUTIME_RANK") == 95
    back = proposal.revert(applied, created_at=NOW)
    assert back.applied_to(applied) == BASE
    assert back.title == "Take back: Ranks of the scouts"
    effect = back.evidence.effects[0]
    assert (effect.current, effect.proposed, effect.difference, effect.low, effect.high) == (
        4.5,
        7.5,
        3.0,
        2.5,
        3.5,
    )
    assert back.evidence.helps == EVIDENCE.hurts
    assert back.revert(BASE, created_at=NOW).applied_to(BASE) == applied


def test_removing_an_entry() -> None:
    proposal = change(values={"SCOUT_CPUTIME_RANK": None, "NW_ACTIVE": False})
    assert [(one.old, one.new, one.action) for one in proposal.changes] == [
        (90, 95, "delete"),
        (True, False, "update"),
    ]
    applied = proposal.applied_to(BASE)
    assert applied.get("SCOUT_CPUTIME_RANK") == 95
    assert proposal.revert(applied, created_at=NOW).applied_to(applied).digest == BASE.digest


def test_removing_the_entry_that_wins_uncovers_the_other() -> None:
    row = {"app": "jedi", "component": "taskbrokerage", "key": "FREE_DISK_CUTOFF", "type": "int"}
    both = Config.from_rows([{**row, "value": "800"}, {**row, "value": "500", "vo": "atlas"}])
    proposal = change(both, {"FREE_DISK_CUTOFF": None})
    (one,) = proposal.changes
    assert (one.old, one.new, one.vo, one.action) == (500, 800, "atlas", "delete")
    applied = proposal.applied_to(both)
    assert applied.entries == both.entries[:1]
    assert proposal.revert(applied, created_at=NOW).applied_to(applied) == both


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"SCOUT_RAMCOUNT_RANK": 70, "SCOUT_CPUTIME_RANK": 90},
            "SCOUT_RAMCOUNT_RANK: made for 75 .insert., found 70 from an entry '70'",
        ),
        (
            {"SCOUT_CPUTIME_RANK": None},
            "SCOUT_CPUTIME_RANK: made for 90 .update., found 95 from no entry",
        ),
        ({"NW_ACTIVE": None}, "jedi/jobbroker/NW_ACTIVE: gone since the proposal was made"),
        ({"NW_ACTIVE": False}, "jedi/jobbroker/NW_ACTIVE: changed since the proposal was made"),
        ({"NW_THRESHOLD": 1.5}, "jedi/jobbroker/NW_THRESHOLD: new since the proposal was made"),
    ],
)
def test_another_base_is_refused_and_told(values: dict[str, Any], message: str) -> None:
    other = BASE.with_values(values)
    with pytest.raises(
        ProposalError, match="the configuration is not the base of 'Ranks of the scouts'"
    ):
        change().verify(other)
    with pytest.raises(ProposalError, match=message):
        change().applied_to(other)


def test_other_keys_may_have_changed_if_one_says_so() -> None:
    other = BASE.with_values({"NW_ACTIVE": False})
    change().verify(other, touched_only=True)
    applied = change().applied_to(other, touched_only=True)
    assert (applied.get("NW_ACTIVE"), applied.get("SCOUT_RAMCOUNT_RANK")) == (False, 80)
    with pytest.raises(ProposalError, match="SCOUT_CPUTIME_RANK"):
        change().verify(BASE.with_values({"SCOUT_CPUTIME_RANK": 91}), touched_only=True)


def test_the_same_value_by_another_entry_is_another_base() -> None:
    with pytest.raises(ProposalError, match="found 75 from an entry '75'"):
        change().verify(BASE.with_values({"SCOUT_RAMCOUNT_RANK": 75}))


def test_take_back_only_what_acts() -> None:
    with pytest.raises(ProposalError, match="is not what acts now, so it cannot be taken back"):
        change().revert(BASE, created_at=NOW)
    with pytest.raises(ProposalError, match="is a keep: there is nothing to take back"):
        keep().revert(BASE, created_at=NOW)


def test_keep() -> None:
    proposal = keep()
    (one,) = proposal.changes
    assert (proposal.kind, one.old, one.new, one.action) == ("keep", 75, 75, "none")
    assert proposal.applied_to(BASE) == BASE
    with pytest.raises(ProposalError, match="is a keep: there is nothing to apply"):
        render(proposal, BASE)
    with pytest.raises(ProposalError):
        proposal.verify(BASE.with_values({"SCOUT_RAMCOUNT_RANK": 70}))


@pytest.mark.parametrize(
    ("values", "others", "message"),
    [
        (
            {"SCOUT_RAMCOUNT_RANK": 30},
            {},
            "30 is outside its guard rails 50 to 100 .percentile.",
        ),
        ({"SCOUT_CPUTIME_RANK": 90}, {}, 'nothing would change; a verdict "keep" is of kind keep'),
        ({}, {}, "at least one key is needed"),
        (None, {"title": "two\nlines"}, "title: one printable line"),
        (None, {"title": ""}, "title: one printable line"),
        (None, {"created_at": NOW.replace(tzinfo=UTC)}, "created_at: UTC without zone is needed"),
        (
            None,
            {"evidence": replace(EVIDENCE, windows=(Window("proof", NOW, NOW),))},
            "evidence.windows.proof: start .* is not before end",
        ),
        (
            None,
            {"evidence": replace(EVIDENCE, effects=(Effect("x", "%", 1, 2, 1, 2.0, 0.5, 0.9),))},
            "evidence.effects.x: interval 2.0 to 0.5 is reversed",
        ),
    ],
)
def test_unsound_proposals(
    values: dict[str, Any] | None, others: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProposalError, match=message):
        change(values=values, **others)


def test_unknown_keys_and_histories_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean"):
        change(values={"SCOUT_RAMCOUNT_RNAK": 80})
    with pytest.raises(ConfigError, match="is given twice"):
        change(values={"SCOUT_RAMCOUNT_RANK": 80, "jedi/dbproxy/SCOUT_RAMCOUNT_RANK": 80})
    rows = [{**row, "valid_from": "2026-01-01"} for row in BASE.frame().to_dicts()]
    with pytest.raises(ConfigError, match="has a history"):
        change(Config.from_rows(rows))


def test_frame() -> None:
    table = change().frame()
    assert table.select("key", "vo", "action", "old", "new", "minimum").rows() == [
        ("SCOUT_RAMCOUNT_RANK", None, "insert", "75", "80", 50.0),
        ("SCOUT_CPUTIME_RANK", "atlas", "update", "90", "95", 50.0),
    ]


@pytest.mark.parametrize("make", [change, keep])
def test_json_and_back(make: Callable[[], Proposal]) -> None:
    proposal = make()
    assert loads(proposal.to_json()) == proposal
    # tools that rewrite JSON may drop the zero of 50.0, or sort the names
    rewritten = json.dumps(json.loads(dumps(proposal)), sort_keys=True).replace("50.0", "50")
    assert loads(rewritten) == proposal


def edited(edit: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(dumps(change()))
    edit(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no proper JSON"),
        (dumps(change())[:200], "is no proper JSON"),
        ("[" * 100_000, "is no proper JSON"),
        ("[]", "schema: found None, .*is it a proposal at all"),
        (edited(lambda d: d.update(schema="brokerlab/proposal/2")), "written by a newer brokerlab"),
        (
            edited(lambda d: d["changes"][0].update(new=81)),
            "digest: does not fit the content; the file was edited",
        ),
        (edited(lambda d: d["changes"][0].pop("new")), "changes.0: 'new' is a required property"),
        (edited(lambda d: d.update(note="x")), "'note' was unexpected"),
        (
            edited(lambda d: d["evidence"].update(synthetic="no")),
            "evidence.synthetic: 'no' is not of type 'boolean'",
        ),
        (
            edited(lambda d: d.update(created_at="yesterday")),
            "created_at: 'yesterday' is not a 'date-time'",
        ),
        (
            edited(lambda d: d.update(created_at="2026-01-01T00:00:00")),
            "created_at: .* is not a 'date-time'",
        ),
        (edited(lambda d: d["digests"].update(config="x")), "digests.config: 'x' does not match"),
        (
            edited(lambda d: d["evidence"]["effects"][0].update(level=95)),
            "evidence.effects.0.level: 95 is greater",
        ),
        (
            edited(lambda d: d.update(created_at="0001-01-01T00:00:00+14:00")),
            "created_at: .* is not a 'date-time'",
        ),
        (edited(lambda d: d.update(kind="keep")), "a keep must not change it"),
    ],
)
def test_broken_documents(text: str, message: str) -> None:
    with pytest.raises(ProposalError, match=message):
        loads(text)


@pytest.mark.parametrize(("text", "written"), [("300", 300), ("x", "75|None")])
def test_the_entry_to_be_written_is_the_value_that_is_shown(text: str, written: object) -> None:
    """Guard rails are held against the value, and SQL is made from the entry."""
    made = change()
    (first, *others) = made.changes
    assert first.after is not None
    other = replace(first, after=replace(first.after, value=text))
    (problem,) = replace(made, changes=(other, *others)).problems()
    wanted = f"{first.place}: the entry to be written is ({written}), the new value is said to be {first.new}"
    assert re.fullmatch(wanted, problem)


def test_all_problems_of_a_document_at_once() -> None:
    def edit(document: dict[str, Any]) -> None:
        del document["title"]
        document["kind"] = "maybe"
        document["changes"][1]["minimum"] = "low"

    with pytest.raises(ProposalError) as error:
        loads(edited(edit), "p.json")
    assert str(error.value).startswith("p.json does not have the shape of a proposal:")
    for part in ("document: 'title' is", "kind: 'maybe' is not one of", "changes.1.minimum: 'low'"):
        assert part in str(error.value)


def test_numbers_that_json_does_not_have() -> None:
    evidence = replace(EVIDENCE, numbers={"x": float("nan")})
    with pytest.raises(ProposalError, match="contains NaN or infinity; use null"):
        dumps(change(evidence=evidence))


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "proposal.json"
    write(dumps(change()), file)
    assert read(file) == change()
    with pytest.raises(ProposalError, match=r"proposal.json exists; choose another name"):
        write("x", file)
    write(dumps(keep()), file, overwrite=True)
    assert read(file).kind == "keep"
    assert [path.name for path in tmp_path.iterdir()] == ["proposal.json"]
    with pytest.raises(ProposalError, match=r"none/x.json cannot be written: No such file"):
        write("x", tmp_path / "none" / "x.json")
    with pytest.raises(ProposalError, match=r"none.json cannot be read: No such file"):
        read(tmp_path / "none.json")
    file.write_bytes(b"\xff\xff")
    with pytest.raises(ProposalError, match="is not UTF-8 at byte 0"):
        read(file)


@settings(derandomize=True, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["SCOUT_RAMCOUNT_RANK", "SCOUT_CPUTIME_RANK", "SCOUT_RAMCOUNT_MARGIN", "NW_THRESHOLD"]
        ),
        st.none() | st.integers(50, 100),
        min_size=1,
    )
)
def test_apply_json_and_take_back_for_any_values(values: dict[str, int | None]) -> None:
    values = {
        key: value and value / 50 if key == "NW_THRESHOLD" else value
        for key, value in values.items()
    }  # type: ignore[misc]
    if BASE.with_values(values) == BASE:
        return
    proposal = loads(dumps(change(values=values)))
    applied = proposal.applied_to(BASE)
    assert applied.digest == BASE.with_values(values).digest
    back = loads(dumps(proposal.revert(applied, created_at=NOW)))
    assert back.applied_to(applied).digest == BASE.digest


EXPRESS = replace(EVIDENCE, filters={"gshare": "Express"})


@pytest.mark.parametrize(
    ("key", "filters"),
    [
        ("NQUEUELIMITSITE_Express", {"gshare": "Express"}),
        ("MIN_WEIGHT_managed_Express", {"gshare": "Express"}),
        ("NQUEUECAP_MC 16_MCORE_HIMEM", {"gshare": "MC 16", "resource_type": "MCORE_HIMEM"}),
        ("TYPNFILES_managed_Express_simul", {"processingtype": "simul", "gshare": "Express"}),
        ("SCOUT_RAMCOUNT_RANK", {}),
    ],
)
def test_evidence_of_a_scope_proposes_keys_of_that_scope(key: str, filters: dict[str, str]) -> None:
    """Calibration, 2, Scope: evidence from a filter makes a proposal for that scope or none."""
    app = "jedi/prod_job_throttler/" if key.startswith("NQUEUECAP") else ""
    value = 6 if key.startswith("MIN_WEIGHT") else 60
    made = change(values={app + key: value}, evidence=replace(EVIDENCE, filters=filters))
    assert loads(dumps(made)) == made
    assert made.evidence.filters == filters


@pytest.mark.parametrize(
    ("key", "filters"),
    [
        ("SCOUT_RAMCOUNT_RANK", {"gshare": "Express"}),  # 75 to 62 for all VOs from one share
        ("NQUEUELIMITSITE_Other", {"gshare": "Express"}),
        ("MIN_WEIGHT_managed", {"gshare": "managed"}),
        ("MIN_WEIGHT_managed_A_B", {"gshare": "B"}),  # that of the share "A_B"
        ("NQUEUELIMITSITE_Express", {"gshare": "Express", "processingtype": "simul"}),
        ("NQUEUELIMITSITE_Express", {"processingtype": "Express"}),
        ("NQUEUELIMITSITE_Express", {"window": "2026-03-01 to 2026-03-02"}),
    ],
)
def test_evidence_of_a_scope_proposes_no_other_key(key: str, filters: dict[str, str]) -> None:
    evidence = replace(EVIDENCE, filters=filters)
    with pytest.raises(ProposalError, match=f"{key}: measured on tasks with .* only, and the key"):
        change(values={key: 60}, evidence=evidence)
    name = "SCOUT_RAMCOUNT_RANK"
    kept = Proposal.to_keep(BASE, [name], title="t", created_at=NOW, evidence=evidence)
    assert loads(dumps(kept)).evidence.filters == filters


def test_a_proposal_of_a_scope_can_be_taken_back() -> None:
    made = change(values={"NQUEUELIMITSITE_Express": 60}, evidence=EXPRESS)
    back = made.revert(made.applied_to(BASE), created_at=NOW)
    assert loads(dumps(back)).evidence.filters == {"gshare": "Express"}


def test_documents_that_do_not_state_filters_or_coverage_stay_as_they_were() -> None:
    text = dumps(change())
    assert "filters" not in text
    assert "coverage" not in text
    assert loads(text).evidence.filters is None
    assert loads(text).evidence.effects[0].coverage is None


def test_coverage_is_a_share() -> None:
    effect = replace(EVIDENCE.effects[0], coverage=0.93)
    made = change(evidence=replace(EVIDENCE, effects=(effect,)))
    assert loads(dumps(made)).evidence.effects[0].coverage == 0.93
    with pytest.raises(ProposalError, match=r"coverage 93 is no share from 0 to 1"):
        change(evidence=replace(EVIDENCE, effects=(replace(effect, coverage=93),)))


def test_a_filter_without_a_value_is_refused() -> None:
    with pytest.raises(ProposalError, match=r"evidence.filters: name 'gshare', value ''"):
        change(evidence=replace(EVIDENCE, filters={"gshare": ""}))


UNSEEN = {
    "\u202e": r"U\+202E \(RIGHT-TO-LEFT OVERRIDE\)",
    "\u2066": r"U\+2066 \(LEFT-TO-RIGHT ISOLATE\)",
    "\u061c": r"U\+061C \(ARABIC LETTER MARK\)",
    "\u200b": r"U\+200B \(ZERO WIDTH SPACE\)",
    "\u2028": r"U\+2028 \(LINE SEPARATOR\)",
    "\x00": r"U\+0000 \(control character\)",
    "\x1b": r"U\+001B \(control character\)",
    "\x9b": r"U\+009B \(control character\)",
    "\n": r"U\+000A \(control character\)",
    "\ud800": r"U\+D800 \(control character\)",
}


@pytest.mark.parametrize(("sign", "name"), UNSEEN.items())
def test_characters_that_cannot_be_seen_are_refused_on_creation(sign: str, name: str) -> None:
    """Bidirectional and control characters are refused, with field and code point."""
    text = f"ab{sign}c"
    for field, others in {
        "title": {"title": text},
        "evidence.verdict": {"evidence": replace(EVIDENCE, verdict=text)},
        r"evidence.helps.0.who": {"evidence": replace(EVIDENCE, helps=(Affected(text, "x"),))},
        "evidence.numbers.n": {"evidence": replace(EVIDENCE, numbers={"n": text})},
        "digests.rules": {"rules_digest": text},
        "changes.0.new": {"values": {"GROUPBYATTR_A": text}},
        "changes.0.new.0.name": {"values": {"USER_JOB_PRIO_BOOST_DICTS": [{"name": text}]}},
    }.items():
        with pytest.raises(ProposalError, match=f"  {field}: character 3 is {name}; texts must"):
            change(**others)


def test_names_in_a_document_are_texts_too() -> None:
    numbers = {"a\u202eb": 1}
    with pytest.raises(
        ProposalError, match=r"name of evidence.numbers.a<U\+202E>b: character 2 is"
    ):
        change(evidence=replace(EVIDENCE, numbers=numbers))


def test_characters_that_cannot_be_seen_are_refused_on_reading(tmp_path: Path) -> None:
    """File, field and code point, whatever the digest says."""
    file = tmp_path / "proposal.json"
    file.write_text(dumps(change()).replace("80 meets", "80 \u202emeets"))
    with pytest.raises(ProposalError) as error:
        read(file)
    assert str(error.value).startswith(f"{file} has characters that cannot be seen:\n")
    assert "evidence.verdict: character 4 is U+202E" in str(error.value)


def test_a_json_value_may_be_written_in_lines() -> None:
    place = {"app": "pandaserver", "component": "dbproxy", "key": "USER_JOB_PRIO_BOOST_DICTS"}
    rows = [{**place, "type": "json", "value_json": '[\n\t{"name": "a"}\n]'}]
    made = change(Config.from_rows(rows), {"USER_JOB_PRIO_BOOST_DICTS": []})
    assert loads(dumps(made)) == made


def test_letters_of_any_script_are_good() -> None:
    evidence = replace(EVIDENCE, verdict="é 中文 עברית العربية 1\u202f000 − µ")
    assert loads(dumps(change(evidence=evidence))).evidence == evidence


WRITTEN = {"ticket": "ADC-7", "author": "A. Nna", "approver": "B. Ob", "comment": "after the stop"}


def test_notes_are_no_part_of_what_is_proposed() -> None:
    """Ticket, author, approver and comment; the report's run is found by the digest."""
    made = change()
    noted = made.annotated(**WRITTEN)
    assert loads(dumps(noted)) == noted
    assert noted.notes == WRITTEN
    assert noted.digest == made.digest
    assert not set(WRITTEN) & set(json.loads(dumps(made)))
    assert loads(dumps(made)).notes == {}
    assert noted.annotated(approver="", ticket="ADC-8").notes == {
        **{name: WRITTEN[name] for name in ("author", "comment")},
        "ticket": "ADC-8",
    }
    back = noted.revert(noted.applied_to(BASE), created_at=NOW)
    assert back.notes == {}  # nobody approved that
    assert back.takes_back == made.digest


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ({"ticket": "a\u202eb"}, r"ticket: character 2 is U\+202E"),
        ({"comment": "two\nlines"}, r"comment: character 4 is U\+000A"),
        ({"author": "x" * 2001}, "author: 2001 characters, at most 2000"),
    ],
)
def test_unsound_notes(notes: dict[str, str], message: str) -> None:
    with pytest.raises(ProposalError, match=message):
        change().annotated(**notes)
    document = json.loads(dumps(change()))
    with pytest.raises(ProposalError, match=next(iter(notes))):
        loads(json.dumps({**document, **notes}))
