"""Every chart of waiting: fields exist in its data, axes say their unit, it renders, empty ends included."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab.charts import theme, waiting
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

WORDS = {"finding": "Rules fire", "sample": "n = 12 jobs"}


def ends(frame, *names):
    columns = [pl.col(name) * factor for name in names for factor in (0.5, 2)]
    labels = [f"{name}_{end}" for name in names for end in ("lo", "hi")]
    return frame.with_columns(c.alias(label) for c, label in zip(columns, labels, strict=True))


def firing():
    frame = pl.DataFrame({"name": ["activated", "sent"], "jobs": [30.0, 2.0], "words": ["30 jobs", "2"]})  # fmt: skip
    return frame.with_columns(lo=pl.Series([10.0, None]), hi=pl.Series([70.0, None]))


def over_time():
    days = [datetime(2026, 3, 1) + timedelta(days=d) for d in range(4)]
    frame = pl.DataFrame({"rule": ["activated"] * 4 + ["sent"] * 4, "time": days * 2})
    return ends(frame.with_columns(jobs=pl.int_range(pl.len()).cast(pl.Float64)), "jobs")


def outcomes():
    names = list(waiting.OUTCOMES)
    return pl.DataFrame({"name": "activated", "outcome": names, "share": [0.2] * len(names)})


def limits():
    scales = [0.25, 0.5, 1.0, 2.0]
    frame = pl.DataFrame({"rule": ["activated"] * 4 + ["sent"] * 4, "scale": scales * 2})
    numbers = frame.with_columns(soon=40 / pl.col("scale"), after_h=4000 / pl.col("scale"))
    texts = pl.Series(["12 h", "24 h", "", "4 d"] * 2)
    return ends(numbers, "soon", "after_h").with_columns(limit=texts)


def instants():
    return pl.DataFrame({"at": [datetime(2026, 3, d) for d in range(1, 5)], "to_move": [0, 4, 9, 0]})  # fmt: skip


def keys():
    frame = pl.DataFrame({"key": ["FAST_REBRO_THRESHOLD_NQNR_RATIO"] * 3, "value": [1.5, 3, 6]})
    told = frame.with_columns(unit=pl.lit("ratio"), current=pl.lit(3.0), to_move=9 - pl.col("value"))  # fmt: skip
    return ends(told, "to_move")


CHARTS = {
    "firing": (firing, lambda f: waiting.firing_chart(f, jobs_title="timed out [jobs]", **WORDS)),
    "over_time": (over_time, lambda f: waiting.over_time_chart(f, jobs_title="[jobs]", **WORDS)),
    "outcomes": (outcomes, lambda f: waiting.outcomes_chart(f, **WORDS)),
    "limits": (limits, lambda f: waiting.limits_chart(f, **WORDS)),
    "instants": (instants, lambda f: waiting.instants_chart(f, **WORDS)),
    "keys": (keys, lambda f: waiting.keys_chart(f, **WORDS)),
}


@pytest.mark.parametrize("name", CHARTS)
def test_encoded_fields_exist_and_axes_have_units(name):
    frame, draw = CHARTS[name]
    spec = draw(frame()).to_dict()
    titles = axis_titles(spec)
    assert titles
    assert all(title.endswith("]") and "[" in title for title in titles)
    assert spec["title"]["text"] == ["Rules fire"]


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    frame, draw = CHARTS[name]
    svg = theme.save(draw(frame()), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "Rules fire" in svg
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    frame, draw = CHARTS[name]
    with pytest.raises(SchemaError, match="chart data lack"):
        draw(frame().drop(frame().columns[-1]))


def test_steps_begin_at_their_time_and_the_last_one_has_its_width():
    chart = waiting.over_time_chart(over_time(), jobs_title="[jobs]", **WORDS).to_dict()
    marks = [layer["mark"] for panel in chart["concat"] for layer in panel["layer"]]
    assert {mark["interpolate"] for mark in marks} == {"step-after"}
    for rows in chart["datasets"].values():
        assert max(row["time"] for row in rows).startswith("2026-03-05")
