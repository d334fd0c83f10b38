"""A folder of runs with proposals, as several reports leave it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import (
    Affected,
    Effect,
    Evidence,
    Proposal,
    Window,
    dumps,
    write,
)

NOW = datetime(2026, 11, 21, 9)
BASE = Config.from_rows(
    [
        {"app": "jedi", "component": "dbproxy", "key": "SCOUT_CPUTIME_RANK", "value": "90", "type": "int"},
        {"app": "jedi", "component": "jobbroker", "key": "NW_ACTIVE", "value": "True", "type": "bool"},
    ]
)  # fmt: skip
WINDOWS = (
    Window("choice", datetime(2026, 3, 1), datetime(2026, 3, 12)),
    Window("proof", datetime(2026, 3, 12), datetime(2026, 3, 26)),
)
KILLED = Effect("First attempts killed", "share of jobs", 0.009, 0.012, 0.003, 0.001, 0.005, 0.95)
SLOTS = Effect("Slots that can take a task", "share", 0.93, 0.932, 0.002, -0.003, 0.006, 0.95)
USED = Effect("Used by finished jobs", "GB h", 130.0, 130.0, 0.0, 0.0, 0.0, 0.95)
WAITING = Effect("Mean waiting", "h", 5.2, 5.04, -0.16, -0.25, -0.06, 0.95)
PEOPLE = (Affected("gshare MC16 simul", "loss -0.06, 1,030 tasks"), Affected("queue AGLT2", "loss -0.03"))  # fmt: skip


def lay(
    root: Path,
    report: str,
    values: dict[str, Any] | None = None,
    *,
    keep: Iterable[str] = (),
    config: Config = BASE,
    run: str = "20261120T090000Z-1",
    name: str = "proposal.json",
    state: str = "finished",
    archive: str = "data/mine",
    archive_digest: str | None = None,
    **evidence: Any,
) -> Path:
    """Write a proposal as a run of a report does."""
    folder = root / report / run
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text("<p>")
    told = {"verdict": f"Verdict of {report}.", "windows": WINDOWS, **evidence}
    words = {"title": f"Of {report}", "created_at": NOW, "evidence": Evidence(**told), "archive_digest": archive_digest}  # fmt: skip
    made = (
        Proposal.to_change(config, values, **words)
        if values
        else Proposal.to_keep(config, keep, **words)
    )
    write(dumps(made), folder / name, overwrite=True)
    manifest = {
        "report": report,
        "run_id": run,
        "started": run,
        "state": state,
        "parameters": {"archive": archive},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder / name


def scouts(root: Path, **others: Any) -> Path:
    """A change of two keys with everything a document can tell."""
    given = {"effects": (KILLED, SLOTS, USED), "helps": PEOPLE, "hurts": (Affected("gshare Express", "loss +0.02"),)}  # fmt: skip
    values = {"SCOUT_RAMCOUNT_RANK": 80, "SCOUT_RAMCOUNT_MARGIN": 6}
    return lay(root, "scouts", values, **{**given, **others})


def caps(root: Path, **others: Any) -> Path:
    """A change of another key."""
    given = {
        "effects": (WAITING,),
        "helps": tuple(Affected(f"gshare G{i}", "waiting less") for i in range(9)),
    }
    return lay(root, "thresholds", {"NQUEUED_SAT_CAP": 200}, **{**given, **others})


def config_file(root: Path, config: Config = BASE) -> Path:
    """Write a configuration."""
    file = root / "gdpconfig.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    config.frame().drop("valid_from", "valid_to").write_csv(file)
    return file
