"""What the report says, from what was found."""

from __future__ import annotations

import polars as pl

from brokerlab.calibrate.thresholds import QUANTITIES, Calibration
from brokerlab.calibrate.thresholds.keys import STAGES
from brokerlab.calibrate.thresholds.screening import CHANGES, NOT_READ, NOTHING, UNTOLD
from brokerlab.calibrate.thresholds.verdict import days
from brokerlab.report.content import Verdict
from brokerlab.report.thresholds.study import Study
from brokerlab.words import duration, listed, number, thin

STOPPED = {
    "sharp": "the interval is as narrow as asked",
    "tasks": "the tasks, not the simulations, make the interval",
    "beaten": "it cannot be the best any more",
    "limit": "the largest number of simulations was reached",
    "missing": "a simulation is missing",
}
"""Why no simulations were added."""
MOST_NAMED = 6


def verdict(study: Study) -> Verdict:
    """Return the answer of the page."""
    found = study.calibration.verdict
    sentence = found.sentence.removeprefix("No answer: ")
    sentence = f"{sentence[:1].upper()}{sentence[1:]}"
    if found.kind == "no_answer":
        sentence = f"{sentence} {screened(study)}"
    return Verdict(kind=found.kind, sentence=thin(sentence), subject=found.subject)


def screened(study: Study) -> str:
    """Say in one sentence what the screen says."""
    frame = study.calibration.screened
    counts = dict(frame["state"].value_counts().iter_rows())
    nothing = frame.filter(pl.col("state").is_in([NOTHING, NOT_READ]))["key"].to_list()
    said = f"The screen of {frame.height} keys: {counts.get(CHANGES, 0)} change decisions"
    if nothing:
        said += f", {len(nothing)} change none and can be kept as they are"
    if counts.get(UNTOLD):
        said += f", {counts[UNTOLD]} cannot be told from this archive"
    return f"{said}."


def _some(names: list[str]) -> str:
    if len(names) <= MOST_NAMED:
        return listed(names)
    return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"


def simulated(study: Study) -> str:
    """Say what was simulated, or why nothing was."""
    found = study.calibration
    if found.tried.is_empty():
        n = found.screened.filter("simulate").height
        if found.valid is False:
            return thin(
                f"Nothing was simulated and nothing is proposed: a simulation that does not give back what was seen says nothing "
                f"about other settings. {n} of the keys below could be judged by one that does."
            )
        return thin(
            "Nothing was simulated: no key that the simulator can judge changes any decision."
        )
    n_settings = found.tried["setting"].n_unique()
    said = (
        f"{n_settings} settings of {listed(sorted(found.screened.filter('simulate')['key'])) if found.screened.height else 'the keys'} "
        f"were simulated on {days(found.calibration)}, each on the same tasks with the same luck as what is now, "
        f"{found.n_simulated + found.n_kept:,} simulations in all"
    )
    if found.n_kept:
        said += f", {found.n_kept:,} of them from an earlier run"
    if found.n_trials:
        keys = listed([box.key.name for box in found.boxes])
        said += f"; {found.n_trials} of the settings come from a search over {keys}"
    return thin(f"{said}, in {duration(found.seconds)}.")


def how_to_read(found: Calibration) -> str:
    """Say what the intervals hold."""
    return (
        f"Intervals at {100 * found.draw.confidence:g} %: tasks are drawn again, or ten spans of time as wholes where that is "
        "wider, because tasks of the same days meet the same queues; the spread between simulations is added. That of "
        "unfairness holds the spread between simulations alone."
    )


