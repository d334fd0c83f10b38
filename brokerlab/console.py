"""What the command line says beside its answers, on the error stream: notes, progress and errors; nothing where it is asked to be quiet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console

from brokerlab.errors import collect_warnings


@dataclass
class Asked:
    """Options of ``brokerlab`` itself, set anew by every command line.

    Attributes:
        quiet: No notes and no progress.
        verbose: Of an error, where it was raised.
    """

    quiet: bool = False
    verbose: bool = False


ASKED = Asked()


def beside() -> Console:
    """Return the console for progress; it prints nothing under ``--quiet``."""
    return Console(stderr=True, soft_wrap=True, highlight=False, quiet=ASKED.quiet)


@contextmanager
def noted() -> Iterator[None]:
    """Print what brokerlab warns of within the block as notes, each once."""
    with collect_warnings() as messages:
        yield
    for message in messages:
        beside().print(f"note: {message}", markup=False)
