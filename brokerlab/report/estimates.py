"""What the pages of both estimator reports share: where real data lie, and blocks over the frames of a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import Field

from brokerlab.archive import Archive
from brokerlab.archive.store import open_archive
from brokerlab.calibrate.nearest_setting import Translation
from brokerlab.calibrate.verdict import limit_of
from brokerlab.charts import estimators as charts
from brokerlab.errors import BrokerlabError, InsufficientDataError
from brokerlab.estimators import trial_frames
from brokerlab.estimators.doubts import UNTRIED
from brokerlab.estimators.evaluation import MODEL, Evaluation
from brokerlab.estimators.offered import LEVEL, WORST
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.sources.panda import reasons_against
from brokerlab.estimators.sources.source import KEPT, At, Source
from brokerlab.estimators.trial import Trial
from brokerlab.estimators.trial_frames import CLOCKS
from brokerlab.report import kit
from brokerlab.report.kit import Caveat, Chart, Part, Table, Verdict, say
from brokerlab.report.needs import Needs, Rows
from brokerlab.words import listed

DEMO = "data/demo"
MODEL_FOLDER = "model"  # folder of the saved model beside the page
TITLES = {"tasks": "Real tasks", "archive": "The archive"}
"""Whose jobs estimators are tested on, by the name of the part."""
SOURCES = {
    "tasks": "real ATLAS tasks with the scouts they really had",
    "archive": "jobs of the archive",
}
SETTINGS = {
    "change": "Set {setting}: {after:%} of first attempts killed on later tasks, limit {limit:%}.",
    "improve": "Set {setting}: {after:%} of first attempts killed; better, limit {limit:%} not kept.",
    "keep": "Keep {setting}: no other one is shown to lower the loss.",
    "no_answer": "Nearest, not proposed: {setting}; {after:%} of first attempts killed later, limit {limit:%}.",
}
LARGEST_SHOWN = 2.0  # exceed rates above so many times those of the named points are not drawn


class Params(kit.Params):
    """What may be asked of both."""

    data: str = Field(
        "", description="folder of real data, empty for $BROKERLAB_DATA or ../shared/data [path]"
    )
    models: list[Literal["hierarchy", "quantile boosting", "linear quantiles"]] = Field(
        [], description="that learn, tested beside the hierarchy on jobs, empty for all [name]"
    )
    level: float = Field(
        0.95, ge=0.5, lt=1, description="of the upper bounds that are held to it [1]"
    )


def needs_of(quantity: Quantity, *, least: int) -> Needs:
    """Return what is read of an archive to estimate a quantity on at least so many tasks."""
    thing = "memory" if quantity == "memory" else "run time"
    says_nothing = pl.any_horizontal(reasons_against(quantity, "submit").values())
    again = (pl.col("jobstatus") == "failed") & pl.col("pandaid").is_in(
        pl.col("parentid").implode()
    )
    says_nothing = (says_nothing | again).fill_null(value=False)
    usable = (pl.col("prodsourcelabel") == "managed") & ~says_nothing
    what = f"production tasks with jobs whose {thing} is recorded"
    return Needs(
        tables=("jobs",),
        derived=("tasks", "datasets", "files", "queues"),
        rows=[Rows.tasks(what, usable, least)],
    )


def titles(archive: Archive | None) -> dict[str, str]:
    """Return `TITLES`, where the archive is generated saying so."""
    generated = archive is not None and archive.synthetic
    return TITLES | ({"archive": "The generated archive"} if generated else {})


def archive_at(archive: str = DEMO) -> Archive | None:
    """Open an archive; None where none is named, or the usual one is not there."""
    absent = archive in ("", DEMO) and not Path(DEMO).is_dir()
    return None if absent else open_archive(archive or DEMO)


@contextmanager
def noted(
    problems: dict[str, str], part: str, error: type[BrokerlabError] = InsufficientDataError
) -> Iterator[None]:
    """Leave a part out of which nothing can be said, and keep why in ``problems``; errors of other kinds go on."""
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


def divided(part: Evaluation) -> str:
    """Say how the tasks of an archive were divided in time."""
    rows = (f"{n} {name} ({jobs} jobs)" for name, n, jobs in part.division.iter_rows())
    return ", ".join(rows)


def intervals(trial: Trial) -> str:
    """Say what the brackets of a trial's tables are."""
    if trial.few_tasks:
        n = trial.comparison.counts["tasks"]
        return f"In brackets: least and most when one of the {n} tasks is left out; they are too few for an interval."
    return "In brackets: 95 % intervals over tasks."


