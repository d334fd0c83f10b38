"""The tables of settings, rule sets and history."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.replays.cells import INTERVALS, count, pct, row_pct, value
from brokerlab.report.replays.rulesets import RuleSets
from brokerlab.report.replays.settings import JOBS, WORTH, Settings
from brokerlab.words import number


def near(found: Settings, held: str = "") -> Table:
    """Lay out where each key stands, and what its half and its double would send elsewhere.

    Args:
        found: The settings tried.
        held: What else counts as elsewhere, a sentence.
    """
    rows = [
        Row(
            cells={
                "key": _name(row),
                "current": value(row["current"]),
                "half": _side(row, "half"),
                "double": _side(row, "double"),
            },
            note="worth calibrating" if row["worth"] else "",
        )
        for row in found.keys.iter_rows(named=True)
    ]
    return Table(
        name="settings_near",
        caption="What each setting would send elsewhere, all others as they are",
        columns=(
            Column(key="key", label="Key"),
            Column(key="current", label="Current"),
            Column(key="half", label="Halved", unit="% of jobs"),
            Column(key="double", label="Doubled", unit="% of jobs"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{INTERVALS} Elsewhere: mean share of a task's expected jobs that another weight, candidate or check sends "
            f"to another queue{_nuclei_too(found)}.{held} Half and double within the range that the catalogue calls sensible. "
            f"A key by share is set to one value for all shares. Worth calibrating: {100 * WORTH:g} % or more beyond doubt."
        ),
    )


def far(found: Settings) -> Table:
    """Lay out what each key would change at the value of its range that moves most."""
    rows = [
        Row(
            cells={
                "key": _name(row),
                "range": f"{value(row['least'])} to {value(row['most'])}",
                "at": value(row["at"]),
                "shift": pct(row["shift"], row["lo"], row["hi"]),
                "pairs": pct(row["pairs"]),
                "without": pct(row["without"]),
                "reachable": None if row["reachable"] is None else pct(row["reachable"]),
            }
        )
        for row in found.keys.iter_rows(named=True)
    ]
    return Table(
        name="settings_far",
        caption="Over its whole sensible range, at the value that moves most",
        columns=(
            Column(key="key", label="Key"),
            Column(key="range", label="Range"),
            Column(key="at", label="At"),
            Column(key="shift", label="Elsewhere", unit="% of jobs"),
            Column(key="pairs", label="Decided otherwise", unit="% of pairs"),
            Column(key="without", label="Without a queue", unit="points"),
            Column(key="reachable", label="Slots in reach", unit="points"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{INTERVALS} Points: then less now, in per cent of brokerages (nuclei: of tasks without a nucleus) and of the "
            "running slots that a task may reach."
        ),
    )


def _name(row: dict[str, Any]) -> str:
    return f"{row['key']} [{row['unit']}]" if row["unit"] else str(row["key"])


def _nuclei_too(found: Settings) -> str:
    of_tasks = found.keys.filter(pl.col("decides") != JOBS)["key"].to_list()
    return f"; of {', '.join(of_tasks)}: a task's chance to get another nucleus" if of_tasks else ""


def rule_sets(found: RuleSets) -> Table:
    """Lay out how often the rule sets differ, in all and by what became of what."""
    words = {
        "pairs": "decided otherwise, in all",
        "gained": f"candidates under {found.other} rules only",
        "lost": f"candidates under {found.current} rules only",
        "other_reason": "skipped under both, for another reason",
    }
    both = pl.concat([found.totals, found.by_check])
    rows = [
        Row(
            cells={
                "what": words.get(row["part"], row["part"]),
                "pairs": count(row["total"]),
                "share": pct(row["share"], row["lo"], row["hi"]),
            }
        )
        for row in both.iter_rows(named=True)
    ]
    return Table(
        name="rule_sets",
        caption=f"Pairs that {found.other} rules decide otherwise than {found.current} rules",
        columns=(
            Column(key="what", label=f"{found.current} → {found.other}"),
            Column(key="pairs", label="Pairs"),
            Column(key="share", label="Share", unit="% of pairs"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} Below the first four lines: the most frequent changes.",
    )


def switches(found: RuleSets, *, shifts: bool = False) -> Table | None:
    """Lay out the single differences of the rule sets that change something.

    Args:
        found: Both rule sets.
        shifts: Whether to tell the jobs that each sends elsewhere, and those differences that only do that.
    """
    changes = pl.col("n_changed") > 0
    shown = found.switches.filter(changes | (pl.col("shift") > 0) if shifts else changes)
    if shown.is_empty():
        return None
    rows = [
        Row(
            cells={
                "switch": row["switch"],
                "rows": row["rows"],
                "changed": count(row["n_changed"]),
                "explained": pct(row["explained"]),
                **({"shift": pct(row["shift"])} if shifts else {}),
            }
        )
        for row in shown.iter_rows(named=True)
    ]
    idle = found.switches.height - shown.height
    return Table(
        name="switches",
        caption=f"Single differences of the rule sets, tried alone on {found.n_sample} brokerages",
        columns=(
            Column(key="switch", label="Difference"),
            Column(key="rows", label="Rows of the chapters"),
            Column(key="changed", label="Changes", unit="pairs"),
            Column(key="explained", label="Of the whole difference", unit="%"),
            *(
                (Column(key="shift", label="Elsewhere", unit="% of a task's jobs"),)
                if shifts
                else ()
            ),
        ),
        rows=tuple(rows),
        footnote=(
            f"The sets differ on {number(found.n_sample_pairs)} pairs there; shares need not add up to 100 %, as a pair "
            f"may need two differences, or follow from either. matching: all text rules together. {idle} others "
            "change nothing there."
        ),
    )


def _side(row: dict[str, Any], side: str) -> Num | None:
    """Return what one step to a side moves; none where the current value is the last one."""
    if row[side] is None:
        return None
    return pct(row[side], row[f"{side}_lo"], row[f"{side}_hi"])


def history(agreement: pl.DataFrame) -> Table:
    """Lay out how the replay agrees with where jobs ran."""
    words = {
        "candidate": "at a candidate",
        "best_three": "at one of the best three",
        "first": "at the first",
        "by_chance": "at a candidate, queues drawn at random",
    }
    rows = [
        Row(cells={"what": words[row["part"]], "share": row_pct(row)})
        for row in agreement.iter_rows(named=True)
    ]
    n_jobs = agreement["whole"][0] if agreement.height else 0
    return Table(
        name="history",
        caption=f"Where {number(n_jobs)} jobs really ran",
        columns=(Column(key="what", label="Where"), Column(key="share", label="Jobs", unit="%")),
        rows=tuple(rows),
        footnote=INTERVALS,
    )
