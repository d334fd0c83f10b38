"""Every estimator on every real system in BROKERLAB_DATA, none of which it has seen; writes docs/estimators.md.

``python -m benchmarks.estimators [--page docs/estimators.md]``

Unseen are: a system, by estimators that learnt from all others of the quantity; and tasks of a system, by estimators that
learnt from its other tasks (in five groups of tasks, each left out in turn). Every job is predicted when it is submitted, with
what had ended by then. Simple rules have nothing to learn.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.real_systems import System, systems
from brokerlab.estimators.allocation import GRID
from brokerlab.estimators.allocation.priced import PRICE, allocate_at_prices, level_of
from brokerlab.estimators.deployed import log_rules, rules
from brokerlab.estimators.estimator import Estimator, Predicted
from brokerlab.estimators.held import HeldBounds
from brokerlab.estimators.holdout import fit_and_calibrate, replay_left_out
from brokerlab.estimators.leader import BestSoFar
from brokerlab.estimators.learners import learners
from brokerlab.estimators.likejobs import LikeJobs
from brokerlab.estimators.mixture import Views
from brokerlab.estimators.records import UNITS, Quantity
from brokerlab.estimators.scoring.judged import Judged
from brokerlab.estimators.scoring.measures import exact, rate
from brokerlab.numerics import FloatArray

FOLDER = Path(os.environ.get("BROKERLAB_DATA", "../shared/data"))
LEVELS = (0.5, 0.9, 0.95, 0.99)
ALL_LEVELS = tuple(sorted({*GRID, *LEVELS}))
WORST = 1.05
"""Times the best simple rule that an estimator may be at most to be offered for systems of a kind."""
UNSEEN = ("system", "tasks")
Make = Callable[[], Estimator]


def simple_rules(quantity: Quantity) -> list[Estimator]:
    """Return the deployed and simple rules of a quantity, each name once."""
    named = {each.name: each for each in rules(quantity)}
    if quantity == "walltime":
        named |= {each.name: each for each in log_rules()}
    return list(named.values())


def makes(quantity: Quantity) -> dict[str, Make]:
    """Return how estimators that learn are made."""
    more: dict[str, Make] = {
        LikeJobs.name: partial(LikeJobs, quantity),
        Views.name: partial(Views, quantity),
    }
    return {**learners(quantity), **more}


def timed(replay: Callable[[], Predicted]) -> tuple[Predicted, float]:
    """Return predictions, and the CPU time of one job [ms]."""
    begin = time.process_time()
    predicted = replay()
    return predicted, 1e3 * (time.process_time() - begin) / predicted.pandaid.size


def predict_unseen(
    make: Make, system: System, others: Sequence[System], groups: int
) -> dict[str, tuple[Predicted, float]]:
    """Predict the jobs of a system after learning from the others, and after learning from its other tasks."""
    found = {}
    if others:
        learnt = pl.concat([each.records for each in others]).sort("decided_s", "pandaid")
        fitted = fit_and_calibrate(make(), learnt)
        found["system"] = timed(partial(fitted.replay, system.records, levels=ALL_LEVELS))
    if system.records["jeditaskid"].n_unique() > 1:
        predicted = replay_left_out(make, system.records, levels=ALL_LEVELS, groups=groups)
        found["tasks"] = predicted, math.nan
    return found


def allocation_of(predicted: Predicted, quantity: Quantity, *, learns: bool) -> FloatArray:
    """Return what a job would be given: of memory the cheapest allocation; of walltime the guess itself."""
    if quantity == "walltime" or not learns:
        return predicted.point
    return allocate_at_prices(predicted, prices=(PRICE,)).at(level_of(PRICE))


def held(system: System, quantity: Quantity, predicted: Predicted) -> Predicted:
    """Return the bounds of predictions, held to their levels."""
    layer = HeldBounds(LikeJobs(quantity), quantity)  # which estimator is inside does not matter
    return layer.hold(system.records, predicted, levels=LEVELS)


def judge(
    system: System, quantity: Quantity, name: str, unseen: str, predicted: Predicted, ms: float, *, learns: bool
) -> dict[str, Any]:  # fmt: skip
    """Return one row of the table, but for what follows from other rows."""
    judged = Judged.of(system.records, quantity, "production")
    given = allocation_of(predicted, quantity, learns=learns)
    asked = system.records["requested"].fill_null(np.inf).to_numpy()
    given = np.where(np.isfinite(given), given, asked)[judged.rows]
    sums = judged.sums(given)
    error = np.abs(given - judged.used)
    row: dict[str, Any] = {
        "quantity": quantity,
        "kind": system.kind,
        "system": system.name,
        "jobs": judged.rows.size,
        "tasks": judged.tasks.size,
        "unseen": unseen,
        "estimator": name,
        "learns": learns,
        "given": given,
        "score": rate(sums, "waste_per_usage") if quantity == "memory" else float(np.mean(error)),
        "failures": rate(sums, "exceed"),
        "ms": ms,
    }
    promises = learns and name != BestSoFar.name
    bounds = held(system, quantity, predicted) if promises else predicted
    for level in LEVELS if promises else ():
        bound = bounds.at(level)[judged.rows]
        told = np.isfinite(bound) & judged.can_be_judged(bound)
        kept = int((judged.used[told] <= bound[told] * (1 + 1e-9)).sum())
        row[f"coverage_{level:g}"] = kept / int(told.sum()) if told.any() else None
        row[f"upper_{level:g}"] = exact(kept, int(told.sum()), 0.95).hi if told.any() else None
        row[f"refused_{level:g}"] = 1 - float(np.isfinite(bound).mean())
    return row


def on_the_same_jobs(rows: list[dict[str, Any]], system: System, quantity: Quantity) -> None:
    """Score, of one system, all estimators on the jobs that each of them gives something."""
    judged = Judged.of(system.records, quantity, "production")
    same = np.logical_and.reduce([np.isfinite(row["given"]) for row in rows])
    for row in rows:
        given = row.pop("given")
        row["compared"] = int(same.sum())
        if quantity == "memory":
            row["score"] = rate(judged.sums(given, same), "waste_per_usage")
            row["failures"] = rate(judged.sums(given, same), "exceed")
        else:
            row["score"] = float(np.abs(given - judged.used)[same].mean())
            row["failures"] = float((judged.used > given * (1 + 1e-9))[same].mean())


def study(
    quantity: Quantity, found: Sequence[System], makes: Mapping[str, Make], groups: int
) -> pl.DataFrame:
    """Return every row: one per system, estimator and what was unseen; tasks are left out in so many groups."""
    rows: list[dict[str, Any]] = []
    for system in found:
        mine = []
        simple: dict[str, Predicted] = {}
        told: dict[str, dict[str, Predicted]] = {unseen: {} for unseen in UNSEEN}
        for rule in simple_rules(quantity):
            predicted, ms = timed(partial(rule.replay, system.records, levels=ALL_LEVELS))
            if np.isfinite(predicted.point).any():
                mine += [
                    judge(system, quantity, rule.name, unseen, predicted, ms, learns=False)
                    for unseen in UNSEEN
                ]
                simple[rule.name] = predicted
        others = [each for each in found if each is not system]
        for name, make in makes.items():
            for unseen, (predicted, ms) in predict_unseen(make, system, others, groups).items():
                told[unseen][name] = predicted
                mine.append(judge(system, quantity, name, unseen, predicted, ms, learns=True))
            print(f"{quantity}: {system.name}: {name}", flush=True)
        for unseen, candidates in told.items():
            every = {**candidates, **simple}
            best = partial(BestSoFar(quantity, ()).follow, system.records, every)
            predicted, ms = timed(partial(best, levels=ALL_LEVELS))
            mine.append(judge(system, quantity, BestSoFar.name, unseen, predicted, ms, learns=True))
        on_the_same_jobs(mine, system, quantity)
        rows += mine
    frame = pl.DataFrame(rows, infer_schema_length=None)
    best = (
        frame.filter(~pl.col("learns"), pl.col("score").is_finite())
        .sort("score", "estimator")
        .group_by("system", "unseen", maintain_order=True)
        .first()
        .select("system", "unseen", best_rule="estimator", best="score")
    )
    return frame.join(
        best, on=["system", "unseen"], how="left", maintain_order="left"
    ).with_columns(ratio=pl.col("score") / pl.col("best"))


def offers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return, by kind of system, what was unseen and estimator, the worst ratio to the best simple rule and the worst coverage.

    ``kind, unseen, estimator, systems, mean`` (geometric), ``worst, worst_on, short`` (of 95 % bounds, those that are kept less often
    than chance allows), ``offered``.
    """
    short = pl.col("upper_0.95") < 0.95
    found = (
        frame.filter("learns")
        .group_by("kind", "unseen", "estimator", maintain_order=True)
        .agg(
            systems=pl.col("system").n_unique(),
            mean=pl.col("ratio").log().mean().exp(),
            worst=pl.col("ratio").max(),
            worst_on=pl.col("system").sort_by("ratio").last(),
            bounds=pl.col("coverage_0.95").count(),
            short=short.sum(),
        )
    )
    return found.with_columns(offered=(pl.col("worst") <= WORST) & (pl.col("short") == 0))


