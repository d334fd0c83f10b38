"""Put the page of the thresholds report together and write the files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.calibrate.thresholds.keys import STAGES
from brokerlab.calibrate.thresholds.verdict import days
from brokerlab.report.content import Block, Fact, Made, Page, Part, blocks
from brokerlab.report.outputs import archive_fact, listed_rows, options, write_results, write_tables
from brokerlab.report.thresholds import pictures, tables
from brokerlab.report.thresholds import sentences as say
from brokerlab.report.thresholds.study import Study

REPORT = "thresholds"
QUESTION = "Which thresholds of the brokerage should be changed, and to what?"


def write(study: Study, out_dir: str | Path) -> dict[str, Any]:
    """Write charts, tables, the proposal and `results.json` of a run.

    Args:
        study: The study.
        out_dir: Folder of the run.

    Returns:
        What `results.json` holds.
    """
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    page = assemble(study, folder / "charts")
    shown = frames(study)
    write_tables(folder / "tables", shown, {})
    proposal = study.calibration.proposal
    if proposal is not None:
        (folder / "proposal.json").write_text(proposal.to_json(), encoding="utf-8")
    numbers = {**study.calibration.to_dict(), **listed_rows(shown)}
    digests = {"archive": study.archive.digest, "gdpconfig": study.space.config.digest}
    return write_results(folder, page, numbers, digests)


def frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    found, proof = study.calibration, study.calibration.proof
    told = {
        "screened": found.screened,
        "screen_values": study.curves,
        "tried": found.tried,
        "pareto": found.pareto,
        "candidates": found.choices[0].candidates if found.choices else pl.DataFrame(),
        "proof": pl.DataFrame() if proof is None else proof.table,
        "strata": pl.DataFrame() if proof is None else proof.strata,
        "queues": pl.DataFrame() if proof is None else proof.queues,
    }
    return {name: frame for name, frame in told.items() if frame.width}


def assemble(study: Study, charts: Path) -> Page:
    """Draw the charts and put the page together.

    Args:
        study: The study.
        charts: Folder for the charts.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    verdict = say.verdict(study)
    found = study.calibration
    part = _simulated(study, shown) if found.tried.height else _screened(study, shown)
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=verdict,
        parts=(part,),
        cannot_tell=tuple(say.cannot_tell(study)),
        archive=study.archive.path.as_posix(),
        window=f"choice {days(found.calibration)}, proof {days(found.proof_period)} (UTC)",
        synthetic=study.archive.synthetic,
        made=Made(facts=_facts(study)),
    )


def _screened(study: Study, shown: dict[str, Block]) -> Part:
    """Return the part where nothing was simulated."""
    return Part(
        name="thresholds",
        title="Thresholds",
        verdict=say.verdict(study),
        picture=blocks(say.simulated(study), shown.get("screen")),
        before_after=blocks(tables.screened(study)),
        gains=blocks(tables.trades(study)),
        certainty=tuple(say.certain(study)),
        headings={
            "picture": "What the keys could change",
            "before_after": "The screen",
            "gains": "What each key trades: who would gain, who would lose",
        },
    )


def _simulated(study: Study, shown: dict[str, Block]) -> Part:
    """Return the part where settings were simulated."""
    found = study.calibration
    return Part(
        name="thresholds",
        title="Thresholds",
        verdict=say.verdict(study),
        picture=blocks(say.simulated(study), shown.get("effects"), shown.get("pareto")),
        before_after=blocks(tables.before_after(found), tables.candidates(found), tables.front(found)),
        gains=blocks(tables.strata(found), tables.queues(found), tables.trades(study)),
        certainty=blocks(*say.certain(study), tables.limits(found), shown.get("screen"), tables.screened(study)),
    )  # fmt: skip


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    found = study.calibration
    limits = options({name: f"+{value:g}" for name, value in found.limits.values().items()})
    simulations = options(
        {
            "first": found.replications.first,
            "at most": found.replications.most,
            "until the half width is": f"{100 * found.replications.precision:g} % of now",
        }
    )
    return (
        archive_fact(study.archive),
        Fact(label="Choice", value=f"{days(found.calibration)}; screened: {days(study.screened)}"),
        Fact(label="Proof", value=days(found.proof_period)),
        Fact(label="Objective", value=f"{say.objective_label(found)}; at least {100 * found.relevant:g} % less"),
        Fact(label="Limits", value=f"{limits or 'none'}; asked of the {found.limits.on} end on the choice, of the point on the proof"),
        Fact(label="Simulations", value=simulations),
        Fact(label="Intervals", value=f"alpha {found.draw.alpha:g}, {study.n_boot:,} bootstrap replicates, seed {found.seed}"),
        Fact(label="Rule set", value=f"{STAGES[study.stage]} as documented (document)"),
        Fact(label="gdpconfig", value=f"digest {study.space.config.digest}"),
    )  # fmt: skip
