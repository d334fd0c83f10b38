"""Which curves should turn throughput, closeness and waiting files into the network weight?

Each is fitted on some links and proven later on links that the fit has not seen: the step curve of throughput on every
source, the weight of links without throughput, and how many waiting files weigh as much as one unit of throughput weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

import polars as pl
from pydantic import Field, model_validator

from brokerlab.brokerage.network_weight import throughput_curve
from brokerlab.calibrate import network_curve as links
from brokerlab.calibrate.network_curve import (
    Answer,
    CurveStudy,
    Evidence,
    ExchangeStudy,
    FallbackStudy,
    LinkStudy,
)
from brokerlab.charts import network as charts
from brokerlab.errors import InsufficientDataError
from brokerlab.report import kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Part, Table, Verdict, say
from brokerlab.report.results import Kind

TITLES = {
    "metrics": "Throughput curve, link metrics",
    "transfers": "Throughput curve, transfers",
    "fallback": "Links without throughput",
    "exchange": "Waiting files against throughput",
}
KINDS: Mapping[str, Kind] = {"better": "change", "demand": "no_answer"}
"""Outcome of a judgement to the kind of the answer; all others keep what is."""
ORDER = ("change", "keep", "no_answer")
CASES = {
    "better": "{new}: rank correlation rises by {diff}.",
    "demand": "The sites' names rank unseen links as well ({sites} against {value}): rates show demand, not capacity.",
    "snapshot": "Keep {now}: one snapshot cannot prove a gain of {diff}.",
    "one_part": "Keep {now}: {diff} more rank correlation, but with one part of the weight alone.",
    "worse_at_top": "Keep {now}: the fit ranks the top tenth worse, NDCG {top}.",
    "worse": "Keep {now}: the fit changes the rank correlation by {diff}.",
    "not_proven": "Keep {now}: {diff} more rank correlation is not proven.",
}
"""Outcome of a judgement to the headline; of waiting files also `snapshot` and `one_part`."""
SOURCE = {
    "n_silent": "{n} of {n_links} links have no throughput when the weight is taken; no curve concerns them.",
    "n_mirrored": "{n} of {n_active} links repeat another one's numbers (common storage, or chance); they count once.",
    "n_as_volume": "what links could carry: in all {n} pairs of windows the metric is volume over time, so it is demand.",
    "n_above_volume": "{n} of {n_volume_pairs} pairs of windows exceed the longer one's volume: no volume over time.",
    "n_periods": "what links could carry: bytes over {n} periods are demand; a link that nobody used looks slow.",
    "spearman_hour_after": "one snapshot: its last hour (rank correlation with the 23 hours before {n}) stands for later.",
    "n_local": "{n} links from a site to itself are left out.",
    "n_other_time": "{n} values measured at another time than the snapshot are left out.",
    "n_negative": "{n} links moved less in a window than in a part of it; taken as nothing.",
}
"""Fact of a source, said if it is there and not 0, to what it leaves open."""
DEVELOPERS = "Fixed in the code: for its developers, there is no key to set."
RANKS = "Rank correlation (Spearman): 1 if links stand in the order of what they later deliver, 0 without relation."
BLUNT, FEW_ROWS, NEARLY, TOGETHER = 0.6, 20, 0.9, 0.3
"""Share of pairs below which an edge hardly separates; rows below which a step's height is not tested; part of the gain of
the best number of steps; rank correlation of queue and delivery above which long queues stand where much is delivered."""


class Params(kit.Dated):
    """What may be asked."""

    report: ClassVar[str] = "network-curve"
    question: ClassVar[str] = (
        "Which curves should turn throughput, closeness and waiting files into the network weight?"
    )

    archive: str = Field(
        "data/demo", description="archive folder, or file of metrics or transfers as dumped [path]"
    )
    n_boot: int = Field(500, ge=20, description="bootstrap replicates over links [1]")
    transfers: str = Field(
        "", description="more transfers: file, folder or archive, empty for none [path]"
    )
    steps: int = Field(8, ge=1, le=30, description="steps of the throughput curve at most [1]")
    unseen_share: float = Field(
        0.5, ge=0.1, le=0.9, description="share of the links that no fit sees, for the proof [1]"
    )

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if not (self.archive or self.transfers):
            raise ValueError("archive='': must be an archive or a file, or give transfers")
        return self


@kit.answers
def load(p: Params) -> links.Links:
    """Read what links showed and what they delivered later."""
    return links.read_links(*filter(None, (p.archive, p.transfers)), start=p.start, end=p.end)


@kit.answers
def study(data: links.Links, p: Params) -> LinkStudy:
    """Fit on some links and prove later on others."""
    return links.study_links(
        data, most_steps=p.steps, unseen_share=p.unseen_share, n_boot=p.n_boot, seed=p.seed
    )


def page(data: links.Links, s: LinkStudy, p: Params) -> Page:
    """Put the subjects together, answers that change something first."""
    parts = [curve(name, result, data) for name, result in s.curves.items()]
    parts += [fallback(s.fallback), exchange(s.exchange, data)]
    parts.sort(key=lambda part: ORDER.index(part.verdict.kind))
    first = parts[0]
    gains = [gain(name, result) for name, result in s.answers().items()]
    return Page(
        verdict=first.verdict,
        numbers=gains[:3],
        chart=first.chart and replace(first.chart, note=f"{RANKS} {first.chart.note}"),
        parts=[replace(first, chart=None), *parts[1:]],
        caveats=caveats(data, s),
        facts={"Sources": ", ".join(data.sources)},
        archive=data.archive,
        config=data.config,
        window="; ".join(
            f"{name}: choice {e.stages['choice']}, proof {e.stages['proof']}"
            for name, e in data.evidence.items()
        ),
        digests={"archive": " ".join(data.digests)},
        proposals=proposals(data, s, p),
        also=also(data, s),
        values=s.numbers(data.evidence),
        synthetic=data.synthetic,
    )


def gain(name: str, result: Answer) -> Number:
    """Return what the fitted weight of a subject gains."""
    judged = vars(result.judgement)
    note = say(
        "rank correlation {reference} to {value}, {n} links", judged, n=result.scores.n_links
    )
    return Number.of(judged, "diff", label=TITLES[name], note=note)


def verdict(name: str, result: Answer, case: str, **terms: Any) -> Verdict:
    """Fill the sentence of a subject."""
    top = result.scores.of("fitted", "ndcg_top")
    terms |= vars(result.judgement) | {f"top{end}": top[f"diff{end}"] for end in ("", "_lo", "_hi")}
    sentence = say(CASES[case], terms)
    return Verdict(kind=KINDS.get(case, "keep"), subject=TITLES[name], sentence=sentence)


def unanswered(name: str, error: InsufficientDataError) -> Part:
    """Say why there is too little data for a subject."""
    reason = kit.no_answer(str(error))
    verdict = Verdict(kind="no_answer", subject=TITLES[name], sentence=reason.verdict.sentence)
    return Part(name=name, title=TITLES[name], verdict=verdict, sections=reason.sections)


def ranking(scores: links.Scores, caption: str, gain: str) -> Table:
    """Lay out how well every weight ranks links, and its difference from the reference."""
    return Table(
        name="scores",
        frame=scores.by_weight(),
        caption=caption,
        columns={
            "weight": "Weight",
            "spearman": "Rank correlation",
            "diff": "Difference from current",
            "spearman_within": "Within destinations",
            "ndcg_top": "NDCG, top tenth",
        },
        mark="mark",
        note="Within destinations: links to one destination compared. NDCG: what the tenth ranked first delivers, over the "
        f"best possible, gain {gain}. Better: the 95 % interval (in brackets, from resampling links) is above 0.",
    )


# --- throughput curve ---------------------------------------------------------------------------------------------------


def curve(name: str, result: CurveStudy | InsufficientDataError, data: links.Links) -> Part:
    """Lay out the throughput curve on one source."""
    if isinstance(result, InsufficientDataError):
        return unanswered(name, result)
    terms = {
        "now": "the document's curve",
        "new": f"Take a fitted curve of {len(result.fit.curve.mbps_above)} steps",
        "sites": result.scores.of("sites")["value"],
    }
    better = result.scores.table.filter(pl.col("measure") == "spearman", pl.col("diff_lo") > 0)
    n = better.filter(pl.col("name") != "fitted").height
    caption = say("{n} plain weights rank links better than the document's curve", n=n)
    ranked = ranking(result.scores, caption, "ln(1 + MB/s)")
    return Part(
        name=name,
        title=TITLES[name],
        verdict=verdict(name, result, result.judgement.outcome, **terms),
        chart=curve_chart(result, data.evidence[name]),
        sections={
            "Against the document and plain weights": [ranked],
            "What the curve tells apart": [steps_told_apart(result)],
            kit.CERTAINTY: [other_sides(result)],
        },
    )


def curve_chart(result: CurveStudy, evidence: Evidence) -> Chart:
    """Show both step curves over the throughputs that occur."""
    fitted = "proposed" if result.judgement.outcome == "better" else "fitted"
    edges = result.fit.curve.mbps_above
    finding = "{share_at_most_1:%} of links share the document's lowest step; fitted edges: {first} to {last} MB/s"
    sample = "Fitted on {n} links, {days}; band: 95 % interval."
    return Chart(
        draw=charts.weight_curves,
        frame=links.beside_document(result.fit, evidence.rows["mbps"], fitted=fitted),
        finding=say(finding, evidence.facts, first=f"{edges[0]:g}", last=f"{edges[-1]:g}"),
        sample=say(sample, n=result.fit.n_links, days=evidence.stages["choice"]),
        note=DEVELOPERS,
    )


def steps_told_apart(result: CurveStudy) -> Table:
    """Show which links the document's curve can and cannot tell apart."""
    blunt = pl.when(pl.col("beats_below") < BLUNT).then(pl.lit("hardly separates"))
    steps = result.steps.filter(curve="document").with_columns(mark=blunt)
    apart = "The document's curve gives {tied:%} of all pairs of links one weight; {n} of its edges hardly separate"
    return Table(
        name="steps",
        frame=steps,
        caption=say(apart, result.pairs.row(0, named=True), n=steps["mark"].count()),
        columns={
            "edge": "Throughput [MB/s]",
            "share": "Links [%]",
            "beats_below": "Delivers more than the step below [% of pairs]",
            "weight": "Weight, document",
            "fitted": "Weight, fitted: mean (least to largest)",
        },
        mark="mark",
        note="50 % of pairs: the edge tells nothing; hardly separates: below 60 %. Links of the proof, unseen by the fit.",
    )


