"""Which percentile ranks and margins should the scouts use?

Chosen on the earlier tasks of an archive, proven on the later ones; one part per parameter.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import polars as pl
from pydantic import Field, field_validator

from brokerlab.calibrate import inputs
from brokerlab.calibrate import percentile_frames as frames
from brokerlab.calibrate.caveats import told_once
from brokerlab.calibrate.choice import LimitOn
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.parameters import PARAMETERS
from brokerlab.calibrate.percentile_study import Study, Unanswered, periods_differ
from brokerlab.calibrate.percentile_study import study as study_one
from brokerlab.charts import scouts as charts
from brokerlab.errors import ConfigError
from brokerlab.report import kit
from brokerlab.report.kit import (
    BEFORE_AFTER,
    CERTAINTY,
    GAINS,
    Caveat,
    Chart,
    Number,
    Page,
    Part,
    Share,
    Table,
    Verdict,
    say,
)
from brokerlab.words import days_of, thin

NAMES = {"ramcount": "ramCount", "cputime": "cpuTime", "outdiskcount": "outDiskCount"}
"""The parameters as the documents write them."""
ROLES = {"proposed": "proposed", "not_proven": "chosen, not proven", "runner_up": "best other"}

Named = Literal["all", "ramcount", "cputime", "outdiskcount"]
Rank = Annotated[int, Field(ge=0, le=100)]
Margin = Annotated[int, Field(ge=0, le=1000)]


class Params(kit.Params):
    """What may be asked."""

    report: ClassVar[str] = "scout-percentiles"
    question: ClassVar[str] = "Which percentile ranks and margins should the scouts use?"

    gshare: str = Field("", description="only this global share, empty for all [name]")
    processingtype: str = Field("", description="only this processing type, empty for all [name]")
    parameter: Named = Field("all", description="ramcount, cputime, outdiskcount or all [name]")
    ranks: tuple[Rank, Rank] = Field((50, 99), description="first and last rank tried [%]")
    margins: tuple[Margin, Margin] = Field((0, 30), description="margins tried for ramcount [%]")
    loss: dict[str, float] = Field({}, description="weights of the loss that are not the defaults")
    alpha: Share = Field(0.02, description="largest accepted share of first attempts killed [1]")
    limit_on: LimitOn = Field("upper", description="what alpha limits: upper (end) or point [name]")
    early_share: float = Field(0.5, gt=0, lt=1, description="share of tasks to choose on [1]")

    @field_validator("ranks", "margins")
    @classmethod
    def _in_order(cls, ends: tuple[int, int]) -> tuple[int, int]:
        if ends[0] > ends[1]:
            raise ValueError("must be the first and the last, such as 50,99")
        return ends

    @field_validator("loss")
    @classmethod
    def _known(cls, loss: dict[str, float]) -> dict[str, float]:
        try:
            LossWeights.default("ramcount", **loss)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return loss


class Studies(NamedTuple):
    """One study per parameter, the most consequential first."""

    answered: list[Study]
    unanswered: list[Unanswered]


@kit.answers
def load(p: Params) -> inputs.Inputs:
    """Read the tasks of the window and what their finished jobs say."""
    chosen: dict[str, Any] = {"gshare": p.gshare, "processingtype": p.processingtype}
    return inputs.load(
        p.archive, start=p.start, end=p.end, rules=p.rules, early_share=p.early_share, **chosen
    )


@kit.answers
def study(data: inputs.Inputs, p: Params) -> Studies:
    """Back-test every parameter, choose on the early tasks and prove on the later ones."""
    found = [
        study_one(
            data,
            name,
            created_at=datetime.now(UTC).replace(tzinfo=None, microsecond=0),
            ranks=range(p.ranks[0], p.ranks[1] + 1),
            margins=range(p.margins[0], p.margins[1] + 1),
            loss=p.loss,
            max_exceed=p.alpha,
            limit_on=p.limit_on,
            n_boot=p.n_boot,
            seed=p.seed,
        )
        for name in (PARAMETERS if p.parameter == "all" else [p.parameter])
    ]
    answered = [one for one in found if isinstance(one, Study)]
    answered.sort(key=lambda s: (s.kind != "change", -abs(s.proof.quantity("loss")["diff"] or 0)))
    return Studies(answered, [one for one in found if isinstance(one, Unanswered)])


def page(data: inputs.Inputs, studies: Studies, p: Params) -> Page:
    """Put the parameters together."""
    parts = [part(one, p) for one in studies.answered]
    parts += [unanswered(one) for one in studies.unanswered]
    first = parts[0]
    return Page(
        verdict=first.verdict,
        numbers=first.numbers,
        chart=first.chart,
        parts=[Part(**{**vars(first), "chart": None, "numbers": ()}), *parts[1:]],
        caveats=caveats(data, studies),
        facts=facts(data, studies),
        archive=data.archive,
        config=data.config,
        rules=data.rules,
        window=f"tasks created {days_of(*data.window)} (UTC)",
        filters=data.filters,
        proposals={
            one.parameter.name: one.verdict.proposal
            for one in studies.answered
            if one.verdict and one.verdict.proposal
        },
        also={
            f"{one.parameter.name}_{name}": frame
            for one in studies.answered
            for name, frame in frames.written(one).items()
        },
        values={
            "periods": data.periods.to_dict(),
            **{one.parameter.name: {"reason": one.reason} for one in studies.unanswered},
            **{one.parameter.name: one.to_dict() for one in studies.answered},
        },
    )


def facts(data: inputs.Inputs, studies: Studies) -> dict[str, str]:
    """Say how the tasks were divided and what was taken for granted."""
    early, late = data.periods.early_window, data.periods.late_window
    told = {}
    if early and late:
        told["Periods"] = f"choice on {days_of(*early)}, proof on {days_of(*late)}"
    for one in studies.answered[:1]:
        assumed = one.early.assumptions.to_dict().items()
        told["Assumptions"] = ", ".join(f"{k} {v}" for k, v in assumed if k != "rules")
    return told


# --- one parameter ----------------------------------------------------------------------------------------------------


def unanswered(one: Unanswered) -> Part:
    """Say why there is too little data for a parameter."""
    name = NAMES[one.parameter.name]
    reason = kit.no_answer(one.reason)
    verdict = Verdict(kind="no_answer", subject=name, sentence=reason.verdict.sentence)
    return Part(name=one.parameter.name, title=name, verdict=verdict, sections=reason.sections)


def part(s: Study, p: Params) -> Part:
    """Lay out one parameter."""
    parameter, note = s.parameter, f"limit {100 * p.alpha:g} %"
    table = frames.before_after(s)
    rows = {row["quantity"]: row for row in table.iter_rows(named=True)}
    kills, reserved = rows["exceed_rate"], rows.get(f"reserved_{parameter.amount}")
    numbers = [Number.of(kills, "before", label="Killed, current", unit="%", note=note)]
    if s.chosen and reserved:
        label = f"Killed, {ROLES[s.other_role]}"
        numbers.append(Number.of(kills, "after", label=label, unit="%", note=note))
        label = f"{parameter.thing.capitalize()} reserved"
        numbers.append(Number.of(reserved, "diff_pct", label=label, unit="%", note="change"))
    return Part(
        name=parameter.name,
        title=f"{NAMES[parameter.name]}: {parameter.thing}",
        verdict=Verdict(kind=s.kind, subject=NAMES[parameter.name], sentence=headline(s, p)),
        numbers=numbers,
        chart=frontier(s, p),
        sections={
            BEFORE_AFTER: [before_after(s, table)],
            GAINS: [gains(s)],
            CERTAINTY: certainty(s, p),
        },
    )


HEADLINES = {
    "undivided": "{n} tasks are too few to prove anything; now {before:%} of jobs are killed.",
    "change": "Set {chosen}: {amount:%} {less} {thing} reserved, {after:%} of jobs killed (limit {limit}).",
    "refuted": "Keep {current}: {chosen}, chosen on the earlier tasks, is not borne out later.",
    "keep": "Keep {current}: no setting within the limit of {limit} costs clearly less.",
    "few": "{n} tasks are too few to choose on.",
    "unsure": "{n} tasks are too few to be sure of the limit of {limit}; now {before:%} of jobs are killed.",
    "none": "No setting keeps kills within {limit}; now {before:%} of jobs are killed.",
    "breach": "The current setting kills {before:%} (limit {limit}); {chosen} is not borne out later.",
}


def headline(s: Study, p: Params) -> str:
    """Say what to do, with the number that matters."""
    exceed, parameter = s.proof.quantity("exceed_rate"), s.parameter
    moved = s.proof.quantity(f"reserved_{parameter.amount}")["diff_pct"] or 0.0
    return say(
        HEADLINES[s.case],
        {"before": exceed["before"], "after": exceed["after"], "amount": abs(moved) / 100},
        n=s.early.n_tasks,
        limit=f"{100 * p.alpha:g} %",
        current=frames.setting_name(parameter, s.proof.current),
        chosen=frames.setting_name(parameter, s.other),
        less="less" if moved < 0 else "more",
        thing=parameter.thing,
    )


def frontier(s: Study, p: Params) -> Chart:
    """Show what every setting costs against how often it kills."""
    finding = "No setting within the limit of {limit} costs clearly less than {current}"
    if s.chosen:
        finding = "{chosen} kills {then:%} of jobs instead of {now:%}"
    elif not s.choice.candidates["meets_limit"].any():
        finding = "No setting keeps the {end} of kills within {limit}"
    return Chart(
        draw=charts.frontier_chart,
        frame=frames.frontier(s),
        options={"limit": 100 * p.alpha, "thing": s.parameter.thing},
        finding=say(
            finding,
            now=s.early.setting(*s.proof.current)["exceed_rate"],
            then=s.early.setting(*s.other)["exceed_rate"],
            limit=f"{100 * p.alpha:g} %",
            end="upper bound" if p.limit_on == "upper" else "rate",
            current=frames.setting_name(s.parameter, s.proof.current),
            chosen=frames.setting_name(s.parameter, s.other).capitalize(),
        ),
        sample=say(
            "{n} tasks, {jobs} jobs of the {period}; bars, brackets: 95 % intervals; line: nothing is better in both.",
            n=s.early.n_tasks,
            jobs=s.early.counts["n_scored"],
            period="calibration period" if s.divided else "archive",
        ),
    )


def before_after(s: Study, table: pl.DataFrame) -> Table:
    """Lay out both settings on the proof period."""
    return Table(
        name="before_after",
        frame=table,
        caption=say(
            "{period}: {n} tasks, {jobs} jobs",
            period="Proof period" if s.divided else "All tasks",
            n=s.late.n_tasks,
            jobs=s.late.counts["n_scored"],
        ),
        columns={
            "label": "Quantity",
            "before": f"Current, {frames.setting_name(s.parameter, s.proof.current)}",
            "after": f"{ROLES[s.other_role].capitalize()}, {frames.setting_name(s.parameter, s.other)}",
            "diff": "Difference",
            "diff_pct": "Relative [%]",
        },
        unit="unit",
        mark="limit",
    )


def gains(s: Study) -> Table:
    """Show who gains and who loses."""
    levels, other = frames.by_level(s), ROLES[s.other_role]
    finding = "No level has enough tasks to be called the worst"
    for worst in levels.filter(mark="worst").iter_rows(named=True):
        side = "after" if s.chosen else "before"
        finding = say(f"Worst: {{name}}, {{{side}:%}} of its jobs are killed", worst)
    return Table(
        name="strata",
        frame=levels,
        caption=finding,
        columns={
            "name": "Stratum",
            "n_tasks": "Tasks",
            "before": "Kills, current [% of jobs]",
            "after": f"Kills, {other} [% of jobs]",
            "loss_diff": "Loss, difference [core h per core h]",
            "verdict": "Verdict",
        },
        mark="mark",
        most=25,
        note="Open: the loss's interval includes 0, or fewer than ten tasks.",
    )


def certainty(s: Study, p: Params) -> list[kit.Block]:
    """Show how sure it is."""
    rank, differ = s.proof.current[0], "not alike" if periods_differ(s.alike) else "alike"
    stable = "leaves the choice as it is" if s.choice.stable else "can change the choice"
    return [
        Table(
            name="periods",
            frame=frames.by_period(s),
            caption=f"The two periods are {differ} under the current setting"
            if s.divided
            else "All tasks",
            columns={
                "period": "Period",
                "n_tasks": "Tasks",
                "n_scored": "Jobs",
                "before": "Kills, current [% of jobs]",
                "after": f"Kills, {ROLES[s.other_role]} [% of jobs]",
                "loss_diff": "Loss, difference [core h per core h]",
            },
        ),
        Chart(
            draw=charts.coverage_chart,
            frame=frames.coverage(s),
            options={"limit": 100 * p.alpha},
            finding=say(
                "{kept:%} of jobs stay within their current request",
                kept=1 - s.late.setting(*s.proof.current)["exceed_rate"],
            ),
            sample=f"Promised: rank {rank} without margin, where scouts are like the rest.",
        ),
        Table(
            name="weights",
            frame=frames.weights_moved(s),
            caption=f"Halving or doubling a weight of the stated loss {stable}",
            columns={
                "weight": "Weight",
                "value": "Value [core h]",
                "halved": "Halved",
                "doubled": "Doubled",
                "why": "Why",
            },
        ),
    ]


# --- what it cannot tell ----------------------------------------------------------------------------------------------


def caveats(data: inputs.Inputs, studies: Studies) -> list[Caveat]:
    """Collect what the studies cannot tell; what is true of one parameter only says which."""
    told = told_once({NAMES[one.parameter.name]: one.caveats for one in studies.answered})
    n = data.periods.n_overlapping
    overlap = (
        "{n} jobs of the calibration's tasks ended in the proof period, not known when it began."
    )
    levels = "Which level gains or loses by chance: about one in 20 does."
    return [
        *(Caveat(n=1, text=thin(text)) for text in told),
        Caveat(n=n, text=say(overlap, n=n)),
        Caveat(n=len(studies.answered), text=levels),
    ]


def run(p: Params) -> dict[str, Any]:
    """Load, study and publish; the notebook does the same step by step."""
    data = load(p)
    return kit.publish(page(data, study(data, p), p), p)
