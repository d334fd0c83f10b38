"""Answers of the command line for programs, and what it says beside them on the error stream; nothing there where it is asked to be quiet."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Console

from brokerlab.errors import collect_warnings


@dataclass
class Asked:
    """Options of ``brokerlab`` itself, set anew by every command line."""

    quiet: bool = False  # no notes and no progress
    verbose: bool = False  # of an error, where it was raised
    answered: bool = False  # A line for programs was printed


ASKED = Asked()


def print_line(answer: Any) -> None:
    """Print one line of JSON, for programs."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    typer.echo(json.dumps(answer, ensure_ascii=plain))
    ASKED.answered = True


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
