"""The few keys that matter, together: a seeded search over several objectives that goes on where it was stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.calibrate.thresholds.choice import Limits
from brokerlab.calibrate.thresholds.outcomes import OBJECTIVES
from brokerlab.calibrate.thresholds.settings import Key, Setting
from brokerlab.calibrate.thresholds.sweep import Sweep
from brokerlab.gdpconfig.values import digest_of

if TYPE_CHECKING:
    import optuna

FAR = 1e6
"""Stands for what could not be simulated, or passes a limit without measure."""
STEP = 0.03
"""Steps smaller than this part of a value are not halved: nothing is proposed to more digits."""
STARTUP = 6
"""Trials drawn at random before the sampler learns from them."""


@dataclass(frozen=True)
class Box:
    """Between which values a key is searched.

    Attributes:
        key: The key.
        low: Least value.
        high: Largest value.
        start: Best value of the grid.
    """

    key: Key
    low: float
    high: float
    start: float

    def to_dict(self) -> dict[str, Any]:
        """Return the key's name and the values."""
        return {"key": self.key.name, "low": self.low, "high": self.high, "start": self.start}


def that_matter(sweep: Sweep, limits: Limits, *, most: int, relevant: float) -> list[Box]:
    """Return the keys whose values change an objective by its whole interval, those that lower the objective most first.

    Args:
        sweep: Every key alone.
        limits: What may get worse: a best value breaks none.
        most: Keys at most.
        relevant: Smallest change that counts, as a part of the current value.

    Returns:
        The keys, each with the neighbours in the grid of its best value as bounds.
    """
    ranked: list[tuple[float, int, Box]] = []
    for key in sweep.space.keys:
        singles = [one for one in sweep.space.single(key.name) if one in sweep.found]
        if not singles or not any(_changes(sweep.found[one], relevant) for one in singles):
            continue
        least, best = 0.0, key.current
        for one in singles:
            change = float(sweep.row(one, sweep.objective)["diff"])
            if change < least and not limits.broken(sweep.found[one]):
                least, best = change, one.values[0][1]
        box = _box(key, best)
        if box is not None:
            ranked.append((least, len(ranked), box))
    return [box for _, _, box in sorted(ranked, key=lambda one: one[:2])[:most]]


def _changes(found: pl.DataFrame, relevant: float) -> bool:
    """Tell whether a setting changes any objective by its whole interval."""
    told = found.filter(pl.col("quantity").is_in(OBJECTIVES))
    sure = (pl.col("diff_lo") > 0) | (pl.col("diff_hi") < 0)
    worth = pl.col("diff").abs() >= relevant * pl.col("before").abs()
    return not told.filter((sure & worth).fill_null(value=False)).is_empty()


def _box(key: Key, best: Any) -> Box | None:
    """Return the neighbours of a value in the grid; of no limit at all, from the largest value on."""
    numbers = [value for value in key.grid if value is not None]
    if not numbers:
        return None
    if best is None:
        best = numbers[-1]
    place = numbers.index(best) if best in numbers else 0
    low, high = numbers[max(place - 1, 0)], numbers[min(place + 1, len(numbers) - 1)]
    return Box(key, low, high, best) if low < high else None


def refine(
    sweep: Sweep,
    boxes: Sequence[Box],
    limits: Limits,
    *,
    trials: int,
    seed: int,
    folder: Path | None = None,
) -> int:
    """Search between the neighbours of the best values, all keys together.

    Each trial is simulated with the first number of replications; what it finds is in the sweep.

    Args:
        sweep: Of the calibration period; is added to.
        boxes: The keys and their bounds.
        limits: What may get worse: trials that break one count as worse than those that do not.
        trials: Trials in all, those of an earlier, interrupted search among them.
        seed: Of the sampler: an interrupted search goes on as it would have.
        folder: Where the search is kept; null: nowhere.

    Returns:
        Trials made, earlier ones included.

    Source: multi-objective tree-structured Parzen estimator: Ozaki et al., JAIR 73 (2022) 1209, doi:10.1613/jair.1.13188.
    """
    if not boxes or trials < 1:
        return 0
    with _study(sweep, boxes, seed, folder) as study:
        import optuna

        complete = optuna.trial.TrialState.COMPLETE
        for stale in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
            study.tell(stale.number, state=optuna.trial.TrialState.FAIL)
        done = len(study.get_trials(deepcopy=False, states=(complete,)))
        if not done:
            _first(study, sweep, boxes, limits)
        for number in range(max(done, 1), trials):
            # a sampler of its own for each trial, so that an interrupted search goes on with the same draws
            study.sampler = optuna.samplers.TPESampler(seed=seed + number, n_startup_trials=STARTUP)
            _trial(study, sweep, boxes, limits)
        again = study.get_trials(deepcopy=False, states=(complete,))
        sweep.once([_setting(boxes, trial.params) for trial in again])
        return len(again)