def markdown(
    frames: Mapping[Quantity, pl.DataFrame], seconds: float, options: argparse.Namespace
) -> str:
    """Return the page."""
    run = {name for frame in frames.values() for name in frame["estimator"]}
    absent = sorted({name for quantity in frames for name in makes(quantity)} - run)
    about = {
        "made": datetime.now(UTC).date().isoformat(),
        "minutes": math.ceil(seconds / 60),
        "not_run": f" Not run this time: {', '.join(absent)} (`--models`)." if absent else "",
        **vars(options),
    }
    parts = [_HEAD.format(**about)]
    for quantity, frame in frames.items():
        parts += [f"\n## {quantity.capitalize()}\n", _offer_table(frame), _SCORES[quantity]]
        for unseen in UNSEEN:
            parts += [
                f"\n### Unseen {unseen}\n",
                _system_table(frame.filter(unseen=unseen), quantity),
            ]
        parts += ["\n### Simple rules\n", _rule_table(frame.filter(unseen="system"), quantity)]
    return "\n".join(parts) + "\n"


def _offer_table(frame: pl.DataFrame) -> str:
    lines = [
        "| systems | unseen | estimator | over the best simple rule: mean | worst | on | 95 % bounds too short | offered |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['kind']} ({row['systems']}) | {row['unseen']} | {row['estimator']} | {row['mean']:.2f} | {row['worst']:.2f} | {row['worst_on']}"
        f" | {row['short']} of {row['bounds']} | {'yes' if row['offered'] else 'no'} |"
        for row in offers(frame).iter_rows(named=True)
    ]
    return "\n".join(lines)


