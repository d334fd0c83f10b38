"""Put the page of the network curve report together and write the files of a run."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.brokerage.network_weight import throughput_curve
from brokerlab.report.content import Block, Fact, Made, Page, Part, blocks
from brokerlab.report.network_curve import pictures, tables
from brokerlab.report.network_curve import sentences as say
from brokerlab.report.network_curve.proposal import document
from brokerlab.report.network_curve.study import Curve, Exchange, Fallback, Study, Unanswered
from brokerlab.report.outputs import listed_rows, write_results, write_tables

REPORT = "network-curve"
QUESTION = (
    "Which curves should turn throughput, closeness and waiting files into the network weight?"
)
ORDER = {"change": 0, "keep": 1, "no_answer": 2}


def write(study: Study, out_dir: str | Path, *, created_at: datetime) -> dict[str, Any]:
    """Write charts, tables, the proposal and `results.json` of a run.

    Args:
        study: The study.
        out_dir: Folder of the run.
        created_at: UTC without zone, for the proposal.

    Returns:
        What `results.json` holds.
    """
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    page = assemble(study, folder / "charts")
    write_tables(folder / "tables", _frames(study), _large(study))
    proposal = document(study, created_at=created_at)
    if proposal is not None:
        (folder / "proposal.json").write_text(proposal.to_json(), encoding="utf-8")
    inputs = study.inputs
    digests = {"archive": " ".join(inputs.digests), "gdpconfig": inputs.config.digest}
    return write_results(folder, page, numbers(study), digests)


def assemble(study: Study, charts: Path) -> Page:
    """Draw the charts and put the page together, answers that change something first.

    Args:
        study: The study.
        charts: Folder for the charts.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    parts = [_curve(name, found, shown) for name, found in study.curves.items()]
    parts += [_fallback(study.fallback, shown), _exchange(study, shown)]
    parts.sort(key=lambda part: ORDER[part.verdict.kind])
    inputs = study.inputs
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=parts[0].verdict,
        parts=tuple(parts),
        cannot_tell=say.cannot_tell(
            dict(inputs.evidence),
            study.curves,
            (study.fallback, study.exchange),
            synthetic=inputs.synthetic,
            active=inputs.active,
        ),
        archive=" and ".join(inputs.sources),
        window="; ".join(
            f"{name}: choice {found.stages['choice']}, proof {found.stages['proof']}"
            for name, found in inputs.evidence.items()
        ),
        synthetic=inputs.synthetic,
        made=Made(facts=_facts(study)),
    )


def _curve(name: str, found: Curve | Unanswered, shown: dict[str, Block]) -> Part:
    title = f"From throughput to weight: {name}"
    verdict = say.curve(found, name)
    if isinstance(found, Unanswered):
        return Part(name=name, title=title, verdict=verdict)
    caption = (
        f"How well weights rank links by what they deliver later: {found.evidence.stages['proof']}"
    )
    return Part(
        name=name,
        title=title,
        verdict=verdict,
        picture=blocks(shown[f"{name}_curve"]),
        before_after=blocks(
            shown[f"{name}_scores"],
            say.plain(found),
            tables.scores(found.scores, f"{name}_scores", caption),
        ),
        gains=blocks(
            say.told_apart(found),
            shown[f"{name}_resolution"],
            say.blunt_edges(found),
            tables.told(found),
        ),
        certainty=blocks(tables.checks(found), shown[f"{name}_sizes"], tables.fitted_steps(found)),
        headings={
            "before_after": "Against the document and plain alternatives",
            "gains": "What the curve tells apart, and who gains",
        },
    )


def _fallback(found: Fallback | Unanswered, shown: dict[str, Block]) -> Part:
    title = "Links without throughput: closeness"
    if isinstance(found, Unanswered):
        return Part(name="fallback", title=title, verdict=say.fallback(found))
    caption = "How well all links are ranked where half of the throughputs are hidden"
    return Part(
        name="fallback",
        title=title,
        verdict=say.fallback(found),
        picture=blocks(shown["fallback"]),
        before_after=blocks(tables.scores(found.scores, "fallback_scores", caption)),
        gains=blocks(tables.fallback(found)),
        headings={"gains": "Who gains, who loses: by closeness"},
    )