def certain(study: Study) -> list[str]:
    """Say how sure the answer is."""
    found = study.calibration
    if found.tried.is_empty():
        return [f"{found.why}" if found.why else "Nothing was simulated."]
    told = [how_to_read(found)]
    reasons = dict(
        found.tried.filter(quantity=found.objective)["stopped"].value_counts().iter_rows()
    )
    parts = [
        f"{reasons[name]} because {words}" for name, words in STOPPED.items() if reasons.get(name)
    ]
    told.append(f"No more simulations were added to {listed(parts)}." if parts else "")
    if found.choices and found.choices[0].sensitivity.height:
        told.append(
            "Halving or doubling any limit leaves the choice as it is."
            if all(choice.stable for choice in found.choices)
            else "The choice depends on the limits: halved or doubled, another setting is chosen (table)."
        )
    proof = found.proof
    if proof is not None and proof.p is not None:
        least = proof.p <= 2 / found.draw.n_boot  # nothing less can be told
        told.append(
            f"{proof.reason} p {'at most' if least else '='} {proof.p_holm:.3g} of no difference, {found.draw.alpha:g} asked."
        )
    if found.valid is None:
        told.append("The simulation was not validated: whoever ran this vouched for it.")
    elif found.why:
        told.append(found.why)
    return [thin(one) for one in told if one]


def cannot_tell(study: Study) -> list[str]:
    """Collect what cannot be told, from what was found."""
    found, frame, told = study.calibration, study.calibration.screened, []
    if study.archive.synthetic:
        drawn = (
            " its generator draws waiting times and knows no slots." if found.valid is False else ""
        )
        told.append(
            f"The archive is synthetic:{drawn or ' it was made by a program.'} What comes out here shows how the report works, "
            "not what should be set."
        )
    only = frame.filter((pl.col("state") == CHANGES) & ~pl.col("simulate"))
    if only.height:
        told.append(
            f"{only.height} keys change decisions that this simulation does not make again ({_stages(only)}): they are screened "
            f"only: {_some(only['key'].to_list())}."
        )
    untold = frame.filter(pl.col("state") == UNTOLD)
    if untold.height:
        reasons = list(dict.fromkeys(untold["told"].str.strip_prefix("no answer: ")))
        told.append(f"Not screened: {_some(untold['key'].to_list())} ({reasons[0]}).")
    told.append(
        f"The screen looks at the brokerages of {days(study.screened)} one by one, with queues as they were: a key that changes "
        "nothing there may do so at other times, and what follows from other decisions is not in it."
    )
    if found.tried.height:
        told += _of_simulations(found)
    if found.missing:
        parts = list(dict.fromkeys(one.reason for one in found.missing))
        told.append(
            f"{len(found.missing)} simulations are missing: {listed(parts[:3])}. The settings are left out."
        )
    mixed = [key.name for key in study.space.keys if key.mixed]
    if mixed:
        told.append(
            f"{listed(mixed)}: differs between shares now; one value for all is tried against that."
        )
    if study.odd:
        told.append(f"Odd in the input ({len(study.odd)} findings), the first: {study.odd[0]}")
    return [thin(one) for one in told]


def _stages(frame: pl.DataFrame) -> str:
    return listed([STAGES[stage] for stage in frame["stage"].unique(maintain_order=True)])


def _of_simulations(found: Calibration) -> list[str]:
    told = [
        "Users and sites react to settings: more work would be sent, or other work. The simulation sends the same jobs.",
        "Slots are those seen in use: what a queue that was never full could take is not known.",
    ]
    unknown = (
        found.tried.filter(pl.col("before").is_null())["label"]
        .unique(maintain_order=True)
        .to_list()
    )
    if unknown:
        told.append(f"The simulation does not know {listed(unknown)}: no limit on it was asked.")
    proof = found.proof
    if proof is not None and not proof.strata.is_empty():
        classes = {"gshare": "global shares", "user_class": "classes of users"}
        lacking = [words for name, words in classes.items() if name not in proof.strata["stratum"]]
        if lacking:
            told.append(
                f"The simulation does not say of which {listed(lacking)} tasks are: who gains and loses among them is not known."
            )
    row = found.tried.filter(quantity="unfinished")
    left = row["before"].drop_nulls()
    if len(left) and left[0] > 0:
        told.append(
            f"{number(100 * left[0], 1)} % of the tasks are not over at the end of a simulation: they count with what they took "
            "until then, under both settings."
        )
    return told


def objective_label(found: Calibration) -> str:
    """Name the objective."""
    return next(q.label for q in QUANTITIES if q.name == found.objective)
