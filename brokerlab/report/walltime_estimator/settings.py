"""What the estimator's limits mean for the setting that the deployed system has: the nearest rank, and what is lost by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from brokerlab.archive import Archive
from brokerlab.calibrate.nearest_setting import Translation, translate
from brokerlab.errors import BrokerlabError
from brokerlab.report.walltime_estimator.tasks import OURS, TaskStudy

MAX_EXCEED = 0.02
"""Share of jobs that may run into their limit: that of the settings, and so the level of the estimator's bound."""
LEVEL = 0.98
NAME = f"{OURS}, bound {100 * LEVEL:g} %"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What was translated.

    Attributes:
        found: By name of the part.
        missing: Why a part could not be translated.
    """

    found: Mapping[str, Translation]
    missing: Mapping[str, str]


def study_settings(studies: Mapping[str, TaskStudy], archive: Archive | None, *, n_boot: int, seed: int) -> Settings:  # fmt: skip
    """Translate the bounds given at submission into the scouts' rule of cputime.

    Args:
        studies: By name of the part.
        archive: That of the part `archive`.
        n_boot: Draws of tasks.
        seed: Of the draws.
    """
    found, missing = {}, {}
    for name, study in studies.items():
        trial = study.trials["submit"]
        given = trial.predicted[OURS]
        allocations = pl.DataFrame({"pandaid": given.pandaid, "allocated": given.at(LEVEL)})
        whole = archive is not None and not study.inputs.left_out
        spans = _spans(archive, trial.records) if whole and archive is not None else (None, None)
        try:
            found[name] = translate(
                archive if whole else trial.records,
                allocations,
                parameter="cputime",
                name=NAME,
                calibration=spans[0],
                proof=spans[1],
                max_exceed=MAX_EXCEED,
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


def _spans(
    archive: Archive, records: pl.DataFrame
) -> tuple[tuple[datetime, datetime], tuple[datetime, datetime]] | tuple[None, None]:
    """Return when the earlier and the later half of the judged tasks were created."""
    made = archive.scan("tasks").select("jeditaskid", "creationdate").collect()
    dates = made.join(records.select("jeditaskid").unique(), on="jeditaskid", how="semi")
    order = dates["creationdate"].drop_nulls().sort()
    if len(order) < 2 or order[0] == order[-1]:
        return None, None
    middle, end = order[len(order) // 2], order[-1] + timedelta(microseconds=1)
    return (order[0], middle), (middle, end)
