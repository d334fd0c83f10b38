"""Put the page of the waiting rules report together and write the files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.lifecycle.waiting.firings import HOUR_US
from brokerlab.report.content import Block, Fact, Made, Page, Part, blocks
from brokerlab.report.outputs import digests_of, facts_of, listed_rows, write_results, write_tables
from brokerlab.report.waiting_rules import pictures, tables
from brokerlab.report.waiting_rules import sentences as say
from brokerlab.report.waiting_rules.caveats import cannot_tell
from brokerlab.report.waiting_rules.study import Study

REPORT = "waiting-rules"
QUESTION = "Which waiting rules fire, how much waiting do they end, and would other limits have ended more of it?"


def write(study: Study, out_dir: str | Path) -> dict[str, Any]:
    """Write charts, tables and `results.json` of a run.

    Args:
        study: The study.
        out_dir: Folder of the run.

    Returns:
        What `results.json` holds.
    """
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    page = assemble(study, folder / "charts")
    large = {"fired": study.fired}
    if study.fast is not None:
        large["fast_shares_at"] = study.fast.shares
    write_tables(folder / "tables", frames(study), large)
    inputs = study.inputs
    digests = digests_of(inputs.waiting.archive, inputs.waiting.config, inputs.waiting.rules)
    return write_results(folder, page, numbers(study), digests)


def assemble(study: Study, charts: Path) -> Page:
    """Draw the charts and put the page together.

    Args:
        study: The study.
        charts: Folder for the charts.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    inputs = study.inputs
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=say.verdict(study),
        parts=(_firing(study, shown), _waste(study, shown), _limits(study, shown),
               _exceptions(study), _fast(study, shown), _rules(study, shown)),
        cannot_tell=cannot_tell(study),
        archive=inputs.waiting.archive.path.as_posix(),
        window=f"rules that fire {say.days(study)} (UTC)",
        synthetic=inputs.waiting.archive.synthetic,
        made=Made(facts=_facts(study)),
    )  # fmt: skip


def _firing(study: Study, shown: dict[str, Block]) -> Part:
    fires = study.n_fired > 0
    by_queue = tables.levels(
        study, study.by_queue, "computingsite", "Queue", name="queues", caption="By queue"
    )
    by_share = tables.levels(
        study, study.by_gshare, "gshare", "gshare", name="gshares", caption="By gshare"
    )
    return Part(
        name="firing",
        title="Which rules fire",
        verdict=say.firing(study),
        picture=blocks(shown.get("firing"), shown.get("over_time")),
        before_after=blocks(tables.rules(study) if fires else None),
        gains=blocks(by_queue, by_share),
        headings={
            "picture": "The picture, and how it changes",
            "before_after": "Rule by rule",
            "gains": "By queue and by gshare",
        },
    )


def _waste(study: Study, shown: dict[str, Block]) -> Part:
    return Part(
        name="waste",
        title="What comes after",
        verdict=say.waste(study),
        picture=blocks(shown.get("outcomes")),
        before_after=blocks(tables.outcomes(study) if study.n_fired else None),
        headings={"before_after": "Rule by rule"},
    )


def _limits(study: Study, shown: dict[str, Block]) -> Part:
    return Part(
        name="limits",
        title="Other limits",
        verdict=say.limits(study),
        picture=blocks(shown.get("limits")),
        before_after=blocks(tables.limits(study) if study.limits.height else None),
        headings={"before_after": "Halved and doubled"},
    )


def _exceptions(study: Study) -> Part:
    by_label = tables.levels(
        study, study.by_label, "prodsourcelabel", "Label", name="labels", caption="By label"
    )
    return Part(
        name="exceptions",
        title="Priorities, exempt queues, silent workers",
        verdict=say.exceptions(study),
        before_after=blocks(tables.priorities(study), by_label, tables.exempted(study)),
        headings={"before_after": "By priority, by label, and at exempt queues"},
    )


def _fast(study: Study, shown: dict[str, Block]) -> Part:
    return Part(
        name="fast",
        title="Fast rebrokerage",
        verdict=say.fast(study),
        picture=blocks(shown.get("fast"), shown.get("fast_keys")),
        before_after=blocks(tables.fast_places(study)),
        gains=blocks(tables.fast_shares(study)),
        headings={
            "picture": "The picture, and what the keys do",
            "before_after": "By queue and share",
            "gains": "By share",
        },
    )


def _rules(study: Study, shown: dict[str, Block]) -> Part:
    inputs = study.inputs
    return Part(
        name="rules",
        title=f"{inputs.waiting.rules.rules.capitalize()} against {inputs.waiting.other.rules} rules",
        verdict=say.rules(study),
        picture=blocks(shown.get("rule_sets")),
        before_after=blocks(tables.rule_sets(study)),
        certainty=blocks(tables.switches(study)),
        headings={"before_after": "Change by change", "certainty": "Which difference it is"},
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    inputs = study.inputs
    unit = "queues" if inputs.waiting.unit == "queue" else "tasks"
    window = f"rules that fire from {inputs.window[0]} on, before {inputs.window[1]}, UTC; histories to {inputs.waiting.until}"
    return (
        *facts_of(
            inputs.waiting.archive, inputs.waiting.config, inputs.waiting.rules, window=window
        ),
        Fact(
            label="Intervals",
            value=f"95 %, bootstrap over {study.n_units} {unit} with jobs in the period, expanded percentiles",
        ),
    )


def numbers(study: Study) -> dict[str, Any]:
    """Return every number of the page under a stable name."""
    inputs, sets = study.inputs, study.rule_sets
    return {
        "n_jobs": inputs.waiting.total("n_jobs"),
        "n_fired": study.n_fired,
        "n_units": study.n_units,
        "n_unlogged": inputs.waiting.n_unlogged,
        "n_live": inputs.waiting.n_live,
        "n_beating": inputs.waiting.n_beating,
        "n_silent": study.n_silent,
        "n_spared": study.n_spared,
        "n_ran": int(inputs.waiting.units["n_ran"].sum()),
        "n_lost": int(inputs.waiting.units["n_lost"].sum()),
        "lost_h": float(inputs.waiting.units["lost_us"].sum()) / HOUR_US,
        "waited_h": inputs.waiting.waited_h,
        "fresh_h": inputs.waiting.fresh_h,
        "total": study.total,
        **listed_rows(frames(study)),
        "rule_sets": {
            "current": inputs.waiting.rules.rules,
            "other": inputs.waiting.other.rules,
            "n_any": sets.n_any,
            "n_different": sets.n_different,
        },
        "fast": None
        if study.fast is None
        else {
            "n_instants": study.fast.n_instants,
            "n_places": study.fast.places.height,
            "queued": study.fast.queued,
            "dry_run": study.fast.dry_run,
            "n_places_as_set": study.fast.n_places_as_set,
            "moved_as_set": study.fast.moved_as_set,
        },
    }


def frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    names = ("by_rule", "by_time", "by_queue", "by_gshare", "by_label", "by_priority", "exempted", "quiet",
             "limits", "cut_off")  # fmt: skip
    found: dict[str, pl.DataFrame] = {name: getattr(study, name) for name in names}
    sets = study.rule_sets
    found |= {
        "rule_kinds": sets.kinds,
        "rule_pairs": sets.pairs,
        "rule_switches": sets.switches,
        "rule_counts": sets.by_rule,
    }
    if study.fast is not None:
        fast = study.fast
        found |= {
            "fast_places": fast.places,
            "fast_by_time": fast.by_time,
            "fast_totals": fast.totals,
            "fast_by_share": fast.by_share,
            "fast_keys": fast.keys,
        }
    return found
