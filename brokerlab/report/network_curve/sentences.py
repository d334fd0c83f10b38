"""The sentences of the network curve report, every number taken from the study."""

from __future__ import annotations

import math

import polars as pl

from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.network_curve import Evidence, Judgement
from brokerlab.report.content import Verdict
from brokerlab.report.network_curve.study import (
    DOCUMENT,
    FITTED,
    LABELS,
    SITES,
    Curve,
    Exchange,
    Fallback,
    Unanswered,
)
from brokerlab.words import listed, measured, number, percent, thin

SUBJECTS = {"metrics": "Throughput curve, link metrics", "transfers": "Throughput curve, transfers"}
FALLBACK, EXCHANGE = "Closeness fallback", "NW_QUEUE_IMPORTANCE and NQUEUED_SAT_CAP"
DEVELOPERS = "It is fixed in the code: this is for its developers."
TYPICAL = 4.0
"""Closeness named in the sentence on the fallback where it is known: the commonest one of links with throughput."""
DECIMALS = 3


def score(value: float) -> str:
    """Show a rank correlation or an NDCG.

    Example:
        >>> score(0.67091)
        '0.671'
    """
    return number(value, DECIMALS)


def mbps(value: float | None) -> str:
    """Show a throughput with two digits.

    Example:
        >>> mbps(0.0221), mbps(5.04), mbps(157.0)
        ('0.022', '5.0', '160')
    """
    if value is None or value <= 0:
        return number(value)
    return number(value, 1 - math.floor(math.log10(value)))


def difference(judgement: Judgement) -> str:
    """Show a difference with its interval."""
    return measured(judgement.diff, judgement.diff_lo, judgement.diff_hi, DECIMALS)


def ranks(judgement: Judgement) -> str:
    """Say both scores and their difference."""
    return (
        f"rank correlation {score(judgement.value)} against {score(judgement.reference)}, difference "
        f"{difference(judgement)}"
    )


def curve(found: Curve | Unanswered, name: str) -> Verdict:
    """Return the verdict on the throughput curve of one source."""
    subject = SUBJECTS[name]
    if isinstance(found, Unanswered):
        return Verdict(kind="no_answer", subject=subject, sentence=f"No answer: {found.reason}")
    n = len(found.fit.curve.mbps_above)
    fitted = f"a curve of {n} steps fitted on other links"
    judged = found.judgement
    links = f"{number(found.scores.n_links)} links that the fit had not seen, {found.evidence.stages['proof']}"
    if judged.outcome == "better":
        text = (
            f"Take {fitted}: it ranks links better by what they later deliver, {ranks(judged)}, proven on {links}. "
            f"{DEVELOPERS}"
        )
        return Verdict(kind="change", subject=subject, sentence=thin(text))
    if judged.outcome == "demand":
        sites = found.scores.of(SITES)["value"]
        text = (
            f"No answer: {fitted} ranks links better ({ranks(judged)}; {links}), but the names of the two sites "
            f"alone rank links that they have not seen as well ({score(sites)}): these rates say how much was asked "
            "of a link, not what it can carry."
        )
        return Verdict(kind="no_answer", subject=subject, sentence=thin(text))
    if judged.outcome == "worse_at_top":
        top = found.scores.of(FITTED, "ndcg_top")
        text = (
            f"Keep the document's curve: {fitted} ranks links better over all ({ranks(judged)}) and worse "
            f"among the fastest tenth (NDCG {measured(top['diff'], top['diff_lo'], top['diff_hi'], DECIMALS)}; {links})."
        )
        return Verdict(kind="keep", subject=subject, sentence=thin(text))
    verb = "worse" if judged.outcome == "worse" else "not better beyond doubt"
    text = f"Keep the document's curve: {fitted} ranks links {verb}, {ranks(judged)}, on {links}."
    return Verdict(kind="keep", subject=subject, sentence=thin(text))


def fallback(found: Fallback | Unanswered) -> Verdict:
    """Return the verdict on the weight of links without throughput."""
    if isinstance(found, Unanswered):
        return Verdict(kind="no_answer", subject=FALLBACK, sentence=f"No answer: {found.reason}")
    judged = found.judgement
    if judged.outcome != "better":
        text = (
            f"Keep the closeness line: where half of the throughputs are hidden, fitted weights rank links "
            f"{'worse' if judged.outcome == 'worse' else 'not better beyond doubt'}, {ranks(judged)}."
        )
        return Verdict(kind="keep", subject=FALLBACK, sentence=thin(text))
    text = (
        f"Replace the closeness line for links without throughput{_typical(found)}: where half of the throughputs "
        f"are hidden, links are ranked better by what they later deliver, {ranks(judged)}, on "
        f"{number(found.scores.n_links)} links that the fit had not seen. {DEVELOPERS}"
    )
    return Verdict(kind="change", subject=FALLBACK, sentence=thin(text))