def other_sides(result: CurveStudy) -> Table:
    """Show the difference on other sides of the data."""
    fit = result.fit
    terms = {"chosen": fit.by_size.filter("chosen")["n_steps"][0], "few": fit.steps_for(NEARLY)}
    few = "{chosen} steps are chosen; {few} bring nine tenths of the gain of the best number."
    return Table(
        name="checks",
        frame=result.checks,
        caption="Rank correlation on other sides of the data",
        columns={
            "name": "Side",
            "n_rows": "Rows",
            "n_units": "Resampled units",
            "document": "Document",
            "fitted": "Fitted",
            "diff": "Difference",
        },
        note=say(few, terms) if fit.useful else "No number of steps predicts better than none.",
    )


# --- links without throughput, waiting files ----------------------------------------------------------------------------


def fallback(result: FallbackStudy | InsufficientDataError) -> Part:
    """Lay out the weight of links without throughput."""
    if isinstance(result, InsufficientDataError):
        return unanswered("fallback", result)
    levels = result.fit.table
    above = levels.filter(pl.col("line") > pl.col("weight_hi")).height
    over = "At {n} of {all} values of closeness the document's line is above what they earn"
    caption = "All links, half of their throughputs hidden"
    outcome = result.judgement.outcome
    terms = {"now": "the closeness line", "new": "Replace the closeness line by fitted weights"}
    return Part(
        name="fallback",
        title=TITLES["fallback"],
        verdict=verdict("fallback", result, outcome, **terms),
        chart=Chart(
            draw=charts.weights_by_closeness,
            frame=result.fit.by_setting("proposed" if outcome == "better" else "fitted"),
            finding=say(over, n=above, all=levels.height),
            sample=say("{n} links; bars: 95 % intervals.", n=int(levels["n_links"].sum())),
            note=f"{DEVELOPERS} Closeness: 0 the nearest, 11 the farthest. Earn: the weight of their later throughput.",
        ),
        sections={kit.BEFORE_AFTER: [ranking(result.scores, caption, "ln(1 + MB/s)")]},
    )


