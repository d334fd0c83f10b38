"""The model that the report leaves behind: fitted on all tasks, with its manifest and its card."""

from __future__ import annotations

from pathlib import Path

from brokerlab.estimators.card import Card
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.holdout import fit_and_calibrate
from brokerlab.estimators.tested import card_of, save_tested
from brokerlab.report.content import Block
from brokerlab.report.estimates import saved
from brokerlab.report.walltime_estimator import tasks_sentences as say
from brokerlab.report.walltime_estimator.tasks import OURS, QUANTITY, TaskStudy

COMMAND = "brokerlab predict model jobs.csv --seen finished.csv --level 0.95 --out bounds.parquet"


def keep(study: TaskStudy, out_dir: Path) -> Card:
    """Fit ours on all tasks and save it below the run, with its card.

    Args:
        study: Of which tasks.
        out_dir: Folder of the run; the model goes below it.

    Returns:
        What its card says: measured on jobs that the model judged was not fitted to.
    """
    tried = study.trials["submit"]
    card = card_of(tried, OURS, study.learnt, source=study.inputs.said, doubts=say.doubts(study))
    estimator = fit_and_calibrate(Hierarchy(QUANTITY), study.learnt)
    save_tested(estimator, out_dir / saved.FOLDER, card, study.learnt, level=tried.comparison.level)
    return card


def blocks_of(card: Card) -> tuple[Block, ...]:
    """Return the card as pieces of the page."""
    return saved.shown(card, name="model_card", command=COMMAND)
