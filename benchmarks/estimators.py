"""Every estimator on every real system in BROKERLAB_DATA, none of which it has seen; prints the table and writes docs/estimators.md.

``python -m benchmarks.estimators``

Unseen are: a system, by estimators that learnt from others of the quantity; and tasks of a system, by estimators that
learnt from its other tasks; systems, and tasks, are left out in groups, one group after the other. Every job is predicted when it is submitted, with
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

from benchmarks.leader import BestSoFar
from benchmarks.real_systems import System, systems
from brokerlab.estimators.allocation import PRICE, allocate_at_prices, level_of
from brokerlab.estimators.deployed import log_rules, rules
from brokerlab.estimators.estimator import GRID, Estimator, Predicted
from brokerlab.estimators.evaluation import fit_and_calibrate, learners, replay_left_out
from brokerlab.estimators.held import hold
from brokerlab.estimators.likejobs import LikeJobs
from brokerlab.estimators.mixture import Views
from brokerlab.estimators.offered import (
    LEVEL,
    WORST,
    coverage,
    defaults,
    offers,
)
from brokerlab.estimators.records import UNITS, Quantity
from brokerlab.estimators.scoring.judged import Judged, rate
from brokerlab.long_work import in_processes
from brokerlab.numerics import FloatArray

FOLDER = Path(os.environ.get("BROKERLAB_DATA", "../shared/data"))
PAGE = Path("docs/estimators.md")
LEVELS = (0.5, 0.9, 0.95, 0.99)
ALL_LEVELS = tuple(sorted({*GRID, *LEVELS}))
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


def fit_on(found: Sequence[System], make: Make) -> Estimator | None:
    """Return an estimator that has learnt from systems; None: there are none."""
    if not found:
        return None
    return fit_and_calibrate(
        make(), pl.concat([each.records for each in found]).sort("decided_s", "pandaid")
    )


def predict_unseen(
    make: Make, system: System, learnt: Estimator | None, groups: int
) -> dict[str, tuple[Predicted, float]]:
    """Predict the jobs of a system by what was learnt from others, and after learning from its other tasks."""
    found = {}
    if learnt is not None:
        found["system"] = timed(partial(learnt.replay, system.records, levels=ALL_LEVELS))
    if system.records["jeditaskid"].n_unique() > 1:
        predicted = replay_left_out(system.records, make, levels=ALL_LEVELS, groups=groups)
        found["tasks"] = predicted, math.nan
    return found


def allocation_of(predicted: Predicted) -> FloatArray:
    """Return the cheapest allocation of memory from a distribution."""
    return allocate_at_prices(predicted, prices=(PRICE,)).at(level_of(PRICE))


def judge(system: System, judged: Judged, unseen: str, name: str, given: FloatArray | None, **more: Any) -> dict[str, Any]:  # fmt: skip
    """Return one row of the table, but for what follows from other rows; ``given``: what each job would get, the request where infinite; None: it is silent."""
    asked = system.records["requested"].fill_null(np.inf).to_numpy()
    return {
        "quantity": judged.quantity,
        "kind": system.kind,
        "system": system.name,
        "jobs": judged.rows.size,
        "tasks": judged.tasks.size,
        "unseen": unseen,
        "estimator": name,
        "given": None if given is None else np.where(np.isfinite(given), given, asked)[judged.rows],
        **more,
    }


def coverages(judged: Judged, held: Predicted) -> dict[str, float | None]:
    """Return, level by level, ``promised_*, coverage_*, upper_*`` of `coverage`."""
    every = {level: coverage(judged, held, level) for level in LEVELS}
    return {f"{name}_{level:g}": value for level, told in every.items() for name, value in told.items()}  # fmt: skip


def score_on_same_jobs(
    judged: Judged, given: Sequence[FloatArray], *, guesses: bool
) -> tuple[list[tuple[float, float]], int]:
    """Score what each estimator would give on the jobs that every one gives something."""
    same = np.logical_and.reduce([np.isfinite(each) for each in given])
    if not guesses:
        sums = [judged.sums(each, same) for each in given]
        return [(rate(s, "waste_per_usage"), rate(s, "exceed")) for s in sums], int(same.sum())
    off = [np.abs(each - judged.used)[same].mean() for each in given]
    above = [(judged.used > each * (1 + 1e-9))[same].mean() for each in given]
    return [(float(a), float(b)) for a, b in zip(off, above, strict=True)], int(same.sum())


def score_on_the_same_jobs(rows: list[dict[str, Any]], judged: Judged) -> None:
    """Score, of one system, all estimators that are not silent on the jobs that each of them gives something."""
    told = [row["given"] for row in rows if row["given"] is not None]
    scores, compared = score_on_same_jobs(judged, told, guesses=judged.quantity == "walltime")
    each = iter(scores)
    for row in rows:
        row["silent"] = row.pop("given") is None
        row["compared"] = compared
        row["score"], row["failures"] = (None, None) if row["silent"] else next(each)


def study_system(
    quantity: Quantity, system: System, learnt: Mapping[str, Estimator | None], makes: Mapping[str, Make], groups: int
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the rows of one system: rules, estimators by what was unseen, and the best so far of all."""
    judged = Judged.of(system.records, quantity, "production")
    row = partial(judge, system, judged)
    rows = []
    simple: dict[str, Predicted] = {}
    for rule in simple_rules(quantity):
        predicted, ms = timed(partial(rule.replay, system.records, levels=ALL_LEVELS))
        if np.isfinite(predicted.point).any():
            rows += [row(unseen, rule.name, predicted.point, learns=False, ms=ms) for unseen in UNSEEN]  # fmt: skip
            simple[rule.name] = predicted
    every = {unseen: dict(simple) for unseen in UNSEEN}
    for name, make in makes.items():
        for unseen, (told, ms) in predict_unseen(make, system, learnt[name], groups).items():
            if not np.isfinite(told.bounds).any():  # it has learnt nothing
                rows.append(row(unseen, name, None, learns=True, ms=ms))
                continue
            held = hold(system.records, told, quantity, levels=ALL_LEVELS)
            memory = quantity == "memory"
            every[unseen][name] = told if memory else held
            given = allocation_of(told) if memory else held.point
            rows.append(row(unseen, name, given, learns=True, ms=ms, **coverages(judged, held)))
        print(f"{quantity}: {system.name}: {name}", flush=True)
    for unseen, candidates in every.items():
        follow = partial(BestSoFar(quantity, ()).follow, system.records, candidates)
        predicted, ms = timed(partial(follow, levels=ALL_LEVELS))
        rows.append(row(unseen, BestSoFar.name, predicted.point, learns=True, ms=ms))
    score_on_the_same_jobs(rows, judged)
    return rows