def exchange(result: ExchangeStudy | InsufficientDataError, data: links.Links) -> Part:
    """Lay out how many waiting files weigh as much as one unit of throughput weight."""
    if isinstance(result, InsufficientDataError):
        return unanswered("exchange", result)
    fit, best = result.fit, "best" if result.proposed is None else "proposed"
    now = f"{data.settings.queue_importance:g}"
    terms = {
        "now": f"NW_QUEUE_IMPORTANCE = {now}",
        "new": f"Set NW_QUEUE_IMPORTANCE from {now} to {result.proposed or 0:g}",
    }
    caption = f"By how soon queues are delivered, unseen links, {'later' if result.later else 'at the same time'}"
    return Part(
        name="exchange",
        title=TITLES["exchange"],
        verdict=verdict("exchange", result, result.answer, **terms),
        chart=Chart(
            draw=charts.score_by_exchange,
            frame=fit.table,
            options={"marks": links.marks(fit, best)},
            finding=say(
                "Links rank best where {files} waiting files weigh 1 of throughput weight; now {current:.0f}",
                vars(fit),
            ),
            sample=say("{n} links with files waiting; band: 95 % interval.", n=fit.n_links),
            note="Only the importance is ever proposed: NQUEUED_SAT_CAP, which does the same, limits the backlog check, too.",
        ),
        sections={kit.BEFORE_AFTER: [ranking(result.scores, caption, "1 / (1 + hours)")]},
    )


