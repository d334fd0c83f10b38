"""How much memory should the next job get, and by which rule or model?

Estimators are held against the rules that systems deploy: on whole real tasks with the scouts they really had, on traces of
workflow runs, and on the later tasks of an archive, where what they gain is translated into a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from brokerlab.archive import Archive
from brokerlab.calibrate.nearest_setting import Translation, translate_trial
from brokerlab.charts import estimators as charts
from brokerlab.errors import BrokerlabError, InsufficientDataError
from brokerlab.estimators import trial_frames
from brokerlab.estimators.evaluation import (
    FEWEST_TASKS,
    MODEL,
    Evaluation,
    evaluate_later,
    evaluate_left_out,
    learners,
)
from brokerlab.estimators.memory_tasks import (
    OTHER_MARGINS,
    OURS,
    OURS_OF_TRACES,
    TraceEvaluation,
    evaluate_traces,
    judge_speeds,
    other_margins,
    read_tasks,
    speed_effect,
)
from brokerlab.estimators.saving import Trained
from brokerlab.estimators.sources import Source, of_archive, of_trace, read_runs
from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial_frames import CLOCKS
from brokerlab.report import estimates, kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Part, Table, Verdict, say
from brokerlab.report.needs import Needs

TRACES = "nfcore-traces/trace_*.csv.gz"
SAVED = 0.3
"""Part of the over-allocated memory that is to be saved at the deployed rule's exceed rate."""
CLOCK_MATTERS = 1.1
"""Times the over-allocation at the speed that is taken from which the clock is a caveat."""


class Params(estimates.Params):
    """What may be asked."""

    report: ClassVar[str] = "memory-estimator"
    question: ClassVar[str] = "How much memory should the next job get, and by which rule or model?"

    needs: ClassVar[Needs] = estimates.needs_of("memory", least=FEWEST_TASKS)


class Data(NamedTuple):
    """What is estimated: records of workflow traces by name, of whole real tasks and of the archive by clock; empty where there are none."""

    traces: Mapping[str, Source]
    tasks: Mapping[At, Source]
    speeds: Mapping[float, Source]  # of the tasks, by the speed of numbering jobs [1/s]
    later: Mapping[At, Source]
    archive: Archive | None
    problems: Mapping[str, str]  # why nothing of the archive can be used


class Study(NamedTuple):
    """What was found; `problems`: why a part is missing that there were data for."""

    jobs: Mapping[str, Evaluation]  # tasks (real ones), archive (its later ones)
    speeds: pl.DataFrame  # of `judge_speeds`; no row where times were recorded
    traces: TraceEvaluation | None
    settings: Translation | None
    problems: Mapping[str, str]


@kit.answers
def load(p: Params) -> Data:
    """Find and read what is estimated."""
    folder, archive = kit.data_folder(p.data), estimates.archive_at(p.archive)
    files = [] if folder is None else sorted(folder.glob(TRACES))
    traces = {
        path.name.split(".")[0].removeprefix("trace_"): of_trace(read_runs(path), "memory")
        for path in files
    }
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
    makes = learners("memory", *p.models)
    asked = {"variants": other_margins(), "level": p.level, **draws}
    jobs: dict[str, Evaluation] = {}
    problems = dict(data.problems)
    if data.tasks:
        with estimates.noted(problems, "tasks"):
            jobs["tasks"] = evaluate_left_out(data.tasks, makes, **asked)
    if data.later:
        with estimates.noted(problems, "archive"):
            jobs["archive"] = evaluate_later(data.later, makes, **asked)
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
        traces = evaluate_traces(data.traces, level=p.level, **draws)
    speeds = judge_speeds(data.speeds if "tasks" in jobs else {}, makes[MODEL], level=p.level)
    return Study(jobs, speeds, traces, settings, problems)


