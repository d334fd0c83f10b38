"""What every estimator must keep: it never looks ahead, and its forms say the same."""

from __future__ import annotations

import copy

import numpy as np
import polars as pl

from brokerlab.estimators.estimator import order
from brokerlab.estimators.records import checked

LEVELS = (0.5, 0.9, 0.95)
MEMORY_MB, WALL_S = 2000.0, 5000.0


def random_records(
    n=60, *, seed=0, tasks=4, quantity="memory", cores=(1, 4, 8), whole_seconds=True, scouts=10
):
    """Jobs of a few tasks that overlap in time: some without an end, some killed, some values null."""
    rng = np.random.default_rng(seed)
    task = rng.integers(0, tasks, n)
    decided = np.sort(rng.uniform(0, 20 * n, n))
    wall = rng.lognormal(np.log(200), 0.8, n)
    if whole_seconds:  # ties between ends and decisions
        decided, wall = np.floor(decided / 50) * 50, np.floor(wall / 50) * 50
    usual = MEMORY_MB if quantity == "memory" else WALL_S
    used = usual * (1 + task) * rng.lognormal(0, 0.2, n)
    number = np.array([np.sum(task[:i] == task[i]) for i in range(n)])

    def some(values, share, dtype=float):
        return [
            dtype(v) if keep else None
            for v, keep in zip(values, rng.random(n) > share, strict=True)
        ]

    return pl.DataFrame(
        {
            "pandaid": rng.permutation(n) + 100,
            "jeditaskid": task + 7,
            "kind": some(np.array(["reco", "evgen"])[task % 2], 0.1, str),
            "queue": some(np.array(["A", "B", "C"])[rng.integers(0, 3, n)], 0.1, str),
            "cores": rng.choice(cores, n),
            "events": some(rng.integers(0, 2000, n), 0.1, int),
            "input_mb": some(rng.lognormal(5, 1, n), 0.1),
            "corepower": some(rng.uniform(8, 18, n), 0.1),
            "requested": some(np.full(n, 4 * usual), 0.1),
            "sent": some(np.full(n, 3 * usual), 0.1),
            "is_scout": number < scouts,
            "decided_s": decided,
            "ended_s": some(decided + wall, 0.05),
            "used": used,
            "censored": rng.random(n) < 0.1,
            "wall_s": wall,
        },
        schema_overrides={"kind": pl.String, "queue": pl.String, "events": pl.Int64},
    )


def assert_never_looks_ahead(estimator, records, *, levels=LEVELS, cuts=5, seed=0, rtol=0.0):
    """Fail where an estimator uses what was not known when a job was decided.

    Checks that (a) what ends later than a job is decided, and what is decided later, may be anything
    or not exist; (b) the order of the rows does not matter; (c) replay changes nothing in the
    estimator; (d) replay says the same as predict and update, row by row.

    Args:
        estimator: Fitted, if it must be.
        records: As `random_records` makes them; predict and update are called for every row.
        levels: Asked for.
        cuts: Moments of (a).
        seed: Of the changes.
        rtol: What may differ by rounding.
    """
    frame = checked(records)
    first = estimator.replay(frame, levels=levels)
    _assert_well_formed(first, frame, levels)
    rng = np.random.default_rng(seed)
    events = order(frame)
    for cut in np.linspace(0, events.size, cuts + 2).astype(int)[1:-1]:
        before = np.sort(~events[:cut][events[:cut] < 0])
        changed = _with_another_future(frame, events[:cut], rng)
        _same(first, estimator.replay(changed, levels=levels), before, "another future", rtol)
        past = changed[before.tolist()]
        again = estimator.replay(past, levels=levels)
        assert again.pandaid.tolist() == frame["pandaid"].to_numpy()[before].tolist()
        _same(first, again, before, "no future", rtol, there=np.arange(before.size))
    everything = np.arange(frame.height)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=seed)
    _same(first, estimator.replay(shuffled, levels=levels), everything, "other rows' order", rtol)
    _same(first, estimator.replay(frame, levels=levels), everything, "a second replay", rtol)
    _assert_steps_agree(first, estimator, frame, events, levels, rtol)


def _assert_well_formed(predicted, frame, levels):
    assert predicted.levels == tuple(levels)
    assert predicted.pandaid.tolist() == frame["pandaid"].to_list()
    assert predicted.bounds.shape == (frame.height, len(levels))
    assert predicted.point.shape == predicted.seen.shape == (frame.height,)
    assert not np.isnan(predicted.bounds).any()
    assert (predicted.bounds[:, 1:] >= predicted.bounds[:, :-1]).all(), "bounds fall with the level"


def _with_another_future(frame, events, rng):
    """Change everything about ends that are not among the events."""
    open_rows = ~np.isin(np.arange(frame.height), events[events >= 0])
    factor = np.where(open_rows, rng.lognormal(0, 1.5, frame.height), 1.0)
    flip = open_rows & (rng.random(frame.height) < 0.5)
    never = open_rows & (rng.random(frame.height) < 0.3)
    return frame.with_columns(
        used=pl.col("used") * factor,
        wall_s=pl.col("wall_s") * factor,
        censored=pl.col("censored") ^ pl.Series(flip),
        ended_s=pl.when(~pl.Series(never)).then(pl.col("ended_s")),
    )


def _same(one, other, rows, said, rtol, *, there=None):
    there = rows if there is None else there
    for name in ("bounds", "point", "seen"):
        np.testing.assert_allclose(
            getattr(other, name)[there],
            getattr(one, name)[rows],
            rtol=rtol,
            err_msg=f"{said}: {name}",
        )


def _assert_steps_agree(first, estimator, frame, events, levels, rtol):
    """Walk through the records with a copy that predicts and updates, one row at a time."""
    online = copy.deepcopy(estimator)
    for event in events.tolist():
        if event >= 0:
            online.update(frame.slice(event, 1))
            continue
        row = ~event
        said = online.predict(frame.slice(row, 1), levels=levels)
        bounds = [name for name in said.columns if name.startswith("bound_")]
        told = [name.replace("bound_", "promised_") for name in bounds if first.own is not None]
        assert said.columns == ["pandaid", "seen", "point", *bounds, *told]
        assert said["pandaid"].to_list() == [frame["pandaid"][row]]
        got = [said["seen"][0], said["point"][0], *said.select(bounds).row(0)]
        expected = [first.seen[row], first.point[row], *first.bounds[row]]
        np.testing.assert_allclose(got, expected, rtol=rtol, err_msg=f"row {row}, step by step")
