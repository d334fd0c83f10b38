"""One line of JSON about a run, for the program that asked for it."""

from pathlib import Path
from typing import Any

from brokerlab.errors import BrokerlabError
from brokerlab.report.exits import NAMES
from brokerlab.report.results import jsonable
from brokerlab.report.runner import Run

FILES = ("index.html", "results.json", "manifest.json", "notebook.ipynb")
"""Outputs that every run has; charts and tables are beside them."""


def of_run(run: Run, exit_code: int) -> dict[str, Any]:
    """Return what a scheduler wants to know of a run, finished or failed.

    ``report, run_id, state`` (finished, failed), ``reused`` (it was there already), ``verdict`` (kind, sentence),
    ``verdicts`` (of every part: name, kind), ``exit_code, exit_reason, folder, page, outputs`` (relative to the
    folder), ``proposals`` (file, kind, title, digest, keys), ``digests, parameters, started, duration_s`` [s] (of
    the run itself), ``error`` (null, or in one line).
    """
    manifest, page = run.manifest, run.results["page"]
    verdict = page["verdict"]
    result: dict[str, Any] = jsonable(
        {
            "report": run.report,
            "run_id": run.run_id,
            "state": manifest["state"],
            "reused": run.reused,
            "verdict": {"kind": verdict["kind"], "sentence": verdict["sentence"]},
            "verdicts": [
                {"name": part["name"], "kind": part["verdict"]["kind"]} for part in page["parts"]
            ],
            "exit_code": exit_code,
            "exit_reason": NAMES[exit_code],
            "folder": run.folder.as_posix(),
            "page": run.page.as_posix(),
            "outputs": _outputs(run.folder),
            "proposals": manifest.get("proposals", []),
            "digests": manifest["digests"],
            "parameters": manifest["parameters"],
            "started": manifest["started"],
            "duration_s": manifest["duration_s"],
            "error": None if run.failure is None else run.failure.line,
        }
    )
    return result


def of_refusal(report: str, run_id: str | None, error: BrokerlabError) -> dict[str, Any]:
    """Return the same shape for a run that never began; what there is none of is null or empty."""
    return {
        "report": report,
        "run_id": run_id,
        "state": "refused",
        "reused": False,
        "verdict": None,
        "verdicts": [],
        "exit_code": error.exit_code,
        "exit_reason": NAMES[error.exit_code],
        "folder": None,
        "page": None,
        "outputs": [],
        "proposals": [],
        "digests": {},
        "parameters": {},
        "started": None,
        "duration_s": None,
        "error": f"{type(error).__name__}: {error}",
    }


def _outputs(folder: Path) -> list[str]:
    """Return every file of a run: page and numbers first, then the rest by name."""
    every = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    first = [name for name in FILES if name in every]
    return first + [name for name in every if name not in first]
