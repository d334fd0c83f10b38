"""The ``catchall`` of a queue, flags and values in one comma list, and the network of its worker nodes (docs/rules/matching.md 9)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

BARE_MODES = ("only", "allow")
_FALSE = ("", "0", "false", "no", "none", "null")


@dataclass(frozen=True, slots=True)
class Catchall:
    """What the brokerage reads from a queue's catchall and its extra parameters."""

    bare_mode: str | None  # ``bareNucleus``: ``only`` or ``allow``; None for anything else
    secondary_nucleus: str | None  # ``secondaryNucleus``; None for none
    use_jumbo_jobs: bool  # flag ``useJumboJobs``
    # ``minEventsForJumbo`` [events]; None for none and for what is no whole number
    min_events_for_jumbo: int | None
    use_only_local_data: bool  # flag ``use_only_local_data``
    per_core_attr: bool  # flag ``per_core_attr``: maxrss, minrss and maxwdir are per core
    grandly_unified: bool  # flag ``grandly_unified``: the queue runs production whatever its type


def has_flag(catchall: str | None, key: str) -> bool:
    """Tell whether some comma item starts with a key; blanks count.

    Source: docs/rules/matching.md 9.

    Example:
        >>> has_flag("es_to_zip,useJumboJobs", "useJumboJobs"), has_flag("a, useJumboJobs", "useJumboJobs")
        (True, False)
    """
    return any(item.startswith(key) for item in (catchall or "").split(","))


def value_of(catchall: str | None, key: str) -> str | None:
    """Return what follows ``key=`` at the start of the first such comma item; None where nothing does.

    Source: docs/rules/matching.md 9.

    Example:
        >>> value_of("a=1,bareNucleus=only", "bareNucleus"), value_of("bareNucleus = only", "bareNucleus")
        ('only', None)
    """
    items = (catchall or "").split(",")
    result = [item.removeprefix(f"{key}=") for item in items if item.startswith(f"{key}=")]
    return (result[0] or None) if result else None


def read_catchall(catchall: str | None, params: Mapping[str, Any] | str | None = None) -> Catchall:
    """Read what the brokerage needs from a queue's catchall; never raises, whatever the text.

    ``catchall`` is a comma list of ``key`` or ``key=value``, null is empty; of ``params`` (mapping, or JSON text) one of the same
    name wins, text that is no JSON object holds none.

    Source: docs/rules/matching.md 9; 002, Special Brokerage for ATLAS Full-chain.
    """
    extra = _mapping(params)

    def value(key: str) -> str | None:
        given = extra.get(key)
        return value_of(catchall, key) if given is None else (str(given) or None)

    def flag(key: str) -> bool:
        given = extra.get(key)
        return has_flag(catchall, key) if given is None else str(given).lower() not in _FALSE

    bare_mode, events = value("bareNucleus"), value("minEventsForJumbo")
    return Catchall(
        bare_mode=bare_mode if bare_mode in BARE_MODES else None,
        secondary_nucleus=value("secondaryNucleus"),
        use_jumbo_jobs=flag("useJumboJobs"),
        min_events_for_jumbo=_whole_number(events),
        use_only_local_data=flag("use_only_local_data"),
        per_core_attr=flag("per_core_attr"),
        grandly_unified=flag("grandly_unified"),
    )


def read_catchalls(queues: pl.DataFrame) -> pl.DataFrame:
    """Read every distinct catchall of a table of queues.

    ``catchall``, ``params`` and one column per field of :class:`Catchall`, one row per distinct pair, sorted;
    join with ``nulls_equal=True``.

    Source: docs/rules/matching.md 9.
    """
    params = pl.col("params") if "params" in queues.columns else pl.lit(None).alias("params")
    keys = ["catchall", "params"]
    distinct = queues.select(pl.col("catchall").cast(pl.String), params.cast(pl.String))
    distinct = distinct.unique().sort(keys)
    rows = [
        {"catchall": text, "params": extra, **asdict(read_catchall(text, extra))}
        for text, extra in distinct.iter_rows()
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(keys, pl.String) | _SCHEMA)


_SCHEMA: dict[str, Any] = {
    "bare_mode": pl.String,
    "secondary_nucleus": pl.String,
    "use_jumbo_jobs": pl.Boolean,
    "min_events_for_jumbo": pl.Int64,
    "use_only_local_data": pl.Boolean,
    "per_core_attr": pl.Boolean,
    "grandly_unified": pl.Boolean,
}


def _whole_number(text: str | None) -> int | None:
    """Return a whole number that fits a column; None for anything else."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 18:
        return None
    return int(text)


def _mapping(params: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """Return the extra parameters as a mapping."""
    if not isinstance(params, str):
        return params or {}
    try:
        document = json.loads(params)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


@dataclass(frozen=True, slots=True)
class Connectivity:
    """What worker nodes of a queue can reach."""

    # ``full``, ``http``, ``none`` or whatever stands there; None for nothing given
    network: str | None
    ip_stack: str | None  # ``IPv4``, ``IPv6``; None for nothing given


def parse_connectivity(wnconnectivity: str | None) -> Connectivity:
    """Read ``network#stack`` (docs/rules/matching.md 9).

    Null and '' give nothing; the network is what stands before the first ``#``, the stack is there only with exactly one ``#``
    and text after it.
    """
    network, *rest = (wnconnectivity or "").split("#")
    return Connectivity(network or None, (rest[0] or None) if len(rest) == 1 else None)
