"""Blocks, numbers in text, the writer: what every report relies on."""

import json
from datetime import datetime
from pathlib import Path
from typing import ClassVar

import altair as alt
import polars as pl
import pytest
from pydantic import Field

from brokerlab.charts import primitives
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.report import kit, publishing, rendering
from brokerlab.report.kit import Caveat, Chart, Number, Page, Part, Table, Verdict, say
from brokerlab.words import THIN

ROW = {"kills": 0.012, "kills_lo": 0.009, "kills_hi": 0.016, "n": 1234, "at": datetime(2026, 3, 1)}


class Toy(kit.Basic):
    report: ClassVar[str] = "toy"
    question: ClassVar[str] = "Which?"


def plain(text: str) -> str:
    return text.replace(THIN, "_")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{kills:%}", "1.20 % (0.90 to 1.60)"),
        ("{kills}", "0.0120 (0.0090 to 0.0160)"),
        ("{n} jobs", "1_234 jobs"),
        ("{n:jobs}", "1_234 jobs"),
        ("{kills:.3f}", "0.012"),
        ("{name} at {at}", "A at 2026-03-01 00:00 UTC"),
        ("{none:%}", "unknown"),
        ("{nan:%}", "unknown"),
    ],
)
def test_templates_write_numbers_with_their_intervals(template, expected):
    assert plain(say(template, ROW, name="A", none=None, nan=float("nan"))) == expected


def test_a_name_that_is_not_known_is_an_error():
    with pytest.raises(KeyError, match="kils"):
        say("{kils}", ROW)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((0.0412, 0.0321, 0.0504, "%"), "4.1 (3.2 to 5.0)"),
        ((4.12, 3.21, 5.04, "% of jobs"), "412 (321 to 504)"),
        ((0.5,), "0.5"),
        ((True,), "yes"),
        ((None,), "–"),
        ((float("nan"),), "–"),
        ((3657964404.359, None, None, "%"), ">_9_999"),
        ((-3657964404.359, None, None, "%"), "<_−9_999"),
        (([1, "a"],), "1, a"),
        ((datetime(2026, 3, 1, 4),), "2026-03-01 04:00 UTC"),
    ],
)
def test_cells(args, text):
    assert plain(kit.cell(*args)) == text


def test_shares_are_shown_times_100_unless_the_column_says_pct():
    frame = pl.DataFrame({"name": ["a"], "x": [0.25], "x_pct": [0.25], "n": [8]})
    columns = {"name": "Name", "x": "Share [%]", "x_pct": "Change [%]", "n": "Jobs"}
    (row,) = Table(name="t", frame=frame, caption="", columns=columns).cells()
    assert row == ["a", "25", "0.25", "8"]


def test_a_row_has_its_own_unit_and_counts_have_none():
    frame = pl.DataFrame(
        {
            "label": ["Killed", "Reserved"],
            "unit": ["% of jobs", "GB h"],
            "before": [0.02, 7.5],
            "n": [8, 9],
        }
    )
    columns = {"label": "Quantity", "before": "Current", "n": "Tasks"}
    rows = Table(name="t", frame=frame, caption="", columns=columns, unit="unit").cells()
    assert rows == [["Killed [% of jobs]", "2", "8"], ["Reserved [GB h]", "7.5", "9"]]


def test_numbers_of_the_first_screen():
    assert plain(Number.of(ROW, "kills", label="Killed", unit="%").text) == "1.20_% (0.90 to 1.60)"
    changes = {"diff_pct": -4.1, "diff_pct_lo": -5.0, "diff_pct_hi": -3.2}
    assert (
        plain(Number.of(changes, "diff_pct", label="Reserved", unit="%").text)
        == "−4.1_% (−5.0 to −3.2)"
    )
    assert (Number("Tasks", 12).text, Number("Tasks", None, unit="%").text) == ("12", "–")


def curve_chart(frame: pl.DataFrame) -> alt.Chart:
    return alt.Chart(frame).mark_line().encode(x="x:Q", y="y:Q")


