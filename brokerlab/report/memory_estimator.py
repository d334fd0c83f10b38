"""How much memory should the next job get, and by which rule or model?

Estimators are held against the rules that systems deploy: on whole real tasks with the scouts they really had, on traces of
workflow runs, and on the later tasks of an archive, where what they gain is translated into a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field, field_validator

from brokerlab.archive import Archive
from brokerlab.calibrate.nearest_setting import Translation, translate_trial
from brokerlab.errors import BrokerlabError, InsufficientDataError
from brokerlab.estimators import trial_frames
from brokerlab.estimators.learners import MODEL, learners
from brokerlab.estimators.memory_tasks import (
    OTHER_MARGINS,
    OURS,
    MemoryEvaluation,
    evaluate_later,
    evaluate_left_out,
)
from brokerlab.estimators.saving import Trained
from brokerlab.estimators.sizing import Store, Trace, read_trace
from brokerlab.estimators.sizing.peers import all_peers, peers
from brokerlab.estimators.sizing.protocols import TraceStudy, study_traces
from brokerlab.estimators.sizing.store import digest
from brokerlab.estimators.sources import Source, of_archive, of_invex
from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial import Trial
from brokerlab.estimators.trial_frames import CLOCKS
from brokerlab.report import estimates, kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Part, Table, Verdict, say
from brokerlab.report.memory_traces import (
    TARGET,
    trace_caveats,
    trace_frames,
    trace_sentence,
    traces_part,
)

TRACES, TASKS, TASK_FILES = "nfcore-traces/trace_*.csv.gz", "panda-invex-jobs", "job_records_*.csv*"
IDS_PER_S, OTHER_SPEEDS = 10.0, (5.0, 25.0)
"""Jobs that the whole system creates in a second, and others that are tried: real tasks have no times of day."""
SAVED = 0.3
"""Part of the over-allocated memory that is to be saved at the deployed rule's exceed rate."""
CLOCK_MATTERS = 1.1
"""Times the over-allocation at the speed that is taken from which the clock is a caveat."""


class Params(estimates.Params):
    """What may be asked."""

    report: ClassVar[str] = "memory-estimator"
    question: ClassVar[str] = "How much memory should the next job get, and by which rule or model?"

    seeds: list[int] = Field(
        [1, 2, 3, 4, 5, 1996],
        min_length=1,
        max_length=50,
        description="random orders in which runs of traces arrive [1]",
    )
    slow: bool = Field(
        default=False, description="run the published methods that take their time on traces, too"
    )
    store: str = Field(
        "", description="folder where their results are kept and found again, empty for none [path]"
    )

    @field_validator("seeds")
    @classmethod
    def _are_different(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) < len(seeds) or min(seeds) < 0:
            raise ValueError("must be different numbers, 0 or more")
        return seeds


class Data(NamedTuple):
    """What is estimated: traces, records of whole real tasks and of the archive by clock; empty where there are none."""

    traces: tuple[Trace, ...]
    tasks: Mapping[At, Source]
    speeds: Mapping[float, Source]  # of the tasks, by the speed of numbering jobs [1/s]
    later: Mapping[At, Source]
    archive: Archive | None
    problems: Mapping[str, str]  # why nothing of the archive can be used


class Study(NamedTuple):
    """What was found; `problems`: why a part is missing that there were data for."""

    jobs: Mapping[str, MemoryEvaluation]  # tasks (real ones), archive (its later ones)
    traces: TraceStudy | None
    settings: Translation | None
    problems: Mapping[str, str]
    generated: bool  # of the archive


