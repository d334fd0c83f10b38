"""What the pages of both estimator reports share: where real data lie, and blocks over the frames of a trial."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from brokerlab.archive import Archive
from brokerlab.archive.store import open_archive
from brokerlab.calibrate.nearest_setting import Translation
from brokerlab.charts import estimators as charts
from brokerlab.errors import BrokerlabError, DataError, InsufficientDataError
from brokerlab.estimators import trial_frames
from brokerlab.estimators.card import Card
from brokerlab.estimators.doubts import Doubts
from brokerlab.estimators.evaluation import Evaluation
from brokerlab.estimators.learners import MODEL
from brokerlab.estimators.sources.source import KEPT, At, Source
from brokerlab.estimators.tested import card_of, save_tested
from brokerlab.estimators.trial import Trial
from brokerlab.report.kit import Chart, Listing, Part, Table, Verdict, say
from brokerlab.words import listed

VARIABLE, USUAL, DEMO = "BROKERLAB_DATA", "../shared/data", "data/demo"
MODEL_FOLDER = "model"
"""Folder of the saved model beside the page."""
CLOCKS: Mapping[At, str] = {"submit": "at submission", "start": "at the start"}
"""When a job is decided, in words."""
TITLES = {"tasks": "Real tasks", "archive": "The archive"}
"""Whose jobs estimators are tested on, by the name of the part."""
SOURCES = {
    "tasks": "real ATLAS tasks with the scouts they really had",
    "archive": "jobs of the archive",
}
SETTINGS = {
    "change": "Set rank {rank} and margin {margin} %: {exceed_rate:%} of first attempts killed, proven on later tasks.",
    "keep": "Keep rank {rank} and margin {margin} %: no other setting is proven better.",
    "no_answer": "Rank {rank} with margin {margin} % is nearest, not proven: {exceed_rate:%} of first attempts killed, limit {limit:%}.",
}
CHECKS = {
    "strata": "Strata of 200 jobs or more whose bound is missed more often than chance allows",
    "drift": "Tasks in which misses come in runs",
    "bets": "Tasks in which bets against the expected distribution win",
    "scouts": "Tasks whose scouts are unlike the rest, per core",
    "outside": "Jobs outside what was learnt, by {feature}",
}
UNTRIED = "Jobs of queues, kinds and sizes that nobody ran so far: nothing here was tested on them."
LARGEST_SHOWN = 2.0
"""Exceed rates above so many times those of the named points are not drawn."""


def data_folder(data: str = "") -> Path | None:
    """Return the folder of real data.

    Args:
        data: The folder; empty: that of the variable ``BROKERLAB_DATA``, or, where it is not set, ``../shared/data``.

    Returns:
        The folder; None where none was named and the usual one is not there.

    Raises:
        DataError: A folder was named and is not there.
    """
    if data:
        folder = Path(data)
        if not folder.is_dir():
            raise DataError(
                f"data={data!r}: no such folder; leave it empty to do without real data"
            )
        return folder
    usual = Path(os.environ.get(VARIABLE, "") or USUAL)
    return usual if usual.is_dir() else None


def archive_at(archive: str = DEMO) -> Archive | None:
    """Open an archive; None where none is named, or the usual one is not there.

    Raises:
        DataError: A folder was named and is none.
    """
    absent = archive in ("", DEMO) and not Path(DEMO).is_dir()
    return None if absent else open_archive(archive or DEMO)


@contextmanager
def noted(
    problems: dict[str, str], part: str, error: type[BrokerlabError] = InsufficientDataError
) -> Iterator[None]:
    """Leave a part out of which nothing can be said, and keep why.

    Args:
        problems: Reasons by part; one is added.
        part: Name of the part.
        error: What is kept; all others go on.
    """
    try:
        yield
    except error as problem:
        problems[part] = str(problem)


def counted(source: Source) -> str:
    """Say what became of every row that was read."""
    counts = dict(source.counts.iter_rows())
    kept = counts.pop(KEPT)
    left_out = "; left out: " if counts else ""
    return f"{kept} jobs kept{left_out}{', '.join(f'{why}: {n}' for why, n in counts.items())}"


def intervals(trial: Trial) -> str:
    """Say what the brackets of a trial's tables are."""
    if trial.few_tasks:
        n = trial.comparison.counts["tasks"]
        return f"In brackets: least and most when one of the {n} tasks is left out; they are too few for an interval."
    return "In brackets: 95 % intervals over tasks."