def polish(sweep: Sweep, boxes: Sequence[Box], limits: Limits, *, rounds: int) -> None:
    """Halve the steps beside the best setting that keeps the limits, key by key.

    The search spreads over the whole front; the best within the limits often lies where a limit begins to be broken.

    Args:
        sweep: Of the calibration period; is added to.
        boxes: The keys and their bounds.
        limits: What may get worse.
        rounds: How often.
    """
    names = {box.key.name for box in boxes}
    for _ in range(rounds):
        best = _best(sweep, limits, names)
        middles = [one for box in boxes for one in _middles(sweep, box, best)]
        if not middles:
            return
        sweep.once(middles)


def _best(sweep: Sweep, limits: Limits, names: set[str]) -> Setting:
    """Return the setting of some keys with least objective that breaks no limit; the current one where none is less."""
    least, best = 0.0, Setting()
    for one, found in sweep.found.items():
        change = float(sweep.row(one, sweep.objective)["diff"])
        if names.issuperset(one.keys) and change < least and not limits.broken(found):
            least, best = change, one
    return best


def _middles(sweep: Sweep, box: Box, best: Setting) -> list[Setting]:
    """Return the settings half way to the values of a key that were tried beside the best, the other keys as there."""
    name, values = box.key.name, dict(best.values)
    others = {key: value for key, value in values.items() if key != name}
    here = values.get(name, box.key.current)
    if here is None:
        return []
    tried = {box.low, box.high}
    for one in sweep.found:
        told = dict(one.values)
        value = told.pop(name, box.key.current)
        if told == others and value is not None:
            tried.add(value)
    sides = [max((v for v in tried if v < here), default=None), min((v for v in tried if v > here), default=None)]  # fmt: skip
    log = box.key.threshold.scale == "log"
    found = []
    for side in (side for side in sides if side is not None):
        half = (side * here) ** 0.5 if log and side > 0 and here > 0 else (side + here) / 2
        value = box.key.threshold.snapped(half)
        if (
            value not in tried
            and value != here
            and abs(half - here) > STEP * max(abs(half), abs(here))
        ):
            found.append(Setting.of({**others, name: value}))
    return found


def _setting(boxes: Sequence[Box], params: dict[str, Any]) -> Setting:
    """Return the setting of a trial, in values as a person would write them."""
    return Setting.of({box.key.name: box.key.threshold.snapped(params[box.key.name]) for box in boxes})  # fmt: skip


def _scores(sweep: Sweep, setting: Setting, limits: Limits) -> tuple[list[float], dict[str, float]]:
    """Return the objectives, in per cent of now where that is not 0, and the limits (above 0: broken)."""
    sweep.once([setting])
    if setting not in sweep.found:  # it changes nothing, or could not be simulated
        unchanged = not sweep.space.entries(setting)
        return [0.0 if unchanged else FAR] * len(OBJECTIVES), {}
    found = sweep.found[setting]
    rows = {row["quantity"]: row for row in found.iter_rows(named=True)}
    scores = [float(rows[n]["diff"] if rows[n]["diff_pct"] is None else rows[n]["diff_pct"]) if rows[n]["diff"] is not None else 0.0 for n in OBJECTIVES]  # fmt: skip
    excess = limits.excess(found)
    return scores, {name: min(excess.get(name, 0.0), FAR) for name in limits.values()}


def _first(study: optuna.Study, sweep: Sweep, boxes: Sequence[Box], limits: Limits) -> None:
    """Begin with the best values of the grid, all together."""
    import optuna

    params = {box.key.name: box.start for box in boxes}
    scores, constraints = _scores(sweep, _setting(boxes, params), limits)
    study.add_trial(
        optuna.trial.create_trial(
            values=scores,
            params=params,
            distributions={box.key.name: _distribution(box) for box in boxes},
            constraints=constraints,
        )
    )


def _trial(study: optuna.Study, sweep: Sweep, boxes: Sequence[Box], limits: Limits) -> None:
    trial = study.ask({box.key.name: _distribution(box) for box in boxes})
    scores, constraints = _scores(sweep, _setting(boxes, trial.params), limits)
    for name, value in constraints.items():
        trial.set_constraint(name, value)
    study.tell(trial, scores)


def _distribution(box: Box) -> optuna.distributions.BaseDistribution:
    import optuna

    log = box.key.threshold.scale == "log" and box.low > 0
    if box.key.threshold.integer:
        return optuna.distributions.IntDistribution(int(box.low), int(box.high), log=log)
    return optuna.distributions.FloatDistribution(float(box.low), float(box.high), log=log)


@contextmanager
def _study(
    sweep: Sweep, boxes: Sequence[Box], seed: int, folder: Path | None
) -> Iterator[optuna.Study]:
    """Open the search, or begin it; its name tells everything it depends on."""
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalStorage

    digest = sweep.runs.store.digest if sweep.runs.store else ""
    about = [digest, sweep.space.config.digest, [box.to_dict() for box in boxes], seed]
    name = digest_of(
        [*about, [str(at) for at in sweep.period], sweep.seed, sweep.replications.first]
    )
    storage = None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"joint-{name.removeprefix('sha256:')[:16]}.log"
        storage = JournalStorage(JournalFileBackend(str(file)))
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield optuna.create_study(
            storage=storage,
            study_name=name,
            directions=["minimize"] * len(OBJECTIVES),
            load_if_exists=True,
        )
    finally:
        optuna.logging.set_verbosity(before)