def _typical(found: Fallback) -> str:
    """Name one closeness and what its links should weigh."""
    rows = found.fit.table.drop_nulls("closeness").sort("n_links", descending=True)
    usual = rows.filter(closeness=TYPICAL)
    row = (usual if usual.height else rows).row(0, named=True)
    earned = measured(row["weight"], row["weight_lo"], row["weight_hi"], 2)
    return f" (closeness {row['closeness']:g}: {earned} instead of {number(row['line'], 2)})"


def exchange(found: Exchange | Unanswered, settings: NetworkSettings) -> Verdict:
    """Return the verdict on queue against throughput."""
    if isinstance(found, Unanswered):
        return Verdict(kind="no_answer", subject=EXCHANGE, sentence=f"No answer: {found.reason}")
    keys = (
        f"NW_QUEUE_IMPORTANCE = {settings.queue_importance:g} and NQUEUED_SAT_CAP = "
        f"{settings.link_cap:g}"
    )
    best = f"{files(found)} waiting files per unit of throughput weight"
    value = found.proposed
    if value is not None:
        text = (
            f"{'Raise' if value > settings.queue_importance else 'Lower'} NW_QUEUE_IMPORTANCE from "
            f"{settings.queue_importance:g} to {value:g} ({best}): links are ranked better by how soon their queue is "
            f"delivered, {ranks(found.judgement)}, proven later on {number(found.scores.n_links)} links that the fit "
            "had not seen."
        )
        return Verdict(kind="change", subject=EXCHANGE, sentence=thin(text))
    why = (
        ""
        if found.later
        else " One snapshot has nothing later: it could not prove a change anyway."
    )
    verb = {
        "worse": "worse",
        "better": "better, but with one part alone"
        if found.later
        else "better, at the same time only",
        "worse_at_top": "better over all and worse among the best tenth",
    }.get(found.judgement.outcome, "not better beyond doubt")
    text = f"Keep {keys}: the best exchange of the links seen, {best}, ranks other links {verb}, {ranks(found.judgement)}.{why}"
    return Verdict(kind="keep", subject=EXCHANGE, sentence=thin(text))


def files(found: Exchange) -> str:
    """Show how many files weigh one unit of throughput weight."""
    fit = found.fit
    return f"{number(fit.files)} ({number(fit.files_lo)} to {number(fit.files_hi)})"


def told_apart(found: Curve) -> str:
    """Say what both curves can and cannot tell apart."""
    now, then = found.told[DOCUMENT], found.told[FITTED]
    steps = found.steps.filter(curve=DOCUMENT)
    lowest = steps.row(0, named=True)
    fast = float(steps.filter(pl.col("mbps_above") >= 50)["share"].sum())
    facts = found.evidence.facts
    text = (
        f"Of all {number(facts['n_with_mbps'])} links with a throughput {percent(facts['share_at_most_1'])} are at or "
        f"below the document's lowest edge (1 MB/s) and {percent(facts['share_above_50'])} above 50 MB/s, where it spends "
        f"four of its eight edges; of those scored here, {percent(lowest['share'])} and {percent(fast)}. "
        f"The document's curve gives the same weight to {percent(now['tied'])} of all pairs of links; "
        f"{percent(now['tied_far'])} of these later differ by more than ten times. Of the pairs it tells apart, "
        f"{percent(now['right'])} come out in its order. The fitted curve ties {percent(then['tied'])} of the pairs ({percent(then['tied_far'])} of them differ by more "
        f"than ten times) and has {percent(then['right'])} of the others in order."
    )
    return thin(text)


def plain(found: Curve) -> str:
    """Name the plain weights that rank links better than the document's curve beyond doubt."""
    rows = found.scores.table.filter(
        pl.col("measure") == "spearman", pl.col("diff_lo") > 0, pl.col("name") != FITTED
    ).sort("diff", descending=True)
    if rows.is_empty():
        return "No plain alternative ranks links better than the document's curve beyond doubt."
    named = [
        f"{LABELS[row['name']]} (by {measured(row['diff'], row['diff_lo'], row['diff_hi'], DECIMALS)})"
        for row in rows.iter_rows(named=True)
    ]
    return thin(
        f"Better than the document's curve beyond doubt, by rank correlation: {listed(named)}."
    )


def blunt_edges(found: Curve) -> str:
    """Name the edges of the document's curve that do not separate the links on their two sides."""
    rows = found.steps.filter(
        pl.col("curve") == DOCUMENT, pl.col("beats_below").is_not_null(), pl.col("beats_below") < 0.6
    )  # fmt: skip
    if rows.is_empty():
        return ""
    edges = ", ".join(f"{row['mbps_above']:g} MB/s ({percent(row['beats_below'])} of {number(row['n_rows'])} links)"
                      for row in rows.iter_rows(named=True))  # fmt: skip
    return thin(
        f"Edges of the document's curve above which a link delivers more than one of the step below in fewer than 60 % "
        f"of the pairs (50 % = no difference): {edges}."
    )


def sample(found: Curve) -> str:
    """Say what the charts of a curve are made from."""
    return (
        f"{number(found.scores.n_links)} links not seen by the fit, {number(found.scores.n_rows)} rows; "
        f"{found.evidence.stages['proof']}; bars: 95 % intervals over links"
    )