def frontier(
    trial: Trial, finding: str, points: pl.DataFrame, *, over: str = "over-allocated [% of use]"
) -> Chart:
    """Return the chart of exceed rates against over-allocation.

    Args:
        trial: The trial.
        finding: What it shows.
        points: Of `trial_frames.frontier_points`.
        over: Title of the axis of over-allocation.
    """
    lines = points.filter(pl.col("role") != "rule").with_columns(
        pl.when(pl.col("role").is_in(["current", "proposed"]))
        .then("role")
        .otherwise("estimator")
        .alias("line")
    )
    marked = lines.filter(pl.col("named") & pl.col("line").is_in(["current", "proposed"]))
    highest = max([0.05, *(LARGEST_SHOWN * each for each in marked["exceed"].drop_nulls())])
    margins = " by its margin" if lines.filter(role="current").height > 1 else ""
    proposed = listed([f"{name} by the price of a failed attempt" for name in trial.policies])
    return Chart(
        draw=charts.exceed_frontier,
        name="frontier",
        frame=lines.filter(pl.col("exceed") <= highest),
        finding=finding,
        options={"over_title": over, "marks": marked.with_columns(label="line")},
        sample=say(
            "n = {jobs} jobs of {tasks} tasks, scouts not counted.", trial.comparison.counts
        ),
        note=f"Current: the scouts' rule{margins}. Proposed: {proposed}. Models by the level of their bound; the hierarchy starts "
        "from other tasks and learns as jobs of the task finish. "
        f"{trial_frames.LIMIT.capitalize()}: one allocation per task, queue and number of cores that knows the uses.",
    )


def estimator_table(trials: Mapping[At, Trial], caption: str) -> Table:
    """Return every estimator, decided at either clock; models at the compared level first, other levels are in the files."""
    first, *others = trials.values()
    frame = trial_frames.every_estimator(first)
    columns = {
        "estimator": "Estimator",
        "level": "Bound [%]",
        "exceed_task_mean": "Jobs above it, mean of tasks [%]",
        "exceed": "All jobs [%]",
        "over_allocation_task_mean": "Over-allocated, mean of tasks [% of use]",
        "change": "Against the deployed rule [%]",
        "over_allocation": "Over-allocated, all jobs [% of use]",
        "waste_per_usage": "Waste with retries [% of use]",
    }
    if frame["share_without"].max():
        columns["share_without"] = "Without an answer [% of jobs]"
    for trial in others:
        later = trial_frames.every_estimator(trial).select(
            "estimator", "level", pl.col("waste_per_usage").alias(f"{trial.at}_waste_per_usage")
        )
        keys = ["estimator", "level"]
        frame = frame.join(later, on=keys, how="left", nulls_equal=True, maintain_order="left")
        columns[f"{trial.at}_waste_per_usage"] = f"The same, decided {CLOCKS[trial.at]} [% of use]"
    return Table(
        name="estimators",
        frame=frame.sort(~first.compared, maintain_order=True),
        most=frame.filter(first.compared).height,
        caption=f"{caption}, decided {CLOCKS[first.at]}",
        columns=columns,
        mark="mark",
        note="A rule has no bound. With retries, over all jobs: a killed attempt is lost for as long as the job ran, the next one "
        f"gets the largest use seen of its task, or twice as much. {intervals(first)}",
    )


