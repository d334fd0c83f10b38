"""Does the simulation give back what the archive saw? Asked before anything is proposed from one."""

from __future__ import annotations

from typing import ClassVar

import polars as pl
from pydantic import Field, field_validator

from brokerlab import archive as archives
from brokerlab import words, worlds
from brokerlab.archive import Archive
from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation import Limits, QueueRules, Validation
from brokerlab.calibrate.simulation.archive import Brokerage
from brokerlab.calibrate.simulation.validation import STATES, worst_first
from brokerlab.calibrate.simulation.world import Fit
from brokerlab.charts import simulation as charts
from brokerlab.report import kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.report.needs import Needs, Rows

RANK = 90.0  # percentile of the waits that is drawn [%]
MEANING = {
    "placement": ("the brokerage sends another number of jobs", "% of those seen"),
    "waiting": ("waits differ by more, and by more than a part of the mean wait", "h"),
    "shape": ("waits are spread otherwise (Kolmogorov-Smirnov distance)", "1"),
    "timing": ("other jobs wait than waited (rank correlation, at least)", "1"),
    "unexplained": ("fitted start-up delays, not slots, make the waits", "h"),
    "utilisation": ("slots are used otherwise", "% of slots"),
    "kills": ("another share of the jobs is killed", "% of jobs"),
}
"""Limit to what breaking it means, and its unit."""
MOVING = {
    "links": "inputs and outputs travel over links that serve one transfer at a time",
    "observed": "jobs wait for their inputs as long as they were seen to",
    "none": "no data travel",
}
"""How data travel, by mode."""


_CHANGED = pl.col("modificationtime")
_MIDDLE = _CHANGED.min() + (_CHANGED.max() - _CHANGED.min()) / 2
_READY = pl.coalesce("activatedtime", "creationtime")
SECOND_HALF = (pl.col("starttime").is_not_null() & (_READY >= _MIDDLE)).sum()
"""Over jobs: how many became ready and ran in the period that is simulated unless another one is asked for."""


class Params(kit.Params):
    """What may be asked."""

    report: ClassVar = "simulation-validation"
    question: ClassVar = (
        "Does the simulation give the waiting times, utilisation and kills that the archive saw?"
    )

    needs: ClassVar[Needs] = Needs(
        tables=("jobs", "queues"),
        rows=[Rows("jobs that ran in the second half of the archive", SECOND_HALF)],
    )

    start: kit.Instant = Field(
        None, description="period begins, empty for the middle of the archive [ISO 8601, UTC]"
    )
    end: kit.Instant = Field(
        None, description="period ends, empty for the end of the archive [ISO 8601, UTC]"
    )
    n_boot: int = Field(100, ge=20, description="bootstrap replicates [1]")
    seed: int = Field(1, ge=0, description="seed of simulation and bootstrap")
    limits: dict[str, float] = Field(
        {}, description="limits other than the defaults, by name, such as wasserstein_h"
    )
    fit: Fit = Field("first", description="which jobs start at free cores, first or strict [name]")
    window: kit.Duration = Field("1d", description="slots are constant so long [duration]")
    quantile: float = Field(
        1.0, gt=0, le=1, description="of the cores in use in a window, taken for its slots [1]"
    )
    brokerage: Brokerage = Field(
        "seen", description="where jobs go: seen, or replayed by the rules [name]"
    )
    cycle: kit.AnyDuration = Field(
        "", description="from one brokerage to the next, empty: as the archive shows [duration]"
    )

    @field_validator("limits")
    @classmethod
    def _known_limits(cls, given: dict[str, float]) -> dict[str, float]:
        kit.allowed(lambda: Limits.of(given))
        return given


# --- compute: library calls only, no words ----------------------------------------------------------------------------


@kit.answers
def load(p: Params) -> Archive:
    """Open the archive."""
    return p.needs.opened(archives.open(p.archive))


@kit.answers
def study(archive: Archive, p: Params) -> Validation:
    """Simulate the period and compare."""
    replayed = p.brokerage == "replayed"
    world = simulation.of_archive(
        archive,
        start=p.start,
        end=p.end,
        brokerage=p.brokerage,
        cycle=p.cycle,
        drain="0h",
        window=p.window,
        quantile=p.quantile,
        rules=p.rules,
        queueing=QueueRules(fit=p.fit, attempts=3 if replayed else 1),
    )
    seeds = range(p.seed, p.seed + (len(simulation.RUNS) if replayed else 1))
    return simulation.validate(
        world, limits=Limits.of(p.limits), seeds=seeds, repeats=p.n_boot, seed=p.seed
    )


# --- show: frames and templates ---------------------------------------------------------------------------------------


def page(archive: Archive, s: Validation, p: Params) -> Page:
    """Lay out the comparison."""
    asked = s.limits.queues
    return Page(
        verdict=_headline(s),
        numbers=[
            Number(
                "Jobs at queues within all limits",
                s.passed_share,
                unit="%",
                note=say("at least {asked:%} asked", asked=asked),
            ),
            Number("Queues within all limits", s.n_passed, note=f"of {s.n_judged} judged"),
            Number(
                "Queues undecided", s.n_undecided, note="limit of the waits inside the interval"
            ),
        ],
        chart=_waits_chart(s),
        sections={
            "What the simulation is held to": [_limits_table(s)],
            "Who is worst": [_distances(s)],
        },
        caveats=_caveats(archive, s),
        facts=_facts(s, p),
        archive=archive,
        window=f"jobs made from {words.instant(s.world.start)} to {words.instant(s.world.end)}",
        also={
            "all_queues": s.queues,
            "quantiles": s.quantiles,
            "left_out": s.world.left_out,
        },
        values=s.to_dict(),
    )


