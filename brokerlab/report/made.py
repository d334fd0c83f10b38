"""How a run was made: what its manifest holds, and the last section of its page."""

import json
import platform
import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from brokerlab import __version__
from brokerlab.words import THIN, duration, instant, number

PACKAGES = ("polars", "duckdb", "narwhals", "numpy", "scipy", "altair", "papermill")
"""Libraries whose version can change a number or a picture."""
PLACE = ("app", "component", "key")
GROUPS = ("charts", "tables")
"""Folders of a run whose files the page links."""


def command(report: str, given: Mapping[str, Any], out_root: str | Path = "reports") -> str:
    """Return the command line that asks for a report with these parameters.

    Example:
        >>> command("scout-percentiles", {"archive": "data/demo", "ranks": [50, 99], "start": None})
        'brokerlab report scout-percentiles -p archive=data/demo -p ranks=50,99 -p start='
    """
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
    found = []
    for path in sorted(folder.glob("proposal*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        keys = ["/".join(change[part] for part in PLACE) for change in document["changes"]]
        told = {name: document[name] for name in ("kind", "title", "digest")}
        found.append({"file": path.name, **told, "keys": keys})
    return found


def versions() -> dict[str, str]:
    """Return the versions of brokerlab, Python and the libraries that matter."""
    found = {"brokerlab": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def complete(
    results: Mapping[str, Any], manifest: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Add what only the runner knows to the page's last section, and to the results.

    Args:
        results: As written by the notebook.
        manifest: What `manifest.json` will hold.
        folder: The run's folder; its files become links.

    Returns:
        The results to write and to render from.
    """
    page = dict(results["page"])
    section = dict(page.get("made", {}))
    started = datetime.fromisoformat(str(manifest["started"]))
    run = f"{manifest['run_id']}, {instant(started)}, {duration(manifest['duration_s'])}"
    notebook = f"{manifest['notebook']}, digest {manifest['notebook_digest'][:12]}"
    facts = [_fact("Run", run), _fact("Notebook", notebook)]
    section.update(
        facts=[*section.get("facts", []), *facts],
        command=manifest["command"],
        links=[*section.get("links", []), *links(folder)],
    )
    page["made"] = section
    return {**results, "page": page, "run_id": manifest["run_id"], "state": manifest["state"]}


def links(folder: Path) -> list[dict[str, str]]:
    """Return a link for every file of a run worth opening, in a stable order."""
    found = [_named("results.json (every number of this page)", "results.json")]
    found.append(_named("manifest.json", "manifest.json"))
    if (folder / "notebook.ipynb").exists():
        found.append(_named("executed notebook", "notebook.ipynb"))
    return found + [_link(folder, path) for path in _files(folder)]


def _files(folder: Path) -> Iterator[Path]:
    for group in GROUPS:
        yield from sorted(path for path in (folder / group).glob("*") if path.is_file())
    yield from sorted(folder.glob("proposal*.json"))


def _link(folder: Path, path: Path) -> dict[str, str]:
    size_kb = path.stat().st_size / 1024
    href = path.relative_to(folder).as_posix()
    return _named(f"{href} ({number(max(size_kb, 1))}{THIN}kB)", href)


def _named(label: str, href: str) -> dict[str, str]:
    return {"label": label, "href": href, "folder": href.rpartition("/")[0]}


def _fact(label: str, value: str) -> dict[str, str]:
    return {"label": label, "value": value}