def matched_table(trial: Trial, caption: str) -> Table:
    """Return the estimators that have a setting which exceeds no more often than the deployed rule."""
    every = trial_frames.at_equal_exceed(trial)
    frame = every.drop_nulls("over_allocation")
    marks = pl.when(pl.col("role").is_in(["current", "proposed", "limit"])).then("role")
    return Table(
        name="matched",
        frame=frame.with_columns(marks.alias("mark")),
        caption=caption,
        columns={
            "estimator": "Estimator",
            "setting": "Setting",
            "exceed": "Jobs above it [%]",
            "over_allocation": "Over-allocated [% of use]",
            "change": "Against the deployed rule [%]",
        },
        mark="mark",
        note=say(
            "Means of tasks. The setting (level of a bound, price of a failed attempt in uses of the job, margin) is chosen with "
            "hindsight, for all alike; a rule has none. {n} estimators exceed more often at every setting.",
            n=every.height - frame.height,
        ),
    )


def chosen_table(trials: Mapping[At, Trial], *, average: str = "tasks") -> Table:
    """Return models at settings chosen on other tasks, so that they exceed no more often than the deployed rule."""
    frames = [
        trial_frames.chosen_elsewhere(trial, average=average).select(
            pl.lit(CLOCKS[at]).alias("decided"), pl.all()
        )
        for at, trial in trials.items()
    ]
    return Table(
        name="chosen",
        frame=pl.concat(frames),
        caption="Settings of each task chosen on the other tasks",
        columns={
            "estimator": "Estimator",
            "decided": "Decided",
            "level": "Level or price",
            "exceed": "Jobs above it [%]",
            "exceed_reference": "Above the deployed rule [%]",
            "no_higher": "No more often",
            "ratio": "Over-allocation over that of the rule [ratio]",
        },
        note=f"{'All jobs alike' if average == 'jobs' else 'Means of tasks'}. As one who runs the system could choose; that it "
        "exceeds no more often is then not certain.",
    )


def task_table(trial: Trial, ours: str, *, most: int = 10) -> Table:
    """Return the tasks that lose most, the largest loss first."""
    frame = trial_frames.task_by_task(trial, ours).with_columns(
        pl.col("jeditaskid").cast(pl.String)
    )
    lost = frame.filter(pl.col("difference") > 0).height
    return Table(
        name="tasks",
        frame=frame,
        caption=say(
            "{lost} of {n} tasks waste more with {ours}", lost=lost, n=frame.height, ours=ours
        ),
        columns={
            "jeditaskid": "Task",
            "jobs": "Jobs",
            "exceed": "Above: deployed [%]",
            "our_exceed": "ours [%]",
            "over_allocation": "Over-allocated: deployed [% of use]",
            "our_over_allocation": "ours [% of use]",
            "waste_per_usage": "With retries: deployed [% of use]",
            "our_waste_per_usage": "ours [% of use]",
        },
        mark="mark",
        most=most,
        note=f"Decided {CLOCKS[trial.at]}; the largest loss first.",
    )


def known_chart(trial: Trial, model: str) -> Chart | None:
    """Return coverage by how many jobs of a task were known; None with few tasks."""
    rows = trial_frames.by_known(trial).filter(pl.col("estimator").is_in(trial.models))
    mine = rows.filter(estimator=model).sort("coverage")
    if trial.few_tasks or mine.is_empty():
        return None
    level = trial.comparison.level
    return Chart(
        draw=charts.coverage_by_known,
        name="known",
        frame=rows,
        options={"level": level},
        finding=say(
            "With {known} jobs of the task known, {coverage:%} stay within the bound: the least",
            mine.row(0, named=True),
        ),
        sample=say(
            "n = {jobs} jobs of {tasks} tasks, decided {when}; by finished jobs of the task that were known. Bars: 95 % "
            "intervals over tasks.",
            trial.comparison.counts,
            when=CLOCKS[trial.at],
        ),
    )


def coverage_table(trials: Mapping[At, Trial], model: str) -> Table:
    """Return whether the bound of a model is kept, by either clock."""
    frame = trial_frames.coverage_by_clock(trials, model)
    return Table(
        name="coverage",
        frame=frame.with_columns(pl.col("at").replace_strict(dict(CLOCKS)).alias("decided")),
        caption=say("Is the bound of {model} kept?", model=model),
        columns={
            "decided": "Decided",
            "level": "Asked for [%]",
            "coverage": "Within it [% of jobs]",
            "strata": "Strata",
            "inside": "As chance allows",
            "too_often": "Missed too often",
            "too_rarely": "Missed too rarely",
        },
        note="Strata: tasks, queues, cores and all three, of 200 jobs or more. Chance: binomial, jobs independent; jobs of a task "
        "err together, so that even a right model leaves it more often.",
    )


