"""The table of what each switch between two rule sets does alone, the same on every page that compares them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from brokerlab.report.kit import Table

ALONE = (
    "Each switch alone, all others as now. Parts need not add up: an outcome may need two switches, "
    "or follow from either."
)


def switch_table(
    switches: pl.DataFrame, sets: tuple[str, str], effects: Mapping[str, str], *, caption: str
) -> Table:
    """Lay out what every switch does, those that do nothing in the note.

    Args:
        switches: See :func:`brokerlab.rulesets.switch_by_switch`.
        sets: Names of the rule set that is looked at, and of the other one.
        effects: Its columns of what a switch does, with their labels; where all are 0 it does nothing.
        caption: What the table says.
    """
    does = pl.any_horizontal(pl.col(name).fill_null(0) != 0 for name in effects)
    idle = switches.filter(~does)["switch"].sort()
    nothing = f" Change nothing here: {', '.join(idle)}." if len(idle) else ""
    return Table(
        name="rule_switches",
        frame=switches.sort(does, descending=True, maintain_order=True).with_columns(
            values=pl.format("{} → {}", "here", "there"),
            means=pl.col("note").str.replace_all("`", ""),
        ),
        most=switches.height - len(idle),
        caption=caption,
        columns={
            "switch": "Switch",
            "means": "What it says",
            "values": f"{sets[0]} → {sets[1]}",
            **effects,
            "source": "Page or chapter",
        },
        note=f"{ALONE}{nothing}",
    )
