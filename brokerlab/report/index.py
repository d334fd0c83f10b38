"""The index of all runs: `reports/index.html` for people, `reports/index.json` for programs.

It is rebuilt from what the runs' own folders say, so it cannot drift from them; a run whose files
cannot be read is listed as damaged, not dropped.
"""

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brokerlab.report.rendering import environment
from brokerlab.report.results import KIND_WORDS
from brokerlab.words import instant

ONE_AT_A_TIME = threading.Lock()
"""Of two reports that end at once in one process neither is left out."""
RUN_TIME = re.compile(r"^(\d{8}T\d{6}Z)-")


def rebuild(out_root: str | Path) -> Path:
    """Rebuild the index from the runs below a folder; return the path of `index.html`, `index.json` is beside it."""
    with ONE_AT_A_TIME:
        return _rebuild(Path(out_root))


def _rebuild(root: Path) -> Path:
    runs = entries(root)
    kinds = [kind for kind in KIND_WORDS if any(kind in run["kinds"] for run in runs)]
    of_kind = Counter(run["kind"] for run in runs)
    html = (
        environment()
        .get_template("index.html.j2")
        .render(
            runs=runs,
            reports=sorted({run["report"] for run in runs}),
            kinds=kinds,
            counts={kind: n for kind in KIND_WORDS if (n := of_kind[kind])},
            trends=trends(runs),
        )
    )
    text = json.dumps({"runs": runs}, indent=1, ensure_ascii=False, allow_nan=False)
    _replace(root / "index.json", text + "\n")
    return _replace(root / "index.html", html)


def entries(root: Path) -> list[dict[str, Any]]:
    """Return one entry per run, newest first."""
    folders = [
        run
        for report in root.iterdir()
        if report.is_dir() and not report.name.startswith(".")
        for run in report.iterdir()
        if run.is_dir() and not run.name.startswith(".")
    ]
    result = [_entry(folder, root) for folder in folders]
    return sorted(result, key=lambda e: (e["date"] or "", e["run_id"], e["report"]), reverse=True)


def _entry(folder: Path, root: Path) -> dict[str, Any]:
    """Read one run; whatever is wrong with its files makes it a damaged one."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        started = datetime.fromisoformat(manifest["started"])
        page = results["page"]
        headline, parts = page["verdict"], page["parts"]
        verdicts = [part["verdict"] for part in parts]
        kinds = sorted({verdict["kind"] for verdict in (headline, *verdicts)})
        result = {
            "question": page["question"],
            "kind": headline["kind"],
            "kinds": kinds,
            "verdict": headline["sentence"],
            "others": [
                {"subject": v["subject"], "kind": v["kind"], "word": KIND_WORDS[v["kind"]]}
                for v in verdicts
                if v["subject"]
            ],
            "window": page["window"],
            "archive": page["archive"],
            "synthetic": page["synthetic"],
            "state": str(manifest["state"]),
            "number": _main_number([page, *parts]),
            "thumbnail": _thumbnail([page, *parts], folder, root),
        }
    except Exception as error:  # noqa: BLE001 - one broken run must not take the index down
        return _damaged(folder, root, error)
    date = started.astimezone(UTC).isoformat(timespec="seconds")
    return {**_place(folder, root), **result, "date": date, "shown_date": instant(started)}


def _main_number(owners: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the first number of a page."""
    for owner in owners:
        for number in owner.get("numbers", ()):
            return {name: number[name] for name in ("label", "value", "text")}
    return None


def _thumbnail(owners: list[Mapping[str, Any]], folder: Path, root: Path) -> str | None:
    """Return where the first chart of a page is, relative to the index."""
    names = [owner["chart"]["chart"] for owner in owners if owner.get("chart")]
    paths = [folder / "charts" / f"{name}.svg" for name in names]
    return next((path.relative_to(root).as_posix() for path in paths if path.exists()), None)


def trends(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how the main number of each report went over its runs, where two at least of the `entries` have it.

    These are dictionaries with report, label, text (the newest) and points, the line through a box of 100 x 20.
    """
    result = []
    for report in sorted({run["report"] for run in runs}):
        numbers = [run["number"] for run in runs if run["report"] == report and run["number"]]
        same = [n for n in numbers if n["label"] == numbers[0]["label"] and n["value"] is not None]
        values = [number["value"] for number in reversed(same)]
        if len(values) > 1:
            low, high = min(values), max(values)
            span = (high - low) or 1.0
            points = " ".join(
                f"{100 * i / (len(values) - 1):.1f},{18 - 16 * (value - low) / span:.1f}"
                for i, value in enumerate(values)
            )
            newest = {"label": same[0]["label"], "text": same[0]["text"], "n": len(values)}
            result.append({"report": report, **newest, "points": points})
    return result


def _damaged(folder: Path, root: Path, error: Exception) -> dict[str, Any]:
    """Describe a run that cannot be read, with the date its name tells."""
    stamp = RUN_TIME.match(folder.name)
    date = None
    if stamp:
        date = datetime.strptime(stamp[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return {
        **_place(folder, root),
        **dict.fromkeys(("question", "window", "archive"), ""),
        **dict.fromkeys(("number", "thumbnail")),
        "kind": "failed",
        "kinds": ["failed"],
        "verdict": f"This run's files cannot be read: {type(error).__name__}: {reason}",
        "others": [],
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