def waste(part: Evaluation, ours: str) -> dict[str, Any] | None:
    """Return how ours changes what the deployed rule wastes; None where they cannot be compared."""
    return trial_frames.change_of(part.main, ours, "waste_per_usage")


def headline(part: Evaluation, ours: str, where: str, thing: str) -> Verdict:
    """Say what ours wastes against the deployed rule, of which thing and on whose jobs."""
    row = waste(part, ours)
    if row is None:
        sentence = f"On {where}, the deployed rule has too few answers to be compared with."
        return Verdict(kind="no_answer", sentence=sentence)
    if instead := offered_instead(part.main.offers, ours):
        return Verdict(kind="finding", sentence=f"On {where}, {instead}.")
    lo, hi = row["change_lo"], row["change_hi"]
    if lo is not None and hi is not None and not lo <= 0 <= hi:
        result = (
            f"{ours} wastes {less(row['change'])} {thing} than the scouts' rule, retries counted"
        )
    else:
        result = f"{ours} and the scouts' rule cannot be told apart in what they waste"
    return Verdict(kind="finding", sentence=f"On {where}, {result}.")


def offered_instead(offers: pl.DataFrame, ours: str) -> str | None:
    """Say which rule is offered in place of ours, and why; None: ours is offered."""
    why = trial_frames.why_not_offered(offers, ours)
    return (
        why
        and f"{trial_frames.default_of(offers) or 'nothing'} is offered: {ours.split(' + ', maxsplit=1)[0]} {why}"
    )


def offer_table(offers: pl.DataFrame) -> Table:
    """Return what every estimator wastes over the best simple rule, and whether it is offered as default."""
    default = trial_frames.default_of(offers)
    frame = offers.sort("mean", "estimator", nulls_last=True).with_columns(
        short=pl.col("short").list.len(),
        offered=pl.when(pl.col("estimator").eq_missing(default))
        .then(pl.lit("default"))
        .when(pl.col("offered"))
        .then(pl.lit("yes"))
        .otherwise(pl.lit("no")),
    )
    return Table(
        name="offers",
        frame=frame,
        caption="Waste over that of the best simple rule, on the jobs that each gives something",
        columns={
            "estimator": "Estimator",
            "mean": "Over the best rule [ratio]",
            "worst": "Worst [ratio]",
            "short": f"Systems with {100 * LEVEL:g} % bounds too short",
            "offered": "Offered",
        },
        note=f"A model is offered where it wastes nowhere more than {WORST:g} times what the best simple rule does, chosen with "
        f"hindsight, and where no {100 * LEVEL:g} % bound of it is kept less often than chance allows: the rule of "
        "docs/estimators.md, on the jobs of this page.",
    )


def less(change: float) -> str:
    """Write a change [1] with its direction."""
    word = "less" if change < 0 else "more"
    return say("{size:.0f} % {word}", size=100 * abs(change), word=word)