def study(
    quantity: Quantity, found: Sequence[System], makes: Mapping[str, Make], groups: int
) -> pl.DataFrame:
    """Return every row: one per system, estimator and what was unseen; systems and tasks are left out in so many groups."""
    rows = []
    for first in range(min(groups, len(found))):
        left_out = found[first::groups]
        others = [each for each in found if each not in left_out]
        learnt = {name: fit_on(others, make) for name, make in makes.items()}
        for system in left_out:
            rows += study_system(quantity, system, learnt, makes, groups)
    order = {system.name: place for place, system in enumerate(found)}
    rows.sort(key=lambda row: order[row["system"]])
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
        parts += [
            f"\n## {quantity.capitalize()}\n",
            _SCORES[quantity],
            "\n### Defaults\n",
            _default_table(frame),
            _exception_list(frame),
        ]
        parts += ["\n### What is offered\n", _offer_table(frame)]
        parts += [f"\n### {100 * LEVEL:g} % bounds too short\n", _short_list(frame)]
        for unseen in UNSEEN:
            parts += [
                f"\n### Unseen {unseen}\n",
                _system_table(frame.filter(unseen=unseen), quantity),
            ]
        parts += ["\n### Simple rules\n", _rule_table(frame.filter(unseen="system"), quantity)]
    return "\n".join(parts) + "\n"


def _default_table(frame: pl.DataFrame) -> str:
    lines = [
        "| systems | unseen | default | over the best simple rule: mean | worst | on |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['kind']} ({row['systems']}) | {row['unseen']} | {'' if row['learns'] else 'rule: '}{row['estimator']}"
        f" | {row['mean']:.2f} | {row['worst']:.2f} | {row['worst_on']} |"
        for row in defaults(offers(frame)).iter_rows(named=True)
    ]
    return "\n".join(lines)


