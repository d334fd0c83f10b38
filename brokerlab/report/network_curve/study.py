"""Fit, choose and prove: the throughput curve on each source, the closeness fallback, queue against throughput."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import polars as pl

from brokerlab.brokerage.network_weight import throughput_curve
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.calibrate.network_curve import (
    Evidence,
    ExchangeFit,
    FallbackFit,
    Judgement,
    Scores,
    StepFit,
    alternatives,
    compare,
    fit_exchange,
    fit_fallback,
    fit_steps,
    judge,
    prove_exchange,
    prove_fallback,
    resolution,
    told_apart,
    unseen,
)
from brokerlab.calibrate.network_curve.exchange import queue_facts
from brokerlab.calibrate.network_curve.steps import LEAST, usable
from brokerlab.errors import InsufficientDataError
from brokerlab.numerics import FloatArray
from brokerlab.report.network_curve.inputs import Inputs

T = TypeVar("T")

DOCUMENT, PRODUCTION, FITTED = "document", "production", "fitted"
LOG, LONG, FINEST, CLOSENESS, SITES = (
    "log throughput",
    "log throughput, longest window",
    "isotonic, any number of steps",
    "closeness alone",
    "names of the sites alone",
)
LOWEST_MBPS = 1.0
"""The lowest edge of the document's curve [MB/s]."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The throughput curve on one source.

    Attributes:
        name: ``metrics`` or ``transfers``.
        evidence: The links.
        fit: Of the links that were seen, on the stage of the choice.
        scores: Of every weight on the other links, on the later stage.
        checks: The same difference on other sides: ``side, n_rows, n_links, document, fitted, diff, lo, hi``.
        steps: What each step of each curve tells: `resolution` with ``curve``.
        told: Curve -> `told_apart`.
        moved: What links of each document step would weigh: ``step, mbps_above, n_rows, document, fitted,
            fitted_min, fitted_max``.
        sites_behind: How much the fitted curve is ahead of the names of the sites: ``diff, diff_lo, diff_hi``.
        judgement: What it proves.
    """

    name: str
    evidence: Evidence
    fit: StepFit
    scores: Scores
    checks: pl.DataFrame
    steps: pl.DataFrame
    told: dict[str, dict[str, float]]
    moved: pl.DataFrame
    sites_behind: dict[str, float]
    judgement: Judgement


@dataclass(frozen=True, kw_only=True)
class Fallback:
    """The weight of links without throughput."""

    fit: FallbackFit
    scores: Scores
    judgement: Judgement


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Queue against throughput; `later` tells whether the outcome came after the queue."""

    fit: ExchangeFit
    scores: Scores
    judgement: Judgement
    facts: dict[str, float]
    later: bool


@dataclass(frozen=True)
class _Draws:
    """What is drawn at random."""

    n_boot: int
    seed: int


