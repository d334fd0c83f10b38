"""The table of what each switch between two rule sets does alone, the same on every page that compares them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from brokerlab.report.kit import Table


def switch_table(
    switches: pl.DataFrame, effects: Mapping[str, str], *, caption: str, name: str = "rule_switches"
) -> Table:
    """Lay out what every switch does, those that do nothing in the note."""
    does = pl.any_horizontal(pl.col(name).fill_null(0) != 0 for name in effects)
    idle = switches.filter(~does)["switch"].sort()
    nothing = f" Change nothing here: {', '.join(idle)}." if len(idle) else ""
    return Table(
        name=name,
        frame=switches.sort(does, descending=True, maintain_order=True).with_columns(
            values=pl.format("{} → {}", "here", "there"),
            means=pl.col("note").str.replace_all("`", ""),
        ),
        most=switches.height - len(idle),
        caption=caption,
        columns={
            "switch": "Switch",
            "means": "What it says",
            "values": "Now → under the other rules",
            **effects,
            "source": "Page or chapter",
        },
        note=f"Each switch alone. Parts need not add up: one may need another, or do the same.{nothing}",
    )