def strata_table(doubts: Doubts, *, most: int = 8) -> Table:
    """Return the tasks, queues and numbers of cores whose bound is missed, the lowest coverage first."""
    single = ~pl.col("stratum_by").is_in(["all"]) & ~pl.col("stratum_by").str.contains("/")
    parts = doubts.strata.filter(single).sort("inside", "coverage", "stratum")
    return Table(
        name="strata",
        frame=parts.with_columns(pl.col("stratum_by").replace("jeditaskid", "task")),
        caption=say("Tasks, queues and cores by the coverage of {model}", model=doubts.model),
        columns={
            "stratum_by": "Stratum of",
            "stratum": "Stratum",
            "n": "Jobs",
            "coverage": "Within the bound [%]",
            "lo": "Chance allows from [%]",
            "hi": "to [%]",
            "verdict": "Verdict",
        },
        most=most,
    )


def doubt_table(doubts: Doubts, *, most: int = 8) -> Table:
    """Return the tasks in which misses or the expected distribution went wrong, the clearest first."""
    return Table(
        name="doubts",
        frame=doubts.by_task.with_columns(pl.col("jeditaskid").cast(pl.String)),
        caption=say("Is {model} right about its own uncertainty?", model=doubts.model),
        columns={
            "jeditaskid": "Task",
            "n": "Jobs",
            "missed_share": "Above the bound [%]",
            "verdict": "Misses over time",
            "log10_largest": "Won by betting against it [log10 of the stake]",
            "bet": "Distribution",
            "scouts": "Scouts, per core",
            "exceeds": "Others above scouts [% of pairs]",
        },
        most=most,
        note="Winning 20 times the stake (1.3) has a chance of at most 1 in 20 if the model is right. Scouts: Brunner and Munzel's "
        "test, corrected for the number of tasks.",
    )


def doubt_sentences(doubts: Doubts) -> list[str]:
    """Say where a model should not be trusted; never nothing, for what was not seen is never safe."""
    sentences = [
        say(
            f"{CHECKS[row['check']].format(feature=row['feature'])}: {{failed}} of {{of}}{{worst}}.",
            row,
            worst=f", such as {row['worst']}" if row["worst"] else "",
        )
        for row in doubts.failures.iter_rows(named=True)
    ]
    return [*sentences, UNTRIED]


def settings_part(settings: Mapping[str, Translation], title: str, note: str = "") -> Part:
    """Return what allocations mean for the setting that the deployed system has; the last translation answers.

    Args:
        settings: By the names of `TITLES`.
        title: Of the part.
        note: What the estimator's allocations are.
    """
    ends = {"exceed_lo": "exceed_rate_lo", "exceed_hi": "exceed_rate_hi"}
    sides = [
        each.table.filter(period=each.scored_on)
        .rename(ends)
        .select(pl.lit(TITLES[name]).alias("on"), pl.all())
        for name, each in settings.items()
    ]
    several = {"on": "On"} if len(sides) > 1 else {}
    table = Table(
        name="settings",
        frame=pl.concat(sides).with_columns(
            mark=pl.when(who="current").then(pl.lit("current")),
            killed_share=pl.col("killed_coreh") / pl.col("work_coreh"),
        ),
        caption="The estimator, the best settings and the current one on the same jobs, by the same loss and retries",
        columns={
            **several,
            "who": "Who",
            "label": "Allocations",
            "loss": "Stated loss [core h per core h]",
            "exceed_rate": "First attempts killed [%]",
            "killed_share": "Killed work [% of work]",
            "over_allocation": "Over-allocated [% of use]",
            "n_tasks": "Tasks",
        },
        mark="mark",
        note=f"{note}Cheapest: of all settings, whatever they kill; nearest: of those that keep the limit on the earlier tasks. In "
        "brackets: 95 % intervals over tasks.",
    )
    answer = list(settings.values())[-1]
    setting = answer.current if answer.verdict.kind == "keep" else answer.nearest
    nearest = sides[-1].filter(who="nearest").row(0, named=True)
    sentence = say(
        SETTINGS[answer.verdict.kind],
        nearest,
        rank=setting.rank,
        margin=setting.margin_pct,
        limit=answer.choice.max_exceed,
    )
    verdict = Verdict(kind=answer.verdict.kind, sentence=sentence, subject=answer.verdict.subject)
    return Part(name="settings", title=title, verdict=verdict, sections={"Side by side": [table]})


