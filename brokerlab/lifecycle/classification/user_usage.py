"""Slots that users occupy at hi, mid and lo queues, and what their quotas leave.

Source: docs/rules/classes.md 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.engines import lazy_of
from brokerlab.errors import SchemaError
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.classification.levels import quotient
from brokerlab.lifecycle.classification.rules import ClassRules
from brokerlab.lifecycle.classification.settings import class_settings
from brokerlab.lifecycle.classification.site_classes import GRID, HI, LO, MID
from brokerlab.results import Result, Shows

SHARES = ("User Analysis", "Express Analysis")  # shares whose slots are held against a user
TOTAL = "_total"  # stands for all users
COUNTS = ("nqueue", "nrunning", "slotsqueue", "slotsrunning")
CLASSES = {"hi": HI, "mid": MID, "lo": LO}


class UserSlots(dy.Schema):
    """Jobs and slots of users by queue: what :func:`brokerlab.lifecycle.classification.user_slots` returns."""

    snapshot = dy.Int64(nullable=True)
    at = dy.Datetime(nullable=True, time_unit="us")
    computingsite = dy.String(nullable=False)
    gshare = dy.String(nullable=True)
    produsername = dy.String(nullable=True)
    nqueue = dy.Int64(nullable=True)
    nrunning = dy.Int64(nullable=True)
    slotsqueue = dy.Int64(nullable=True)
    slotsrunning = dy.Int64(nullable=True)


class Classes(dy.Schema):
    """Classes of queues: what :func:`brokerlab.lifecycle.classification.site_classes` returns."""

    snapshot = dy.Int64(nullable=True)
    computingsite = dy.String(nullable=False)
    resource_type = dy.String(nullable=True)
    class_ = dy.Int64(nullable=True, alias="class")


CONTRACTS: dict[str, type[dy.Schema]] = {"user_slots": UserSlots, "classes": Classes}


@dataclass(frozen=True, repr=False)
class UserUsage(Result):
    """What users occupy.

    Attributes:
        users: One row per snapshot and user (``_total`` is all of them), sorted: ``snapshot, produsername``, for each
            of hi, mid, lo ``nqueue_hi, nrunning_hi`` (jobs), ``slotsqueue_hi, slots_hi`` (slots, ``slots_`` are the
            running ones); ``threshold_a, threshold_b, rem_slots_a, rem_slots_b`` (slots), ``rem_slot_ratio_a,
            rem_slot_ratio_b`` (null where the threshold is 0).
        rules: Name and digest of the rule set.
        config_digest: Digest of the configuration.
    """

    shows = Shows(
        about="slots of users by class of queue, one row per snapshot and user",
        columns="snapshot, produsername, slots_hi, slots_mid, slots_lo, rem_slots_a, rem_slots_b",
        keys=("snapshot", "produsername"),
        next=("lifecycle.classification.task_classes(states, progress, result.users)",),
    )

    users: pl.DataFrame
    rules: str
    config_digest: str


def user_usage(
    user_slots: Any,
    classes: Any,
    *,
    config: Config | None = None,
    rules: ClassRules | str | None = None,
) -> UserUsage:
    """Sum the slots of every user by class of queue, and say what the thresholds leave.

    Only queues of type GRID that have a class count, in the shares User Analysis and Express Analysis.

    ``user_slots``: ``computingsite, gshare, produsername, nqueue, nrunning, slotsqueue, slotsrunning``, perhaps ``snapshot, at``; null
    counts as 0, a user that is null as a user. ``classes``: ``computingsite, resource_type, class``, perhaps ``snapshot``:
    `SiteClasses.classes`. Columns of another type are a SchemaError, a threshold with a history for slots without ``at`` a ConfigError.

    Source: docs/rules/classes.md 4; keys USER_USAGE_THRESHOLD_A, USER_USAGE_THRESHOLD_B; switch default_threshold_b.
    """
    rules = ClassRules.of(rules)
    config = Config.empty() if config is None else config
    present = lazy_of(classes, "classes").collect_schema()
    if lacking := [name for name in ("resource_type", "class") if name not in present]:
        raise SchemaError(
            f"classes: column missing: {', '.join(lacking)}; give those of site_classes"
        )
    tables = prepared({"user_slots": user_slots, "classes": classes}, CONTRACTS)
    slots, rated = tables["user_slots"], tables["classes"]
    slots = slots.with_columns(pl.col("snapshot").fill_null(0), pl.col(COUNTS).fill_null(0))
    keys = ["computingsite"] if rated["snapshot"].null_count() else ["snapshot", "computingsite"]
    rated = rated.filter((pl.col("resource_type") == GRID) & pl.col("class").is_not_null())
    counted = slots.filter(pl.col("gshare").is_in(SHARES)).join(
        rated.select(*keys, "class"), on=keys
    )
    everyone = counted.with_columns(produsername=pl.lit(TOTAL))
    sums = _by_class(pl.concat([counted, everyone]))
    times = slots.group_by("snapshot").agg(pl.col("at").max())
    known = times.select(pl.all() if times["at"].null_count() == 0 else "snapshot")
    settings = class_settings(config, rules, known)
    users = _remaining(sums.join(settings, on="snapshot", how="left", maintain_order="left"))
    return UserUsage(users, rules.digest, config.digest)


def _by_class(rows: pl.DataFrame) -> pl.DataFrame:
    """Sum every count by user and class, the classes side by side."""
    sums = [
        pl.when(pl.col("class") == number).then(count).otherwise(0).sum().alias(f"{short}_{name}")
        for name, number in CLASSES.items()
        for count, short in zip(COUNTS, (*COUNTS[:3], "slots"), strict=True)
    ]
    return rows.group_by("snapshot", "produsername").agg(sums).sort("snapshot", "produsername")


def _remaining(users: pl.DataFrame) -> pl.DataFrame:
    """Return what the thresholds leave, and as a part of them."""
    used = {"a": pl.col("slots_hi"), "b": pl.col("slots_hi") + pl.col("slots_mid")}
    left = {
        f"rem_slots_{name}": pl.max_horizontal(pl.col(f"threshold_{name}") - slots, pl.lit(0.0))
        for name, slots in used.items()
    }
    rows = users.with_columns(**left)
    ratio = {
        f"rem_slot_ratio_{name}": quotient(rows[f"rem_slots_{name}"], rows[f"threshold_{name}"])
        for name in used
    }
    read = ["progress_a", "progress_b", "max_rem_jobs_a", "max_rem_jobs_b"]
    return rows.with_columns(**ratio).drop(read)
