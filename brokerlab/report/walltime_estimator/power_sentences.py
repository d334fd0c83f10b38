"""What the report says on core power and sites, from what was found."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.estimators.walltime.corepower import STEP
from brokerlab.estimators.walltime.power import PowerStudy
from brokerlab.estimators.walltime.sites import OWN, RULE
from brokerlab.report.content import Verdict
from brokerlab.words import listed, measured, number, percent, thin

SHOWN = 4
"""Tasks that a sentence names; more are summed up."""


def verdict(study: PowerStudy) -> Verdict:
    """Say how far the rule's slope of -1 is from what was found, and what core power is worth."""
    return Verdict(kind="finding", subject="core power and sites", sentence=thin(f"{slopes(study)} {worth(study)}"))  # fmt: skip


def slopes(study: PowerStudy) -> str:
    """Say what the slopes are."""
    rows = _of(study.slopes.filter(pl.col("slope").is_not_null()), "cpu")
    if not rows:
        return "No task ran at enough queues to say how its times depend on core power."
    said = [
        f"{measured(row['slope'], row['slope_lo'], row['slope_hi'], 2)} over {row['queues']} queues of task {row['jeditaskid']}"
        for row in rows[:SHOWN]
    ]
    more = f" and {len(rows) - SHOWN} more tasks" if len(rows) > SHOWN else ""
    return (
        "The rule takes time as inverse to core power, a log-log slope of -1; CPU time per event has "
        f"{listed(said)}{more} (95 % intervals, queues as random effects){_against(rows)}."
    )


def _against(rows: list[dict[str, Any]]) -> str:
    """Say with how many tasks a slope of -1, and one of 0, agrees."""
    agrees = {at: sum(row["slope_lo"] <= at <= row["slope_hi"] for row in rows) for at in (-1, 0)}
    n = len(rows)
    return f": -1 lies in {agrees[-1]} of {n} interval{'s' * (n > 1)}, 0 in {agrees[0]}"


def worth(study: PowerStudy) -> str:
    """Say what scaling by core power does to an estimate, and what knowing the queue does."""
    scaled, own = (_of(study.gain.filter(way=way), "wall") for way in (RULE, OWN))
    if not scaled:
        return ""
    said = [
        f"{measured(row['ratio'], row['ratio_lo'], row['ratio_hi'], 2)} times (task {row['jeditaskid']})"
        for row in scaled[:SHOWN]
    ]
    knowing = [number(row["ratio"], 2) for row in own[:SHOWN]]
    return (
        f"Wall times carried over from other queues by core power err {listed(said)} as much as without it; by other jobs of the queue "
        f"itself {listed(knowing)} times as much."
    )


def meaning(study: PowerStudy) -> str:
    """Say what follows for an estimator."""
    scaled = study.gain.filter(way=RULE, time="wall")
    helps, harms = (
        scaled.filter(each).height for each in (pl.col("ratio_hi") < 1, pl.col("ratio_lo") > 1)
    )
    own = study.gain.filter(way=OWN, time="wall")
    told = (
        f"Scaling by core power makes wall times of other queues better beyond doubt for {helps} of {_count(scaled.height, 'task')} and "
        f"worse beyond doubt for {harms}; "
        if scaled.height
        else ""
    )
    known = (
        f"the queue's own jobs do beyond doubt for {own.filter(pl.col('ratio_hi') < 1).height}. "
        if own.height
        else ""
    )
    return thin(
        f"{told}{known}So an estimator should take core power as one feature with a slope that it learns, not as a law, and let the "
        "effect of each queue follow from its jobs as they end; a bound needs the spread between queues that scaling leaves."
    )


def finding(study: PowerStudy) -> str:
    """Return the title of the picture."""
    rows = _of(study.slopes.filter(pl.col("slope").is_not_null()), "cpu")
    if not rows:
        return "Too few queues to say how times depend on core power"
    steep, flat = min(r["slope"] for r in rows), max(r["slope"] for r in rows)
    span = number(steep, 2) if len(rows) == 1 else f"{number(steep, 2)} to {number(flat, 2)}"
    return thin(
        f"CPU time per event follows core power with a log-log slope of {span}; the rule takes -1"
    )


