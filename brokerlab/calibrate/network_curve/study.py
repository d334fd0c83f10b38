"""Fit, choose and prove: the throughput curve on one source, the closeness fallback, waiting files against throughput."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import polars as pl

from brokerlab.brokerage.network_weight import NetworkSettings, throughput_curve
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.calibrate.network_curve import alternatives
from brokerlab.calibrate.network_curve.answers import (
    CurveStudy,
    ExchangeStudy,
    FallbackStudy,
    LinkStudy,
)
from brokerlab.calibrate.network_curve.evidence import Evidence, unseen
from brokerlab.calibrate.network_curve.exchange import (
    LEAST_IMPORTANCE,
    MOST_IMPORTANCE,
    ExchangeFit,
    fit_exchange,
    importance,
    prove_exchange,
    queue_facts,
)
from brokerlab.calibrate.network_curve.fallback import fit_fallback, prove_fallback
from brokerlab.calibrate.network_curve.resolution import (
    resolution,
    reweighted,
    told_apart,
)
from brokerlab.calibrate.network_curve.scores import Judgement, compare, judge
from brokerlab.calibrate.network_curve.sources import Links
from brokerlab.calibrate.network_curve.steps import MOST_STEPS, StepFit, fit_steps, usable
from brokerlab.errors import InsufficientDataError
from brokerlab.numerics import FloatArray

T = TypeVar("T")
DOCUMENT, FITTED, SITES = "document", "fitted", "sites"
LOWEST_MBPS = 1.0
"""The lowest edge of the document's curve [MB/s]."""
IMPORTANCE_DECIMALS = 2
SIDES = {
    "proof": "later, unseen links (the proof)",
    "proof_by_source": "the same, sources resampled",
    "proof_by_destination": "the same, destinations resampled",
    "silent_as_0": "the same, links that delivered nothing as 0",
    "above_1_mbps": "the same, only links above 1 MB/s",
    "later_seen": "later, seen links",
    "earlier_unseen": "earlier, unseen links",
    "earlier_seen": "earlier, seen links (where it was fitted)",
}
"""What each side of the data is called on a page."""


def study_links(
    links: Links,
    *,
    most_steps: int = MOST_STEPS,
    unseen_share: float = 0.5,
    n_boot: int = 500,
    seed: int = 1,
) -> LinkStudy:
    """Fit and prove every curve that the links can tell something about.

    Args:
        links: What was read.
        most_steps: See :func:`study_curve`.
        unseen_share: See :func:`study_curve`.
        n_boot: Bootstrap replicates over links.
        seed: Of the division of links and of the bootstrap.

    Raises:
        InsufficientDataError: They tell nothing about any.
    """
    draws: dict[str, Any] = {"unseen_share": unseen_share, "n_boot": n_boot, "seed": seed}
    refused = {name: InsufficientDataError(reason) for name, reason in links.refused.items()}
    nothing = InsufficientDataError("transfers tell neither closeness nor files waiting")
    metrics = links.evidence.get("metrics", refused.get("metrics", nothing))
    found = LinkStudy(
        curves=refused
        | {
            name: _attempt(lambda e: study_curve(e, most_steps=most_steps, **draws), evidence)
            for name, evidence in links.evidence.items()
        },
        fallback=_attempt(lambda e: study_fallback(e, **draws), metrics),
        exchange=_attempt(lambda e: study_exchange(e, links.settings, **draws), metrics),
    )
    if not found.answers():
        raise next(iter(found.refusals().values()))
    return found


def _attempt(
    work: Callable[[Evidence], T], evidence: Evidence | InsufficientDataError
) -> T | InsufficientDataError:
    if isinstance(evidence, InsufficientDataError):
        return evidence
    try:
        return work(evidence)
    except InsufficientDataError as error:
        return error


