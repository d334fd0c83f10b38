"""The review's page: what it says, what it links, what it cannot tell, wrong parameters."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from brokerlab.archive import ArchiveWriter
from brokerlab.calibrate.drift import Drift
from brokerlab.errors import ConfigError, ProposalError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Item, Proposal, dumps, read, write
from brokerlab.report import proposal_review as report
from brokerlab.report.kit import publish
from tests.notebooks.pages import check_page
from tests.unit.gdpconfig import proposal_toys as toys


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _quick_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing: the chart is tested for itself, and the notebook draws it."""

    def save(_: object, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.svg").write_text("<svg></svg>")

    monkeypatch.setattr("brokerlab.charts.theme.save", save)


def params(root: Path, acting: Config = toys.BASE, **more: Any) -> report.Params:
    file = toys.config_file(root.parent / "now", acting)
    given = {"proposals": str(root), "config": str(file), "archive": "", "out_dir": str(root / "proposal-review" / "1")}  # fmt: skip
    return report.Params.checked({**given, **more})


def reviewed(root: Path, acting: Config = toys.BASE, **more: Any) -> tuple[dict[str, Any], str]:
    """Review a folder under a configuration; return what `results.json` holds, and the page."""
    ask = more.pop("ask", None)
    p = params(root, acting, **more)
    config = report.load(p)
    publish(report.page(config, report.study(config, p, ask=ask), p), p)
    folder = Path(p.out_dir)
    return check_page(folder), (folder / "index.html").read_text().replace("\u202f", " ")


def told(stored: dict[str, Any]) -> str:
    return " ".join(stored["page"]["cannot_tell"]).replace("\u202f", " ")


def test_nothing_to_decide(root: Path) -> None:
    stored, html = reviewed(root)
    verdict = stored["page"]["verdict"]
    assert verdict["kind"] == "finding"
    assert verdict["sentence"] == f"Nothing to decide: there is no proposal in {root.as_posix()}."
    assert stored["page"]["parts"] == []
    assert stored["page"]["numbers"] == []
    assert not (root / "proposal-review" / "1" / "apply").exists()
    assert "Nothing to decide" in html


def test_the_agenda(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root)
    stored, html = reviewed(root)
    page = stored["page"]
    assert page["verdict"] == {
        "kind": "change",
        "sentence": "Decide on 2 proposals to change 3 keys.",
        "subject": "",
    }
    assert [number["value"] for number in page["numbers"]] == [3, 2, 0]
    assert [part["title"] for part in page["parts"]] == ["1. scouts", "2. thresholds"]
    assert page["parts"][0]["verdict"]["sentence"].replace("\u202f", " ") == (
        "SCOUT_RAMCOUNT_RANK 75 → 80 percentile and 1 other key: 1 of 2 effects beyond the interval."
    )
    assert stored["values"]["n"]["decide"] == 2
    rows = {row["quantity"]: row["interval"] for row in stored["numbers"]["effects"]}
    assert rows["Slots that can take a task"] == "includes 0"
    assert rows["Used by finished jobs"] == "unchanged"
    rank = stored["numbers"]["agenda"][0]
    assert (rank["minimum"], rank["maximum"]) == (50, 100)
    assert 'href="../../scouts/20261120T090000Z-1/index.html"' in html
    assert 'href="apply/together.sql"' in html
    assert "2 (thresholds): nothing is said of queues or user classes." in told(stored)
    assert "UPDATE ATLAS_PANDA.CONFIG" not in html  # every key has its default: they are inserted
    assert html.count("INSERT INTO ATLAS_PANDA.CONFIG") == 6
    assert "promises" in [chart.stem for chart in (root / "proposal-review/1/charts").iterdir()]


def test_an_end_of_more_than_all_is_explained(root: Path) -> None:
    toys.caps(root)
    assert "below −100 %" not in reviewed(root)[1]
    low = dataclasses.replace(toys.WAITING, proposed=0.4, difference=-4.8, low=-5.6, high=-4.1)
    toys.caps(root, effects=(low,))
    assert "Ends lie below −100 % where the present value is not sure itself." in reviewed(root)[1]


def test_a_right_key_that_moves_within_its_range_is_still_right_and_not_left_alone() -> None:
    names = ("planted", "best", "proposed", "verdict", "label", "trades")
    compared = pl.DataFrame(
        {
            "key": ["SCOUT_RAMCOUNT_RANK", "NW_QUEUE_IMPORTANCE"],
            "wrong": [False, None],
            **{name: ["", ""] for name in names},
            "outcome": ["as good", "nothing planted"],
        }
    )
    part = report._planted_part(compared)
    assert part.verdict.sentence == (
        "0 of 0 wrong settings found, 1 of 1 right one still right, 1 other key changed."
    )
    assert "its change may help" in part.sections["Planted and proposed"][0].note


def test_the_last_section_compares_with_the_truth_of_the_archive(root: Path) -> None:
    """calibration.md 5: the review page compares with the truth at its end, if the archive is synthetic and has it."""
    folder = root.parent / "archive"
    row = {"key": "SCOUT_RAMCOUNT_MARGIN", "component": "dbproxy", "scope": None, "wrong": True}
    row |= {"planted": "10", "best": "6", "best_lo": 5.0, "best_hi": 7.0, "report": "scouts"}
    other = row | {"key": "NQUEUED_SAT_CAP", "wrong": False, "planted": "100", "best": "100"}
    with ArchiveWriter(folder, synthetic=True) as writer:
        writer.write("gdpconfig", toys.BASE.frame())
        writer.write_truth("planted_settings", pl.DataFrame([row, other]).with_columns(trades=pl.lit("Much.")))  # fmt: skip
        digest = writer.commit(sources=[]).digest
    toys.scouts(root, archive_digest=digest, synthetic=True)
    toys.caps(root, archive_digest="of another", synthetic=True)
    stored, html = reviewed(root, archive=str(folder))
    last = stored["page"]["parts"][-1]
    assert last["title"] == "The archive is synthetic: what was planted"
    assert last["verdict"]["sentence"] == (
        "1 of 1 wrong setting found, 1 of 1 right one still right, 1 other key changed."
    )
    outcomes = {line["key"]: line["outcome"] for line in stored["numbers"]["planted_settings"]}
    assert outcomes == {
        "SCOUT_RAMCOUNT_MARGIN": "found",
        "NQUEUED_SAT_CAP": "left alone",
        "SCOUT_RAMCOUNT_RANK": "nothing planted",
    }
    assert stored["values"]["planted"]["found"] == 1
    assert "changed without need" not in html
    assert [line["verdict"] for line in stored["numbers"]["agenda"]] == ["change"] * 3
    stored, _ = reviewed(root)
    assert "planted_settings" not in stored["numbers"]


def test_what_excludes_what(root: Path) -> None:
    toys.scouts(root)
    toys.lay(root, "other", {"SCOUT_RAMCOUNT_RANK": 90})
    stored, html = reviewed(root)
    assert stored["page"]["verdict"]["sentence"] == (
        "Decide on 2 proposals to change 2 keys; 1 conflict to settle first."
    )
    (conflict,) = stored["numbers"]["conflicts"]
    assert (conflict["first"], conflict["second"]) == ("1 (other)", "2 (scouts)")
    assert "set 90 and set 80" in html
    assert stored["values"]["merged"] is None
    apply = root / "proposal-review" / "1" / "apply"
    assert not list(apply.glob("together*"))
    assert (apply / "1.sql").is_file()


def test_what_is_not_to_be_decided_is_listed_with_the_reason(root: Path) -> None:
    toys.scouts(root)
    place = {"app": "jedi", "component": "dbproxy", "key": "SCOUT_CPUTIME_RANK", "type": "int"}
    other = Config.from_rows([{**place, "value": "85"}])
    toys.lay(root, "keeper", keep=["NW_QUEUE_IMPORTANCE"])
    toys.lay(root, "old", {"SCOUT_CPUTIME_RANK": 95}, config=other)
    applied = toys.caps(root)
    (root / "proposal-cut.json").write_text(applied.read_text()[:400])
    stored, html = reviewed(root, read(applied).applied_to(toys.BASE))
    reasons = [row["reason"] for row in stored["numbers"]["rest"]]
    assert reasons == ["kept as it is", "applied already", "made for another configuration", "no sound proposal"]  # fmt: skip
    assert "made for 85 (update), found 90 from an entry" in html
    assert "is no proper JSON" in html
    assert "Other keys have changed since (jedi/jobbroker/" in html
    assert stored["page"]["verdict"]["kind"] == "change"


def test_nothing_that_can_be_decided(root: Path) -> None:
    toys.scouts(root)
    now = Config.empty().with_values({"SCOUT_RAMCOUNT_RANK": 60, "SCOUT_CPUTIME_RANK": 90})
    stored, _ = reviewed(root, now)
    assert stored["page"]["verdict"]["kind"] == "no_answer"
    assert stored["page"]["verdict"]["sentence"] == (
        "1 proposal made for another configuration than the present one: run scouts again."
    )


def test_only_keeps_are_a_keep(root: Path) -> None:
    toys.lay(root, "keeper", keep=["NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP"])
    stored, _ = reviewed(root)
    assert stored["page"]["verdict"]["kind"] == "keep"
    assert stored["page"]["verdict"]["sentence"] == "Nothing to decide: 1 proposal to keep 2 keys."


def test_only_broken_files_are_no_answer(root: Path) -> None:
    (root / "proposal.json").write_text("{}")
    stored, _ = reviewed(root)
    assert stored["page"]["verdict"]["kind"] == "no_answer"
    assert stored["page"]["verdict"]["sentence"].startswith("1 file named like a proposal")


def test_what_a_later_run_did_not_propose_again_is_said(root: Path) -> None:
    toys.scouts(root)
    toys.lay(root, "scouts", keep=["NQUEUED_SAT_CAP"], run="20261122T090000Z-1", name="proposal-other.json")  # fmt: skip
    _, html = reviewed(root)
    assert "Run 20261122T090000Z-1 of the report, later and with the same parameters, did not propose it again" in html  # fmt: skip
    toys.lay(root, "scouts", {"SCOUT_RAMCOUNT_RANK": 85}, run="20261124T090000Z-1")
    stored, html = reviewed(root)
    assert "did not propose it again" not in html
    assert "Older proposals, 1, were not looked at" in told(stored)


def test_synthetic_ones_are_listed_beside_real_ones(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root, synthetic=True)
    stored, _ = reviewed(root)
    assert not stored["page"]["synthetic"]
    assert "Changes from synthetic archives, 1, are listed" in told(stored)


def test_where_all_are_synthetic_the_page_says_so(root: Path) -> None:
    toys.scouts(root, synthetic=True)
    stored, _ = reviewed(root)
    assert stored["page"]["verdict"]["sentence"].endswith("; synthetic, not to be set.")
    assert stored["page"]["synthetic"]


def test_whether_they_still_hold(root: Path) -> None:
    toys.scouts(root)
    toys.caps(root)

    def ask(proposal: Proposal) -> Drift:
        if "NQUEUED_SAT_CAP" in {change.key for change in proposal.changes}:
            return Drift("cannot_be_checked", "Cannot be checked: run it again")
        return Drift("does_not_hold", "Does not hold on April: ...")

    stored, html = reviewed(root, later=str(root), ask=ask)
    rows = {row["report"]: row for row in stored["numbers"]["drift"]}
    assert rows["scouts"]["status"] == "does not hold"
    assert rows["scouts"]["role"] == "look again"
    assert "Cannot be checked: run it again" in html
    assert [row["status"] for row in stored["numbers"]["agenda"]] == ["does not hold", "does not hold", "cannot be checked"]  # fmt: skip
    assert "no later archive was asked" not in told(stored)
    assert len(stored["values"]["drift"]) == 2


def test_no_effect_and_no_interval(root: Path) -> None:
    toys.scouts(root, effects=(), helps=(), hurts=())
    stored, _ = reviewed(root)
    assert "the document names nobody who gains or loses." in told(stored)
    assert "Whether 1 (scouts) changes anything: no interval of its effects excludes 0." in told(stored)  # fmt: skip
    assert stored["page"]["chart"] is None


def test_a_value_that_cannot_stand_in_sql(root: Path) -> None:
    toys.lay(root, "odd", {"GROUPBYATTR_Express": "a\\b"})
    _, html = reviewed(root)
    assert "a backslash or a control character and cannot stand in SQL text" in html
    assert 'href="apply/1.json"' in html


def test_a_history_is_looked_at_when_asked(root: Path) -> None:
    file = root / "history.json"
    place = {"app": "jedi", "component": "dbproxy", "key": "SCOUT_CPUTIME_RANK", "type": "int"}
    rows = [
        {**place, "value": "80", "valid_to": "2026-06-01"},
        {**place, "value": "90", "valid_from": "2026-06-01"},
    ]
    file.write_text(json.dumps(rows))
    latest, then = (report.Params(proposals=str(root), config=str(file), at=at) for at in (None, datetime(2026, 3, 1)))  # fmt: skip
    assert [report.load(p).get("SCOUT_CPUTIME_RANK") for p in (latest, then)] == [90, 80]


def test_without_a_configuration_the_defaults_act(root: Path) -> None:
    toys.lay(root, "scouts", {"SCOUT_RAMCOUNT_RANK": 80}, config=Config.empty())
    stored, html = reviewed(root, archive="", config="")
    assert stored["values"]["n"]["decide"] == 1
    assert "the defaults of the catalogue" in html


def test_wrong_parameters_are_told_at_once(tmp_path: Path) -> None:
    wrong = {"proposals": "none", "config": "nowhere", "at": "soon", "later": "l", "only_new": True}
    with pytest.raises(ConfigError) as caught:
        report.Params.checked(wrong)
    for said in ("proposals='none': there is no such", "config='nowhere'", "at='soon'", "later='l'", "did you mean 'only_newest'"):  # fmt: skip
        assert said in str(caught.value), said
    gone = report.Params.model_construct(**{**report.Params().model_dump(), "proposals": str(tmp_path / "none")})  # fmt: skip
    with pytest.raises(ProposalError, match="there is no such folder"):
        report.study(Config.empty(), gone)


def test_a_proposal_without_a_report_is_called_by_its_file_and_folder() -> None:
    filed: Any = SimpleNamespace(report=None, name="/a/long/way/to/run-7/proposal.json")
    item = Item(group="decide", label="1", filed=filed, state=cast("Any", None))
    assert item.name == "1 (run-7/proposal.json)"


def test_scope_and_measured_coverage_of_a_proposal(root: Path) -> None:
    effect = dataclasses.replace(toys.WAITING, coverage=0.931)
    some = {"filters": {"gshare": "Express"}, "effects": (effect,)}
    toys.lay(root, "limits", {"NQUEUELIMITSITE_Express": 60}, **some)
    toys.lay(root, "keeper", keep=["NW_QUEUE_IMPORTANCE"], filters={"gshare": "Test"})
    stored, html = reviewed(root)
    assert "Measured on tasks with gshare Express only." in html
    assert "tasks with gshare Test only" in html
    assert "Holds the truth in" in html
    assert stored["numbers"]["effects"][0]["coverage"] == 0.931
    assert "-- measured on tasks with gshare Express only" in html
    assert "to change: Mean waiting: 5.2 -&gt; 5.04 h" in html
    assert "until: 14 days of data with the new values" in html


def test_notes_of_a_copy_stand_beside_the_proof(root: Path) -> None:
    path = toys.caps(root)
    noted = read(path).annotated(ticket="ADC-7", approver="<b>Bo</b>")
    write(dumps(noted), root / "proposal-agreed.json")
    stored, html = reviewed(root)
    assert stored["values"]["n"]["copies"] == 1
    assert "ticket: ADC-7; approver: &lt;b&gt;Bo&lt;/b&gt;" in html
    assert 'href="../../thresholds/20261120T090000Z-1/index.html"' in html
    (row,) = stored["numbers"]["proposals"]
    assert (row["ticket"], row["author"], row["approver"]) == ("ADC-7", None, "<b>Bo</b>")
    assert "-- ticket: ADC-7" in html
