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
from brokerlab.charts import estimators as charts
from brokerlab.errors import BrokerlabError, InsufficientDataError
from brokerlab.estimators import trial_frames
from brokerlab.estimators.holdout import FEWEST_TASKS
from brokerlab.estimators.learners import MODEL, learners
from brokerlab.estimators.memory_tasks import (
    OTHER_MARGINS,
    OURS,
    MemoryEvaluation,
    evaluate_later,
    evaluate_left_out,
    read_tasks,
)
from brokerlab.estimators.saving import Trained
from brokerlab.estimators.sizing import Store, Trace, read_trace
from brokerlab.estimators.sizing.peers import all_peers, peers
from brokerlab.estimators.sizing.protocols import LADDER, TARGET, TraceStudy, frames, study_traces
from brokerlab.estimators.sizing.store import digest
from brokerlab.estimators.sources import Source, of_archive
from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial_frames import CLOCKS
from brokerlab.report import estimates, kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Part, Table, Verdict, say
from brokerlab.report.needs import Needs
from brokerlab.words import listed

TRACES = "nfcore-traces/trace_*.csv.gz"
PROTOCOLS = {"drawn": "Random orders", "submitted": "As submitted", "published": "As published"}
SAVED = 0.3
"""Part of the over-allocated memory that is to be saved at the deployed rule's exceed rate."""
CLOCK_MATTERS = 1.1
"""Times the over-allocation at the speed that is taken from which the clock is a caveat."""


class Params(estimates.Params):
    """What may be asked."""

    report: ClassVar[str] = "memory-estimator"
    question: ClassVar[str] = "How much memory should the next job get, and by which rule or model?"

    needs: ClassVar[Needs] = estimates.needs_of("memory", least=FEWEST_TASKS)

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


@kit.answers
def load(p: Params) -> Data:
    """Find and read what is estimated."""
    folder, archive = kit.data_folder(p.data), estimates.archive_at(p.archive)
    files = [] if folder is None else sorted(folder.glob(TRACES))
    traces = tuple(read_trace(path) for path in files)
    tasks, speeds = ({}, {}) if folder is None else read_tasks(folder)
    problems: dict[str, str] = {}
    later = {}
    if archive is not None:
        with estimates.noted(problems, "archive"):
            archive = p.needs.opened(archive)
            later = {
                at: of_archive(archive, "memory", at=at).between(p.start, p.end) for at in CLOCKS
            }
    if not (traces or tasks or later):
        raise InsufficientDataError(
            problems.get("archive")
            or "neither real data nor an archive; set BROKERLAB_DATA, or make an archive by "
            f"`brokerlab synthesise --into {estimates.DEMO} --jobs 200000`"
        )
    return Data(traces, tasks, speeds, later, archive, problems)


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
    return Study(jobs, traces, settings, problems)


def page(data: Data, study: Study, p: Params) -> Page:
    """Lay out what estimators save on tasks, traces and an archive, and what that means for a setting."""
    titles = estimates.titles(data.archive)
    parts = [_jobs_part(name, titles[name], part) for name, part in study.jobs.items()]
    chart = _frontier(next(iter(study.jobs.values()))) if study.jobs else None
    if study.traces is not None:
        sized = _traces_part(study.traces)
        parts.insert(1, sized if chart else replace(sized, chart=None))
        chart = chart or sized.chart
    settings = {"archive": study.settings} if study.settings else {}
    if settings:
        parts.append(estimates.settings_part(settings, "What it means for the setting"))
    parts += estimates.model_part(study.jobs, level=p.level)
    proposal = study.settings.proposal if study.settings else None
    traces = frames(study.traces) if study.traces else {}
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
            **{f"traces_{name}": frame for name, frame in traces.items()},
            **estimates.frames(study.jobs),
            **{
                f"{name}_speeds": each.speeds
                for name, each in study.jobs.items()
                if each.speeds.height
            },
        },
        values={
            **{name: part.to_dict() for name, part in study.jobs.items()},
            **({"traces": study.traces.to_dict()} if study.traces else {}),
            **({"settings": study.settings.to_dict()} if study.settings else {}),
        },
        synthetic=False if data.traces or data.tasks else None,
        beside=estimates.model_writer(study.jobs, level=p.level),
    )


