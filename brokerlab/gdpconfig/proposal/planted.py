"""What was proposed against what was planted: only for synthetic archives, and only after everything is proposed.

Source: docs/worlds.md, What is planted. No calibration reads the truth of an archive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import polars as pl

from brokerlab.gdpconfig.entry import Value
from brokerlab.gdpconfig.proposal.parts import Change
from brokerlab.gdpconfig.proposal.reviewing import Item
from brokerlab.gdpconfig.proposal.words import set_value

TRUTH = "planted_settings"
"""Table of the truth: ``key, component, scope`` (null: everywhere), ``wrong, planted, best`` (text), ``best_lo, best_hi``
(what counts as right; null: no bound; both null: the best alone), ``report`` (that judges it), ``trades`` (what goes wrong)."""

Outcome = Literal[
    "found",
    "right direction",
    "wrong direction",
    "not found",
    "left alone",
    "as good",
    "changed without need",
    "nothing planted",
]
"""How a proposal and the truth compare.

A wrong key is found where the proposed value counts as right; in the right or wrong direction where it does not; not
found where no change is proposed. A right key is left alone, changed to a value that is as good, or changed without need. Of
other keys nothing is known."""


def compare_with_planted(items: Sequence[Item], planted: pl.DataFrame) -> pl.DataFrame:
    """Compare what was proposed with what was planted, see `TRUTH`.

    One row per planted key, those that are wrong first, then one per other key that a proposal changes:
    ``key`` (with its scope), ``wrong`` (null: not planted), ``planted, best`` (a range where one counts as right; null:
    not planted), ``proposed`` (null: no change), ``verdict`` (change, improve, keep; null: no proposal names the key),
    ``label`` of the proposal, ``outcome`` (see `Outcome`) and ``trades``.
    """
    named = {
        change.key: (item, change)
        for item in sorted(items, key=lambda item: item.proposal.kind == "change")
        for change in item.changes
    }
    rows = []
    for row in planted.sort("wrong", "report", "key", descending=[True, False, False]).to_dicts():
        key = row["key"] + (f"_{row['scope']}" if row["scope"] else "")
        item, change = named.pop(key, (None, None))
        rows.append(
            {
                "key": key,
                "wrong": row["wrong"],
                "planted": row["planted"],
                "best": _range(row["best"], row["best_lo"], row["best_hi"]),
                **_propose(item, change),
                "outcome": _outcome(row, change if item and _changes(item) else None),
                "trades": row["trades"],
            }
        )
    others = {key: pair for key, pair in named.items() if _changes(pair[0])}
    rows += [
        {"key": key, **_propose(*pair), "outcome": "nothing planted"}
        for key, pair in sorted(others.items())
    ]
    names = ("planted", "best", "proposed", "verdict", "label", "outcome", "trades")
    schema = {"key": pl.String, "wrong": pl.Boolean, **dict.fromkeys(names, pl.String)}
    return pl.DataFrame(rows, schema=schema)


def count_outcomes(compared: pl.DataFrame) -> dict[str, int]:
    """Count what a comparison gave: ``wrong`` and ``right`` keys planted, of them ``found`` and ``kept``; ``others`` changed."""
    return {
        "wrong": compared.filter("wrong").height,
        "found": compared.filter(outcome="found").height,
        "right": compared.filter(~pl.col("wrong")).height,
        "kept": compared.filter(pl.col("outcome").is_in(["left alone", "as good"])).height,
        "others": compared.filter(outcome="nothing planted").height,
    }


def _changes(item: Item) -> bool:
    return item.proposal.kind == "change"


def _propose(item: Item | None, change: Change | None) -> dict[str, str | None]:
    if item is None or change is None:
        return {"proposed": None, "verdict": None, "label": None}
    new = set_value(change.new) if _changes(item) else None
    return {"proposed": new, "verdict": item.verdict, "label": item.label or None}


def _outcome(row: dict[str, object], change: Change | None) -> Outcome:
    """Compare one planted key with the change that is proposed; null: none is."""
    if change is None:
        return "not found" if row["wrong"] else "left alone"
    best, planted, new = (_number(x) for x in (row["best"], row["planted"], change.new))
    low, high = (cast("float | None", row[end]) for end in ("best_lo", "best_hi"))
    good, nearer = set_value(change.new) == row["best"], False
    if best is not None and planted is not None and new is not None:
        if low is not None or high is not None:
            good = (low is None or new >= low) and (high is None or new <= high)
        nearer = (new - planted) * (best - planted) > 0
    if not row["wrong"]:
        return "as good" if good else "changed without need"
    return "found" if good else "right direction" if nearer else "wrong direction"


def _number(value: Value | object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _range(best: str, low: float | None, high: float | None) -> str:
    """Return the best value, with the range that counts as right."""
    if low == high:  # or neither is known
        return best
    ends = [f"from {low:g}"] if low is not None else []
    ends += [f"to {high:g}"] if high is not None else []
    return f"{best} ({' '.join(ends)})"