def sample(study: PowerStudy) -> str:
    """Say what is drawn."""
    jobs = study.queues.group_by("jeditaskid", "time").agg(pl.col("jobs").sum(), pl.len())
    said = [
        f"task {task}: {n:,} jobs at {queues} queues"
        for task, n, queues in jobs.filter(time="cpu").sort("len", descending=True).select("jeditaskid", "jobs", "len").head(SHOWN).rows()
    ]  # fmt: skip
    return thin(
        f"{'; '.join(said)}. A point per queue, larger with more jobs; blue: fitted slope; grey dashes: slope -1."
    )


def sites(study: PowerStudy) -> list[str]:
    """Say how far one number per site is from its nodes, how it moved, and what analysis jobs show."""
    told = []
    if study.inside is not None:
        one = study.inside
        told.append(
            f"Inside one site ({one.nodes:,} nodes, {one.slots:,} slots, {one.kinds} distinct values) core power per slot runs from "
            f"{number(one.least, 1)} to {number(one.most, 1)} HS06 with a standard deviation of {number(100 * one.ln_sd)} %: one number "
            f"per site leaves that much spread in times, and {percent(one.within_tenth)} of the slots are within a tenth of the mean. All "
            "nodes of the site are in it, so there is no interval; other sites have other nodes."
        )
    if study.drift is not None:
        told.append(_drift(study))
    if study.analysis is not None:
        found = study.analysis
        told.append(
            f"CPU times of {found['jobs']:,} analysis jobs at {found['queues']} queues spread by a factor of "
            f"{number(2.718281828 ** found['sd'], 0)} (standard deviation of the logarithm {number(found['sd'], 2)}), of whose variance "
            f"{percent(found['share'], found['share_lo'], found['share_hi'])} lies between queues: where a job runs says little there, what it does says "
            "the rest."
        )
    return [thin(sentence) for sentence in told]


def _drift(study: PowerStudy) -> str:
    found = study.drift
    if found is None:
        return ""
    several = found.by_site.filter(pl.col("months") > 1)
    months = found.months["month"]
    largest = several.row(0, named=True) if several.height else None
    top = f", most at {largest['site']} (by {percent(largest['range'])})" if largest and largest["steps"] else ""  # fmt: skip
    default = int(found.by_site["is_default"].sum())
    return (
        f"Of {several.height} sites followed over {months.n_unique()} months (from {str(months.min())[:7]}), "
        f"{percent(found.moved, found.moved_lo, found.moved_hi)} changed their core power by more than {percent(STEP)} from a month to the next"
        f"{top}; between sites it differs by {number(100 * found.ln_sd)} %; {default} of {found.by_site.height} sites report the default 12 "
        f"throughout, which says nothing of their nodes. {found.left_out:,} rows are too short to tell."
    )


def cannot_tell(study: PowerStudy) -> list[str]:
    """Collect what cannot be told of core power."""
    told = []
    without = study.slopes.filter(pl.col("missing").is_not_null(), time="cpu")
    if without.height:
        named = [f"{task} ({why})" for task, why in without.select("jeditaskid", "missing").head(SHOWN).rows()]  # fmt: skip
        more = f" and {without.height - SHOWN} more" if without.height > SHOWN else ""
        told.append(f"No slope on core power for task {', '.join(named)}{more}.")
    told.append(
        "Core power is a configured number, the same for all jobs of a queue: its slope is known from as many points as there are "
        "queues, and queues with more power may differ in other ways, such as the number of cores of their jobs."
    )
    if study.synthetic:
        told.append("Jobs behind the slopes are generated: their slopes are those that the generator was given.")  # fmt: skip
    return told


def _of(frame: pl.DataFrame, time: str) -> list[dict[str, Any]]:
    """Return the rows of a time, tasks at most queues first."""
    return frame.filter(time=time).sort("queues", "jeditaskid", descending=[True, False]).to_dicts()


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"
