"""Every primitive: fields exist in its data, axes say their unit, it renders; wrong data are refused; red is the limit."""

import json
from datetime import datetime, timedelta

import altair as alt
import polars as pl
import pytest

from brokerlab.charts import primitives, theme
from brokerlab.errors import SchemaError

N = 12
NUMBERS = pl.DataFrame(
    {
        "x": [float(i + 1) for i in range(N)],
        "y": [0.1 + 0.05 * i for i in range(N)],
        "y_lo": [0.05 + 0.05 * i for i in range(N)],
        "y_hi": [0.2 + 0.05 * i for i in range(N)],
        "setting": ["current", "proposed"] * (N // 2),
        "name": [f"level {i // 2}" for i in range(N)],
        "site": ["A", "B", "C"] * (N // 3),
    }
)
DAYS = [datetime(2026, 3, 1) + timedelta(days=i // 3) for i in range(N)]
SPANS = NUMBERS.with_columns(
    start=pl.Series(DAYS), end=pl.Series([day + timedelta(hours=8) for day in DAYS])
)
SHARE, HOURS, LIMIT = "jobs killed [% of jobs]", "wait [h]", {"limit 20 %": 20.0}
FRONTIER = NUMBERS.with_columns(
    setting=pl.when(pl.col("x") <= 2).then("setting"), label=pl.col("name")
)

CHARTS = {
    "line": lambda: primitives.line(
        NUMBERS, "x", "y", x_title=HOURS, y_title=SHARE, colour="setting", references=LIMIT
    ),
    "line panels": lambda: primitives.line(
        NUMBERS, "x", "y", x_title=HOURS, y_title=SHARE, colour="setting", panels="site", step=True,
        marks=NUMBERS.head(1).with_columns(label=pl.lit("current")),
    ),
    "dots": lambda: primitives.dots(NUMBERS, "y", "name", title=SHARE, colour="setting", references=LIMIT),
    "dots panels": lambda: primitives.dots(NUMBERS, "y", "name", title=SHARE, panels="site"),
    "bars": lambda: primitives.bars(NUMBERS.unique("name"), "y", "name", title=SHARE),
    "bars stacked": lambda: primitives.bars(
        SPANS, "y", "start", title=SHARE, label_title="day (UTC)", colour="site", vertical=True
    ),
    "histogram": lambda: primitives.histogram(
        NUMBERS.with_columns(top=pl.col("x") + 1), "x", "top", "y", x_title=HOURS, y_title=SHARE,
        references={"limit": 3.0},
    ),
    "strips": lambda: primitives.strips(SPANS, "start", "end", "site", "setting"),
    "scatter": lambda: primitives.scatter(
        NUMBERS, "x", "y", x_title=HOURS, y_title=SHARE, diagonal=True, label="name", colour="site"
    ),
    "gantt": lambda: primitives.gantt(NUMBERS.with_columns(e=pl.col("x") + 2), "x", "e", "name", title=HOURS),
    "frontier": lambda: primitives.frontier(
        FRONTIER, "x", "y", x_title="reserved [GB h]", y_title=SHARE, limit=20.0
    ),
}  # fmt: skip


def encodings(node):
    if isinstance(node, dict):
        for channel, entry in node.get("encoding", {}).items():
            yield from ((channel, e) for e in (entry if isinstance(entry, list) else [entry]))
        for value in node.values():
            yield from encodings(value)
    elif isinstance(node, list):
        for value in node:
            yield from encodings(value)


@pytest.mark.parametrize("name", CHARTS)
def test_fields_exist_axes_have_units_and_it_renders(name, tmp_path):
    chart = CHARTS[name]()
    spec = chart.to_dict()
    columns = {c for rows in spec["datasets"].values() for row in rows for c in row}
    fields = {e["field"] for _, e in encodings(spec) if isinstance(e, dict) and "field" in e}
    assert fields <= columns
    places = [(c, e) for c, e in encodings(spec) if c in ("x", "y") and isinstance(e, dict)]
    titles = [e["title"] for _, e in places if e.get("title") and e.get("type") != "nominal"]
    assert titles
    assert all("[" in title or "(UTC)" in title for title in titles)
    assert any(channel == "tooltip" for channel, _ in encodings(spec))
    titled = chart.properties(title=theme.title("It falls", "n = 12 tasks"))
    svg = theme.save(titled, tmp_path, "chart").read_text()
    assert "It falls" in svg


@pytest.mark.parametrize("name", ["line", "dots", "frontier", "histogram"])
def test_red_is_the_limit_and_nothing_else(name):
    spec = CHARTS[name]().to_dict()
    red = [text for text in json.dumps(spec).split('"') if text.lower() == theme.LIMIT]
    assert red
    without = {
        "line": {"references": None},
        "dots": {"references": None},
        "frontier": {"limit": None},
    }
    if name in without:
        call = {"line": primitives.line, "dots": primitives.dots, "frontier": primitives.frontier}[
            name
        ]
        plain = {
            "line": lambda **k: call(
                NUMBERS, "x", "y", x_title=HOURS, y_title=SHARE, colour="setting", **k
            ),
            "dots": lambda **k: call(NUMBERS, "y", "name", title=SHARE, colour="setting", **k),
            "frontier": lambda **k: call(FRONTIER, "x", "y", x_title=HOURS, y_title=SHARE, **k),
        }[name](**without[name])
        assert theme.LIMIT not in json.dumps(plain.to_dict()).lower()


def test_shares_are_drawn_as_per_cent_and_percentages_as_they_are():
    def drawn(column):
        frame = NUMBERS.rename({"y": column, "y_lo": f"{column}_lo", "y_hi": f"{column}_hi"})
        spec = primitives.dots(frame, column, "name", title="change [%]").to_dict()
        rows = next(rows for rows in spec["datasets"].values() if column in rows[0])
        return rows[0][column], rows[0][f"{column}_lo"]

    assert drawn("y") == pytest.approx((10, 5))
    assert drawn("y_pct") == pytest.approx((0.1, 0.05))


def test_current_is_grey_proposed_blue_and_others_are_never_red():
    found = theme.colours([*(f"name {i}" for i in range(20)), "proposed", "current"])
    assert (found["current"], found["proposed"]) == (theme.CURRENT, theme.PROPOSED)
    assert theme.LIMIT not in found.values()


def test_missing_columns_and_too_many_rows_are_refused():
    with pytest.raises(SchemaError, match="chart data lack z; found x, y"):
        primitives.scatter(NUMBERS, "x", "z", x_title=HOURS, y_title=SHARE)
    many = pl.DataFrame({"x": range(primitives.MAX_ROWS + 1)}).with_columns(y="x")
    with pytest.raises(SchemaError, match="5001 rows, at most 5000: aggregate first"):
        primitives.scatter(many, "x", "y", x_title=HOURS, y_title=HOURS)


ODD = {"A": "A\0", "B": "B\uffff", "C": "C" * 4_000}
LEGIBLE = ["A<U+0000>", "B<U+FFFF>", "C" * 352 + " ... 3,500 more characters ... " + "C" * 117]
OF_NAMES = {
    "panels": lambda odd: primitives.dots(odd, "y", "name", title=SHARE, panels="site"),
    "marks": lambda odd: primitives.line(
        NUMBERS, "x", "y", x_title=HOURS, y_title=SHARE, marks=odd.rename({"site": "label"})
    ),
    "labels": lambda odd: primitives.scatter(odd, "x", "y", x_title=HOURS, y_title=SHARE, label="site"),
    "states of bars": lambda odd: primitives.bars(
        odd, "y", "name", title=SHARE, colour="site", states=dict.fromkeys(ODD.values(), theme.INK)
    ),
    "states of spans": lambda odd: primitives.strips(
        odd, "start", "end", "name", "site", states=dict.fromkeys(ODD.values(), theme.INK)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NAMES)
def test_names_are_drawn_as_a_picture_can_hold_them(name, tmp_path):
    """A notebook shows charts as they are, and a character that XML does not have ends its process."""
    chart = OF_NAMES[name](SPANS.with_columns(pl.col("site").replace(ODD)))
    spec = chart.to_dict()
    texts = {t for rows in spec["datasets"].values() for row in rows for t in row.values()}
    assert texts >= set(LEGIBLE)
    assert not texts & set(ODD.values())
    if name.startswith("states"):
        (domain,) = {tuple(e["scale"]["domain"]) for c, e in encodings(spec) if c == "color"}
        assert list(domain) == LEGIBLE
    assert "A&lt;U+0000&gt;" in theme.save(chart, tmp_path, "chart").read_text()


@pytest.mark.parametrize("axis", ["x", "y"])
def test_what_a_logarithmic_axis_cannot_show_is_left_out_of_a_line(axis, tmp_path):
    """One point at 0 would take the whole axis away."""
    with_zero = NUMBERS.with_columns(pl.col(axis).replace(NUMBERS[axis][0], 0.0))
    log = {f"{axis}_log": True}
    drawn = [
        primitives.line(frame, "x", "y", x_title=HOURS, y_title=HOURS, **log)
        for frame in (with_zero, NUMBERS.tail(-1))
    ]
    pictures = [theme.save(one, tmp_path, "line").read_text() for one in drawn]
    assert pictures[0] == pictures[1]


def test_panels_share_their_axis_and_one_chart_has_no_title():
    chart = CHARTS["line panels"]()
    assert isinstance(chart, alt.VConcatChart)
    assert len(chart.vconcat) == 3
    assert "title" not in CHARTS["dots"]().to_dict()


def test_the_legend_stands_over_the_names_of_upright_lines():
    two = {"asked": 5.0, "limit 20 %": 20.0}
    for lines, offset in ((None, 4), (two, 4 + 2 * primitives.NAME)):
        made = primitives.dots(NUMBERS, "y", "name", title=SHARE, colour="setting", references=lines)  # fmt: skip
        spec = json.dumps(made.to_dict())
        assert f'"offset": {offset}' in spec


def test_names_of_lines_stand_where_there_is_room():
    lines = {"first": 10.0, "last": 65.0}  # of 5 to 75 %
    made = primitives.dots(
        NUMBERS.unique("name", maintain_order=True), "y", "name", title=SHARE, references=lines
    )

    def aligned(node):
        if isinstance(node, list):
            return [found for each in node for found in aligned(each)]
        if not isinstance(node, dict):
            return []
        mark = node.get("mark")
        own = [mark["align"]] if isinstance(mark, dict) and mark["type"] == "text" else []
        return own + aligned(node.get("layer", []))

    assert aligned(made.to_dict()) == ["left", "left", "right", "right"]  # an edge and a text each


def test_names_of_settings_stand_towards_the_middle():
    chart = primitives.frontier(
        FRONTIER.with_columns(setting=pl.lit("setting")), "x", "y", x_title="GB", y_title=SHARE
    )
    spec = chart.to_dict()
    middle = (FRONTIER["x"].min() + FRONTIER["x"].max()) / 2
    sides = {"left": set(), "right": set()}
    for both in spec["layer"]:
        for layer in both.get("layer", []):
            if layer["mark"]["type"] == "text":
                rows = spec["datasets"][layer.get("data", both.get("data"))["name"]]
                sides[layer["mark"]["align"]] |= {row["x"] for row in rows}
    assert all(x <= middle for x in sides["left"])
    assert sides["left"]
    assert all(x > middle for x in sides["right"])
    assert sides["right"]


def test_numbers_on_axes_are_written_as_on_pages():
    frame = pl.DataFrame({"name": ["a"], "jobs": [100_000]})
    with alt.theme.enable(theme.NAME):
        svg = theme_svg(primitives.bars(frame, "jobs", "name", title="jobs [1]"))
    assert "100\u202f000" in svg
    assert "100,000" not in svg


def theme_svg(chart):
    import vl_convert

    return vl_convert.vegalite_to_svg(chart.to_dict())


def test_an_interval_without_end_leaves_the_others_readable():
    """A logarithmic axis ends ten times beyond its dots; narrower intervals set no ends."""
    rows = {
        "label": ["a", "b"],
        "ratio": [0.5, 2.0],
        "ratio_lo": [1e-12, 1.0],
        "ratio_hi": [1e9, 4.0],
    }

    def domains(frame):
        chart = primitives.dots(frame, "ratio", "label", title="ratio [1]", log=True).to_dict()
        return [layer["encoding"]["x"]["scale"].get("domain") for layer in chart["layer"]]

    frame = pl.DataFrame(rows)
    assert domains(frame) == [[0.05, 20.0]] * 2
    assert domains(frame[1:]) == [None, None]
    assert domains(frame.with_columns(ratio_hi=pl.lit(4.0))) == [[0.05, 4.0]] * 2