# --- the first screen -------------------------------------------------------------------------------------------------


def _verdict(study: Study, titles: Mapping[str, str]) -> Verdict:
    """Say what gains most where most is at stake: on real tasks, else on the archive, else on traces."""
    for name, part in study.jobs.items():
        return estimates.headline(part, OURS, titles[name].lower(), "memory")
    return Verdict(kind="finding", sentence=_trace_sentence(study.traces) if study.traces else "")


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


# --- workflow traces --------------------------------------------------------------------------------------------------


def _trace_sentence(study: TraceStudy) -> str:
    """Hold the ratio to the best peers to the target."""
    template = (
        "{ours} waste {ratio} times what the best peers do; the target {target:.1f} is {met}."
    )
    met = "met" if study.meets() else "not met"
    return say(template, vars(study.main), ours=LADDER.capitalize(), target=TARGET, met=met)


def _traces_part(study: TraceStudy) -> Part:
    types = Table(
        name="types",
        frame=study.extreme_types(),
        caption=f"{study.n_lost} of {study.types.height} task types waste more than with the best peer of their trace",
        columns={
            "short": "Task type",
            "trace": "Trace",
            "runs": "Runs",
            "best_gbh": "Best peer [GB h]",
            "ours_gbh": "Ours [GB h]",
            "difference_gbh": "Difference [GB h]",
        },
        mark="mark",
        note="Those that lose most, then those that gain most; per order of arrival.",
    )
    protocols = Table(
        name="protocols",
        frame=study.by_protocol,
        caption="Our waste over that of the best peer, by the way of comparing",
        columns={
            "trace": "Trace",
            **{name: f"{title} [ratio]" for name, title in PROTOCOLS.items()},
            **{f"{name}_failures": f"{title}: kills more" for name, title in PROTOCOLS.items()},
        },
        note="As submitted: the earliest 30 % of each task type are known, the rest arrive once. As published: judged by the "
        "average resident memory where the method was. Kills more: ours less those of the best peer, per order.",
    )
    return Part(
        name="traces",
        title="Workflow traces",
        verdict=Verdict(kind="finding", sentence=_trace_sentence(study)),
        chart=_ratios(study),
        sections={
            "Method by method": [_by_method(study)],
            kit.GAINS: [types],
            kit.CERTAINTY: [protocols],
        },
    )


def _ratios(study: TraceStudy) -> Chart:
    rows = study.main.ours.sort("ratio").select("ratio", "trace")
    least, most = rows.row(0, named=True), rows.row(-1, named=True)
    finding = "{ours} waste {ratio} ({trace}) to {most} ({other}) times what the best peer wastes"
    sample = "n = {runs:#run} of {types} task types, {orders} random orders of arrival. Bars: 95 % intervals over task types."
    return Chart(
        draw=charts.waste_ratios,
        name="ratios",
        frame=study.ratios,
        options={"target": TARGET},
        finding=say(
            finding, least, ours=LADDER.capitalize(), most=most["ratio"], other=most["trace"]
        ),
        sample=say(sample, runs=study.n_runs, types=study.types.height, orders=len(study.seeds)),
        note="Knowing: ours, sized from nine tenths of all other runs of the type. The best peer of each trace, chosen with "
        "hindsight, is at 1. A run is killed at its peak memory.",
    )


