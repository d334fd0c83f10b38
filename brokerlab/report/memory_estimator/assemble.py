"""Put the page of the memory-estimator report together and write the files of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.calibrate.nearest_setting import Translation
from brokerlab.estimators.memory_tasks import OURS, SENT
from brokerlab.estimators.saving import Trained
from brokerlab.estimators.sizing.protocols import TraceStudy
from brokerlab.estimators.sizing.store import digest
from brokerlab.estimators.tested import save_tested
from brokerlab.report.content import Block, Fact, Made, Page, Part, Table, Verdict, blocks
from brokerlab.report.estimates import CLOCKS, saved, tables, trust
from brokerlab.report.memory_estimator import jobs_sentences as of_jobs
from brokerlab.report.memory_estimator import jobs_tables as job_tables
from brokerlab.report.memory_estimator import pictures, settings_page
from brokerlab.report.memory_estimator import traces_sentences as of_traces
from brokerlab.report.memory_estimator import traces_tables as trace_tables
from brokerlab.report.memory_estimator.jobs import JobStudy
from brokerlab.report.memory_estimator.study import Study
from brokerlab.report.outputs import listed_rows, write_results, write_tables
from brokerlab.words import thin

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
    if study.kept is not None and study.card is not None:
        save_tested(
            study.kept.model,
            folder / saved.FOLDER,
            study.card,
            study.kept.learnt,
            level=study.level,
        )
    found = study.settings
    if isinstance(found, Translation) and found.proposal is not None:
        (folder / "proposal.json").write_text(found.proposal.to_json(), encoding="utf-8")
    return write_results(folder, page, {**numbers(study), **listed_rows(shown)}, _digests(study))


def _digests(study: Study) -> dict[str, str]:
    """Return the digests of what the report was made from."""
    inputs = study.inputs
    return {
        **{f"trace {each.name}": digest(each) for each in inputs.traces},
        **{f"tasks {at}": Trained.of(each.records).digest for at, each in inputs.tasks.items()},
        **({} if inputs.opened is None else {"archive": inputs.opened.digest}),
    }


def frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    found: dict[str, pl.DataFrame] = {}
    if study.traces is not None:
        for name, protocol in study.traces.protocols.items():
            found[f"traces_{name}"] = protocol.comparison.summary
            found[f"traces_{name}_orders"] = protocol.comparison.table
        found["traces_limits"] = study.traces.limits
        found["traces_types"] = study.traces.types
    for part in (study.tasks, study.archive):
        found |= {} if part is None else _job_frames(part)
    return found


def _job_frames(part: JobStudy) -> dict[str, pl.DataFrame]:
    """Return the frames behind a part on jobs."""
    found: dict[str, pl.DataFrame] = {}
    for at, trial in part.trials.items():
        compared = trial.comparison
        named = {
            "estimators": compared.table,
            "by_task": compared.tasks,
            "by_scouts": compared.by_scouts,
            "paired": compared.paired,
            "at_deployed": trial.at_deployed,
            "strata": compared.strata,
            "curves": trial.curves,
            "limits": trial.limits,
        }
        found |= {f"{part.kind}_{at}_{name}": frame for name, frame in named.items()}
    doubts = {"doubts": part.doubts.tasks, "scouts": part.doubts.scouts, "support": part.doubts.support}  # fmt: skip
    found |= {f"{part.kind}_{name}": frame for name, frame in doubts.items() if frame.width}
    if part.speeds.height:
        found[f"{part.kind}_speeds"] = part.speeds
    return found


def numbers(study: Study) -> dict[str, Any]:
    """Return the numbers that stand in sentences only."""
    found: dict[str, Any] = {}
    if study.traces is not None:
        found["traces"] = {
            name: {
                key: getattr(protocol, key)
                for key in ("ratio", "ratio_lo", "ratio_hi", "failures", "failures_peer")
            }
            for name, protocol in study.traces.protocols.items()
        }
    for part in (study.tasks, study.archive):
        if part is not None:
            found[part.kind] = _job_numbers(part)
    if isinstance(study.settings, Translation):
        found["settings"] = study.settings.to_dict()
    return found


def _job_numbers(part: JobStudy) -> dict[str, Any]:
    """Return counts, and what could be at best at the exceed rate of the rule."""
    return {
        "counts": part.main.comparison.counts,
        "division": part.division.to_dicts(),
        "clocks": {
            at: {
                "deployed": trial.deployed,
                "limit": trial.limit(trial.deployed["exceed_task_mean"]),
                "limit_pooled": trial.limit(trial.deployed["exceed"], averaged=False),
                "matched": trial.matched(trial.deployed["exceed_task_mean"]).to_dicts(),
                "matched_pooled": trial.matched(
                    trial.deployed["exceed"], averaged=False
                ).to_dicts(),
            }
            for at, trial in part.trials.items()
        },
    }


def assemble(study: Study, charts: Path) -> Page:
    """Draw the charts and put the page together.

    Args:
        study: The study.
        charts: Folder for the charts.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    parts = tuple(
        part
        for part in (
            _jobs(study.tasks, shown),
            _traces(study.traces, shown),
            _jobs(study.archive, shown),
            settings_page.settings(study),
            settings_page.model(study),
        )
        if part is not None
    )
    told = [*study.inputs.caveats, *study.unanswered]
    for found in (study.tasks, study.archive):
        told += of_jobs.cannot_tell(found) if found is not None else []
    if study.traces is not None:
        told += of_traces.cannot_tell(study.traces)
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=_verdict(study),
        parts=parts,
        cannot_tell=tuple(thin(sentence) for sentence in told),
        archive=study.inputs.source,
        window="",
        synthetic=study.inputs.synthetic,
        made=Made(facts=_facts(study)),
    )


