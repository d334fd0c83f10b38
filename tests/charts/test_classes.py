"""Every chart of classes: fields exist in its data, axes say their unit, it renders, empty ends included."""

from datetime import datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest

from brokerlab.charts import classes, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

WORDS = {"finding": "Queues differ", "sample": "n = 3 queues"}
DAYS = [datetime(2026, 3, 1) + timedelta(days=day) for day in range(4)]


def spells():
    return pl.DataFrame(
        {
            "queue": ["B", "B", "A"],
            "class_name": ["hi", "none", "lo"],
            "start": [DAYS[0], DAYS[1], DAYS[0]],
            "end": [DAYS[1], DAYS[3], DAYS[3]],
        }
    )


def limits():
    kinds = [("percentile 33", "hi", 4000.0), ("percentile 67", "lo", 20_000.0)]
    return pl.concat(
        pl.DataFrame({"time": DAYS}).with_columns(
            name=pl.lit(name), class_name=pl.lit(kind), limit_s=pl.lit(limit)
        )
        for name, kind, limit in kinds
    )


def above():
    times = [60.0, 3600.0, 86_400.0]
    return pl.concat(
        pl.DataFrame({"time_s": times, "share": [1.0, 0.4, 0.0]}).with_columns(
            class_name=pl.lit(name), lo=pl.col("share") * 0.9, hi=pl.col("share")
        )
        for name in ("hi", "lo")
    )


def queues():
    return pl.DataFrame(
        {
            "queue": ["A", "B"],
            "class_name": ["hi", "mid"],
            "w_mean": [100.0, 9000.0],
            "w_cl95upp": [300.0, 999_999.0],
            "sum_of_weights": [5.0, 0.1],
        }
    )


def numbers():
    return pl.DataFrame({"time": DAYS * 2, "class_name": ["S"] * 4 + ["A"] * 4}).with_columns(
        level=pl.lit("User Analysis"), number=pl.lit(2.5)
    )


def usage():
    return pl.DataFrame(
        {"gshare": ["MC", "MC", "Test"], "time": [*DAYS[:2], DAYS[0]], "usage": [0.0, 4.2, None]}
    )


CHARTS = {
    "strip": (spells, lambda f: classes.strip_chart(f, **WORDS)),
    "limits": (limits, lambda f: classes.limits_chart(f, hi_hours=1, lo_hours=0, **WORDS)),
    "waits": (above, lambda f: classes.waits_chart(f, **WORDS)),
    "means": (queues, lambda f: classes.means_chart(f, **WORDS)),
    "stacked": (
        numbers,
        lambda f: classes.stacked_chart(
            f, colours=classes.TASK_COLOURS, number_title="active [tasks]", **WORDS
        ),
    ),
    "usage": (usage, lambda f: classes.usage_chart(f, **WORDS)),
}


@pytest.mark.parametrize("name", CHARTS)
def test_encoded_fields_exist_and_axes_have_units(name):
    frame, draw = CHARTS[name]
    spec = draw(frame()).to_dict()
    titles = axis_titles(spec)
    assert all(title.endswith("]") and "[" in title for title in titles)
    assert titles or name == "strip"
    assert spec["title"]["text"] == ["Queues differ"]


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    frame, draw = CHARTS[name]
    svg = theme.save(draw(frame()), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "Queues differ" in svg
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    frame, draw = CHARTS[name]
    column = frame().columns[0]
    with pytest.raises(SchemaError, match=f"chart data lack {column}"):
        draw(frame().drop(column))


def test_strips_stand_in_the_order_given_and_only_classes_that_are_there_have_a_colour():
    encoding = classes.strip_chart(spells(), **WORDS).to_dict()["encoding"]
    assert encoding["y"]["sort"] == ["B", "A"]
    assert encoding["color"]["scale"]["domain"] == ["hi", "lo", "none"]


def test_hours_that_people_count_in_and_no_line_where_there_is_no_limit():
    spec = classes.limits_chart(limits(), hi_hours=1, lo_hours=0, **WORDS).to_dict()
    assert spec["layer"][1]["encoding"]["y"]["axis"]["values"] == [1, 3]
    rules = spec["datasets"][spec["layer"][0]["data"]["name"]]
    assert [row["class_name"] for row in rules] == ["hi"]


def test_colours_of_classes_differ_in_print():
    """The lightness of neighbours differs: grey copies can be read."""
    for palette, order in (
        (classes.QUEUE_COLOURS, ["hi", "lo", "mid", "none"]),
        (classes.TASK_COLOURS, ["C", "A"]),
    ):
        grey = [sum(int(palette[name][i : i + 2], 16) for i in (1, 3, 5)) / 3 for name in order]
        assert all(b - a > 15 for a, b in pairwise(grey)), grey
