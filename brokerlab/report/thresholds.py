"""Which thresholds of the brokerage should be changed, and to what: screen, simulate, judge."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import polars as pl
from pydantic import Field

from brokerlab import archive as archives
from brokerlab import words, worlds
from brokerlab.archive import Archive
from brokerlab.calibrate.judge import MIN_UNITS
from brokerlab.calibrate.key_coverage import coverage_of, screen_keys
from brokerlab.calibrate.simulation import Validation
from brokerlab.calibrate.simulation.capacity import sources_in_words
from brokerlab.calibrate.thresholds import Calibration, Options, WhatIf, study_archive
from brokerlab.calibrate.thresholds.archive_study import FEWEST_DAYS, MIN_TASKS
from brokerlab.calibrate.thresholds.outcomes import LIMITS, GridWhatIf, quantity_of
from brokerlab.calibrate.thresholds.screening import CHANGES, NOT_READ, NOTHING, UNTOLD
from brokerlab.calibrate.thresholds.settings import STAGES
from brokerlab.calibrate.thresholds.tables import COVERS, action, as_is, days, small
from brokerlab.charts import thresholds as charts
from brokerlab.report import kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.report.needs import Needs, Rows

MORE_SLOTS = "{n} queues: slots unknown, at least those seen in use; an answer counts that is the same with {most} times as many."
LIMITED = "of now; for the same work {limited} %, limit {limit} %"
FARTHEST = "{key} sends most jobs elsewhere, {shift:%} at {at}"
BARS = 12  # keys drawn of the screen, those that could change most


_DAY = pl.col("creationtime").dt.truncate("1d")
DAYS = (_DAY.max() - _DAY.min()).dt.total_days() + 1
"""Over jobs: days from the first that was made to the last, both counted."""


class Params(Options, kit.Params):
    """What may be asked."""

    report: ClassVar = "thresholds"
    question: ClassVar = "Which thresholds of the brokerage should be changed, and to what?"

    needs: ClassVar[Needs] = Needs(
        tables=("jobs", "tasks", "queues"),
        rows=[
            Rows("days from the first job to the last", DAYS, least=FEWEST_DAYS),
            Rows.tasks("tasks with jobs", pl.lit(value=True), least=2 * MIN_TASKS),
        ],
    )

    start: kit.Instant = Field(
        None, description="choice from here on, empty: archive's second day [ISO 8601, UTC]"
    )
    end: kit.Instant = Field(
        None, description="scores end, empty for the archive's last day [ISO 8601, UTC]"
    )
    proof_start: kit.Instant = Field(
        None, description="choice ends and scores begin, empty for half way [ISO 8601, UTC]"
    )
    screen_days: float = Field(
        4.0, gt=0, description="days at the end of the choice that are screened [days]"
    )
    stage: Literal["jobs", "analysis"] = Field(
        "jobs", description="what is simulated, jobs (production) or analysis [name]"
    )
    store: str = Field("", description="folder that keeps simulations for later runs [folder]")


# --- compute: library calls only, no words ----------------------------------------------------------------------------


class Study(NamedTuple):
    """The calibration, and all keys of the catalogue: see `key_coverage.coverage_of`."""

    calibration: Calibration
    catalogue: pl.DataFrame


@kit.answers
def load(p: Params) -> Archive:
    """Open the archive."""
    return p.needs.opened(archives.open(p.archive))


@kit.answers
def study(
    archive: Archive,
    p: Params,
    *,
    what_if: WhatIf | None = None,
    validation: Validation | None = None,
) -> Study:
    """Screen the keys, validate the simulation, calibrate; another simulation may be given."""
    calibration = study_archive(
        archive,
        p,
        created_at=kit.now(),
        start=p.start,
        proof_start=p.proof_start,
        end=p.end,
        screen_days=p.screen_days,
        stage=p.stage,
        rules=p.rules,
        store=p.store or None,
        what_if=what_if,
        validation=validation,
    )
    acting = calibration.case.space.config
    others = screen_keys(archive, [] if p.keys else None, rules=p.rules, config=acting)
    return Study(calibration, coverage_of(calibration.screen.keys, others))


# --- show: frames and templates ---------------------------------------------------------------------------------------


def page(archive: Archive, s: Study, p: Params) -> Page:
    """Lay out the answer: from simulations where there are any, else from the screen."""
    result = s.calibration
    early, late = result.case.periods
    return Page(
        verdict=_headline(s),
        numbers=_numbers(s),
        chart=_candidates_chart(s) or _screen_chart(s),
        sections=_sections(s),
        caveats=_caveats(archive, s),
        facts=_facts(s, p),
        archive=archive,
        config=result.case.space.config,
        window=f"choice {days(early)}, scored {days(late)} (UTC)",
        proposals={} if result.proposal is None else {"": result.proposal},
        also={
            "screen_values": result.screen.values,
            "catalogue": _as_text(s.catalogue),
            "tried": result.tried,
            "slots": pl.DataFrame() if result.grid is None else result.grid.sources(),
            "sensitivity": result.sensitivity,
        },
        values=result.to_dict(),
    )


HEADLINES = {
    "change": "{action}: {label} falls by {fall}.",
    "unchanged": "{keep}: no value tried changes any decision.",
    "keep": "{keep}: none of {n} settings is better, {seen:%} less would show.",
    "invalid": "The simulation does not reproduce what was seen; {changing} of {all} keys change decisions.",
    "nothing": "Of {all} keys none both changes decisions and can be simulated.",
    "depends": "Capacity of {unknown} unknown, and the answer depends on it.",
    "few": f"{{spans}} spans of time can be scored, {MIN_UNITS} are needed.",
    "imprecise": "No setting is shown to be better, and a gain of {seen:%} is not excluded.",
    "unconfirmed": "What was better on earlier days is not shown to be better on all of them.",
    "no_other": "No other setting tried keeps the limits and has a gain that can be told.",
}


def _headline(s: Study) -> Verdict:
    result, verdict = s.calibration, s.calibration.verdict
    space = result.case.space
    values: dict[str, Any] = {
        "keep": f"Keep {as_is(space.keys)}",
        "n": result.candidates.height,
        "all": result.screen.keys.height,
        "changing": result.screen.keys.filter(state=CHANGES).height,
        "unknown": f"{len(result.unknown)} {words.plural(len(result.unknown), 'queue')}",
        "label": small(quantity_of(result.case.options.objective).label),
    }
    if result.judgement is not None:
        values["spans"] = result.judgement.n_units
        values["seen"] = max(result.judgement.smallest_seen or 0.0, result.case.options.relevant)
    if result.answer == "change":
        row = result.proof.filter(quantity=result.case.options.objective).row(0, named=True)
        one, part = len(result.setting.keys) == 1, row["diff_pct"]
        values["action"] = action(space, result.setting) if one else f"Set {result.setting.name}"
        values["fall"] = say("{part:%}", part=-part / 100) if part else say("{n}", n=-row["diff"])
    sentence = say(HEADLINES[result.answer], values)
    return Verdict(kind=verdict.kind, sentence=sentence[:1].upper() + sentence[1:])


def _numbers(s: Study) -> list[Number]:
    """Return what the scored period says of the objective and of the bytes moved; where nothing is compared, the screen."""
    result = s.calibration
    if result.proof.is_empty():
        changing = result.screen.keys.filter(state=CHANGES).height
        none = result.screen.keys.filter(pl.col("state").is_in([NOTHING, NOT_READ])).height
        return [
            Number("Keys that change decisions", changing, note=f"of {result.screen.keys.height}"),
            Number("Keys that change none", none, note="keep them as they are"),
        ]
    names = [result.case.options.objective, "moved_tb"]
    wanted = result.proof.filter(pl.col("quantity").is_in(names), pl.col("diff_pct").is_not_null())
    shown = []
    for row in wanted.iter_rows(named=True):
        note = "of now" if row["limit"] is None else say(LIMITED, row)
        shown.append(Number.of(row, "diff_pct", label=row["label"], unit="%", note=note))
    return [*shown, Number("Tasks that scored", result.n_tasks)]


def _candidates_chart(s: Study) -> Chart | None:
    """Draw the settings that were judged with their intervals; null where none was, or the objective is almost nothing."""
    result, shown = s.calibration, s.calibration.candidates
    if shown.is_empty() or shown["diff_pct"].null_count():
        return None
    label = small(quantity_of(result.case.options.objective).label)
    kept = shown.filter("lowers", broken="").height
    proposed = pl.lit(result.setting.name) == pl.col("setting")
    limited = pl.when(broken="").then(pl.lit("keeps the limits"))
    role = (
        pl.when(proposed)
        .then(pl.lit("proposed"))
        .otherwise(limited.otherwise(pl.lit("breaks a limit")))
    )
    return Chart(
        draw=charts.candidates_chart,
        frame=shown.with_columns(role=role),
        finding=f"{kept} of {shown.height} settings that were judged lower the {label} by their interval and keep the limits",
        sample="All days; bars: intervals over spans of time and simulations.",
        options={"title": f"{label}, change [% of now]"},
    )


def _screen_chart(s: Study) -> Chart | None:
    shown = s.calibration.screen.keys.filter(pl.col("state") == CHANGES, pl.col("shift") > 0)
    if shown.is_empty():
        return None
    return Chart(
        draw=charts.screen_chart,
        frame=shown.head(BARS).select("key", "shift", "follows"),
        finding=say(FARTHEST, shown.row(0, named=True)),
        sample=f"Each key alone, at the value that changes most tasks; brokerages of {days(s.calibration.screen.period)}",
    )


def _sections(s: Study) -> kit.Sections:
    """Show simulations, choice and proof; the screen alone where nothing was simulated."""
    result = s.calibration
    checked = words.thin(result.validation.sentence) if result.validation else None
    if result.tried.is_empty():
        return {"The screen": [_screen_table(s)], kit.CERTAINTY: [checked, _others_table(s)]}
    unstable = "The choice depends on the limits: halved or doubled, another setting is chosen."
    compared = [_proof_table(s), _candidates_table(s)]
    gains = [_strata_table(s), _queues_table(s)]
    return {
        kit.BEFORE_AFTER: [table for table in compared if table.frame.height],
        kit.GAINS: [table for table in gains if table.frame.height],
        kit.CERTAINTY: [
            words.thin(result.verdict.sentence),
            f"Intervals hold {COVERS}.",
            checked,
            None if result.stable else unstable,
            _screen_table(s),
            _others_table(s),
        ],
    }


def _proof_table(s: Study) -> Table:
    result = s.calibration
    return Table(
        name="proof",
        frame=result.proof,
        caption=f"Now, and {result.compared.name} (chosen before), on {days(result.case.periods[1])}",
        columns={
            "label": "Quantity",
            "before": "Now",
            "after": "Then",
            "diff": "Difference",
            "diff_pct": "Difference [% of now]",
            "limited": "What is limited",
            "limit": "at most +",
            "limit_unit": "of",
        },
        unit="unit",
        mark="role",
        note=f"In brackets: {100 * (1 - result.case.options.alpha):g} % intervals over spans of time, to which the spread between "
        "simulations is added. Limits in %: for the same work, which is done under both. Jain's index: 1 when all shares are served alike.",
    )


def _candidates_table(s: Study) -> Table:
    result = s.calibration
    quantity = quantity_of(result.case.options.objective)
    return Table(
        name="candidates",
        frame=result.candidates,
        caption=f"The best of {result.candidates.height} settings that were judged, on all days",
        columns={
            "setting": "Setting",
            "after": f"{quantity.label} [{quantity.unit}]",
            "diff_pct": "Difference [% of now]",
            "broken": "Limits broken",
            "lowers": "Lower by its interval",
        },
        mark="role",
        most=10,
        note="The best of many was lucky, too: scores are of days that nothing was chosen on. The same jobs are sent "
        "whatever is set; a queue that was never full counts as large as it was seen.",
    )


def _strata_table(s: Study) -> Table:
    result = s.calibration
    quantity = quantity_of(result.case.options.objective)
    return Table(
        name="strata",
        frame=result.strata,
        caption=f"{quantity.label} by who it is, worst first",
        columns={
            "stratum": "By",
            "level": "Who",
            "n_tasks": "Tasks",
            "before": f"Now [{quantity.unit}]",
            "diff": f"Difference [{quantity.unit}]",
            "verdict": "Verdict",
        },
        mark="role",
        most=12,
        note="Gains, loses: the interval excludes 0; of many levels some do by chance.",
    )


def _queues_table(s: Study) -> Table:
    return Table(
        name="queues",
        frame=s.calibration.queues if s.calibration.strata.height else pl.DataFrame(),
        caption="Queues whose use changes most",
        columns={
            "panda_queue": "Queue",
            "n_jobs_before": "Jobs now",
            "n_jobs_after": "Jobs then",
            "used_before": "Slots used now [%]",
            "diff": "Difference [% points]",
            "verdict": "Verdict",
        },
        most=12,
        note="In brackets: intervals over simulations.",
    )


def _screen_table(s: Study) -> Table:
    number = pl.col("now").cast(pl.Float64, strict=False)
    now = number.map_elements(kit.cell, return_dtype=pl.String)
    return Table(
        name="screened",
        frame=s.calibration.screen.keys.with_columns(now=pl.coalesce(now, "now")),
        caption=f"Does any value of a key change any decision? Brokerages of {days(s.calibration.screen.period)}",
        columns={
            "key": "Key",
            "now": "Now",
            "unit": "Unit",
            "shift": "Jobs elsewhere [%]",
            "at": "at",
            "n_tasks": "Tasks decided differently",
            "n_jobs": "Jobs given back otherwise",
            "follows": "What follows",
        },
        note="Each key alone, at the value that changes most tasks, with queues as they were. Jobs given back: by the fast "
        "rebrokerage. Keep: no value tried changes a decision; not read: other settings switch off what reads it.",
    )


def _others_table(s: Study) -> Table | None:
    """Lay out the keys of the catalogue that rules read and that are no thresholds; null where none was tried."""
    others = s.catalogue.join(s.calibration.screen.keys, on="key", how="anti")
    tried = _as_text(others.filter(pl.col("state").is_not_null()))
    if tried.is_empty():
        return None
    return Table(
        name="others",
        frame=tried,
        caption="Keys of scouts, stops and waiting limits: does any value change any decision?",
        columns={
            "key": "Key",
            "state": "Here",
            "n_changed": "Decided differently",
            "counts": "of",
            "at": "at",
            "read_by": "Read by",
        },
        most=40,
        note="A check that is off is switched on to try its keys (files: beside). "
        f"Of {s.catalogue.height} keys of the catalogue what reads and tries each, or why nothing does, is in the "
        "files (catalogue).",
    )


def _as_text(coverage: pl.DataFrame) -> pl.DataFrame:
    """Return a coverage with lists as text, for tables."""
    return coverage.with_columns(pl.col("read_by", "by", "reports").list.join(", "))


def _caveats(archive: Archive, s: Study) -> list[Caveat]:
    result = s.calibration
    only = result.screen.keys.filter(pl.col("state") == CHANGES, ~pl.col("simulate"))
    stages = ", ".join(STAGES[stage] for stage in only["stage"].unique(maintain_order=True))
    untold = result.screen.keys.filter(state=UNTOLD)
    reasons = untold["reason"].unique(maintain_order=True)
    unknown = [small(label) for label in result.unknown_quantities]
    left = result.unfinished_share
    mixed = [key.name for key in result.case.space.keys if key.mixed]
    why = "; ".join(list(dict.fromkeys(one.reason for one in result.missing))[:3])
    odd, most = result.warnings, result.case.options.capacity_most
    values = {"n": len(result.unknown), "most": most, "left": left}
    drawn = archive.synthetic and not worlds.is_simulated(archive)
    wrong = drawn and result.answer == "invalid"
    vouched = result.tried.height > 0 and result.validation is None
    classless = result.strata.height > 0 and "user_class" not in result.strata["stratum"]
    n_unmade = result.grid.n_unmade if result.grid else 0
    free = [name for name in LIMITS if name not in result.case.options.allowed]
    notes = {
        "Jobs that were never made are simulated, too: unused files of open tasks would make them, each as long as one that "
        "its task finished.": n_unmade,
        f"Without limit, as asked: {', '.join(free)}.": len(free),
        "The generator of this archive draws waits and knows no slots: a simulation of slots does not give them back.": wrong,
        "Whether the simulation gives back what was seen: whoever ran this vouched for it.": vouched,
        f"{only.height} {words.plural(only.height, 'key')} of {stages}: no simulation makes these decisions again.": only.height,
        f"Not screened: {', '.join(untold['key'])} ({'; '.join(reasons)}).": untold.height,
        say(MORE_SLOTS, values): len(result.unknown),
        f"Not known to the simulation, hence without limit: {', '.join(unknown)}.": len(unknown),
        "Which class of users gains or loses: the simulation does not say whose tasks are.": classless,
        say("{left:%} of the tasks are not over at the end, and count until then.", values): left
        > 0,
        f"Settings are left out whose simulations are missing ({why}).": len(result.missing),
        f"Differs between shares now, one value is tried: {', '.join(mixed)}.": len(mixed),
        f"Odd in the input, of {len(odd)} findings the first: {(*odd, '')[0]}": len(odd),
    }
    return [Caveat(n=n, text=words.thin(text)) for text, n in notes.items()]


def _facts(s: Study, p: Params) -> dict[str, str]:
    """Return what the report knows about how it was made; the kit adds the rest."""
    result = s.calibration
    limits = [
        f"{name} +{most:g} {LIMITS[name].unit}".rstrip()
        for name, most in result.case.options.allowed.items()
    ]
    simulations = say(
        "{n} settings; {new} simulations in {time}, {kept} from an earlier run",
        n=result.n_settings,
        new=result.n_simulated,
        kept=result.n_kept,
        time=words.duration(result.seconds),
    )
    return {
        "Screen": days(result.screen.period),
        "Limits": ", ".join(limits) or "none",
        "Decides": f"{STAGES[p.stage]} as documented",
        **_grid_facts(result.grid),
        "Simulations": simulations,
    }


def _grid_facts(grid: GridWhatIf | None) -> dict[str, str]:
    if grid is None:
        return {}
    slots, cycle = grid.sources(), f"{grid.cycle} from one brokerage to the next"
    return {"Cycle": cycle} | ({"Slots": sources_in_words(slots)} if slots.height else {})