def _verdict(study: Study) -> Verdict:
    """Say on whose jobs what gains how much."""
    said = [of_jobs.headline(study.tasks)] if study.tasks is not None else []
    said += [of_traces.headline(study.traces)] if study.traces is not None else []
    if study.archive is not None and study.tasks is None:
        said.append(of_jobs.headline(study.archive))
    if not said:
        return Verdict(kind="no_answer", sentence=f"No answer: {' '.join(study.unanswered)}")
    return Verdict(kind="finding", sentence=thin(" ".join(said)))


def _jobs(found: JobStudy | None, shown: dict[str, Block]) -> Part | None:
    if found is None:
        return None
    kind, trial, level = found.kind, found.main, found.doubts.level
    named = (trial.comparison.reference, SENT)
    exceeds = {name: trial.comparison.row(name)["exceed_task_mean"] for name in named}
    other = [each for each in found.trials.values() if each is not trial]
    return Part(
        name=kind,
        title="Real tasks" if kind == "tasks" else f"The {found.called}",
        verdict=of_jobs.verdict(found),
        picture=blocks(shown.get(f"frontier_{kind}")),
        before_after=_suffixed(kind, tables.overall(trial), tables.at_equal_exceed(trial, {k: v for k, v in exceeds.items() if v is not None}), of_jobs.more(found), of_jobs.clocks(found),
                               *(tables.overall(each) for each in other)),
        gains=_suffixed(kind, of_jobs.worst(found), tables.by_task(trial, OURS)),
        certainty=_suffixed(
            kind,
            of_jobs.certainty(found),
            of_jobs.speeds(found),
            job_tables.speeds(found),
            of_jobs.coverage(found),
            shown.get(f"known_{kind}"),
            tables.by_known(found.trials.get("start", trial)),
            tables.strata(found.doubts.strata, name="strata", caption=f"Is the {100 * level:g} % bound of {found.doubts.model} kept in every stratum, decided {CLOCKS[trial.at]}", level=level),
            "Where it should not be trusted:",
            *trust.sentences(found.doubts),
            trust.table(found.doubts, name="doubts"),
        ),
        headings={"before_after": "Estimator by estimator"},
    )  # fmt: skip


def _suffixed(kind: str, *found: Block | None) -> tuple[Block, ...]:
    """Give the tables of a part names of their own."""
    return tuple(
        replace(block, name=f"{kind}_{block.name}") if isinstance(block, Table) else block
        for block in blocks(*found)
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
