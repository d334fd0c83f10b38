"""What the page says and shows of settings and of the saved model."""

from __future__ import annotations

from typing import Any

from brokerlab.calibrate.nearest_setting import Translation
from brokerlab.estimators.learners import MODEL
from brokerlab.estimators.scoring.measures import FEW_TASKS
from brokerlab.report.content import Column, Num, Part, Row, Table, Verdict, blocks
from brokerlab.report.estimates import saved
from brokerlab.report.memory_estimator.study import Study
from brokerlab.words import percent, thin

WHO = {"estimator": "ours", "nearest": "nearest", "current": "current"}


def settings(study: Study) -> Part | None:
    """Return the part on what the best allocations mean for settings; None without an archive."""
    found = study.settings
    if found is None or study.archive is None:
        return None
    title = "What it means for settings"
    if isinstance(found, str):
        sentence = f"No answer: {found}."
        return Part(name="settings", title=title, verdict=Verdict(kind="no_answer", subject="SCOUT_RAMCOUNT_RANK", sentence=sentence))  # fmt: skip
    parts = found.parts
    return Part(
        name="settings",
        title=title,
        verdict=Verdict(
            kind=found.verdict.kind,
            subject="SCOUT_RAMCOUNT_RANK, SCOUT_RAMCOUNT_MARGIN",
            sentence=thin(f"{found.verdict.sentence} All of it on the {study.archive.called}."),
        ),
        before_after=blocks(
            thin(parts["estimator"]), thin(parts["nearest"]), thin(parts["lost"]), _table(found)
        ),
        certainty=blocks(*(thin(note) for note in found.notes)),
        headings={"before_after": "The estimator, the nearest setting, the current one"},
    )


def _table(found: Translation) -> Table:
    """Lay out the estimator, the nearest setting and the current one by the same loss."""
    rows = [
        Row(
            cells={
                "who": row["label"],
                "loss": Num(value=row["loss"], lo=row["loss_lo"], hi=row["loss_hi"], decimals=3),
                "exceed": Num(value=100 * row["exceed_rate"], lo=_pct(row["exceed_lo"]), hi=_pct(row["exceed_hi"]), decimals=1),
                "over": Num(value=100 * row["over_allocation"], decimals=1),
            },
            note=WHO.get(row["who"], row["who"]),
        )
        for row in found.table.filter(period=found.scored_on).iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        name="settings",
        caption="The same jobs by the same loss and retries",
        columns=(
            Column(key="who", label="Allocations"),
            Column(key="loss", label="Stated loss", unit="core h per core h"),
            Column(key="exceed", label="First attempts killed", unit="%"),
            Column(key="over", label="For nothing", unit="% of use"),
        ),
        rows=tuple(rows),
        footnote="95 % intervals over tasks, of the tasks that have allocations, "
        f"{'proof period' if found.scored_on == 'proof' else 'not divided into periods'}.",
    )


def _pct(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _held(row: dict[str, Any], tasks: int) -> str:
    """Write the coverage over all jobs; few tasks have no interval."""
    if tasks < FEW_TASKS:
        return f"{percent(row['coverage'])} of their jobs (all tasks together)"
    return f"{percent(row['coverage'], row['cluster_lo'], row['cluster_hi'])} of their jobs (interval over tasks)"


def model(study: Study) -> Part | None:
    """Return the part on the saved model; None without one."""
    part = study.kept
    if part is None or study.card is None:
        return None
    trial = part.main
    row = trial.comparison.row(MODEL)
    tasks = part.learnt["jeditaskid"].n_unique()
    sentence = (
        f"The model saved beside this page, {MODEL}, has learnt from {part.learnt.height:,} jobs of {tasks} "
        f"{'real tasks' if part.kind == 'tasks' else f'tasks of the {part.called}'}; made in the same way without the tasks it was "
        f"tested on, its bound of {100 * trial.comparison.level:g} % held for {_held(row, tasks)}."
    )
    return Part(
        name="model",
        title="The model and its card",
        verdict=Verdict(kind="finding", subject="model", sentence=thin(sentence)),
        before_after=saved.shown(
            study.card,
            name="card",
            command=f"brokerlab predict {saved.FOLDER} jobs.parquet --seen finished.parquet --level {trial.comparison.level:g} --out bounds.parquet",
        ),
        headings={"before_after": study.card.title},
    )