@dataclass(frozen=True)
class Unanswered:
    """A question that the data do not answer."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """Everything the page shows.

    Attributes:
        inputs: What was loaded.
        curves: Source -> its curve.
        fallback: Of the metrics.
        exchange: Of the metrics.
        n_boot: Bootstrap replicates.
        seed: Of every draw.
    """

    inputs: Inputs
    curves: dict[str, Curve | Unanswered]
    fallback: Fallback | Unanswered
    exchange: Exchange | Unanswered
    n_boot: int
    seed: int


def study(
    inputs: Inputs, *, steps: int = 8, unseen_share: float = 0.5, n_boot: int = 500, seed: int = 1
) -> Study:
    """Fit and prove everything that the evidence allows.

    Args:
        inputs: What was loaded.
        steps: Steps of the throughput curve at most.
        unseen_share: Share of the links that no fit sees; mirrored links stay on one side.
        n_boot: Bootstrap replicates.
        seed: Of the draw of links and of the bootstrap.
    """
    draw = _Draws(n_boot, seed)
    curves: dict[str, Curve | Unanswered] = {
        name: Unanswered(reason) for name, reason in inputs.refused.items()
    }
    for name, evidence in inputs.evidence.items():
        curves[name] = _answered(partial(_curve, name, evidence, steps, unseen_share, draw))
    metrics = inputs.evidence.get("metrics")
    if metrics is None:
        reason = inputs.refused.get("metrics", "transfers tell neither closeness nor files waiting")
        return Study(inputs=inputs, curves=curves, fallback=Unanswered(reason), exchange=Unanswered(reason),
                     n_boot=n_boot, seed=seed)  # fmt: skip
    return Study(
        inputs=inputs,
        curves=curves,
        fallback=_answered(partial(_fallback, metrics, unseen_share, draw)),
        exchange=_answered(partial(_exchange, metrics, inputs, unseen_share, draw)),
        n_boot=n_boot,
        seed=seed,
    )


def _answered(work: Callable[[], T]) -> T | Unanswered:
    try:
        return work()
    except InsufficientDataError as problem:
        return Unanswered(str(problem))


def _sides(frame: pl.DataFrame, share: float, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Divide links into those that a fit sees and those that it does not."""
    hidden = pl.Series(unseen(frame["group"].to_numpy(), share=share, seed=seed))
    return frame.filter(~hidden), frame.filter(hidden)


def _curve(name: str, evidence: Evidence, steps: int, share: float, draw: _Draws) -> Curve:
    seen, others = _sides(evidence.rows, share, draw.seed)
    fit = fit_steps(seen.filter(stage="choice"), most=steps, n_boot=draw.n_boot, seed=draw.seed)
    learnt, proof = usable(seen.filter(stage="choice")), usable(others.filter(stage="proof"))
    weights = _weights(proof, learnt, fit)
    scores = compare(proof, weights, reference=DOCUMENT, n_boot=draw.n_boot, seed=draw.seed)
    pair = {key: weights[key] for key in (FITTED, SITES)}
    ahead = compare(
        proof, pair, reference=SITES, measures=("spearman",), n_boot=draw.n_boot, seed=draw.seed
    ).of(FITTED)
    curves = {DOCUMENT: throughput_curve(), FITTED: fit.curve}
    return Curve(
        name=name,
        evidence=evidence,
        fit=fit,
        scores=scores,
        checks=_checks(seen, others, fit, draw),
        steps=pl.concat(
            resolution(proof, curve).select(pl.lit(key).alias("curve"), pl.all())
            for key, curve in curves.items()
        ),
        told={key: told_apart(proof, curve) for key, curve in curves.items()},
        moved=_moved(proof, fit),
        sites_behind={key: ahead[key] for key in ("diff", "diff_lo", "diff_hi")},
        judgement=judge(scores, proposed=FITTED, sites_behind=ahead["diff_lo"]),
    )


def _weights(proof: pl.DataFrame, learnt: pl.DataFrame, fit: StepFit) -> dict[str, FloatArray]:
    """Return every weight that is compared."""
    mbps = proof["mbps"].to_numpy()
    found = {
        DOCUMENT: throughput_curve().weights(mbps),
        PRODUCTION: throughput_curve(ProductionRules("production")).weights(mbps),
        FITTED: fit.curve.weights(mbps),
        FINEST: alternatives.isotonic(proof, learnt),
        LOG: alternatives.log_throughput(proof),
    }
    if not proof["mbps"].equals(proof["mbps_long"]):
        found[LONG] = alternatives.log_throughput(proof, "mbps_long")
    if proof["closeness"].count():
        found[CLOSENESS] = alternatives.closeness(proof)
    return {**found, SITES: alternatives.sites(proof, learnt)}


