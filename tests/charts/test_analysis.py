"""Every chart of the replay of user tasks: fields exist in its data, axes say their unit, it renders."""

import polars as pl
import pytest

from brokerlab.charts import analysis, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

WORDS = {"finding": "Caps hold back", "sample": "n = 12 users"}
CHECKS = ["data_locality", "cpucore", "low_weight"]


def with_shares(frame):
    n = frame.height
    ends = {"lo": [None] + [0.2] * (n - 1), "hi": [None] + [0.4] * (n - 1)}
    return frame.with_columns(share=pl.lit(0.3), **{k: pl.Series(v) for k, v in ends.items()})


def loops():
    frame = pl.DataFrame({"loop": ["with locality"] * 3 + ["without"] * 3, "check": CHECKS * 2})
    return with_shares(frame).with_columns(left=pl.Series([0.7, 0.4, 0.1, 0.7, 0.4, -1e-17]))


def limits():
    numbers = ("max_q_len_lo", "max_q_len", "max_q_len_hi", "u_queued_hi", "nq")
    rows = {name: [0.0, 5.0 + place] for place, name in enumerate(numbers)}
    return pl.DataFrame({"queue": ["A", "B"], **rows, "words": ["0 % can", "20 % can"]})


def classes():
    rows = [
        (level, part, weight)
        for part in ("at hi queues", "at lo queues")
        for level in ("all", "S")
        for weight in ("old", "new")
    ]
    return with_shares(pl.DataFrame(rows, schema=["level", "part", "weight"], orient="row"))


def lorenz():
    names = ["asked for", "placed", "used"]
    return pl.DataFrame(
        {"quantity": [name for name in names for _ in range(3)], "users": [0.0, 0.5, 1.0] * 3, "part": [0.0, 0.2, 1.0] * 3}
    )  # fmt: skip


def dots():
    return pl.DataFrame(
        {"name": ["S", "A"], "value": [1.0, 2.0], "lo": [None, 1.5], "hi": [None, 2.5]}
    )


CHARTS = {
    "loops": (loops, lambda f: analysis.loops_chart(f, removed_title="removed [%]", **WORDS), "share"),
    "limits": (limits, lambda f: analysis.limits_chart(f, jobs_title="waiting [jobs]", **WORDS), "nq"),
    "classes": (classes, lambda f: analysis.classes_chart(f, share_title="jobs [%]", **WORDS), "share"),
    "lorenz": (lorenz, lambda f: analysis.lorenz_chart(f, **WORDS), "part"),
    "dots": (dots, lambda f: analysis.dots_chart(f, value_title="wait [h]", **WORDS), "value"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_encoded_fields_exist_and_axes_have_units(name):
    frame, draw, _ = CHARTS[name]
    spec = draw(frame()).to_dict()
    titles = axis_titles(spec)
    assert titles
    assert all(title.endswith("]") and "[" in title for title in titles)
    assert spec["title"]["text"] == ["Caps hold back"]
    assert spec["title"]["subtitle"][0].startswith("n = 12 users")


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    frame, draw, _ = CHARTS[name]
    svg = theme.save(draw(frame()), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "Caps hold back" in svg
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    frame, draw, column = CHARTS[name]
    with pytest.raises(SchemaError, match=f"chart data lack {column}"):
        draw(frame().drop(column))


def test_colours_of_the_weights_mean_what_they_mean_everywhere():
    assert analysis.SIDES["old"][0] == theme.CURRENT
    assert analysis.SIDES["new"][0] == theme.PROPOSED


def test_nothing_left_is_not_written_with_a_minus_sign():
    spec = analysis.loops_chart(loops(), removed_title="removed [%]", **WORDS).to_dict()
    words = {row["words"] for rows in spec["datasets"].values() for row in rows if "words" in row}
    assert "30 % → 0.0 %" in words
