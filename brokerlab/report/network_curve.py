"""Which curves should turn throughput, closeness and waiting files into the network weight?

The one judge chooses on some links and scores later on links that nothing was chosen by: the curve of throughput on every
source, the weight of links without throughput, and how much waiting files weigh against throughput.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import polars as pl
from pydantic import Field, model_validator

from brokerlab.brokerage.network_weight import throughput_curve
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.calibrate import network_curve as links
from brokerlab.calibrate.judge import MIN_UNITS
from brokerlab.calibrate.network_curve import Evidence, LinkStudy, StepFit, Study
from brokerlab.charts import network as charts
from brokerlab.report import kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Part, Table, Verdict, say
from brokerlab.report.needs import Needs
from brokerlab.rulesets import RuleSetName

TITLES = {
    "metrics": "Throughput curve, link metrics",
    "transfers": "Throughput curve, transfers",
    "fallback": "Links without throughput",
    "exchange": "Waiting files against throughput",
}
ORDER = ("change", "improve", "keep", "no_answer")
CASES = {
    "lower_loss": "{new}: rank correlation rises by {diff}.",
    "better_not_within": "{new}: rank correlation {diff} more; top tenth misplaced {rise:%} more.",
    "nothing_better": "Keep {now}: a gain in rank correlation above {seen} would have been seen.",
    "few": "Too few links to judge: {n}, {least} are needed.",
    "imprecise": "Nothing is shown to beat {now}; a gain of {seen} in rank correlation is not excluded.",
    "unconfirmed": "Weights chosen earlier ranked later links better by {diff}; none does so on all links.",
    "no_other": "Every other weight ranks the top tenth worse than {now}.",
    "demand": "The sites' names rank unseen links as well ({sites} against {value}): rates show demand, not capacity.",
    "snapshot": "{new}: {diff} more rank correlation, but one snapshot shows nothing later.",
}
"""Why nothing can be told, or the case of a judgement, to the headline."""
NEW = {
    "steps": "Take the fitted curve",
    "isotonic": "Take the finest rising curve",
    "log_throughput": "Take the logarithm of throughput",
    "log_throughput_long": "Take the logarithm of throughput, longest window",
    "earned": "Replace the closeness line by fitted weights",
    "lowest": "Give all links without throughput the lowest weight",
}
"""Weight to what is to be done."""
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
USELESS = "No number of steps predicts better than none."
RANKS = "Rank correlation (Spearman): 1 if links stand in the order of what they later deliver, 0 without relation."
BLUNT, FEW_ROWS, TOGETHER = 0.6, 20, 0.3
"""Share of pairs below which an edge hardly separates; rows below which a step's height is not tested; rank correlation of queue and delivery above which long queues stand where much is delivered."""


class Params(kit.Params):
    """What may be asked."""

    report: ClassVar[str] = "network-curve"
    question: ClassVar[str] = (
        "Which curves should turn throughput, closeness and waiting files into the network weight?"
    )

    needs: ClassVar[Needs] = Needs(one_of=("network_matrix", "transfers"))

    archive: str = Field(
        "data/demo", description="archive folder, or file of metrics or transfers as dumped [path]"
    )
    n_boot: int = Field(500, ge=20, description="bootstrap replicates over links [1]")
    transfers: str = Field(
        "", description="more transfers: file, folder or archive, empty for none [path]"
    )
    steps: int = Field(8, ge=1, le=30, description="steps of the throughput curve at most [1]")

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if not (self.archive or self.transfers):
            raise ValueError("archive='': must be an archive or a file, or give transfers")
        return self


@kit.answers
def load(p: Params) -> links.Links:
    """Read what links showed and what they delivered later."""
    sources = filter(None, (p.archive, p.transfers))
    return links.read_links(*sources, start=p.start, end=p.end, rules=p.rules)


@kit.answers
def study(data: links.Links, p: Params) -> LinkStudy:
    """Choose on some links and score later on others."""
    return links.study_links(data, most_steps=p.steps, n_boot=p.n_boot, seed=p.seed)


