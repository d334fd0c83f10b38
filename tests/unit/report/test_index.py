"""The index is rebuilt from the runs, lists damaged ones, and works without JavaScript."""

import json
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from brokerlab.report import index, run

VOID = {"meta", "br", "wbr", "link", "input", "img", "hr"}


def put_run(root, report, run_id, kind="keep", started="2026-03-01T10:00:00+00:00", **page):
    folder = root / report / run_id
    folder.mkdir(parents=True)
    verdict = {"kind": kind, "sentence": f"{kind} <it> & go", "subject": "ramCount"}
    other = {"kind": "no_answer", "sentence": "9 tasks.", "subject": "cpuTime"}
    parts = [{"name": "a", "verdict": verdict}, {"name": "b", "verdict": other}]
    content = {"question": "Which rank?", "verdict": verdict, "parts": parts}
    content |= {"archive": "", "window": "", "synthetic": False} | page
    (folder / "results.json").write_text(json.dumps({"page": content}))
    (folder / "manifest.json").write_text(json.dumps({"state": "finished", "started": started}))
    (folder / "index.html").write_text("page")
    return folder


class Balanced(HTMLParser):
    """Collects elements and complains about tags that do not match."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        self.links += [value for name, value in attrs if name in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parse(html):
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    return parser


def test_newest_first_with_verdict_window_archive_state(tmp_path):
    put_run(tmp_path, "scouts", "20260301T100000Z-aa", archive="demo", synthetic=True, window="w")
    put_run(tmp_path, "other", "20260302T100000Z-bb", "change", "2026-03-02T10:00:00+00:00")
    path = index.rebuild(tmp_path)
    newest, oldest = json.loads((tmp_path / "index.json").read_text())["runs"]
    assert newest["kind"] == "change"
    assert newest["kinds"] == ["change", "no_answer"]
    assert oldest["page"] == "scouts/20260301T100000Z-aa/index.html"
    assert (oldest["archive"], oldest["synthetic"], oldest["window"]) == ("demo", True, "w")
    html = path.read_text()
    rows = [attrs for tag, attrs in parse(html).seen if "data-report" in attrs]
    assert [row["data-report"] for row in rows] == ["other", "scouts"]
    assert rows[0]["data-kinds"] == "change no_answer"
    assert "hidden" not in rows[0]
    assert html.count('class="badge"') == 1
    assert "keep &lt;it&gt; &amp; go" in html


def test_damaged_runs_are_shown(tmp_path):
    put_run(tmp_path, "scouts", "20260301T100000Z-aa")
    broken = put_run(tmp_path, "scouts", "20260303T100000Z-cc")
    (broken / "manifest.json").write_text('{"state": ')
    (tmp_path / "scouts" / "not-a-run").mkdir()
    (tmp_path / "scouts" / ".20260304T100000Z-dd.unfinished").mkdir()
    index.rebuild(tmp_path)
    runs = json.loads((tmp_path / "index.json").read_text())["runs"]
    assert [(r["run_id"], r["state"]) for r in runs] == [
        ("20260303T100000Z-cc", "damaged"),
        ("20260301T100000Z-aa", "finished"),
        ("not-a-run", "damaged"),
    ]
    assert runs[0]["date"] == "2026-03-03T10:00:00+00:00"
    assert runs[2]["page"] is None
    assert "Damaged" in (tmp_path / "index.html").read_text()


def test_empty_and_offline(tmp_path):
    html = index.rebuild(tmp_path).read_text()
    assert "No report has been run yet" in html
    assert not [link for link in parse(html).links if "://" in link]


@pytest.mark.usefixtures("in_process")
def test_cards_show_the_chart_and_the_main_number_over_the_runs(notebooks, tmp_path):
    for day in (1, 2, 3):
        at = datetime(2026, 3, day, tzinfo=UTC)
        run("toy", {"rank": 70 + day}, out_root=tmp_path, notebooks=notebooks, at=at)
    entries = index.entries(tmp_path)
    assert entries[0]["number"] == {
        "label": "reserved",
        "value": -0.0412,
        "text": "−4.1 % (−5.0 to −3.2)".replace(" %", "\u202f%"),
    }
    assert (tmp_path / entries[0]["thumbnail"]).name == "curve.svg"
    (trend,) = index.trends(entries)
    assert (trend["report"], trend["n"], len(trend["points"].split())) == ("toy", 3, 3)
    html = (tmp_path / "index.html").read_text()
    assert html.count("<img ") == 3
    assert "3 runs, newest first: 3 keep." in html
    card = html.partition("<li class=")[2]
    assert card.index(">Keep<") < card.index("Which rank?"), "the verdict stands first"
    assert "<polyline" in html
    assert index.trends(entries[:1]) == []
