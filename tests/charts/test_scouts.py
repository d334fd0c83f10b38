"""Every chart: fields exist in its data, axes say their unit, it renders; too much data is refused."""

import json
import re

import altair as alt
import polars as pl
import pytest

from brokerlab.charts import scouts, theme
from brokerlab.charts.frames import MAX_ROWS
from brokerlab.errors import SchemaError
from tests.charts import frames
from tests.charts.specs import axis_titles

WORDS = {"finding": "It falls", "sample": "n = 12 tasks"}
CHARTS = {
    "frontier": lambda f: scouts.frontier_chart(
        f, limit=0.02, waste_title="waste [% of used]", **WORDS
    ),
    "strata": lambda f: scouts.strata_chart(f, limit=0.02, **WORDS),
    "coverage": lambda f: scouts.coverage_chart(f, limit=0.02, **WORDS),
    "spread": lambda f: scouts.task_spread_chart(f, ratio_title="request over need [1]", **WORDS),
    "effects": lambda f: scouts.before_after_chart(f, **WORDS),
    "gap": lambda f: scouts.gap_chart(f, **WORDS),
}
FRAMES = {
    "frontier": frames.settings,
    "strata": frames.strata,
    "coverage": frames.coverage,
    "spread": frames.spread,
    "effects": frames.effects,
    "gap": frames.gap,
}


@pytest.mark.parametrize("name", CHARTS)
def test_encoded_fields_exist_and_axes_have_units(name):
    frame = FRAMES[name]()
    spec = CHARTS[name](frame).to_dict()
    assert len(frame) < MAX_ROWS
    titles = axis_titles(spec)
    assert titles
    assert all(re.search(r"\[.+\]$", title) for title in titles), titles


@pytest.mark.parametrize("name", CHARTS)
def test_title_says_the_finding_and_the_sample(name):
    title = CHARTS[name](FRAMES[name]()).to_dict()["title"]
    assert title["text"] == ["It falls"]
    assert title["subtitle"][0].startswith("n = 12 tasks")


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_and_too_many_rows_are_refused(name):
    frame = FRAMES[name]()
    with pytest.raises(SchemaError, match=f"chart data lack {frame.columns[0]}"):
        CHARTS[name](frame.drop(frame.columns[0]))
    with pytest.raises(SchemaError, match="at most 5000: aggregate first"):
        CHARTS[name](pl.concat([frame] * (MAX_ROWS // len(frame) + 1)))


@pytest.mark.parametrize("name", CHARTS)
def test_save_writes_svg_and_specification(name, tmp_path):
    path = theme.save(CHARTS[name](FRAMES[name]()), tmp_path / "charts", name)
    svg = path.read_text()
    assert svg.startswith("<svg")
    assert "It falls" in svg
    assert json.loads(path.with_suffix(".json").read_text())["config"]["font"] == theme.FONT
    assert alt.theme.active != "brokerlab"  # saving leaves the reader's own theme alone


def test_renders_to_png_and_to_offline_html(tmp_path):
    chart = CHARTS["effects"](frames.effects())
    chart.save(str(tmp_path / "x.png"))
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    theme.save(chart, tmp_path, "x", interactive=True)
    html = (tmp_path / "x.html").read_text()
    assert not re.search(r"<(script|link)[^>]+(src|href)=", html)


def test_colours_mean_the_same_everywhere():
    assert (theme.CURRENT, theme.PROPOSED, theme.LIMIT) == ("#6e6e6e", "#0065a8", "#b3261e")
    only = theme.setting_colour(["current"]).to_dict()
    assert only["scale"] == {"domain": ["current"], "range": [theme.CURRENT]}
