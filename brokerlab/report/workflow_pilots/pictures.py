"""The charts of the workflow-pilots report: their frames, and titles that say what was found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.charts import workflows as charts
from brokerlab.report.content import Picture
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.pictures import Drawn
from brokerlab.report.workflow_pilots import sentences as say
from brokerlab.report.workflow_pilots.study import NOTES, PAPER, Study
from brokerlab.words import listed, number, percent, thin
from brokerlab.workflows.compare import ratios

HOUR = 3600.0
MUCH = 3.0
"""Waits that grow by less are told as hardly growing."""
SAME = 1.01
"""Medians that differ by less are told as equal."""
ALIKE = 1.05
"""Strategies whose medians all differ by less are told as alike."""
SHORTEST_H = 0.001
"""Turnarounds are drawn as at least this long [h]: the axis is logarithmic."""
ROLES = {NOTES: "notes", PAPER: "paper"}


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.

    Returns:
        Pictures by chart; `turnarounds_<n>` is that of the n-th machine, from 1.
    """
    spread: dict[str, Callable[[Study], Drawn | None]] = {
        f"turnarounds_{place}": partial(turnarounds, system=name)
        for place, name in enumerate(study.inputs.systems, 1)
    }
    drawers = {"where": where, "rules": rules, "waits": waits, "gantt": gantt, **spread}
    return shared.draw(study, drawers, folder)


def where(study: Study) -> Drawn | None:
    """Draw where grouping wins, for both rule sets."""
    if study.ratios.is_empty():
        return None
    order = [name for _, name in study.places]
    cells = study.ratios.with_columns(
        words=pl.Series([f"×{number(r, 2 if r < 10 else 0)}" for r in study.ratios["ratio"]]),
        more=pl.Series([_mode(row) for row in study.ratios.iter_rows(named=True)]),
        place=pl.col("workflow").replace_strict({n: i for i, n in reversed(list(enumerate(order)))}, return_dtype=pl.Int64),
        machine=pl.col("system").replace_strict({n: i for i, n in enumerate(study.inputs.systems)}, return_dtype=pl.Int64),
    ).sort(pl.col("rules") == "notes", "place", "machine")  # fmt: skip
    shown = cells.with_columns(rules=pl.format("rules of the {}", "rules"))
    span = {
        rules: f"{number(part['ratio'].min(), 2)} to {number(part['ratio'].max(), 1)}"  # type: ignore[arg-type]
        for (rules,), part in cells.group_by("rules")
    }
    finding = thin(
        f"Grouping takes {span.get('paper')} times as long as the better simple way by the paper's rules, "
        f"{span.get('notes')} times by the notes'"
    )
    said = (
        f"{say.sample(study)}. Turnaround over that of one job or one job per task, whichever is shorter; blue: sooner. Below: what most "
        "runs became (single: a job per task)."
    )
    return charts.where_chart(shown, finding=finding, sample=said), finding


def _mode(row: dict[str, Any]) -> str:
    """Say how most runs of a place went."""
    shares = {
        "one job": ("one job", row["one_job"]),
        "task by task": ("single", row["task_by_task"]),
    }
    if row["became"] not in shares:
        return str(row["became"])
    word, share = shares[row["became"]]
    return f"{word} {percent(share).split('.')[0]} %"


def turnarounds(study: Study, system: str) -> Drawn | None:
    """Draw how turnarounds are spread over the instants of a machine."""
    runs = study.runs.filter(pl.col("system") == system)
    if runs.is_empty():
        return None
    hours = (pl.col("turnaround") / HOUR).clip(SHORTEST_H)
    spread = runs.group_by("workflow", "strategy").agg(
        *(hours.quantile(q / 100, "linear").alias(f"p{q}") for q in (10, 25, 50, 75, 90)),
        dedicated_h=(pl.col("dedicated").first() / HOUR).clip(SHORTEST_H),
    )
    names = list(study.inputs.workflows)
    order = study.comparison.plan.strategies
    spread = spread.with_columns(
        flow=pl.col("workflow").replace_strict({n: i for i, n in enumerate(names)}, return_dtype=pl.Int64),
        place=pl.col("strategy").replace_strict({n: i for i, n in enumerate(order)}, return_dtype=pl.Int64),
        role=pl.col("strategy").replace_strict(ROLES, default="other"),
    ).sort("flow", "place")  # fmt: skip
    middle = spread.group_by("strategy").agg(pl.col("p50").log().mean().exp()).sort("p50", "strategy")  # fmt: skip
    shortest, last = float(middle["p50"][0]), middle.row(-1)
    best = middle.filter(pl.col("p50") <= SAME * shortest)["strategy"].sort().to_list()
    if last[1] < ALIKE * shortest:
        told = "median turnarounds hardly differ between strategies"
    else:
        told = (
            f"median turnarounds are shortest with {listed([say.name_of(name) for name in best], 'or')}, longest with "
            f"{say.name_of(last[0])}, {number(last[1] / shortest, 1)} times as long"
        )
    finding = thin(f"{system}: {told}")
    shown = spread.with_columns(strategy=pl.col("strategy").replace(dict(say.NAMES)))
    said = (
        f"n = {study.n_times} instants per line. Bar: middle half with median; line: 10 to 90 %. Dark: rules of the notes, "
        "blue: of the paper. Dashed: run time on a machine of its own."
    )
    return charts.turnarounds_chart(shown, finding=finding, sample=said), finding


