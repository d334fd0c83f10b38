"""What the exit code of a command says, for schedulers; `docs/scheduling.md` has the same table."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from brokerlab import errors
from brokerlab.errors import CANNOT_BE_CHECKED, CHANGE_PROPOSED, DOES_NOT_HOLD
from brokerlab.report.kernel import TERMINATED
from brokerlab.report.results import Kind


class Exit(NamedTuple):
    """One exit code: number, name in the JSON summary, meaning."""

    code: int
    name: str
    meaning: str


NO_ANSWER = errors.InsufficientDataError.exit_code
INTERRUPTED = 130

EXITS = (
    Exit(0, "done", "done; a report with `--exit-code`: keep, or a finding; a drift check: the proposal holds"),
    Exit(errors.BrokerlabError.exit_code, "error", "an error that nobody foresaw, with its trace"),
    Exit(errors.SchemaError.exit_code, "schema_error", "the command line itself is wrong, or a table lacks a column or has another type"),
    Exit(errors.DataError.exit_code, "data_error", "a file is not there, cannot be read, or contradicts itself"),
    Exit(errors.ConfigError.exit_code, "config_error", "an unknown or impossible setting, parameter or report"),
    Exit(errors.ProposalError.exit_code, "proposal_error", "no proposal, not a sound one, or one made for another configuration; proposals that conflict"),
    Exit(NO_ANSWER, "no_answer", "too few data to answer; a report only with `--exit-code`"),
    Exit(errors.ReportError.exit_code, "report_failed", "the notebook failed, the page says why; or the run id is taken by a run with other inputs, or being made"),
    Exit(DOES_NOT_HOLD, "does_not_hold", "drift check: the proposal no longer holds, beyond doubt"),
    Exit(CANNOT_BE_CHECKED, "cannot_be_checked", "drift check: the proof of this proposal cannot be repeated on an archive"),
    Exit(CHANGE_PROPOSED, "change_proposed", "report with `--exit-code`: its verdict, or one of its proposals, is to change something"),
    Exit(INTERRUPTED, "interrupted", "stopped by Ctrl-C; nothing is left behind"),
    Exit(TERMINATED, "terminated", "stopped by SIGTERM, as schedulers do; nothing is left behind"),
)  # fmt: skip
"""Every exit code of every command."""

NAMES: Mapping[int, str] = MappingProxyType({exit_.code: exit_.name for exit_ in EXITS})

OF_VERDICT: Mapping[Kind, int] = MappingProxyType(
    {
        "keep": 0,
        "finding": 0,
        "change": CHANGE_PROPOSED,
        "improve": CHANGE_PROPOSED,
        "no_answer": NO_ANSWER,
        "failed": errors.ReportError.exit_code,
    }
)


def of_report(kind: Kind, proposals: Iterable[Mapping[str, Any]]) -> int:
    """Return the exit code of a report with `--exit-code`; without it every report that ran gives 0.

    Args:
        kind: Of its verdict.
        proposals: Of its manifest.

    Example:
        >>> of_report("keep", []), of_report("keep", [{"kind": "change"}]), of_report("no_answer", [])
        (0, 10, 6)
    """
    return OF_VERDICT["change" if any(one["kind"] == "change" for one in proposals) else kind]