def page() -> Page:
    frame = pl.DataFrame({"x": [1.0, 2.0], "y": [float("nan"), 3.0]})
    texts = pl.DataFrame({"queue": ["=1+1", "+A", "SITE", None], "list": [[1], [2], [], None]})
    return Page(
        verdict=Verdict(kind="keep", sentence="Keep it."),
        chart=Chart(draw=curve_chart, frame=frame.clone(), finding="It rises", sample="n = 2"),
        sections={"First": [Table(name="queues", frame=texts, caption="Queues", columns={"queue": "Queue"}), None], "Empty": [None]},
        parts=[Part(name="part", title="A part", verdict=Verdict(kind="finding", sentence="So."),
                    sections={"More": [Table(name="queues", frame=frame, caption="c", columns={"x": "X"}, most=1)]})],
        caveats=[Caveat(n=0, text="never"), Caveat(n=2, text="twice")],
        also={"large": pl.DataFrame({"n": range(publishing.ROWS_IN_RESULTS + 1)})},
        values={"at": datetime(2026, 3, 1), "odd": float("inf")},
        synthetic=True,
    )  # fmt: skip


def test_everything_is_written_under_its_name(tmp_path: Path):
    results = kit.publish(page(), Toy(out_dir=str(tmp_path)))
    assert json.loads((tmp_path / "results.json").read_text()) == results
    assert set(results["numbers"]) == {"queues", "part_queues", "curve_chart"}
    assert results["numbers"]["part_queues"][0] == {"x": 1.0, "y": None}
    assert results["values"] == {"at": "2026-03-01T00:00:00", "odd": None}
    shown = results["page"]
    assert [section["title"] for section in shown["sections"]] == ["First"]
    assert shown["cannot_tell"] == ["twice"]
    assert shown["parts"][0]["sections"][0]["blocks"][0]["more"] == 1
    files = {path.name for path in (tmp_path / "tables").iterdir()}
    assert {"queues.csv", "part_queues.parquet", "curve_chart.csv", "large.parquet"} <= files
    assert "large.csv" not in files
    html = (tmp_path / "index.html").read_text()
    assert "<summary><h3>" not in html  # the first section of a part is open
    assert "brokerlab report toy" in html
    assert "synthetic data" in html


def test_a_page_that_is_rendered_again_is_the_same(tmp_path: Path):
    frame = pl.DataFrame({"a": ["x", "y"], "n": [1.0, 2.0]})
    options = {"value": "n", "label": "a", "title": "jobs"}
    chart = Chart(draw=primitives.bars, frame=frame, finding="y is longer", options=options)
    page = Page(verdict=Verdict(kind="finding", sentence="Yes."), chart=chart)
    results = kit.publish(page, Toy(out_dir=str(tmp_path)))
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert html.count('<script type="module">') == 1
    assert rendering.render(results, tmp_path) == html


def test_the_script_of_pages_is_bundled_once(monkeypatch: pytest.MonkeyPatch):
    first = rendering._bundle()
    rendering._bundle.cache_clear()
    monkeypatch.setattr("vl_convert.javascript_bundle", None)  # it is on disk
    assert rendering._bundle() == first


def test_empty_cells_are_known_to_the_script_that_sorts(tmp_path: Path):
    frame = pl.DataFrame({"what": ["a", "b"], "by": ["rule", None], "share": [0.5, None]})
    table = Table(name="t", frame=frame, caption="c", columns={"what": "What", "by": "By", "share": "Share [%]"})  # fmt: skip
    verdict = Verdict(kind="finding", sentence="So.")
    kit.publish(Page(verdict=verdict, sections={"All": [table]}), Toy(out_dir=str(tmp_path)))
    html = (tmp_path / "index.html").read_text()
    assert html.count('data-sort=""') == 2  # they come last, text and number alike


def test_names_in_cells_stay_as_they_are(tmp_path: Path):
    names = ["X -5", "U 1,234", "S 5 GB", "G 10 % [GB h]"]
    frame = pl.DataFrame({"queue": names, "user": names[::-1], "n": [-1234.0, 2.0, 3.0, 4.0]})
    columns = {"queue": "Queue", "user": "User", "n": "Jobs"}
    table = Table(name="t", frame=frame, caption="c", columns=columns)
    verdict = Verdict(kind="finding", sentence="So.")
    kit.publish(Page(verdict=verdict, sections={"All": [table]}), Toy(out_dir=str(tmp_path)))
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    for name in names:
        assert html.count(f">{name}</t") == 2
    assert f">−1{THIN}234</td>" in html


