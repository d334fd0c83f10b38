"""Weights of links through the one judge: chosen on earlier links, scored on later ones that nothing was chosen by.

What is independent is the link (mirrored links are one), so it is the unit; it is looked at in one span of time only. The
answer about NW_QUEUE_IMPORTANCE may become a proposal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl

from brokerlab.brokerage.network_weight import NetworkSettings, ThroughputCurve
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.calibrate.judge import (
    MIN_UNITS,
    Judgement,
    Limit,
    Outcomes,
    Question,
    by_place,
    judge,
)
from brokerlab.calibrate.network_curve.curves import (
    FEWEST_GROUPS,
    MOST_STEPS,
    StepFit,
    bounds_of,
    curve_of,
    fit_steps,
    log_curve,
    resolution,
    tied_share,
    usable,
)
from brokerlab.calibrate.network_curve.evidence import Evidence, Links, Span, dealt
from brokerlab.calibrate.network_curve.weights import (
    COVERAGE,
    COVERAGE_SOURCE,
    Ranked,
    Weight,
    exchange_weights,
    fallback_weights,
    files_per_unit,
    levels,
    line,
    predict,
    rank_values,
    throughput_weights,
    top_values,
)
from brokerlab.calibrate.verdict import Verdict, document_of, sentence_of, steps_of
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig.proposal import Window
from brokerlab.intervals import ENDS, measured_coverage, t_factor
from brokerlab.rulesets import RuleSetName
from brokerlab.words import measured, short_percent

FEWEST_LEVELS = 2
"""Values of closeness that a judgement of the fallback needs."""
SMALLEST_QUERY = 5
"""Links that a destination needs to count within destinations."""
TOP_RISE = 0.2
"""Largest accepted rise of what is ranked wrongly of the top tenth, as a part of the current [1]."""
HIDDEN_SHARE = 0.5
"""Share of the links whose throughput is hidden to score the fallback [1]."""
BLOCKED = -1
LOSS, RISE = "loss", "top_rise"
"""Quantities of the judge: 1 - rank correlation; rise of the share of other links ranked above one of the top tenth, as a
part of the current share."""
Unknown = Literal["demand", "snapshot"]


@dataclass(frozen=True, kw_only=True)
class Study:
    """What links say about the weights of one subject.

    Attributes:
        judgement: Of the judge; settings are names of weights, quantities ``loss`` and ``top_rise``.
        ranking: One row per weight, and ``chosen``, those chosen on earlier spans; on the links that scored: ``name, weight``
            (in words), ``spearman`` (rank correlation with what came later), ``diff`` (from the current one), ``within``
            (correlation within destinations at one instant), ``top`` (how often a link of the top tenth is ranked above another
            one), each with ``_lo, _hi`` (null where they are not known); ``mark`` (current; better: the interval of ``diff`` is
            above 0; else null).
        unknown: Why the archive cannot tell although a weight is better (case ``depends`` of the judgement): ``demand`` (the
            names of the sites alone rank links that they have not seen no worse: what is ranked is how much was asked
            for), ``snapshot`` (nothing came later); null: it can.
        frames: Further tables of the subject, by name.
        facts: Further numbers of the subject.
        fit: Of curves of throughput: the step curve fitted on all links; else null.
    """

    judgement: Judgement
    ranking: pl.DataFrame
    unknown: Unknown | None = None
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    fit: StepFit | None = None

    @property
    def gain(self) -> dict[str, Any]:
        """What weights chosen on earlier spans gain: ``before, after, diff`` of the rank correlation, with ``_lo, _hi``."""
        return gain_of(self.judgement.quantity(LOSS))

    @property
    def seen(self) -> float | None:
        """Largest gain in rank correlation that is not excluded; null = not known."""
        part, now = self.judgement.smallest_seen, self.judgement.candidates.filter("is_current")
        return None if part is None else part * float(now[LOSS][0])

    def of(self, name: str) -> dict[str, Any]:
        """Return the row of one weight."""
        return self.ranking.row(by_predicate=pl.col("name") == name, named=True)

    def numbers(self) -> dict[str, Any]:
        """Return what stands in no frame."""
        known = {"unknown": self.unknown, "gain": self.gain, **self.facts}
        return {"judgement": self.judgement.to_dict(), **known}

    def cannot_tell(self, why: Unknown) -> Study:
        """Return the study with no answer where it would have been another weight."""
        if not self.judgement.acts:
            return self
        return replace(self, judgement=self.judgement.cannot_tell(), unknown=why)


def gain_of(losses: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return ``before, after, diff`` of the rank correlation with ``_lo, _hi``, from those of the loss, which is what it lacks."""
    return {
        f"{key}{end}": None if (loss := losses[f"{key}{other}"]) is None else whole - loss
        for key, whole in (("before", 1.0), ("after", 1.0), ("diff", 0.0))
        for end, other in zip(ENDS, ("", "_hi", "_lo"), strict=True)
    }