def study_curve(
    evidence: Evidence,
    *,
    most_steps: int = MOST_STEPS,
    unseen_share: float = 0.5,
    n_boot: int = 500,
    seed: int = 1,
) -> CurveStudy:
    """Fit the throughput curve on some links and prove it later on others, against the document and plain alternatives.

    Args:
        evidence: Of one source.
        most_steps: Steps at most.
        unseen_share: Share of the links that no fit sees; mirrored links stay on one side.
        n_boot: Bootstrap replicates over links.
        seed: Of the division of links and of the bootstrap.

    Raises:
        InsufficientDataError: Too few links, or all of them alike.
    """
    seen, others = _sides(evidence.rows, unseen_share, seed)
    learnt, proof = usable(seen.filter(stage="choice")), usable(others.filter(stage="proof"))
    fit = fit_steps(learnt, most=most_steps, n_boot=n_boot, seed=seed)
    weights = _weights(proof, learnt, fit)
    scores = compare(proof, weights, reference=DOCUMENT, n_boot=n_boot, seed=seed)
    pair = {name: weights[name] for name in (FITTED, SITES)}
    ahead = compare(
        proof, pair, reference=SITES, measures=("spearman",), n_boot=n_boot, seed=seed
    ).of(FITTED)
    curves = {DOCUMENT: throughput_curve(), FITTED: fit.curve}
    known = others.filter(pl.col("stage") == "proof", pl.col("mbps").is_not_null())
    return CurveStudy(
        fit=fit,
        scores=scores,
        checks=other_sides(seen, others, fit, n_boot=n_boot, seed=seed),
        steps=_steps(proof, fit),
        pairs=pl.DataFrame(
            [{"curve": name, **told_apart(proof, curve)} for name, curve in curves.items()]
        ),
        ahead_of_sites={key: ahead[key] for key in ("diff", "diff_lo", "diff_hi")},
        silent=known["outcome"].null_count() / known.height,
        judgement=judge(scores, proposed=FITTED, sites_behind=ahead["diff_lo"]),
    )


def study_fallback(
    evidence: Evidence, *, unseen_share: float = 0.5, n_boot: int = 500, seed: int = 1
) -> FallbackStudy:
    """Fit the weight of links without throughput on some links and prove it later on others; see :func:`study_curve`.

    Raises:
        InsufficientDataError: Too few links with closeness and a later throughput.
    """
    seen, others = _sides(evidence.rows, unseen_share, seed)
    current = throughput_curve()
    fit = fit_fallback(seen.filter(stage="choice"), current, n_boot=n_boot, seed=seed)
    scores = prove_fallback(others.filter(stage="proof"), current, fit, n_boot=n_boot, seed=seed)
    return FallbackStudy(fit=fit, scores=scores, judgement=judge(scores))


def study_exchange(
    evidence: Evidence,
    settings: NetworkSettings,
    *,
    unseen_share: float = 0.5,
    n_boot: int = 500,
    seed: int = 1,
) -> ExchangeStudy:
    """Find how many waiting files should weigh as much as one unit of throughput weight, and prove it on other links.

    Args:
        evidence: Of link metrics.
        settings: What acts now.
        unseen_share: See :func:`study_curve`.
        n_boot: Bootstrap replicates over links.
        seed: Of the division of links and of the bootstrap.

    Raises:
        InsufficientDataError: Too few links with files waiting and delivered.
    """
    seen, others = _sides(evidence.queues, unseen_share, seed)
    current, later = throughput_curve(), evidence.later_queues
    fit = fit_exchange(seen.filter(stage="choice"), current, settings, n_boot=n_boot, seed=seed)
    proof = others.filter(stage="proof" if later else "choice")
    scores = prove_exchange(proof, current, fit, n_boot=n_boot, seed=seed)
    judged = judge(scores)
    return ExchangeStudy(
        fit=fit,
        scores=scores,
        judgement=judged,
        facts=queue_facts(evidence.queues, settings.link_cap),
        later=later,
        proposed=proposed_importance(fit, judged, settings, later=later),
    )


def proposed_importance(
    fit: ExchangeFit, judgement: Judgement, settings: NetworkSettings, *, later: bool
) -> float | None:
    """Return the NW_QUEUE_IMPORTANCE to propose; null = keep.

    Args:
        fit: The best exchange of the links seen.
        judgement: What other links say about it.
        settings: What acts now.
        later: Whether they were measured after the queue: nothing else proves a change.

    Returns:
        The importance of the best exchange at the cap that acts, where it is proven, another one than now, and leaves
        both parts of the weight a say.
    """
    value = round(importance(fit.files, settings.link_cap), IMPORTANCE_DECIMALS)
    proven = later and judgement.outcome == "better"
    usable = LEAST_IMPORTANCE <= value <= MOST_IMPORTANCE and not fit.at_edge
    return value if proven and usable and value != settings.queue_importance else None