@kit.answers
def load(p: Params) -> Data:
    """Find and read what is estimated."""
    folder, archive = kit.data_folder(p.data), estimates.archive_at(p.archive)
    files = [] if folder is None else sorted(folder.glob(TRACES))
    home = Path() if folder is None else folder / TASKS
    real = folder is not None and any(home.glob(TASK_FILES))
    tasks = {at: of_invex(home, "memory", at=at) for at in CLOCKS} if real else {}
    speeds = {s: of_invex(home, "memory", ids_per_s=s) for s in OTHER_SPEEDS} if real else {}
    problems: dict[str, str] = {}
    later = {}
    if archive is not None:
        with estimates.noted(problems, "archive"):
            later = _records(archive, p)
    if not (files or real or later):
        raise InsufficientDataError(
            problems.get("archive")
            or "neither real data nor an archive; set BROKERLAB_DATA, or make an archive by "
            f"`brokerlab synthesise --into {estimates.DEMO} --jobs 200000`"
        )
    return Data(
        traces=tuple(read_trace(path) for path in files),
        tasks=tasks,
        speeds={IDS_PER_S: tasks["submit"], **speeds} if real else {},
        later=later,
        archive=archive,
        problems=problems,
    )


def _records(archive: Archive, p: Params) -> dict[At, Source]:
    """Return the records of the archive's tasks that begin in the window, by clock."""
    kit.need(archive, "jobs")
    sources = {at: of_archive(archive, "memory", at=at) for at in CLOCKS}
    return {at: each.between(p.start, p.end) for at, each in sources.items()}


@kit.answers
def study(data: Data, p: Params) -> Study:
    """Run all estimators on everything there is."""
    draws: dict[str, Any] = {"n_boot": p.n_boot, "seed": p.seed}
    asked = {"makes": learners("memory", *p.models), "level": p.level, **draws}
    jobs: dict[str, MemoryEvaluation] = {}
    problems = dict(data.problems)
    if data.tasks:
        with estimates.noted(problems, "tasks"):
            jobs["tasks"] = evaluate_left_out(data.tasks, speeds=data.speeds, **asked)
    if data.later:
        with estimates.noted(problems, "archive"):
            jobs["archive"] = evaluate_later(data.later, **asked)
    if not (jobs or data.traces):
        raise InsufficientDataError("; ".join(problems.values()))
    settings = None
    if "archive" in jobs and data.archive is not None:
        part = jobs["archive"]
        named = {"model": MODEL, "name": OURS, "rules": p.rules, **draws}
        with estimates.noted(problems, "setting", BrokerlabError):
            settings = translate_trial(part.main, data.archive, learnt=part.learnt, **named)
    traces = None
    if data.traces:
        store = Store(Path(p.store), fills=p.slow) if p.store else None
        every = all_peers if p.slow or p.store else peers
        traces = study_traces(data.traces, peers=every, seeds=p.seeds, store=store, **draws)
    generated = data.archive is not None and data.archive.synthetic
    return Study(jobs, traces, settings, problems, generated)


def page(data: Data, study: Study, p: Params) -> Page:
    """Lay out what estimators save on tasks, traces and an archive, and what that means for a setting."""
    titles = estimates.titles(data.archive)
    parts = [_jobs_part(name, titles[name], part) for name, part in study.jobs.items()]
    chart = _frontier(next(iter(study.jobs.values()))) if study.jobs else None
    if study.traces is not None:
        sized = traces_part(study.traces)
        parts.insert(1, sized if chart else replace(sized, chart=None))
        chart = chart or sized.chart
    settings = {"archive": study.settings} if study.settings else {}
    if settings:
        parts.append(estimates.settings_part(settings, "What it means for the setting"))
    parts += estimates.model_part(study.jobs, level=p.level)
    proposal = study.settings.proposal if study.settings else None
    return Page(
        verdict=_verdict(study, titles),
        numbers=_numbers(study),
        chart=chart,
        overview=_overview(study, titles),
        parts=parts,
        caveats=_caveats(data, study, settings),
        facts=_facts(data, study),
        archive=data.archive,
        digests={
            **{f"trace {each.name}": digest(each) for each in data.traces},
            **{f"tasks {at}": Trained.of(each.records).digest for at, each in data.tasks.items()},
        },
        proposals={"": proposal} if proposal else {},
        also={
            **(trace_frames(study.traces) if study.traces else {}),
            **estimates.frames(study.jobs),
            **{
                f"{name}_speeds": each.speeds
                for name, each in study.jobs.items()
                if each.speeds.height
            },
        },
        values=_values(study),
        synthetic=False if data.traces or data.tasks else None,
        beside=estimates.model_writer(study.jobs, level=p.level),
    )