def ask_ranks(**how: Any) -> Question:
    """Ask for the weight of highest rank correlation that ranks the top tenth not much worse; 500 replicates if not said otherwise."""
    limit = Limit(quantity=RISE, most=TOP_RISE, share=False)
    return Question(objective=LOSS, limits=(limit,), **{"n_boot": 500, **how})


def study_weights(
    rows: pl.DataFrame,
    weights: Sequence[Weight],
    *,
    current: str,
    spans: Sequence[Span],
    **how: Any,
) -> tuple[Study, Ranked]:
    """Judge weights by how they rank links by ``outcome``; the study comes with the links that scored.

    ``rows`` are of :func:`dealt`: ``unit, span, query, src, dst, outcome`` (null: not scored) and what weights read; ``current``
    names the weight that acts; ``how`` is of `ask_ranks`.
    """
    if rows["outcome"].drop_nulls().n_unique() < 2:
        raise InsufficientDataError("all links delivered the same; there is no ranking to score")
    predicted = predict(rows, weights)
    known = rows["outcome"].is_not_null().to_numpy()
    ranked = Ranked.of(rows.filter(known), predicted[known])
    offered = [i for i, weight in enumerate(weights) if weight.offered]
    names = tuple(weights[i].name for i in offered)
    now = offered[names.index(current)]
    size, loss = ranked.by("unit", 1 - ranked.ranks)
    missed = ranked.by("unit", 1 - ranked.each(top_values, ["span"]))[1]
    base = float(np.average(missed[:, now], weights=size)) or 1.0
    rises = (missed - missed[:, [now]]) / base

    units = ranked.rows.select("unit", block="span").unique(maintain_order=True)
    times = pl.Series("time", [spans[span][0] for span in units["block"]])
    if units["block"].n_unique() < 2:  # of one span: blocks of links
        units = units.drop("block")
    question = ask_ranks(**how)
    outcomes = Outcomes(
        units=units.with_columns(times, weight=pl.Series(size)),
        settings=names,
        current=names.index(current),
        values=by_place({LOSS: loss[:, offered], RISE: rises[:, offered]}),
    )
    judged = judge(outcomes, question)
    if judged.coverage is not None:  # of links, not of tasks
        covered = measured_coverage(judged.n_scored, question.confidence, COVERAGE)
        judged = replace(judged, coverage=covered)
    scored = units["unit"].filter(judged.chosen >= 0).implode()
    scores = ranked.take(ranked.rows["unit"].is_in(scored).to_numpy())
    ranking = _ranking(scores, weights, now, gain_of(judged.quantity(LOSS)), question)
    facts = {"n_links_scored": judged.n_scored, "n_links": judged.n_units}
    return Study(judgement=judged, ranking=ranking, facts=facts), scores


