"""Every chart of classes: fields exist in its data, axes say their unit, it renders."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab.charts import classes, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

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


def values():
    return pl.DataFrame(
        {
            "what": ["least hi limit 1 h", "least hi limit 2 h"],
            "is_current": [True, False],
            "differs": [0.0, 0.08],
            "differs_lo": [0.0, 0.06],
            "differs_hi": [0.0, 0.1],
        }
    )


def curves():
    times = [60.0, 3600.0, 86_400.0]
    return pl.concat(
        pl.DataFrame({"time_s": times, "share": [1.0, 0.4, 0.0]}).with_columns(
            class_name=pl.lit(name), share_lo=pl.col("share") * 0.9, share_hi=pl.col("share")
        )
        for name in ("hi", "lo", "none")
    )


CHARTS = {
    "spells": (spells, classes.classes_over_time),
    "values": (values, classes.moved_queues),
    "waits": (curves, classes.still_waiting),
}


@pytest.mark.parametrize("name", CHARTS)
def test_encoded_fields_exist_and_axes_have_units(name):
    frame, draw = CHARTS[name]
    titles = axis_titles(draw(frame()).to_dict())
    assert titles or name == "spells"  # has an axis of time alone
    assert all("[" in title and title.endswith("]") for title in titles)


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    frame, draw = CHARTS[name]
    svg = theme.save(draw(frame()), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    frame, draw = CHARTS[name]
    column = {"spells": "queue", "values": "what"}.get(name, "class_name")
    with pytest.raises((SchemaError, pl.exceptions.ColumnNotFoundError), match=column):
        draw(frame().drop(column))


def test_classes_have_the_same_colours_everywhere():
    spans = classes.classes_over_time(spells()).to_dict()
    assert spans["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["hi", "lo", "none"]
    one = curves().filter(class_name="hi")
    drawn = classes.still_waiting(
        pl.concat(one.with_columns(class_name=pl.lit(name)) for name in ("hi", "mid", "lo"))
    )
    scale = drawn.to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
        name: classes.STATES[name] for name in ("hi", "mid", "lo")
    }


def test_waits_at_queues_without_class_are_left_out():
    data = classes.still_waiting(curves()).to_dict()["datasets"]
    assert {row["class_name"] for rows in data.values() for row in rows} == {"hi", "lo"}