def _checks(seen: pl.DataFrame, others: pl.DataFrame, fit: StepFit, draw: _Draws) -> pl.DataFrame:
    """Score document and fitted curve on other sides of the data."""
    proof = usable(others.filter(stage="proof"))
    nothing = others.filter(stage="proof").filter(pl.col("mbps").is_not_null())
    sides: Sequence[tuple[str, pl.DataFrame, str]] = (
        ("later, links not seen (the proof)", proof, "group"),
        ("the same, sources resampled", proof, "src"),
        ("the same, destinations resampled", proof, "dst"),
        ("the same, links that delivered nothing count as 0", nothing.with_columns(pl.col("outcome").fill_null(0.0)), "group"),
        (f"the same, only links above {LOWEST_MBPS:g} MB/s", proof.filter(pl.col("mbps") > LOWEST_MBPS), "group"),
        ("later, links that were seen", seen.filter(stage="proof"), "group"),
        ("earlier, links not seen", others.filter(stage="choice"), "group"),
        ("earlier, links that were seen (where it was fitted)", seen.filter(stage="choice"), "group"),
    )  # fmt: skip
    found = []
    for side, frame, unit in sides:
        kept = frame.drop_nulls(["mbps", "outcome"])
        mbps = kept["mbps"].to_numpy()
        weights = {DOCUMENT: throughput_curve().weights(mbps), FITTED: fit.curve.weights(mbps)}
        try:
            scores = compare(kept, weights, reference=DOCUMENT, unit=unit, measures=("spearman",), n_boot=draw.n_boot, seed=draw.seed)  # fmt: skip
        except InsufficientDataError:
            continue
        row = scores.of(FITTED)
        found.append(
            {
                "side": side,
                "n_rows": kept.height,
                "n_links": scores.n_links,
                "document": scores.of(DOCUMENT)["value"],
                "fitted": row["value"],
                **{key: row[f"diff{end}"] for key, end in (("diff", ""), ("lo", "_lo"), ("hi", "_hi"))},
            }
        )  # fmt: skip
    return pl.DataFrame(found)


def _moved(proof: pl.DataFrame, fit: StepFit) -> pl.DataFrame:
    """Return what links of each document step would weigh."""
    current = throughput_curve()
    mbps = proof["mbps"].to_numpy()
    edges = current.to_frame().with_row_index("step").with_columns(pl.col("step").cast(pl.Int64))
    step = np.searchsorted(np.array(current.mbps_above), mbps, side="left")
    fitted = pl.DataFrame({"step": step, "fitted": fit.curve.weights(np.maximum(mbps, LEAST))})
    counted = fitted.group_by("step").agg(
        n_rows=pl.len(),
        fitted=pl.col("fitted").mean(),
        fitted_min=pl.col("fitted").min(),
        fitted_max=pl.col("fitted").max(),
    )
    return edges.rename({"weight": "document"}).join(
        counted, on="step", how="left", maintain_order="left"
    )


def _fallback(evidence: Evidence, share: float, draw: _Draws) -> Fallback:
    seen, others = _sides(evidence.rows, share, draw.seed)
    current = throughput_curve()
    fit = fit_fallback(seen.filter(stage="choice"), current, n_boot=draw.n_boot, seed=draw.seed)
    scores = prove_fallback(
        others.filter(stage="proof"), current, fit, n_boot=draw.n_boot, seed=draw.seed
    )
    return Fallback(fit=fit, scores=scores, judgement=judge(scores))


def _exchange(evidence: Evidence, inputs: Inputs, share: float, draw: _Draws) -> Exchange:
    seen, others = _sides(evidence.queues, share, draw.seed)
    current = throughput_curve()
    later = evidence.later_queues
    fit = fit_exchange(
        seen.filter(stage="choice"), current, inputs.settings, n_boot=draw.n_boot, seed=draw.seed
    )
    scores = prove_exchange(
        others.filter(stage="proof" if later else "choice"),
        current,
        fit,
        n_boot=draw.n_boot,
        seed=draw.seed,
    )
    return Exchange(
        fit=fit,
        scores=scores,
        judgement=judge(scores),
        facts=queue_facts(evidence.queues, inputs.settings.link_cap),
        later=later,
    )