def _ranking(
    scores: Ranked,
    weights: Sequence[Weight],
    current: int,
    chosen: Mapping[str, Any],
    question: Question,
) -> pl.DataFrame:
    """Return how well every weight ranks the links that scored: see `Study.ranking`."""
    measures = {
        "spearman": ("unit", scores.ranks, MIN_UNITS),
        "within": ("dst", scores.each(rank_values, ["query"], SMALLEST_QUERY), 2),
        "top": ("unit", scores.each(top_values, ["span"]), MIN_UNITS),
    }
    spearman = {"spearman": "after", "diff": "diff"}
    rows = [{"name": "chosen", "weight": "chosen on earlier links", **_ends(chosen, spearman)}]
    for place, weight in enumerate(weights):
        row = {"name": weight.name, "weight": weight.label}
        for name, (unit, values, fewest) in measures.items():
            pair = scores.contrast(unit, values[:, [current, place]], question, fewest=fewest)
            row |= _ends(pair, spearman if name == "spearman" else {name: "after"})
        rows.append(row)
    names = [f"{name}{end}" for name in ("spearman", "diff", "within", "top") for end in ENDS]
    schema = dict.fromkeys(("name", "weight"), pl.String) | dict.fromkeys(names, pl.Float64)
    better = pl.when(pl.col("diff_lo") > 0).then(pl.lit("better"))
    mark = pl.when(name=weights[current].name).then(pl.lit("current")).otherwise(better)
    return pl.DataFrame(rows, schema=schema).with_columns(mark=mark)


