"""What can be wrong with a workflow, before anything is simulated."""

from __future__ import annotations

from brokerlab.errors import DataError


class WorkflowError(DataError):
    """Raised when tasks and edges are no workflow; says everything that is wrong with them."""


class CycleError(WorkflowError):
    """Raised when tasks wait for each other in a circle; names one such circle."""


class MissingRuntime(WorkflowError):  # noqa: N818 - the chapter's name
    """Raised when tasks have no run time and no default is given."""


class TaskTooWide(WorkflowError):  # noqa: N818 - the chapter's name
    """Raised when a task needs more hosts than the machine has."""


class RunFailed(WorkflowError):  # noqa: N818 - a run that came to no end is no broken workflow
    """Raised when a task is killed at its walltime again and again."""
