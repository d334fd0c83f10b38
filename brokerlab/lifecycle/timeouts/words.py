"""Reference times by their words, so that the words and the expression cannot differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import narwhals.stable.v2 as nw

from brokerlab.lifecycle.timeouts.rule import col

TIMES = ("creationtime", "modificationtime", "statechangetime", "starttime", "endtime")
"""Times of a job; facts have each as whole microseconds since 1970, ``<name>_us``."""


class Wait(TypedDict):
    """The part of a rule that says how long a job may wait since when."""

    reference: str
    since: nw.Expr
    limit_s: nw.Expr
    least_s: int


def _references() -> Mapping[str, nw.Expr]:
    found = {name: col(f"{name}_us") for name in TIMES}
    modified, ended = found["modificationtime"], found["endtime"]
    return {
        **found,
        "modificationtime or endtime": nw.min_horizontal(modified, ended),
        "endtime, else starttime": nw.coalesce(ended, found["starttime"]),
    }


def fixed(reference: str, limit_s: int) -> Wait:
    """Return a wait since a reference time for so many seconds."""
    since = _references()[reference]
    return {"reference": reference, "since": since, "limit_s": nw.lit(limit_s), "least_s": limit_s}
