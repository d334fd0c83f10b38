"""What the exit code of a command says, for schedulers; `docs/scheduling.md` says what each means."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from brokerlab import errors
from brokerlab.errors import CANNOT_BE_CHECKED, CHANGE_PROPOSED, DOES_NOT_HOLD
from brokerlab.report.kernel import TERMINATED
from brokerlab.report.results import Kind

NO_ANSWER = errors.InsufficientDataError.exit_code
INTERRUPTED = 130
NAMES: Mapping[int, str] = MappingProxyType(
    {
        0: "done",
        errors.BrokerlabError.exit_code: "error",
        errors.SchemaError.exit_code: "schema_error",
        errors.DataError.exit_code: "data_error",
        errors.ConfigError.exit_code: "config_error",
        errors.ProposalError.exit_code: "proposal_error",
        NO_ANSWER: "no_answer",
        errors.ReportError.exit_code: "report_failed",
        DOES_NOT_HOLD: "does_not_hold",
        CANNOT_BE_CHECKED: "cannot_be_checked",
        CHANGE_PROPOSED: "change_proposed",
        INTERRUPTED: "interrupted",
        TERMINATED: "terminated",
    }
)
"""Every exit code of every command, as the JSON summary names it."""

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

    Example:
        >>> of_report("keep", []), of_report("keep", [{"kind": "change"}]), of_report("no_answer", [])
        (0, 10, 6)
    """
    return OF_VERDICT["change" if any(one["kind"] == "change" for one in proposals) else kind]
