"""The review notebook as it is run: on the proposals of two reports, its page, and wrong parameters."""

import pytest

from brokerlab.archive import ArchiveWriter
from brokerlab.gdpconfig.proposal import find
from brokerlab.report import run
from tests.notebooks.pages import check_page
from tests.unit.gdpconfig import proposal_toys as toys


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder of reports with two proposals, and the archive whose configuration acts."""
    folder = tmp_path_factory.mktemp("review")
    toys.scouts(folder / "reports")
    toys.caps(folder / "reports")
    with ArchiveWriter(folder / "archive") as writer:
        writer.write("gdpconfig", toys.BASE.frame())
        writer.commit(sources=[])
    return folder


@pytest.fixture(scope="module")
def done(root):
    given = {"proposals": str(root / "reports"), "archive": str(root / "archive")}
    return run("proposal-review", given, out_root=root / "reports", run_id="week-12")


def test_the_agenda_and_its_statements(done):
    stored = check_page(done.folder)
    assert stored["page"]["verdict"]["kind"] == "change"
    assert stored["values"]["n"] == {
        "decide": 2, "kept": 0, "applied": 0, "outdated": 0, "synthetic": 0, "broken": 0, "replaced": 0, "copies": 0,
        "conflicts": 0,
    }  # fmt: skip
    assert [row["label"] for row in stored["numbers"]["proposals"]] == ["1", "2"]
    assert (done.folder / "apply" / "together.sql").is_file()
    assert done.manifest["digests"]["proposals"].count("sha256:") == 2


def test_links_lead_to_the_reports_that_prove(done):
    html = done.page.read_text()
    for report in ("scouts", "thresholds"):
        href = f"../../{report}/20261120T090000Z-1/index.html"
        assert f'href="{href}"' in html
        assert (done.folder / href).is_file()
    assert 'href="apply/together.sql"' in html


def test_it_proposes_nothing_itself(done, root):
    assert done.manifest["proposals"] == []
    assert {one.report for one in find(root / "reports")} == {"scouts", "thresholds"}
    given = {"proposals": str(root / "reports"), "archive": str(root / "archive")}
    assert run("proposal-review", given, out_root=root / "reports", run_id="week-12").reused