def _sides(frame: pl.DataFrame, share: float, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Divide links into those that a fit sees and those that it does not."""
    hidden = pl.Series(unseen(frame["group"].to_numpy(), share=share, seed=seed))
    return frame.filter(~hidden), frame.filter(hidden)


def _weights(proof: pl.DataFrame, learnt: pl.DataFrame, fit: StepFit) -> dict[str, FloatArray]:
    """Return every weight that is compared."""
    mbps = proof["mbps"].to_numpy()
    weights = {
        DOCUMENT: throughput_curve().weights(mbps),
        "production": throughput_curve(ProductionRules("production")).weights(mbps),
        FITTED: fit.curve.weights(mbps),
        "isotonic": alternatives.isotonic(proof, learnt),
        "log_throughput": alternatives.log_throughput(proof),
    }
    if not proof["mbps"].equals(proof["mbps_long"]):
        weights["log_throughput_long"] = alternatives.log_throughput(proof, "mbps_long")
    if proof["closeness"].count():
        weights["closeness"] = alternatives.closeness(proof)
    return {**weights, SITES: alternatives.sites(proof, learnt)}


def _steps(proof: pl.DataFrame, fit: StepFit) -> pl.DataFrame:
    """Return what each step of both curves tells, and what the links of the document's steps would weigh."""
    document = throughput_curve()
    told = resolution(proof, document).join(
        reweighted(proof, document, fit.curve), on="step", how="left", maintain_order="left"
    )
    parts = {DOCUMENT: told, FITTED: resolution(proof, fit.curve)}
    return pl.concat(
        [part.select(pl.lit(name).alias("curve"), pl.all()) for name, part in parts.items()],
        how="diagonal",
    )


def other_sides(
    seen: pl.DataFrame, others: pl.DataFrame, fit: StepFit, *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Score the document's and the fitted curve on other sides of the data.

    Args:
        seen: Links that the fit saw, both stages.
        others: The other links.
        fit: The fitted curve.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Returns:
        One row per ``side`` with enough links: ``proof`` (later, links not seen), ``proof_by_source``,
        ``proof_by_destination`` (the same, sources or destinations resampled), ``silent_as_0`` (links that delivered
        nothing count as 0), ``above_1_mbps`` (only those above the document's lowest edge), ``later_seen``,
        ``earlier_unseen``, ``earlier_seen`` (where it was fitted); for columns see :class:`CurveStudy`.
    """
    proof = usable(others.filter(stage="proof"))
    silent_as_0 = others.filter(
        pl.col("stage") == "proof", pl.col("mbps").is_not_null()
    ).with_columns(pl.col("outcome").fill_null(0.0))
    sides = {
        "proof": (proof, "group"),
        "proof_by_source": (proof, "src"),
        "proof_by_destination": (proof, "dst"),
        "silent_as_0": (silent_as_0, "group"),
        "above_1_mbps": (proof.filter(pl.col("mbps") > LOWEST_MBPS), "group"),
        "later_seen": (seen.filter(stage="proof"), "group"),
        "earlier_unseen": (others.filter(stage="choice"), "group"),
        "earlier_seen": (seen.filter(stage="choice"), "group"),
    }
    rows = []
    for side, (frame, unit) in sides.items():
        kept = frame.drop_nulls(["mbps", "outcome"])
        mbps = kept["mbps"].to_numpy()
        weights = {DOCUMENT: throughput_curve().weights(mbps), FITTED: fit.curve.weights(mbps)}
        try:
            scores = compare(
                kept, weights, reference=DOCUMENT, unit=unit, measures=("spearman",), n_boot=n_boot, seed=seed
            )  # fmt: skip
        except InsufficientDataError:
            continue
        row = scores.of(FITTED)
        rows.append(
            {
                "side": side,
                "name": SIDES[side],
                "n_rows": kept.height,
                "resampled": unit,
                "n_units": scores.n_links,
                "document": scores.of(DOCUMENT)["value"],
                "fitted": row["value"],
                **{f"diff{end}": row[f"diff{end}"] for end in ("", "_lo", "_hi")},
            }
        )
    return pl.DataFrame(rows)
