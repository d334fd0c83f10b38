"""What processes are given to do; they load this file, and pytest would take them longer than the work."""

import os
import signal
import warnings

from brokerlab.errors import warn_once


def times(shared: int, task: int) -> int:
    if task == 0:
        raise ValueError("nothing to multiply")
    if task < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return shared * task


def warns(_shared: int, task: int) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for message in ("said before", f"new in {task}"):
            warn_once(message)
    return [str(one.message) for one in caught]


def core(_shared: int, _task: int) -> tuple[int, ...]:
    return tuple(os.sched_getaffinity(0))
