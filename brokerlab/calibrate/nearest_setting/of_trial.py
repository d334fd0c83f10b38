"""The nearest setting to what an estimator would have allocated in a trial: of memory, and of walltime.

`stated_prices` are the stated loss as prices of attempts: what an estimator must minimise to be judged by that loss.
"""

from __future__ import annotations

import math
from datetime import timedelta

import numpy as np
import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.calibrate.nearest_setting.translate import Span, Translation, translate
from brokerlab.calibrate.percentiles.parameters import Assumptions, LossWeights, parameter_named
from brokerlab.calibrate.percentiles.study import kills
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.allocation import Ladder, Prices, amount_per_unit, cheapest
from brokerlab.estimators.trial import Trial
from brokerlab.numerics import FloatArray
from brokerlab.rulesets import RuleSetName
from brokerlab.scouts import ScoutRules
from brokerlab.units import HOUR_S


def translate_trial(
    trial: Trial,
    archive: Archive,
    *,
    model: str,
    name: str,
    learnt: pl.DataFrame,
    rules: RuleSetName = "document",
    n_boot: int = 2000,
    seed: int = 0,
) -> Translation:
    """Translate the allocations that cost least of the stated loss into rank, margin and minimum of the scouts' rule.

    The setting is judged on the tasks that were created from the first of the trial to its last.

    Args:
        trial: Of memory, on later tasks of the archive.
        archive: The archive.
        model: Name of the model in the trial.
        name: What the allocations are called.
        learnt: The records that the model learnt from: how long jobs usually take.
        rules: By which scouts set the memory of their task.
        n_boot: Replicates of the bootstrap over tasks.
        seed: Of the bootstrap.

    Raises:
        BrokerlabError: See :func:`translate`.
    """
    allocated = allocate_by_stated_loss(trial, model, learnt)
    return translate(
        archive,
        pl.DataFrame({"pandaid": trial.records["pandaid"], "allocated": allocated}),
        parameter="ramcount",
        name=name,
        span=_span(archive, trial.records),
        question=kills(n_boot=n_boot, seed=seed),
        assumptions=Assumptions(rules=ScoutRules(rules)),
    )


def translate_bound(
    trial: Trial,
    archive: Archive | None,
    *,
    model: str,
    level: float = 0.98,
    rules: RuleSetName = "document",
    n_boot: int = 2000,
    seed: int = 0,
) -> Translation:
    """Translate a bound of walltime given at submission into rank and margin of the scouts' rule.

    A bound that is refused allocates nothing: there the current setting stands in.

    The limit of the setting is the share of jobs that the bound lets through: 1 - ``level``. With an archive it is judged on
    the tasks that were created from the first of the trial to its last.

    Args:
        trial: Of walltime at submission.
        archive: Whose tasks were judged; None, or one without tasks: the jobs of the trial answer alone, without a proposal.
        model: Name of the model in the trial.
        level: Of its bound, one of `trial.trial_levels`.
        rules: By which scouts set the time of their task.
        n_boot: Draws of tasks.
        seed: Of the draws.

    Raises:
        InsufficientDataError: No bound of the level can be promised.
        BrokerlabError: See :func:`translate`.
    """
    held = trial.held[model]
    if not np.isfinite(held.at(level)).any():
        raise InsufficientDataError(
            f"{model}: no bound of {100 * level:g} % can be promised; it needs {math.ceil(level / (1 - level) - 1e-9)} finished jobs "
            "of a task"
        )
    stored = archive if archive is not None and archive.has("tasks") else None
    return translate(
        trial.records if stored is None else stored,
        pl.DataFrame({"pandaid": held.pandaid, "allocated": held.at(level)}),
        parameter="cputime",
        name=f"{model}, bound {100 * level:g} %",
        span=None if stored is None else _span(stored, trial.records),
        question=kills(round(1 - level, 9), n_boot=n_boot, seed=seed),
        assumptions=Assumptions(rules=ScoutRules(rules)),
    )


def allocate_by_stated_loss(trial: Trial, model: str, learnt: pl.DataFrame) -> FloatArray:
    """Return the first allocations that cost least of the stated loss [MB]; infinite where nothing is known.

    A job is expected to take as long as the median of its kind among the jobs learnt from.
    """
    records, predicted = trial.records, trial.predicted[model]
    usual = learnt.group_by("kind").agg(usual=pl.col("wall_s").median())
    seconds = records.join(usual, on="kind", how="left", nulls_equal=True, maintain_order="left")
    wall_s = seconds["usual"].fill_null(learnt["wall_s"].median()).to_numpy()
    cores = records["cores"].cast(pl.Float64).to_numpy()
    ladder, prices = stated_prices("ramcount")
    known = np.isfinite(predicted.bounds[:, 0])
    first = np.full(known.size, np.inf)
    first[known] = cheapest(
        predicted.bounds[known],
        levels=predicted.levels,
        ladder=ladder,
        prices=prices,
        amount=amount_per_unit("memory", wall_s=wall_s[known]),
        cores=cores[known],
        core_hours=(cores * wall_s / HOUR_S)[known],
    ).first
    return first


def _span(archive: Archive, records: pl.DataFrame) -> Span | None:
    """Return when the judged tasks were created, from the first to behind the last; null: not known."""
    created = archive.scan("tasks").select("jeditaskid", "creationdate").collect()
    dates = created.join(records, on="jeditaskid", how="semi")["creationdate"].drop_nulls().sort()
    return (dates[0], dates[-1] + timedelta(microseconds=1)) if len(dates) else None


def stated_prices(
    parameter: str = "ramcount",
    *,
    loss: LossWeights | None = None,
    assumptions: Assumptions | None = None,
) -> tuple[Ladder, Prices]:
    """Return the ladder and the prices under which the cheapest allocation costs least of the stated loss.

    The share of slots that cannot take a job is not among them: it is not a job's alone.

    Args:
        parameter: ``ramcount`` or ``cputime``.
        loss: None: the parameter's weights.
        assumptions: With one retry; None: the back-test's.

    Returns:
        Of a ladder that multiplies what failed once, and gives up after that; prices in core h.

    Raises:
        ConfigError: Another parameter, or other than one retry.

    Example:
        >>> ladder, prices = stated_prices("ramcount")
        >>> ladder.factor, ladder.attempts
        (2.0, 2)
        >>> prices
        Prices(idle=0.5, lost=0.0, failure=0.5, waiting_s=0.0, burnt=1.0, giving_up=9.5)
    """
    made = assumptions or Assumptions()
    if parameter_named(parameter).name == "outdiskcount" or len(made.retry_factors) != 1:
        raise ConfigError(
            f"prices of the loss of {parameter} with {len(made.retry_factors)} retries: they are those of "
            "ramcount or cputime with one retry"
        )
    weights = loss or LossWeights.default(parameter)
    memory = parameter == "ramcount"
    share = made.killed_after if memory else 1.0
    prices = Prices(
        idle=weights.over,
        lost=0.0 if memory else weights.killed_coreh,
        burnt=weights.killed_coreh * share if memory else 0.0,
        failure=weights.n_exceed,
        giving_up=max(
            weights.n_lost - weights.n_exceed, 0.0
        ),  # the second kill is not counted again
    )
    ladder = Ladder(kind="factor", factor=made.retry_factors[0], attempts=2)
    return ladder, prices
