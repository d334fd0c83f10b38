"""Proposals where they lie: found, listed with their state, told in words."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from brokerlab.errors import ProposalError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import (
    Affected,
    Broken,
    Effect,
    Evidence,
    Filed,
    Proposal,
    Window,
    dumps,
    find,
    in_words,
    loads,
    overview,
    read_all,
    state_of,
    write,
)
from brokerlab.gdpconfig.proposal.words import effect_text

NOW = datetime.fromisoformat("2026-11-21T09:00")
EVIDENCE = Evidence(
    verdict="80 meets the limit",
    effects=(
        Effect("jobs killed", "%", 7.5, 4.5, -3.0, -3.5, -2.5, 0.95),
        Effect("memory reserved", "GB h", 20000, 20100, 100, -50, 250, 0.95),
    ),
    windows=(Window("proof", datetime.fromisoformat("2026-10-01"), NOW),),
    helps=(
        Affected("processingtype simul", "fewer retries"),
        Affected("gshare Express", "3 % fewer retries"),
    ),
    hurts=(Affected("queue SMALL", "1 % fewer jobs"), Affected("gshare Express", "1 h later")),
    numbers={"n_tasks": 120, "unknown": None},
    synthetic=True,
)
BASE = Config.empty().with_values({"SCOUT_CPUTIME_RANK": 90, "NW_ACTIVE": True})


def change(values: dict[str, Any] | None = None, base: Config = BASE, **others: Any) -> Proposal:
    wanted = values or {"SCOUT_RAMCOUNT_RANK": 80, "SCOUT_CPUTIME_RANK": 95}
    arguments = {"title": "Ranks", "created_at": NOW, "evidence": EVIDENCE, **others}
    return Proposal.to_change(base, wanted, **arguments)


def keep() -> Proposal:
    keys = ["SCOUT_RAMCOUNT_RANK"]
    return Proposal.to_keep(BASE, keys, title="Keep 75", created_at=NOW, evidence=EVIDENCE)


def run_folder(root: Path, report: str, run: str, proposal: Proposal) -> Path:
    folder = root / report / run
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"report": report, "run_id": run}))
    (folder / "index.html").write_text("<p>")
    write(dumps(proposal), folder / "proposal.json")
    return folder / "proposal.json"


def test_found_with_report_run_and_page(tmp_path: Path) -> None:
    path = run_folder(tmp_path, "scouts", "1-a", change())
    write(dumps(keep()), tmp_path / "proposal-alone.json")
    (tmp_path / "scouts" / "proposal-cut.json").write_text(dumps(change())[:99])
    (tmp_path / "scouts" / "other.json").write_text("{}")
    alone, filed, cut = find(tmp_path)
    assert isinstance(alone, Filed)
    assert (alone.report, alone.run, alone.page) == (None, None, None)
    assert isinstance(filed, Filed)
    assert (filed.report, filed.run, filed.page) == ("scouts", "1-a", "scouts/1-a/index.html")
    assert filed.name == str(path)
    assert isinstance(cut, Broken)
    assert "is no proper JSON" in cut.problem
    assert find(path) == [filed]


def test_a_run_without_page_or_manifest(tmp_path: Path) -> None:
    path = run_folder(tmp_path, "scouts", "1-a", change())
    (path.parent / "index.html").unlink()
    (filed,) = read_all([path])
    assert (filed.run, filed.page) == ("1-a", None)
    for text in ("", "[]", '{"report": "x"}'):
        (path.parent / "manifest.json").write_text(text)
        assert read_all([path])[0].report is None


def test_absent_and_broken_files_are_all_told(tmp_path: Path) -> None:
    with pytest.raises(ProposalError, match="there is no such folder"):
        find(tmp_path / "none")
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(ProposalError) as error:
        read_all([tmp_path / "a.json", tmp_path / "b.json"])
    assert "a.json cannot be read" in str(error.value)
    assert "b.json is no proper JSON" in str(error.value)


def test_states() -> None:
    proposal = change()
    applied = proposal.applied_to(BASE)
    assert state_of(proposal, BASE).word == "applicable"
    assert state_of(proposal, BASE).why == ()
    other = state_of(proposal, BASE.with_values({"NW_ACTIVE": False}))
    assert other.word == "applicable, other keys changed"
    assert other.why == ("jedi/jobbroker/NW_ACTIVE: changed since the proposal was made",)
    assert state_of(proposal, applied).word == "applied already"
    assert state_of(proposal, applied.with_values({"NW_ACTIVE": False})).word == "applied already"
    half = state_of(proposal, BASE.with_values({"SCOUT_RAMCOUNT_RANK": 80}))
    assert half.word == "base changed"
    assert half.why[0].startswith(
        "jedi/dbproxy/SCOUT_RAMCOUNT_RANK: made for 75 (insert), found 80"
    )
    assert state_of(keep(), BASE).word == "kept"
    assert state_of(keep(), BASE.with_values({"NW_ACTIVE": False})).word == "kept"
    assert state_of(keep(), BASE.with_values({"SCOUT_RAMCOUNT_RANK": 80})).word == "base changed"


def test_all_that_differs_is_told_however_much_it_is() -> None:
    many = BASE.with_values({f"DISK_THRESHOLD_Share {n:03}": 100 for n in range(80)})
    why = state_of(change(), many).why
    assert len(why) == 80
    assert {line.partition(": ")[2] for line in why} == {"new since the proposal was made"}


def test_one_line_each() -> None:
    broken = Broken("b.json", "no good", "scouts", "1-b")
    filed = Filed("a.json", change(), "scouts", "1-a")
    table = overview([filed, Filed("k.json", keep()), broken], BASE)
    first, second, third = table.iter_rows(named=True)
    assert first["keys"] == "SCOUT_RAMCOUNT_RANK, SCOUT_CPUTIME_RANK"
    assert first["change"] == "75 -> 80 percentile, 90 -> 95 percentile"
    assert first["effect"] == "jobs killed: 7.5 -> 4.5 %, -3 (-3.5 to -2.5, 95 %), and 1 more"
    assert (first["scope"], first["state"], first["why"]) == ("all VOs", "applicable", None)
    assert (second["change"], second["state"]) == ("keep 75 percentile", "kept")
    assert (third["kind"], third["state"], third["why"]) == ("broken", "unreadable", "no good")
    assert overview([filed])["state"].item() is None
    assert overview([]).is_empty()


def test_in_words() -> None:
    text = in_words(Filed("p.json", change(), "scouts", "1-a", None), BASE)
    assert text.startswith("change: Ranks\n80 meets the limit\nMade from a synthetic archive")
    for line in (
        "State\n  applicable\n",
        "jedi/dbproxy/SCOUT_RAMCOUNT_RANK (all VOs): 75 -> 80 percentile; guard rails 50 to 100\n",
        "jobs killed: 7.5 -> 4.5 %, -3 (-3.5 to -2.5, 95 %)\n",
        "memory reserved: 20,000 -> 20,100 GB h, +100 (-50 to +250, 95 %); may be nothing\n",
        "Who gains\n  gshare Express: 3 % fewer retries\n  processingtype simul: fewer retries\n",
        "Who loses\n  gshare Express: 1 h later\n  queue SMALL: 1 % fewer jobs\n",
        "Nothing is told of\n  user classes\n",
        "Gains by one thing and loses by another\n  gshare Express\n",
        "proof: 2026-10-01 00:00 to 2026-11-21 09:00 UTC\n  n_tasks: 120\n  unknown: unknown\n",
        "Proof\n  report scouts, run 1-a, page not there\n",
        (
            "After it is applied\n  to change: jobs killed: 7.5 -> 4.5 %, -3 (-3.5 to -2.5, 95 %)\n"
            "  not to change beyond its interval: memory reserved\n"
            "  until: 51 days of data with the new values, as many as it was proven on (proof)\n"
            "  then: brokerlab proposal drift p.json --archive LATER (exit code 8: it does not hold)\n"
            "  to take it back: brokerlab proposal revert p.json --config NOW --into BACK\n"
        ),
    ):
        assert line in text


def test_in_words_without_what_is_not_known() -> None:
    bare = replace(keep(), evidence=Evidence("no reason"))
    text = in_words(Filed("k.json", bare))
    assert "State" not in text
    assert "After it is applied" not in text
    assert "keep 75 percentile" in text
    assert "Expected effect\n  the document tells none\n" in text
    assert "Who gains\n  the document names nobody\n" in text
    assert "no report is known" in text


def test_taking_back_puts_back_what_is_outside_the_guard_rails() -> None:
    odd = Config.empty().with_values({"SCOUT_RAMCOUNT_RANK": 30})
    proposal = change({"SCOUT_RAMCOUNT_RANK": 80}, odd)
    applied = proposal.applied_to(odd)
    back = loads(dumps(proposal.revert(applied, created_at=NOW)))
    assert back.applied_to(applied).digest == odd.digest
    assert back.takes_back == proposal.digest == json.loads(dumps(proposal))["digest"]
    assert f"Takes back the proposal with digest {proposal.digest}" in in_words(Filed("b", back))
    again = loads(dumps(back.revert(odd, created_at=NOW)))
    assert again.applied_to(odd).digest == applied.digest


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"key": "SCOUT_RAMCOUNT_RNAK"}, "did you mean 'SCOUT_RAMCOUNT_RANK'"),
        ({"component": "jobbroker"}, "jedi/jobbroker/SCOUT_RAMCOUNT_RANK"),
        ({"new": "high"}, "is of type int, found 'high'"),
        ({"new": 120, "maximum": 200.0}, "120 is outside its guard rails 50 to 100"),
    ],
)
def test_keys_and_values_that_the_catalogue_does_not_have(
    edit: dict[str, Any], message: str
) -> None:
    good = change({"SCOUT_RAMCOUNT_RANK": 80})
    bad = replace(good, changes=(replace(good.changes[0], **edit),))
    with pytest.raises(ProposalError, match=message):
        loads(dumps(bad))


def test_what_stays_the_same_has_no_sign() -> None:
    """An effect of nothing, taken back, was once "-0 (-0 to -0)"."""
    back = Effect("used", "GB", 5.0, 5.0, 0.0, 0.0, 0.0, 0.95).reversed()
    assert effect_text(back) == "used: 5 -> 5 GB, 0 (0 to 0, 95 %)"
    assert effect_text(replace(back, difference=-0.0)) == "used: 5 -> 5 GB, 0 (0 to 0, 95 %)"


def test_filters_and_measured_coverage_are_shown() -> None:
    effect = replace(EVIDENCE.effects[0], coverage=0.931)
    told = replace(EVIDENCE, effects=(effect,), filters={"gshare": "Express"})
    text = in_words(Filed("k", replace(keep(), evidence=told)))
    assert "-3 (-3.5 to -2.5, 95 %, covers 93.1 %)\n" in text
    assert "Measured on\n  tasks with gshare Express only\n" in text
    everything = replace(keep(), evidence=replace(told, filters={}))
    assert "Measured on\n  all tasks\n" in in_words(Filed("k", everything))


def test_notes_are_shown() -> None:
    noted = change().annotated(ticket="ADC-7", comment="after the stop")
    assert "\nNotes\n  ticket: ADC-7\n  comment: after the stop\n" in in_words(Filed("k", noted))
    assert "Notes" not in in_words(Filed("k", change()))
