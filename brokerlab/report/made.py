"""How a run was made: the manifest, and the last section of its page."""

import hashlib
import json
import platform
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from brokerlab import __version__
from brokerlab.report.results import jsonable
from brokerlab.words import THIN, duration, instant, number

PACKAGES = ("polars", "duckdb", "narwhals", "numpy", "scipy", "altair", "papermill")
"""Libraries whose version can change a number or a picture."""
PLACE = ("app", "component", "key")
GROUPS = ("charts", "tables")
"""Folders of a run whose files the page links."""


def manifest(
    *,
    report: str,
    run_id: str,
    state: str,
    parameters: Mapping[str, Any],
    command: str,
    notebook: Path,
    started: datetime,
    duration_s: float,
    results: Mapping[str, Any],
    folder: Path,
    inputs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the manifest of a run: what was run, with what, when, and how to repeat it.

    Args:
        report: Name of the report.
        run_id: Name of the run's folder.
        state: ``finished`` or ``failed``.
        parameters: Every parameter with the value used.
        command: The command line that repeats the run.
        notebook: The notebook that was run; its digest is kept.
        started: Start of the run.
        duration_s: Run time [s].
        results: What the notebook found; its ``digests`` (archive, configuration) are copied.
        folder: The run's folder; what is proposed in it is listed.
        inputs: What decides the answer, of :func:`brokerlab.report.runs.inputs_of`; null = nobody asked.

    Returns:
        A plain dictionary, as written to `manifest.json`.
    """
    return {
        "report": report,
        "run_id": run_id,
        "state": state,
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        "duration_s": round(duration_s, 3),
        "command": command,
        "parameters": jsonable(parameters),
        "parameters_digest": _digest(json.dumps(jsonable(parameters), sort_keys=True).encode()),
        "seed": parameters.get("seed"),
        "notebook": notebook.name,
        "notebook_digest": _digest(notebook.read_bytes()),
        "digests": jsonable(results.get("digests", {})),
        "proposals": proposals(folder),
        **({} if inputs is None else {"inputs": dict(inputs)}),
        "versions": versions(),
    }


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
        manifest: From `manifest`.
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


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