def card(name: str, part: Evaluation) -> Card:
    """Return the card of the model that has learnt from the jobs of a part."""
    doubts = doubt_sentences(part.doubts)
    return card_of(part.main, MODEL, part.learnt, source=SOURCES[name], doubts=doubts)


def save_model(jobs: Mapping[str, Evaluation], out_dir: str, *, level: float) -> None:
    """Save the model of the first part below a run, with its card; without a part there is none."""
    for name, part in list(jobs.items())[:1]:
        folder = Path(out_dir) / MODEL_FOLDER
        save_tested(part.model, folder, card(name, part), part.learnt, level=level)


def model_part(jobs: Mapping[str, Evaluation], *, level: float) -> list[Part]:
    """Return what was measured of the saved model, where it should not be trusted, and how to predict with it."""
    return [_model_part(card(name, part), part, level) for name, part in list(jobs.items())[:1]]


def _model_part(shown: Card, part: Evaluation, level: float) -> Part:
    kept = trial_frames.coverage_by_clock(part.trials, MODEL).row(0, named=True)
    template = "Made without the tasks it was tested on, its bound of {level:%} held for {coverage:%} of jobs."
    doubt = pl.struct("check", "feature").map_elements(
        lambda row: CHECKS[row["check"]].format(feature=row["feature"]), pl.String
    )
    measured = Table(
        name="measured",
        frame=pl.DataFrame([vars(each) for each in shown.measured]),
        caption=shown.title,
        columns={
            "level": "Bound [%]",
            "jobs": "Jobs",
            "coverage": "Within it [%]",
            "over_allocation": "Over-allocated [% of use]",
        },
        note=f"On tasks that it had not seen. {' '.join(shown.trained_on)} The whole card is {MODEL_FOLDER}/model_card.md.",
    )
    not_to_trust = Table(
        name="not_to_trust",
        frame=part.doubts.failures.with_columns(doubt.alias("doubt")),
        caption="Checks on tasks that it had not seen",
        columns={"doubt": "Check", "failed": "Failed", "of": "Of", "worst": "Such as"},
        note=UNTRIED,
    )
    options = f"--seen finished.parquet --level {level:g} --out bounds.parquet"
    predict = Listing(
        caption="Predict with it:",
        text=f"brokerlab predict {MODEL_FOLDER} jobs.parquet {options}",
    )
    return Part(
        name="model",
        title="The model and its card",
        verdict=Verdict(kind="finding", sentence=say(template, kept)),
        sections={"Where not to trust it": [not_to_trust], "Its card": [measured, predict]},
    )


def frames(name: str, trials: Mapping[At, Trial], doubts: Doubts) -> dict[str, pl.DataFrame]:
    """Return the frames behind the blocks of a part, to be written beside them.

    Args:
        name: Of the part.
        trials: By clock.
        doubts: Of the model.
    """
    written: dict[str, pl.DataFrame] = {}
    for at, trial in trials.items():
        compared = trial.comparison
        written |= {
            f"{name}_{at}_estimators": compared.table,
            f"{name}_{at}_by_task": compared.tasks,
            f"{name}_{at}_by_scouts": compared.by_scouts,
            f"{name}_{at}_paired": compared.paired,
            f"{name}_{at}_at_deployed": trial.at_deployed,
            f"{name}_{at}_strata": compared.strata,
            f"{name}_{at}_curves": trial.curves,
            f"{name}_{at}_limits": trial.limits,
        }
    return written | {f"{name}_scouts": doubts.scouts, f"{name}_support": doubts.support}
