"""The charts of the thresholds report: their frames, and titles that say what was found."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from brokerlab.calibrate.thresholds import QUANTITIES, threshold_of
from brokerlab.calibrate.thresholds.screening import CHANGES
from brokerlab.calibrate.thresholds.verdict import days
from brokerlab.charts import thresholds as charts
from brokerlab.report.content import Picture
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.pictures import Drawn
from brokerlab.report.thresholds import sentences as say
from brokerlab.report.thresholds.study import Study
from brokerlab.words import percent, thin

KEYS_SHOWN = 6
"""Keys whose values are drawn, those that change the objective most."""
AS_IT_IS = "as it is"


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.
    """
    return shared.draw(study, {"effects": effects, "pareto": pareto, "screen": screen}, folder)


def effects(study: Study) -> Drawn | None:
    """Draw what each value of each key does to the objective."""
    found = study.calibration
    if found.tried.is_empty():
        return None
    chosen = dict(found.verdict.setting.values)
    now = {
        key.name: None if key.mixed or key.current is None else float(key.current)
        for key in found.space.keys
    }
    frame = found.tried.filter(
        pl.col("quantity") == found.objective, pl.col("n_keys") == 1, pl.col("value").is_not_null()
    ).with_columns(
        *((pl.col(name) / 100).alias(alias) for name, alias in (("pct", "effect"), ("pct_lo", "lo"), ("pct_hi", "hi"))),
        unit=pl.col("key").replace_strict({name: threshold_of(name).row.unit for name in now}, return_dtype=pl.String),
        scale=pl.col("key").replace_strict({name: threshold_of(name).scale for name in now}, return_dtype=pl.String),
        current=pl.col("key").replace_strict(now, return_dtype=pl.Float64),
        state=pl.when(pl.col("setting").is_in([f"{k} = {v:g}" for k, v in chosen.items() if v is not None]))
        .then(pl.lit("chosen"))
        .otherwise(pl.lit("tried")),
    )  # fmt: skip
    if frame["effect"].null_count() or frame.is_empty():
        return None
    order = (
        frame.group_by("key")
        .agg(least=pl.col("effect").min())
        .sort("least", "key")
        .head(KEYS_SHOWN)
    )
    shown = order.join(frame, on="key", maintain_order="left").sort("least", "key", "value")
    best = frame.sort("effect").row(0, named=True)
    label = _small(say.objective_label(found))
    finding = thin(
        f"{best['setting']} changes the {label} most: {percent(best['effect'], best['lo'], best['hi'])} against now"
    )
    sample = (
        f"Grey: now (dashed: its value); blue: proposed; bars: {100 * found.draw.confidence:g} % intervals. "
        f"Change of the {label}, each key alone, {days(found.calibration)}"
    )
    chart = charts.effects_chart(
        shown, finding=finding, sample=thin(sample), effect_title="change [% of now]"
    )
    return chart, finding


def pareto(study: Study) -> Drawn | None:
    """Draw bytes moved against the mean turnaround."""
    found = study.calibration
    if found.pareto.is_empty() or found.pareto["moved_tb"].null_count():
        return None
    chosen = found.verdict.setting.name if found.verdict.kind == "change" else ""
    state = (
        pl.when(pl.col("setting") == AS_IT_IS)
        .then(pl.lit("now"))
        .when(pl.col("setting") == chosen)
        .then(pl.lit("chosen"))
        .when("on_front")
        .then(pl.lit("on the front"))
        .otherwise(pl.lit("tried"))
    )
    now = float(found.pareto.filter(setting=AS_IT_IS)["moved_tb"][0])
    allowed = found.limits.moved_pct
    limit = None if allowed is None else now * (1 + allowed / 100)
    highest = float(found.pareto["moved_tb"].max())  # type: ignore[arg-type]
    frame = found.pareto.select(
        x="moved_tb",
        y="turnaround_h",
        state=state,
        limit=pl.lit(limit if limit is not None and limit <= 2 * highest else None, pl.Float64),
    )
    n = found.pareto.filter("on_front").height
    finding = thin(f"{n} of {found.pareto.height} settings are beaten by no other in every respect")
    sample = f"By four objectives, two of them drawn; red: limit on the bytes moved. {days(found.calibration)}"
    names = {q.name: f"{_small(q.label)} [{q.unit}]" for q in QUANTITIES}
    chart = charts.pareto_chart(
        frame, finding=finding, sample=thin(sample), x_title=names["moved_tb"], y_title=names["turnaround_h"]
    )  # fmt: skip
    return chart, finding


def screen(study: Study) -> Drawn | None:
    """Draw how much each key could change."""
    frame = study.calibration.screened.filter(
        (pl.col("state") == CHANGES) & pl.col("shift").is_not_null()
    )
    most = study.curves.group_by("key").agg(share=pl.col("shift").max())
    shown = (
        frame.select("key", "simulate")
        .join(most, on="key")
        .filter(pl.col("share") > 0)
        .with_columns(
            judge=pl.when("simulate").then(pl.lit("can be simulated")).otherwise(pl.lit("screened only")),
            words=pl.col("share").map_elements(percent, return_dtype=pl.String),
        )
        .sort("share", "key", descending=[True, False])
    )  # fmt: skip
    if shown.is_empty():
        return None
    top = shown.row(0, named=True)
    finding = thin(
        f"{top['key']} can send most jobs elsewhere: {percent(top['share'])} of them at one of its values"
    )
    sample = f"Largest over the values between the guard rails; one key at a time, brokerages of {days(study.screened)}"
    return charts.screen_chart(shown, finding=finding, sample=thin(sample)), finding


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]


__all__ = ["draw", "effects", "pareto", "screen"]
