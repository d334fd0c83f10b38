"""The command line: parse, call, print. Everything it does is a library call."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer
from rich.console import Console

from brokerlab.errors import BrokerlabError

app = typer.Typer(
    name="brokerlab",
    help="What should the settings of a workload-management system be?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def fail(error: BrokerlabError) -> NoReturn:
    """Print an error as the last line and leave with its exit code."""
    Console(stderr=True, soft_wrap=True).print(
        f"{type(error).__name__}: {error}", markup=False, highlight=False
    )
    sys.exit(error.exit_code)
