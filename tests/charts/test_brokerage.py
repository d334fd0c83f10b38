"""Every chart of a brokerage replay: fields exist in its data, axes say their unit, it renders, empty ends included."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab.charts import brokerage, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

WORDS = {"finding": "Checks decide", "sample": "n = 12 tasks"}
CHECKS = ["status_offline", "core_count", "rank"]


def shares(**columns):
    n = len(next(iter(columns.values())))
    return pl.DataFrame(
        {
            **columns,
            "share": [0.3] * n,
            "lo": [None] + [0.2] * (n - 1),
            "hi": [None] + [0.4] * (n - 1),
        }
    )


def funnel():
    return shares(check=CHECKS).with_columns(left=pl.Series([0.7, 0.4, 0.1]))


def over_time():
    days = [datetime(2026, 3, 1) + timedelta(days=d) for d in range(5)]
    return shares(time=days * 3, check=[name for name in CHECKS for _ in days])


def reasons():
    levels = ["Express", "MC 16 reco"]
    return shares(level=[level for level in levels for _ in CHECKS], check=CHECKS * 2)


def composition():
    frame = shares(level=["all", "Express"] * 2, factor=["work", "work", "t1", "t1"])
    return frame.with_columns(n_tasks=pl.lit(12))


def history():
    return shares(name=["candidate", "core_count", "rank"])


def sensitivity():
    keys = {"NQUEUED_SAT_CAP": ([10.0, 150.0, 10000.0], 150.0, "log", "files"),
            "DISK_THRESHOLD": ([0.0, 100.0, 1000.0], 100.0, "log", "TB"),
            "NW_QUEUE_IMPORTANCE": ([0.0, 0.5, 1.0], 0.5, "linear", "fraction")}  # fmt: skip
    return pl.concat(
        shares(key=[key] * 3, value=values).with_columns(
            current=pl.lit(current), scale=pl.lit(scale), unit=pl.lit(unit)
        )
        for key, (values, current, scale, unit) in keys.items()
    )


CHARTS = {
    "funnel": (funnel, lambda f: brokerage.funnel_chart(f, removed_title="removed [%]", **WORDS)),
    "over_time": (over_time, lambda f: brokerage.over_time_chart(f, share_title="[%]", **WORDS)),
    "reasons": (reasons, lambda f: brokerage.reasons_chart(f, share_title="[%]", **WORDS)),
    "composition": (composition, lambda f: brokerage.composition_chart(f, **WORDS)),
    "differences": (history, lambda f: brokerage.differences_chart(f, difference_title="pairs [%]", **WORDS)),
    "history": (history, lambda f: brokerage.history_chart(f, chance=0.1, **WORDS)),
    "sensitivity": (sensitivity, lambda f: brokerage.sensitivity_chart(f, share_title="elsewhere [%]", **WORDS)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_encoded_fields_exist_and_axes_have_units(name):
    frame, draw = CHARTS[name]
    spec = draw(frame()).to_dict()
    titles = axis_titles(spec)
    assert all(title.endswith("]") and "[" in title for title in titles)
    assert titles or name == "reasons"
    assert spec["title"]["text"] == ["Checks decide"]
    assert spec["title"]["subtitle"][0].startswith("n = 12 tasks")


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    frame, draw = CHARTS[name]
    svg = theme.save(draw(frame()), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "Checks decide" in svg
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    frame, draw = CHARTS[name]
    with pytest.raises(SchemaError, match="chart data lack share"):
        draw(frame().drop("share"))


def test_values_of_a_key_get_whole_powers_of_ten_as_ticks():
    spec = brokerage.sensitivity_chart(
        sensitivity(), share_title="elsewhere [%]", **WORDS
    ).to_dict()
    axes = [panel["layer"][0]["encoding"]["x"] for panel in spec["concat"]]
    assert axes[0]["axis"]["values"] == [10, 100, 1000, 10000]
    assert axes[1]["axis"]["values"] == [0, 1, 10, 100, 1000]
    assert [axis["scale"]["type"] for axis in axes[:2]] == ["log", "symlog"]
