"""What is tested of memory beside whole tasks: other margins, other clocks, and runs of workflow traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.estimators import scoring
from brokerlab.estimators.allocation import (
    PRICE,
    allocate_at_prices,
    level_of,
    repeat_at_price,
)
from brokerlab.estimators.deployed import Rule, ScoutMemory, rules
from brokerlab.estimators.evaluation import MODEL, Make, replay_left_out
from brokerlab.estimators.held import hold
from brokerlab.estimators.mixture import Views
from brokerlab.estimators.offered import judge_allocations, offers
from brokerlab.estimators.records import checked
from brokerlab.estimators.scoring.settings import Setting, score_settings
from brokerlab.estimators.sources import of_invex, real_tasks
from brokerlab.estimators.sources.panda import TASK_FILES
from brokerlab.estimators.sources.source import At, Source
from brokerlab.estimators.trial import POLICY, trial_levels
from brokerlab.numerics import FloatArray

OURS, OURS_OF_TRACES = POLICY.format(MODEL), POLICY.format(Views.name)
MARGINS = (0.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 20.0, 30.0)
OTHER_MARGINS = "PanDA scouts, other margins"
IDS_PER_S, OTHER_SPEEDS = 10.0, (5.0, 25.0)
"""Jobs that the whole system creates in a second, and others that are tried: real tasks have no times of day."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceEvaluation:
    """What rules and the views of earlier runs showed on workflow traces."""

    # one row per trace and estimator, the least waste first: ``trace, estimator, role`` (``current``, ``rule``,
    # and ours ``proposed`` where it is offered, else ``model``), ``runs, types``, ``waste_per_usage`` (held and
    # not used x time, killed attempts whole, over used x time), ``exceed`` (share of runs above their first
    # allocation), ``ratio, ratio_lo, ratio_hi`` (waste / that of the deployed rule; interval over task types),
    # ``best`` (waste of the best rule of the trace), ``over_best`` (waste / that)
    methods: pl.DataFrame
    offers: pl.DataFrame  # `offered.offers` over all traces

    @property
    def ours(self) -> pl.DataFrame:
        """The rows of the views."""
        return self.methods.filter(estimator=OURS_OF_TRACES)


def read_tasks(folder: Path) -> tuple[dict[At, Source], dict[float, Source]]:
    """Read the whole tasks of a folder of real data as `sources.real_tasks` does, also at other speeds."""
    tasks = real_tasks(folder, "memory", ids_per_s=IDS_PER_S)
    if not tasks:
        return {}, {}
    files = sorted(folder.glob(TASK_FILES))
    others = {speed: of_invex(files, "memory", ids_per_s=speed) for speed in OTHER_SPEEDS}
    return tasks, {IDS_PER_S: tasks["submit"], **others}


def evaluate_traces(
    sources: Mapping[str, Source], *, level: float = 0.95, n_boot: int = 2000, seed: int = 0
) -> TraceEvaluation:
    """Size the runs of workflow traces as they are submitted, by the views of earlier runs of their task type and by rules.

    Nothing is learnt from another trace. Allocations come from what the views tell, bounds are held to their levels.
    """
    levels = trial_levels(level)
    frames, judged = [], []
    for trace, source in sources.items():
        records = checked(source.records)
        predicted = {each.name: each.replay(records, levels=levels) for each in rules("memory")}
        replayed = Views("memory").replay(records, levels=levels)
        bounds = hold(records, replayed, "memory", levels=levels)
        rules_said = {name: each.point for name, each in predicted.items()}
        predicted[OURS_OF_TRACES] = repeat_at_price(allocate_at_prices(replayed), PRICE, levels)
        ours = {OURS_OF_TRACES: (predicted[OURS_OF_TRACES].point, bounds)}
        judged.append(judge_allocations(records, "memory", rules_said, ours, system=trace))
        drawn: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
        compared = scoring.compare(records, predicted, quantity="memory", **drawn)
        ratios = compared.paired.filter(measure="waste_per_usage").select(
            "estimator", "ratio", "ratio_lo", "ratio_hi"
        )
        role = {OURS_OF_TRACES: "model", compared.reference: "current"}
        rows = compared.table.join(ratios, on="estimator", how="left", maintain_order="left")
        waste = pl.col("waste_per_usage")
        best = rows.filter(pl.col("estimator") != OURS_OF_TRACES)["waste_per_usage"].min()
        frames.append(
            rows.select(
                pl.lit(trace).alias("trace"),
                "estimator",
                pl.col("estimator").replace_strict(role, default="rule").alias("role"),
                pl.col("jobs").alias("runs"),
                pl.lit(compared.counts["tasks"]).alias("types"),
                *("waste_per_usage", "exceed"),
                pl.when(estimator=compared.reference).then(1.0).otherwise("ratio").alias("ratio"),
                *("ratio_lo", "ratio_hi"),
                pl.lit(best, dtype=pl.Float64).alias("best"),
                (waste / best).alias("over_best"),
            ).sort("waste_per_usage", "estimator")
        )
    methods, offered = pl.concat(frames), offers(pl.concat(judged))
    proposed = offered.filter("learns", "offered")["estimator"].to_list()
    is_proposed = pl.col("estimator").is_in(proposed)
    methods = methods.with_columns(
        role=pl.when(is_proposed).then(pl.lit("proposed")).otherwise("role")
    )
    return TraceEvaluation(methods=methods, offers=offered)


def judge_speeds(
    sources: Mapping[float, Source], make: Make, *, level: float = 0.95
) -> pl.DataFrame:
    """Judge the deployed rule and the hierarchy on whole tasks, each left out, under clocks of other speeds.

    One row per speed and estimator: ``ids_per_s`` and the columns of `settings.score_settings`; no row without records.
    """
    frames = []
    levels = trial_levels(level)
    for speed, source in sources.items():
        records = checked(source.records)
        rule = rules("memory")[0]
        predicted = replay_left_out(records, make, levels=levels)
        priced = allocate_at_prices(predicted, prices=(PRICE,))
        allocations: dict[Setting, FloatArray] = {
            (rule.name, None): rule.replay(records, levels=levels).point,
            (MODEL, None): predicted.at(level),
            (OURS, None): priced.at(level_of(PRICE)),
        }
        scores = score_settings(records, allocations, "memory")
        frames.append(scores.select(pl.lit(speed).alias("ids_per_s"), pl.all()))
    return pl.concat(frames) if frames else pl.DataFrame()


def speed_effect(speeds: pl.DataFrame) -> dict[str, float] | None:
    """Return the speed of numbering jobs at which ours over-allocates most; None where times were recorded.

    ``ids_per_s``, ``worst`` and, at the speed that is taken, ``taken`` (over-allocated, mean of tasks [1]).
    """
    over = "over_allocation_task_mean"
    if speeds.is_empty():
        return None
    ours = speeds.filter(estimator=OURS).sort(over)
    ids_per_s, worst = ours.select("ids_per_s", over).row(-1)
    taken = ours.row(by_predicate=pl.col("ids_per_s") == IDS_PER_S, named=True)[over]
    return {"ids_per_s": ids_per_s, "worst": worst, "taken": taken}


def other_margins() -> dict[Setting, Rule]:
    """Return the deployed rule with other margins, by name and margin [%]."""
    deployed = rules("memory")[0].formula
    if not isinstance(deployed, ScoutMemory):
        return {}
    return {
        (OTHER_MARGINS, margin): Rule(OTHER_MARGINS, replace(deployed, margin_pct=margin))
        for margin in MARGINS
    }
