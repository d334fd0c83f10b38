"""Every chart of workflows: fields exist in its data, axes say their unit, it renders."""

import polars as pl
import pytest

from brokerlab.charts import theme, workflows
from brokerlab.errors import SchemaError
from tests.charts.specs import units

WORDS = {"finding": "Grouping wins", "sample": "n = 12 runs"}


def where():
    rows = [(r, w, s, 0.5 + i, f"×{0.5 + i:.2f}", "pilots")
            for r in ("paper", "notes") for w in ("blast", "soykb") for i, s in enumerate(("KTH, easy", "LCG, easy"))]  # fmt: skip
    return pl.DataFrame(rows, schema=["rules", "workflow", "system", "ratio", "words", "more"], orient="row")  # fmt: skip


def turnarounds():
    rows = [(w, s, r, 1.0, 2.0, 3.0, 4.0, 50.0, 0.5) for w in ("blast", "soykb") for s, r in (("one job", "other"), ("grouping (paper)", "paper"))]  # fmt: skip
    columns = ["workflow", "strategy", "role", "p10", "p25", "p50", "p75", "p90", "dedicated_h"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def waits():
    rows = [(p, s, run, run * 0.5, run * 2) for p in ("KTH", "LCG") for s in ("1 host", "all") for run in (0.1, 1.0, 10.0)]  # fmt: skip
    return pl.DataFrame(rows, schema=["panel", "size", "run_h", "p50", "p75"], orient="row")


def gantt():
    rows = [("one job", "P0: levels 1 to 3", "waits", 0.0, 2.0, 3.0), ("one job", "P0: levels 1 to 3", "runs", 2.0, 3.0, 3.0),
            ("job per task", "level 1", "cancelled", 0.0, 1.0, 1.0)]  # fmt: skip
    return pl.DataFrame(rows, schema=["strategy", "line", "phase", "begin_h", "end_h", "end_all_h"], orient="row")  # fmt: skip


def rules():
    return pl.DataFrame({"place": ["blast, KTH", "soykb, LCG"], "ratio": [9.0, 0.5], "lo": [5.0, None], "hi": [12.0, None]})  # fmt: skip


CHARTS = {
    "where": (where, workflows.where_chart),
    "turnarounds": (turnarounds, workflows.turnarounds_chart),
    "waits": (waits, workflows.waits_chart),
    "gantt": (gantt, workflows.gantt_chart),
    "rules": (rules, workflows.rules_chart),
}


@pytest.mark.parametrize("name", CHARTS)
def test_fields_exist_and_axes_have_units(name):
    frame, draw = CHARTS[name]
    spec = draw(frame(), **WORDS).to_dict()
    titles = set()
    for encoding, data in units(spec):
        fields = set(spec["datasets"][data][0])
        for channel, definition in encoding.items():
            if isinstance(definition, dict) and "field" in definition:
                assert definition["field"] in fields, (channel, definition)
            if isinstance(definition, dict) and definition.get("type") == "quantitative" and definition.get("title"):  # fmt: skip
                titles.add(definition["title"])
    assert titles or name == "where"  # a table of words has no axis
    assert all(title.endswith("]") and "[" in title for title in titles)
    assert spec["title"]["text"] == ["Grouping wins"]


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    frame, draw = CHARTS[name]
    svg = theme.save(draw(frame(), **WORDS), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "Grouping wins" in svg
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    frame, draw = CHARTS[name]
    with pytest.raises(SchemaError, match="chart data lack"):
        draw(frame().drop(frame().columns[-1]), **WORDS)