def _ends(numbers: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return numbers with their ends under new names."""
    return {f"{new}{end}": numbers[f"{old}{end}"] for new, old in names.items() for end in ENDS}


# --- the subjects -------------------------------------------------------------------------------------------------------


def study_curve(
    evidence: Evidence,
    *,
    rules: RuleSetName = "document",
    most_steps: int = MOST_STEPS,
    **how: Any,
) -> Study:
    """Judge curves of throughput, against that of a rule set and plain alternatives; ``how`` is of `ask_ranks`.

    ``frames``: ``all_steps`` (what the steps of the current and of the fitted curve tell: `resolution`, with ``curve``),
    ``error_by_size``, ``curve`` (the best logarithm in steps, else the fitted one). ``facts``: ``ahead_of_sites`` (by how much the
    best other weight ranks better than the names of the sites: ``diff, diff_lo, diff_hi`` of the rank correlation), ``silent`` (share of the rows with a throughput that delivered nothing later [1]), ``tied`` (share of pairs
    of links to which the current curve gives one weight [1]).
    """
    moved = pl.when(pl.col("outcome") > 0).then("outcome")
    measured = evidence.rows.filter(pl.col("mbps").is_finite()).with_columns(outcome=moved)
    usable(measured)
    question = ask_ranks(**how)
    n_boot, seed = question.n_boot, question.seed
    rows = dealt(measured, seed=seed)
    weights = throughput_weights(rows, rules=rules, most_steps=most_steps, seed=seed)
    names = [weight.name for weight in weights]
    study, scores = study_weights(rows, weights, current=names[0], spans=evidence.spans, **how)
    judged = study.judgement
    compared = names.index("steps" if judged.best == names[0] else judged.best)
    pair = scores.ranks[:, [names.index("sites"), compared]]
    ahead = scores.contrast("unit", pair, judged.question)
    fit = fit_steps(rows, most=most_steps, n_boot=n_boot, seed=seed)
    curves = {names[0]: curve_of(rules), "fitted": fit.curve}
    steps = [
        resolution(scores.rows, curve, fit.curve).select(pl.lit(name).alias("curve"), pl.all())
        for name, curve in curves.items()
    ]
    log = judged.best.startswith("log")
    curve = log_curve(*bounds_of(rows["mbps"])) if log else fit.curve
    result = replace(
        study,
        frames={
            "all_steps": pl.concat(steps),
            "error_by_size": fit.by_size,
            "curve": curve.frame(),
        },
        facts={
            **study.facts,
            "ahead_of_sites": {key: ahead[key] for key in ("diff", "diff_lo", "diff_hi")},
            "silent": rows["outcome"].null_count() / rows.height,
            "tied": tied_share(scores.predicted[:, 0]),
        },
        fit=fit,
    )
    excludes_0 = ahead["diff_lo"] is not None and ahead["diff_lo"] > 0
    return result if excludes_0 else result.cannot_tell("demand")


def study_fallback(evidence: Evidence, *, rules: RuleSetName = "document", **how: Any) -> Study:
    """Judge weights of links without throughput, ranked among those that have one; ``frames``: :func:`.weights.levels`.

    Links without a throughput that deliver something later are few; so a part of those with one is treated as if it had
    none. Blocked links (closeness -1) are left out. ``how`` is of `ask_ranks`.

    Raises:
        InsufficientDataError: Too few links with closeness and a later throughput.
    """
    open_links = evidence.rows.filter(pl.col("closeness").fill_null(0) != BLOCKED)
    known = open_links.filter(pl.col("outcome") > 0)
    n, values = known["group"].n_unique(), known["closeness"].drop_nulls().n_unique()
    if n < FEWEST_GROUPS or values < FEWEST_LEVELS:
        raise InsufficientDataError(
            f"{n} links with a later throughput have {values} values of closeness; "
            f"{FEWEST_GROUPS} links and {FEWEST_LEVELS} values are needed"
        )
    question = ask_ranks(**how)
    n_boot, seed = question.n_boot, question.seed
    curve, rows = curve_of(rules), dealt(known, seed=seed)
    coin = pl.Series(np.random.default_rng(seed).random(rows.height) < HIDDEN_SHARE)
    unmeasured = pl.col("mbps").is_null()
    rows = rows.with_columns(hidden=coin | unmeasured, mbps=pl.col("mbps").fill_null(0.0))
    weights = fallback_weights(curve)
    study, _ = study_weights(rows, weights, current=weights[0].name, spans=evidence.spans, **how)
    table = levels(rows, open_links, curve, n_boot=n_boot, seed=seed)
    return replace(study, frames={"levels": table})


def study_exchange(
    evidence: Evidence,
    settings: NetworkSettings,
    *,
    rules: RuleSetName = "document",
    also: Sequence[float] = (),
    **how: Any,
) -> Study:
    """Judge NW_QUEUE_IMPORTANCE: how many waiting files should weigh as much as one unit of throughput weight.

    ``frames``: ``table`` (:func:`exchange_table`). ``facts``: ``queues`` (:func:`queue_facts`), ``later`` (whether the outcome came
    after the queue), ``proposed`` (NW_QUEUE_IMPORTANCE to set; null = none; the cap stays: it is the limit of the backlog check,
    too, and where the queued weight reads it no ranking can tell it from the importance). ``how`` is of `ask_ranks`.

    Raises:
        ConfigError: NW_QUEUE_IMPORTANCE is no share.
        InsufficientDataError: Too few links with files waiting and delivered.

    Source: network-weight.md 1, D2, D6.
    """
    if not 0 <= settings.queue_importance <= 1:
        raise ConfigError(
            f"NW_QUEUE_IMPORTANCE is {settings.queue_importance:g}; allowed is a share from 0 to 1"
        )
    study, _ = study_weights(
        dealt(waiting(evidence.queues, curve_of(rules)), seed=ask_ranks(**how).seed),
        exchange_weights(settings, rules, also),
        current=f"{settings.queue_importance:g}",
        spans=evidence.spans,
        **how,
    )
    later = evidence.later_queues
    study = study if later else study.cannot_tell("snapshot")
    return replace(
        study,
        frames={"table": exchange_table(study.judgement, settings.link_cap, rules)},
        facts={
            **study.facts,
            "queues": queue_facts(evidence.queues, settings.link_cap),
            "later": later,
            "proposed": float(study.judgement.setting) if study.judgement.acts else None,
        },
    )


def waiting(queues: pl.DataFrame, curve: ThroughputCurve) -> pl.DataFrame:
    """Return links with files waiting, with ``throughput_weight`` and ``outcome``: minus ln of the hours that the queue takes."""
    kept = queues.filter(pl.col("wait_h") > 0, pl.col("n_queued") > 0)
    n = kept["group"].n_unique()
    if n < FEWEST_GROUPS:
        raise InsufficientDataError(
            f"{n} links have files waiting and files delivered; {FEWEST_GROUPS} are needed"
        )
    mbps = kept["mbps"].fill_null(float("nan")).to_numpy()
    weight = np.where(np.isnan(mbps), line(kept["closeness"]), curve.weights(mbps))
    return kept.with_columns(throughput_weight=pl.Series(weight), outcome=-pl.col("wait_h").log())


def queue_facts(queues: pl.DataFrame, cap: float) -> dict[str, float]:
    """Return how queues stand to the cap and to what is delivered.

    ``n_queues``, and of three or more ``at_cap`` share with at least the cap, which the backlog check removes [1]; ``spearman_rate`` rank
    correlation of the queue with the rate at which the link delivers.
    """
    kept = queues.filter(pl.col("wait_h") > 0)
    if kept.height < 3:
        return {"n_queues": kept.height}
    rate = pl.col("n_queued") / pl.col("wait_h")
    facts = kept.select(
        n_queues=pl.len(),
        at_cap=(pl.col("n_queued") >= cap).mean(),
        spearman_rate=pl.corr("n_queued", rate, method="spearman"),
    )
    return facts.row(0, named=True)


def exchange_table(judgement: Judgement, cap: float, rules: RuleSetName) -> pl.DataFrame:
    """Return every importance that was tried, over all links, by ``files`` that weigh as one unit of throughput weight.

    ``files`` (null: any number), ``importance``, ``score, score_lo, score_hi`` (rank correlation with how soon the files that wait
    are delivered), ``is_current``, ``is_best``.
    """
    rows = judgement.candidates
    reach = t_factor(judgement.n_units, judgement.question.confidence) * pl.col("loss_se")
    shares = [float(judgement.settings[place]) for place in rows["place"]]
    files = [files_per_unit(NetworkSettings(share, cap), rules) for share in shares]
    return rows.select(
        pl.Series("files", files).replace(float("inf"), None),
        pl.Series("importance", shares),
        score=1 - pl.col("loss"),
        score_lo=1 - pl.col("loss") - reach,
        score_hi=1 - pl.col("loss") + reach,
        is_current="is_current",
        is_best="is_best",
    ).sort("files", nulls_last=True)


def marks(table: pl.DataFrame, best: str) -> pl.DataFrame:
    """Return the exchanges that a chart names, the current one and the best: ``files, score, label``; none with one part."""
    label = pl.when("is_current").then(pl.lit("current")).when("is_best").then(pl.lit(best))
    named = table.filter(pl.col("files") > 0).select("files", "score", label=label)
    return named.drop_nulls("label")


# --- all of them --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinkStudy:
    """What links say about every subject (``metrics, transfers, fallback, exchange``), or why nothing can be said."""

    answers: Mapping[str, Study]
    refused: Mapping[str, str]

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return the frames of all answers by subject and name; fitted curves as ``curve_NAME``."""
        frames = {}
        for subject, one in self.answers.items():
            frames[f"{subject}_all_scores"] = one.ranking
            for name, frame in one.frames.items():
                frames[f"curve_{subject}" if name == "curve" else f"{subject}_{name}"] = frame
        return frames

    def numbers(self, evidence: Mapping[str, Evidence]) -> dict[str, dict[str, Any]]:
        """Return by subject what stands in no frame, or the reason of a refusal."""
        facts = {name: {"facts": one.facts} for name, one in evidence.items()}
        answers = {n: one.numbers() | facts.get(n, {}) for n, one in self.answers.items()}
        return answers | {name: {"reason": reason} for name, reason in self.refused.items()}


def study_links(links: Links, *, most_steps: int = MOST_STEPS, **how: Any) -> LinkStudy:
    """Judge the weights of every subject that links can tell something about, see `ask_ranks`; refuse where that is none."""
    how |= {"rules": links.rules}
    asked: dict[str, Callable[[], Study]] = {
        name: partial(study_curve, evidence, most_steps=most_steps, **how)
        for name, evidence in links.evidence.items()
    }
    answers, refused = {}, dict(links.refused)
    if (metrics := links.evidence.get("metrics")) is not None:
        asked["fallback"] = partial(study_fallback, metrics, **how)
        asked["exchange"] = partial(study_exchange, metrics, links.settings, **how)
    else:
        reason = refused.get("metrics", "transfers tell neither closeness nor files waiting")
        refused |= {"fallback": reason, "exchange": reason}
    for name, ask in asked.items():
        try:
            answers[name] = ask()
        except InsufficientDataError as error:
            refused[name] = str(error)
    if not answers:
        raise InsufficientDataError(next(iter(refused.values())))
    return LinkStudy(answers, refused)


# --- the proposal -----------------------------------------------------------------------------------------------------


KEYS = ("NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP")
PLACE = "jedi/jobbroker"
QUANTITY = "rank correlation of the network weight with how soon the queue of a link is delivered"
DECIMALS = 3


def propose(exchange: Study, links: Links, *, created_at: datetime) -> Verdict:
    """Put a study of the exchange into a sentence and, where there is an answer, into a proposal at ``created_at`` (UTC without zone)."""
    settings = links.settings
    judged, gain, now = exchange.judgement, exchange.gain, settings.queue_importance
    values = dict(zip(KEYS, (now, settings.link_cap), strict=True))
    # of the queued weight: in ``document`` its line ends at 300 files, whatever the cap
    kept = KEYS if ProductionRules(links.rules).queued_line == "cap" else KEYS[:1]
    new = float(judged.setting)
    files = files_per_unit(NetworkSettings(new, settings.link_cap), links.rules)
    gained = measured(gain["diff"], gain["diff_lo"], gain["diff_hi"], DECIMALS)
    rise = judged.quantity(RISE)["after"]
    wrong = f"{short_percent(abs(rise))} {'less' if rise < 0 else 'more'}"
    sentence = sentence_of(
        judged,
        actions=f"{steps_of([(KEYS[0], now, new)], '{:g}'.format)} ({files:.0f} waiting files per unit of throughput weight)",
        kept="Keep " + " and ".join(f"{key} = {values[key]:g}" for key in kept),
        effects=f"the rank correlation with how soon queues are delivered rises by {gained}, of the top tenth {wrong} "
        "is ranked wrongly",
        now=f"rank correlation {1 - judged.candidates.filter('is_current')[LOSS][0]:.{DECIMALS}f}",
        limit=f"{short_percent(TOP_RISE)} more of the top tenth ranked wrongly",
        keeping=f"{KEYS[0]} = {judged.cheapest_within} is the best that keeps it",
        loss="1 - rank correlation",
        units="links",
        unknown=f"on links not seen the rank correlation rises by {gained} with {KEYS[0]} = {judged.best}, but one snapshot shows "
        "nothing that was delivered later",
    )
    spans = links.evidence["metrics"].spans
    scored = Window("scored", spans[1 if spans[1:] else 0][0], spans[-1][1])
    first = [Window("first choice", spans[0][0], scored.start)] if spans[1:] else []
    effect = {"label": QUANTITY, "unit": "1", **gain, "coverage": judged.coverage}
    verb = f"Set {KEYS[0]} to {judged.setting}" if judged.acts else f"Keep {' and '.join(kept)}"
    document = document_of(
        judged,
        sentence,
        links.config,
        {f"{PLACE}/{KEYS[0]}": new},
        [f"{PLACE}/{key}" for key in kept],
        effects=pl.DataFrame([effect]),
        windows=[*first, scored],
        units="links",
        numbers={
            "max_top_rise": TOP_RISE,
            "inner_limit": judged.inner * TOP_RISE,
            "coverage_measured_on": COVERAGE_SOURCE,
        },
        synthetic=links.synthetic,
        title=verb,
        created_at=created_at,
        archive_digest=links.digests[0] if links.digests else None,
        rules_digest=links.rules,
    )
    return Verdict(judged.kind, sentence, KEYS[0], document, information_only=False)
