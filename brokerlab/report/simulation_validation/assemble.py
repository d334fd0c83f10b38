"""Put the page of the validation together and write the files of a run."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.calibrate.simulate.archive_check import SEEDS
from brokerlab.calibrate.simulate.grid.recorded import NOTE
from brokerlab.report.content import Block, Fact, Made, Page, Part, Verdict
from brokerlab.report.outputs import archive_fact, listed_rows, write_results, write_tables
from brokerlab.report.simulation_validation import pictures, tables
from brokerlab.report.simulation_validation.study import Study
from brokerlab.words import listed, thin

REPORT = "simulation-validation"
QUESTION = "Does the simulation give the waiting times, utilisation and kills that the archive saw?"


def write(study: Study, out_dir: str | Path) -> dict[str, Any]:
    """Write charts, tables and `results.json` of a run.

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
    write_tables(folder / "tables", shown, {"quantiles": study.validation.quantiles})
    numbers = {**study.validation.to_dict(), **listed_rows(shown)}
    return write_results(folder, page, numbers, {"archive": study.archive.digest})


def frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    found = study.validation
    return {
        "queues": found.queues,
        "shares": found.shares,
        "reasons": tables.reasons(study),
        "left_out": found.left_out,
    }


def assemble(study: Study, charts: Path) -> Page:
    """Draw the charts and put the page together.

    Args:
        study: The study.
        charts: Folder for the charts.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    found = study.validation
    verdict = Verdict(
        kind="finding" if found.ok else "no_answer",
        sentence=thin(found.sentence.replace("No answer: t", "T").replace("No answer: n", "N")),
    )
    by_queue = tables.distances(
        study,
        found.queues,
        "panda_queue",
        "Queue",
        name="queues",
        caption="The most distant queues that are judged",
    )
    by_share = tables.distances(
        study, found.shares, "gshare", "gshare", name="gshares", caption="By gshare, all queues"
    )
    part = Part(
        name="validation",
        title="Simulated against observed",
        verdict=verdict,
        picture=(thin(_read(study)), *(shown[n] for n in ("waits", "reasons") if n in shown)),
        before_after=(tables.limits(study),),
        gains=(by_queue, by_share),
        certainty=(thin(_certainty(study)),),
        headings={
            "picture": "The picture, and which limits are broken",
            "before_after": "What it is held to",
            "gains": "Who is worst",
        },
    )
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=verdict,
        parts=(part,),
        cannot_tell=tuple(thin(sentence) for sentence in cannot_tell(study)),
        archive=study.archive.path.as_posix(),
        window=f"jobs ready from {study.inputs.start:%Y-%m-%d %H:%M} to {study.inputs.end:%Y-%m-%d %H:%M} (UTC)",
        synthetic=study.archive.synthetic,
        made=Made(facts=_facts(study)),
    )


def _read(study: Study) -> str:
    """Say how to read the picture: agreement that was fitted is none."""
    if study.world is None:
        said = "Both sides have the same jobs at the same queues; points on the line have the same waits."
    else:
        said = (
            "Both sides have the same jobs; the brokerage's rules, under the settings that ruled, chose the queues of the "
            "simulation anew. Points on the line have the same waits."
        )
    fitted = study.validation.queues.filter(pl.col("fails").str.contains("unexplained|timing"))
    if fitted.is_empty():
        return said
    return (
        f"{said} That alone proves little: start-up delays are fitted queue by queue to the time before, so that the spread "
        f"of waits agrees wherever waits do not depend on slots. At {fitted.height} queues the delays are too long to be a "
        "start-up, or other jobs wait in the simulation than waited: what another load or placement would do there cannot be "
        "simulated."
    )


def _certainty(study: Study) -> str:
    validation = study.validation
    return (
        f"At {validation.n_undecided} of {validation.n_judged} judged queues the limit of the waiting times lies inside the 95 % interval of the "
        "distance: for these, pass or fail could have come out otherwise with other tasks. The intervals draw whole tasks "
        "again; they do not hold the uncertainty of the slots and delays read from the archive."
    )


def cannot_tell(study: Study) -> list[str]:
    """Collect what cannot be told, from what was found."""
    inputs, told = study.inputs, []
    if study.archive.manifest.note.startswith(NOTE):
        told.append(
            "The archive was made by this very simulator: that it gives itself back says nothing about a real grid."
        )
    elif study.archive.synthetic:
        told.append(
            "The archive is synthetic: its generator draws waiting times and knows no slots, so that a simulation of slots "
            "is not expected to give them back."
        )
    pooled = inputs.delays.filter(~pl.col("own"))["panda_queue"].n_unique()
    if pooled:
        told.append(
            f"{pooled} queues had too few starts beside free slots before the period: they draw the delays of all queues."
        )
    if study.validation.left_out.height:
        parts = [
            f"{row['n_jobs']} ({row['reason']})" for row in study.validation.left_out.to_dicts()
        ]
        told.append(f"Jobs that no side has: {listed(parts)}. They waited too, but held no slots.")
    return [
        *told,
        (
            "Slots are what was seen running, from the period itself: a queue that was never full seems smaller than it is, "
            "and what more jobs would have met there cannot be told."
        ),
        _placement(study),
        "Shares of the sites among experiments, draining of nodes and pre-emption are not simulated.",
    ]


def _placement(study: Study) -> str:
    """Say what of the brokerage was tested."""
    if study.world is None:
        return "Placement is as observed: the test is of the queues, not of the brokerage."
    placed = int(study.world.jobs["brokered"].sum())
    moving = {
        "links": "inputs and outputs travel over links that serve one transfer at a time",
        "observed": "jobs wait for their inputs as long as they were seen to, wherever they go",
        "none": "no data travel",
    }[study.world.transfers.mode]
    return (
        f"The brokerage placed {placed} jobs of production; all others stayed where they were. {moving[0].upper()}{moving[1:]}. "
        "Queues, storage and links are as they were in the middle of each day, pilots and files queued on links as seen."
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    inputs, estimation = study.inputs, study.estimation
    return (
        archive_fact(study.archive),
        Fact(
            label="Slots",
            value=f"quantile {estimation.quantile:g} of the cores in use, windows of {_hours(estimation.window)}, from the period",
        ),
        Fact(
            label="Start-up delays",
            value=f"{inputs.delays.height} delays of jobs ready before {inputs.start:%Y-%m-%d %H:%M} while at most "
            f"{100 * estimation.free:.0f} % of the slots were in use",
        ),
        Fact(
            label="Queues",
            value=f"fit {study.rules.fit}; warm-up {_hours(estimation.warm_up)}; {_attempts(study)}",
        ),
    )


def _attempts(study: Study) -> str:
    if study.world is None:
        return "one attempt per job of the archive"
    cycle = _hours(study.world.cycle)
    return f"up to {study.rules.attempts} attempts; brokerage replayed every {cycle}, {SEEDS} runs"


def _hours(span: timedelta) -> str:
    return f"{span / timedelta(hours=1):g} h"
