"""How long does the next job run, and which rule or model should say so?

Estimators are held against the rules that systems deploy: on whole real tasks with the scouts they really had, on the later
tasks of an archive and on batch logs; what their bounds mean for a setting; and what core power says of run times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field, field_validator

from brokerlab.archive import Archive
from brokerlab.calibrate.nearest_setting import Translation, translate_bound
from brokerlab.charts import primitives
from brokerlab.errors import BrokerlabError, ConfigError, InsufficientDataError
from brokerlab.estimators import trial_frames
from brokerlab.estimators.learners import MODEL, learners
from brokerlab.estimators.saving import Trained
from brokerlab.estimators.sources import Source, of_archive, of_invex
from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial import POLICY, Trial
from brokerlab.estimators.walltime.logs import (
    BOUND,
    LEVEL,
    MANY_JOBS,
    MEDIAN,
    Log,
    LogComparison,
    compare_logs,
    read_logs,
)
from brokerlab.estimators.walltime.power import (
    TASK_FILES,
    PowerData,
    PowerStudy,
    read_power,
    study_power,
)
from brokerlab.estimators.walltime.sites import NO_POWER, OWN, RULE
from brokerlab.estimators.walltime.tasks import WalltimeEvaluation, evaluate_tasks
from brokerlab.report import estimates, kit
from brokerlab.report.estimates import CLOCKS, TITLES
from brokerlab.report.kit import (
    CERTAINTY,
    GAINS,
    Caveat,
    Chart,
    Number,
    Page,
    Part,
    Sections,
    Table,
    Verdict,
    say,
)
from brokerlab.words import listed

OURS = POLICY.format(MODEL)
SETTING_LEVEL = 0.98
"""Level of the bound that is translated into a setting: settings are held to 2 % of killed first attempts."""
BOUND_NOTE = (
    f"The estimator: its bound of {100 * SETTING_LEVEL:g} %. The loss weighs killed work, a new try and slots out of reach; "
    "unused time counts little. "
)
NEAR = 0.01
"""A bound holds whose misses are so near what was asked for [share of jobs]."""
ANSWERED = 0.9
"""Share of the jobs that a setting must give a limit to be drawn."""
ACCURACY = "Accuracy: mean of the smaller over the larger of prediction and run."
SITES = {
    "inside nodes": ("Nodes of one site", "nodes"),
    "inside slots": ("Their slots", "slots"),
    "inside kinds": ("Distinct core powers", "values"),
    "inside mean": ("Core power per slot, mean", "HS06"),
    "inside sd": ("Standard deviation", "HS06"),
    "inside ln_sd": ("Standard deviation of its logarithm", "%"),
    "inside least": ("Least", "HS06"),
    "inside most": ("Most", "HS06"),
    "inside within_tenth": ("Slots within a tenth of the mean", "%"),
    "drift sites": ("Sites followed over months", "sites"),
    "drift months": ("Months", "months"),
    "drift moved": ("Sites whose core power moved by more than 1 % in a month", "%"),
    "drift ln_sd": ("Standard deviation of its logarithm between sites", "%"),
    "drift at_default": ("Sites that report the default 12 throughout", "sites"),
    "drift left_out": ("Rows too short to tell", "rows"),
    "analysis jobs": ("Analysis jobs", "jobs"),
    "analysis queues": ("Their queues", "queues"),
    "analysis sd": ("Spread of their CPU times", "sd of ln"),
    "analysis within_sd": ("Inside queues", "sd of ln"),
    "analysis share": ("Of the variance, between queues", "%"),
}
"""What the numbers of `PowerStudy.sites` are, and their units."""


class Params(kit.Params):
    """What may be asked."""

    report: ClassVar = "walltime-estimator"
    question: ClassVar = "How long does the next job run, and which rule or model should say so?"

    archive: str = Field(
        estimates.DEMO, description="archive of hundreds of tasks, where it is there [path]"
    )
    data: str = Field(
        "",
        description="folder of real data, empty for $BROKERLAB_DATA or ../shared/data [path]",
    )
    models: list[str] = Field(
        [], description="that learn, tested beside the hierarchy on tasks, empty for all [name]"
    )
    max_jobs: int = Field(
        30_000, ge=100, description="jobs taken of a batch log, the first by submission [1]"
    )
    ids_per_s: float = Field(
        10.0,
        gt=0,
        lt=1e6,
        description="jobs that the whole system creates: clock of tasks without times [1/s]",
    )
    level: float = Field(
        0.95, ge=0.5, lt=1, description="of the upper bounds that are held to it [1]"
    )

    @field_validator("models")
    @classmethod
    def _exist(cls, models: list[str]) -> list[str]:
        try:
            learners("walltime", *models)
        except ConfigError as problem:
            raise ValueError(str(problem).removeprefix("models: ")) from None
        return models


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

    jobs: Mapping[str, WalltimeEvaluation]  # by the names of the sources
    logs: LogComparison | None
    power: PowerStudy | None
    settings: Mapping[str, Translation]  # what the bounds on jobs mean for a setting
    problems: Mapping[str, str]


@kit.answers
def load(p: Params) -> Data:
    """Find and read whose run times are estimated."""
    folder, archive = estimates.data_folder(p.data), estimates.archive_at(p.archive)
    logs, problems = ({}, {}) if folder is None else read_logs(folder, max_jobs=p.max_jobs)
    files = [] if folder is None else sorted(folder.glob(TASK_FILES))
    sources: dict[str, Mapping[At, Source]] = {}
    if files:
        sources["tasks"] = {
            at: of_invex(files, "walltime", at=at, ids_per_s=p.ids_per_s) for at in CLOCKS
        }
    if archive is not None:
        with estimates.noted(problems, "archive"):
            kit.need(archive, "jobs")
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
    jobs: dict[str, WalltimeEvaluation] = {}
    settings: dict[str, Translation] = {}
    problems = dict(data.problems)
    for name, sources in data.sources.items():
        real = name == "tasks"
        with estimates.noted(problems, name):
            jobs[name] = evaluate_tasks(sources, makes, left_out=real, level=p.level, **drawn)
        if name in jobs:
            archive = None if real else data.archive
            bound = {"model": MODEL, "level": SETTING_LEVEL, "rules": p.rules, **drawn}
            with estimates.noted(problems, f"setting of {TITLES[name].lower()}", BrokerlabError):
                settings[name] = translate_bound(jobs[name].main, archive, **bound)
    if not (jobs or data.logs):
        raise InsufficientDataError("; ".join(problems.values()))
    return Study(
        jobs=jobs,
        logs=compare_logs(data.logs, **drawn) if data.logs else None,
        power=study_power(data.power, **drawn),
        settings=settings,
        problems=problems,
    )


def page(data: Data, study: Study, p: Params) -> Page:
    """Lay out how far estimators are off on tasks, an archive and logs, and what core power explains."""
    parts = [
        _jobs_part(name, part, first=not place)
        for place, (name, part) in enumerate(study.jobs.items())
    ]
    if study.logs is not None:
        parts.append(_logs_part(study.logs))
    if study.power is not None:
        parts.append(_power_part(study.power))
    if study.settings:
        parts.append(
            estimates.settings_part(
                study.settings, "What it means for SCOUT_CPUTIME_RANK", BOUND_NOTE
            )
        )
    parts += estimates.model_part(study.jobs, level=p.level)
    first = next(iter(study.jobs.values()), None)
    return Page(
        verdict=_headline(study),
        numbers=_numbers(first) if first else (),
        chart=_frontier(first.main) if first else None,
        parts=parts,
        caveats=_caveats(data, study),
        facts=_facts(data),
        archive=data.archive,
        digests={
            f"tasks {at}": Trained.of(each.records).digest
            for at, each in data.sources.get("tasks", {}).items()
        },
        proposals={name: each.proposal for name, each in study.settings.items() if each.proposal},
        also=_also(study),
        values={
            **{name: part.main.comparison.counts for name, part in study.jobs.items()},
            "settings": {name: each.to_dict() for name, each in study.settings.items()},
        },
        synthetic=False if data.logs or "tasks" in data.sources else None,
    )


def run(p: Params) -> dict[str, Any]:
    """Load, study, publish, and save the model beside the page."""
    data = load(p)
    found = study(data, p)
    estimates.save_model(found.jobs, p.out_dir, level=p.level)
    return kit.publish(page(data, found, p), p)


# --- the first screen -------------------------------------------------------------------------------------------------


def _headline(study: Study) -> Verdict:
    """Say what gains where most is at stake: on real tasks, else on the archive, else on logs."""
    for name, part in study.jobs.items():
        where = TITLES[name].lower()
        row = part.main.against_deployed(OURS, "waste_per_usage")
        if row is None:
            sentence = f"On {where}, the deployed rule has too few answers to be compared with."
            return Verdict(kind="no_answer", sentence=sentence)
        sentence = "On {where}, {ours} wastes {ratio} times what the scouts' rule wastes."
        return Verdict(kind="finding", sentence=say(sentence, row, where=where, ours=OURS))
    if study.logs is None:
        return Verdict(kind="no_answer", sentence="Nothing can be estimated.")
    return Verdict(kind="finding", sentence=_log_sentence(study.logs))


def _numbers(part: WalltimeEvaluation) -> list[Number]:
    trial = part.main
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
    for guess in part.guesses.filter(at=trial.at, estimator=MODEL).iter_rows(named=True):
        note = say("{error:%} of the time run; best rule: {best_rule}", guess)
        label = "Error of a guess, over the best rule"
        numbers.append(Number.of(guess, "ratio", label=label, note=note))
    return numbers


def _frontier(trial: Trial) -> Chart:
    ours, rule = trial.comparison.row(OURS), trial.deployed
    finding = say(
        "{ours} leaves {over:%} of the run time unused, the scouts' rule {rule:%}; {above:%} and {above_rule:%} of jobs exceed",
        ours=OURS.capitalize(),
        over=ours["over_allocation"],
        rule=rule["over_allocation"],
        above=ours["exceed"],
        above_rule=rule["exceed"],
    )
    points = trial_frames.frontier_points(trial, averaged=False, answered=ANSWERED)
    return estimates.frontier(trial, finding, points, over="limit beyond the run [% of run time]")


# --- whole tasks ------------------------------------------------------------------------------------------------------


def _jobs_part(name: str, part: WalltimeEvaluation, *, first: bool) -> Part:
    """Lay out the jobs of one source; the frontier of the first is on the first screen."""
    trial, trials = part.main, part.trials
    within = [
        say("{coverage:%} {when}", coverage=each.comparison.row(MODEL)["coverage"], when=CLOCKS[at])
        for at, each in trials.items()
    ]
    sentence = "The hierarchy's bound of {level:.0f} % holds for {within}."
    sections: Sections = {
        "Estimator by estimator": [estimates.estimator_table(trials, "Every estimator")],
        "At equal exceed rates, and as single guesses": [
            None if first else _frontier(trial),
            estimates.matched_table(
                trial,
                say("At the scouts' rule's exceed rate, {exceed_task_mean:%}", trial.deployed),
            ),
            estimates.chosen_table(trials, average="jobs"),
            _guess_table(part),
        ],
        GAINS: [estimates.task_table(trial, OURS), estimates.strata_table(part.doubts)],
        CERTAINTY: [
            estimates.coverage_table(trials, MODEL),
            estimates.known_chart(list(trials.values())[-1], MODEL),
            estimates.doubt_table(part.doubts),
        ],
    }
    return Part(
        name=name,
        title=TITLES[name],
        verdict=Verdict(
            kind="finding",
            sentence=say(sentence, level=100 * trial.comparison.level, within=listed(within)),
        ),
        sections=sections,
    )


def _guess_table(part: WalltimeEvaluation) -> Table:
    return Table(
        name="guesses",
        frame=part.guesses.with_columns(
            decided=pl.col("at").replace_strict(dict(CLOCKS)),
            mark=pl.when(estimator=MODEL).then(pl.lit("proposed")),
        ),
        caption="Single guesses of the run time: of models their median, of rules their limit",
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
        note=f"{ACCURACY} {estimates.intervals(part.main)}",
    )


# --- batch logs -------------------------------------------------------------------------------------------------------


def _logs_part(logs: LogComparison) -> Part:
    return Part(
        name="logs",
        title="Batch logs",
        verdict=Verdict(kind="finding", sentence=_log_sentence(logs)),
        chart=_errors_chart(logs),
        sections={
            "Method by method": [_method_table(logs)],
            "Whose jobs": [_strata_table(logs)],
        },
    )


def _log_sentence(logs: LogComparison) -> str:
    ratios, under = logs.each(MEDIAN)["ratio"], logs.each(BOUND)["under"]
    low, high = ratios.min(), ratios.max()
    return say(
        "Like jobs err {span} times as much as the best rule; bound kept on {kept} of {n} logs.",
        span=say("{low}" if low == high else "{low} to {high}", low=low, high=high),
        kept=((under - (1 - LEVEL)).abs() <= NEAR).sum(),
        n=ratios.len(),
    )


def _errors_chart(logs: LogComparison) -> Chart:
    ours = logs.each(MEDIAN)
    guesses = logs.methods.filter(
        pl.col("method") != BOUND, ~pl.col("method").str.contains("conformal")
    )
    rule = pl.when(method=MEDIAN).then(pl.lit("proposed")).otherwise(pl.lit("simple rule"))
    sizes = [say("{log}: {jobs} jobs of {users} users", row) for row in ours.to_dicts()]
    return Chart(
        draw=primitives.dots,
        name="errors",
        frame=guesses.sort("ratio", "method").with_columns(rule=rule),
        options={
            "value": "ratio",
            "label": "method",
            "title": "mean error over that of the best simple rule [ratio]",
            "colour": "rule",
            "references": {"best simple rule": 1.0},
            "panels": "log",
            "log": True,
        },
        finding=say(
            "Like jobs err less than the best simple rule on {less} of {n} logs; the 95 % interval excludes 1 on {sure}",
            less=ours.filter(pl.col("ratio") < 1).height,
            n=ours.height,
            sure=ours.filter(_excludes_1()).height,
        ),
        sample=f"{'; '.join(sizes)}. Bars: 95 % intervals over users, all methods on the same draws.",
        note="Like jobs: the median of what jobs of the user with a similar request took, later ones counting more.",
    )


def _excludes_1() -> pl.Expr:
    return (pl.col("ratio_hi") < 1) | (pl.col("ratio_lo") > 1)


def _method_table(logs: LogComparison) -> Table:
    method = pl.col("method")
    shown = method.is_in([MEDIAN, BOUND]) | (method == pl.col("best_peer"))
    return Table(
        name="methods",
        frame=logs.methods.filter(shown).with_columns(
            mark=pl.when(method.is_in([MEDIAN, BOUND])).then(pl.lit("proposed"))
        ),
        caption="Run times predicted at submission, by like jobs and by the best simple rule",
        columns={
            "log": "Log",
            "method": "Method",
            "mae_s": "Mean error [s]",
            "median_s": "Median error [s]",
            "ratio": "Over the best rule [ratio]",
            "accuracy": "Accuracy [%]",
            "under": "Ran longer [% of jobs]",
            "over_allocation": "Predicted, not used [% of time run]",
        },
        mark="mark",
        note=f"{ACCURACY} In brackets: 95 % intervals over users. Conformal: scaled so that the level was kept before.",
    )


def _strata_table(logs: LogComparison) -> Table:
    single = pl.format("user {}, of those with {} jobs or more", "user", pl.lit(MANY_JOBS))
    lost = logs.strata.filter(pl.col("ratio") > 1).height
    return Table(
        name="strata",
        frame=logs.strata.with_columns(
            name=pl.coalesce(single, pl.format("jobs {} of a user", "stratum")),
            mark=pl.when(pl.col("ratio") > 1).then(pl.lit("worst")),
        ),
        caption=say(
            "In {lost} of {n} groups the best simple rule errs less",
            lost=lost,
            n=logs.strata.height,
        ),
        columns={
            "log": "Log",
            "name": "Group",
            "jobs": "Jobs",
            "users": "Users",
            "under": "Beyond the bound [% of jobs]",
            "ratio": "Error over the best rule [ratio]",
        },
        mark="mark",
        note="A single user is the one whose bound is missed most. Most groups are few users, whose jobs are alike: no intervals.",
    )


# --- core power and sites ---------------------------------------------------------------------------------------------


def _power_part(power: PowerStudy) -> Part:
    by = ["queues", "jeditaskid", "time"]
    gain, shares = (
        frame.sort(by, descending=[True, False, True], maintain_order=True).cast(
            {"jeditaskid": pl.String}
        )
        for frame in (power.gain, power.shares)
    )
    gain_table = Table(
        name="gain",
        frame=gain.filter(pl.col("way") != NO_POWER).with_columns(excludes_1=_excludes_1()),
        caption="Times at a queue predicted from the other queues of the task",
        columns={
            "jeditaskid": "Task",
            "time": "Time",
            "queues": "Queues",
            "way": "Scaled by",
            "error": "Mean error [of ln]",
            "ratio": "Over that without core power [ratio]",
            "job_ratio": "The same, every job alike [ratio]",
            "excludes_1": "Interval excludes 1",
        },
        most=16,
        note="Own queue: predicted from the other jobs of the queue itself. In brackets: 95 % intervals over queues, which count "
        "the same but in the last ratio.",
    )
    share_table = Table(
        name="shares",
        frame=shares,
        caption="Spread of ln(time of a job), before and after it is multiplied by core power",
        columns={
            "jeditaskid": "Task",
            "time": "Time",
            "scaled": "Multiplied",
            "queues": "Queues",
            "sd": "Spread [sd of ln]",
            "within_sd": "Inside queues [sd of ln]",
            "share": "Of the variance, between queues [%]",
        },
        most=16,
        note="If core power explained what differs between queues, the share would fall. In brackets: 95 % intervals over queues.",
    )
    sites = power.sites.with_columns(name=pl.concat_str("source", "quantity", separator=" "))
    site_table = Table(
        name="sites",
        frame=sites.with_columns(
            pl.col("name")
            .replace_strict({name: SITES[name][place] for name in SITES})
            .alias(column)
            for place, column in enumerate(("label", "unit"))
        ),
        caption="What one core power per site, and where a job runs, leave open",
        columns={"label": "Quantity", "x": "Value"},
        unit="unit",
        note="All nodes of the one site are in it, so that there is no interval; other sites have other nodes.",
    )
    return Part(
        name="power",
        title="Core power and sites",
        verdict=_power_verdict(power),
        chart=_slope_chart(power.slopes),
        sections={
            "What core power is worth": [gain_table if gain.height else None],
            "Between and inside queues": [share_table if shares.height else None],
            "Inside sites, over months, for analysis jobs": [site_table if sites.height else None],
        },
    )


def _power_verdict(power: PowerStudy) -> Verdict:
    """Say for how many tasks scaling by core power makes wall times of other queues better or worse."""
    wall = power.gain.filter(time="wall")
    scaled, own = wall.filter(way=RULE), wall.filter(way=OWN)
    if scaled.is_empty():
        sentence = "No task ran at enough queues to say how its times depend on core power."
        return Verdict(kind="no_answer", sentence=sentence)
    sentence = say(
        "Scaling by core power helps wall times of {helps} of {n} tasks, harms {harms}; the queue's own jobs help {own}.",
        helps=scaled.filter(pl.col("ratio_hi") < 1).height,
        harms=scaled.filter(pl.col("ratio_lo") > 1).height,
        n=scaled.height,
        own=own.filter(pl.col("ratio_hi") < 1).height,
    )
    return Verdict(kind="finding", sentence=sentence)


def _slope_chart(slopes: pl.DataFrame) -> Chart | None:
    known = slopes.drop_nulls("slope").sort(
        "queues", "jeditaskid", "time", descending=[True, False, False]
    )
    cpu = known.filter(time="cpu")
    if cpu.is_empty():
        return None
    rule, none = (
        cpu.filter(pl.col("slope_lo") <= at, pl.col("slope_hi") >= at).height for at in (-1, 0)
    )
    return Chart(
        draw=primitives.dots,
        name="slopes",
        frame=known.with_columns(
            label=pl.format("task {}, {} time, {} queues", "jeditaskid", "time", "queues")
        ),
        options={
            "value": "slope",
            "label": "label",
            "title": "log-log slope of core time per event on core power [1]",
            "references": {"the rule": -1.0, "no dependence": 0.0},
        },
        finding=say(
            "CPU time per event: a slope of −1, as the rule takes it, lies in {rule} of {n} intervals, 0 in {none}",
            rule=rule,
            none=none,
            n=cpu.height,
        ),
        sample="Tasks at 5 queues or more. Bars: 95 % intervals of a mixed model with queues as random effects.",
        note="Slope: per cent of time for one per cent of core power, the configured HS06 per core of a queue.",
    )


# --- what it cannot tell, and what is written beside -------------------------------------------------------------------


def _caveats(data: Data, study: Study) -> list[Caveat]:
    caveats = [
        Caveat(n=1, text=f"{name[:1].upper()}{name[1:]}: {problem.rstrip('.')}.")
        for name, problem in study.problems.items()
    ]
    unreal = "No real data were found: set BROKERLAB_DATA to their folder."
    caveats.append(Caveat(n=not data.real, text=unreal))
    for name, part in study.jobs.items():
        text = f"No job of {TITLES[name].lower()} is known to be killed at its limit: the longest runs may be missing."
        caveats.append(Caveat(n=not part.main.comparison.counts["killed"], text=text))
    generated = data.archive is not None and data.archive.synthetic and "archive" in study.jobs
    text = "The archive is generated: what is learnt and tested on it follows how it was generated."
    caveats.append(Caveat(n=generated, text=text))
    if study.logs is not None:
        caveats += _log_caveats(study.logs, data.logs)
    if study.power is not None:
        caveats += _power_caveats(study.power)
    for name, found in study.settings.items():
        where = TITLES[name].lower()
        caveats += [Caveat(n=1, text=f"Setting, {where}: {note}") for note in found.notes]
    return caveats


def _log_caveats(logs: LogComparison, read: Mapping[str, Log]) -> list[Caveat]:
    unknown = [name for name, log in read.items() if not log.knows_waits]
    cut = [
        say("{n} of {all} of {name}", n=log.jobs.height, all=log.n_read, name=name)
        for name, log in read.items()
        if log.jobs.height < log.n_read
    ]
    in_a_day = logs.campaigns.filter(pl.col("largest") > 0.5 * pl.col("missed"))
    campaigns = [say("{largest} of {missed} misses on {log}", row) for row in in_a_day.to_dicts()]
    return [
        Caveat(
            n=len(unknown),
            text=f"{', '.join(unknown)} without waits: jobs are taken to start as they are submitted, and their run times to be "
            "known earlier than they were.",
        ),
        Caveat(n=len(cut), text=f"Only the first jobs are taken: {', '.join(cut)}."),
        Caveat(
            n=len(campaigns),
            text=f"{', '.join(campaigns)} are of one user on one day: no bound from the past can know such a campaign.",
        ),
        Caveat(
            n=len(read),
            text="On batch logs a run is cut at its request, which a user types: what a job stopped there would have needed is not "
            "known.",
        ),
    ]


def _power_caveats(power: PowerStudy) -> list[Caveat]:
    slopes = power.slopes.drop_nulls("slope").height
    without = power.slopes.filter(pl.col("missing").is_not_null(), time="cpu")
    reasons = [f"{row['jeditaskid']} ({row['missing']})" for row in without.head(4).to_dicts()]
    return [
        Caveat(
            n=without.height,
            text=f"No slope on core power for {without.height} tasks: {', '.join(reasons)}.",
        ),
        Caveat(
            n=slopes,
            text="Core power is one number for all jobs of a queue: a slope rests on as many points as there are queues, and "
            "queues with more power may differ in other ways.",
        ),
        Caveat(
            n=slopes if power.synthetic else 0,
            text="The jobs behind the slopes are generated: their slopes are those of the generator.",
        ),
    ]


def _facts(data: Data) -> dict[str, str]:
    facts = {}
    for name, sources in data.sources.items():
        facts[TITLES[name]] = estimates.counted(sources["submit"])
        facts[f"{TITLES[name]}: inferred"] = "; ".join(sources["submit"].notes)
    if (timed := data.power.timed) is not None:
        names = ("jeditaskid", "queue")
        tasks, queues = (timed[name].n_unique() for name in names)
        text = "{n} jobs of {tasks} tasks at {queues} queues"
        facts["Core power"] = say(text, n=timed.height, tasks=tasks, queues=queues)
    return facts


def _also(study: Study) -> dict[str, pl.DataFrame]:
    frames: dict[str, pl.DataFrame] = {}
    for name, part in study.jobs.items():
        frames |= estimates.frames(name, part.trials, part.doubts)
    if study.logs is not None:
        frames |= {"logs_all_methods": study.logs.methods, "logs_campaigns": study.logs.campaigns}
    if study.power is not None:
        frames |= {
            "power_all_slopes": study.power.slopes,
            "power_all_queues": study.power.queues,
            "power_all_gain": study.power.gain,
        }
        if study.power.drift is not None:
            frames["power_drift"] = study.power.drift.by_site
    return frames