def overview(
    jobs: Mapping[str, Evaluation],
    ours: str,
    titles: Mapping[str, str],
    thing: str,
    *others: Mapping[str, Any],
) -> Table:
    """Return one line per source of jobs, and others below: what ours wastes over what it is held against."""
    rows: list[dict[str, Any]] = []
    for name, part in jobs.items():
        row, compared = waste(part, ours) or {}, part.main.comparison
        ends = {end: row.get(end) for end in ("ratio", "ratio_lo", "ratio_hi")}
        named = {"part": titles[name], "href": f"#{name}", "reference": compared.reference}
        rows.append({**named, **compared.counts, **ends})
    return Table(
        name="overview",
        frame=pl.DataFrame([*rows, *others], infer_schema_length=None),
        caption=f"{thing} wasted, killed attempts and retries counted",
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


def frontier(
    trial: Trial, finding: str, points: pl.DataFrame, *, titles: Mapping[str, str] | None = None
) -> Chart:
    """Return the chart of exceed rates against over-allocation; without ``titles`` its axes are those of memory."""
    lines = points.filter(pl.col("role") != "rule").with_columns(
        pl.when(pl.col("role").is_in(["current", "proposed"]))
        .then("role")
        .otherwise("estimator")
        .alias("line")
    )
    marked = lines.filter(pl.col("named") & pl.col("line").is_in(["current", "proposed"]))
    highest = max([0.05, *(LARGEST_SHOWN * each for each in marked["exceed"].drop_nulls())])
    margins = " by its margin" if lines.filter(role="current").height > 1 else ""
    priced = listed([f"{name} by the price of a failed attempt" for name in trial.policies])
    offered = trial.offers.filter("offered", pl.col("estimator").is_in(trial.policies)).height
    standing = "Proposed" if offered else "Not offered"
    return Chart(
        draw=charts.exceed_frontier,
        name="frontier",
        frame=_alike_once(lines).filter(pl.col("exceed") <= highest),
        finding=finding,
        options={"marks": marked.with_columns(label="line"), **(titles or {})},
        sample=say(
            "n = {jobs:#job} of {tasks:#task}, scouts not counted.", trial.comparison.counts
        ),
        note=f"Current: the scouts' rule{margins}. {standing}: {priced}. Models by the level of their bound. "
        f"{trial_frames.LIMIT.capitalize()}: one allocation per task, queue and cores that knows the uses.",
    )


def _alike_once(lines: pl.DataFrame) -> pl.DataFrame:
    """Leave one of several lines through the same points, under the names of all."""
    same = ["role", "exceed", "over_allocation"]
    points = lines.group_by("line", "role", maintain_order=True).agg("exceed", "over_allocation")
    names = points.group_by(same, maintain_order=True).agg(pl.col("line"))
    first = names.select(pl.col("line").list.first(), names=pl.col("line").list.join(", "))
    kept = lines.join(first, on="line", maintain_order="left")
    return kept.with_columns(line="names").drop("names")


def estimator_table(trials: Mapping[At, Trial]) -> Table:
    """Return every estimator, decided at either clock; models at the compared level first, other levels are in the files."""
    first, *others = trials.values()
    frame = trial_frames.every_estimator(first, *others)
    columns = {
        "estimator": "Estimator",
        "level": "Bound [%]",
        "exceed_task_mean": "Jobs above it, mean of tasks [%]",
        "exceed": "All jobs [%]",
        "over_allocation_task_mean": "Over-allocated, mean of tasks [% of use]",
        "change": "Against the deployed rule, same jobs [%]",
        "over_allocation": "Over-allocated, all jobs [% of use]",
        "waste_per_usage": "Waste with retries [% of use]",
    }
    if frame["share_without"].max():
        columns["share_without"] = "Without an answer [% of jobs]"
    for trial in others:
        columns[f"{trial.at}_waste_per_usage"] = f"The same, decided {CLOCKS[trial.at]} [% of use]"
    explained = (
        "With retries, over all jobs: a killed attempt is lost for as long as the job ran, the next one gets the largest use "
        "seen of its task, or twice as much."
    )
    return Table(
        name="estimators",
        frame=frame.sort(~first.compared, maintain_order=True),
        most=frame.filter(first.compared).height,
        caption=f"Every estimator, decided {CLOCKS[first.at]}",
        columns=columns,
        mark="mark",
        note=f"{explained}\n{intervals(first)}",
    )


def task_table(trial: Trial, ours: str) -> Table:
    """Return the tasks that lose most, the largest loss first."""
    frame = trial_frames.task_by_task(trial, ours).cast({"jeditaskid": pl.String})
    lost = frame.filter(pl.col("difference") > 0).height
    return Table(
        name="tasks",
        frame=frame,
        caption=say(
            "{lost} of {n:#task} waste more with {ours}; the largest loss first",
            lost=lost,
            n=frame.height,
            ours=ours,
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
        most=10,
    )


def known_chart(trial: Trial, model: str) -> Chart | None:
    """Return coverage by how many jobs of a task were known, where bounds are promised; None with few tasks, or no bound."""
    rows = trial_frames.by_known(trial).filter(pl.col("estimator").is_in(trial.models))
    rows = rows.drop_nulls("coverage")  # no bound was promised there
    mine = rows.filter(estimator=model).sort("coverage")
    if trial.few_tasks or mine.is_empty():
        return None
    return Chart(
        draw=charts.coverage_by_known,
        name="known",
        frame=rows,
        options={"level": trial.comparison.level},
        finding=say(
            "With {known} jobs of the task known, {coverage:%} stay within the bound: the least",
            mine.row(0, named=True),
        ),
        sample=say(
            "n = {jobs:#job} of {tasks:#task}, decided {when}. Bars: 95 % intervals over tasks.",
            trial.comparison.counts,
            when=CLOCKS[trial.at],
        ),
    )


def coverage_table(trials: Mapping[At, Trial], model: str) -> Table:
    """Return whether the bound of a model is kept, by either clock."""
    return Table(
        name="coverage",
        frame=trial_frames.coverage_by_clock(trials, model),
        caption=say("Is the bound of {model} kept?", model=model),
        columns={
            "decided": "Decided",
            "level": "Asked for [%]",
            "promised": "Has a bound [% of jobs]",
            "coverage": "Within it [% of these]",
            "strata": "Strata",
            "inside": "As chance allows",
            "too_often": "Missed too often",
            "too_rarely": "Missed too rarely",
            "own": "Within what the model itself tells [% of jobs]",
        },
        note="A bound is promised only where enough jobs of the task had finished and where, were all open promises missed, the "
        "share kept could still be of the level, or no other promise is open; "
        "elsewhere it is refused, and the request stands. What the model itself tells is held by nothing. docs/estimators.md has "
        "bounds on systems and tasks not seen. Strata: tasks, queues, cores and all three, of 200 jobs or more. Chance takes jobs for independent; those of a "
        "task err together, so that even a right model leaves it more often.",
    )


def jobs_part(part: Part, evaluation: Evaluation, ours: str, own: kit.Sections) -> Part:
    """Fill in what both reports show of one source of jobs; their own sections come after that of every estimator."""
    trials = evaluation.trials
    return replace(
        part,
        sections={
            "Estimator by estimator": [estimator_table(trials)],
            "What is offered": [offer_table(evaluation.main.offers)],
            **own,
            kit.GAINS: [task_table(evaluation.main, ours)],
            kit.CERTAINTY: [
                coverage_table(trials, MODEL),
                known_chart(list(trials.values())[-1], MODEL),
            ],
        },
    )


def settings_part(answer: Translation, title: str, note: str = "") -> Part:
    """Return what allocations mean for the setting that the deployed system has."""
    frame = answer.side_by_side
    brackets = " In brackets: 95 % intervals over tasks." if frame["loss_lo"].count() else ""
    table = Table(
        name="settings",
        frame=frame,
        caption="The estimator, the best settings and the current one, by the same jobs, loss and retries",
        columns={
            "who": "Who",
            "label": "Allocations",
            "loss": "Stated loss [core h per core h]",
            "exceed_rate": "First attempts killed [%]",
            "killed_share": "Killed work [% of work]",
            "over_allocation": "Over-allocated [% of use]",
            "n_tasks": "Tasks",
        },
        mark="mark",
        note=f"{note}Cheapest: whatever it kills; nearest: of those that keep the limit; both chosen on these tasks. Loss and kills: "
        f"means of tasks by their work, none above the median one.{brackets}",
    )
    study, verdict = answer.study, answer.verdict
    sentence = say(
        SETTINGS[verdict.kind],
        study.judgement.quantity("exceed_rate"),
        setting=(study.current if verdict.kind == "keep" else study.best).words(
            study.parameter, minimum=True
        ),
        limit=limit_of(study.judgement),
    )
    shown = Verdict(kind=verdict.kind, sentence=sentence, subject=verdict.subject)
    return Part(name="settings", title=title, verdict=shown, sections={"Side by side": [table]})


def model_writer(jobs: Mapping[str, Evaluation]) -> Callable[[Path], object] | None:
    """Return what saves the model of the first part beside the page, with its card; without a part there is none."""
    if not jobs:
        return None
    name, part = next(iter(jobs.items()))
    return lambda folder: part.save(folder / MODEL_FOLDER, SOURCES[name])


def model_part(jobs: Mapping[str, Evaluation], *, level: float) -> list[Part]:
    """Return where the saved model should not be trusted, and how to predict with it."""
    if not jobs:
        return []
    part = next(iter(jobs.values()))
    kept = trial_frames.coverage_by_clock(part.trials, MODEL).row(0, named=True)
    template = (
        "On unseen tasks {promised:%} of jobs had a {level:%} bound; {coverage:%} of these kept it."
    )
    if kept["coverage"] is None:
        template = "On unseen tasks no job had a bound of {level:%}."
    not_to_trust = Table(
        name="not_to_trust",
        frame=part.doubts.failures,
        caption="Checks on tasks that it had not seen",
        columns={"doubt": "Check", "failed": "Failed", "of": "Of", "worst": "Such as"},
        note=f"{UNTRIED} More is in its card, {MODEL_FOLDER}/model_card.md.",
    )
    options = f"--seen finished.parquet --level {level:g} --out bounds.parquet"
    predict = f"brokerlab predict {MODEL_FOLDER} jobs.parquet {options}"
    predicting = kit.Listing(caption="Predict with it:", text=predict)
    verdict = Verdict(kind="finding", sentence=say(template, kept))
    sections: kit.Sections = {"Where not to trust it": [not_to_trust, predicting]}
    return [Part(name="model", title="The model and its card", verdict=verdict, sections=sections)]


def caveats(
    problems: Mapping[str, str], setting: Translation | None, *, real: bool, generated: bool
) -> list[Caveat]:
    """Say what none of the parts can tell."""
    texts = {
        "No real data were found: set BROKERLAB_DATA to their folder.": not real,
        "The archive is generated: what is learnt and tested on it follows how it was generated.": generated,
    }
    return [
        *(Caveat(1, f"No answer on {name}: {why}.") for name, why in problems.items()),
        *(Caveat(n, text) for text, n in texts.items()),
        *(Caveat(1, f"Setting: {note}") for note in (setting.notes if setting else ())),
    ]


def unlearnt_caveats(jobs: Mapping[str, Evaluation]) -> list[Caveat]:
    """Say which models learnt nothing from the tasks of a part, and refused every bound."""
    text = "On {part} there were too few tasks to learn from for {names}: no bound, and no place in the tables."
    return [
        Caveat.of(1, text, part=TITLES[name].lower(), names=listed(part.unlearnt))
        for name, part in jobs.items()
        if part.unlearnt
    ]


def frames(jobs: Mapping[str, Evaluation], *, average: str = "tasks") -> dict[str, pl.DataFrame]:
    """Return the frames behind the parts, to be written beside them; ``average`` as for `trial_frames.written`."""
    written = {
        f"{name}_{stem}": frame
        for name, part in jobs.items()
        for stem, frame in trial_frames.written(part, average=average).items()
    }
    for name, part in list(jobs.items())[:1]:
        measured = part.card(SOURCES[name]).measured
        schema = {"level": pl.Float64, "jobs": pl.Int64, "coverage": pl.Float64, "over_allocation": pl.Float64}  # fmt: skip
        written["model_measured"] = pl.DataFrame([vars(each) for each in measured], schema=schema)
    return written
