"""Proposals for a meeting: which are to be decided, what excludes what, what can be applied and taken back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonpatch
import pytest

from brokerlab.errors import ProposalError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import (
    Affected,
    Effect,
    Review,
    apply_files,
    read,
    review,
    write_apply_files,
)
from brokerlab.gdpconfig.proposal.reviewing import (
    agenda_frame,
    answers_frame,
    changes_frame,
    conflicts_frame,
    effects_frame,
    people_frame,
    promises_frame,
    proposals_frame,
    rest_frame,
    since,
)
from brokerlab.gdpconfig.proposal.words import silence
from tests.unit.gdpconfig import proposal_toys as toys

LATER = toys.NOW + timedelta(days=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    return folder


def reviewed(root: Path, config: Config = toys.BASE, **how: Any) -> Review:
    return review(root, config=config, created_at=LATER, **how)


def groups(made: Review) -> list[tuple[str, str]]:
    return [(item.group, item.label) for item in made.items]


def test_nothing_to_decide(root: Path) -> None:
    made = reviewed(root)
    assert made.items == ()
    assert made.merged is None
    assert proposals_frame(made).is_empty()
    assert not made.synthetic
    with pytest.raises(ProposalError, match="there is no such folder"):
        reviewed(root / "none")


def test_what_is_to_be_decided_stands_in_frames(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root)
    made = reviewed(root)
    assert groups(made) == [("decide", "1"), ("decide", "2")]
    changes = changes_frame(made.items)
    assert changes.select("label", "key", "old", "new", "unit").rows() == [
        ("1", "SCOUT_RAMCOUNT_RANK", "75", "80", "percentile"),
        ("1", "SCOUT_RAMCOUNT_MARGIN", "10", "6", "%"),
        ("2", "NQUEUED_SAT_CAP", "150", "200", "files"),
    ]
    assert changes.row(0, named=True)["minimum"] == 50
    effects = effects_frame(made.items)
    assert dict(effects.select("quantity", "interval").rows()) == {
        "First attempts killed": "excludes 0",
        "Slots that can take a task": "includes 0",
        "Used by finished jobs": "unchanged",
        "Mean waiting": "excludes 0",
    }
    killed = effects.row(0, named=True)
    assert killed["change_pct"] == pytest.approx(100 * 0.003 / 0.009)
    assert killed["change_pct_lo"] == pytest.approx(100 * 0.001 / 0.009)
    people = people_frame(made.items)
    assert people.filter(label="2").height == 9
    assert people.filter(label="1", side="loses")["who"].to_list() == ["gshare Express"]
    proposals = proposals_frame(made, seen_from=root / "review" / "1")
    assert proposals["report"].to_list() == ["scouts", "thresholds"]
    assert proposals["href"][0] == "../../scouts/20261120T090000Z-1/index.html"


def test_the_agenda_has_proof_and_answer_of_every_key(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root)
    made = reviewed(root)
    proposals = proposals_frame(made)
    nothing = agenda_frame(made, proposals, answers_frame({}))
    assert nothing["status"].to_list() == [None] * 3
    refuted = SimpleNamespace(status="does_not_hold", sentence="Does not hold on April.")
    answers = answers_frame({made.items[1].proposal.digest: refuted})
    agenda = agenda_frame(made, proposals, answers)
    assert agenda["status"].to_list() == [None, None, "does not hold"]
    assert agenda["role"].to_list() == [None, None, "look again"]
    assert agenda["proof"][0] == "scouts"
    assert agenda["key"].to_list() == changes_frame(made.items)["key"].to_list()


def test_promises_are_the_first_effects_of_each(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root)
    effects = effects_frame(reviewed(root).items)
    drawn = promises_frame(effects, 2)
    assert drawn.select("proposal", "quantity").rows() == [
        ("1. scouts", "First attempts killed"),
        ("1. scouts", "Slots that can take a task"),
        ("2. thresholds", "Mean waiting"),
    ]
    assert promises_frame(effects.clear(), 2).is_empty()


def test_of_whom_nothing_is_told(root: Path) -> None:
    toys.caps(root)
    toys.scouts(root, hurts=(Affected("queue AGLT2", "fuller"),))
    told = {item.origin: silence(item.proposal.evidence) for item in reviewed(root).items}
    assert told["thresholds"] == "nothing is said of queues or user classes."
    assert told["scouts"] == (
        "nothing is said of user classes. queue AGLT2 gain by one thing and lose by another."
    )


def test_a_change_of_almost_nothing_has_no_percentage(root: Path) -> None:
    dust = Effect("Unfairness", "1", 1e-12, 0.02, 0.02, 0.01, 0.03, 0.95)
    none = Effect("Bytes moved", "TB", 0.0, 0.0, 0.0, 0.0, 0.0, 0.95)
    toys.scouts(root, effects=(dust, none))
    made = reviewed(root)
    assert made.items[0].is_certain
    effects = effects_frame(made.items)
    assert effects["difference"].to_list() == [0.02, 0.0]
    for name in ("change_pct", "change_pct_lo", "change_pct_hi"):
        assert effects[name].to_list() == [None, None]


def test_a_decision_can_be_applied_and_taken_back(root: Path, tmp_path: Path) -> None:
    toys.scouts(root)
    toys.caps(root)
    made = reviewed(root)
    assert made.merged is not None
    documents = {item.label: item.proposal for item in made.items} | {"together": made.merged}
    sets = [apply_files(name, document, made.config) for name, document in documents.items()]
    assert sum((one.sql or "").count("INSERT INTO ATLAS_PANDA.CONFIG") for one in sets) == 6
    folder = tmp_path / "apply"
    names = write_apply_files(sets, made.config, folder)
    assert sorted(names) == sorted(path.name for path in folder.iterdir())
    base = json.loads((folder / "base.json").read_text())
    for name in documents:
        there = jsonpatch.apply_patch(base, (folder / f"{name}.patch.json").read_text())
        assert there["digest"] != base["digest"]
        back = jsonpatch.apply_patch(there, (folder / f"{name}-take-back.patch.json").read_text())
        assert back == base
        assert (folder / f"{name}-take-back.sql").read_text().count("\n  DELETE") in (1, 2, 3)
    together = read(folder / "together.proposal.json")
    together.verify(toys.BASE)
    assert [source.report for source in together.sources] == ["scouts", "thresholds"]


def test_nothing_is_written_where_there_is_nothing(tmp_path: Path) -> None:
    assert write_apply_files([], toys.BASE, tmp_path / "apply") == []
    assert not (tmp_path / "apply").exists()


def test_a_value_that_cannot_stand_in_sql(root: Path) -> None:
    toys.lay(root, "odd", {"GROUPBYATTR_Express": "a\\b"})
    made = reviewed(root)
    files = apply_files("1", made.items[0].proposal, made.config)
    assert files.sql is None
    assert "a backslash or a control character and cannot stand in SQL text" in files.refused
    assert sorted(files.files) == ["1-take-back.json", "1-take-back.patch.json", "1.json", "1.patch.json"]  # fmt: skip


def test_what_excludes_what(root: Path) -> None:
    toys.scouts(root)
    toys.lay(root, "other", {"SCOUT_RAMCOUNT_RANK": 90})
    made = reviewed(root)
    assert made.merged is None
    (row,) = conflicts_frame(made.conflicts).to_dicts()
    assert (row["first"], row["second"]) == ("1 (other)", "2 (scouts)")
    assert "set 90 and set 80" in row["why"]


def test_a_keep_may_stand_against_a_change(root: Path) -> None:
    toys.scouts(root)
    toys.lay(root, "keeper", keep=["SCOUT_RAMCOUNT_RANK"])
    (conflict,) = reviewed(root).conflicts
    assert {conflict.first, conflict.second} == {"1 (scouts)", "the keep of keeper"}


def test_applied_kept_outdated_and_broken_ones_are_not_decided(root: Path) -> None:
    toys.scouts(root)
    place = {"app": "jedi", "component": "dbproxy", "key": "SCOUT_CPUTIME_RANK", "type": "int"}
    other = Config.from_rows([{**place, "value": "85"}])
    toys.lay(root, "keeper", keep=["NW_QUEUE_IMPORTANCE"])
    toys.lay(root, "old", {"SCOUT_CPUTIME_RANK": 95}, config=other)
    applied = toys.caps(root)
    (root / "proposal-cut.json").write_text(applied.read_text()[:400])
    toys.lay(root, "crashed", {"IO_INTENSITY_CUTOFF": 300}, state="failed")
    made = reviewed(root, read(applied).applied_to(toys.BASE))
    assert groups(made) == [("decide", "1"), ("kept", ""), ("applied", ""), ("outdated", "")]
    counts = made.counts()
    assert [counts[name] for name in ("decide", "kept", "applied", "outdated", "broken")] == [1, 1, 1, 1, 2]  # fmt: skip
    problems = " ".join(one.problem for one in made.broken)
    assert "is no proper JSON" in problems
    assert "the run that wrote it failed afterwards" in problems
    assert proposals_frame(made).filter(group="broken").height == 2
    states = dict(proposals_frame(made).select("group", "why").rows())
    assert "made for 85 (update), found 90 from an entry" in states["outdated"]
    assert "jedi/jobbroker/" in states["decide"]  # another key has changed since
    decide = made.items[0]
    assert since(decide).startswith("Other keys have changed since (jedi/jobbroker/")
    many = replace(decide, state=replace(decide.state, why=("a: x", "b: y", "c", "d", "e")))
    assert "(a, b, c and 2 more)" in since(many)
    again = replace(decide, state=replace(decide.state, why=()), not_again="R2")
    assert since(again).startswith("Run R2 of the report, later")
    assert since(replace(again, not_again=None)) == ""
    rest = rest_frame(proposals_frame(made))
    assert rest["reason"].to_list() == [
        "kept as it is",
        "applied already",
        "made for another configuration",
        "no sound proposal",
        "no sound proposal",
    ]
    assert rest["detail"][0] == "Verdict of keeper."
    assert "found 90 from an entry" in rest["detail"][2]
    assert rest["keys"][3] == rest["file"][3]


def test_later_runs_take_the_place_of_earlier_ones(root: Path) -> None:
    toys.scouts(root)
    toys.lay(root, "scouts", {"SCOUT_RAMCOUNT_RANK": 85}, run="20261121T090000Z-1")
    toys.lay(root, "scouts", {"SCOUT_RAMCOUNT_RANK": 95}, run="20261101T090000Z-1", archive="b")
    made = reviewed(root)
    assert {item.changes[0].new for item in made.items} == {
        85,
        95,
    }  # another archive is another question
    assert len(made.replaced) == 1
    assert len(reviewed(root, only_newest=False).items) == 3


def test_what_a_later_run_did_not_propose_again_is_known(root: Path) -> None:
    made = toys.scouts(root)
    toys.lay(root, "scouts", keep=["NQUEUED_SAT_CAP"], run="20261122T090000Z-1", name="proposal-other.json")  # fmt: skip
    again = [item.not_again for item in reviewed(root).of("decide")]
    assert again == ["20261122T090000Z-1"]
    (made.parents[1] / "20261123T090000Z-1").mkdir()  # no run
    toys.lay(root, "scouts", {"SCOUT_RAMCOUNT_RANK": 85}, run="20261124T090000Z-1")
    assert [item.not_again for item in reviewed(root).of("decide")] == [None]


def test_copies_count_once(root: Path) -> None:
    made = toys.scouts(root)
    (root / "proposal-mailed.json").write_text(made.read_text())
    found = reviewed(root)
    assert (len(found.items), found.n_copies) == (1, 1)


def test_synthetic_ones_are_not_decided_beside_real_ones(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root, synthetic=True)
    made = reviewed(root)
    assert groups(made) == [("decide", "1"), ("synthetic", "")]
    assert not made.synthetic


def test_where_all_are_synthetic_they_are_shown(root: Path) -> None:
    toys.scouts(root, synthetic=True)
    made = reviewed(root)
    assert groups(made) == [("decide", "1")]
    assert made.synthetic
