"""The scout percentile report on a small synthetic archive: its numbers, page, tables and failures."""

import os
from datetime import datetime
from pathlib import Path

import papermill
import polars as pl
import pytest

from brokerlab import archive as archives
from brokerlab.archive.ingestion import ingest
from brokerlab.calibrate.percentiles import PARAMETERS
from brokerlab.calibrate.percentiles.history import load
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import loads
from brokerlab.report import find, run
from brokerlab.report import scout_percentiles as report
from brokerlab.report.kit import publish
from brokerlab.scouts import ScoutRules
from tests.notebooks import pages
from tests.notebooks.pages import check_page

KINDS = {"change", "improve", "keep", "no_answer"}


@pytest.fixture(scope="module")
def done(archive, tmp_path_factory):
    """One run with every default but the number of replicates."""
    root = tmp_path_factory.mktemp("reports")
    return run("scout-percentiles", {"archive": str(archive), "n_boot": "300"}, out_root=root)


@pytest.fixture(scope="module")
def stored(done):
    return check_page(done.folder)


def row_of(rows, **wanted):
    (row,) = [r for r in rows if all(r[name] == value for name, value in wanted.items())]
    return row


def test_every_parameter_has_an_answer(stored):
    page = stored["page"]
    assert [part["name"] for part in page["parts"] if part["folded"]] == [
        "retries",
        "stops",
    ]
    assert {part["name"] for part in page["parts"]} == {*PARAMETERS, "retries", "stops"}
    assert {part["verdict"]["kind"] for part in page["parts"] if not part["folded"]} <= KINDS
    assert page["verdict"] == page["parts"][0]["verdict"]
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The archive is synthetic")


def test_what_became_of_stopped_tasks_adds_up(stored):
    (stops,) = [part for part in stored["page"]["parts"] if part["name"] == "stops"]
    rows = stored["numbers"]["stops_stops"]
    assert [row["check"][:3].strip() for row in rows] == [*(f"X{i}" for i in range(1, 8)), "Any"]
    for row in rows:
        assert row["n_stopped"] + row["n_passed"] + row["n_unknown"] == row["n_tasks"]
        assert row["n_stopped"] <= rows[-1]["n_stopped"]
    assert rows[-1]["n_stopped"] > 0
    assert stops["verdict"]["sentence"].startswith(f"{rows[-1]['n_stopped']} tasks would be")


def test_numbers_agree_with_each_other(stored):
    numbers = stored["numbers"]
    assert stored["values"]["ramcount"]["current"] == [75, 10, None]
    tasks = pl.DataFrame(numbers["ramcount_tasks"])
    line = {row["quantity"]: row for row in numbers["ramcount_compared"]}
    for side in ("before", "after"):
        killed = (tasks[side] * tasks["n_scored"]).sum()
        assert line["exceed_rate_jobs"][side] == pytest.approx(killed / tasks["n_scored"].sum())
        assert line["n_exceed"][side] == pytest.approx(killed)
        parts = [line[f"{name}_gbh"][side] for name in ("used", "over", "waste")]
        assert line["reserved_gbh"][side] == pytest.approx(sum(parts))
    by_type = [r for r in numbers["ramcount_strata"] if r["stratum"] == "processingtype"]
    assert sum(row["n_scored"] for row in by_type) == tasks["n_scored"].sum()
    blocks = numbers["ramcount_blocks"]
    assert sum(row["n_tasks"] for row in blocks[1:]) == tasks.height
    assert blocks[0]["chosen"] is None


def test_one_interval_for_one_number(stored):
    """What the judge says of loss and kills reads the same in every table."""
    for name in PARAMETERS:
        for quantity in ("loss", "exceed_rate"):
            judged = row_of(stored["numbers"][f"{name}_judged"], quantity=quantity)
            shown = row_of(stored["numbers"][f"{name}_before_after"], quantity=quantity)
            for key in ("before", "after", "diff"):
                for end in ("", "_lo", "_hi"):
                    assert shown[f"{key}{end}"] == pytest.approx(judged[f"{key}{end}"])


def test_recorded_kills_overlap_and_rules_are_in_the_results(stored):
    values = [stored["values"][name] for name in ("ramcount", "cputime", "outdiskcount")]
    assert values[0]["counts"]["n_kills"] > 0
    assert stored["digests"]["rules"] == ScoutRules().digest
    n = max(one["n_overlapping"] for one in values)
    assert n > 0
    assert f"{n} jobs ended after the next choice" in " ".join(
        stored["page"]["cannot_tell"]
    ).replace("\u202f", "")


def test_what_is_not_shown_is_written(stored):
    for name in ("tasks", "gap", "candidates"):
        assert stored["numbers"][f"ramcount_{name}"]


def test_tables_and_charts(done):
    settings = pl.read_parquet(done.folder / "tables" / "ramcount_settings.parquet")
    assert settings.height == 50 * 31
    assert (done.folder / "tables" / "ramcount_settings.csv").exists()
    names = {path.stem for path in (done.folder / "charts").glob("*.svg")}
    assert {"frontier", "ramcount_coverage"} <= names | {
        name.replace("cputime", "ramcount").replace("outdiskcount", "ramcount") for name in names
    }
    assert {path.stem for path in (done.folder / "charts").glob("*.json")} == names


