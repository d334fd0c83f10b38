"""The index of all runs: `reports/index.html` for people, `reports/index.json` for programs.

It is rebuilt from what the runs' own folders say, so it cannot drift from them; a run whose files
cannot be read is listed as damaged, not dropped.
"""

import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brokerlab.report.content import KIND_WORDS, Page
from brokerlab.report.page import environment
from brokerlab.words import instant

RUN_TIME = re.compile(r"^(\d{8}T\d{6}Z)-")


def rebuild(out_root: str | Path) -> Path:
    """Rebuild the index from the runs that are there.

    Args:
        out_root: Folder of all reports.

    Returns:
        The path of `index.html`; `index.json` is beside it.
    """
    root = Path(out_root)
    runs = entries(root)
    kinds = [kind for kind in KIND_WORDS if any(kind in run["kinds"] for run in runs)]
    html = (
        environment()
        .get_template("index.html.j2")
        .render(runs=runs, reports=sorted({run["report"] for run in runs}), kinds=kinds)
    )
    text = json.dumps({"runs": runs}, indent=1, ensure_ascii=False, allow_nan=False)
    _replace(root / "index.json", text + "\n")
    return _replace(root / "index.html", html)


def entries(root: Path) -> list[dict[str, Any]]:
    """Return one entry per run, newest first.

    Args:
        root: Folder of all reports.

    Returns:
        Dictionaries with report, run_id, page (relative path, null if there is none), question,
        kind, kinds, verdict, others, window, archive, synthetic, date (ISO 8601, UTC, or null),
        shown_date and state (finished, failed or damaged).
    """
    folders = [
        run
        for report in root.iterdir()
        if report.is_dir() and not report.name.startswith(".")
        for run in report.iterdir()
        if run.is_dir() and not run.name.startswith(".")
    ]
    found = [_entry(folder, root) for folder in folders]
    return sorted(found, key=lambda e: (e["date"] or "", e["run_id"], e["report"]), reverse=True)


def _entry(folder: Path, root: Path) -> dict[str, Any]:
    """Read one run; whatever is wrong with its files makes it a damaged one."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        started = datetime.fromisoformat(manifest["started"])
        content = Page.from_json(results["page"])
        state = str(manifest["state"])
    except Exception as error:  # noqa: BLE001 - one broken run must not take the index down
        return _damaged(folder, root, error)
    verdicts = [part.verdict for part in content.parts]
    return {
        **_place(folder, root),
        "question": content.question,
        "kind": content.verdict.kind,
        "kinds": sorted({content.verdict.kind, *(verdict.kind for verdict in verdicts)}),
        "verdict": content.verdict.sentence,
        "others": [
            {"subject": v.subject, "kind": v.kind, "word": KIND_WORDS[v.kind]} for v in verdicts
        ],
        "window": content.window,
        "archive": content.archive,
        "synthetic": content.synthetic,
        "date": started.astimezone(UTC).isoformat(timespec="seconds"),
        "shown_date": instant(started),
        "state": state,
    }


def _damaged(folder: Path, root: Path, error: Exception) -> dict[str, Any]:
    """Describe a run that cannot be read, with the date its name tells."""
    stamp = RUN_TIME.match(folder.name)
    date = None
    if stamp:
        date = datetime.strptime(stamp[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return {
        **_place(folder, root),
        "question": "",
        "kind": "failed",
        "kinds": ["failed"],
        "verdict": f"This run's files cannot be read: {type(error).__name__}: {reason}",
        "others": [],
        "window": "",
        "archive": "",
        "synthetic": False,
        "date": None if date is None else date.isoformat(timespec="seconds"),
        "shown_date": instant(date),
        "state": "damaged",
    }


def _place(folder: Path, root: Path) -> Mapping[str, Any]:
    """Return where a run is, relative to the index."""
    page = folder / "index.html"
    return {
        "report": folder.parent.name,
        "run_id": folder.name,
        "page": page.relative_to(root).as_posix() if page.exists() else None,
    }


def _replace(path: Path, text: str) -> Path:
    """Write a file so that a reader sees the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    return path
