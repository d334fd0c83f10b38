"""Decide again what other settings or facts change, and nothing else: found by comparing facts, never by lists of keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.decide import in_parts, parts
from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.engine.evaluation import Failures, evaluated
from brokerlab.brokerage.engine.pairs import Facts, Side
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.gdpconfig import Config
from brokerlab.numerics import IntArray

D = TypeVar("D", bound=PlaceDecisions)


def changes(old: Facts, new: Facts) -> dict[str, pl.Series]:
    """Return the facts that differ: name to ``t`` of the tasks, of those in both, that see another value.

    Settings are facts of tasks.
    """
    before = old.tasks.join(new.tasks, on="t", how="semi", maintain_order="left")
    now = new.tasks.join(old.tasks, on="t", how="semi", maintain_order="left")
    found = {
        name: now["t"].filter(before[name].ne_missing(now[name]))
        for name in now.columns
        if not before[name].equals(now[name])
    }
    for one, other in zip(old.sides, new.sides, strict=True):
        if one is not other:
            found |= _changes_of_side(one, other, now)
    return found


def _changes_of_side(old: Side, new: Side, tasks: pl.DataFrame) -> dict[str, pl.Series]:
    found = {}
    for name, value in new.missing.items():
        columns = [new.task_key, new.queue_key, name]
        before, now = (side.rows.select(columns) for side in (old, new))
        if value != old.missing[name]:
            found[name] = tasks["t"]
        elif not before.equals(now):
            pairs = ((before, now), (now, before))
            lost = [a.join(b, on=columns, how="anti", nulls_equal=True) for a, b in pairs]
            of_tasks = tasks.join(pl.concat(lost), on=new.task_key, how="semi")
            if of_tasks.height:
                found[name] = of_tasks["t"]
    return found


def asked_anew(checks: Sequence[Rule], changed: Mapping[str, pl.Series]) -> list[int]:
    """Return the numbers of the checks that read what changed."""
    return [
        bit for bit, check in enumerate(checks) if changed.keys() & {*check.when.meta.root_names()}
    ]


def patched(
    failed: IntArray, part: Facts, checks: Sequence[Rule], again: Sequence[int]
) -> IntArray:
    """Return the failed checks with those numbered in ``again`` evaluated anew."""
    if not again or not len(failed):
        return failed
    found = evaluated(part, [checks[bit] for bit in again])["failed"].to_numpy()
    patched = failed & ~np.int64(sum(1 << bit for bit in again))
    for place, bit in enumerate(again):
        patched |= (found >> place & 1) << bit
    return patched


def redecided(decisions: D, config: Config) -> D:
    """Return the decisions under another configuration of the tasks that it may touch; all others stay as they are.

    Only checks that read a changed fact are asked again, and only tasks of which one turned, or whose weight, caps or
    end before any queue is looked at read a changed fact, are weighed and ranked again.

    Raises:
        ConfigError: Settings that no rule can work with.
    """
    old = decisions.world
    new = old.with_config(config)
    if new.tasks.height > old.tasks.height:  # the decisions are on some tasks
        new = new.of_tasks(old.tasks.select("t"))
    changed = changes(old.facts, new.facts)
    again = asked_anew(new.checks, changed)
    stays = new.facts.tasks.select("t").join(old.facts.tasks, on="t", how="semi")
    touched = [changed[name].alias("t").to_frame() for name in changed.keys() & new.reads]
    touched += _different(old.outcomes, new.outcomes)
    known: dict[int, pl.DataFrame] = {}
    for loop, every in decisions.known.items():
        pairs = every.join(stays, on="t", how="semi", maintain_order="left")
        facts = new.in_loop(pairs.select("t").unique(), loop)
        before, now, start = pairs["failed"].to_numpy(), [], 0
        for part in in_parts(facts):
            n = _n_pairs(pairs, part)
            now.append(patched(before[start : start + n], part, new.checks, again))
            start += n
        failed = np.concatenate(now)
        touched.append(pairs.filter(pl.Series(failed != before)).select("t"))
        known[loop] = pairs.with_columns(failed=pl.Series(failed))
    some = new.of_tasks(new.decided_with(pl.concat(touched).unique()))
    return type(decisions).of(some, parts(some, Failures(new.checks, known)))


def _n_pairs(pairs: pl.DataFrame, part: Facts) -> int:
    of_part = part.tasks["t"]
    return int(pairs["t"].is_between(of_part[0], of_part[-1]).sum()) if len(of_part) else 0


def _different(old: pl.DataFrame, new: pl.DataFrame) -> list[pl.DataFrame]:
    pairs = ((old, new), (new, old))
    return [a.join(b, on=a.columns, how="anti", nulls_equal=True).select("t") for a, b in pairs]