def rules(study: Study) -> Drawn | None:
    """Draw what the rules of the notes do against those of the paper, place by place."""
    found = _rule_ratios(study)
    if found.is_empty():
        return None
    worst = found.row(0, named=True)
    longer, shorter = found.filter(pl.col("lo") > 1).height, found.filter(pl.col("hi") < 1).height
    finding = thin(
        f"The notes' rules take longer than the paper's at {longer} and shorter at {shorter} of {found.height} places; "
        f"{number(worst['ratio'], 1)} times as long at {worst['place']}"
    )
    said = f"{say.sample(study)}. Geometric mean ratio at the same instants, 95 % intervals; dashed: no difference."
    return charts.rules_chart(found, finding=finding, sample=said), finding


def _rule_ratios(study: Study) -> pl.DataFrame:
    """Return the ratio of turnarounds, notes over paper, by place."""
    both = study.runs.filter(pl.col("strategy").is_in([NOTES, PAPER]))
    found = ratios(both, reference=PAPER, **study.dice)
    return found.select(
        "ratio", lo="ratio_lo", hi="ratio_hi", place=pl.format("{}, {}", "workflow", "system")
    ).sort("ratio", "place", descending=[True, False])  # fmt: skip


def waits(study: Study) -> Drawn | None:
    """Draw the estimated wait against the run time asked for."""
    if study.waits.is_empty():
        return None
    shown = study.waits.select(
        panel="system",
        size="size",
        run_h=pl.col("run_s") / HOUR,
        **{name: pl.col(name) / HOUR for name in ("p50", "p75")},
    )
    grows = [name for name in study.inputs.systems if _grows(*say.hour_waits(study, name))]
    rest = [name for name in study.inputs.systems if name not in grows]
    told = (("grow with hosts at", grows), ("hardly do at", rest))
    finding = thin(
        f"Waits {'; they '.join(f'{word} {listed(names)}' for word, names in told if names)}"
    )
    said = (
        f"Estimates at {study.n_times} instants per queue: median, and dotted the 75th percentile. Long dashes: wait equals "
        "run time."
    )
    return charts.waits_chart(shown, finding=finding, sample=said), finding


def _grows(one: float, every: float) -> bool:
    """Tell whether all hosts wait much longer than one [h]."""
    return every > MUCH * max(one, 0.1)


def gantt(study: Study) -> Drawn | None:
    """Draw one instant, every strategy."""
    found = study.example
    if found is None:
        return None
    ends = {name: done.metrics["turnaround"] / HOUR for name, done in found.runs.items()}
    shown = found.bars().select(
        "phase",
        line=_lines(),
        strategy=pl.col("strategy").replace(dict(say.NAMES)),
        begin_h=pl.col("begin_s") / HOUR,
        end_h=pl.col("end_s") / HOUR,
        end_all_h=pl.col("strategy").replace_strict(ends, return_dtype=pl.Float64),
    )
    finding = thin(
        f"One instant: {found.workflow} at {found.system}, strategies from the first to end to the last"
    )
    said = (
        "A line per pilot, or per level of single tasks (from the first submission to the last end). Upright line: the "
        "workflow is done. Red: ran into its walltime with tasks left."
    )
    return charts.gantt_chart(shown, finding=finding, sample=said), finding


def _lines() -> pl.Expr:
    """Name a pilot, or the single tasks of a level."""
    first, last = pl.col("first_level"), pl.col("last_level")
    levels = (
        pl.when(first == last)
        .then(pl.format("level {}", first))
        .otherwise(pl.format("levels {} to {}", first, last))
    )
    hosts = pl.when(pl.col("hosts") > 1).then(pl.lit("hosts")).otherwise(pl.lit("host"))
    tasks = pl.when(pl.col("n_jobs") > 1).then(pl.lit("tasks")).otherwise(pl.lit("task"))
    pilot = pl.format("{}: {}, {} {}", "job", levels, "hosts", hosts)
    single = pl.format("level {}: {} single {}", first, "n_jobs", tasks)
    return pl.when(pl.col("job").is_null()).then(single).otherwise(pilot)