# --- the first screen -------------------------------------------------------------------------------------------------


def _verdict(study: Study, titles: Mapping[str, str]) -> Verdict:
    """Say what gains most where most is at stake: on real tasks, else on the archive, else on traces."""
    for name, part in study.jobs.items():
        return estimates.headline(part, OURS, titles[name].lower(), "memory")
    return Verdict(kind="finding", sentence=trace_sentence(study.traces) if study.traces else "")


def _numbers(study: Study) -> list[Number]:
    numbers = []
    for part in list(study.jobs.values())[:1]:
        if row := estimates.waste(part, OURS):
            note = say("{value:%} of use, the rule {reference:%}", row)
            label = "Memory wasted, against the scouts' rule"
            numbers.append(Number.of(row, "change", label=label, unit="%", note=note))
        above = part.main.comparison.row(OURS)["exceed_task_mean"]
        note = say("the rule {exceed_task_mean:%}; means of tasks", part.main.deployed)
        numbers.append(Number("Jobs above their first allocation", above, unit="%", note=note))
    if study.traces is not None:
        row = vars(study.traces.main)
        note = say("{failures:.0f} kills an order, best peers {failures_peer:.0f}", row)
        label = "Traces: waste over the best peers"
        numbers.append(Number.of(row, "ratio", label=label, note=note))
    return numbers


def _overview(study: Study, titles: Mapping[str, str]) -> Table:
    rows = []
    if study.traces is not None:
        counts = {"jobs": study.traces.n_runs, "tasks": study.traces.types.height}
        named = {"part": "Workflow traces", "href": "#traces"}
        rule = {"reference": f"best of {len(study.traces.peers)} peers"}
        ratio = {end: vars(study.traces.main)[end] for end in ("ratio", "ratio_lo", "ratio_hi")}
        rows.append({**named, **counts, **rule, **ratio})
    return estimates.overview(study.jobs, OURS, titles, "Memory", *rows)


# --- whole tasks ------------------------------------------------------------------------------------------------------


def _jobs_part(name: str, title: str, part: MemoryEvaluation) -> Part:
    matched = trial_frames.at_equal_exceed(part.main)
    verdict = Verdict(kind="finding", sentence=_at_equal_exceed(matched))
    empty = Part(name=name, title=title, verdict=verdict)
    own = {"Against the target": [_target(part.main.deployed, matched)]}
    return estimates.jobs_part(empty, part, OURS, own)


def _frontier(part: MemoryEvaluation) -> Chart:
    row = trial_frames.change_of(part.main, OURS, "over_allocation_task_mean")
    finding = "How often jobs exceed, and what is over-allocated"
    if row is not None:
        change = estimates.less(row["change"])
        finding = f"{OURS.capitalize()} over-allocates {change} than the scouts' rule"
    points = trial_frames.frontier_points(part.main, variants=(OTHER_MARGINS,))
    return estimates.frontier(part.main, finding, points)


def _at_equal_exceed(matched: pl.DataFrame) -> str:
    """Say what can be saved at the exceed rate of the deployed rule."""
    limit = matched.filter(role="limit").row(0, named=True)["change"]
    best = trial_frames.best_model(matched)
    if limit is None:
        return "The deployed rule has no answer, or over-allocates nothing: nothing can be held against it."
    saved = say("hindsight would save {size:.0f} %", size=-100 * limit)
    if best is None:
        return f"No setting of any model exceeds as rarely as the deployed rule; {saved}."
    change = estimates.less(best["change"])
    return f"At the rule's exceed rate {best['estimator']} over-allocates {change}; {saved}."


def _target(deployed: Mapping[str, Any], matched: pl.DataFrame) -> str:
    """Hold what can be saved to what was asked for."""
    if deployed["exceed_task_mean"] is None:
        return "The deployed rule has no answer for any job."
    best = trial_frames.best_model(matched)
    return say(
        "At the rule's exceed rate, {exceed_task_mean:%} of jobs in the mean of tasks, settings chosen with hindsight, for all "
        "estimators alike: the target, {saved:.0f} % less, is {met}.",
        deployed,
        saved=100 * SAVED,
        met="met" if best is not None and best["change"] <= -SAVED else "not met",
    )