def _system_table(frame: pl.DataFrame, quantity: Quantity) -> str:
    columns = [
        "system",
        "jobs",
        "tasks",
        "estimator",
        _SCORE[quantity],
        "best simple rule",
        "ratio",
    ]
    columns += [
        "failures",
        *(f"{100 * level:g} %" for level in LEVELS),
        "refused at 95 %",
        "ms a job",
    ]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in frame.filter("learns").iter_rows(named=True):
        kept = " | ".join(_coverage(row, level) for level in LEVELS)
        none = row["refused_0.95"]
        refused = "" if none is None else f"{100 * none:.1f} %"
        ms = "" if math.isnan(row["ms"]) else f"{row['ms']:.2f}"
        lines.append(
            f"| {row['system']} | {row['jobs']} | {row['tasks']} | {row['estimator']} | {_number(row['score'])}"
            f" | {row['best_rule']}: {_number(row['best'])} | {row['ratio']:.2f} | {100 * row['failures']:.1f} % | {kept}"
            f" | {refused} | {ms} |"
        )
    return "\n".join(lines)


def _rule_table(frame: pl.DataFrame, quantity: Quantity) -> str:
    rows = frame.filter(~pl.col("learns"))
    names = rows["estimator"].unique(maintain_order=True).to_list()
    lines = [f"| system | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for (system,), part in rows.group_by("system", maintain_order=True):
        said = dict(part.select("estimator", "score").iter_rows())
        lines.append(f"| {system} | {' | '.join(_number(said.get(name)) for name in names)} |")
    return "\n".join([f"{_SCORE[quantity].capitalize()} of each:\n", *lines])


def _coverage(row: Mapping[str, Any], level: float) -> str:
    """Return the share that kept its bound; in bold where it is below its level by more than chance allows."""
    share = row[f"coverage_{level:g}"]
    if share is None:
        return ""
    text = f"{100 * share:.1f}"
    return f"**{text}**" if row[f"upper_{level:g}"] < level else text


def _number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


_SCORE: dict[Quantity, str] = {
    "memory": "waste per use",
    "walltime": f"mean error [{UNITS['walltime']}]",
}
_SCORES: dict[Quantity, str] = {
    "memory": (
        "\nWaste: memory held and not used x time, killed attempts whole, over memory used x time. Models give the cheapest allocation"
        f" of their distribution at a price of {PRICE:g} uses a failure, rules what they say; a killed job gets the largest use seen of"
        " its task, then twice as much each time. Failures: jobs above their first allocation."
    ),
    "walltime": (
        "\nError: mean absolute difference of guess and run. Models guess their median, rules their limit. Failures: jobs that run longer"
        " than the guess."
    ),
}
_HEAD = """\
# Estimators on systems and tasks that they have not seen

Made by `python -m benchmarks.estimators` ({made}, {minutes} min of one core) from the real data in `BROKERLAB_DATA`; not edited by hand.{not_run}

Each system is judged twice. *Unseen system*: the estimator learnt from all other systems of the quantity, of any kind. *Unseen tasks*: it learnt from other tasks of the same
system; {groups} groups of tasks are left out in turn. Jobs are predicted as they are submitted; within a system a job is seen when it has ended. Of a task at most
{most_of_task} jobs are taken, of a system {most_of_system}.

Bounds are held to their levels by `HeldBounds`: 50 % to 99 % are the shares of the jobs [%] that kept the bound of that level, **bold** where that is below the level by more
than chance allows (upper end of the exact binomial interval of 95 %). Where fewer jobs of the task had finished than can hold the level (19 for 95 %), or no job may miss any more, the bound is the request;
*refused* are jobs that have none.

*Best so far* gives what has cost least on the jobs that had ended, of the models and all simple rules; it promises no coverage. An estimator is *offered* for a kind of systems where it is nowhere worse than
1.05 times the best simple rule of the system, chosen with hindsight, and no 95 % bound of it is too short; where none is, the simple rules are."""


def main() -> None:
    """Compute the table, print it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--page", type=Path, help="file that is written")
    parser.add_argument(
        "--rows", type=Path, help="Parquet file of all rows; {quantity} is replaced"
    )
    parser.add_argument("--quantities", nargs="*", choices=list(UNITS), default=list(UNITS))
    parser.add_argument("--only", nargs="*", help="names of systems")
    parser.add_argument("--models", nargs="*", help="names of estimators")
    parser.add_argument("--most-of-task", type=int, default=1_000, help="jobs taken of a task")
    parser.add_argument("--most-of-system", type=int, default=6_000, help="jobs taken of a system")
    parser.add_argument("--groups", type=int, default=5, help="groups of tasks, left out in turn")
    options = parser.parse_args()
    begin = time.process_time()
    frames: dict[Quantity, pl.DataFrame] = {}
    for quantity in options.quantities:
        found = systems(
            options.data,
            quantity,
            most_of_task=options.most_of_task,
            most_of_system=options.most_of_system,
        )
        wanted = [each for each in found if not options.only or each.name in options.only]
        every = makes(quantity)
        chosen = {name: every[name] for name in options.models or every}
        if wanted:
            frames[quantity] = study(quantity, wanted, chosen, options.groups)
            if options.rows:
                frames[quantity].write_parquet(str(options.rows).format(quantity=quantity))
    page = markdown(frames, time.process_time() - begin, options)
    print(page)
    if options.page:
        options.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
