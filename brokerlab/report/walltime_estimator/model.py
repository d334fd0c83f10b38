"""The model that the report leaves behind: fitted on all tasks, with its manifest and its card."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from brokerlab.estimators.card import Card, Measured
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.saving import About, Trained, save, versions
from brokerlab.report.content import Column, Listing, Row, Table
from brokerlab.report.estimates.left_out import trained
from brokerlab.report.estimates.trial import LEVELS
from brokerlab.report.format import number
from brokerlab.report.walltime_estimator import tasks_sentences as say
from brokerlab.report.walltime_estimator.tasks import OURS, QUANTITY, TaskStudy
from brokerlab.report.wording import thin

FOLDER = "model"
INTENDED = (
    "Bounds and guesses of the wall time of jobs of production tasks, at submission or start, updated as jobs of the task end.",
    "Not for batch logs: there requests of users say more than like tasks.",
)
COMMAND = "brokerlab predict model jobs.parquet"
FEATURES = ("kind", "queue", "cores", "events", "input_mb", "corepower", "requested")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A model that was saved.

    Attributes:
        folder: Where, below the run.
        card: What its card says.
    """

    folder: str
    card: Card


def keep(study: TaskStudy, out_dir: Path) -> Kept:
    """Fit ours on all tasks and save it with its card.

    Args:
        study: Of which tasks.
        out_dir: Folder of the run; the model goes below it.
    """
    card = card_of(study)
    about = About(
        levels=LEVELS,
        features=FEATURES,
        trained=Trained.of(study.learnt),
        coverage={str(each.level): each.coverage for each in card.measured},
        card=card,
    )
    estimator = Hierarchy(QUANTITY)
    trained(estimator, study.learnt)
    save(estimator, out_dir / FOLDER, about=about)
    return Kept(folder=FOLDER, card=card)


def card_of(study: TaskStudy) -> Card:
    """Write the card: what was measured is of jobs that the model judged was not fitted to."""
    found = study.trials["submit"]
    table = found.comparison.table.filter(estimator=OURS)
    jobs, tasks = study.learnt.height, study.learnt["jeditaskid"].n_unique()
    made = "Generated jobs" if study.inputs.synthetic else "Jobs"
    return Card(
        name=OURS,
        quantity=QUANTITY,
        intended_use=INTENDED,
        trained_on=(thin(f"{made} of {study.inputs.said}: {jobs:,} of {tasks} tasks."),),
        features=FEATURES,
        measured=tuple(
            Measured(
                level=row["level"],
                jobs=row["jobs"],
                coverage=row["coverage"],
                over_allocation=row["over_allocation"],
            )
            for row in table.iter_rows(named=True)
            if row["coverage"] is not None
        ),
        do_not_trust=tuple(say.doubts(study)),
        versions=versions(),
    )


def card_blocks(kept: Kept) -> tuple[str | Table | Listing, ...]:
    """Return the card as pieces of the page."""
    rows = [
        Row(cells={"what": section.title, "said": " ".join(section.sentences)})
        for section in kept.card.sections()
        if section.sentences and not section.columns and not section.title.startswith("Where not")
    ]
    measured = ", ".join(
        f"{100 * each.level:g} %: {number(100 * each.coverage, 1)} % of {number(each.jobs)} jobs"
        for each in kept.card.measured
    )
    rows.append(Row(cells={"what": "Stayed below their bound, of jobs not fitted to", "said": measured}))  # fmt: skip
    table = Table(
        name="model_card",
        caption=kept.card.title,
        columns=(Column(key="what", label="What"), Column(key="said", label="Says")),
        rows=tuple(rows),
        footnote=f"Saved in {kept.folder}/ with a manifest, digests and the card as text; no pickle.",
    )
    return table, Listing(caption="Predict with it", text=COMMAND)
