"""Parts two and three: jobs of whole tasks, each task tested by estimators that have not seen it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.estimators.allocation.priced import PRICE, allocate_at_prices, level_of
from brokerlab.estimators.deployed import Rule, ScoutMemory, rules
from brokerlab.estimators.doubts import Doubts, check_model
from brokerlab.estimators.estimator import Estimator, Predicted
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.holdout import divide_in_time, fit_and_calibrate, replay_left_out
from brokerlab.estimators.records import checked
from brokerlab.estimators.scoring.frontier import score_settings
from brokerlab.estimators.sources.source import At, Source
from brokerlab.estimators.trial import POLICY, Trial, run_trial, trial_levels
from brokerlab.numerics import FloatArray

MODEL = "hierarchy"
OURS = POLICY.format(MODEL)
SENT = "as sent"
MARGINS = (0.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 20.0, 30.0)
OTHER_MARGINS = "PanDA scouts, other margins"
Make = Callable[[], Estimator]


def models(*names: str) -> Mapping[str, Make]:
    """Return the estimators that learn, by name: the hierarchy, and others of these names; without names all.

    Raises:
        ConfigError: There is no estimator of a name.
    """
    from brokerlab.estimators.quantiles import LinearQuantiles, QuantileBoosting

    makes: tuple[Make, ...] = (
        lambda: Hierarchy("memory"),
        lambda: QuantileBoosting("memory"),
        lambda: LinearQuantiles("memory"),
    )
    known = {make().name: make for make in makes}
    wrong = [f"'{name}': {nearest(name, known)}" for name in names if name not in known]
    if wrong:
        raise ConfigError("models: " + "; ".join(wrong))
    return {name: make for name, make in known.items() if not names or name in {MODEL, *names}}


@dataclass(frozen=True, kw_only=True, eq=False)
class JobStudy:
    """What the jobs of one source showed.

    Attributes:
        kind: ``tasks`` (real ones, each left out in turn) or ``archive`` (the later ones).
        sources: What was read, by clock.
        trials: What all estimators did, by clock; the first is the one that the deployed system has.
        doubts: Where the model is not to be trusted, by the first clock.
        learnt: The records that the saved model has learnt from.
        model: That model.
        speeds: Of tasks without times of day: one row per speed and estimator: ``ids_per_s`` and `frontier.points`.
        called: What sentences call it.
        alike: Estimators that said the same as another one, which alone is shown.
        division: Of an archive: tasks and jobs fitted on, that calibrate, and tested.
    """

    kind: str
    sources: Mapping[At, Source]
    trials: Mapping[At, Trial]
    doubts: Doubts
    learnt: pl.DataFrame
    model: Hierarchy
    called: str
    alike: Mapping[str, str] = field(default_factory=dict)
    speeds: pl.DataFrame = field(default_factory=pl.DataFrame)
    division: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def main(self) -> Trial:
        """The trial by the clock of the deployed system."""
        return next(iter(self.trials.values()))


def study_tasks(
    sources: Mapping[At, Source],
    *,
    speeds: Mapping[float, Source],
    makes: Mapping[str, Make],
    level: float,
    n_boot: int,
    seed: int,
) -> JobStudy:
    """Test every estimator on each task, fitted on the other tasks.

    Args:
        sources: Records of whole tasks by clock.
        speeds: Records by the first clock under other speeds of numbering jobs [1/s].
        makes: Of `models`.
        level: Of the bounds that are held against their promise.
        n_boot: Replicates of the bootstrap over tasks.
        seed: Of the bootstrap.

    Raises:
        InsufficientDataError: There is only one task.
    """
    trials: dict[At, Trial] = {}
    alike: dict[str, str] = {}
    for at, source in sources.items():
        records, asked = checked(source.records), trial_levels(level)
        predicted = _ruled(records, asked)
        for name, make in makes.items():
            predicted[name] = replay_left_out(make, records, levels=asked)
        predicted, alike = _apart(predicted)
        trials[at] = _trial(records, predicted, at=at, level=level, n_boot=n_boot, seed=seed)
    main = next(iter(trials.values()))
    others = main.records
    return JobStudy(
        kind="tasks",
        sources=sources,
        trials=trials,
        doubts=check_model(main, MODEL, lambda task: others.filter(pl.col("jeditaskid") != task), by_task=True),
        learnt=others,
        model=fit_and_calibrate(Hierarchy("memory"), others),
        called="real tasks",
        alike=alike,
        speeds=_speeds(speeds, level),
    )  # fmt: skip


def study_archive(
    sources: Mapping[At, Source],
    *,
    called: str,
    makes: Mapping[str, Make],
    level: float,
    n_boot: int,
    seed: int,
) -> JobStudy:
    """Fit on the earlier tasks of an archive, calibrate on the next ones, test on the latest.

    Jobs that ended after the first decision of a tested task teach nothing.

    Args:
        sources: Records of the archive by clock.
        called: What sentences call it.
        makes: Of `models`.
        level: Of the bounds that are held against their promise.
        n_boot: Replicates of the bootstrap over tasks.
        seed: Of the bootstrap.

    Raises:
        InsufficientDataError: Fewer than six tasks.
    """
    parts = {at: divide_in_time(checked(source.records)) for at, source in sources.items()}
    asked = trial_levels(level)
    trials = {}
    for at, (fitting, calibrating, testing) in parts.items():
        predicted = _ruled(testing, asked)
        for name, make in makes.items():
            fitted = make().fit(fitting).conformalize(calibrating)
            predicted[name] = fitted.replay(testing, levels=asked)
        trials[at] = _trial(testing, predicted, at=at, level=level, n_boot=n_boot, seed=seed)
    main = next(iter(trials.values()))
    named = dict(zip(("fitted on", "calibrated on", "tested on"), parts[main.at], strict=True))
    fitting, calibrating, _ = parts[main.at]
    learnt = pl.concat([fitting, calibrating])
    return JobStudy(
        kind="archive",
        sources=sources,
        trials=trials,
        doubts=check_model(main, MODEL, lambda _: learnt, by_task=False),
        learnt=learnt,
        called=called,
        model=Hierarchy("memory").fit(fitting).conformalize(calibrating),
        division={n: (part["jeditaskid"].n_unique(), part.height) for n, part in named.items()},
    )


def _ruled(records: pl.DataFrame, asked: tuple[float, ...]) -> dict[str, Predicted]:
    return {each.name: each.replay(records, levels=asked) for each in rules("memory")}


def _apart(predicted: Mapping[str, Predicted]) -> tuple[dict[str, Predicted], dict[str, str]]:
    """Leave out estimators that learn and said the same as another one; return what they repeat."""
    shown, alike = dict(predicted), {}
    names = [name for name in models() if name in predicted]
    for place, name in enumerate(names):
        for other in names[:place]:
            same = np.array_equal(predicted[name].bounds, predicted[other].bounds)
            if same and other in shown:
                alike[name] = other
                shown.pop(name, None)
    return shown, alike


def _trial(
    records: pl.DataFrame, predicted: Mapping[str, Predicted], *, at: At, level: float, **dice: Any
) -> Trial:
    return run_trial(
        records,
        predicted,
        at=at,
        quantity="memory",
        level=level,
        models=tuple(name for name in models() if name in predicted),
        policies=(MODEL,),
        more=_margins(records),
        **dice,
    )


def _margins(records: pl.DataFrame) -> dict[tuple[str, float | None], FloatArray]:
    """Return what the deployed rule gives with other margins."""
    deployed = rules("memory")[0].formula
    found: dict[tuple[str, float | None], FloatArray] = {}
    if not isinstance(deployed, ScoutMemory):
        return found
    for margin in MARGINS:
        rule = Rule(OTHER_MARGINS, replace(deployed, margin_pct=margin))
        found[OTHER_MARGINS, margin] = rule.replay(records, levels=(0.5,)).point
    return found


def _speeds(sources: Mapping[float, Source], level: float) -> pl.DataFrame:
    """Judge the deployed rule and ours under other clocks."""
    found = []
    for speed, source in sources.items():
        records, asked = checked(source.records), trial_levels(level)
        said = {each.name: each.replay(records, levels=asked).point for each in rules("memory")[:1]}
        told = replay_left_out(models()[MODEL], records, levels=asked)
        said[MODEL] = told.at(level)
        said[OURS] = allocate_at_prices(told, prices=(PRICE,)).at(level_of(PRICE))
        settings: dict[tuple[str, float | None], FloatArray] = {
            (name, None): np.asarray(each) for name, each in said.items()
        }
        judged = score_settings(records, settings, "memory")
        found.append(judged.select(pl.lit(speed).alias("ids_per_s"), pl.all()))
    return pl.concat(found) if found else pl.DataFrame()
