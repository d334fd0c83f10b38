"""How a run was made: what its manifest holds, and the last section of its page."""

import json
import platform
import shlex
from collections.abc import Mapping
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from brokerlab import __version__
from brokerlab.report.runs import PROPOSALS
from brokerlab.words import THIN, duration, instant, number

PACKAGES = ("polars", "duckdb", "narwhals", "numpy", "scipy", "altair", "papermill")
"""Libraries whose version can change a number or a picture."""
PLACE = ("app", "component", "key")


def command(report: str, given: Mapping[str, Any], out_root: str | Path = "reports") -> str:
    """Return the command line that asks for a report with these parameters."""
    words = ["brokerlab", "report", report]
    for name, value in given.items():
        words += ["-p", f"{name}={typed(value)}"]
    if str(out_root) != "reports":
        words += ["--out", str(out_root)]
    return shlex.join(words)


def typed(value: Any) -> str:
    """Show a parameter as it would be typed."""
    if isinstance(value, str) or value is None:
        return value or ""
    if isinstance(value, list) and all(isinstance(item, int | float | str) for item in value):
        return ",".join(map(str, value))
    return json.dumps(value)


def proposals(folder: Path) -> list[dict[str, Any]]:
    """Return what a run proposes: file, kind, title, keys and digest, by which the run is found again.

    Example:
        >>> proposals(Path("no such folder"))
        []
    """
    result = []
    for path in sorted(folder.glob(PROPOSALS)):
        document = json.loads(path.read_text(encoding="utf-8"))
        keys = ["/".join(change[part] for part in PLACE) for change in document["changes"]]
        entry = {name: document[name] for name in ("kind", "title", "digest")}
        result.append({"file": path.name, **entry, "keys": keys})
    return result


def versions() -> dict[str, str]:
    """Return the versions of brokerlab, Python and the libraries that matter."""
    result = {"brokerlab": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            result[package] = "absent"
    return result


def complete(
    results: Mapping[str, Any], manifest: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Add what only the runner knows to the page's last section, and to the results; files of the folder become links."""
    page = dict(results["page"])
    section = dict(page.get("made", {}))
    started = datetime.fromisoformat(str(manifest["started"]))
    run = f"{manifest['run_id']}, {instant(started)}, {duration(manifest['duration_s'])}"
    notebook = f"{manifest['notebook']}, digest {manifest['notebook_digest'][:12]}"
    facts = [{"label": "Run", "value": run}, {"label": "Notebook", "value": notebook}]
    if manifest.get("memory"):
        facts.append({"label": "Memory", "value": manifest["memory"]})
    section.update(
        facts=[*section.get("facts", []), *facts],
        command=manifest["command"],
        links=[*section.get("links", []), *links(folder)],
    )
    page["made"] = section
    return {**results, "page": page, "run_id": manifest["run_id"], "state": manifest["state"]}


def links(folder: Path) -> list[dict[str, str]]:
    """Return a link for every file of a run worth opening, in a stable order."""
    named = {
        "results.json": "results.json (every number of this page)",
        "manifest.json": "manifest.json",
    }
    if (folder / "notebook.ipynb").exists():
        named["notebook.ipynb"] = "executed notebook"
    grouped = [sorted(folder.glob(pattern)) for pattern in ("charts/*", "tables/*", PROPOSALS)]
    for path in (path for group in grouped for path in group if path.is_file()):
        href, size_kb = path.relative_to(folder).as_posix(), path.stat().st_size / 1024
        named[href] = f"{href} ({number(max(size_kb, 1))}{THIN}kB)"
    return [
        {"label": label, "href": href, "folder": href.rpartition("/")[0]}
        for href, label in named.items()
    ]