def exceptions(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the systems on which the default of their kind is above `WORST` times the best simple rule: none but rules, where nothing is offered.

    ``kind, unseen, system, estimator`` (the default), ``ratio, best_rule``, in the order of the frame.
    """
    chosen = defaults(offers(frame)).select("kind", "unseen", "estimator")
    worse = frame.filter(pl.col("ratio") > WORST)
    return worse.join(
        chosen, on=["kind", "unseen", "estimator"], how="semi", maintain_order="left"
    ).select("kind", "unseen", "system", "estimator", "ratio", "best_rule")


def _exception_list(frame: pl.DataFrame) -> str:
    """Say on which systems the default is worse than `WORST` times the best simple rule, and which one that is."""
    worse = exceptions(frame)
    if worse.is_empty():
        return f"\nNo default is above {WORST:g} times the best simple rule on any system."
    head = f"\nThe default is above {WORST:g} times the best simple rule of these systems; it is default of their kind for want of a better one, there take the rule named:\n"
    lines = [
        f"* {row['system']} ({row['kind']}), unseen {row['unseen']}: {row['estimator']} {row['ratio']:.2f}; best rule {row['best_rule']}"
        for row in worse.iter_rows(named=True)
    ]
    return "\n".join([head, *lines])


def _offer_table(frame: pl.DataFrame) -> str:
    lines = [
        "| systems | unseen | estimator | over the best simple rule: mean | worst | on | 95 % bounds too short on | silent on | offered |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['kind']} ({row['systems']}) | {row['unseen']} | {row['estimator']} | {_ratio(row['mean'])} | {_ratio(row['worst'])}"
        f" | {row['worst_on'] if row['worst'] is not None else ''} | {', '.join(row['short'])} | {', '.join(row['silent'])}"
        f" | {'yes' if row['offered'] else 'no'} |"
        for row in offers(frame).filter("learns").iter_rows(named=True)
    ]
    return "\n".join(lines)


def _short_list(frame: pl.DataFrame) -> str:
    """Say what level is reached where the bounds of one are too short."""
    name = f"{LEVEL:g}"
    judged = frame.filter("learns", pl.col(f"coverage_{name}").is_not_null())
    short = judged.filter(pl.col(f"upper_{name}") < LEVEL)
    says = (
        f"Of {judged.height} pairs of a system and an estimator with bounds of {100 * LEVEL:g} %, {short.height} are too short by more than chance allows; were each "
        f"kept by exactly {100 * LEVEL:g} % of jobs, chance alone would make it up to {0.025 * judged.height:.0f}."
    )
    reached = [
        f"* {row['system']}, unseen {row['unseen']}, {row['estimator']}: {100 * row[f'coverage_{name}']:.1f} %"
        for row in short.iter_rows(named=True)
    ]
    return "\n".join([f"{says} They reach:\n" if reached else says, *reached])


def _system_table(frame: pl.DataFrame, quantity: Quantity) -> str:
    columns = ["system", "jobs", "tasks", "estimator", _SCORE[quantity], "best simple rule", "ratio"]  # fmt: skip
    columns += ["failures", *(f"{100 * level:g} %" for level in LEVELS), "ms a job"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in frame.filter("learns").iter_rows(named=True):
        head = f"| {row['system']} | {row['jobs']} | {row['tasks']} | {row['estimator']} | "
        if row["silent"]:
            lines.append(f"{head}silent |" + " |" * (len(columns) - 5))
            continue
        kept = " | ".join(_coverage(row, level) for level in LEVELS)
        ms = "" if math.isnan(row["ms"]) else f"{row['ms']:.2f}"
        lines.append(
            f"{head}{_number(row['score'])} | {row['best_rule']}: {_number(row['best'])} | {_ratio(row['ratio'])}"
            f" | {100 * row['failures']:.1f} % | {kept} | {ms} |"
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
    """Return the share that kept its bound, in bold where it is below its level by more than chance allows, and the share that had one."""
    share, promised = row[f"coverage_{level:g}"], row[f"promised_{level:g}"]
    if promised is None:
        return ""  # it promises nothing
    if share is None:
        return "refused"
    text = f"{100 * share:.1f}"
    bold = f"**{text}**" if row[f"upper_{level:g}"] < level else text
    return f"{bold} of {100 * promised:.0f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


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
        "Waste: memory held and not used x time, killed attempts whole, over memory used x time. Models give the cheapest allocation"
        f" of their distribution at a price of {PRICE:g} uses a failure, rules what they say; a killed job gets the largest use seen of"
        " its task, then twice as much each time. Failures: jobs above their first allocation."
    ),
    "walltime": (
        "Error: mean absolute difference of guess and run. Models guess their median, at most the request, rules their limit. Failures: jobs that run longer"
        " than the guess."
    ),
}
_HEAD = """\
# Estimators on systems and tasks that they have not seen

Made by `python -m benchmarks.estimators` ({made}, {minutes} min of one core) from the real data in `BROKERLAB_DATA`; not edited by hand.{not_run}

Each system is judged twice. *Unseen system*: the estimator learnt from other systems of the quantity, of any kind. *Unseen tasks*: it learnt from other tasks of the same
system. Systems, and tasks, are left out in {groups} groups, one group after the other. Systems of fewer than 200 jobs are left out. Jobs are predicted as they are submitted; within a system a job is seen when it has ended. Of a task at most the first
{most_of_task} jobs are taken, of a system the first {most_of_system} of these; of a batch log, whose tasks are users, the first {most_of_system} jobs.

Bounds are those of `HeldBounds`. It promises a bound where enough jobs of the task have finished (19 for 95 %), and where, were all open promises missed, the share
that was kept could still be of the level, or no other promise is open: so jobs that come in bursts have few. It refuses one elsewhere: there the request is given, and nothing is promised. `95.2 of 71`: 71 % of the jobs had a bound of this level of their own, and 95.2 % of these kept it; **bold** where that is below the level by more
than chance allows (upper end of the exact binomial interval of 95 %). *refused*: no job had one. *silent*: the estimator had learnt nothing and said nothing.

Memory is allocated from the distribution as the estimator told it, which no promise rests on. *best so far* gives what has cost least on the jobs that had ended, of
all simple rules and all models; it promises no bound.

An estimator is *offered* for a kind of systems where it is nowhere worse than 1.05 times the best simple rule of the system, chosen with hindsight, where no 95 % bound of it is too short, and where it is
nowhere silent; only where it was judged on every system of the kind. The *default* is the offered one of least mean; where none is offered, the simple rule of least mean."""


def study_quantity(
    options: argparse.Namespace, quantity: Quantity
) -> tuple[pl.DataFrame | None, float]:
    """Return the rows of a quantity, None where there is no system, and the CPU time that they took [s]."""
    begin = time.process_time()
    most = {"most_of_task": options.most_of_task, "most_of_system": options.most_of_system}
    found = systems(options.data, quantity, **most)
    wanted = [each for each in found if not options.only or each.name in options.only]
    every = makes(quantity)
    chosen = {name: every[name] for name in options.models or every}
    frame = study(quantity, wanted, chosen, options.groups) if wanted else None
    return frame, time.process_time() - begin


def main() -> None:
    """Compute the table, print it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--page", type=Path, default=PAGE, help="file that is written")
    parser.add_argument(
        "--rows", type=Path, help="Parquet file of all rows; {quantity} is replaced"
    )
    parser.add_argument("--quantities", nargs="*", choices=list(UNITS), default=list(UNITS))
    parser.add_argument("--only", nargs="*", help="names of systems")
    parser.add_argument("--models", nargs="*", help="names of estimators")
    parser.add_argument("--most-of-task", type=int, default=1000, help="jobs taken of a task")
    parser.add_argument("--most-of-system", type=int, default=6000, help="jobs taken of a system")
    parser.add_argument(
        "--groups", type=int, default=3, help="groups of systems, and of tasks, left out in turn"
    )
    options = parser.parse_args()
    frames: dict[Quantity, pl.DataFrame] = {}
    seconds = 0.0
    for quantity, done in in_processes(study_quantity, options, options.quantities, workers=2):
        if isinstance(done, Exception):
            raise done
        frame, took = done
        seconds += took
        if frame is not None:
            frames[quantity] = frame
            if options.rows:
                frame.write_parquet(str(options.rows).format(quantity=quantity))
    frames = {quantity: frames[quantity] for quantity in options.quantities if quantity in frames}
    page = markdown(frames, seconds, options)
    print(page)
    options.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