def page(data: links.Links, s: LinkStudy) -> Page:
    """Put the subjects together, answers that change something first."""
    parts = []
    for name, result in s.answers.items():
        if result.fit is not None:
            parts.append(_curve(name, result, result.fit, data))
        else:
            parts.append(_fallback(result) if name == "fallback" else _exchange(result, data))
    parts += [kit.unanswered(name, TITLES[name], reason) for name, reason in s.refused.items()]
    parts.sort(key=lambda part: ORDER.index(part.verdict.kind))
    first = parts[0]
    gains = [_gain(name, result) for name, result in s.answers.items()]
    return Page(
        verdict=first.verdict,
        numbers=gains[:3],
        chart=first.chart and replace(first.chart, note=f"{RANKS} {first.chart.note}"),
        parts=[replace(first, chart=None), *parts[1:]],
        caveats=_caveats(data, s),
        facts={"Sources": ", ".join(data.sources)},
        archive=data.archive,
        config=data.config,
        window="; ".join(
            f"{name}: first choice {e.labels[0]}, scores {'; '.join(e.labels[1:]) or 'on other links'}"
            for name, e in data.evidence.items()
        ),
        digests={"archive": " ".join(data.digests)},
        proposals=_proposals(data, s),
        also=_also(data, s),
        values=s.numbers(data.evidence),
        synthetic=data.synthetic,
    )


def _gain(name: str, result: Study) -> Number:
    note = say(
        "rank correlation {before} to {after}, {n} links",
        {key: result.gain[key] for key in ("before", "after")},
        n=result.judgement.n_scored,
    )
    return Number.of(result.gain, "diff", label=TITLES[name], note=note)


def _verdict(name: str, result: Study, now: str, new: str = "") -> Verdict:
    best = result.judgement.best
    terms: dict[str, Any] = {"now": now, "new": new or NEW.get(best, ""), "seen": result.seen}
    terms |= {"n": result.judgement.n_units, "least": MIN_UNITS, "diff": result.gain["diff"]}
    terms |= {f"diff{end}": result.gain[f"diff{end}"] for end in ("_lo", "_hi")}
    if result.unknown == "demand":
        terms |= {"sites": result.of("sites")["spearman"], "value": result.of(best)["spearman"]}
    terms["rise"] = result.judgement.quantity("top_rise")["after"]
    sentence = say(CASES[result.unknown or result.judgement.case], terms)
    return Verdict(kind=result.judgement.kind, subject=TITLES[name], sentence=sentence)


def _ranking(result: Study, caption: str, frame: pl.DataFrame | None = None) -> Table:
    shown = result.ranking if frame is None else frame
    columns = {
        "weight": "Weight",
        "spearman": "Rank correlation",
        "diff": "Difference from current",
        "within": "Within destinations",
        "top": "Top tenth ranked above others [% of pairs]",
    }
    return Table(
        name="scores",
        frame=shown,
        caption=caption,
        columns={name: label for name, label in columns.items() if shown[name].count()},
        mark="mark",
        note="Fits see earlier links only. Within destinations: links to one destination compared. Top tenth: links that "
        "deliver most; 50 % by chance. Better: the 95 % interval (in brackets, over links) is above 0.",
    )


# --- throughput curve ---------------------------------------------------------------------------------------------------


def _curve(name: str, result: Study, fit: StepFit, data: links.Links) -> Part:
    n = result.ranking.filter(pl.col("mark") == "better", pl.col("name") != "chosen").height
    now = result.of(data.rules)["weight"]
    caption = say("{n:#other weight} better than {now} at ranking links", n=n, now=f"the {now}")
    return Part(
        name=name,
        title=TITLES[name],
        verdict=_verdict(name, result, f"the {now}"),
        chart=_curve_chart(result, fit, data.evidence[name], data.rules),
        sections={
            "Against the current curve and plain weights": [_ranking(result, caption)],
            "What the curve tells apart": [_steps_told_apart(result, data.rules)],
            kit.CERTAINTY: [_blocks(result)],
        },
    )