def cannot_tell(
    evidence: dict[str, Evidence],
    curves: dict[str, Curve | Unanswered],
    parts: tuple[Fallback | Unanswered, Exchange | Unanswered],
    *,
    synthetic: bool,
    active: bool,
) -> tuple[str, ...]:
    """Say what the data leave open, from what was found in them."""
    told = []
    if synthetic:
        told.append(
            "The archive is synthetic: its links follow the generator's assumptions, not a network. Nothing of this may "
            "be set anywhere."
        )
    for name, found in evidence.items():
        told += _of_source(name, found)
    for name, curve_found in curves.items():
        if isinstance(curve_found, Curve):
            told += _of_curve(name, curve_found)
    fell, traded = parts
    if isinstance(fell, Fallback):
        told.append(
            "Links without throughput: the fallback is fitted and proven on links whose throughput is known and was "
            "hidden. Those are the busier ones; what silent links could carry, nobody measured."
        )
    if isinstance(traded, Exchange):
        told.append(_of_queues(traded))
    if not active:
        told.append(
            "Any effect at once: NW_ACTIVE is false in this configuration (or by default), so production neither "
            "multiplies by the network weight nor filters express work with it."
        )
    return tuple(thin(sentence) for sentence in told)


def _of_source(name: str, found: Evidence) -> list[str]:
    facts = found.facts
    told = []
    if name == "transfers":
        told.append(
            "What a link could carry: bytes over the length of a period are what was asked for and delivered. A link "
            "that nobody used is slow in these tables."
        )
    silent = facts["n_links"] - facts["n_with_mbps"]
    told.append(
        f"{SUBJECTS[name]}: {silent:,.0f} of {facts['n_links']:,.0f} links "
        f"({percent(silent / facts['n_links'])}) have no throughput when the weight is taken; no throughput curve "
        "concerns them."
    )
    if facts.get("n_mirrored"):
        told.append(
            f"{SUBJECTS[name]}: {facts['n_mirrored']:,.0f} of {facts['n_active']:,.0f} links with numbers repeat those of another one "
            "(sites that share storage, or small numbers by chance): they count once and stand on one side of the "
            "division."
        )
    pairs = facts.get("n_volume_pairs", 0)
    if pairs and facts["n_above_volume"] == 0:
        told.append(
            f"What a link could carry: in all {pairs:,.0f} pairs of windows the shorter average stays within the volume "
            "of the longer one (a day at most 7 times its week, an hour at most 24 times its day). So the metric "
            "is volume over the length of the window: how much was asked of a link."
        )
    elif pairs:
        told.append(
            f"{SUBJECTS[name]}: in {facts['n_above_volume']:,.0f} of {pairs:,.0f} pairs of windows the shorter average exceeds the volume "
            "of the longer one: here the metric is no volume over the length of the window."
        )
    if "spearman_hour_in_day" in facts:
        told.append(
            "One snapshot: what comes later is the last hour, and its windows lie inside each other. The hour is taken "
            f"off the day, the day off the week (rank correlation of the last hour with the whole day "
            f"{facts['spearman_hour_in_day']:.3f}, with the 23 hours before it {facts['spearman_hour_after']:.3f}); "
            "one hour of one day is still one draw of the weather."
        )
    for key, text in (
        ("n_local", "links from a site to itself are left out"),
        ("n_other_time", "values measured at another time than the snapshot are left out"),
        ("n_negative", "links have moved less in a window than in a part of it: taken as nothing"),
    ):
        if facts.get(key):
            told.append(f"{SUBJECTS[name]}: {facts[key]:,.0f} {text}.")
    return told


def _of_curve(name: str, found: Curve) -> list[str]:
    steps = found.steps.filter(curve=DOCUMENT)
    few = steps.filter(pl.col("n_rows") < 20)
    share = percent(found.silent)
    left_out = (
        f"{SUBJECTS[name]}: {share} of the rows with a throughput delivered nothing in the later period and are left "
        "out of the scores (counted as 0 in one line of the table of other sides)."
    )
    told = [left_out]
    if few.height:
        edges = ", ".join("up to 1" if e is None else f"above {e:g}" for e in few["mbps_above"])
        told.append(
            f"{SUBJECTS[name]}: steps with fewer than 20 rows of the proof ({edges} MB/s): their height is not tested."
        )
    return told


def _of_queues(found: Exchange) -> str:
    facts = found.facts
    text = (
        "Slope, cap and importance one by one: the order of links depends on one number only, the files that weigh as "
        f"much as 1 of throughput weight. Of {facts['n_queues']:,.0f} queues "
        f"{percent(facts.get('at_cap'))} are at the cap, where the backlog check removes them anyway, and "
        f"{percent(facts.get('below_tenth'))} below a tenth of it. "
    )
    rho = facts.get("spearman_rate")
    if rho is not None and abs(rho) > 0.3:
        text += (
            f"Files waiting and the rate of delivery go together (rank correlation {rho:.2f}): long queues stand where "
            "much is delivered, so a long queue alone is no slow link."
        )
    return text.strip()
