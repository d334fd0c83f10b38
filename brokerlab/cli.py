"""The command line: parse, call, print. Everything it does is a library call."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, NoReturn, ParamSpec

import typer
from rich.console import Console

from brokerlab import __version__
from brokerlab.archive import command as archive_commands
from brokerlab.brokerage import command as brokerage_commands
from brokerlab.calibrate.command import drift as drift_command
from brokerlab.console import ASKED, print_line
from brokerlab.errors import BrokerlabError, ours
from brokerlab.estimators import command as estimator_commands
from brokerlab.gdpconfig import command as proposal_commands
from brokerlab.report.command import check as check_command
from brokerlab.report.command import report as report_command
from brokerlab.worlds.command import synthesise as synthesise_command

P = ParamSpec("P")

app = typer.Typer(
    name="brokerlab",
    help="What should the settings of a workload-management system be?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(asked_for: bool) -> None:  # noqa: FBT001 - the callback of an option
    if asked_for:
        typer.echo(f"brokerlab {__version__}")
        raise typer.Exit


@app.callback()
def main(
    *,
    version: Annotated[  # noqa: ARG001 - acts by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say of an error where it was raised.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No notes and no progress: answers and errors.")
    ] = False,
) -> None:
    """What should the settings of a workload-management system be?"""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, TextIOWrapper
        ):  # a terminal or file that is not UTF-8 shows "?" for what it cannot hold
            stream.reconfigure(errors="replace")
    ASKED.verbose, ASKED.quiet, ASKED.answered = verbose, quiet, False


def fail(error: BrokerlabError) -> NoReturn:
    """Print an error as the last line and leave with its exit code."""
    if ASKED.verbose:
        Console(stderr=True).print_exception()
    Console(stderr=True, soft_wrap=True).print(
        f"{type(error).__name__}: {error}", markup=False, highlight=False
    )
    sys.exit(error.exit_code)


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Let a command of a package raise our errors; they end the program as `fail` says.

    A command that was asked for JSON prints a line of it all the same.
    """

    @functools.wraps(command)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (BrokerlabError, OSError) as error:
            message = ours(error)
            if kwargs.get("as_json") and not ASKED.answered:
                print_line(
                    {
                        "error": f"{type(message).__name__}: {message}",
                        "exit_code": message.exit_code,
                    }
                )
            fail(message)

    return call


def switches(
    chapter: Annotated[str, typer.Argument(help="One chapter; none prints all.")] = "",
) -> None:
    """Print where the documents and the deployed code differ: one switch per line, with its sentence."""
    from rich.table import Table
    from rich.text import Text

    from brokerlab.rulesets import differences

    frame = differences(chapter or None)
    shown = Table(*frame.columns)
    for row in frame.iter_rows():
        shown.add_row(*(Text(cell or "-") for cell in row))
    Console(width=None if Console().is_terminal else 200).print(shown)


app.command("report")(guarded(report_command))
app.command("tables")(guarded(brokerage_commands.tables))
app.command("ingest")(guarded(archive_commands.ingest))
app.command("check")(guarded(check_command))
app.command("verify")(guarded(archive_commands.verify))
app.command("brokerages")(guarded(brokerage_commands.brokerages))
app.command("explain")(guarded(brokerage_commands.explain))
app.command("predict")(guarded(estimator_commands.predict))
app.command("switches")(guarded(switches))
app.command("synthesise")(guarded(synthesise_command))

proposal = typer.Typer(
    no_args_is_help=True, help="List, show, check, merge, write out or take back proposals."
)
for command in (
    proposal_commands.list_,
    proposal_commands.show,
    proposal_commands.annotate,
    proposal_commands.verify,
    proposal_commands.diff,
    proposal_commands.apply,
    proposal_commands.revert,
    proposal_commands.merge,
    proposal_commands.base,
):
    proposal.command(command.__name__.strip("_"))(guarded(command))
proposal.command("drift")(guarded(drift_command))
app.add_typer(proposal, name="proposal")

if __name__ == "__main__":  # python -m brokerlab.cli
    app()
