"""Eight charts from which all others are made: each takes an aggregated frame and names of columns.

A title ends in its unit in brackets; where that begins with ``%`` and the column's name does not end in ``_pct``, the
column holds shares [1] and is drawn times 100. Intervals are drawn wherever the frame has ``x_lo`` and ``x_hi`` beside
``x``. Grey is current, blue proposed, red the limit; every other value of a colour column takes the next colour of one
palette that colour-blind readers can tell apart. A click on a legend's entry dims the others. No chart sets a title: the
page writes the finding, `theme.title` makes one for a chart that stands alone. Texts of a frame are drawn as `errors.shown`
writes them: a picture cannot hold every character. A frame that lacks a column, or has more than `MAX_ROWS` rows, is refused
with a `SchemaError`.

The same argument means the same everywhere: ``frame`` has the named columns, text in the order in which it is drawn;
``colour`` is the column of what a mark belongs to; ``panels`` is a column, each value of it gets a panel below the others;
``references`` are names to values on the axis of the quantity, in the unit of its title, red where the name begins with
"limit"; ``log`` makes that axis logarithmic (``x_log``, ``y_log`` one of two), on which lines and scatters leave out what is not
above 0; ``height`` [px] is that of the chart, or of all panels together at least.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from brokerlab import errors
from brokerlab.charts.theme import (
    CURRENT,
    INK,
    LIMIT,
    OTHER,
    PROPOSED,
    SOFT,
    WIDTH,
    colours,
    dashes,
    shapes,
)

MAX_ROWS = 5000
"""Rows a chart may carry; more belongs into a table."""
PANEL_HEIGHT = 150
"""Of each of several panels with numbers on both axes [px]."""
FAR = 10
"""Times the largest dot, or the smallest one divided by it, where a logarithmic axis ends; intervals may go on beyond it."""
ROW = 24
"""Of a row with a label [px]."""
MOST_LABELS, MOST_HEIGHT = 40, 800
"""Rows of spans that are named, and height of all of them at most [px]."""
NAME = 14
"""Of the name of an upright line [px]."""
Chart = alt.LayerChart | alt.FacetChart | alt.VConcatChart
"""What every primitive returns."""


def line(
    frame: pl.DataFrame,
    x: str,
    y: str,
    *,
    x_title: str,
    y_title: str,
    colour: str | None = None,
    step: bool = False,
    points: bool = False,
    references: Mapping[str, float] | None = None,
    x_log: bool = False,
    y_log: bool = False,
    panels: str | None = None,
    marks: pl.DataFrame | None = None,
    height: int = 280,
) -> Chart:
    """Draw numbers along an axis, with a band where there are intervals.

    ``x`` is a number or a time. With ``step`` numbers hold until the next one, with ``points`` there is a dot at each;
    ``marks`` (``x, y, label``) are named points.
    """
    shown = _prepare(frame, [x, y, *_given(colour, panels)], {x: x_title, y: y_title})
    for name in _given(x if x_log else None, y if y_log else None):
        shown = shown.filter(pl.col(name) > 0)
    marked = None if marks is None else _prepare(marks, [x, y, "label"], {x: x_title, y: y_title})
    across = _axis(shown, x, x_title, log=x_log)
    up = _quantity(y, y_title, log=y_log)
    interpolate: Any = "step-after" if step else "linear"

    def panel(part: pl.DataFrame) -> Any:
        base = alt.Chart(part).encode(
            x=across, color=_colour(shown, colour), opacity=_dim(colour, panels)
        )
        layers: list[Any] = _references(references, vertical=False)
        if f"{y}_lo" in part.columns:
            band = base.mark_area(interpolate=interpolate)
            low = _quantity(f"{y}_lo", y_title, log=y_log)
            layers.append(band.encode(y=low, y2=f"{y}_hi:Q", opacity=alt.value(0.18)))
        mark = base.mark_line(strokeWidth=2, interpolate=interpolate)
        tips = _tips(part, [x, y], {x: x_title, y: y_title}, [colour])
        layers.append(mark.encode(y=up, strokeDash=_dash(shown, colour)))
        dots = base.mark_point(filled=True, size=45 if points else 90)
        dots = dots.encode(y=up, tooltip=tips)
        layers.append(dots if points else dots.encode(opacity=alt.value(0)))
        if marked is not None:
            layers += _name_points(marked, across, up, x, y)
        return _layer(layers)

    return _stack(shown, panels, panel, height, colour)


def dots(
    frame: pl.DataFrame,
    value: str,
    label: str,
    *,
    title: str,
    colour: str | None = None,
    references: Mapping[str, float] | None = None,
    log: bool = False,
    panels: str | None = None,
) -> Chart:
    """Draw one row per label: dots with their intervals, several beside each other where a colour tells them apart."""
    shown = _prepare(frame, [value, label, *_given(colour, panels)], {value: title})
    lines = (references or {}).values()
    ends = _cut_off(shown, value, lines) if log else None
    across = _quantity(value, title, log=log, axis="x", ends=ends)
    tips = _tips(shown, [label, value], {value: title}, [colour, panels])
    above = _names_above(references, panels)
    middle = _middle(shown, value, lines, log=log)

    def panel(part: pl.DataFrame) -> Any:
        names = part[label].unique(maintain_order=True).to_list()
        base = alt.Chart(part).encode(
            y=alt.Y(f"{label}:N", title=None, sort=names, axis=alt.Axis(grid=False)),
            color=_colour(shown, colour, above),
            opacity=_dim(colour, panels),
            tooltip=tips,
        )
        if colour and part.select(label).is_duplicated().any():
            base.encoding.y.scale = alt.Scale(paddingInner=0.5)  # dots of a row stand together
            base = base.encode(yOffset=alt.YOffset(f"{colour}:N", sort=_order(shown, colour)))
        layers: list[Any] = _references(references, vertical=True, middle=middle)
        if f"{value}_lo" in part.columns:
            low = _quantity(f"{value}_lo", title, log=log, axis="x", ends=ends)
            rule = base.mark_rule(strokeWidth=2, clip=True)
            layers.append(rule.encode(x=low, x2=f"{value}_hi:Q"))
        marks = base.mark_point(filled=True, size=75)
        marks = marks.encode(x=across, shape=_shape(shown, colour, above))
        several = part[colour].n_unique() if colour and part.height > len(names) else 1
        return _layer([*layers, marks]).properties(
            height=max(2 * ROW, int(ROW * len(names) * (1 + 0.25 * (several - 1))))
        )

    return _stack(shown, panels, panel, None, colour)


def bars(
    frame: pl.DataFrame,
    value: str,
    label: str,
    *,
    title: str,
    label_title: str | None = None,
    colour: str | None = None,
    references: Mapping[str, float] | None = None,
    log: bool = False,
    panels: str | None = None,
    vertical: bool = False,
    height: int = 280,
    states: Mapping[str, str] | None = None,
) -> Chart:
    """Draw bars, stacked where a colour divides them; intervals on those that are not.

    ``vertical`` bars are upright, and their ``label`` may be a time or number, too. ``states`` are as for `gantt`.
    """
    shown = _prepare(frame, [value, label, *_given(colour, panels)], {value: title})
    states = _legible(states)
    tips = _tips(shown, [label, value], {value: title}, [colour, panels])
    stacked = bool(colour) and shown.select(label, *_given(panels)).is_duplicated().any()
    axis = "y" if vertical else "x"
    other = "x" if vertical else "y"
    lengths = _quantity(value, title, log=log, axis=axis, zero=True)
    if stacked and _whole(shown, value, [label, *_given(panels)], title):
        lengths = lengths.scale(domain=[0, 100])

    def panel(part: pl.DataFrame) -> Any:
        names = part[label].unique(maintain_order=True).to_list()
        place = _place(part, label, label_title, other, names)
        base = alt.Chart(part).encode(**{other: place, "tooltip": tips})
        layers: list[Any] = _references(references, vertical=not vertical)
        above = 0 if vertical else _names_above(references, panels)
        fill = _fill(shown, colour, states, above)
        order = {"order": alt.Order("_order:Q")} if stacked else {}
        size: Any = {"width": {"band": 0.9}} if vertical else {}
        mark = base.mark_bar(**size).encode(
            **{axis: lengths, "color": fill, "opacity": _dim(colour, panels), **order}
        )
        layers.insert(0, mark)
        if f"{value}_lo" in part.columns and not stacked:
            low = _quantity(f"{value}_lo", title, log=log, axis=axis, zero=True)
            rule = base.mark_rule(strokeWidth=1.5, color=INK)
            layers.append(rule.encode(**{axis: low, f"{axis}2": f"{value}_hi:Q"}))
        made = _layer(layers)
        return made if vertical else made.properties(height=max(2 * ROW, ROW * len(names)))

    if stacked and colour:
        order = {name: place for place, name in enumerate(states or _order(shown, colour))}
        texts = pl.col(colour).cast(pl.String)
        shown = shown.with_columns(_order=texts.replace_strict(order, return_dtype=pl.Int64))
    return _stack(shown, panels, panel, height if vertical else None, colour)


def histogram(
    frame: pl.DataFrame,
    lower: str,
    upper: str,
    count: str,
    *,
    x_title: str,
    y_title: str,
    colour: str | None = None,
    references: Mapping[str, float] | None = None,
    x_log: bool = False,
) -> Chart:
    """Draw counts (or shares) of bins that are made already, from ``lower`` to ``upper``; colours over one another."""
    titles = {lower: x_title, upper: x_title, count: y_title}
    shown = _prepare(frame, [lower, upper, count, *_given(colour)], titles)
    base = alt.Chart(shown).mark_bar(binSpacing=0, stroke="white", strokeWidth=0.5)
    made = base.encode(
        x=_quantity(lower, x_title, log=x_log, axis="x"),
        x2=f"{upper}:Q",
        y=_quantity(count, y_title, zero=True).stack(None),
        y2=alt.datum(0),
        color=_colour(shown, colour, _names_above(references)) if colour else alt.value(SOFT),
        opacity=alt.value(0.6 if colour else 1.0),
        tooltip=_tips(shown, [lower, upper, count], titles, [colour]),
    )
    layers = [made, *_references(references, vertical=True)]
    return alt.layer(*layers).properties(width=WIDTH, height=260)


def strips(
    frame: pl.DataFrame,
    start: str,
    end: str,
    label: str,
    colour: str,
    *,
    title: str = "time (UTC)",
    states: Mapping[str, str] | None = None,
) -> Chart:
    """Draw the states of rows over time as coloured spans; ``states`` are their colours, as for `gantt`."""
    return gantt(frame, start, end, label, title=title, colour=colour, states=states)


def scatter(
    frame: pl.DataFrame,
    x: str,
    y: str,
    *,
    x_title: str,
    y_title: str,
    colour: str | None = None,
    diagonal: bool = False,
    log: bool = False,
    label: str | None = None,
    references: Mapping[str, float] | None = None,
    panels: str | None = None,
) -> Chart:
    """Draw one number against another; ``diagonal``: with the line on which they are equal.

    ``label`` is a column of texts beside dots (null: none); ``references`` are on the y axis, ``log`` is for both.
    """
    titles = {x: x_title, y: y_title}
    shown = _prepare(frame, [x, y, *_given(colour, panels, label)], titles)
    if log:
        shown = shown.filter((pl.col(x) > 0) & (pl.col(y) > 0))
    across = _quantity(x, x_title, log=log, axis="x")
    up = _quantity(y, y_title, log=log)
    tips = _tips(shown, [*_given(label), x, y], titles, [colour, panels])

    def panel(part: pl.DataFrame) -> Any:
        base = alt.Chart(part).encode(color=_colour(shown, colour), opacity=_dim(colour, panels))
        layers: list[Any] = _references(references, vertical=False)
        if diagonal and part.height:
            both = pl.concat([part[x].cast(pl.Float64), part[y].cast(pl.Float64)]).drop_nulls()
            ends = pl.DataFrame({x: [both.min(), both.max()], y: [both.min(), both.max()]})
            same = alt.Chart(ends).mark_line(color=SOFT, strokeDash=[5, 4], strokeWidth=1.5)
            layers.append(same.encode(x=across, y=up))
        for name, axis, kind in ((x, "x", x_title), (y, "y", y_title)):
            if f"{name}_lo" in part.columns:
                low = _quantity(f"{name}_lo", kind, log=log, axis=axis)
                here = {"x": across} if axis == "y" else {"y": up}
                rule = base.mark_rule(strokeWidth=1.2)
                layers.append(rule.encode(**{axis: low, f"{axis}2": f"{name}_hi:Q", **here}))
        points = base.mark_point(filled=True, size=60)
        layers.append(points.encode(x=across, y=up, tooltip=tips, shape=_shape(shown, colour)))
        if label:
            named = alt.Chart(part.drop_nulls(label)).mark_text(align="left", dx=7, dy=-6)
            layers.append(named.encode(x=across, y=up, text=f"{label}:N"))
        return _layer(layers)

    return _stack(shown, panels, panel, 340, colour)


def gantt(
    frame: pl.DataFrame,
    start: str,
    end: str,
    label: str,
    *,
    title: str,
    colour: str | None = None,
    panels: str | None = None,
    states: Mapping[str, str] | None = None,
) -> Chart:
    """Draw when each of several things ran: ``start`` and ``end`` are numbers in the title's unit, or times.

    Many rows get thinner, and lose their labels. ``states`` are the colours of the column's values, in their order; null: the
    palette.
    """
    shown = _prepare(frame, [start, end, label, *_given(colour, panels)], {})
    tips = _tips(shown, [label, start, end], {start: title, end: title}, [colour, panels])
    fill = _fill(shown, colour, _legible(states))

    def panel(part: pl.DataFrame) -> Any:
        names = part[label].unique(maintain_order=True).to_list()
        rows = alt.Axis(grid=False, labels=len(names) <= MOST_LABELS)
        base = alt.Chart(part).mark_bar(height={"band": 0.8})
        made = base.encode(
            x=alt.X(f"{start}:{_kind(part, start)}", title=title),
            x2=f"{end}:{_kind(part, end)}",
            y=alt.Y(f"{label}:N", title=None, sort=names, axis=rows),
            color=fill,
            opacity=_dim(colour, panels),
            tooltip=tips,
        )
        return _layer([made]).properties(height=min(MOST_HEIGHT, max(2 * ROW, 20 * len(names))))

    return _stack(shown, panels, panel, None, colour)


def frontier(
    frame: pl.DataFrame,
    x: str,
    y: str,
    *,
    x_title: str,
    y_title: str,
    named: str = "setting",
    label: str = "label",
    limit: float | None = None,
) -> Chart:
    """Draw what every setting costs against how often it fails, the edge that no other beats, and the named settings.

    Of ``x`` and ``y`` less is better. ``named`` is the column of roles (current, proposed, ...; null: one of the others),
    ``label`` the text of the named ones; ``limit`` is of y, in the unit of its title. Settings far above it and the named
    ones are outside the picture.
    """
    titles = {x: x_title, y: y_title}
    shown = _prepare(frame, [x, y, named, label], titles).sort(x, y)
    best = pl.col(y).cum_min().shift(1)
    shown = shown.with_columns(_edge=best.is_null() | (pl.col(y) < best))
    marked = shown.filter(pl.col(named).is_not_null())
    ends = marked[f"{y}_hi" if f"{y}_hi" in shown.columns else y].drop_nulls().to_list()
    highest = max([limit or 0.0, *ends], default=0.0) * 1.6 or float(shown[y].max() or 1.0)  # type: ignore[arg-type]
    shown = shown.filter((pl.col(y) <= highest) | pl.col(named).is_not_null())
    across = alt.X(f"{x}:Q", title=x_title, scale=alt.Scale(zero=False))
    up = alt.Y(f"{y}:Q", title=y_title, scale=alt.Scale(domain=[0, highest], clamp=True))
    tips = _tips(shown, [label, x, y], titles, [])
    others = alt.Chart(shown.filter(pl.col(named).is_null())).mark_circle(size=22, color=OTHER)
    edge = alt.Chart(shown.filter("_edge")).mark_line(color=INK, strokeWidth=1)
    points = alt.Chart(marked).encode(x=across, color=_colour(marked, named))
    layers: list[Any] = [
        others.encode(x=across, y=up, tooltip=tips, opacity=alt.value(0.7)),
        edge.encode(x=across, y=up, order=f"{x}:Q"),
        *_references({} if limit is None else {f"limit {limit:g} %": limit}, vertical=False),
    ]
    if f"{y}_lo" in shown.columns:
        layers.append(points.mark_rule(strokeWidth=2).encode(y=f"{y}_lo:Q", y2=f"{y}_hi:Q"))
    dot = points.mark_point(filled=True, size=130, opacity=1)
    layers.append(dot.encode(y=up, shape=_shape(marked, named), tooltip=tips))
    far = pl.col(x) > _middle(shown, x, (), log=False)
    for part, align, dx in ((marked.filter(~far), "left", 10), (marked.filter(far), "right", -10)):
        names = alt.Chart(part).encode(x=across, y=up, color=_colour(marked, named))
        layers.append(_text(names.encode(text=f"{label}:N"), align=align, dx=dx, dy=-9))
    return alt.layer(*layers).properties(width=WIDTH, height=290)


# --- pieces -----------------------------------------------------------------------------------------------------------


def _given(*names: str | None) -> list[str]:
    return [name for name in names if name]


def _prepare(
    frame: pl.DataFrame, columns: Sequence[str], titles: Mapping[str, str]
) -> pl.DataFrame:
    """Check the frame, write its texts so that they can be drawn, and bring shares to per cent where the title says so."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise errors.SchemaError(
            f"chart data lack {', '.join(missing)}; found {', '.join(frame.columns)}"
        )
    if frame.height > MAX_ROWS:
        raise errors.SchemaError(
            f"chart data have {frame.height} rows, at most {MAX_ROWS}: aggregate first"
        )
    kept = [name for name in frame.columns if name in columns or _bare(name) in columns]
    scaled = [
        name
        for name in kept
        if "[%" in titles.get(_bare(name), "") and not _bare(name).endswith("_pct")
    ]
    texts = pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
    return frame.select(kept).with_columns(
        pl.col(scaled).cast(pl.Float64) * 100,
        texts.map_elements(errors.shown, return_dtype=pl.String),
    )