def page(data: Data, study: Study, p: Params) -> Page:
    """Lay out what estimators save on tasks, traces and an archive, and what that means for a setting."""
    titles = estimates.titles(data.archive)
    parts = [_jobs_part(name, titles[name], part) for name, part in study.jobs.items()]
    chart = _frontier(next(iter(study.jobs.values()))) if study.jobs else None
    if study.traces is not None:
        sized = _traces_part(study.traces)
        parts.insert(1, sized if chart else replace(sized, chart=None))
        chart = chart or sized.chart
    if study.settings is not None:
        parts.append(estimates.settings_part(study.settings, "What it means for the setting"))
    parts += estimates.model_part(study.jobs, level=p.level)
    proposal = study.settings.verdict.proposal if study.settings else None
    return Page(
        verdict=_verdict(study, titles),
        numbers=_numbers(study),
        chart=chart,
        overview=_overview(study, titles),
        parts=parts,
        caveats=_caveats(data, study),
        facts=_facts(data, study),
        archive=data.archive,
        digests={
            **{
                f"trace {name}": Trained.of(each.records).digest
                for name, each in data.traces.items()
            },
            **{f"tasks {at}": Trained.of(each.records).digest for at, each in data.tasks.items()},
        },
        proposals={"": proposal} if proposal else {},
        also={
            **(
                {}
                if study.traces is None
                else {"traces_all": study.traces.methods, "traces_offers": study.traces.offers}
            ),
            **estimates.frames(study.jobs),
            **({"tasks_speeds": study.speeds} if study.speeds.height else {}),
        },
        values={
            **{name: part.to_dict() for name, part in study.jobs.items()},
            **({"settings": study.settings.to_dict()} if study.settings else {}),
        },
        synthetic=False if data.traces or data.tasks else None,
        beside=estimates.model_writer(study.jobs),
    )


# --- the first screen -------------------------------------------------------------------------------------------------


def _verdict(study: Study, titles: Mapping[str, str]) -> Verdict:
    """Say what gains most where most is at stake: on real tasks, else on the archive, else on traces."""
    for name, part in study.jobs.items():
        return estimates.headline(part, OURS, titles[name].lower(), "memory")
    return Verdict(
        kind="finding", sentence="" if study.traces is None else _trace_sentence(study.traces)
    )


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
        waste = study.traces.ours["over_best"]
        note = say(
            "at most {most} of the best rule's on each of {n} traces",
            most=waste.max(),
            n=waste.len(),
        )
        label = "Traces: waste over the best simple rule"
        numbers.append(Number(label, _mean_ratio(study.traces), note=note))
    return numbers


def _overview(study: Study, titles: Mapping[str, str]) -> Table:
    rows = []
    if study.traces is not None:
        ours = study.traces.ours
        rows.append(
            {
                "part": "Workflow traces",
                "href": "#traces",
                "reference": "best rule of each",
                "jobs": ours["runs"].sum(),
                "tasks": ours["types"].sum(),
                "ratio": _mean_ratio(study.traces),
            }
        )
    return estimates.overview(study.jobs, OURS, titles, "Memory", *rows)


# --- whole tasks ------------------------------------------------------------------------------------------------------


def _jobs_part(name: str, title: str, part: Evaluation) -> Part:
    matched = trial_frames.at_equal_exceed(part.main)
    verdict = Verdict(kind="finding", sentence=_at_equal_exceed(matched))
    empty = Part(name=name, title=title, verdict=verdict)
    own = {"Against the target": [_target(part.main.deployed, matched)]}
    return estimates.jobs_part(empty, part, OURS, own)


def _frontier(part: Evaluation) -> Chart:
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


def _mean_ratio(traces: TraceEvaluation) -> float:
    """Return the geometric mean over the traces of our waste over that of the best rule of each."""
    return float(np.exp(np.log(traces.ours["over_best"].to_numpy()).mean()))


def _trace_sentence(traces: TraceEvaluation) -> str:
    ours = traces.ours
    if instead := estimates.offered_instead(traces.offers, OURS_OF_TRACES):
        return f"On workflow traces, {instead}."
    template = (
        "{ours} waste {ratio} times what the best rule does, on {n} of {of} traces less than any."
    )
    less = ours.filter(pl.col("over_best") < 1).height
    return say(
        template,
        ours=OURS_OF_TRACES.capitalize(),
        ratio=_mean_ratio(traces),
        n=less,
        of=ours.height,
    )


