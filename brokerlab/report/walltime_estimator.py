"""How long does the next job run, and which rule or model should say so?

Estimators are held against the rules that systems deploy, on whole tasks and on batch logs; what their bounds mean for a
setting, and what core power says of run times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field

from brokerlab.archive import Archive
from brokerlab.calibrate.nearest_setting import Translation, translate_bound
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
from brokerlab.estimators.offered import WORST
from brokerlab.estimators.saving import Trained
from brokerlab.estimators.sources import Source, of_archive, real_tasks
from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial import POLICY, Trial
from brokerlab.estimators.trial_frames import CLOCKS
from brokerlab.estimators.walltime.logs import (
    BOUND,
    MEDIAN,
    Log,
    LogComparison,
    compare_logs,
    guesses_by_clock,
    read_logs,
)
from brokerlab.estimators.walltime.power import PowerData, PowerStudy, read_power, study_power
from brokerlab.report import estimates, kit
from brokerlab.report.estimates import TITLES
from brokerlab.report.kit import Caveat, Chart, Number, Page, Part, Table, Verdict, say
from brokerlab.report.needs import Needs

OURS = POLICY.format(MODEL)
NO_QUEUES = Verdict(
    kind="no_answer",
    sentence="No task ran at enough queues to say how its times depend on core power.",
)
SETTING_LEVEL = 0.98
"""Level of the bound that is translated into a setting: settings are held to 2 % of killed first attempts."""
BOUND_NOTE = (
    f"The estimator: its bound of {100 * SETTING_LEVEL:g} %. The loss weighs killed work, a new try and slots out of reach; "
    "unused time counts little. "
)
AXES = {
    "over_title": "limit beyond the run [% of run time]",
    "exceed_title": "jobs beyond their limit [%]",
}
ANSWERED = 0.9  # share of the jobs that a setting must give a limit to be drawn


class Params(estimates.Params):
    """What may be asked."""

    report: ClassVar = "walltime-estimator"
    question: ClassVar = "How long does the next job run, and which rule or model should say so?"

    needs: ClassVar[Needs] = estimates.needs_of("walltime", least=FEWEST_TASKS)

    max_jobs: int = Field(
        30_000, ge=100, description="jobs taken of a batch log, the first by submission [1]"
    )
    ids_per_s: float = Field(
        10.0, gt=0, lt=1e6, description="jobs that the system creates: times of real tasks [1/s]"
    )


class Data(NamedTuple):
    """Whose run times are estimated."""

    sources: Mapping[str, Mapping[At, Source]]  # tasks (whole real ones), archive; each by clock
    logs: Mapping[str, Log]
    problems: Mapping[str, str]  # why a log, or the archive, cannot be used
    power: PowerData
    archive: Archive | None
    real: bool  # there is a folder of real data


class Study(NamedTuple):
    """What was found; `problems`: why something is missing that there were data for."""

    jobs: Mapping[str, Evaluation]  # by the names of the sources
    guesses: Mapping[str, pl.DataFrame]  # errors of single guesses on these, by clock
    logs: LogComparison | None
    power: PowerStudy | None
    setting: Translation | None  # what the bounds on jobs mean for one
    problems: Mapping[str, str]


@kit.answers
def load(p: Params) -> Data:
    """Find and read whose run times are estimated."""
    folder, archive = kit.data_folder(p.data), estimates.archive_at(p.archive)
    logs, problems = ({}, {}) if folder is None else read_logs(folder, max_jobs=p.max_jobs)
    tasks = {} if folder is None else real_tasks(folder, "walltime", ids_per_s=p.ids_per_s)
    sources: dict[str, Mapping[At, Source]] = {"tasks": tasks} if tasks else {}
    if archive is not None:
        with estimates.noted(problems, "archive"):
            archive = p.needs.opened(archive)
            sources["archive"] = {
                at: of_archive(archive, "walltime", at=at).between(p.start, p.end) for at in CLOCKS
            }
    if not (logs or sources):
        raise InsufficientDataError(
            problems.get("archive")
            or "neither logs nor tasks nor an archive; name a folder with data=..., or an archive with archive=..."
        )
    return Data(
        sources=sources,
        logs=logs,
        problems=problems,
        power=read_power(folder, archive if "archive" in sources else None),
        archive=archive,
        real=folder is not None,
    )


@kit.answers
def study(data: Data, p: Params) -> Study:
    """Run all estimators on everything there is."""
    drawn: dict[str, Any] = {"n_boot": p.n_boot, "seed": p.seed}
    makes = learners("walltime", *p.models, seed=p.seed)
    jobs: dict[str, Evaluation] = {}
    guesses: dict[str, pl.DataFrame] = {}
    setting = None
    problems = dict(data.problems)
    for name, sources in data.sources.items():
        real = name == "tasks"
        evaluate = evaluate_left_out if real else evaluate_later
        with estimates.noted(problems, name):
            part = evaluate(sources, makes, level=p.level, **drawn)
            guesses[name] = guesses_by_clock(part.trials, **drawn)
            jobs[name] = part
        if name in jobs and not real and data.archive is not None:
            bound = {"model": MODEL, "level": SETTING_LEVEL, "rules": p.rules, **drawn}
            with estimates.noted(problems, f"setting of {TITLES[name].lower()}", BrokerlabError):
                setting = translate_bound(jobs[name].main, data.archive, **bound)
    if not (jobs or data.logs):
        raise InsufficientDataError("; ".join(problems.values()))
    return Study(
        jobs=jobs,
        guesses=guesses,
        logs=compare_logs(data.logs, **drawn) if data.logs else None,
        power=study_power(data.power, **drawn),
        setting=setting,
        problems=problems,
    )


def page(data: Data, study: Study, p: Params) -> Page:
    """Lay out how far estimators are off on tasks, an archive and logs, and what core power explains."""
    titles = estimates.titles(data.archive)
    parts = [
        _jobs_part(name, titles[name], part, study.guesses[name])
        for name, part in study.jobs.items()
    ]
    if study.logs is not None:
        parts.append(_logs_part(study.logs))
    if study.power is not None:
        parts.append(_power_part(study.power))
    if study.setting is not None:
        title = "What it means for SCOUT_CPUTIME_RANK"
        parts.append(estimates.settings_part(study.setting, title, BOUND_NOTE))
    parts += estimates.model_part(study.jobs, level=p.level)
    first = next(iter(study.jobs), None)
    proposal = study.setting.verdict.proposal if study.setting else None
    return Page(
        verdict=_headline(study, titles),
        numbers=_numbers(study.jobs[first].main, study.guesses[first]) if first else (),
        chart=_frontier(study.jobs[first].main) if first else None,
        overview=estimates.overview(study.jobs, OURS, titles, "Core time") if study.jobs else None,
        parts=parts,
        caveats=_caveats(data, study),
        facts=_facts(data, study),
        archive=data.archive,
        digests={
            f"tasks {at}": Trained.of(each.records).digest
            for at, each in data.sources.get("tasks", {}).items()
        },
        proposals={"archive": proposal} if proposal else {},
        also=_also(study),
        values={
            **{name: part.to_dict() for name, part in study.jobs.items()},
            "settings": {"archive": study.setting.to_dict()} if study.setting else {},
        },
        synthetic=False if data.logs or "tasks" in data.sources else None,
        beside=estimates.model_writer(study.jobs),
    )


# --- the first screen -------------------------------------------------------------------------------------------------


def _headline(study: Study, titles: Mapping[str, str]) -> Verdict:
    """Say what gains where most is at stake: on real tasks, else on the archive, else on logs."""
    for name, part in study.jobs.items():
        return estimates.headline(part, OURS, titles[name].lower(), "core time")
    return Verdict(kind="finding", sentence=_log_sentence(study.logs) if study.logs else "")


def _numbers(trial: Trial, guesses: pl.DataFrame) -> list[Number]:
    numbers = []
    waste = trial.against_deployed(OURS, "waste_per_usage")
    if waste is not None:
        how = "range without one task" if trial.few_tasks else "95 % interval over tasks"
        note = say("{value:%} of use, the rule {reference:%}; {how}", waste, how=how)
        label = "Core hours wasted, over the scouts' rule"
        numbers.append(Number.of(waste, "ratio", label=label, note=note))
    ours, rule = trial.comparison.row(OURS), trial.deployed
    note = say("the rule {exceed:%}", rule)
    numbers.append(Number("Jobs beyond their limit", ours["exceed"], unit="%", note=note))
    for guess in guesses.filter(at=trial.at, estimator=MODEL).iter_rows(named=True):
        note = say("{error:%} of the time run; best rule: {best_rule}", guess)
        label = "Error of a guess, over the best rule"
        numbers.append(Number.of(guess, "ratio", label=label, note=note))
    return numbers


def _frontier(trial: Trial) -> Chart:
    ours, rule = trial.comparison.row(OURS), trial.deployed
    finding = say(
        "{ours} leaves {mine:%} of the run time unused, the scouts' rule {rule:%}",
        ours=OURS.capitalize(),
        mine=ours["over_allocation"],
        rule=rule["over_allocation"],
    )
    points = trial_frames.frontier_points(trial, averaged=False, answered=ANSWERED)
    return estimates.frontier(trial, finding, points, titles=AXES)


# --- whole tasks, batch logs, core power ------------------------------------------------------------------------------


def _jobs_part(name: str, title: str, part: Evaluation, guesses: pl.DataFrame) -> Part:
    kept = trial_frames.coverage_by_clock({part.main.at: part.main}, MODEL).row(0, named=True)
    held = "promised {promised:%} of jobs {decided}, {coverage:%} of these kept it"
    how = held if kept["coverage"] is not None else "promised to no job"
    sentence = say(f"The hierarchy's bound of {{level:%}} was {how}.", kept)
    empty = Part(name=name, title=title, verdict=Verdict(kind="finding", sentence=sentence))
    own = {"Single guesses": [_guess_table(guesses)]}
    return estimates.jobs_part(empty, part, OURS, own)


def _guess_table(guesses: pl.DataFrame) -> Table:
    return Table(
        name="guesses",
        frame=guesses.with_columns(
            decided=pl.col("at").replace_strict(dict(CLOCKS)),
            mark=pl.when(pl.col("estimator") == MODEL, pl.col("ratio") <= WORST).then(
                pl.lit("proposed")
            ),
        ),
        caption="Guesses of the run time: of models their median, of rules their limit",
        columns={
            "estimator": "Estimator",
            "decided": "Decided",
            "error": "Error, mean of tasks [% of time run]",
            "ratio": "Over the best rule [ratio]",
            "mae_s": "Mean error, all jobs [s]",
            "median_s": "Median error [s]",
            "accuracy": "Accuracy [%]",
        },
        mark="mark",
        note="Accuracy: mean of the smaller over the larger of guess and run. Brackets as above. Marked: the "
        f"hierarchy, where its error is at most {WORST:g} times the best rule's.",
    )


def _log_sentence(logs: LogComparison) -> str:
    ratios, offer = logs.each(MEDIAN)["ratio"], logs.offer
    promised = logs.each(BOUND).filter(pl.col("answered") > 0).height
    low, high = ratios.min(), ratios.max()
    return say(
        "Like jobs err {span} times as much as the best rule; bound kept on {kept} of {n} logs{offered}.",
        span=say("{low}" if low == high else "{low} to {high}", low=low, high=high),
        kept=promised - len(offer["short"]),
        n=promised,
        offered="" if offer["offered"] else "; not offered",
    )


def _logs_part(logs: LogComparison) -> Part:
    ours = logs.each(MEDIAN)
    sizes = [say("{log}: {jobs:#job} of {users:#user}", row) for row in ours.to_dicts()]
    sure = ours.filter((pl.col("ratio_hi") < 1) | (pl.col("ratio_lo") > 1)).height
    finding = "The interval of like jobs excludes 1, the error of the best simple rule, on {sure} of {n} logs"
    errors = Chart(
        draw=charts.errors,
        frame=logs.guesses,
        finding=say(finding, sure=sure, n=ours.height),
        sample=f"{'; '.join(sizes)}. Bars: 95 % intervals over users, all methods on the same draws.",
        note="Like jobs: the median of what jobs of the user with a similar request took, later ones counting more. Offered where it is "
        f"on no log above {WORST:g} times the best simple rule and its bounds are kept where they are promised; refused elsewhere.",
    )
    return Part(
        name="logs",
        title="Batch logs",
        verdict=Verdict(kind="finding", sentence=_log_sentence(logs)),
        chart=errors,
    )


def _power_part(power: PowerStudy) -> Part:
    scaling = power.scaling
    sentence = "Scaling by core power helps wall times of {helps} of {tasks:#task}, harms {harms}; the queue's own jobs help {own}."
    verdict = Verdict(kind="finding", sentence=say(sentence, scaling)) if scaling else NO_QUEUES
    finding = "CPU time per event: a slope of −1, as the rule takes it, lies in {with_rule} of {slopes} intervals, 0 in {with_none}"
    slopes = Chart(
        draw=charts.slopes,
        frame=power.slopes.drop_nulls("slope"),
        finding=say(finding, scaling) if scaling else "",
        sample="Tasks at 5 queues or more. Bars: 95 % intervals of a mixed model with queues as random effects.",
        note="Slope: per cent of time for one per cent of core power, the configured HS06 per core of a queue; queues may differ in "
        "other ways.",
    )
    return Part(
        name="power",
        title="Core power",
        verdict=verdict,
        chart=slopes if scaling.get("slopes") else None,
    )


# --- what it cannot tell, and what is written beside -------------------------------------------------------------------


def _caveats(data: Data, study: Study) -> list[Caveat]:
    caveats = []
    for name, part in study.jobs.items():
        text = f"No job of {TITLES[name].lower()} is known to be killed at its limit: the longest runs may be missing."
        caveats.append(Caveat(not part.main.comparison.counts["killed"], text))
    caveats += _log_caveats(study.logs, data.logs) if study.logs else []
    if study.power is not None:
        without = study.power.slopes.filter(pl.col("missing").is_not_null(), time="cpu")
        named = [f"{row['jeditaskid']} ({row['missing']})" for row in without.head(4).to_dicts()]
        text = f"No slope on core power for {without.height} tasks: {', '.join(named)}."
        caveats.append(Caveat(without.height, text))
    generated = data.archive is not None and data.archive.synthetic and "archive" in study.jobs
    shared = estimates.caveats(study.problems, study.setting, real=data.real, generated=generated)
    return [*shared, *caveats, *estimates.unlearnt_caveats(study.jobs)]


def _log_caveats(logs: LogComparison, read: Mapping[str, Log]) -> list[Caveat]:
    unknown = [name for name, log in read.items() if not log.knows_waits]
    cut = [name for name, log in read.items() if log.jobs.height < log.n_read]
    in_a_day = logs.campaigns.filter(pl.col("largest") > 0.5 * pl.col("missed"))
    campaigns = [say("{largest} of {missed} misses on {log}", row) for row in in_a_day.to_dicts()]
    texts = {
        f"{', '.join(unknown)} without waits: jobs are taken to start as they are submitted, and their run times to be known "
        "earlier than they were.": unknown,
        f"Only the first jobs are taken of {', '.join(cut)}.": cut,
        f"{', '.join(campaigns)} are of one user on one day: no bound from the past can know such a campaign.": campaigns,
        "On batch logs a run is cut at its request: what a job stopped there would have needed is not known.": read,
    }
    return [Caveat(len(names), text) for text, names in texts.items()]


def _facts(data: Data, study: Study) -> dict[str, str]:
    read = {name: sources["submit"] for name, sources in data.sources.items()}
    counts = {TITLES[name]: estimates.counted(source) for name, source in read.items()}
    notes = {f"{TITLES[name]}: inferred": "; ".join(each.notes) for name, each in read.items()}
    archive = study.jobs.get("archive")
    divided = {"Tasks of the archive": estimates.divided(archive)} if archive else {}
    return counts | notes | divided


def _also(study: Study) -> dict[str, pl.DataFrame]:
    frames = estimates.frames(study.jobs, average="jobs")
    if (logs := study.logs) is not None:
        frames |= {
            "logs_all_methods": logs.methods,
            "logs_campaigns": logs.campaigns,
            "logs_strata": logs.strata,
        }
    if (power := study.power) is not None:
        names = ("sites", "slopes", "queues", "gain")
        frames |= {f"power_all_{name}": getattr(power, name) for name in names}
        frames["power_shares"] = power.shares
        frames |= {"power_drift": power.drift.by_site} if power.drift else {}
    return frames