def _curve_chart(result: Study, fit: StepFit, evidence: Evidence, rules: RuleSetName) -> Chart:
    best = result.judgement.best
    called = "proposed" if result.judgement.acts else "best"
    drawn = {"logarithm": called} if best.startswith("log") else {}
    fitted = called if best == "steps" else "fitted"
    edges = fit.curve.mbps_above
    finding = "{share_at_most_1:%} of links share the current curve's lowest step; fitted edges: {first} to {last} MB/s"
    sample = "Fitted on {n:#link}; band: 95 % interval."
    return Chart(
        draw=charts.weight_curves,
        frame=links.beside_current(fit, evidence.rows["mbps"], rules=rules, fitted=fitted, **drawn),
        finding=say(finding, evidence.facts, first=f"{edges[0]:g}", last=f"{edges[-1]:g}"),
        sample=say(sample, n=fit.n_links),
        note=DEVELOPERS if fit.useful else f"{USELESS} {DEVELOPERS}",
    )


def _steps_told_apart(result: Study, rules: RuleSetName) -> Table:
    blunt = pl.when(pl.col("beats_below") < BLUNT).then(pl.lit("hardly separates"))
    steps = result.frames["all_steps"].filter(curve=pl.lit(rules)).with_columns(mark=blunt)
    apart = "The current curve gives {tied:%} of all pairs of links one weight; {n} of its edges hardly separate"
    return Table(
        name="steps",
        frame=steps,
        caption=say(apart, result.facts, n=steps["mark"].count()),
        columns={
            "edge": "Throughput [MB/s]",
            "share": "Links [%]",
            "beats_below": "Delivers more than the step below [% of pairs]",
            "weight": f"Weight, {rules}",
            "other": "Weight, fitted: mean (least to largest)",
        },
        mark="mark",
        note="50 % of pairs: the edge tells nothing; hardly separates: below 60 %. Links that scored.",
    )


def _blocks(result: Study) -> Table:
    """Lay out what was chosen block by block, and how it ranked the links after it."""
    judged, labels = result.judgement, dict(result.ranking.select("name", "weight").iter_rows())
    names = {place: labels[name] for place, name in enumerate(judged.settings)}
    chosen = pl.col("place").replace_strict(names, return_dtype=pl.String)
    return Table(
        name="blocks",
        frame=judged.blocks.with_columns(
            chosen=chosen, before=1 - pl.col("loss_before"), after=1 - pl.col("loss_after")
        ),
        caption="Each choice, on the links after it",
        columns={
            "start": "From (UTC)",
            "n_units": "Links",
            "chosen": "Chosen before",
            "before": "Rank correlation, current",
            "after": "Rank correlation, chosen before",
        },
    )


# --- links without throughput, waiting files ----------------------------------------------------------------------------


def _fallback(result: Study) -> Part:
    levels = result.frames["levels"]
    above = levels.filter(pl.col("line") > pl.col("weight_hi")).height
    over = "At {n} of {all} values of closeness the document's line is above what they earn"
    acts = result.judgement.acts and result.judgement.setting == "earned"
    return Part(
        name="fallback",
        title=TITLES["fallback"],
        verdict=_verdict("fallback", result, "the closeness line"),
        chart=Chart(
            draw=charts.weights_by_closeness,
            frame=links.levels_by_setting(levels, "proposed" if acts else "fitted"),
            finding=say(over, n=above, all=levels.height),
            sample=say("{n:#link}; bars: 95 % intervals.", n=int(levels["n_links"].sum())),
            note=f"{DEVELOPERS} Closeness: 0 the nearest, 11 the farthest. Earn: the weight of their later throughput.",
        ),
        sections={
            kit.BEFORE_AFTER: [_ranking(result, "All links, half of their throughputs hidden")],
            kit.CERTAINTY: [_blocks(result)],
        },
    )


