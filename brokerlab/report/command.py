"""The command ``brokerlab report``."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from brokerlab.errors import ConfigError


def report(
    name: Annotated[str, typer.Argument(help="Which report; none lists them.")] = "",
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            "-p",
            metavar="NAME=VALUE",
            help="A parameter of its notebook; repeatable.",
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="Folder of all reports.")] = Path("reports"),
    describe: Annotated[
        bool,
        typer.Option("--parameters", help="List the report's parameters instead of running it."),
    ] = False,
) -> None:
    """Run a report into <out>/<name>/<run id>/ and print the path of its page."""
    from brokerlab.report import find, run
    from brokerlab.report.parameters import RESERVED, declared

    if not name:
        typer.echo("\n".join(find.names()))
        return
    if describe:
        for entry in declared(find.notebook(name)).values():
            if entry.name != RESERVED:
                typer.echo(f"{entry.name}: {entry.kind} = {entry.default!r}  # {entry.meaning}")
        return
    given = split(parameter or ())
    with Console(stderr=True).status(f"running {name}"):
        done = run(name, given, out_root=out)
    verdict = done.results["page"]["verdict"]["sentence"]
    typer.echo(verdict)
    typer.echo(str(done.page))


def split(pairs: Iterable[str]) -> dict[str, str]:
    """Split ``NAME=VALUE`` pairs.

    Raises:
        ConfigError: A pair without ``=`` or a name given twice; all at once.

    Example:
        >>> split(["rank=75", "archive=data/a=b"])
        {'rank': '75', 'archive': 'data/a=b'}
    """
    values: dict[str, str] = {}
    problems = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            problems.append(f"-p {pair}: write it as NAME=VALUE")
        elif key.strip() in values:
            problems.append(f"-p {key.strip()} is given twice")
        values[key.strip()] = value
    if problems:
        raise ConfigError("; ".join(problems))
    return values