def _traces_part(traces: TraceEvaluation) -> Part:
    methods = Table(
        name="methods",
        frame=traces.methods.with_columns(
            mark=pl.when(pl.col("role").is_in(["current", "proposed"])).then("role")
        ),
        caption="Every estimator on the same runs, as they were submitted",
        columns={
            "trace": "Trace",
            "estimator": "Estimator",
            "waste_per_usage": "Wasted [% of use]",
            "exceed": "Above their first allocation [% of runs]",
            "ratio": "Waste over the scouts' rule [ratio]",
        },
        mark="mark",
        note="A run that is killed gets the largest use seen of its task type, then twice as much each time. Brackets: 95 % intervals over "
        "task types. Published methods: python -m benchmarks.sizing.",
    )
    return Part(
        name="traces",
        title="Workflow traces",
        verdict=Verdict(kind="finding", sentence=_trace_sentence(traces)),
        chart=_ratios(traces),
        sections={
            "Estimator by estimator": [methods],
            "What is offered": [estimates.offer_table(traces.offers)],
        },
    )


def _ratios(traces: TraceEvaluation) -> Chart:
    ours = traces.ours.sort("ratio")
    finding = (
        "{ours} waste {ratio} ({trace}) to {most} ({other}) times what the scouts' rule wastes"
    )
    least, most = ours.row(0, named=True), ours.row(-1, named=True)
    sample = "n = {runs:#run} of {types} task types, in the order of submission. Bars: 95 % intervals over task types."
    return Chart(
        draw=charts.waste_ratios,
        name="ratios",
        frame=traces.methods.filter(pl.col("ratio") > 0),
        finding=say(
            finding,
            least,
            ours=OURS_OF_TRACES.capitalize(),
            most=most["ratio"],
            other=most["trace"],
        ),
        sample=say(sample, runs=ours["runs"].sum(), types=ours["types"].sum()),
        note="The views of earlier runs of a task type are mixed by how well each foresaw what came. A run is killed at its peak memory.",
    )


# --- what it cannot tell, and what is written beside -------------------------------------------------------------------


def _caveats(data: Data, study: Study) -> list[Caveat]:
    real = bool(data.traces or data.tasks)
    generated = data.archive is not None and data.archive.synthetic and "archive" in study.jobs
    return [
        *(_task_caveats(study.jobs["tasks"]) if "tasks" in study.jobs else ()),
        *_clock_caveats(study.speeds),
        *(() if study.traces is None else _trace_caveats()),
        *estimates.unlearnt_caveats(study.jobs),
        *estimates.caveats(study.problems, study.settings, real=real, generated=generated),
    ]


def _task_caveats(part: Evaluation) -> list[Caveat]:
    counts, (task, share) = part.main.comparison.counts, part.largest_task
    heavy = "Task {task} has {share:%} of the jobs of the real tasks: figures over all jobs are mostly its own."
    survivors = (
        "No job of the real tasks is known to be killed for its memory: jobs that needed more than they could get are missing, "
        "and every exceed rate is that of survivors."
    )
    return [
        Caveat(counts["killed"] == 0, survivors),
        Caveat.of(share > 0.5 and counts["tasks"] > 1, heavy, task=str(task), share=share),
    ]


def _clock_caveats(speeds: pl.DataFrame) -> list[Caveat]:
    """Say how much hangs on the inferred clock: the faster, the fewer scouts had ended when later jobs were created."""
    effect = speed_effect(speeds)
    if effect is None:
        return []
    text = (
        "No times of day are recorded: jobs are taken to be created in the order of their numbers. Were it {ids_per_s} of them a "
        "second in the whole system, ours would over-allocate {worst:%} of use, not {taken:%}."
    )
    return [Caveat.of(effect["worst"] > CLOCK_MATTERS * effect["taken"], text, effect)]


def _trace_caveats() -> list[Caveat]:
    first = (
        "The traces hold successful first attempts only: what a kill really costs is not in them; a killed attempt is taken to "
        "last as long as the run."
    )
    return [Caveat(1, first)]


def _facts(data: Data, study: Study) -> dict[str, str]:
    sized = (f"{name}: {estimates.counted(each)}" for name, each in data.traces.items())
    facts = {"Workflow traces": "; ".join(sized)}
    if data.tasks:
        source = data.tasks["submit"]
        clock = "; ".join(source.notes)
        facts |= {"Real tasks": estimates.counted(source), "Clock of real tasks": clock}
        facts["Tested"] = "each task by models of the others, whose latest third calibrates"
    if data.later:
        facts["Jobs of the archive"] = estimates.counted(data.later["submit"])
    if "archive" in study.jobs:
        facts["Tasks of the archive"] = estimates.divided(study.jobs["archive"])
    return facts