def _exchange(result: Study, data: links.Links) -> Part:
    best, now = result.judgement.best, f"{data.settings.queue_importance:g}"
    table = result.frames["table"]
    at = {
        "best": table.filter("is_best")["files"][0],
        "now": table.filter("is_current")["files"][0],
    }
    caption = f"By how soon queues are delivered, unseen links, {'later' if result.facts['later'] else 'at the same time'}"
    shown = result.ranking.filter(
        ~pl.col("name").str.contains(r"^[\d.]+$") | pl.col("name").is_in([now, best])
    )
    new = f"Set NW_QUEUE_IMPORTANCE from {now} to {best}"
    return Part(
        name="exchange",
        title=TITLES["exchange"],
        verdict=_verdict("exchange", result, f"NW_QUEUE_IMPORTANCE = {now}", new),
        chart=Chart(
            draw=charts.score_by_exchange,
            frame=table.filter(pl.col("files") > 0),
            options={"marks": links.marks(table, "proposed" if result.judgement.acts else "best")},
            finding=say(
                "Links rank best where {best:.0f} waiting files weigh 1 of throughput weight; now {now:.0f}",
                at,
            ),
            sample=say(
                "{n:#link} with files waiting; band: 95 % interval.", n=result.judgement.n_units
            ),
            note="Only the importance is ever proposed: NQUEUED_SAT_CAP limits the backlog check, too.",
        ),
        sections={
            kit.BEFORE_AFTER: [_ranking(result, caption, shown)],
            kit.CERTAINTY: [_blocks(result)],
        },
    )


# --- what it cannot tell, and what is only written ----------------------------------------------------------------------


def _caveats(data: links.Links, s: LinkStudy) -> list[Caveat]:
    unknown = [
        Caveat(n=1, text=say(f"{TITLES[name]}: {text}", e.facts, n=e.facts[fact]))
        for name, e in data.evidence.items()
        for fact, text in SOURCE.items()
        if e.facts.get(fact)
    ]
    for name, result in s.answers.items():
        if result.fit is not None:
            unknown += _curve_caveats(TITLES[name], result, data.rules)
        elif name == "fallback":
            hidden = "Links without throughput: scored on {n} links, most of them busier ones whose throughput was hidden."
            unknown.append(Caveat(n=1, text=say(hidden, n=result.judgement.n_scored)))
        else:
            unknown += _queue_caveats({"at_cap": 0, "spearman_rate": 0, **result.facts["queues"]})
    inactive = "Any effect at once: NW_ACTIVE is false here, so production does not use the network weight."
    return [*unknown, Caveat(n=not data.active, text=inactive)]


def _curve_caveats(title: str, result: Study, rules: RuleSetName) -> list[Caveat]:
    silent = f"{title}: {{x:%}} of the rows delivered nothing later and are left out of the scores."
    steps, share = result.frames["all_steps"], result.facts["silent"]
    few = steps.filter(pl.col("curve") == rules, pl.col("n_rows") < FEW_ROWS)
    height = f"{title}: few links, height not tested: {'; '.join(few['edge'])} MB/s."
    return [Caveat(n=share > 0, text=say(silent, x=share)), Caveat(n=few.height, text=height)]


def _queue_caveats(facts: Mapping[str, float | None]) -> list[Caveat]:
    capped, together = facts["at_cap"] or 0, facts["spearman_rate"] or 0
    removed = "{at_cap:%} of {n_queues} queues are at the cap, where the backlog check removes them anyway."
    long = "Long queues stand where much is delivered (rank correlation {spearman_rate}): alone they show no slow link."
    return [
        Caveat(n=capped > 0, text=say(removed, facts)),
        Caveat(n=together > TOGETHER, text=say(long, facts)),
    ]


def _proposals(data: links.Links, s: LinkStudy) -> dict[str, Any]:
    """Return the proposal on the importance; none without an answer."""
    exchange = s.answers.get("exchange")
    made = exchange and links.propose(exchange, data, created_at=kit.now()).proposal
    return {"": made} if made else {}


def _also(data: links.Links, s: LinkStudy) -> dict[str, pl.DataFrame]:
    """Return the frames that are written and not shown; the curves as `ThroughputCurve.from_frame` reads them."""
    acting = throughput_curve(ProductionRules(data.rules))
    written = {f"curve_{data.rules}": acting.frame()} | s.frames()
    for name, evidence in data.evidence.items():
        written |= {f"{name}_links": evidence.rows, f"{name}_queues": evidence.queues}
    return written
