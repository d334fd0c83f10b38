"""Put the page of the scout percentile report together and write the files of a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.report.content import Block, Fact, Made, Page, Part, blocks
from brokerlab.report.outputs import digests_of, facts_of, options, write_results, write_tables
from brokerlab.report.scout_percentiles import pictures, promises, strata, tables
from brokerlab.report.scout_percentiles import sentences as say
from brokerlab.report.scout_percentiles.inputs import Inputs
from brokerlab.report.scout_percentiles.study import Study, Unanswered
from brokerlab.words import thin

REPORT = "scout-percentiles"
QUESTION = "Which percentile ranks and margins should the scouts use?"
Span = tuple[datetime, datetime]


def write(
    studies: Sequence[Study | Unanswered], inputs: Inputs, out_dir: str | Path
) -> dict[str, Any]:
    """Write charts, tables, proposals and `results.json` of a run.

    Args:
        studies: One per parameter.
        inputs: What they were made from.
        out_dir: Folder of the run.

    Returns:
        What `results.json` holds.
    """
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    page = assemble(studies, inputs, folder / "charts")
    for study in studies:
        if isinstance(study, Study):
            write_tables(folder / "tables", _frames(study), {})
            if study.verdict is not None and study.verdict.proposal is not None:
                path = folder / f"proposal-{study.parameter.name}.json"
                path.write_text(study.verdict.proposal.to_json(), encoding="utf-8")
    found = {study.parameter.name: numbers(study) for study in studies}
    periods = {
        "at": inputs.periods.at,
        "calibration": inputs.periods.early_window,
        "proof": inputs.periods.late_window,
        "n_overlapping": inputs.periods.n_overlapping,
    }
    digests = digests_of(inputs.archive, inputs.config, inputs.rules)
    return write_results(folder, page, found, digests, {"periods": periods})


def assemble(studies: Sequence[Study | Unanswered], inputs: Inputs, charts: Path) -> Page:
    """Draw the charts and put the page together, the most consequential parameter first.

    Args:
        studies: One per parameter.
        inputs: What they were made from.
        charts: Folder for the charts.
    """
    ordered = sorted(studies, key=_consequence)
    parts = tuple(_part(study, inputs, charts) for study in ordered)
    first, last = inputs.window
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=parts[0].verdict,
        parts=parts,
        cannot_tell=tuple(
            thin(sentence)
            for sentence in say.cannot_tell(ordered, n_overlapping=inputs.periods.n_overlapping)
        ),
        archive=inputs.archive.path.as_posix(),
        window=f"tasks created {say.span((first, last))} (UTC)",
        synthetic=inputs.archive.synthetic,
        made=Made(facts=_facts(ordered, inputs)),
    )


def _consequence(study: Study | Unanswered) -> tuple[bool, float]:
    """Order changes first, then the rest; within each by what is at stake, in stated loss."""
    if isinstance(study, Unanswered):
        return True, 0.0
    return study.kind != "change", -abs(study.proof.quantity("loss")["diff"] or 0.0)


def _part(study: Study | Unanswered, inputs: Inputs, charts: Path) -> Part:
    """Return sections 1 to 5 of one parameter."""
    verdict = say.verdict(study)
    title = say.title(study.parameter)
    if isinstance(study, Unanswered):
        return Part(name=study.parameter.name, title=title, verdict=verdict)
    choice_days = say.span(inputs.periods.early_window)
    proof_days = say.span(inputs.periods.late_window)
    shown = pictures.draw(study, charts, choice_days=choice_days, proof_days=proof_days)
    levels = strata.distinct_levels(study)
    comparison = [shown[name] for name in ("effects",) if name in shown]
    few = [tables.by_task(study)] if study.late.n_tasks <= tables.FEW_TASKS else []
    breach = say.breach(study) if study.kind != "change" else ""
    certainty: tuple[Block | None, ...] = (
        tables.periods(study, choice_days, proof_days),
        None
        if study.alike is None
        else f"{say.exchange(study.alike)} {say.asked_of_the_proof(study)}".strip(),
        promises.sentence(study),
        promises.table(study),
        shown["coverage"],
        shown["gap"],
        shown["spread"],
        tables.conformal(study),
        say.sensitivity(study),
        tables.weights(study),
    )
    return Part(
        name=study.parameter.name,
        title=title,
        verdict=verdict,
        picture=blocks(breach, say.dearer(study), shown["frontier"]),
        before_after=(tables.before_after(study, proof_days), *comparison),
        gains=blocks(
            *few,
            strata.above_limit(study, levels),
            strata.gains(study, levels),
            shown["strata"],
        ),
        certainty=blocks(*certainty),
    )


def _facts(studies: Sequence[Study | Unanswered], inputs: Inputs) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    early, late = inputs.periods.early_window, inputs.periods.late_window
    window = f"{_division(early, late)}, UTC"
    facts = facts_of(
        inputs.archive, inputs.config, inputs.rules, window=window, filters=inputs.filters or "none"
    )
    complete = [study for study in studies if isinstance(study, Study)]
    for study in complete[:1]:
        made = {k: v for k, v in study.early.assumptions.to_dict().items() if k != "rules"}
        facts += (Fact(label="Assumptions", value=options(made)),)
    return facts


def _division(early: Span | None, late: Span | None) -> str:
    """Say which tasks the choice was made on and which proved it."""
    if early is None or late is None:
        return f"tasks created {say.span(early or late)}, not divided"
    return f"calibration on tasks created {say.span(early)}, proof on {say.span(late)}"


def numbers(study: Study | Unanswered) -> dict[str, Any]:
    """Return every number of a study under a stable name."""
    if isinstance(study, Unanswered):
        return {"kind": "no_answer", "reason": study.reason}
    sides = {"calibration": study.early, "proof": study.late}
    settings = {"current": study.proof.current, "other": study.other}
    return {
        "kind": study.kind,
        "verdict": say.verdict(study).sentence,
        "divided": study.divided,
        "settings": {
            name: {"rank": rank, "margin_pct": margin} for name, (rank, margin) in settings.items()
        },
        "backtest": {
            period: {name: tried.setting(*setting) for name, setting in settings.items()}
            for period, tried in sides.items()
        },
        "counts": {period: tried.counts for period, tried in sides.items()},
        "choice": study.choice.to_dict(),
        "proof": study.proof.to_dict(),
        "gap": study.late.gap_summary.to_dicts(),
        "exchangeability": [] if study.alike is None else study.alike.to_dicts(),
        "strata": strata.by_level(study).to_dicts(),
        "sensitivity": study.choice.sensitivity.to_dicts(),
        "conformal": study.conformal.to_dicts(),
        "promise": promises.frame(study).to_dicts(),
    }


def _frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind a part of the page."""
    frames: dict[str, pl.DataFrame] = {
        "settings": study.choice.candidates,
        "tasks": study.late.by_task,
        "strata": strata.by_level(study),
        "before_after": study.proof.table,
        "gap": study.late.gap,
        **({} if study.alike is None else {"exchangeability": study.alike}),
        "sensitivity": study.choice.sensitivity,
        "conformal": study.conformal,
        "promise": promises.frame(study),
    }
    return {f"{study.parameter.name}_{name}": frame for name, frame in frames.items()}