def _by_method(study: TraceStudy) -> Table:
    frame, traces, absent = study.main.by_method, study.main.ours["trace"], study.not_everywhere
    left_out = f" Not run on every trace: {listed(absent or [''])}, which take their time."
    return Table(
        name="methods",
        frame=frame.with_columns(mark=pl.when(method=LADDER).then(pl.lit("proposed"))),
        caption="Every method by the same harness",
        columns={
            "method": "Method",
            "ratio": "Over the best peer [ratio]",
            **{trace: f"{trace} [GB h]" for trace in traces},
            "failures": "Kills [per order]",
            "coverage": "First attempt enough [% of runs]",
            "width": "First allocation over use [ratio]",
            "maq": "Used of what was held [%]",
        },
        mark="mark",
        note=f"Ratio: geometric mean over the traces; the last three: means over the traces.{left_out if absent else ''}",
    )


# --- what it cannot tell, and what is written beside -------------------------------------------------------------------


def _caveats(data: Data, study: Study, settings: Mapping[str, Translation]) -> list[Caveat]:
    real = bool(data.traces or data.tasks)
    generated = data.archive is not None and data.archive.synthetic and "archive" in study.jobs
    return [
        *(_task_caveats(study.jobs["tasks"]) if "tasks" in study.jobs else ()),
        *(_trace_caveats(study.traces) if study.traces else ()),
        *estimates.caveats(study.problems, settings, real=real, generated=generated),
    ]


def _task_caveats(part: MemoryEvaluation) -> list[Caveat]:
    counts, (task, share) = part.main.comparison.counts, part.largest_task
    heavy = "Task {task} has {share:%} of the jobs of the real tasks: figures over all jobs are mostly its own."
    same = "{name} says the same as {other} on the real tasks and is shown once."
    survivors = (
        "No job of the real tasks is known to be killed for its memory: jobs that needed more than they could get are missing, "
        "and every exceed rate is that of survivors."
    )
    return [
        Caveat(counts["killed"] == 0, survivors),
        Caveat.of(share > 0.5 and counts["tasks"] > 1, heavy, task=str(task), share=share),
        *(Caveat.of(1, same, name=name, other=other) for name, other in part.alike.items()),
        *_clock_caveats(part),
    ]


def _clock_caveats(part: MemoryEvaluation) -> list[Caveat]:
    """Say how much hangs on the inferred clock: the faster, the fewer scouts had ended when later jobs were created."""
    effect = part.speed_effect()
    if effect is None:
        return []
    text = (
        "No times of day are recorded: jobs are taken to be created in the order of their numbers. Were it {ids_per_s} of them a "
        "second in the whole system, ours would over-allocate {worst:%} of use, not {taken:%}."
    )
    return [Caveat.of(effect["worst"] > CLOCK_MATTERS * effect["taken"], text, effect)]


def _trace_caveats(study: TraceStudy) -> list[Caveat]:
    left, heavy = study.left_out, study.heaviest.filter(pl.col("share") > 0.5)["trace"].to_list()
    few = "{n} task types with {runs:#run} of the traces are too rare or too short to be sized."
    first = (
        "The traces hold successful first attempts only: what a kill really costs is not in them; a killed attempt is taken to "
        "last as long as the run."
    )
    most = f"One task type holds more than half of our waste on {listed(heavy or [''])}: such a ratio says little of others."
    return [
        Caveat(len(study.traces), first),
        Caveat.of(left.height, few, runs=left["runs"].sum()),
        Caveat(len(heavy), most),
    ]


def _facts(data: Data, study: Study) -> dict[str, str]:
    sized = (f"{each.name} ({len(each.types)} types, {each.n_runs} runs)" for each in data.traces)
    facts = {"Workflow traces": ", ".join(sized)}
    if data.tasks:
        source = data.tasks["submit"]
        clock = "; ".join(source.notes)
        facts |= {"Real tasks": estimates.counted(source), "Clock of real tasks": clock}
        facts["Tested"] = "each task by models of the others, whose latest third calibrates"
    if data.later:
        facts["Jobs of the archive"] = estimates.counted(data.later["submit"])
    for part in study.jobs.values():
        rows = (f"{n} {name} ({jobs} jobs)" for name, n, jobs in part.division.iter_rows())
        facts["Tasks of the archive"] = ", ".join(rows)
    return facts
