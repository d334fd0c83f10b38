"""What a reader finds in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.workflows.contracts import Edges, Tasks


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Tasks and edges of a file as tables, and what was odd."""

    tasks: pl.DataFrame
    edges: pl.DataFrame
    findings: tuple[str, ...] = ()


def parts(
    tasks: Sequence[Mapping[str, Any]],
    edges: Iterable[tuple[str, str]],
    findings: Iterable[str] = (),
) -> Parts:
    """Lay tasks and edges out as tables."""
    return Parts(
        tasks=pl.DataFrame(list(tasks), schema=Tasks.create_empty().schema),
        edges=pl.DataFrame(list(edges), schema=Edges.create_empty().schema, orient="row"),
        findings=tuple(findings),
    )
