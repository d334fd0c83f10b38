"""Estimate, and sum up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokerlab.archive.store import Archive
from brokerlab.calibrate.nearest_setting import Translation, translate_trial
from brokerlab.errors import BrokerlabError, InsufficientDataError
from brokerlab.estimators.card import Card
from brokerlab.estimators.learners import MODEL, learners
from brokerlab.estimators.memory_tasks import OURS, evaluate_later, evaluate_left_out
from brokerlab.estimators.sizing import Method, Store
from brokerlab.estimators.sizing.peers import all_peers, peers
from brokerlab.estimators.sizing.protocols import TraceStudy, study_traces
from brokerlab.estimators.tested import card_of
from brokerlab.report.estimates.trust import sentences
from brokerlab.report.memory_estimator.inputs import Inputs
from brokerlab.report.memory_estimator.jobs import JobStudy


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """What was found.

    Attributes:
        inputs: What it was made from.
        traces: What workflow traces showed; None without any.
        tasks: What real tasks showed; None without two of them.
        archive: What the archive showed; None without one, or with too few tasks.
        settings: What the cheapest allocations mean for settings, or why that cannot be told; None without an archive.
        card: Of the model that is saved; None without one.
        unanswered: Why a part is missing that there were data for.
        level: Of the bounds that were held against their promise.
        dice: Replicates and seed of the bootstrap.
    """

    inputs: Inputs
    traces: TraceStudy | None
    tasks: JobStudy | None
    archive: JobStudy | None
    settings: Translation | str | None
    card: Card | None
    unanswered: tuple[str, ...]
    level: float
    dice: dict[str, Any]

    @property
    def kept(self) -> JobStudy | None:
        """What the saved model is from: real tasks where there are any."""
        return self.tasks or self.archive


def study(
    inputs: Inputs,
    *,
    seeds: Sequence[int],
    slow: bool = False,
    store: str = "",
    names: Sequence[str] = (),
    level: float = 0.95,
    n_boot: int = 2000,
    seed: int = 1,
) -> Study:
    """Run all estimators on everything there is.

    Args:
        inputs: From `load`.
        seeds: Random orders in which the runs of traces arrive.
        slow: Run the published methods that take their time, too.
        store: Folder in which their results are kept and found again; empty for none. Without ``slow`` those that are there
            are shown.
        names: Of the estimators that learn and are tested beside the hierarchy; empty for all.
        level: Of the bounds that are held against their promise.
        n_boot: Replicates of the bootstrap.
        seed: Of the bootstrap.
    """
    makes = learners("memory", *names)
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    kept = Store(Path(store), fills=slow) if store else None

    def methods() -> Mapping[str, Method]:
        return all_peers() if slow or store else peers()

    told: list[str] = []
    tasks = archive = None
    if inputs.tasks:
        try:
            left_out = evaluate_left_out(
                inputs.tasks, speeds=inputs.speeds, makes=makes, level=level, **dice
            )
            tasks = JobStudy(kind="tasks", called="real tasks", **vars(left_out))
        except InsufficientDataError as problem:
            told.append(f"Real tasks: {problem}.")
    if inputs.archive:
        try:
            later = evaluate_later(inputs.archive, makes=makes, level=level, **dice)
            archive = JobStudy(kind="archive", called=_called(inputs), **vars(later))
        except InsufficientDataError as problem:
            told.append(f"Archive: {problem}.")
    settings = None
    if archive is not None and inputs.opened is not None:
        settings = _translated(archive, inputs.opened, dice)
    return Study(
        inputs=inputs,
        traces=study_traces(inputs.traces, peers=methods, seeds=seeds, store=kept, **dice) if inputs.traces else None,
        tasks=tasks,
        archive=archive,
        settings=settings,
        card=_card(tasks or archive, inputs),
        unanswered=tuple(told),
        level=level,
        dice=dice,
    )  # fmt: skip


def _translated(part: JobStudy, archive: Archive, dice: dict[str, Any]) -> Translation | str:
    """Return what the cheapest allocations mean for settings, or why that cannot be told."""
    try:
        return translate_trial(
            part.main, archive, model=MODEL, name=OURS, learnt=part.learnt, **dice
        )
    except BrokerlabError as problem:
        return str(problem)


def _called(inputs: Inputs) -> str:
    """Return what sentences call the archive."""
    made = inputs.opened is not None and inputs.opened.synthetic
    return "synthetic archive" if made else "archive"


def _card(part: JobStudy | None, inputs: Inputs) -> Card | None:
    """Return the card of the model that is saved."""
    if part is None:
        return None
    if part.kind == "tasks":
        source = "real ATLAS tasks with the scouts they really had"
    else:
        source = f"{'generated' if inputs.synthetic else 'recorded'} jobs of the archive"
    return card_of(part.main, MODEL, part.learnt, source=source, doubts=sentences(part.doubts))
