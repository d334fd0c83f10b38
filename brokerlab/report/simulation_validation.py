"""Does the simulation give back what the archive saw? Asked before anything is proposed from one."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any, ClassVar

import polars as pl
from pydantic import Field, field_validator

from brokerlab import archive as archives
from brokerlab import words
from brokerlab.archive import Archive
from brokerlab.calibrate.simulate import Estimation, Limits
from brokerlab.calibrate.simulate.archive_check import (
    SEEDS,
    ArchiveCheck,
    Brokerage,
    check_archive,
)
from brokerlab.calibrate.simulate.grid.recorded import NOTE
from brokerlab.calibrate.simulate.options import Fit
from brokerlab.calibrate.simulate.validation import STATES
from brokerlab.charts import simulation as charts
from brokerlab.errors import ConfigError, nearest
from brokerlab.report import kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.times import duration_us

RANK = 90.0
"""Percentile of the waits that is drawn [%]."""
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


class Params(kit.Dated):
    """What may be asked."""

    report: ClassVar = "simulation-validation"
    question: ClassVar = (
        "Does the simulation give the waiting times, utilisation and kills that the archive saw?"
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
    window: str = Field("1d", description="slots are constant so long [duration]")
    quantile: float = Field(
        1.0, gt=0, le=1, description="of the cores in use in a window, taken for its slots [1]"
    )
    brokerage: Brokerage = Field(
        "seen", description="where jobs go: seen, or replayed by the rules [name]"
    )
    cycle: str = Field(
        "1h", description="from one brokerage to the next, where it is replayed [duration]"
    )

    @field_validator("limits")
    @classmethod
    def _known_limits(cls, given: dict[str, float]) -> dict[str, float]:
        known = [entry.name for entry in fields(Limits)]
        if unknown := [f"{name!r}: {nearest(name, known)}" for name in given if name not in known]:
            raise ValueError(f"unknown {'; '.join(unknown)}")
        _refuse(lambda: _limits(given))
        return given

    @field_validator("window", "cycle")
    @classmethod
    def _a_duration(cls, text: str) -> str:
        _refuse(lambda: duration_us(text, "it"))
        return text


def _refuse(make: Any) -> None:
    try:
        make()
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _limits(given: dict[str, float]) -> Limits:
    whole = {"least_jobs": int(given["least_jobs"])} if "least_jobs" in given else {}
    return Limits(**{**given, **whole})  # type: ignore[arg-type]


# --- compute: library calls only, no words ----------------------------------------------------------------------------


@kit.answers
def load(p: Params) -> Archive:
    """Open the archive."""
    archive = archives.open(p.archive)
    kit.need(archive, "jobs", "queues")
    return archive


@kit.answers
def study(archive: Archive, p: Params) -> ArchiveCheck:
    """Simulate the period and compare."""
    window = timedelta(microseconds=duration_us(p.window))
    return check_archive(
        archive,
        start=p.start,
        end=p.end,
        brokerage=p.brokerage,
        cycle=p.cycle,
        fit=p.fit,
        estimation=Estimation(window=window, quantile=p.quantile),
        limits=_limits(p.limits),
        n_boot=p.n_boot,
        seed=p.seed,
    )


# --- show: frames and templates ---------------------------------------------------------------------------------------


def page(archive: Archive, s: ArchiveCheck, p: Params) -> Page:
    """Lay out the comparison."""
    found = s.validation
    asked = found.limits.queues
    return Page(
        verdict=headline(s),
        numbers=[
            Number(
                "Jobs at queues within all limits",
                found.passed_share,
                unit="%",
                note=say("at least {asked:%} asked", asked=asked),
            ),
            Number("Queues within all limits", found.n_passed, note=f"of {found.n_judged} judged"),
            Number(
                "Queues undecided", found.n_undecided, note="limit of the waits inside the interval"
            ),
        ],
        chart=waits_chart(s),
        sections={
            "What the simulation is held to": [limits_table(s)],
            "Who is worst": [
                distances(s, found.queues.filter("judged"), "panda_queue", "Queue", name="queues"),
                distances(s, found.shares, "gshare", "gshare", name="shares"),
            ],
        },
        caveats=caveats(archive, s),
        facts=facts(s, p),
        archive=archive,
        window=f"jobs ready from {words.instant(s.inputs.start)} to {words.instant(s.inputs.end)}",
        also={
            "all_queues": found.queues,
            "quantiles": found.quantiles,
            "left_out": found.left_out,
        },
        values=found.to_dict(),
    )


def headline(s: ArchiveCheck) -> Verdict:
    """Say whether the simulation may be used."""
    found = s.validation
    counts = {"good": found.n_passed, "bad": found.n_judged - found.n_passed, "all": found.n_judged}
    if not found.n_judged:
        sentence = say(
            "No queue has {least} jobs in the period: nothing can be judged.",
            least=found.limits.least_jobs,
        )
    elif found.ok:
        sentence = say(
            "The simulation gives back what was seen at {good} of {all} queues, {share:%} of their jobs.",
            counts,
            share=found.passed_share,
        )
    else:
        sentence = say(
            "The simulation does not give back what was seen at {bad} of {all} queues, {share:%} of their jobs.",
            counts,
            share=1 - found.passed_share,
        )
    return Verdict(kind="finding" if found.ok else "no_answer", sentence=sentence)


def waits_chart(s: ArchiveCheck) -> Chart | None:
    """Draw simulated against observed waits."""
    waits = s.validation.waits([RANK]).filter(pl.col("observed_h") > 0, pl.col("simulated_h") > 0)
    if waits.is_empty():
        return None
    _, fitted, differ, _, few = (waits.filter(state=name).height for name in STATES)
    judged = waits.height - few
    return Chart(
        draw=charts.waits_chart,
        frame=waits,
        finding=say(
            "Waits agree at {agree} of {judged} judged queues, at {fitted} of them though slots do not make them",
            agree=judged - differ,
            judged=judged,
            fitted=fitted,
        ),
        sample=say(
            "{jobs} jobs; a point is the 90th percentile of the waits of a queue, on the line both are the same",
            jobs=s.validation.queues["n_jobs"].sum(),
        ),
        note="Waits agree, not by slots: start-up delays are fitted to the time before, so that the spread of waits agrees "
        "wherever they do not depend on slots.",
    )


def limits_table(s: ArchiveCheck) -> Table:
    """Lay out every limit and at how many queues it is broken."""
    held = s.validation.limits
    broken = s.validation.broken_limits().with_columns(
        means=pl.col("limit").replace_strict({name: text for name, (text, _) in MEANING.items()}),
        unit=pl.col("limit").replace_strict({name: unit for name, (_, unit) in MEANING.items()}),
    )
    return Table(
        name="limits",
        frame=broken if s.world else broken.filter(pl.col("limit") != "placement"),
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
            "Queues with fewer than {least_jobs} jobs are not judged; the part of the mean wait is {relative:%}; timing is asked where the mean wait is above {wasserstein_h} h.",
            vars(held),
        )
        + (
            " Where simulated runs are farther from one another than a limit, what was seen may be as far from them."
            if s.world
            else ""
        ),
    )


def distances(s: ArchiveCheck, frame: pl.DataFrame, column: str, label: str, *, name: str) -> Table:
    """Lay out the distances by queue or by share, the most distant first."""
    worst = frame.sort("wasserstein_h", column, descending=[True, False], nulls_last=False)
    role = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("worst"))
    placed = {"n_simulated": "Jobs simulated"} if s.world else {}
    fails = {"fails": "Beyond its limit"} if "fails" in frame.columns else {}
    return Table(
        name=name,
        frame=worst.with_columns(pl.col(column).fill_null("unknown"), role=role),
        caption=f"{label}s, the most distant first",
        columns={
            column: label,
            "n_jobs": "Jobs",
            **placed,
            "mean_observed_h": "Mean wait observed [h]",
            "mean_simulated_h": "simulated [h]",
            "wasserstein_h": "Distance [h]",
            "ks": "KS",
            "correlation": "Rank correlation",
            **fails,
        },
        mark="role",
        most=12,
        note="Distance (Wasserstein): area between the two distributions of waits, with its 95 % interval over tasks; never "
        "negative, so that the interval may lie above it. KS: largest difference of the two cumulated shares. Slots and delays "
        "read from the archive are uncertain, too, and not in the intervals."
        if fails
        else "",
    )


def caveats(archive: Archive, s: ArchiveCheck) -> list[Caveat]:
    """Collect what cannot be told, and how much makes it so."""
    found = s.validation
    recorded = archive.manifest.note.startswith(NOTE)
    pooled = s.inputs.delays.filter(~pl.col("own"))["panda_queue"].n_unique()
    left = ", ".join(f"{row['n_jobs']} {row['reason']}" for row in found.left_out.to_dicts())
    notes = [
        (
            recorded,
            "The archive was made by this very simulator: that it gives itself back says nothing about a real grid.",
        ),
        (
            archive.synthetic and not recorded,
            "The generator of this archive draws waits and knows no slots: a simulation of slots does not give them back.",
        ),
        (
            found.fitted.height,
            say(
                "What another load or placement would do at {n} queues: delays there are too long to be a start-up, or other jobs wait than waited.",
                n=found.fitted.height,
            ),
        ),
        (
            pooled,
            say(
                "{n} queues had too few starts beside free slots before the period: they draw the delays of all queues.",
                n=pooled,
            ),
        ),
        (found.left_out.height, f"Jobs that no side has, which waited and held no slots: {left}."),
        (s.world is None, "The brokerage: every job stays at the queue where it was."),
    ]
    return [Caveat(n=n, text=text) for n, text in notes]


def facts(s: ArchiveCheck, p: Params) -> dict[str, str]:
    """Return what the report knows about how it was made; the kit adds the rest."""
    slots = say(
        "quantile {q:g} of the cores in use in windows of {window}, from the period itself: a queue that was never full seems smaller",
        window=p.window,
        q=p.quantile,
    )
    known = {
        "Slots": slots,
        "Start-up delays": say(
            "{n} delays of jobs ready before the period beside free slots", n=s.inputs.delays.height
        ),
    }
    if s.world is None:
        return known
    moving = {
        "links": "inputs and outputs travel over links that serve one transfer at a time",
        "observed": "jobs wait for their inputs as long as they were seen to",
        "none": "no data travel",
    }[s.world.transfers.mode]
    placed = say(
        "{n} production jobs placed anew every {cycle}, {runs} runs, up to {attempts} attempts",
        n=s.world.jobs["brokered"].sum(),
        cycle=p.cycle,
        runs=SEEDS,
        attempts=s.rules.attempts,
    )
    return {
        **known,
        "Brokerage": placed,
        "Data": f"{moving}; storage and links as in the middle of each day",
    }


def run(p: Params) -> dict[str, Any]:
    """Load, study, publish; the notebook does the same in three cells."""
    archive = load(p)
    return kit.publish(page(archive, study(archive, p), p), p)
