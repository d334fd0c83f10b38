"""What the estimator's limits mean for the setting that the deployed system has, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from brokerlab.archive import Archive
from brokerlab.calibrate.nearest_setting import Translation, translate_bound
from brokerlab.errors import BrokerlabError
from brokerlab.report.walltime_estimator.tasks import OURS, TaskStudy

MAX_EXCEED = 0.02
"""Share of jobs that may run into their limit: that of the settings, and so the level of the estimator's bound."""
LEVEL = 0.98
NAME = f"{OURS}, bound {100 * LEVEL:g} %"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What was translated: translations by name of the part, and why a part could not be."""

    found: Mapping[str, Translation]
    missing: Mapping[str, str]


def study_settings(studies: Mapping[str, TaskStudy], archive: Archive | None, *, n_boot: int, seed: int) -> Settings:  # fmt: skip
    """Translate the bounds given at submission into the scouts' rule of cputime."""
    found, missing = {}, {}
    for name, study in studies.items():
        try:
            found[name] = translate_bound(
                study.trials["submit"],
                None if study.inputs.left_out else archive,
                model=OURS,
                level=LEVEL,
                n_boot=n_boot,
                seed=seed,
            )
        except BrokerlabError as why:
            missing[name] = str(why)
    return Settings(found=found, missing=missing)


def write_proposals(settings: Settings, folder: Path) -> None:
    """Write what is proposed."""
    for name, each in settings.found.items():
        if each.proposal is not None:
            path = folder / f"proposal-{name}.json"
            path.write_text(each.proposal.to_json(), encoding="utf-8")