# --- what it cannot tell, and what is only written ----------------------------------------------------------------------


def caveats(data: links.Links, s: LinkStudy) -> list[Caveat]:
    """Collect what the data leave open."""
    unknown = [
        Caveat(n=1, text=say(f"{TITLES[name]}: {text}", e.facts, n=e.facts[fact]))
        for name, e in data.evidence.items()
        for fact, text in SOURCE.items()
        if e.facts.get(fact)
    ]
    for name, result in s.answers().items():
        if isinstance(result, CurveStudy):
            unknown += curve_caveats(TITLES[name], result)
        elif isinstance(result, FallbackStudy):
            hidden = "Links without throughput: proven on {n} busier ones whose throughput was hidden; silent ones are unknown."
            unknown.append(Caveat(n=1, text=say(hidden, n=result.scores.n_links)))
        else:
            unknown += queue_caveats({"at_cap": 0, "spearman_rate": 0, **result.facts})
    inactive = "Any effect at once: NW_ACTIVE is false here, so production does not use the network weight."
    return [*unknown, Caveat(n=not data.active, text=inactive)]


def curve_caveats(title: str, result: CurveStudy) -> list[Caveat]:
    """Say which rows and steps a curve was not judged by."""
    silent = f"{title}: {{x:%}} of the rows delivered nothing later and are left out of the scores."
    few = result.steps.filter(pl.col("curve") == "document", pl.col("n_rows") < FEW_ROWS)
    height = f"{title}: few links, height not tested: {'; '.join(few['edge'])} MB/s."
    return [
        Caveat(n=result.silent > 0, text=say(silent, x=result.silent)),
        Caveat(n=few.height, text=height),
    ]


def queue_caveats(facts: Mapping[str, float | None]) -> list[Caveat]:
    """Say what the queues hide."""
    capped, together = facts["at_cap"] or 0, facts["spearman_rate"] or 0
    removed = "{at_cap:%} of {n_queues} queues are at the cap, where the backlog check removes them anyway."
    long = "Long queues stand where much is delivered (rank correlation {spearman_rate}): alone they show no slow link."
    return [
        Caveat(n=capped > 0, text=say(removed, facts)),
        Caveat(n=together > TOGETHER, text=say(long, facts)),
    ]


def proposals(data: links.Links, s: LinkStudy, p: Params) -> dict[str, Any]:
    """Return the proposal on the importance; none without an answer."""
    if isinstance(s.exchange, InsufficientDataError):
        return {}
    made: dict[str, Any] = {"n_boot": p.n_boot, "seed": p.seed}
    created_at = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    return {"": links.propose_importance(s.exchange, data, created_at=created_at, **made)}


def also(data: links.Links, s: LinkStudy) -> dict[str, pl.DataFrame]:
    """Return the frames that are written and not shown; the curves as `ThroughputCurve.from_frame` reads them."""
    written = {"curve_document": throughput_curve().to_frame()} | s.frames()
    if isinstance(s.exchange, ExchangeStudy):
        written["exchange_keys"] = links.exchange_keys(s.exchange.fit, data.settings)
    for name, evidence in data.evidence.items():
        written |= {f"{name}_links": evidence.rows, f"{name}_queues": evidence.queues}
    return written


def run(p: Params) -> dict[str, Any]:
    """Load, study and publish; the notebook does the same step by step."""
    data = load(p)
    return kit.publish(page(data, study(data, p), p), p)
