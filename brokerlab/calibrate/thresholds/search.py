"""Which settings are worth judging: every key alone over its grid, the others beside the best one, and the values between.

What a key does beside the best one is asked of each, since one that starves tasks hides what the others do to them.

All of it looks at the first period alone, so that the later ones score what they had no part in finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import Question, Sums
from brokerlab.calibrate.thresholds.settings import Key, Setting
from brokerlab.calibrate.thresholds.simulations import Simulations
from brokerlab.calibrate.thresholds.tables import tried_frame
from brokerlab.numerics import BoolArray

MOST_JUDGED = 6
"""Settings that are judged at most, those of the least objective: each takes many more simulations."""
STEP = 0.03
"""Steps smaller than this part of a value are not halved: nothing is proposed to more digits."""


def search(
    first: Simulations,
) -> tuple[tuple[Setting, ...], pl.DataFrame, tuple[str, ...]]:
    """Search the first period.

    Returns:
        The settings worth judging, at least one: of those that may be the best, since their interval reaches below that of
        the best within the limits, and below 0, the `MOST_JUDGED` best; what was tried, see :func:`.tables.tried_frame`;
        names of the keys that were searched together.
    """
    options = first.options
    known = first.among(one for key in first.space.keys for one in first.space.single(key.name))
    values = _best_values(first, known)
    for _ in range(1, options.most_keys):
        best = dict(_best(first, known).values)
        beside = [
            Setting.of({**best, **value}) for name, value in values.items() if name not in best
        ]
        new = [one for one in beside if one not in known]
        if not new:
            break
        known = first.among([*known, *new])
    names = list(dict.fromkeys([*_best(first, known).keys, *values]))[: options.most_keys]
    keys = [first.space.key(name) for name in names]
    for _ in range(options.rounds):
        best_now = _best(first, known)
        middles = [middle for key in keys for middle in _middles(key, best_now, known)]
        new = [one for one in middles if one not in known and first.space.entries(one)]
        if not new:
            break
        known = first.among([*known, *new])
    tried = tried_frame(first, known)
    rows = tried.filter(pl.col("quantity") == options.objective).sort("diff", "setting")
    sums, question = _sums(first, known), first.question(known)
    good = [known[at].name for at in np.flatnonzero(_within(sums, question))]
    within = rows.filter(pl.col("setting").is_in(good))
    least = within["diff_hi"].min()
    most = min(0.0, float(least)) if isinstance(least, float) else 0.0
    rivals = rows.filter(~(pl.col("diff_lo") > most).fill_null(value=False))["setting"]
    judged = {*rivals.head(MOST_JUDGED), *rows["setting"].head(1), *within["setting"].head(1)}
    kept = tuple(one for one in known if one.name in judged)
    return kept, tried, tuple(names)


def _best(first: Simulations, known: Sequence[Setting]) -> Setting:
    """Return the setting of least objective within the limits."""
    sums = _sums(first, known)
    return known[sums.choose(range(sums.n_blocks), first.question(known), 1.0)]


def _best_values(first: Simulations, known: Sequence[Setting]) -> dict[str, dict[str, Any]]:
    """Return each key with its best other value, the key with the least objective first."""
    sums, question = _sums(first, known), first.question(known)
    mean = sums.mean(question.objective, range(sums.n_blocks))
    within = _within(sums, question)
    order = sorted(range(len(known)), key=lambda at: (not within[at], mean[at]))
    values: dict[str, dict[str, Any]] = {}
    for one in (known[at] for at in order if at != sums.current):
        values.setdefault(one.keys[0], dict(one.values))
    return values


def _sums(first: Simulations, known: Sequence[Setting]) -> Sums:
    """Return the sums of settings, of which none is preferred for its small effort."""
    return replace(Sums.of(first.outcomes(known), first.question(known)), efforts=())


def _within(sums: Sums, question: Question) -> BoolArray:
    """Return which settings keep their limits, one standard error off."""
    excess = sums.excess(range(sums.n_blocks), question, 1.0, errors=1.0)
    return np.asarray(excess == 0)


def _middles(key: Key, best: Setting, known: Iterable[Setting]) -> list[Setting]:
    """Return the settings half way to the values of a key that were tried beside the best, the other keys as there."""
    values = dict(best.values)
    others = {name: value for name, value in values.items() if name != key.name}
    here = values.get(key.name, key.current)
    if here is None:
        return []
    tried = {value for value in key.grid if value is not None}
    for one in known:
        rest = dict(one.values)
        value = rest.pop(key.name, key.current)
        if rest == others and value is not None:
            tried.add(value)
    sides = [
        max((v for v in tried if v < here), default=None),
        min((v for v in tried if v > here), default=None),
    ]
    log = key.threshold.scale == "log"
    found = []
    for side in (side for side in sides if side is not None):
        half = (side * here) ** 0.5 if log and side > 0 and here > 0 else (side + here) / 2
        value = key.threshold.snapped(half)
        apart = abs(half - here) > STEP * max(abs(half), abs(here))
        if value not in tried and value != here and apart:
            found.append(Setting.of({**others, key.name: value}))
    return found
