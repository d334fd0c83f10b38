"""The tables of the report on user tasks: old and new weight, fairness."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.studies.user_tasks.outcomes import CLASS_ORDER
from brokerlab.brokerage.studies.user_tasks.weights import CLASSES, NOTICED
from brokerlab.report.analysis_replay.study import Study
from brokerlab.report.analysis_replay.tables import OVER_USERS
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.replays.cells import count, pct, row_pct
from brokerlab.words import number

SHOWN = 6
"""Users shown from either end."""


def classes(study: Study) -> Table:
    """Lay out how many jobs of each class of tasks move, and from which class of queues to which."""
    found = study.weights
    moved = {row["task_class"]: row for row in found.moved_by_class.to_dicts()}
    every = found.moved.row(0, named=True)
    changes = {(row["task_class"], row["part"]): row for row in found.changes.to_dicts()}
    rows = [
        Row(
            cells={
                "class": name,
                "jobs": count(row["whole"]),
                "moved": row_pct(row),
                **{
                    part: row_pct(changes[name, part]) if (name, part) in changes else None
                    for part in CLASSES
                },
            }
        )
        for name, row in [("all", every), *((name, moved[name]) for name in CLASS_ORDER if name in moved)]
    ]  # fmt: skip
    return Table(
        name="weight_classes",
        caption=f"What the new basic weight would move, {number(found.n_brokerages)} brokerages with candidates under both",
        columns=(
            Column(key="class", label="Class of the task"),
            Column(key="jobs", label="Expected jobs"),
            Column(key="moved", label="Elsewhere", unit="% of jobs"),
            *(Column(key=part, label=f"At {part} queues", unit="points") for part in CLASSES),
        ),
        rows=tuple(rows),
        footnote=(
            f"{OVER_USERS} {_ends(study)} Elsewhere: the part of the expected jobs that another candidate gets, which is half the sum of all "
            "differences of shares. Points: new less original, in per cent of the jobs."
        ),
    )


def _ends(study: Study) -> str:
    """Say which brokerages the table leaves out."""
    found = {row["part"]: row for row in study.weights.ends.to_dicts()}
    lost, won = (int(found[name]["total"]) if name in found else 0 for name in ("lost", "won"))
    if not lost and not won:
        return ""
    return (
        f"Left out: {number(lost)} brokerages with candidates by the original weight only, {number(won)} by the new one only; "
        "a least weight (MIN_WEIGHT) that suits one of them need not suit the other."
    )


def queues(study: Study) -> Table:
    """Lay out the queues that gain and lose most."""
    about = {row["queue"]: row for row in study.weights.queues.to_dicts()}
    rows = [
        Row(
            cells={
                "queue": row["part"],
                "class": about[row["part"]]["queue_class"],
                "old": count(about[row["part"]]["old"]),
                "new": count(about[row["part"]]["new"]),
                "change": row_pct(row),
            }
        )
        for row in study.weights.gains.iter_rows(named=True)
    ]
    return Table(
        name="weight_queues",
        caption="Queues that gain and lose most by the new basic weight",
        columns=(
            Column(key="queue", label="Queue"),
            Column(key="class", label="Class"),
            Column(key="old", label="Original", unit="expected jobs"),
            Column(key="new", label="New", unit="expected jobs"),
            Column(key="change", label="Change", unit="% of all jobs"),
        ),
        rows=tuple(rows),
        footnote=f"{OVER_USERS} The class is the one that most of its pairs see.",
    )


def users(study: Study) -> Table | None:
    """Lay out the users whose jobs would wait longest and shortest more; none where no wait is known."""
    found = study.weights.users
    step = pl.col("new_h") - pl.col("old_h")
    worse, better = found.filter(step > 0).head(SHOWN), found.filter(step < 0).tail(SHOWN)
    shown = pl.concat([worse, better])
    if shown.is_empty():
        return None
    rows = [
        Row(
            cells={
                "user": row["user"],
                "jobs": count(row["jobs"]),
                "old": Num(value=row["old_h"], decimals=2),
                "new": Num(value=row["new_h"], decimals=2),
                "change": Num(value=row["new_h"] - row["old_h"], decimals=2),
                "known": pct(row["known"]),
            },
            note={0: "loses most", shown.height - 1: "gains most"}.get(place, "")
            if (place == 0) == (row["new_h"] > row["old_h"])
            else "",
        )
        for place, row in enumerate(shown.iter_rows(named=True))
    ]
    wait = {row["part"]: row for row in study.weights.wait.to_dicts()}
    return Table(
        name="weight_users",
        caption="Expected wait of a user's jobs under both weights, those who lose most first",
        columns=(
            Column(key="user", label="User"),
            Column(key="jobs", label="Expected jobs"),
            Column(key="old", label="Original", unit="h"),
            Column(key="new", label="New", unit="h"),
            Column(key="change", label="Change", unit="h"),
            Column(key="known", label="Wait known", unit="% of jobs"),
        ),
        rows=tuple(rows),
        footnote=(
            "Expected wait of a queue: waiting jobs of the share over its to-running rate at that instant, weighted by the "
            f"expected jobs; {_mean(wait)} A change is felt from {100 * NOTICED:g} % on."
        ),
    )  # fmt: skip


def _mean(wait: dict[str, dict[str, float]]) -> str:
    """Say how the mean over all jobs changes."""
    if "old" not in wait or wait["old"]["share"] is None:
        return "the mean over all jobs is not known."
    return f"over all jobs it goes from {number(wait['old']['share'], 2)} h to {number(wait['new']['share'], 2)} h."


def fairness(study: Study) -> Table:
    """Lay out Jain's indices."""
    words = {
        "asked": "Jobs asked for",
        "let_through": "Jobs that the throttle lets through",
        "placed": "Jobs that find a queue",
        "core_h": "Core hours that really ran",
        "throttle": "Change by the throttle",
        "checks": "Change by the checks",
    }
    rows = [
        Row(
            cells={
                "what": words[row["quantity"]],
                "index": Num(value=row["index"], lo=row["lo"], hi=row["hi"], decimals=3),
            }
        )
        for row in study.indices.iter_rows(named=True)
    ]
    return Table(
        name="fairness_indices",
        caption=f"Jain's index over {number(study.n_users)} users: 1 where all have the same",
        columns=(Column(key="what", label="What is divided"), Column(key="index", label="Index", unit="1")),
        rows=tuple(rows),
        footnote=f"{OVER_USERS} The lower end is 1 over the number of users: one has all.",
    )  # fmt: skip


def waits(study: Study) -> Table | None:
    """Lay out how long jobs really waited, by class of task; none where no job ran."""
    found = {(row["task_class"], row["part"]): row for row in study.waits.to_dicts()}
    order = [name for name in CLASS_ORDER if (name, "wait_h") in found]
    if not order:
        return None
    rows = [
        Row(
            cells={
                "class": name,
                "users": count(found[name, "wait_h"]["n_users"]),
                "jobs": count(found[name, "wait_h"]["whole"]),
                "wait": _hours(found[name, "wait_h"]),
                "core": _hours(found[name, "core_h"]),
            }
        )
        for name in order
    ]
    return Table(
        name="waits",
        caption="Jobs that really ran, by the class of their task when they were made",
        columns=(
            Column(key="class", label="Class of the task"),
            Column(key="users", label="Users"),
            Column(key="jobs", label="Jobs"),
            Column(key="wait", label="Mean wait", unit="h"),
            Column(key="core", label="Mean core hours", unit="h"),
        ),
        rows=tuple(rows),
        footnote=f"{OVER_USERS} Wait: from being made to the start. Merge jobs are left out.",
    )


def _hours(row: dict[str, float]) -> Num:
    return Num(value=row["share"], lo=row["lo"], hi=row["hi"])