def test_proposals_fit_the_configuration_of_the_archive(done, archive):
    config = Config.from_frame(archives.open(archive).gdpconfig)
    for part in done.results["page"]["parts"]:
        path = done.folder / f"proposal-{part['name']}.json"
        wanted = part["verdict"]["kind"] != "no_answer" and part["name"] in ("ramcount", "cputime")
        assert path.exists() == wanted
        if wanted:
            proposal = loads(path.read_text())
            proposal.verify(config)
            acts = part["verdict"]["kind"] in ("change", "improve")
            assert proposal.kind == ("change" if acts else "keep")
            assert proposal.evidence.filters == {}
            assert proposal.evidence.synthetic
            assert proposal.digests.rules == ScoutRules().digest


@pytest.mark.long
def test_papermill_alone_writes_the_same_page(stored, archive, tmp_path):
    papermill.execute_notebook(
        find.notebook("scout-percentiles"),
        tmp_path / "out.ipynb",
        parameters={
            "archive": str(archive),
            "n_boot": 300,
            "parameter": "ramcount",
            "out_dir": str(tmp_path / "out"),
        },
        progress_bar=False,
        kernel_name="python3",
    )
    again = check_page(tmp_path / "out")
    assert [part["name"] for part in again["page"]["parts"]] == [
        "ramcount",
        "retries",
        "stops",
    ]
    for name in ("ramcount_settings", "ramcount_compared", "ramcount_strata"):
        assert again["numbers"][name] == stored["numbers"][name]


def test_filters_and_too_little_data_give_no_answer(archive, tmp_path):
    asked = {"processingtype": "merge", "parameter": "ramcount"}
    pages.run(report, report.Params(archive=str(archive), out_dir=str(tmp_path), **asked))
    page = check_page(tmp_path)["page"]
    assert page["verdict"]["kind"] == "no_answer"
    assert {"label": "Filter", "value": "tasks with processingtype merge only"} in page["made"][
        "facts"
    ]


def test_another_look_at_the_same_archive_is_said(archive, tmp_path):
    """The same question under several limits is several questions; what they study does not matter here."""
    asked = {"archive": str(archive), "parameter": "outdiskcount", "n_boot": 20}
    data = report.load(report.Params(**asked))
    study = report.study(data, report.Params(**asked))

    def looks(name, **how):
        p = report.Params(out_dir=str(tmp_path / name), **asked | how)
        publish(report.page(data, study, p), p)
        told = check_page(tmp_path / name)["page"]["cannot_tell"]
        return [text.split(": ")[1][0] for text in told if text.startswith("Asked before of this")]

    assert looks("first") == []
    assert looks("again", seed=2) == []
    assert looks("strict", alpha=0.01) == ["1"]
    assert looks("loose", alpha=0.05) == ["2"]


def test_wrong_parameters_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(ConfigError) as caught:
        run(
            "scout-percentiles",
            {"gshares": "x", "alpha": 2, "ranks": "99,50", "loss": '{"ovr": 1}'},
            out_root=tmp_path,
        )
    for message in (
        "unknown parameter 'gshares': did you mean 'gshare'",
        "alpha=2: must be less",
        "ranks=",
        "'ovr'",
    ):
        assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_filter_that_leaves_nothing_is_said(archive, tmp_path):
    with pytest.raises(InsufficientDataError) as caught:
        load(archive, gshare="Nope", start=datetime(2026, 1, 1))
    assert str(caught.value) == (
        "no task with finished jobs among those asked for (created from 2026-01-01 00:00:00, gshare Nope)"
    )
    with pytest.raises(InsufficientDataError):
        pages.run(report, report.Params(archive=str(archive), gshare="Nope", out_dir=str(tmp_path)))
    assert check_page(tmp_path)["page"]["verdict"]["kind"] == "no_answer"


REAL = (
    Path(os.environ.get("BROKERLAB_DATA", Path(__file__).parents[3] / "shared" / "data"))
    / "panda-invex-jobs"
)


@pytest.mark.real_data
@pytest.mark.skipif(not REAL.is_dir(), reason="real data 'panda-invex-jobs' is not here")
def test_real_tasks_are_described_and_prove_nothing(tmp_path):
    """Four tasks: what happened in each is written, and no answer is claimed."""
    ingest(sorted(REAL.glob("*.csv.gz")), tmp_path / "real")
    pages.run(report, report.Params(archive=str(tmp_path / "real"), out_dir=str(tmp_path / "out")))
    stored = check_page(tmp_path / "out")
    kinds = {part["verdict"]["kind"] for part in stored["page"]["parts"]}
    assert kinds == {"no_answer"}
    assert stored["page"]["synthetic"] is False
    rows = {row["jeditaskid"]: row for row in stored["numbers"]["ramcount_tasks"]}
    assert sorted(rows) == [13332803, 13776794, 14287024, 15350577]
    assert rows[15350577]["n_scored"] == 10_558
    assert list((tmp_path / "out").glob("proposal*.json")) == []
    assert any("Only 4 tasks can be scored" in text for text in stored["page"]["cannot_tell"])
