"""What the report says on settings, from what was found."""

from __future__ import annotations

from brokerlab.calibrate.nearest_setting import Translation
from brokerlab.report.content import Verdict
from brokerlab.report.walltime_estimator.settings import MAX_EXCEED, NAME, Settings
from brokerlab.words import percent, thin

HOW = (
    "{name} stands for the estimator: its bound that {share} of the jobs are to exceed, the limit that settings are held to. Unlike above, a "
    "killed job costs its lost work and a new try, and unused time counts little, by the weights of the back-test."
)
WHERE = {"tasks": "Real tasks", "archive": "Archive"}


def verdict(found: Settings) -> Verdict:
    """Say which setting comes nearest to the estimator, and what is lost by having to set one."""
    if not found.found:
        why = "; ".join(found.missing.values())
        return Verdict(kind="no_answer", subject="SCOUT_CPUTIME_RANK", sentence=thin(f"No setting could be translated: {why}."))  # fmt: skip
    said = [f"{WHERE.get(part, part)}: {_brief(each)}" for part, each in found.found.items()]
    last = list(found.found.values())[-1]
    return Verdict(
        kind=last.verdict.kind,
        subject="SCOUT_CPUTIME_RANK",
        sentence=thin(f"{' '.join(said)} {last.parts['answer']}"),
    )


def _brief(each: Translation) -> str:
    """Say what the estimator would do, and what of it a rank can do."""
    ours, now = each.side("estimator"), each.side("current")
    gain, lost = each.difference("estimator")["loss"], each.difference("restriction")["loss"]
    kept = f"{percent(1 - lost / gain)} of what that saves" if gain > 0 else "nothing of that"
    return (
        f"the bound of {NAME.rpartition(' bound ')[2]} kills {percent(ours['exceed_rate'])} of first attempts where {each.current.words(each.parameter)} "
        f"kills {percent(now['exceed_rate'])}; {each.nearest.words(each.parameter)}, the nearest setting, keeps {kept}."
    )


def details(found: Settings) -> list[str]:
    """Say it with the losses, part by part."""
    return [
        thin(
            f"{WHERE.get(part, part)}: {each.parts['estimator']} {each.parts['nearest']} {each.parts['lost']}"
        )
        for part, each in found.found.items()
    ]


def certainty(found: Settings) -> list[str]:
    """Say how it was compared, and what it cannot tell."""
    told = [HOW.format(name=NAME, share=percent(MAX_EXCEED))]
    for part, each in found.found.items():
        told += [f"{WHERE.get(part, part)}: {note}" for note in each.notes]
    told += [
        f"{WHERE.get(part, part)} could not be translated: {why}"
        for part, why in found.missing.items()
    ]
    return [thin(sentence) for sentence in told]
