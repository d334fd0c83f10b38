"""The tables of the waiting rules report."""

from __future__ import annotations

import polars as pl

from brokerlab.lifecycle.timeouts import decision_table
from brokerlab.lifecycle.waiting import ALL_RULES as ALL
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.replays.cells import count, pct
from brokerlab.report.waiting_rules.sentences import KIND_WORDS, quiet
from brokerlab.report.waiting_rules.study import Study
from brokerlab.report.waiting_rules.words import cell, labelled, limit
from brokerlab.words import number

SHOWN = 12
"""Lines of tables of queues, shares and pairs."""
NOTHING = "For nothing"


def intervals(study: Study) -> str:
    """Say what is in brackets."""
    word = "queues" if study.inputs.waiting.unit == "queue" else "tasks"
    return f"In brackets: 95 % intervals from drawing {word} again."


def rules(study: Study) -> Table:
    """Lay out every rule that fires."""
    about = decision_table(rules=study.inputs.waiting.rules, config=study.inputs.waiting.config)
    keys = about.filter(pl.col("keys").list.len() > 0).unique("rule", maintain_order=True)
    set_by = "; ".join(f"{r['rule']} {', '.join(r['keys'])}" for r in keys.to_dicts())
    rows = [
        Row(
            cells={
                "rule": row["name"],
                "action": row["action"],
                "limit": limit(_limit(study, row["rule"], row["action"])),
                "jobs": cell(row, "jobs"),
                "waited": cell(row, "waited_h"),
                "median": Num(value=row["waited_median_h"], decimals=1),
                "after": cell(row, "after_h"),
            }
        )
        for row in labelled(study.by_rule).to_dicts()
    ]
    return Table(
        name="rules_that_fire",
        caption="Rules that fire",
        columns=(
            Column(key="rule", label="Rule"),
            Column(key="action", label="Action"),
            Column(key="limit", label="Limit"),
            Column(key="jobs", label="Jobs"),
            Column(key="waited", label="Waited until then", unit="h"),
            Column(key="median", label="Median", unit="h"),
            Column(key="after", label="Would have waited on", unit="h"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{intervals(study)} A job counts once per rule. Limit: that of most jobs where queues differ. Limits with a key "
            f"of their own: {set_by}. {quiet(study)}"
        ),
    )


def _limit(study: Study, rule: str, action: str) -> float | None:
    rows = study.limits.filter(rule=rule, action=action, scale=1.0)
    return rows["limit_h"][0] if rows.height else None


def levels(
    study: Study, frame: pl.DataFrame, column: str, label: str, *, name: str, caption: str
) -> Table | None:
    """Lay out firings by rule and level, those with most jobs."""
    if frame.is_empty():
        return None
    shown = labelled(frame).sort("jobs", column, "number", descending=[True, False, False])
    rows = [
        Row(
            cells={
                "level": row[column],
                "rule": row["name"],
                "jobs": cell(row, "jobs"),
                "waited": cell(row, "waited_h"),
                "after": cell(row, "after_h"),
                "soon": pct(row["soon_share"], row["soon_share_lo"], row["soon_share_hi"]),
            },
            note="most jobs" if not place else "",
        )
        for place, row in enumerate(shown.head(SHOWN).to_dicts())
    ]
    rest = shown.height - len(rows)
    single = column == "computingsite" and study.inputs.waiting.unit == "queue"
    foot = "No intervals: what is drawn again are whole queues." if single else intervals(study)
    return Table(
        name=name,
        caption=caption,
        columns=(
            Column(key="level", label=label),
            Column(key="rule", label="Rule"),
            Column(key="jobs", label="Jobs"),
            Column(key="waited", label="Waited until then", unit="h"),
            Column(key="after", label="Would have waited on", unit="h"),
            Column(key="soon", label=NOTHING, unit="%"),
        ),
        rows=tuple(rows),
        footnote=f"{foot} {f'{rest} more lines are in the tables. ' if rest else ''}".strip(),
    )


def outcomes(study: Study) -> Table:
    """Lay out what became of the jobs of every rule."""
    rows = [
        Row(
            cells={
                "rule": row["name"],
                "jobs": count(row["jobs"]),
                "soon": cell(row, "soon"),
                "share": pct(row["soon_share"], row["soon_share_lo"], row["soon_share_hi"]),
                "later": cell(row, "later"),
                "ended": cell(row, "ended"),
                "still": count(row["still"] + row["undecided"]),
                "undecided": count(row["undecided"]),
                "median": Num(value=row["after_median_h"], decimals=1),
            }
        )
        for row in labelled(study.by_rule).to_dicts()
    ]
    soon = limit(study.inputs.waiting.soon_h)
    return Table(
        name="outcomes",
        caption="What became of the jobs after a rule would have fired",
        columns=(
            Column(key="rule", label="Rule"),
            Column(key="jobs", label="Jobs"),
            Column(key="soon", label=f"Went on within {soon}"),
            Column(key="share", label=NOTHING, unit="%"),
            Column(key="later", label="Went on later"),
            Column(key="ended", label="Came to nothing"),
            Column(key="still", label="Still wait"),
            Column(key="undecided", label="Of these undecided"),
            Column(key="median", label="Waited on, median", unit="h"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{intervals(study)} Went on: the status changed (silence: a sign of life came) and the job did not end with it. "
            f"Undecided: the rule fired less than {soon} before the end of the archive; they are in no share."
        ),
    )


def limits(study: Study) -> Table:
    """Lay out what halved and doubled limits would do, rule by rule."""
    single = study.limits.filter(pl.col("scale").is_in([0.5, 1.0, 2.0]))
    rows = []
    for row in labelled(single).sort("number", "action", "scale").to_dicts():
        now = row["scale"] == 1
        rows.append(
            Row(
                cells={
                    "rule": row["name"],
                    "limit": "as set" if row["rule"] == ALL and now else _scaled(row),
                    "jobs": count(row["jobs"]),
                    "soon": count(row["soon"]),
                    "after": count(row["after_h"]),
                    "more_soon": None if now else cell(row, "more_soon"),
                    "more_after": None if now else cell(row, "more_after_h"),
                },
                note="as set" if now and row["rule"] != ALL else "",
            )
        )
    return Table(
        name="limits_tried",
        caption="Limits halved, as set and doubled",
        columns=(
            Column(key="rule", label="Rule"),
            Column(key="limit", label="Limit"),
            Column(key="jobs", label="Timed out", unit="jobs"),
            Column(key="soon", label=NOTHING, unit="jobs"),
            Column(key="after", label="Waiting ended", unit="h"),
            Column(key="more_soon", label="More for nothing", unit="jobs"),
            Column(key="more_after", label="More ended", unit="h"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{intervals(study)} Differences are to the limit as set, from the same draws. Each rule by itself; all rules: "
            f"every limit changed alike, a job counts once, by its first rule. Other scales are in the tables."
        ),
    )


def _scaled(row: dict[str, object]) -> str:
    if row["rule"] == ALL:
        return "halved" if row["scale"] == 0.5 else "doubled"
    value = row["limit_h"]
    return limit(value) if isinstance(value, float) else limit(None)


def priorities(study: Study) -> Table | None:
    """Lay out the firings by priority."""
    words = {"urgent": "800 and more", "other": "below 800, or none"}
    frame = study.by_priority.with_columns(pl.col("priority").replace(words))
    return levels(study, frame, "priority", "Priority", name="priorities", caption="By priority")


def exempted(study: Study) -> Table | None:
    """Lay out what paused queues and disableReassign spare."""
    if study.exempted.is_empty():
        return None
    rows = [
        Row(
            cells={
                "rule": row["name"],
                "jobs": cell(row, "jobs"),
                "after": cell(row, "after_h"),
                "soon": cell(row, "soon"),
            }
        )
        for row in labelled(study.exempted).to_dicts()
    ]
    return Table(
        name="exempted",
        caption="Firings that only the exemption of paused queues and disableReassign prevents",
        columns=(
            Column(key="rule", label="Rule"),
            Column(key="jobs", label="Jobs"),
            Column(key="after", label="Wait on", unit="h"),
            Column(key="soon", label="Would have been for nothing", unit="jobs"),
        ),
        rows=tuple(rows),
        footnote=intervals(study),
    )


def fast_places(study: Study) -> Table | None:
    """Lay out the queues and shares that trigger."""
    found = study.fast
    if found is None or found.places.is_empty():
        return None
    rows = [
        Row(
            cells={
                "queue": row["computingsite"],
                "gshare": row["gshare"],
                "instants": pct(row["met_share"]),
                "onsets": count(row["n_onsets"]),
                "jobs": count(row["onset_jobs"]),
                "mean": Num(value=row["mean_jobs"], decimals=1),
                "max": count(row["max_jobs"]),
            },
            note="most jobs" if not place else "",
        )
        for place, row in enumerate(found.places.head(SHOWN).to_dicts())
    ]
    rest = found.places.height - len(rows)
    dry = " Dry run: no share has a threshold, 10 is taken." if found.dry_run else ""
    return Table(
        name="fast_places",
        caption="Queues and shares that trigger fast rebrokerage",
        columns=(
            Column(key="queue", label="Queue"),
            Column(key="gshare", label="gshare"),
            Column(key="instants", label="Triggers", unit="% of instants"),
            Column(key="onsets", label="Begins to"),
            Column(key="jobs", label="To move when it begins", unit="jobs"),
            Column(key="mean", label="Mean while it does", unit="jobs"),
            Column(key="max", label="Most", unit="jobs"),
        ),
        rows=tuple(rows),
        footnote=f"{f'{rest} more pairs are in the tables.' if rest else ''}{dry}".strip(),
    )


def fast_shares(study: Study) -> Table | None:
    """Lay out fast rebrokerage by share."""
    found = study.fast
    if found is None:
        return None
    rows = [
        Row(
            cells={
                "gshare": row["gshare"],
                "threshold": f"{row['threshold']:g}{' (dry run)' if row['dry_run'] else ''}",
                "queued": Num(value=row["queued"], decimals=1),
                "met": cell(row, "n_met", 2),
                "jobs": cell(row, "to_move", 1),
            }
        )
        for row in found.by_share.to_dicts()
    ]
    return Table(
        name="fast_shares",
        caption="Fast rebrokerage by share, means over the instants",
        columns=(
            Column(key="gshare", label="gshare"),
            Column(key="threshold", label="Threshold", unit="jobs"),
            Column(key="queued", label="Queued", unit="jobs"),
            Column(key="met", label="Queues that trigger"),
            Column(key="jobs", label="To move", unit="jobs"),
        ),
        rows=tuple(rows),
        footnote="In brackets: 95 % intervals from drawing queues again.",
    )


def rule_sets(study: Study) -> Table | None:
    """Lay out how often the rule sets differ, and by which rules."""
    found, inputs = study.rule_sets, study.inputs
    if not found.n_any:
        return None
    words = {
        kind: text.format(current=inputs.waiting.rules.rules, other=inputs.waiting.other.rules)
        for kind, text in KIND_WORDS.items()
    }
    kinds = [
        Row(cells={"what": words[row["kind"]], "jobs": cell(row, "jobs"), "share": pct(row["share"])})
        for row in found.kinds.to_dicts()
    ]  # fmt: skip
    pairs = [
        Row(
            cells={
                "what": f"{row['current'] or 'none'} → {row['other'] or 'none'}",
                "jobs": cell(row, "jobs"),
                "share": pct(row["jobs"] / found.n_any),
            }
        )
        for row in found.pairs.head(SHOWN).to_dicts()
    ]
    return Table(
        name="rule_sets",
        caption=f"How {number(found.n_any)} jobs fare under {inputs.waiting.rules.rules} → {inputs.waiting.other.rules} rules",
        columns=(
            Column(
                key="what", label=f"{inputs.waiting.rules.rules} → {inputs.waiting.other.rules}"
            ),
            Column(key="jobs", label="Jobs"),
            Column(key="share", label="Share", unit="%"),
        ),
        rows=(*kinds, *pairs),
        footnote=f"{intervals(study)} Each job by its first rule. Below: the most frequent changes.",
    )


def switches(study: Study) -> Table | None:
    """Lay out the single differences of the rule sets that change something."""
    found = study.rule_sets.switches
    shown = found.filter(pl.col("n_changed") > 0)
    if shown.is_empty():
        return None
    rows = [
        Row(
            cells={
                "switch": row["switch"],
                "about": row["row"],
                "changed": count(row["n_changed"]),
                "explained": pct(row["explained"]),
            }
        )
        for row in shown.to_dicts()
    ]
    return Table(
        name="switches",
        caption="Single differences of the rule sets, changed alone",
        columns=(
            Column(key="switch", label="Difference"),
            Column(key="about", label="Row of the chapter"),
            Column(key="changed", label="Changes", unit="jobs"),
            Column(key="explained", label="Of the whole difference", unit="%"),
        ),
        rows=tuple(rows),
        footnote=(
            f"Shares need not add up to 100 %: a job may need two differences, or follow from either. "
            f"{found.height - shown.height} others change nothing."
        ),
    )
