"""Translate allocations into the setting of the deployed system that comes nearest, and judge it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.calibrate.assumptions import Assumptions
from brokerlab.calibrate.judge import Limit, Question
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.nearest_setting.family import MINIMA, MINIMUM_KEY, FamilySetting
from brokerlab.calibrate.nearest_setting.history import History, Span, of_archive, of_records
from brokerlab.calibrate.nearest_setting.study import Study
from brokerlab.calibrate.nearest_setting.translation import Translation
from brokerlab.calibrate.parameters import parameter_named
from brokerlab.calibrate.verdict import current_setting
from brokerlab.errors import ConfigError, DataError
from brokerlab.frames import prepared
from brokerlab.scouts import ScoutRules


class Given(dy.Schema):
    """One row per job: what an estimator would have given it as it was decided."""

    pandaid = dy.Int64(metadata={"meaning": "the job"})
    allocated = dy.Float64(
        nullable=True,
        metadata={
            "unit": "MB of the whole job or s of walltime",
            "meaning": "first allocation, above 0; null or infinite: it cannot tell",
        },
    )


def translate(
    source: Archive | str | Path | Any,
    allocations: Any,
    *,
    parameter: str = "ramcount",
    name: str = "the estimator",
    span: Span | None = None,
    created_at: datetime | None = None,
    ranks: Iterable[int] = range(50, 100),
    margins: Iterable[int] | None = None,
    minima: Iterable[int | None] = MINIMA,
    loss: LossWeights | None = None,
    max_exceed: float = 0.02,
    relevant: float = 0.05,
    blocks: int = 4,
    assumptions: Assumptions | None = None,
    rules: ScoutRules | None = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> Translation:
    """Say which setting of the deployed system comes nearest to an estimator, and what is lost by it.

    On the same jobs, by the same loss and retries: what the estimator's allocations cost, what the best
    rank, margin and minimum of the scouts' rule cost, and what the current setting costs. Settings are chosen
    again and again on the tasks so far and scored on those that follow, by `judge`; only what beats the
    current one there becomes a proposal.

    The minimum is tried together with another rank or margin, not alone.

    Args:
        source: An archive or its folder; or records (memory for ``ramcount``, walltime for ``cputime``),
            which have no settings and no base memory: the answer is then "no answer", with the table.
        allocations: ``pandaid, allocated`` [MB of the whole job or s]; made without knowing later jobs, which
            cannot be seen here. Only tasks that have some are compared, so that those an estimator learnt from
            can be left out; the setting is judged on all. Where a single job has none, the
            current setting stands in for it.
        parameter: ``ramcount`` or ``cputime``.
        name: Of the estimator, for sentences.
        span: When the tasks that are looked at were created, the end is out; None: all of them.
        created_at: When the proposal is made, UTC without zone; None: when the last task was created.
        ranks: Ranks of the family.
        margins: Margins of the family [%]; None: those of the parameter. Of cputime only the fixed one can be
            chosen.
        minima: Minima of the family [MB]; None among them: no minimum.
        loss: Weights; None: the parameter's.
        max_exceed: Largest accepted share of killed first attempts, for the setting, as a mean over tasks.
        relevant: Smallest change of the loss that matters, as a part of its current value.
        blocks: Blocks of time, see `judge`.
        assumptions: Of the back-test; None: the defaults with the minimum that is set. Its minimum must be the
            one that is set.
        rules: Of the estimate, where no assumptions are given; None: as the documents say.
        n_boot: Bootstrap replicates over tasks.
        seed: Of the bootstrap.

    Returns:
        A :class:`Translation`.

    Raises:
        ConfigError: A parameter that cannot be translated, a span of records, or another minimum than is set.
        SchemaError: Columns missing.
        DataError: Allocations that are not above 0, or a job twice, or none for any job.
        InsufficientDataError: No task can be scored.

    Source: scouts.md 5.1 and 5.2; design.md, idea 6; spec of calibration, section 2.
    """
    chosen = parameter_named(parameter)
    if chosen.name == "outdiskcount":
        raise ConfigError(
            "parameter='outdiskcount': estimators are of ramcount (memory) or cputime"
        )
    acts_by = assumptions.rules if assumptions else rules or ScoutRules()
    history = _history(source, chosen.name, acts_by, span)
    acting = history.config.get(MINIMUM_KEY) if chosen.name == "ramcount" else None
    made = assumptions or Assumptions(rules=acts_by, ram_min_mb=acting)
    if made.ram_min_mb != acting:
        raise ConfigError(
            f"assumptions.ram_min_mb={made.ram_min_mb}: {MINIMUM_KEY} acts as {acting}"
        )
    rank, margin = current_setting(history.config, chosen.name)
    return Study(
        history=history,
        given=_checked(allocations),
        parameter=chosen,
        name=name,
        made=made,
        weights=loss or LossWeights.default(chosen.name),
        current=FamilySetting(rank=rank, margin_pct=margin, minimum_mb=made.ram_min_mb),
        ranks=tuple(ranks),
        margins=None if margins is None else tuple(margins),
        minima=tuple(minima),
        question=Question(
            limits=(Limit(quantity="exceed_rate", most=max_exceed),),
            relevant=relevant,
            blocks=blocks,
            confidence=made.confidence,
            n_boot=n_boot,
            seed=seed,
        ),
    ).translation(created_at)


def _history(source: Any, parameter: str, rules: ScoutRules, span: Span | None) -> History:
    if isinstance(source, Archive | str | Path):
        return of_archive(source, rules=rules, span=span)
    if span is not None:
        raise ConfigError(f"span={span}: it is of the tasks of an archive; records have none")
    return of_records(source, parameter, rules)


def _checked(allocations: Any) -> pl.DataFrame:
    """Return what is given, held to its contract; everything wrong at once."""
    frame = prepared({"allocations": allocations}, {"allocations": Given})["allocations"]
    wrong = {
        "allocated: above 0 is allowed, or null": pl.col("allocated").is_nan()
        | (pl.col("allocated") <= 0),
        "pandaid: each job once": pl.col("pandaid").is_duplicated(),
    }
    found = [
        f"allocations.{said}; {rows.height} rows, such as pandaid {rows['pandaid'][0]}"
        for said, where in wrong.items()
        if (rows := frame.filter(where)).height
    ]
    if found:
        raise DataError("; ".join(found) + "; mend or leave out those rows")
    return frame