# --- what it cannot tell, and what is written beside -------------------------------------------------------------------


def _caveats(data: Data, study: Study, settings: Mapping[str, Translation]) -> list[Caveat]:
    real, generated = bool(data.traces or data.tasks), study.generated and "archive" in study.jobs
    return [
        *(_task_caveats(study.jobs["tasks"]) if "tasks" in study.jobs else ()),
        *(trace_caveats(study.traces) if study.traces else ()),
        *estimates.caveats(study.problems, settings, real=real, generated=generated),
    ]


def _task_caveats(part: MemoryEvaluation) -> list[Caveat]:
    trial, counts = part.main, part.main.comparison.counts
    largest = trial.production.group_by("jeditaskid").len().sort("len").row(-1)
    share = largest[1] / counts["jobs"]
    heavy = "Task {task} has {share:%} of the jobs of the real tasks: figures over all jobs are mostly its own."
    same = "{name} says the same as {other} on the real tasks and is shown once."
    survivors = (
        "No job of the real tasks is known to be killed for its memory: jobs that needed more than they could get are missing, "
        "and every exceed rate is that of survivors."
    )
    return [
        Caveat(counts["killed"] == 0, survivors),
        Caveat.of(share > 0.5 and counts["tasks"] > 1, heavy, task=str(largest[0]), share=share),
        *(Caveat.of(1, same, name=name, other=other) for name, other in part.alike.items()),
        _clock_caveat(part.speeds.filter(estimator=OURS)),
    ]


def _clock_caveat(speeds: pl.DataFrame) -> Caveat:
    """Say how much hangs on the inferred clock: the faster, the fewer scouts had ended when later jobs were created."""
    over = "over_allocation_task_mean"
    taken = speeds.row(by_predicate=pl.col("ids_per_s") == IDS_PER_S, named=True)
    worst = speeds.sort(over).row(-1, named=True)
    text = (
        "No times of day are recorded: jobs are taken to be created in the order of their numbers. Were it {ids_per_s} of them a "
        "second in the whole system, ours would over-allocate {worst:%} of use, not {taken:%}."
    )
    changed = worst[over] > CLOCK_MATTERS * taken[over]
    return Caveat.of(changed, text, worst, worst=worst[over], taken=taken[over])


def _facts(data: Data, study: Study) -> dict[str, str]:
    sized = (f"{each.name} ({len(each.types)} types, {each.n_runs} runs)" for each in data.traces)
    facts = {"Workflow traces": ", ".join(sized)}
    if data.tasks:
        source = data.tasks["submit"]
        clock = "; ".join(source.notes)
        facts |= {"Real tasks": estimates.counted(source), "Clock of real tasks": clock}
        facts["Tested"] = (
            "each task by models that learnt from the others, the latest third calibrating"
        )
    if data.later:
        facts["Jobs of the archive"] = estimates.counted(data.later["submit"])
    for part in study.jobs.values():
        rows = part.division.iter_rows()
        facts["Tasks of the archive"] = ", ".join(
            f"{n} {name} ({jobs} jobs)" for name, n, jobs in rows
        )
    return facts


def _values(study: Study) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: {
            **part.main.comparison.counts,
            "division": part.division.to_dicts(),
            "limits": {at: _limits(trial) for at, trial in part.trials.items()},
        }
        for name, part in study.jobs.items()
    }
    if study.traces is not None:
        kills = {
            n: (each.failures, each.failures_peer) for n, each in study.traces.protocols.items()
        }
        values["traces"] = {"kills": kills, "target_met": study.traces.meets(TARGET)}
    if study.settings is not None:
        values["settings"] = study.settings.to_dict()
    return values


def _limits(trial: Trial) -> dict[str, float | None]:
    """Return what hindsight would over-allocate at the exceed rate of the deployed rule."""
    rule = trial.deployed
    pooled = trial.limit(rule["exceed"], averaged=False)
    return {"task_mean": trial.limit(rule["exceed_task_mean"]), "all_jobs": pooled}