def _legible(states: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return the colours of states by the names that a prepared frame has of them."""
    if states is None:
        return None
    return {
        errors.shown(name) if isinstance(name, str) else name: colour
        for name, colour in states.items()
    }


def _bare(column: str) -> str:
    """Return the column whose interval ends in this one, or the column itself."""
    return column.removesuffix("_lo").removesuffix("_hi")


def _kind(frame: pl.DataFrame, column: str) -> str:
    kind = frame.schema[column]
    return "T" if kind.is_temporal() else "Q" if kind.is_numeric() else "N"


def _quantity(
    column: str,
    title: str,
    *,
    log: bool = False,
    axis: str = "y",
    zero: bool = False,
    ends: list[float] | None = None,
) -> Any:
    logarithmic: dict[str, Any] = {"type": "log", "nice": False} | (
        {"domain": ends} if ends else {}
    )
    scale = alt.Scale(**logarithmic) if log else alt.Scale(zero=zero)
    return (alt.X if axis == "x" else alt.Y)(f"{column}:Q", title=title, scale=scale)


def _whole(frame: pl.DataFrame, value: str, keys: Sequence[str], title: str) -> bool:
    """Tell whether bars are parts of one whole each: per cents that add up to a hundred at most, to rounding."""
    longest = frame.group_by(keys).agg(pl.col(value).sum())[value].max()
    return "[%" in title and longest is not None and 99.9 < float(longest) < 100.1  # type: ignore[arg-type]


def _axis(frame: pl.DataFrame, x: str, title: str, *, log: bool) -> alt.X:
    kind = _kind(frame, x)
    if kind == "N":
        order = frame[x].unique(maintain_order=True).to_list()
        return alt.X(f"{x}:N", title=title, sort=order, axis=alt.Axis(labelAngle=0))
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False)
    return (
        alt.X(f"{x}:T", title=title) if kind == "T" else alt.X(f"{x}:Q", title=title, scale=scale)
    )


def _place(frame: pl.DataFrame, label: str, title: str | None, axis: str, names: list[Any]) -> Any:
    """Return the axis of the bars' names."""
    make = alt.X if axis == "x" else alt.Y
    if frame.schema[label].is_temporal():
        days = (frame[label].cast(pl.Date) == frame[label]).all()
        return make(
            f"{label}:O",
            title=title,
            timeUnit="yearmonthdate" if days else "yearmonthdatehours",
            axis=alt.Axis(
                labelOverlap=True, format="%d %b" if days else "%d %b %H:00", labelAngle=0
            ),
        )
    if frame.schema[label].is_numeric():
        return make(f"{label}:O", title=title, axis=alt.Axis(labelAngle=0, labelOverlap=True))
    labels = alt.Axis(grid=False, labelAngle=0) if axis == "x" else alt.Axis(grid=False)
    return make(f"{label}:N", title=title, sort=names, axis=labels)


def _order(frame: pl.DataFrame, colour: str) -> list[str]:
    """Return the names of a colour column: those with a fixed colour first, then by appearance."""
    return list(colours(frame[colour].drop_nulls().cast(pl.String).unique(maintain_order=True)))


def _colour(frame: pl.DataFrame, colour: str | None, above: int = 0) -> Any:
    if colour is None:
        return alt.value(INK)
    return _told_apart(alt.Color, colour, colours(_order(frame, colour)), above)


def _fill(
    frame: pl.DataFrame, colour: str | None, states: Mapping[str, str] | None, above: int = 0
) -> Any:
    """Return the colour of an area: of its state, of the palette, or the one of all."""
    if colour is None:
        return alt.value(SOFT)
    if states is None:
        return _colour(frame, colour, above)
    present = set(frame[colour])
    known = {name: states[name] for name in states if name in present}
    return _told_apart(alt.Color, colour, known, above)


def _shape(frame: pl.DataFrame, colour: str | None, above: int = 0) -> Any:
    if colour is None:
        return alt.value("circle")
    return _told_apart(alt.Shape, colour, shapes(_order(frame, colour)), above)


def _dash(frame: pl.DataFrame, colour: str | None) -> Any:
    if colour is None:
        return alt.value([1, 0])
    return _told_apart(alt.StrokeDash, colour, dashes(_order(frame, colour)))


def _told_apart(channel: Any, column: str, values: Mapping[str, Any], above: int = 0) -> Any:
    """Return a channel with a value for each name, and one legend for all channels where there are several names.

    The legend stands over the names of so many upright lines ``above`` the plot.
    """
    scale = alt.Scale(domain=list(values), range=list(values.values()))
    offset = 4 + NAME * above
    legend = alt.Legend(title=None, symbolOpacity=1, offset=offset) if len(values) > 1 else None
    return channel(f"{column}:N", scale=scale, legend=legend)


def _highlight(colour: str) -> alt.Parameter:
    return alt.selection_point(fields=[colour], bind="legend", name=f"shown_{colour}")


def _dim(colour: str | None, panels: str | None = None) -> Any:
    """Dim what is not chosen in the legend of a single panel."""
    if colour is None or panels is not None:
        return alt.value(1)
    return alt.condition(_highlight(colour), alt.value(1), alt.value(0.15))


def _layer(layers: Sequence[Any]) -> Any:
    return alt.layer(*layers).properties(width=WIDTH)


def _stack(
    shown: pl.DataFrame, panels: str | None, panel: Any, height: int | None, colour: str | None
) -> Chart:
    """Draw one panel, or several below one another with shared scales."""
    if panels is None:
        made = panel(shown)
        made = made.add_params(_highlight(colour)) if colour else made
        single: alt.LayerChart = made.properties(height=height) if height else made
        return single
    names = shown[panels].unique(maintain_order=True).to_list()
    each = None if height is None else max(PANEL_HEIGHT, height // max(len(names), 1))
    drawn = []
    for name in names:
        part = panel(shown.filter(pl.col(panels) == name))
        part = part.properties(title=alt.Title(str(name), fontSize=12, offset=2))
        drawn.append(part.properties(height=each) if each else part)
    together: alt.VConcatChart = alt.vconcat(*drawn, spacing=10)
    shared: Chart = together.resolve_scale(x="shared", color="shared")
    return shared


def _tips(
    frame: pl.DataFrame,
    fields: Sequence[str],
    titles: Mapping[str, str],
    more: Sequence[str | None],
) -> list[alt.Tooltip]:
    """Return what is shown when the pointer rests on a mark: names, numbers and the ends of intervals."""
    wanted = [*_given(*more), *fields]
    wanted += [f"{name}{end}" for name in fields for end in ("_lo", "_hi")]
    tips = []
    for name in dict.fromkeys(wanted):
        if name in frame.columns:
            base = _bare(name)
            end = {"_lo": ", from", "_hi": ", to"}.get(name[len(base) :], "")
            kind = _kind(frame, name)
            form = {"Q": ",.4~g", "T": "%Y-%m-%d %H:%M"}.get(kind, alt.Undefined)
            shown = f"{titles.get(base, base.replace('_', ' '))}{end}"
            tips.append(alt.Tooltip(f"{name}:{kind}", title=shown, format=form))
    return tips


def _references(
    references: Mapping[str, float] | None, *, vertical: bool, middle: float = math.inf
) -> list[Any]:
    """Return dashed lines with their names, red for a limit: names of upright ones above the plot, else in turn.

    Beyond the middle of the axis the name of an upright line stands left of it, where there is room.
    """
    made: list[Any] = []
    for i, (name, value) in enumerate((references or {}).items()):
        fixed = {"limit": LIMIT, "current": CURRENT, "proposed": PROPOSED}
        colour = fixed.get(name.partition(" ")[0], SOFT)
        data = alt.Chart(pl.DataFrame({"value": [float(value)], "words": [name]}))
        rule = data.mark_rule(color=colour, strokeDash=[6, 3], strokeWidth=1.5)
        if vertical:
            place = data.encode(x="value:Q", y=alt.value(-7 - NAME * i), text="words:N")
            align, dx = ("right", 3) if value > middle else ("left", -3)
            made += [rule.encode(x="value:Q"), _text(place, align=align, dx=dx, colour=colour)]
        else:
            place = data.encode(x=alt.value("width"), y="value:Q", text="words:N")
            text = _text(place, align="right", dx=-2, dy=12 if i % 2 else -7, colour=colour)
            made += [rule.encode(y="value:Q"), text]
    return made


def _middle(shown: pl.DataFrame, value: str, lines: Iterable[float], *, log: bool) -> float:
    """Return the middle of the axis of a quantity with its intervals and references."""
    ends = (name for name in (value, f"{value}_lo", f"{value}_hi") if name in shown.columns)
    numbers = [each for name in ends for each in shown[name] if each is not None]
    numbers += lines
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    return math.sqrt(max(low, 0) * high) if log else (low + high) / 2


def _cut_off(shown: pl.DataFrame, value: str, lines: Iterable[float]) -> list[float] | None:
    """Return the ends of a logarithmic axis on which an interval is cut off, as with all of it nothing else could be read; null: none is."""
    if f"{value}_lo" not in shown.columns:
        return None
    numbers = [each for each in (*shown[value].drop_nulls(), *lines) if each > 0]
    low, high = min(numbers, default=1.0) / FAR, max(numbers, default=1.0) * FAR
    lowest = min(shown[f"{value}_lo"].drop_nulls(), default=low)
    highest = max(shown[f"{value}_hi"].drop_nulls(), default=high)
    if lowest >= low and highest <= high:
        return None
    return [max(lowest, low), min(highest, high)]


def _name_points(marks: pl.DataFrame, across: Any, up: Any, x: str, y: str) -> list[Any]:
    """Return named points, each in its own colour: grey current, blue proposed, others as text."""
    fixed = {"current": CURRENT, "proposed": PROPOSED}
    colour = pl.col("label").replace_strict(fixed, default=INK, return_dtype=pl.String)
    base = alt.Chart(marks.with_columns(_colour=colour)).encode(x=across, y=up)
    base = base.encode(color=alt.Color("_colour:N", scale=None))
    dot = base.mark_point(filled=True, size=110, opacity=1)
    named = _text(base.encode(text="label:N"), align="left", dx=9, dy=-8)
    return [dot.encode(tooltip=_tips(marks, ["label", x, y], {}, [])), named]


def _names_above(references: Mapping[str, float] | None, panels: str | None = None) -> int:
    """Count the names of upright lines above a plot; panels have their legend above them all."""
    return 0 if panels else len([name for name in references or {} if name])


def _text(placed: alt.Chart, *, align: str, dx: int, dy: int = 0, colour: str | None = None) -> Any:
    """Write bold text on a white edge, readable over dots and lines."""
    mark: Any = {"fontWeight": "bold", "align": align, "dx": dx, "dy": dy}
    edge = placed.mark_text(**mark, stroke="white", strokeWidth=4, strokeJoin="round")
    text = placed.mark_text(**mark)
    if colour:
        text = text.encode(color=alt.value(colour))
    return alt.layer(edge.encode(color=alt.value("white")), text)
