"""How much memory should the next job get, and by which rule or model?

Estimators are held against the rules that systems deploy: on whole real tasks with the scouts they really had, on traces of
workflow runs, and on the later tasks of an archive, where what they gain is translated into a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

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
from brokerlab.report import estimates, kit
from brokerlab.report.kit import (
    CERTAINTY,
    GAINS,
    Caveat,
    Chart,
    Number,
    Page,
    Part,
    Table,
    Verdict,
    say,
)
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
"""Times the least over-allocation among those speeds from which the clock is a caveat."""


class Params(kit.Params):
    """What may be asked."""

    report: ClassVar[str] = "memory-estimator"
    question: ClassVar[str] = "How much memory should the next job get, and by which rule or model?"

    data: str = Field(
        "", description="folder of real data, empty for $BROKERLAB_DATA or ../shared/data [path]"
    )
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
    models: list[Literal["hierarchy", "quantile boosting", "linear quantiles"]] = Field(
        [], description="that learn, tested beside the hierarchy on jobs, empty for all [name]"
    )
    level: float = Field(
        0.95, ge=0.5, lt=1, description="of the upper bounds that are held to it [1]"
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
    folder, archive = estimates.data_folder(p.data), estimates.archive_at(p.archive)
    files = [] if folder is None else sorted(folder.glob(TRACES))
    home = Path() if folder is None else folder / TASKS
    real = folder is not None and any(home.glob(TASK_FILES))
    tasks = {at: of_invex(home, "memory", at=at) for at in estimates.CLOCKS} if real else {}
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
    sources = {at: of_archive(archive, "memory", at=at) for at in estimates.CLOCKS}
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
    traces = _size_traces(data.traces, p) if data.traces else None
    generated = data.archive is not None and data.archive.synthetic
    return Study(jobs, traces, settings, problems, generated)


def _size_traces(traces: tuple[Trace, ...], p: Params) -> TraceStudy:
    return study_traces(
        traces,
        peers=all_peers if p.slow or p.store else peers,
        seeds=p.seeds,
        store=Store(Path(p.store), fills=p.slow) if p.store else None,
        n_boot=p.n_boot,
        seed=p.seed,
    )


def page(data: Data, study: Study, p: Params) -> Page:
    """Lay out what estimators save on tasks, traces and an archive, and what that means for a setting."""
    parts = [_jobs_part(name, _title(name, study), part) for name, part in study.jobs.items()]
    if study.traces is not None:
        parts.insert(1, traces_part(study.traces))
    if study.settings is not None:
        title = "What it means for the setting"
        parts.append(estimates.settings_part({"archive": study.settings}, title))
    first, *others = [*parts, *estimates.model_part(study.jobs, level=p.level)]
    proposal = study.settings.proposal if study.settings else None
    return Page(
        verdict=_verdict(study),
        numbers=_numbers(study),
        chart=first.chart,
        overview=_overview(study),
        parts=[replace(first, chart=None), *others],
        caveats=_caveats(data, study),
        facts=_facts(data, study),
        archive=data.archive,
        digests={
            **{f"trace {each.name}": digest(each) for each in data.traces},
            **{f"tasks {at}": Trained.of(each.records).digest for at, each in data.tasks.items()},
        },
        proposals={"": proposal} if proposal else {},
        also=_also(study),
        values=_values(study),
        synthetic=False if data.traces or data.tasks else None,
    )


def run(p: Params) -> dict[str, Any]:
    """Load, study, publish, and save the model beside the page."""
    data = load(p)
    result = study(data, p)
    estimates.save_model(result.jobs, p.out_dir, level=p.level)
    return kit.publish(page(data, result, p), p)


# --- the first screen -------------------------------------------------------------------------------------------------


def _verdict(study: Study) -> Verdict:
    """Say what gains most where most is at stake: on real tasks, else on the archive, else on traces."""
    for name, part in study.jobs.items():
        row, where = _waste(part), _title(name, study).lower()
        if row is None:
            sentence = f"On {where}, the deployed rule has too few answers to be compared with."
            return Verdict(kind="no_answer", sentence=sentence)
        if row["change_lo"] is None or row["change_lo"] <= 0 <= row["change_hi"]:
            sentence = (
                f"On {where}, {OURS} and the scouts' rule cannot be told apart in what they waste."
            )
            return Verdict(kind="finding", sentence=sentence)
        change = _less(row["change"])
        sentence = (
            f"On {where}, {OURS} wastes {change} memory than the scouts' rule, retries counted."
        )
        return Verdict(kind="finding", sentence=sentence)
    return Verdict(kind="finding", sentence=trace_sentence(study.traces) if study.traces else "")


def _title(name: str, study: Study) -> str:
    archive = "The generated archive" if study.generated else "The archive"
    return {"tasks": "Real tasks", "archive": archive}[name]


def _waste(part: MemoryEvaluation) -> dict[str, Any] | None:
    return trial_frames.change_of(part.main, OURS, "waste_per_usage")


def _numbers(study: Study) -> list[Number]:
    numbers = []
    for part in list(study.jobs.values())[:1]:
        if row := _waste(part):
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


def _overview(study: Study) -> Table:
    """Return one line per subject: what ours wastes over what it is held against."""
    ends, rows = ("ratio", "ratio_lo", "ratio_hi"), []
    for name, part in study.jobs.items():
        row = _waste(part) or {}
        rule = {"reference": part.main.comparison.reference}
        counts = part.main.comparison.counts
        named = {"part": _title(name, study), "href": f"#{name}"}
        rows.append({**named, **counts, **rule, **{end: row.get(end) for end in ends}})
    if study.traces is not None:
        main, n_peers = study.traces.main, len(study.traces.peers)
        counts = {"jobs": study.traces.n_runs, "tasks": study.traces.types.height}
        rule = {"reference": f"best of {n_peers} peers"}
        named = {"part": "Workflow traces", "href": "#traces"}
        rows.append({**named, **counts, **rule, **{end: vars(main)[end] for end in ends}})
    return Table(
        name="overview",
        frame=pl.DataFrame(rows, infer_schema_length=None),
        caption="Memory wasted, killed attempts and retries counted",
        columns={
            "part": "On",
            "jobs": "Jobs",
            "tasks": "Tasks or types",
            "reference": "Against",
            "ratio": "Wastes so many times as much [ratio]",
        },
        links={"part": "href"},
        note="Fewer than 8 tasks: range without one of them; else 95 % intervals over tasks, or task types.",
    )


# --- whole tasks ------------------------------------------------------------------------------------------------------


def _jobs_part(name: str, title: str, part: MemoryEvaluation) -> Part:
    trial, trials = part.main, part.trials
    matched = trial_frames.at_equal_exceed(trial)
    return Part(
        name=name,
        title=title,
        verdict=Verdict(kind="finding", sentence=_at_equal_exceed(matched)),
        chart=_frontier(part),
        sections={
            "Estimator by estimator": [estimates.estimator_table(trials, "Every estimator")],
            "At the exceed rate of the deployed rule": [
                estimates.matched_table(trial, _target(trial.deployed, matched)),
                estimates.chosen_table(trials),
            ],
            GAINS: [estimates.task_table(trial, OURS), estimates.strata_table(part.doubts)],
            CERTAINTY: [
                estimates.coverage_table(trials, MODEL),
                estimates.known_chart(list(trials.values())[-1], MODEL),
                estimates.doubt_table(part.doubts),
            ],
        },
    )


def _frontier(part: MemoryEvaluation) -> Chart:
    trial = part.main
    row = trial_frames.change_of(trial, OURS, "over_allocation_task_mean")
    finding = "How often jobs exceed, and what is over-allocated"
    if row is not None:
        finding = say(
            "{ours} over-allocates {change} than the scouts' rule; {above:%} of jobs are above it, {rule:%} above the rule",
            ours=OURS.capitalize(),
            change=_less(row["change"]),
            above=trial.comparison.row(OURS)["exceed_task_mean"],
            rule=trial.deployed["exceed_task_mean"],
        )
    points = trial_frames.frontier_points(trial, variants=(OTHER_MARGINS,))
    return estimates.frontier(trial, finding, points)


def _less(change: float) -> str:
    """Write a change [1] with its direction."""
    word = "less" if change < 0 else "more"
    return say("{size:.0f} % {word}", size=100 * abs(change), word=word)


def _best(matched: pl.DataFrame) -> dict[str, Any] | None:
    """Return the model, or its cheapest allocation, that over-allocates least at the rule's exceed rate."""
    models = matched.filter(pl.col("role").is_in(["model", "proposed"])).drop_nulls("change")
    return models.row(0, named=True) if models.height else None


