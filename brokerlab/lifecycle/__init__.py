"""How long work waits: classes of sites, users and tasks, and the rules that end waiting.

`classes` rates the queues of an archive over time, `waiting` says which timeouts fire and what became of the jobs. The
rules are in ``classification`` and ``timeouts``, what follows from them over a period in ``class_history`` and ``waits``;
both read the status of jobs over time by ``states``.
"""

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab.lifecycle.class_history.ratings import classes
    from brokerlab.lifecycle.waits.period import read_waiting as waiting

__all__ = ["classes", "waiting"]

__getattr__, __dir__ = lazy(
    __name__, {"classes": "class_history.ratings", "waiting": "waits.period:read_waiting"}
)
