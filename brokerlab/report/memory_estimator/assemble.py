"""Put the page of the memory-estimator report together and write the files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.report.content import Block, Fact, Made, Page, Part, Verdict, blocks
from brokerlab.report.memory_estimator import pictures
from brokerlab.report.memory_estimator import traces_sentences as of_traces
from brokerlab.report.memory_estimator import traces_tables as trace_tables
from brokerlab.report.memory_estimator.study import Study
from brokerlab.report.memory_estimator.traces import TraceStudy
from brokerlab.report.outputs import listed_rows, write_results, write_tables
from brokerlab.report.wording import thin

REPORT = "memory-estimator"
QUESTION = "How much memory should the next job get, and by which rule or model?"


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
    return write_results(folder, page, {**numbers(study), **listed_rows(shown)}, {})


def frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    found: dict[str, pl.DataFrame] = {}
    if study.traces is not None:
        for name, protocol in study.traces.protocols.items():
            found[f"traces_{name}"] = protocol.comparison.summary
            found[f"traces_{name}_orders"] = protocol.comparison.table
        found["traces_limits"] = study.traces.limits
        found["traces_types"] = study.traces.types
    return found


def numbers(study: Study) -> dict[str, Any]:
    """Return the numbers that stand in sentences only."""
    found: dict[str, Any] = {}
    if study.traces is not None:
        found["traces"] = {
            name: {
                key: getattr(protocol, key)
                for key in ("ratio", "lo", "hi", "failures", "failures_peer")
            }
            for name, protocol in study.traces.protocols.items()
        }
    return found


def assemble(study: Study, charts: Path) -> Page:
    """Draw the charts and put the page together.

    Args:
        study: The study.
        charts: Folder for the charts.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    parts = tuple(part for part in (_traces(study.traces, shown),) if part is not None)
    told = [*study.inputs.caveats]
    if study.traces is not None:
        told += of_traces.cannot_tell(study.traces)
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=Verdict(
            kind="finding", sentence=" ".join(part.verdict.sentence for part in parts[:1])
        ),
        parts=parts,
        cannot_tell=tuple(thin(sentence) for sentence in told),
        archive=study.inputs.source,
        window="",
        synthetic=study.inputs.synthetic,
        made=Made(facts=_facts(study)),
    )


def _traces(found: TraceStudy | None, shown: dict[str, Block]) -> Part | None:
    if found is None:
        return None
    return Part(
        name="traces",
        title="Workflow traces",
        verdict=of_traces.verdict(found),
        picture=blocks(shown.get("ratios")),
        before_after=blocks(trace_tables.by_trace(found), trace_tables.by_method(found)),
        gains=blocks(trace_tables.types(found)),
        certainty=blocks(
            of_traces.certainty(found),
            trace_tables.by_protocol(found),
            of_traces.limit(found),
            trace_tables.limits(found),
        ),
        headings={"before_after": "Trace by trace, method by method"},
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    return tuple(Fact(label=label, value=value) for label, value in study.inputs.facts.items())