def _at_equal_exceed(matched: pl.DataFrame) -> str:
    """Say what can be saved at the exceed rate of the deployed rule."""
    limit, best = matched.filter(role="limit").row(0, named=True)["change"], _best(matched)
    if limit is None:
        return "The deployed rule has no answer, or over-allocates nothing: nothing can be held against it."
    saved = say("hindsight would save {size:.0f} %", size=-100 * limit)
    if best is None:
        return f"No setting of any model exceeds as rarely as the deployed rule; {saved}."
    change = _less(best["change"])
    return f"At the rule's exceed rate {best['estimator']} over-allocates {change}; {saved}."


def _target(deployed: Mapping[str, Any], matched: pl.DataFrame) -> str:
    """Hold what can be saved to what was asked for."""
    if deployed["exceed_task_mean"] is None:
        return "The deployed rule has no answer for any job"
    best = _best(matched)
    met = "met" if best is not None and best["change"] <= -SAVED else "not met"
    template = (
        "With {exceed_task_mean:%} of jobs above it: the target, {saved:.0f} % less, is {met}"
    )
    return say(template, deployed, saved=100 * SAVED, met=met)


# --- what it cannot tell, and what is written beside -------------------------------------------------------------------


def _caveats(data: Data, study: Study) -> list[Caveat]:
    notes = study.settings.notes if study.settings else ()
    return [
        *(Caveat(n=1, text=f"No answer on {name}: {why}.") for name, why in study.problems.items()),
        Caveat(
            n=not data.traces and not data.tasks,
            text="No real data were found: set BROKERLAB_DATA to their folder.",
        ),
        *(_task_caveats(study.jobs["tasks"]) if "tasks" in study.jobs else ()),
        Caveat(
            n=study.generated and "archive" in study.jobs,
            text="The archive is generated: what is learnt and tested on it follows how it was generated.",
        ),
        *(trace_caveats(study.traces) if study.traces else ()),
        *(Caveat(n=1, text=f"Setting: {note}") for note in notes),
    ]