def test_no_text_of_a_csv_is_a_formula(tmp_path: Path):
    kit.publish(page(), Toy(out_dir=str(tmp_path)))
    rows = (tmp_path / "tables" / "queues.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["queue", "'=1+1", "'+A", "SITE", ""]
    assert pl.read_parquet(tmp_path / "tables" / "queues.parquet")["queue"][0] == "=1+1"


def test_too_little_data_writes_its_page_and_goes_on(tmp_path: Path):
    @kit.answers
    def load(p: Toy) -> None:
        raise InsufficientDataError("9 tasks, about 60 are needed; ingest more days")

    with pytest.raises(InsufficientDataError):
        load(Toy(out_dir=str(tmp_path)))
    shown = json.loads((tmp_path / "results.json").read_text())["page"]
    assert shown["verdict"] == {
        "kind": "no_answer",
        "sentence": "9 tasks, about 60 are needed.",
        "subject": "",
    }
    (block,) = shown["sections"][0]["blocks"]
    assert block["text"].endswith("ingest more days.")
    long = kit.no_answer("word " * 30)
    assert len(long.verdict.sentence.split()) <= kit.HEADLINE_WORDS


def test_what_has_no_rows_is_not_shown_and_a_table_wins_over_a_frame_of_its_name(tmp_path: Path):
    frame = pl.DataFrame({"a": ["x"], "n": [1.0]})
    none = Table(name="none", frame=frame.clear(), caption="c", columns={"a": "A"})
    some = Table(name="some", frame=frame, caption="c", columns={"a": "A"})
    drawn = Chart(draw=curve_chart, frame=frame.clear(), finding="Nothing to see")
    page = Page(
        verdict=Verdict(kind="finding", sentence="Yes."),
        chart=drawn,
        sections={"Empty": [none, drawn], "Full": [none, some]},
        also={"some": frame.clear(), "same": frame},
    )
    results = kit.publish(page, Toy(out_dir=str(tmp_path)))
    (section,) = results["page"]["sections"]
    assert [block["name"] for block in section["blocks"]] == ["some"]
    assert results["page"]["chart"] is None
    assert results["numbers"] == {"none": [], "some": [{"a": "x", "n": 1.0}]}  # once


def test_caveats_know_how_many_make_them_so():
    assert Caveat.of(1, "{n:#queue} of {all}", all=3) == Caveat(1, "1 queue of 3")


def test_a_folded_part_opens_on_a_click_and_is_not_on_the_first_screen(tmp_path: Path):
    verdict = Verdict(kind="finding", sentence="So.")
    rest = Verdict(kind="finding", sentence="Of no matter now.")
    parts = [
        Part(name="first", title="First", verdict=verdict, sections={"All": ["Text."]}),
        Part(name="rest", title="Rest", verdict=rest, sections={"All": ["Text."]}, folded=True),
    ]
    kit.publish(Page(verdict=verdict, parts=parts), Toy(out_dir=str(tmp_path)))
    html = (tmp_path / "index.html").read_text()
    assert '<details id="rest" class="part">' in html
    assert '<section id="first" class="part"' in html
    assert html.count("Of no matter now.") == 1
    assert html.count("<details") == html.count("</details>")


def test_a_period_that_ends_before_it_starts_is_refused() -> None:
    day = {"start": "2026-03-05", "end": "2026-03-05"}
    assert kit.Dated.checked(day).start == kit.Dated.checked(day).end == datetime(2026, 3, 5)
    with pytest.raises(
        ConfigError, match=r"^start=2026-03-05 .*end=2026-03-02 .*before the start$"
    ):
        kit.Dated.checked({**day, "end": "2026-03-02"})


def test_a_path_is_read_as_text_and_a_number_must_be_finite() -> None:
    assert Toy.checked({"archive": Path("data") / "mine"}).archive == str(Path("data") / "mine")

    class Scaled(kit.Basic):
        scales: list[float] = Field([1.0])

    with pytest.raises(ConfigError, match=r"scales\[1\]='inf': must be a finite number"):
        Scaled.checked({"scales": "1,inf"})
