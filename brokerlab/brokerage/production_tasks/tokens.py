"""Which endpoint of a nucleus an output goes to, by its storage token (chapter section 1)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from brokerlab.matching.patterns import PatternError, compile_pattern

_SEPARATOR = "\x1f"  # stands in no endpoint's name


def pattern_of(storagetoken: pl.Expr) -> pl.Expr:
    """Return the part of a token that names an endpoint; a null token is the empty pattern.

    It is what stands after the last ``/``, without a leading ``dst:``.
    """
    return storagetoken.fill_null("").str.split("/").list.last().str.strip_prefix("dst:")


def is_distributed(storagetoken: pl.Expr) -> pl.Expr:
    """Tell where a token (``ddd:...``) marks a dataset that is gathered nowhere."""
    return storagetoken.str.starts_with("ddd:").fill_null(value=False)


def destination(endpoint: pl.Expr, storagetoken: pl.Expr) -> pl.Expr:
    """Return the token that sends a dataset to an endpoint: ``dst:ENDPOINT/`` and the end of its own."""
    tail = storagetoken.fill_null("").str.split("/").list.last()
    return pl.concat_str(pl.lit("dst:"), endpoint, pl.lit("/"), tail)


def match(pattern: str, endpoints: Sequence[tuple[str, str | None]]) -> str | None:
    """Return the endpoint that a pattern of :func:`pattern_of` means among those of a nucleus; null if there is none.

    A pattern that is no regular expression, or that cannot be decided in linear time, finds no name.

    Args:
        pattern: The pattern.
        endpoints: Name and type, in stored order.

    Returns:
        The endpoint of that exact name; else the first whose name the pattern finds as a regular expression, or whose type
        is the pattern without ``ATLAS``.

    Source: production-tasks.md 1, ``output_datasets``.

    Example:
        >>> disks = [("CERN_SCRATCH", "SCRATCHDISK"), ("CERN_DATADISK", "DATADISK")]
        >>> match("ATLASDATADISK", disks), match("SCRATCH", disks)
        ('CERN_DATADISK', 'CERN_SCRATCH')
    """
    if any(name == pattern for name, _ in endpoints):
        return pattern
    wanted = pattern.replace("ATLAS", "")
    return next((name for name, kind in endpoints if kind == wanted or _finds(pattern, name)), None)


def _finds(pattern: str, name: str) -> bool:
    try:
        return compile_pattern(pattern).search(name)
    except PatternError:
        return False


def refusal(pattern: str) -> str | None:
    """Return why a pattern is taken for a name or type only; null for a regular expression."""
    try:
        compile_pattern(pattern)
    except PatternError as error:
        return str(error)
    return None


def resolve(asked: pl.DataFrame, endpoints: pl.DataFrame) -> pl.DataFrame:
    """Find the endpoint of every pattern at every site; each distinct pair of texts is matched once.

    Args:
        asked: ``state, site, pattern``, each once.
        endpoints: ``state, site, position, ddm_endpoint_name, type`` of output endpoints.

    Returns:
        ``asked`` with ``ddm_endpoint_name``; null where the site has none.
    """
    names, kinds = (
        pl.col(column).fill_null("").str.join(_SEPARATOR).alias(column)
        for column in ("ddm_endpoint_name", "type")
    )
    ordered = endpoints.sort("state", "site", "position")
    lists = ordered.group_by("state", "site").agg(names, kinds)
    asked = asked.join(lists, on=["state", "site"], how="left")
    texts = ["pattern", "ddm_endpoint_name", "type"]
    distinct = asked.select(texts).unique().drop_nulls("ddm_endpoint_name")
    found = [
        match(pattern, list(zip(ends.split(_SEPARATOR), types.split(_SEPARATOR), strict=True)))
        for pattern, ends, types in distinct.iter_rows()
    ]
    distinct = distinct.with_columns(found=pl.Series(found, dtype=pl.String))
    answered = asked.join(distinct, on=texts, how="left")
    return answered.select("state", "site", "pattern", ddm_endpoint_name="found")