def _task_caveats(part: MemoryEvaluation) -> list[Caveat]:
    trial, counts = part.main, part.main.comparison.counts
    largest = trial.production.group_by("jeditaskid").len().sort("len").row(-1)
    share = largest[1] / counts["jobs"]
    heavy = "Task {task} has {share:%} of the jobs of the real tasks: figures over all jobs are mostly its own."
    same = "{name} says the same as {other} on the real tasks and is shown once."
    return [
        Caveat(
            n=counts["killed"] == 0,
            text="No job of the real tasks is known to be killed for its memory: jobs that needed more than they could get are "
            "missing, and every exceed rate is that of survivors.",
        ),
        Caveat(
            n=share > 0.5 and counts["tasks"] > 1,
            text=say(heavy, task=str(largest[0]), share=share),
        ),
        *(Caveat(n=1, text=say(same, name=n, other=o)) for n, o in part.alike.items()),
        _clock_caveat(part.speeds.filter(estimator=OURS)),
    ]


def _clock_caveat(speeds: pl.DataFrame) -> Caveat:
    """Say how much hangs on the inferred clock: the faster, the fewer scouts had ended when later jobs were created."""
    over = "over_allocation_task_mean"
    best, worst = (speeds.sort(over).row(place, named=True) for place in (0, -1))
    text = (
        "No times of day are recorded: jobs are taken to be created in the order of their numbers. Were it {ids_per_s} of them a "
        "second in the whole system, ours would over-allocate {worst:%} of use, not {best:%}."
    )
    changed = worst[over] > CLOCK_MATTERS * best[over]
    return Caveat(n=changed, text=say(text, worst, worst=worst[over], best=best[over]))


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


def _also(study: Study) -> dict[str, pl.DataFrame]:
    frames = trace_frames(study.traces) if study.traces else {}
    for name, part in study.jobs.items():
        frames |= estimates.frames(name, part.trials, part.doubts)
        frames |= {f"{name}_speeds": part.speeds} if part.speeds.height else {}
    return frames


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
