"""The peers by name, as the tables of the published comparison call them."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.sizing.online import Method
from benchmarks.sizing.peers.ensemble import WeightedEnsemble
from benchmarks.sizing.peers.linear import Errors, RaisedLine
from benchmarks.sizing.peers.rules import (
    ConformalBound,
    FirstAllocation,
    LargestSeen,
    Percentile,
    Presets,
)
from benchmarks.sizing.peers.wastage import LowWastageLine
from brokerlab.numerics import FloatArray


def published(*, shared: bool = True) -> Mapping[str, Method]:
    """Return the methods of the published comparison; call it anew for every trace and split.

    Args:
        shared: Whether both variants of the raised line keep their errors in one list across all task
            types. So does the published code; the second variant then knows errors of later runs.

    Source: sizing.md, sections 4 and 5a.
    """
    errors = Errors() if shared else None
    return {
        "presets": Method(Presets, truth="peak_rss"),
        "Witt LR std": Method(lambda: RaisedLine(errors=errors)),
        "Tovar": Method(FirstAllocation),
        "Witt percentile": Method(lambda: Percentile(95)),
        "Witt LR under": Method(lambda: RaisedLine(low_only=True, errors=errors)),
    }


def simple() -> Mapping[str, Method]:
    """Return the simple rules that deployed systems use.

    Source: sizing.md, sections 5 and 6.
    """
    return {
        "max seen": Method(LargestSeen),
        "p75 x 1.1": Method(lambda: Percentile(75, 1.1)),
        "p90 x 1.15": Method(lambda: Percentile(90, 1.15)),
        "p99 x 1.1": Method(lambda: Percentile(99, 1.1)),
        "conformal 95 %": Method(lambda: ConformalBound(0.95)),
        "linear + std": Method(lambda: RaisedLine(floor=True)),
    }


def slow(*, shared: bool = True) -> Mapping[str, Method]:
    """Return the published methods that take their time: a second per task type, 20 ms per run.

    Args:
        shared: Whether the errors of Sizey are kept in one list across all task types, as published.

    Source: sizing.md, sections 4, 5a (Witt wastage) and 5b (Sizey, "refit mode").
    """
    errors: list[FloatArray] | None = [] if shared else None
    return {
        "Witt wastage": Method(LowWastageLine, truth="peak_rss", slow=True),
        "Sizey": Method(lambda: WeightedEnsemble(errors), slow=True),
    }


def peers(*, shared: bool = True) -> Mapping[str, Method]:
    """Return all quick peers; call it anew for every trace and split, see :func:`published`."""
    return {**published(shared=shared), **simple()}


def all_peers(*, shared: bool = True) -> Mapping[str, Method]:
    """Return all peers, the slow ones last; call it anew for every trace and split."""
    return {**peers(shared=shared), **slow(shared=shared)}