def _exchange(study: Study, shown: dict[str, Block]) -> Part:
    title = "Files waiting against throughput"
    found, settings = study.exchange, study.inputs.settings
    verdict = say.exchange(found, settings)
    if isinstance(found, Unanswered):
        return Part(name="exchange", title=title, verdict=verdict)
    when = "on links not seen, later" if found.later else "on links not seen, at the same time"
    caption = f"How well weights rank links by how soon their queue is delivered, {when}"
    gain = "1 / (1 + hours)"
    return Part(
        name="exchange",
        title=title,
        verdict=verdict,
        picture=blocks(shown["exchange"]),
        before_after=blocks(tables.scores(found.scores, "exchange_scores", caption, gain)),
        certainty=blocks(tables.exchange(found, settings)),
        headings={"certainty": "What that means in the keys"},
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    inputs = study.inputs
    facts = [
        Fact(label="Source", value=f"{path}, digest {digest}")
        for path, digest in zip(inputs.sources, inputs.digests, strict=True)
    ]
    facts += [
        Fact(label=f"Stages, {name}", value=f"choice: {found.stages['choice']}; proof: {found.stages['proof']}")
        for name, found in inputs.evidence.items()
    ]  # fmt: skip
    facts.append(
        Fact(
            label="Rule set",
            value=(
                "curves of document and production (D1: they differ in one height, 50 to 75 MB/s, and rank alike); "
                "throughput selected as in the document (D3: hour, day, week)"
            ),
        )
    )
    facts.append(Fact(label="gdpconfig", value=f"digest {inputs.config.digest}"))
    return tuple(facts)


def numbers(study: Study) -> dict[str, Any]:
    """Return every number of the page under a stable name."""
    found: dict[str, Any] = {"n_boot": study.n_boot, "seed": study.seed}
    for name, curve in study.curves.items():
        if isinstance(curve, Unanswered):
            found[name] = {"reason": curve.reason}
            continue
        found[name] = {
            "facts": dict(curve.evidence.facts),
            "stages": dict(curve.evidence.stages),
            "curve": curve.fit.curve.to_frame().to_dicts(),
            "n_links": curve.fit.n_links,
            "n_links_proof": curve.scores.n_links,
            "judgement": curve.judgement,
            "sites_behind": curve.ahead_of_sites,
            "told": curve.pairs.to_dicts(),
        }
    fallback, exchange = study.fallback, study.exchange
    found["fallback"] = (
        {"judgement": fallback.judgement}
        if isinstance(fallback, Fallback)
        else {"reason": fallback.reason}
    )
    found["exchange"] = (
        {
            "judgement": exchange.judgement,
            "files": exchange.fit.files,
            "files_lo": exchange.fit.files_lo,
            "files_hi": exchange.fit.files_hi,
            "current": exchange.fit.current,
            "later": exchange.later,
            "facts": exchange.facts,
            "proposed": exchange.proposed,
        }
        if isinstance(exchange, Exchange)
        else {"reason": exchange.reason}
    )
    return {**found, **listed_rows(_frames(study))}


def _frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page; the curves as `ThroughputCurve.from_frame` reads them."""
    frames = {"curve_document": throughput_curve().to_frame()}
    for name, found in study.curves.items():
        if isinstance(found, Curve):
            frames |= {
                f"curve_{name}": found.fit.curve.to_frame(),
                f"steps_{name}": found.fit.steps,
                f"sizes_{name}": found.fit.by_size,
                f"band_{name}": found.fit.band,
                f"scores_{name}": found.scores.table,
                f"checks_{name}": found.checks,
                f"told_{name}": found.steps,
            }
    if isinstance(study.fallback, Fallback):
        frames |= {"fallback_levels": study.fallback.fit.table, "scores_fallback": study.fallback.scores.table}  # fmt: skip
    if isinstance(study.exchange, Exchange):
        frames |= {"exchange_tried": study.exchange.fit.table, "scores_exchange": study.exchange.scores.table}  # fmt: skip
    return frames


def _large(study: Study) -> dict[str, pl.DataFrame]:
    """Return the evidence itself."""
    found = {f"links_{name}": evidence.rows for name, evidence in study.inputs.evidence.items()}
    return found | {
        f"queues_{name}": evidence.queues
        for name, evidence in study.inputs.evidence.items()
        if evidence.queues.height
    }
