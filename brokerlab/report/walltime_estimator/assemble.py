"""Put the page of the walltime-estimator report together and write the files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.report.content import Block, Fact, Made, Page, Part, Verdict, blocks
from brokerlab.report.outputs import listed_rows, write_results, write_tables
from brokerlab.report.walltime_estimator import logs_sentences as of_logs
from brokerlab.report.walltime_estimator import logs_tables as log_tables
from brokerlab.report.walltime_estimator import pictures, power_tables
from brokerlab.report.walltime_estimator import power_sentences as of_power
from brokerlab.report.walltime_estimator.logs import LogStudy
from brokerlab.report.walltime_estimator.power import PowerStudy
from brokerlab.report.walltime_estimator.study import Study
from brokerlab.report.wording import thin

REPORT = "walltime-estimator"
QUESTION = "How long does the next job run, and which rule or model should say so?"


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
    write_tables(folder / "tables", shown, {})
    return write_results(folder, page, {**numbers(study), **listed_rows(shown)}, digests(study))


def frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    found: dict[str, pl.DataFrame] = {}
    if study.logs is not None:
        found["logs"] = study.logs.table
        found["logs_strata"] = study.logs.strata
        found["logs_campaigns"] = study.logs.campaigns
    if study.power is not None:
        for name in ("slopes", "shares", "gain", "queues"):
            found[f"power_{name}"] = getattr(study.power, name)
        if study.power.drift is not None:
            found["power_sites"] = study.power.drift.by_site
    return found


def numbers(study: Study) -> dict[str, Any]:
    """Return the numbers that stand in sentences only."""
    found: dict[str, Any] = {}
    if study.power is not None:
        drift = study.power.drift
        found["power"] = {
            "inside": study.power.inside,
            "analysis": study.power.analysis,
            "drift": None
            if drift is None
            else {key: getattr(drift, key) for key in ("left_out", "ln_sd", "moved", "moved_lo", "moved_hi")},
        }  # fmt: skip
    return found


def digests(study: Study) -> dict[str, str]:
    """Return the digest of the archive."""
    archive = study.inputs.archive
    return {} if archive is None else {"archive": archive.digest}


def assemble(study: Study, charts: Path) -> Page:
    """Draw the charts and put the page together.

    Args:
        study: The study.
        charts: Folder for the charts.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    parts = tuple(
        part for part in (_logs(study.logs, shown), _power(study.power, shown)) if part is not None
    )
    told = [*study.inputs.caveats]
    if study.logs is not None:
        told += of_logs.cannot_tell(study.logs)
    if study.power is not None:
        told += of_power.cannot_tell(study.power)
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=Verdict(kind="finding", sentence=_verdict(study)),
        parts=parts,
        cannot_tell=tuple(thin(sentence) for sentence in told),
        archive=study.inputs.source,
        window="",
        synthetic=study.inputs.synthetic,
        made=Made(facts=_facts(study)),
    )


def _verdict(study: Study) -> str:
    """Answer the question of the page: one sentence per kind of jobs."""
    said = []
    if study.logs is not None:
        said += [of_logs.headline(study.logs), of_logs.bounds(study.logs)]
    if study.power is not None:
        said.append(of_power.worth(study.power))
    return thin(" ".join(filter(None, said)))


def _logs(found: LogStudy | None, shown: dict[str, Block]) -> Part | None:
    if found is None:
        return None
    return Part(
        name="logs",
        title="Batch logs",
        verdict=of_logs.verdict(found),
        picture=blocks(shown.get("errors")),
        before_after=blocks(*(log_tables.by_method(found, name) for name in found.logs)),
        gains=blocks(of_logs.worst(found), log_tables.by_stratum(found)),
        certainty=blocks(of_logs.certainty(found), shown.get("misses")),
        headings={"before_after": "Method by method", "gains": "Whose jobs"},
    )


def _power(found: PowerStudy | None, shown: dict[str, Block]) -> Part | None:
    if found is None:
        return None
    return Part(
        name="power",
        title="Core power and sites",
        verdict=of_power.verdict(found),
        picture=blocks(shown.get("power")),
        before_after=blocks(power_tables.slopes(found), power_tables.gain(found)),
        gains=blocks(of_power.meaning(found), power_tables.shares(found)),
        certainty=blocks(*of_power.sites(found)),
        headings={
            "before_after": "Slope, and what it is worth",
            "gains": "What it means for an estimate",
            "certainty": "Inside sites, over months, for analysis jobs",
        },
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    return tuple(Fact(label=label, value=value) for label, value in study.inputs.facts.items())
