"""The review: what is on the agenda, what excludes what, what is said, what can be applied."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from brokerlab.calibrate.drift import Drift
from brokerlab.errors import ConfigError, ProposalError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Proposal, read
from brokerlab.report.page import render
from brokerlab.report.proposal_review import Study, check, load, study, write
from tests.unit.gdpconfig import proposal_toys as toys

LATER = toys.NOW + timedelta(days=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "reports"


@pytest.fixture(autouse=True)
def _quick_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing: the chart is tested for itself, and the notebook draws it."""

    def save(_: object, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.svg").write_text("<svg></svg>")

    monkeypatch.setattr("brokerlab.report.proposal_review.pictures.theme.save", save)


def review(root: Path, config: Config = toys.BASE, **how: Any) -> Study:
    """Review a folder under a configuration."""
    file = toys.config_file(root.parent / "now", config)
    root.mkdir(exist_ok=True)
    only_newest = how.pop("only_newest", True)
    found = load(str(root), config=str(file), created_at=LATER, only_newest=only_newest)
    return study(found, created_at=LATER, **how)


def shown(found: Study, root: Path) -> tuple[dict[str, Any], str, Path]:
    """Write a review and render its page."""
    folder = root / "proposal-review" / ".1.unfinished"
    results = write(found, folder)
    return results, render(json.loads((folder / "results.json").read_text()), folder), folder


def sentence(found: Study, root: Path) -> str:
    return shown(found, root)[0]["page"]["verdict"]["sentence"].replace("\u202f", " ")  # type: ignore[no-any-return]


def test_nothing_to_decide(root: Path) -> None:
    results, html, folder = shown(review(root), root)
    verdict = results["page"]["verdict"]
    assert verdict["kind"] == "finding"
    assert verdict["sentence"].startswith("Nothing to decide: there is no proposal in ")
    assert results["page"]["parts"] == []
    assert not (folder / "apply").exists()
    assert "Nothing to decide" in html


def test_the_agenda(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root)
    found = review(root)
    results, html, folder = shown(found, root)
    text = results["page"]["verdict"]["sentence"].replace("\u202f", " ")
    assert text == (
        "Decide on 2 proposals to change 3 keys: SCOUT_RAMCOUNT_RANK 75 → 80 percentile, SCOUT_RAMCOUNT_MARGIN 10 → 6 % "
        "and NQUEUED_SAT_CAP 150 → 200 files. Of 3 effects told 2 lie beyond doubt on the proof periods; the other may "
        "be nothing. They do not exclude each other and can be applied together; what they do together was not measured."
    )
    assert results["numbers"]["n"]["decide"] == 2
    rows = {row["quantity"]: row["certainty"] for row in results["numbers"]["effects"]}
    assert rows == {
        "First attempts killed": "beyond doubt",
        "Slots that can take a task": "may be nothing",
        "Used by finished jobs": "unchanged",
        "Mean waiting": "beyond doubt",
    }
    assert 'href="../../scouts/20261120T090000Z-1/index.html"' in html
    assert "50 to 100" in html  # guard rails
    assert "and 3 more, in the document" in html
    assert "2 (thresholds): Nothing is told of queues or user classes." in html
    assert "UPDATE ATLAS_PANDA.CONFIG" not in html  # every key has its default: they are inserted
    assert html.count("INSERT INTO ATLAS_PANDA.CONFIG") == 6
    assert (folder / "charts" / "effects.svg").is_file()


def test_a_decision_can_be_applied_and_taken_back(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root)
    _, _, folder = shown(review(root), root)
    apply = folder / "apply"
    base = json.loads((apply / "base.json").read_text())
    for name in ("1", "2", "together"):
        there = jsonpatch.apply_patch(base, (apply / f"{name}.patch.json").read_text())
        assert there["digest"] != base["digest"]
        back = jsonpatch.apply_patch(there, (apply / f"{name}-take-back.patch.json").read_text())
        assert back == base
        assert (apply / f"{name}-take-back.sql").read_text().count("\nDELETE") in (1, 2, 3)
    together = read(apply / "together.proposal.json")
    together.verify(toys.BASE)
    assert [source.report for source in together.sources] == ["scouts", "thresholds"]


def test_what_excludes_what(root: Path) -> None:
    toys.scouts(root)
    toys.lay(root, "other", {"SCOUT_RAMCOUNT_RANK": 90})
    found = review(root)
    assert found.merged is None
    results, html, folder = shown(found, root)
    assert "They cannot all be applied: 1 conflict must be settled first." in sentence(found, root)
    assert results["page"]["verdict"]["sentence"].startswith("Decide on 2 proposals to change 2 keys")  # fmt: skip
    (conflict,) = results["numbers"]["conflicts"]
    assert (conflict["first"], conflict["second"]) == ("1 (other)", "2 (scouts)")
    assert "set 90 and set 80" in html
    assert not list((folder / "apply").glob("together*"))
    assert (folder / "apply" / "1.sql").is_file()


def test_a_keep_may_stand_against_a_change(root: Path) -> None:
    toys.scouts(root)
    toys.lay(root, "keeper", keep=["SCOUT_RAMCOUNT_RANK"])
    found = review(root)
    (conflict,) = found.conflicts
    assert {conflict.first, conflict.second} == {"1 (scouts)", "the keep of keeper"}


def test_applied_kept_outdated_and_broken_are_told(root: Path) -> None:
    toys.scouts(root)
    other = Config.from_rows(
        [
            {
                "app": "jedi",
                "component": "dbproxy",
                "key": "SCOUT_CPUTIME_RANK",
                "value": "85",
                "type": "int",
            }
        ]
    )
    toys.lay(root, "keeper", keep=["NW_QUEUE_IMPORTANCE"])
    toys.lay(root, "old", {"SCOUT_CPUTIME_RANK": 95}, config=other)
    applied = toys.caps(root)
    (root / "proposal-cut.json").write_text(applied.read_text()[:400])
    toys.lay(root, "crashed", {"IO_INTENSITY_CUTOFF": 300}, state="failed")
    now = read(applied).applied_to(toys.BASE)
    found = review(root, now)
    assert [len(group) for group in (found.decide, found.kept, found.applied, found.outdated)] == [1, 1, 1, 1]  # fmt: skip
    assert len(found.inputs.broken) == 2
    results, html, _ = shown(found, root)
    assert "Not on the agenda: 1 kept as it is, 1 applied already, 1 made for another configuration and 2 in files that are no sound proposal." in html  # fmt: skip
    assert "made for 85 (update), found 90 from an entry" in html
    assert "is no proper JSON" in html
    assert "the run that wrote it failed afterwards" in html
    assert "others have changed since (jedi/jobbroker/" in html
    assert results["page"]["verdict"]["kind"] == "change"


def test_nothing_that_can_be_decided(root: Path) -> None:
    toys.scouts(root)
    found = review(
        root, Config.empty().with_values({"SCOUT_RAMCOUNT_RANK": 60, "SCOUT_CPUTIME_RANK": 90})
    )
    results, _, _ = shown(found, root)
    assert results["page"]["verdict"]["kind"] == "no_answer"
    assert "is not made for the configuration that acts now: run scouts again." in sentence(found, root)  # fmt: skip


def test_only_keeps_are_a_keep(root: Path) -> None:
    toys.lay(root, "keeper", keep=["NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP"])
    found = review(root)
    results, _, _ = shown(found, root)
    assert results["page"]["verdict"]["kind"] == "keep"
    assert "holds 1 proposal to keep 2 keys." in sentence(found, root)


def test_only_broken_files_are_no_answer(root: Path) -> None:
    root.mkdir()
    (root / "proposal.json").write_text("{}")
    found = review(root)
    assert "1 file in " in sentence(found, root)
    assert shown(found, root)[0]["page"]["verdict"]["kind"] == "no_answer"


def test_later_runs_take_the_place_of_earlier_ones(root: Path) -> None:
    toys.scouts(root)
    toys.lay(root, "scouts", {"SCOUT_RAMCOUNT_RANK": 85}, run="20261121T090000Z-1")
    toys.lay(root, "scouts", {"SCOUT_RAMCOUNT_RANK": 95}, run="20261101T090000Z-1", archive="b")
    found = review(root)
    values = {item.changes[0].new for item in found.decide}
    assert values == {85, 95}  # another archive is another question
    assert len(found.inputs.replaced) == 1
    assert "1 older proposal is not looked at" in shown(found, root)[1]
    assert len(review(root, only_newest=False).decide) == 3


def test_what_a_later_run_did_not_find_again_is_told(root: Path) -> None:
    made = toys.scouts(root)
    toys.lay(root, "scouts", keep=["NQUEUED_SAT_CAP"], run="20261122T090000Z-1", name="proposal-other.json")  # fmt: skip
    html = shown(review(root), root)[1]
    assert "Run 20261122T090000Z-1 of the report, later and with the same parameters, did not propose it again" in html  # fmt: skip
    (made.parents[1] / "20261123T090000Z-1").mkdir()  # no run
    toys.lay(root, "scouts", {"SCOUT_RAMCOUNT_RANK": 85}, run="20261124T090000Z-1")
    assert "did not propose it again" not in shown(review(root), root)[1]


def test_copies_count_once(root: Path) -> None:
    made = toys.scouts(root)
    (root / "proposal-mailed.json").write_text(made.read_text())
    found = review(root)
    assert (len(found.decide), found.inputs.n_copies) == (1, 1)


def test_synthetic_ones_are_not_on_the_agenda_beside_real_ones(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root, synthetic=True)
    found = review(root)
    assert [len(found.decide), len(found.made_up)] == [1, 1]
    results, html, _ = shown(found, root)
    assert not results["page"]["synthetic"]
    assert "1 change from synthetic archives is listed and not put on the agenda" in html


def test_where_all_are_synthetic_the_page_says_so(root: Path) -> None:
    toys.scouts(root, synthetic=True)
    found = review(root)
    assert sentence(found, root).endswith("Made from synthetic archives: not to be set anywhere.")
    assert shown(found, root)[0]["page"]["synthetic"]


def test_whether_they_still_hold(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root)

    def ask(proposal: Proposal) -> Drift:
        if "NQUEUED_SAT_CAP" in {change.key for change in proposal.changes}:
            return Drift("cannot_be_checked", "Cannot be checked: run it again")
        return Drift("does_not_hold", "Does not hold on April: ...")

    found = review(root, later="data/april", ask=ask)
    results, html, _ = shown(found, root)
    assert "Asked again on data/april: 1 cannot be checked and 1 does not hold." in html
    assert "look again" in html
    assert "Whether 2 (thresholds) still holds. Cannot be checked: run it again" in html
    assert [one["drift"]["status"] for one in results["numbers"]["proposals"]] == ["does_not_hold", "cannot_be_checked"]  # fmt: skip


def test_no_effect_and_no_interval(root: Path) -> None:
    toys.scouts(root, effects=(), helps=(), hurts=())
    found = review(root)
    text = sentence(found, root)
    assert "No effect is told: ask for the reports behind them." in text
    html = shown(found, root)[1]
    assert "The document names nobody who gains or loses." in html
    assert "no effect of it is told beyond doubt" in html


def test_a_value_that_cannot_stand_in_sql(root: Path) -> None:
    toys.lay(root, "odd", {"GROUPBYATTR_Express": "a\\b"})
    _, html, folder = shown(review(root), root)
    assert "a backslash or a control character and cannot stand in SQL text" in html
    assert sorted(path.name for path in (folder / "apply").iterdir()) == [
        "1-take-back.json",
        "1-take-back.patch.json",
        "1.json",
        "1.patch.json",
        "base.json",
    ]


def test_a_history_is_looked_at_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    place = {"app": "jedi", "component": "dbproxy", "key": "SCOUT_CPUTIME_RANK", "type": "int"}
    rows = [
        {**place, "value": "80", "valid_to": "2026-06-01"},
        {**place, "value": "90", "valid_from": "2026-06-01"},
    ]
    file.write_text(json.dumps(rows))
    now = load(str(tmp_path), config=str(file), created_at=LATER)
    then = load(str(tmp_path), config=str(file), at="2026-03-01", created_at=LATER)
    assert [one.config.get("SCOUT_CPUTIME_RANK") for one in (now, then)] == [90, 80]
    assert then.at == datetime(2026, 3, 1)


def test_without_a_configuration_the_defaults_act(root: Path) -> None:
    toys.lay(root, "scouts", {"SCOUT_RAMCOUNT_RANK": 80}, config=Config.empty())
    found = study(load(str(root), created_at=LATER), created_at=LATER)
    assert [item.state.word for item in found.decide] == ["applicable"]
    assert "the defaults of the catalogue" in shown(found, root)[1]


def test_wrong_parameters_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"at='soon'.*proposals='none'.*config='nowhere'.*later='l'"
    ):
        check(proposals="none", archive="unused", config="nowhere", at="soon", later="l")
    with pytest.raises(ProposalError, match="there is no such folder"):
        load(str(tmp_path / "none"), created_at=LATER)