HEADLINES = {
    "none": "No queue has {least:#job} in the period: nothing can be judged.",
    "good": "The simulation gives back what was seen at {good} of {all:#queue}, {share:%} of their jobs.",
    "bad": "The simulation does not give back what was seen at {bad} of {all:#queue}, {rest:%} of their jobs.",
}


def _headline(s: Validation) -> Verdict:
    case = "none" if not s.n_judged else "good" if s.ok else "bad"
    sentence = say(
        HEADLINES[case],
        least=s.limits.least_jobs,
        good=s.n_passed,
        bad=s.n_judged - s.n_passed,
        all=s.n_judged,
        share=s.passed_share,
        rest=1 - s.passed_share,
    )
    return Verdict(kind="finding" if s.ok else "no_answer", sentence=sentence)


def _waits_chart(s: Validation) -> Chart:
    waits = s.waits([RANK]).filter(pl.col("observed_h") > 0, pl.col("simulated_h") > 0)
    good, fitted, differ, other, _ = (s.states[name] for name in STATES)
    return Chart(
        draw=charts.waits_chart,
        frame=waits,
        finding=say(
            "Waits agree at {agree} of {judged} judged queues, at {fitted} of them though slots do not make them",
            agree=good + fitted + other,
            judged=good + fitted + differ + other,
            fitted=fitted,
        ),
        sample=say(
            "{jobs:#job}; a point is the 90th percentile of the waits of a queue, on the line both are the same",
            jobs=s.queues["n_jobs"].sum(),
        ),
        note="Not by slots: start-up delays are fitted to the time before, so that waits agree where slots do not make them.",
    )


def _limits_table(s: Validation) -> Table:
    broken = s.broken_limits().with_columns(
        means=pl.col("limit").replace_strict({name: text for name, (text, _) in MEANING.items()}),
        unit=pl.col("limit").replace_strict({name: unit for name, (_, unit) in MEANING.items()}),
    )
    return Table(
        name="limits",
        frame=broken if s.world.brokered else broken.filter(pl.col("limit") != "placement"),
        caption="Limits, those that most queues break first",
        columns={
            "limit": "Limit",
            "means": "Broken where",
            "value": "Value",
            "n_queues": "Queues beyond it [queues]",
            "n_jobs": "Jobs of these [jobs]",
        },
        unit="unit",
        note=say(
            "Queues with fewer than {least_jobs:#job} are not judged; the part of the mean wait is {relative:%}; timing is asked where the mean wait is above {wasserstein_h} h.",
            vars(s.limits),
        ),
    )


def _distances(s: Validation) -> Table:
    placed = {"n_simulated": "Jobs simulated"} if s.world.brokered else {}
    return Table(
        name="queues",
        frame=worst_first(s.queues.filter("judged")),
        caption="Queues, the most distant first",
        columns={
            "panda_queue": "Queue",
            "n_jobs": "Jobs",
            **placed,
            "mean_observed_h": "Mean wait observed [h]",
            "mean_simulated_h": "simulated [h]",
            "wasserstein_h": "Distance [h]",
            "ks": "KS",
            "correlation": "Rank correlation",
            "fails": "Beyond its limit",
        },
        mark="role",
        most=12,
        note="Distance (Wasserstein): area between both distributions of waits; its 95 % interval over tasks may lie above it. "
        "KS: largest difference of the cumulated shares.",
    )


def _caveats(archive: Archive, s: Validation) -> list[Caveat]:
    recorded = worlds.is_simulated(archive)
    pooled = s.world.delays.filter(~pl.col("own"))["panda_queue"].n_unique()
    left = ", ".join(f"{row['n_jobs']} {row['reason']}" for row in s.world.left_out.to_dicts())
    return [
        Caveat(
            recorded,
            "The archive was made by this very simulator: that it gives itself back says nothing about a real grid.",
        ),
        Caveat(
            archive.synthetic and not recorded,
            "The generator of this archive draws waits and knows no slots: a simulation of slots does not give them back.",
        ),
        Caveat.of(
            s.fitted.height,
            "What another load or placement would do at {n:#queue}: delays there are too long to be a start-up, or other jobs wait than waited.",
        ),
        Caveat.of(
            pooled,
            "{n:#queue} had too few starts beside free slots before the period: they draw the delays of all queues.",
        ),
        Caveat(
            s.world.left_out.height,
            f"Jobs that no side has, which waited and held no slots: {left}.",
        ),
        Caveat(not s.world.brokered, "The brokerage: every job stays at the queue where it was."),
        Caveat(
            s.world.brokered,
            "Runs farther from one another than a limit: what was seen may be as far from them.",
        ),
        Caveat(1, "How uncertain slots and delays are: intervals are of tasks alone."),
    ]


def _facts(s: Validation, p: Params) -> dict[str, str]:
    """Return what the report knows about how it was made; the kit adds the rest."""
    known = {
        "Slots": f"quantile {p.quantile:g} of the cores in use in windows of {p.window}, from the period itself: a queue that "
        "was never full seems smaller",
        "Start-up delays": say(
            "{n:#delay} of jobs ready before the period beside free slots", n=s.world.delays.height
        ),
    }
    if not s.world.brokered:
        return known
    placed = say(
        "{n} production jobs placed anew every {cycle}, {runs:#run}, up to {attempts} attempts",
        n=s.world.jobs["brokered"].sum(),
        cycle=p.cycle or words.duration(s.world.cycle.total_seconds()),
        runs=s.runs,
        attempts=s.world.queueing.attempts,
    )
    moving = f"{MOVING[s.world.transfers.mode]}; storage and links as in the middle of each day"
    return {**known, "Brokerage": placed, "Data": moving}
