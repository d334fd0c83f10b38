"""What so few scouts can promise whatever the jobs look like, and what they cannot."""

from __future__ import annotations

from math import ceil

import polars as pl

from brokerlab.calibrate.finite_sample import percentile_coverage, promise_table, scouts_needed
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.scout_percentiles.sentences import limit_words
from brokerlab.report.scout_percentiles.strata import at_setting
from brokerlab.report.scout_percentiles.study import Study
from brokerlab.words import number

DEPLOYED = range(5, 11)
"""Scouts that the deployed first trigger finds: half of ten at least, all of them at most."""
RANKS = (50, 75, 90, 95, 100)
"""Percentile ranks laid out in the table."""
OBSERVED_SHOWN = 6
"""Other numbers of scouts in the table, those with most tasks."""


def reach(n_scouts: int, rank: float) -> str:
    """Say which share of the jobs stays below a rank on average; between two scouts both are named.

    Example:
        >>> reach(5, 75), reach(5, 95)
        ('66.7 %', 'between 66.7 and 83.3 %')
    """
    low, high = _ends(n_scouts, rank)
    return f"{low} %" if low == high else f"between {low} and {high} %"


def _ends(n_scouts: int, rank: float) -> tuple[str, str]:
    """Return the expected coverage of the scouts below and above a rank [%], as shown."""
    low, _, high = percentile_coverage(n_scouts, rank)
    return number(100 * low, 1), number(100 * high, 1)


def tasks_by_scouts(study: Study) -> dict[int, int]:
    """Count the tasks of the proof by the number of scouts they were estimated from."""
    used = at_setting(study.late.by_task, study.late.current)["n_scouts"]
    return {int(n): int(tasks) for n, tasks in used.value_counts().iter_rows()}


def sentence(study: Study) -> str:
    """Say what the scouts can promise, under which assumption, and that it does not hold here."""
    tasks = tasks_by_scouts(study)
    typical = max(tasks, key=lambda n: (tasks[n], n))
    rank, limit = study.late.current[0], study.choice.max_exceed
    low, high = _ends(typical, rank)
    position = f", a rank between two of the {typical} scouts," if low != high else ""
    text = (
        f"If scouts were like the rest of their task, rank {rank} of {typical} scouts alone{position} would "
        f"promise that {reach(typical, rank)} of the jobs stay below, on average over tasks and whatever the "
        "distribution of the jobs"
    )
    text += "; here they are not like the rest (below). " if _unlike(study) else ". "
    if 0 < limit < 1:
        text += f"No rank of fewer than {scouts_needed(limit)} scouts could promise {limit_words(1 - limit)}. "
    text += (
        "What is reached beyond the promise is due to the margin and to these jobs: it is measured, not "
        "guaranteed. "
    )
    at_once = " as soon as it holds" if study.late.assumptions.trigger_period_s == 0 else ""
    return text + (
        f"The replay takes the scouts of the first trigger{at_once}; deployed, the trigger is looked at every 10 "
        "minutes and has 5 to 10 scouts."
    )


def _unlike(study: Study) -> bool:
    """Tell whether scouts and the rest differ beyond doubt at the median."""
    row = study.late.gap_summary.filter(pl.col("measure") == "ratio_median").row(0, named=True)
    return row["lo"] is not None and not row["lo"] <= 1 <= row["hi"]


def frame(study: Study) -> pl.DataFrame:
    """Return `finite_sample.promise_table` for deployed and observed numbers of scouts.

    Returns:
        Its columns, ``n_tasks`` (of the proof, with so many scouts) added; no row where the limit is 0 or 1,
        which every or no rank promises.
    """
    tasks, limit = tasks_by_scouts(study), study.choice.max_exceed
    most = sorted(tasks, key=lambda n: (-tasks[n], n))
    others = [n for n in most if n not in DEPLOYED][:OBSERVED_SHOWN]
    if not 0 < limit < 1:
        return promise_table([], [], alpha=0.5)
    counts = pl.DataFrame(
        {"n_scouts": list(tasks), "n_tasks": list(tasks.values())},
        schema={"n_scouts": pl.Int64, "n_tasks": pl.Int64},
    )
    laid_out = promise_table([*DEPLOYED, *others], RANKS, alpha=limit)
    return laid_out.join(counts, on="n_scouts", how="left", maintain_order="left").with_columns(
        pl.col("n_tasks").fill_null(0)
    )


def table(study: Study) -> Table | None:
    """Lay out what each number of scouts promises at each rank; None where the limit is 0 or 1."""
    promised = frame(study)
    if promised.is_empty():
        return None
    wanted = limit_words(1 - study.choice.max_exceed)
    rows = []
    for row in promised.unique("n_scouts").sort("n_scouts").iter_rows(named=True):
        n, needed = row["n_scouts"], row["conformal_rank"]
        rows.append(
            Row(
                cells={
                    "scouts": str(n),
                    "tasks": Num(value=row["n_tasks"], decimals=0),
                    **{
                        f"rank_{rank}": " to ".join(dict.fromkeys(_ends(n, rank))) for rank in RANKS
                    },
                    "needed": "none" if needed is None else str(ceil(needed)),
                }
            )
        )
    return Table(
        name=f"{study.parameter.name}_promise",
        caption="Share of the jobs that a rank of so few scouts promises on average, without margin",
        columns=(
            Column(key="scouts", label="Scouts"),
            Column(key="tasks", label="Tasks here"),
            *(Column(key=f"rank_{rank}", label=f"Rank {rank}", unit="%") for rank in RANKS),
            Column(key="needed", label=f"Rank that promises {wanted}"),
        ),
        rows=tuple(rows),
        footnote=(
            "For scouts that are like the rest of their task. Two numbers: the rank lies between two scouts, and "
            "what it promises lies between what these two do. None: not even the largest scout promises so much."
        ),
    )
